// SPDX-License-Identifier: GPL-3.0-or-later
// Everything that a lesson says, tried.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "array/error.h"
#include "lessons/play.h"
#include "models/registry.h"
#include "parameters/nearest.h"

namespace reclab {
namespace {

class Examiner {
 public:
  Examiner(const Lesson& lesson, const PresetLibrary& presets, const LessonLibrary& others, std::stop_token stop)
      : lesson_(lesson), presets_(presets), others_(others), stop_(std::move(stop)) {}

  std::vector<std::string> all() {
    for (const std::string& id : lesson_.after)
      if (others_.find(id) == nullptr) say(1, "comes after \"" + id + "\", and there is no such lesson.");
    for (std::size_t s = 0; s < lesson_.steps.size(); ++s) {
      const std::vector<Block>& blocks = lesson_.steps[s].blocks;
      for (std::size_t b = 0; b < blocks.size(); ++b) {
        line_ = lesson_.steps[s].source_line;
        if (const auto* lab = std::get_if<LabSetup>(&blocks[b])) trying(lab->source_line, [&] { check(*lab); });
        if (const auto* question = std::get_if<Question>(&blocks[b])) {
          const LabSetup* lab = lab_measured_at(lesson_, s);
          trying(question->source_line, [&] { check(*question, lab); });
        }
        if (const auto* words = std::get_if<ProseBlock>(&blocks[b]))
          trying(line_, [&] { check_words(words->words, lab_measured_at(lesson_, s)); });
      }
    }
    return std::move(mistakes_);
  }

 private:
  void say(int line, const std::string& sentence) {
    mistakes_.push_back((lesson_.folder / "lesson.md").string() + ", line " + std::to_string(line) + ": " + sentence);
  }
  void trying(int line, const std::function<void()>& does) {
    line_ = line;
    try {
      does();
    } catch (const Error& error) {
      say(line, error.what());
    }
  }

  /// The runs of a lab block, made once; null where they failed, which was said then.
  LabRuns* runs_of(const LabSetup* lab) {
    if (lab == nullptr) return nullptr;
    const auto found = runs_.find(lab);
    return found == runs_.end() || !found->second ? nullptr : &*found->second;
  }

  void check_words(const Prose& words, const LabSetup* lab) {
    if (lab != nullptr) make(*lab);
    check(words, runs_of(lab));
  }

  void check(const LabSetup& lab) {
    make(lab);
    if (lab.point.starts_with("inspector/")) {
      const std::string key = lab.point.substr(10);
      const Hyper hyper = hyper_of(builtin_registry(), presets_.find(lab.run.id));
      if (key != "seed" && key != "loss" && std::ranges::find(hyper.table(), key, &HyperSpec::key) == hyper.table().end())
        say(lab.source_line, "points at " + lab.point + ", and " + lab.run.id + " has no setting of that name.");
    }
    if (!lab.say.empty()) check(prose_of(lab.say), runs_of(&lab));
  }

  void make(const LabSetup& lab) {
    if (runs_.contains(&lab)) return;
    runs_[&lab].reset();
    runs_[&lab].emplace(lab, presets_, measured_in(lesson_, lab), std::string(), stop_);
  }

  void check(const Prose& words, LabRuns* runs) {
    for (const ProseSpan& span : words) {
      if (span.kind == ProseSpan::Kind::number) {
        if (runs == nullptr) throw Error("the number {{" + span.text + "}} has no lab block before it.", {});
        with_numbers({span}, runs->measuring(stop_));
      }
      if (span.kind == ProseSpan::Kind::link) {
        const std::string name = span.target.substr(span.target.find(':') + 1);
        if (span.target.starts_with("lesson:") && others_.find(name) == nullptr) throw Error("there is no lesson \"" + name + "\".", {});
        if (span.target.starts_with("model:")) static_cast<void>(presets_.find(name));
      }
      if (span.kind == ProseSpan::Kind::formula && span.text.find('\\') != std::string::npos)
        throw Error("the formula \"" + span.text + "\" has a backslash; formulas are Unicode with _ and ^, as on the cards.", {});
      const bool words_alone =
          span.kind == ProseSpan::Kind::text || span.kind == ProseSpan::Kind::emphasis || span.kind == ProseSpan::Kind::strong;
      if (words_alone && std::ranges::any_of(span.text, [](char c) { return c >= '0' && c <= '9'; }))
        throw Error("a number is typed in \"" + span.text + "\"; measure it, {{...}}, or make it a formula, $...$.", {});
    }
  }

