// SPDX-License-Identifier: GPL-3.0-or-later
// A lesson played: what its steps measure, and how answers are judged. The same for the window, `reclab lesson` and its tests.
#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lessons/lesson.h"
#include "measures/expression.h"
#include "measures/measure.h"

namespace reclab {

/// The lab block that is in force at a block of a step, there or in a step before; null before the first.
const LabSetup* lab_at(const Lesson& lesson, std::size_t step, std::size_t block);
/// The lab block whose runs the words and questions of a step are measured in: its own, also for those before it, or that of a step before.
const LabSetup* lab_measured_at(const Lesson& lesson, std::size_t step);
/// All expressions and conditions that are measured in the run of a lab block, from there to the next one.
std::vector<std::string> measured_in(const Lesson& lesson, const LabSetup& lab);

/// Those of one question and of the words on its answers.
std::vector<std::string> measured_in(const Question& question);

/// The runs of a lab block, which its expressions are measured in: "factor gradient/state/0/h pin 1" is of the first that is pinned.
/// Results are kept, so that each is measured once. Not for two threads at a time.
class LabRuns {
 public:
  /// Runs them, with what `measured` names recorded; `further`: options behind those of the lab line, and view facts ("--set radius=1
  /// view pins=1"). A line of `reclab train` is trained where further options are given. Throws Error and Cancelled.
  LabRuns(const LabSetup& lab, const PresetLibrary& presets, const std::vector<std::string>& measured, const std::string& further = {},
          std::stop_token stop = {});
  /// Of runs that are there already: the first is the lab's own, the others are pinned.
  explicit LabRuns(std::vector<MeasuredRun> runs) : runs_(std::move(runs)) {}
  double measure(const std::string& text, std::stop_token stop = {});
  Measuring measuring(std::stop_token stop = {});
  /// Measures all that these expressions and conditions name; returns each measure's number. What cannot be measured is left out.
  const std::map<std::string, double>& measure_all(const std::vector<std::string>& texts, std::stop_token stop = {});

 private:
  std::vector<MeasuredRun> runs_;
  std::map<std::string, double> known_;
};

/// Measures that were taken before; throws Error for another.
Measuring measured_before(std::map<std::string, double> known);

/// Words with every number measured and written: spans of numbers have the text that is shown. Throws Error.
Prose with_numbers(Prose words, const Measuring& measuring);
/// A number as `manner` says: "%", "0" to "6" decimals, "10" a power of ten, or "" three significant digits. From 1e15 on decimals
/// are none of a double's, and it is three digits with a power of ten.
std::string written(double value, const std::string& manner);

struct Judgement {
  bool right = false;
  std::string message{};  ///< Markdown with {{numbers}}: why it is right, or the words for this wrong answer; empty: nobody thought of it
  int side = 0;           ///< of a number that nobody thought of: 1 where the right one is more, -1 where it is less
};
/// An answer as it was typed or chosen, to a question that is no thing to do. `measuring`: of the lab of the step. Throws Error for a
/// number that is none, and where something cannot be measured.
Judgement judge(const Question& question, const std::string& given, const Measuring& measuring);
/// Whether what is to be done is done, in the state that `now` measures.
Judgement judge_deed(const Question& question, const Measuring& now);

/// All mistakes of a lesson, a sentence each: lines that do not run, numbers that cannot be measured or are typed, answers that are not
/// what the lab measures. `others`: for links and what comes before. Takes seconds.
std::vector<std::string> mistakes_of(const Lesson& lesson, const PresetLibrary& presets, const LessonLibrary& others,
                                     std::stop_token stop = {});

}  // namespace reclab
