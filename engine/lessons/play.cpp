// SPDX-License-Identifier: GPL-3.0-or-later
#include "lessons/play.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>

#include "array/error.h"
#include "experiment/training/training.h"
#include "models/registry.h"

namespace reclab {
namespace {

double number_of(std::string text) {
  std::erase(text, ' ');
  std::ranges::replace(text, ',', '.');
  if (text.starts_with("+")) text.erase(0, 1);
  for (const char* minus : {"\u2212", "\u2013"})
    if (text.starts_with(minus)) text.replace(0, std::string(minus).size(), "-");
  const bool percent = text.ends_with('%');
  if (percent) text.pop_back();
  const std::optional<double> value = number_in(text);
  if (!value || !std::isfinite(*value)) throw Error("\"" + text + "\" is no number; write digits, as 12.5.", {.value = text});
  return percent ? *value / 100.0 : *value;
}

double tolerance_of(const Question& question, double truth) {
  const bool share = question.within.ends_with('%');
  const double amount = number_of(question.within.substr(0, question.within.size() - (share ? 1 : 0)));
  return share ? std::abs(truth) * amount / 100.0 : amount;
}

/// The number spans of a text, as expressions without their manner.
void add_numbers(const Prose& words, std::vector<std::string>& all) {
  for (const ProseSpan& span : words)
    if (span.kind == ProseSpan::Kind::number) all.push_back(span.text.substr(0, span.text.find('|')));
}

/// "--set radius=1 view pins=1" in two.
std::pair<std::string, std::map<std::string, double>> options_and_view(const std::string& further) {
  const std::size_t at = further.starts_with("view ") ? 0 : further.find(" view ");
  std::map<std::string, double> view;
  if (at == std::string::npos) return {further, view};
  for (const std::string& fact : shell_words(std::string_view(further).substr(at))) {
    const std::size_t equals = fact.find('=');
    if (equals != std::string::npos) view[fact.substr(0, equals)] = number_of(fact.substr(equals + 1));
  }
  return {further.substr(0, at), view};
}

MeasuredRun run_typed(const TypedRun& typed, const PresetLibrary& presets, const std::vector<std::string>& measured, bool trained,
                      std::stop_token stop) {
  const Preset& preset = presets.find(typed.id);
  RunRequest request;
  if (typed.trains) {
    TrainingRequest training = training_request_of(typed.given, preset);
    request = training.run;
    request.sequence = load_sequence(training.from);
    if (trained) {
      Training work(builtin_registry(), training);
      while (!work.done()) work.advance(stop);
      request.learned = work.learned(1);
      request.form = "sequential";
    }
  } else {
    request = run_request_of(typed.given, preset);
  }
  return run_measured(request, measured, stop);
}

}  // namespace

const LabSetup* lab_at(const Lesson& lesson, std::size_t step, std::size_t block) {
  for (std::size_t s = step + 1; s-- > 0;) {
    const std::vector<Block>& blocks = lesson.steps.at(s).blocks;
    for (std::size_t b = s == step ? std::min(block + 1, blocks.size()) : blocks.size(); b-- > 0;)
      if (const auto* lab = std::get_if<LabSetup>(&blocks[b])) return lab;
  }
  return nullptr;
}

const LabSetup* lab_measured_at(const Lesson& lesson, std::size_t step) {
  return lab_at(lesson, step, lesson.steps.at(step).blocks.size());
}

std::vector<std::string> measured_in(const Question& question) {
  std::vector<std::string> all{question.measure, question.holds};
  add_numbers(prose_of(question.text), all);
  add_numbers(prose_of(question.because), all);
  for (const PlannedWrong& wrong : question.wrong) {
    all.push_back(wrong.near);
    all.push_back(wrong.when);
    add_numbers(prose_of(wrong.message), all);
  }
  std::erase(all, std::string());
  return all;
}

std::vector<std::string> measured_in(const Lesson& lesson, const LabSetup& lab) {
  std::vector<std::string> all;
  for (std::size_t s = 0; s < lesson.steps.size(); ++s) {
    if (lab_measured_at(lesson, s) != &lab) continue;
    for (const Block& block : lesson.steps[s].blocks) {
      if (const auto* words = std::get_if<ProseBlock>(&block)) add_numbers(words->words, all);
      if (const auto* question = std::get_if<Question>(&block)) std::ranges::move(measured_in(*question), std::back_inserter(all));
    }
  }
  return all;
}

LabRuns::LabRuns(const LabSetup& lab, const PresetLibrary& presets, const std::vector<std::string>& measured, const std::string& further,
                 std::stop_token stop) {
  const auto [options, view] = options_and_view(further);
  runs_.push_back(run_typed(options.empty() ? lab.run : with_options(lab.run, options), presets, measured, !further.empty(), stop));
  runs_.back().view = view;
  for (const TypedRun& pin : lab.pins) runs_.push_back(run_typed(pin, presets, measured, false, stop));
}

double LabRuns::measure(const std::string& text, std::stop_token stop) {
  if (const auto found = known_.find(text); found != known_.end()) return found->second;
  std::size_t run = 0;
  std::string words = text;
  if (const std::size_t at = text.rfind(" pin "); at != std::string::npos) {
    run = static_cast<std::size_t>(number_of(text.substr(at + 5)));
    words = text.substr(0, at);
  }
  if (run >= runs_.size()) throw Error("\"" + text + "\" is of a pinned run that there is not.", {});
  return known_[text] = reclab::measure(runs_[run], words, stop);
}

Measuring LabRuns::measuring(std::stop_token stop) {
  return [this, stop](const std::string& text) { return measure(text, stop); };
}

const std::map<std::string, double>& LabRuns::measure_all(const std::vector<std::string>& texts, std::stop_token stop) {
  for (const std::string& text : texts) {
    try {
      if (text.find_first_of("<>") != std::string::npos)
        static_cast<void>(holds(text, measuring(stop)));
      else
        static_cast<void>(evaluate(text, measuring(stop)));
    } catch (const Error&) {
      continue;  // whoever asks for it hears why
    }
  }
  return known_;
}

Measuring measured_before(std::map<std::string, double> known) {
  return [known = std::move(known)](const std::string& text) {
    const auto found = known.find(text);
    if (found == known.end()) throw Error("\"" + text + "\" could not be measured.", {});
    return found->second;
  };
}

std::string written(double value, const std::string& manner) {
  constexpr double longest = 1e15;  // a double has no more digits; more is written as a power of ten
  const auto short_form = [](double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", number);
    return std::string(text);
  };
  const auto decimals = [&](double number, int after) {
    if (!(std::abs(number) < longest)) return short_form(number);
    char text[32];
    std::snprintf(text, sizeof text, "%.*f", after, number);
    return std::string(text);
  };
  std::string made;
  if (manner == "10") {
    if (value <= 0.0) throw Error("no power of ten is " + std::to_string(value) + ".", {});
    made = "10^{" + decimals(std::log10(value), 1) + "}";
  } else if (manner == "%") {
    made = decimals(100.0 * value, std::abs(value) < 0.1 ? 1 : 0) + " %";
  } else if (manner.size() == 1 && manner[0] >= '0' && manner[0] <= '6') {
    made = decimals(value, manner[0] - '0');
  } else if (manner.empty()) {
    made = short_form(value);
  } else {
    throw Error("\"" + manner + "\" is no manner of writing a number: %, 10, or 0 to 6 decimals.", {});
  }
  if (const std::size_t e = made.find('e'); e != std::string::npos) {  // 1.2e-05, 1e+300 %
    const std::size_t end = std::min(made.find(' ', e), made.size());
    made.replace(e, end - e, " × 10^{" + std::to_string(std::stoi(made.substr(e + 1))) + "}");
  }
  for (std::size_t at = 0; (at = made.find('-', at)) != std::string::npos; at += 3) made.replace(at, 1, "\u2212");
  return made;
}

Prose with_numbers(Prose words, const Measuring& measuring) {
  for (ProseSpan& span : words) {
    if (span.kind != ProseSpan::Kind::number) continue;
    const std::size_t bar = span.text.find('|');
    std::string manner = bar == std::string::npos ? "" : span.text.substr(bar + 1);
    std::erase(manner, ' ');
    const double value = evaluate(span.text.substr(0, bar), measuring);
    if (!std::isfinite(value)) throw Error("\"" + span.text + "\" is not finite.", {});
    span.text = written(value, manner);
  }
  return words;
}

Judgement judge(const Question& question, const std::string& given, const Measuring& measuring) {
  if (question.kind != Question::Kind::number) {
    if (given == question.right) return {true, question.because};
    const auto found = std::ranges::find(question.wrong, given, &PlannedWrong::answer);
    return {false, found == question.wrong.end() ? std::string() : found->message};
  }
  const double value = number_of(given), truth = evaluate(question.measure, measuring), tolerance = tolerance_of(question, truth);
  if (std::abs(value - truth) <= tolerance) return {true, question.because};
  for (const PlannedWrong& wrong : question.wrong) {
    const double about = wrong.near.empty() ? 0.0 : evaluate(wrong.near, measuring);
    if (wrong.near.empty() ? value >= wrong.low && value <= wrong.high : std::abs(value - about) <= tolerance_of(question, about))
      return {false, wrong.message};
  }
  return {.side = truth > value ? 1 : -1};
}

Judgement judge_deed(const Question& question, const Measuring& now) {
  if (holds(question.holds, now)) return {true, question.because};
  for (const PlannedWrong& wrong : question.wrong)
    if (holds(wrong.when, now)) return {false, wrong.message};
  return {};
}

}  // namespace reclab
