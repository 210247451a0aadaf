// SPDX-License-Identifier: GPL-3.0-or-later
// Sequence: the input of a model, with a target or without. Loaded from a file, or made by a synthetic task.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "array/error.h"
#include "parameters/hyper.h"
#include "trace/missing.h"

namespace reclab {

enum class TargetKind {
  none,     ///< no target: the loss is of the output's own norm
  regress,  ///< target [length, target_width], half squared error
  classify  ///< target [length, 1] holds class numbers 0..classes-1, cross-entropy of the head's logits
};

/// The treatment of missing cells of a file: cells that are empty, NaN, or a word for it such as NA.
enum class Missing : std::uint8_t {
  refuse,
  leave_out,    ///< of an input or the time: its row is left out, and the steps around it keep their times or numbers
  hold,         ///< of an input: the last value before it, or the first where there is none before
  interpolate,  ///< of an input: on the line between its neighbours in time; beyond the first and the last value that value
  mask  ///< as hold, and behind the inputs a channel for each column that has missing cells, 1 where the cell is there and 0 where it is
        ///< not
};  // but for refuse: a step whose target is missing does not count, and a time that is missing is refused unless its row is left out
std::string_view to_string(Missing missing);  ///< "leave-out"
std::optional<Missing> missing_choice(std::string_view word);
std::vector<std::string> missing_choices();

/// Thrown for a missing cell where it is to be refused; where().range has the words of the choices under which it would not be, with commas
/// between them.
class MissingCellError : public Error {
 public:
  using Error::Error;
};

struct LoadOptions {
  std::vector<std::string> columns;  ///< by header name or 1-based number; empty: every numeric column but time and target
  /// The time column by name or number; unset: a column named t, time, date... whose values increase; "none": no time column.
  std::optional<std::string> time;
  bool standardise = true;
  /// Columns by name or number that are the target at every step, and inputs only where `columns` names them too; or only "next": the
  /// inputs' own next values, which count at every step but the last. Standardised as the inputs are. Empty: the file's own target, if it
  /// has one. A column named next is chosen by its number.
  std::vector<std::string> target;
  Missing missing = Missing::refuse;
  bool operator==(const LoadOptions&) const = default;
};

/// Parameters of a task's own by key, as text, in order: a later one counts.
using TaskSettings = std::vector<std::pair<std::string, std::string>>;

struct TaskOptions {
  std::int64_t length = 200;
  std::uint64_t seed = 1;
  bool standardise = false;
  TaskSettings set = {};  ///< parameters that are not the task's default
  bool operator==(const TaskOptions&) const = default;
};

/// A multivariate series, row-major: entry (t, j) is input[t * width + j].
struct Sequence {
  std::string name;         ///< a file's name, or the task's with its settings: "copy (delay = 40)"
  std::string source;       ///< the path as given, or "task adding --length 200 --seed 1"
  std::string sha256;       ///< of the file's bytes, or of input and target for a task; lower-case hexadecimal
  std::int64_t length = 0;  ///< T >= 1
  std::int64_t width = 0;   ///< d_in >= 1
  std::vector<double> input;
  std::vector<std::string> names;  ///< one a channel
  std::vector<double> time;        ///< one a step
  std::string time_name = "step";
  std::string time_unit;
  bool standardised = false;
  std::vector<double> mean, deviation;  ///< subtracted and divided by, one a channel (0 and 1 when not standardised)
  std::int64_t flags = 0;     ///< the last so many channels tell by 1 and 0 whether a cell was there (Missing::mask): they are never
                              ///< standardised, and no target
  std::vector<double> known;  ///< one a step: 0 where an input was missing and has another value now; empty where none was
  MissingCells missing;       ///< of the file

  TargetKind target_kind = TargetKind::none;
  std::int64_t target_width = 0;  ///< columns of target (1 for classify)
  std::int64_t classes = 0;       ///< for classify
  std::vector<double> target;
  std::vector<double> mask;               ///< one a step: 1 where the target counts
  std::vector<std::string> target_names;  ///< one a column of target, where they have names
  std::vector<std::int64_t> shown;  ///< of a task that knows it, one a step: the step that last showed the target of this one; -1: none

  // Its origin, for a command that makes it again.
  std::string task;  ///< the task's name; empty for a file
  TaskOptions made;  ///< of a task, its parameters in the order of their table and without the defaults
  LoadOptions load;  ///< of a file
};

/// A sequence that many requests share: it is copied where one of them changes it, and nowhere else.
class SharedSequence {
 public:
  SharedSequence() : SharedSequence(Sequence()) {}
  SharedSequence(Sequence sequence) : own_(std::make_shared<Sequence>(std::move(sequence))), shared_(own_) {}
  explicit SharedSequence(std::shared_ptr<const Sequence> shared) : shared_(std::move(shared)) {}  ///< not null
  const Sequence& operator*() const { return *shared_; }
  const Sequence* operator->() const { return shared_.get(); }
  operator const Sequence&() const { return *shared_; }
  /// The sequence to be changed: a copy, where anybody else has it too.
  Sequence& own() {
    if (!own_ || own_.use_count() > 2) *this = SharedSequence(Sequence(*shared_));
    return *own_;
  }

 private:
  std::shared_ptr<Sequence> own_;  // null: nobody here may change it
  std::shared_ptr<const Sequence> shared_;
};

/// Reads CSV, TSV, NPY ([T] or [T, d], one row a step) or the NPZ of save_sequence, told by content, not by the ending. Throws Error naming
/// file, line, column and cure; nothing is half-loaded.
/// In text, delimiter (, ; tab | blanks), header, quotes, decimal comma (where the comma is no delimiter), end of line and encoding are
/// found by looking; lines that begin with # may stand above the table; columns of words are left out unless chosen; dates (ISO 8601) can
/// be time. NaN in an array is a missing cell too.
Sequence load_sequence(const std::filesystem::path& file, const LoadOptions& options = {});

/// The description of a task, for menus and help.
struct TaskInfo {
  std::string name, title, text;  ///< text: one or two sentences on the thing to be remembered and for how long
  std::int64_t default_length;
  std::string source;                      ///< its origin in the literature
  std::vector<HyperSpec> parameters = {};  ///< its own, beside length and seed
};
/// Tasks with a target first, then by name. Each is a file in a folder of sequence/tasks/.
const std::vector<TaskInfo>& tasks();

/// The parameters of a task with these settings. Throws Error naming the tasks, the parameters or the range that there are.
Hyper task_parameters(const std::string& name, const TaskSettings& set);
/// The fewest steps that a task with these parameters can be. Throws Error as task_parameters does.
std::int64_t shortest_task(const std::string& name, const TaskSettings& set);
/// The task's parameters that are not the default, in the order of the table.
TaskSettings settings_of(const Hyper& parameters);

/// Makes a synthetic sequence. Same name, options: the same bits on every machine. Throws Error for a length that the task cannot have.
Sequence make_task(const std::string& name, const TaskOptions& options);

/// Writes a sequence as it is in memory: .csv (time, inputs, targets, mask as columns) or .npz (keys input [T, d_in], time [T] and, with a
/// target, target [T, target_width], mask [T], classes [] for classify), which load_sequence reads back with its target. Atomic.
void save_sequence(const Sequence& sequence, const std::filesystem::path& file);

}  // namespace reclab