  void check(const Question& question, const LabSetup* lab) {
    if (lab == nullptr) throw Error("the question has no lab block.", {});
    make(*lab);
    LabRuns* runs = runs_of(lab);
    if (runs == nullptr) return;
    const Measuring measuring = runs->measuring(stop_);
    std::vector<std::string> texts{question.text, question.because};
    for (const PlannedWrong& wrong : question.wrong) texts.push_back(wrong.message);
    for (const std::string& text : texts) check(prose_of(text), runs);
    for (const std::string& answer : question.order) check(prose_of(answer), runs);
    if (question.kind == Question::Kind::act)
      check_deed(question, *lab, measuring);
    else if (question.kind == Question::Kind::number)
      check_number(question, measuring);
    else
      check_choice(question, measuring);
  }

  void check_choice(const Question& question, const Measuring& measuring) {
    if (!holds(question.holds, measuring))
      say(question.source_line, "the right answer is not right: \"" + question.holds + "\" does not hold.");
    if (std::set<std::string>(question.order.begin(), question.order.end()).size() != question.order.size())
      say(question.source_line, "two answers are the same.");
  }

  void check_number(const Question& question, const Measuring& measuring) {
    const double truth = evaluate(question.measure, measuring);
    if (!std::isfinite(truth)) throw Error("\"" + question.measure + "\" is not finite.", {});
    const auto text = [](double value) { return std::to_string(value); };
    if (!judge(question, text(truth), measuring).right) say(question.source_line, "the right answer, " + text(truth) + ", is not taken.");
    for (const PlannedWrong& wrong : question.wrong) {
      const double value = wrong.near.empty() ? (wrong.low + wrong.high) / 2.0 : evaluate(wrong.near, measuring);
      const Judgement judged = judge(question, text(value), measuring);
      if (judged.right || judged.message != wrong.message)
        say(question.source_line, "the wrong answer " + text(value) + " does not get its own words; the right one is " + text(truth) + ".");
    }
  }

  void check_deed(const Question& question, const LabSetup& lab, const Measuring& before) {
    const std::vector<std::string> measured = measured_in(question);
    if (judge_deed(question, before).right) say(question.source_line, "it is done before anything was done: \"" + question.holds + "\".");
    LabRuns done(lab, presets_, measured, question.answer, stop_);
    if (!judge_deed(question, done.measuring(stop_)).right)
      say(question.source_line, "\"" + question.answer + "\" does not do it: \"" + question.holds + "\" does not hold then.");
    check(prose_of(question.because), &done);
    for (const PlannedWrong& wrong : question.wrong) {
      LabRuns other(lab, presets_, measured, wrong.such_as, stop_);
      const Judgement judged = judge_deed(question, other.measuring(stop_));
      if (judged.right || judged.message != wrong.message)
        say(question.source_line, "\"" + wrong.such_as + "\" does not get the words of \"wrong " + wrong.when + "\".");
      check(prose_of(wrong.message), &other);
    }
  }

  const Lesson& lesson_;
  const PresetLibrary& presets_;
  const LessonLibrary& others_;
  std::stop_token stop_;
  std::vector<std::string> mistakes_;
  std::map<const LabSetup*, std::optional<LabRuns>> runs_;
  int line_ = 0;
};

}  // namespace

std::vector<std::string> mistakes_of(const Lesson& lesson, const PresetLibrary& presets, const LessonLibrary& others,
                                     std::stop_token stop) {
  return Examiner(lesson, presets, others, std::move(stop)).all();
}

}  // namespace reclab
