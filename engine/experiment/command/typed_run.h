// SPDX-License-Identifier: GPL-3.0-or-later
// A command line of `reclab run` or `reclab train` as text, taken apart, and the model and the sequence that it asks for. Nothing is
// read or made by that.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/training/training.h"
#include "sequence/choice.h"

namespace reclab {

/// The texts of options, by their flags: "--length" -> "200". An option without a value is "true". Those of a list stand between commas.
using Given = std::map<std::string, std::string>;
/// Whether an option has a text.
bool is_given(const Given& given, const std::string& flag);

struct TypedRun {
  bool trains = false;  ///< `reclab train`
  std::string id;       ///< of the preset
  Given given{};
  /// The seed of its task as text, which is that of the weights where it has none of its own; empty for a file, and where it is the usual.
  std::string sequence_seed() const;
  static const std::string& sequence_seed_flag();
};

/// The options whose values are files that are read.
const std::vector<std::string>& file_flags();

/// The words of a line of a POSIX shell without variables and other expansions. Throws Error for a quote that is not closed.
std::vector<std::string> shell_words(std::string_view line);

/// "reclab run ID --length 200" taken apart; an option is one of a sequence, of a run, or of a training. Throws Error.
TypedRun typed_run(std::string_view line);
/// The same of its words, "reclab", "run", "ID", ...
TypedRun typed_run(const std::vector<std::string>& words);
/// The options with further ones of a line, "--set radius=1", which come after them: values of lists are added. A first word that is no
/// option is the preset in place of the line's own. Throws Error.
TypedRun with_options(TypedRun run, std::string_view options);
TypedRun with_options(TypedRun run, const std::vector<std::string>& words);

/// The model of a preset with its options; device is auto where none is given. Throws Error.
RunRequest request_of(const Given& given, const Preset& preset);
/// The sequence: a file, or a task, the preset's own (of `length` steps) where none is given. Throws Error.
SequenceChoice sequence_of(const Given& given, const Preset& preset, std::int64_t length);
/// The request of a run with its sequence, which is read or made. Throws Error.
RunRequest run_request_of(const Given& given, const Preset& preset);
/// The request of a training. Throws Error.
TrainingRequest training_request_of(const Given& given, const Preset& preset);

}  // namespace reclab
