// SPDX-License-Identifier: GPL-3.0-or-later
// A lesson as data: a folder with lesson.md, Markdown (CommonMark) behind a front matter of `key: value` lines. A heading of the second
// level, "## Title {#id}", begins a step. A block ```lab sets the lab up, a block ```ask is one question, $...$ is a formula, and {{...}}
// is a number that is measured (measures/expression.h). Files are those of the lesson's own folder alone, and markup is what CommonMark
// has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "experiment/command/typed_run.h"

namespace reclab {

/// Words in one manner.
struct ProseSpan {
  enum class Kind : std::uint8_t {
    text,
    emphasis,
    strong,
    code,
    formula,  ///< Unicode, "h_t = W h_{t-1}"
    number,   ///< an expression, and the manner of writing it behind a bar: "left gradient/state/0/h 0 | %"
    link      ///< to `target`: https://..., look:gradients, model:lstm or lesson:gates
  };
  Kind kind = Kind::text;
  std::string text, target{};
};
using Prose = std::vector<ProseSpan>;

struct ProseBlock {
  enum class Kind : std::uint8_t { text, heading, item, formula };
  Kind kind = Kind::text;
  Prose words;
};

/// What the lab is set to, and where to look.
struct LabSetup {
  TypedRun run;                        ///< the first line
  std::string line;                    ///< as it is written
  std::vector<TypedRun> pins{};        ///< `pin:` runs beside it
  std::vector<std::string> look{};     ///< panels that are shown, as of a preset's look_at: "gradients:h"; the first is in front
  std::vector<std::string> hide{};     ///< panels that are put away
  std::string point{}, say{};          ///< the name of a control, "inspector/spectral_radius", and words at the arrow
  std::optional<std::int64_t> step{};  ///< of the time cursor
  int source_line = 0;
};

/// A wrong answer that was thought of, with its own words.
struct PlannedWrong {
  std::string answer{};          ///< of a choice: its text
  double low = 0.0, high = 0.0;  ///< of a number: from, to
  std::string near{};            ///< of a number, in place of these: an expression, to within as much as the right answer
  std::string when{};            ///< of something to do: a condition
  std::string such_as{};         ///< of something to do: options that lead to it
  std::string message{};
};

struct Question {
  enum class Kind : std::uint8_t { number, choice, predict, act };
  Kind kind = Kind::choice;
  std::string id{};  ///< "product/1": the step's, and its number there
  std::string text{};
  std::string measure{}, within{};   ///< of a number: an expression, and "5%" or an amount
  std::string unit{};                ///< of a number, for its field
  std::string right{};               ///< of a choice
  std::vector<std::string> order{};  ///< of a choice: all answers, in an order that says nothing
  std::string holds{};               ///< a condition: of something to do, when it is done; of a choice, why the right answer is right
  std::string answer{};              ///< of something to do: options that do it, "--set spectral_radius=1", a preset, or "view pins=1"
  std::string because{};             ///< said when the answer is right; may have {{numbers}}
  std::string hint{};                ///< the name of a control
  std::vector<PlannedWrong> wrong{};
  int source_line = 0;
};

using Block = std::variant<ProseBlock, LabSetup, Question>;

struct LessonStep {
  std::string id, title;
  std::vector<Block> blocks{};
  int source_line = 0;
  const LabSetup* lab() const;  ///< its own, of which there is at most one; null where it has none
};

struct Lesson {
  std::string id;  ///< the name of the folder
  std::string title, about{};
  int minutes = 0;
  std::vector<std::string> needs{}, after{};  ///< panels; lessons that come before
  int order = 0;                              ///< in the list
  std::vector<LessonStep> steps{};
  std::filesystem::path folder{};
};

/// Reads folder/lesson.md. Throws Error with the line.
Lesson read_lesson(const std::filesystem::path& folder);
/// The same of the text of a lesson.md.
Lesson parse_lesson(std::string_view text, const std::string& id, const std::filesystem::path& folder);
/// Words with emphasis, code, formulas, links and numbers, as a message of a question has them.
Prose prose_of(std::string_view markdown);
/// In their order.
std::vector<const Question*> questions_of(const LessonStep& step);
std::vector<const Question*> questions_of(const Lesson& lesson);

/// The lessons of all folders, in their order. A mistake in one does not hide the others: its sentence goes to problems.
struct LessonLibrary {
  std::vector<Lesson> lessons{};
  std::vector<std::string> problems{};
  const Lesson* find(std::string_view id) const;
};
LessonLibrary lesson_library(const std::vector<std::filesystem::path>& folders);
/// $RECLAB_LESSONS, the installation's or the source's, and the user's own.
std::vector<std::filesystem::path> lesson_folders();

}  // namespace reclab
