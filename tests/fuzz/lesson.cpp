// SPDX-License-Identifier: GPL-3.0-or-later
// The readers of lessons and of answers, a part of the fuzzer (fuzz.cpp). A lesson is refused with a sentence, or its lines name no file
// out of its folder, its links lead to nothing of this machine, and its numbers can be measured or say why not; what is written of answers
// is read again as it was.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "array/error.h"
#include "lessons/answers.h"
#include "lessons/play.h"

using namespace reclab;

void fuzz_lesson(const std::filesystem::path& folder, std::string_view bytes);
void fuzz_answers(std::string_view bytes);

namespace {

void check(bool right) {
  if (!right) std::abort();
}

template <class F>
void may_refuse(const F& read) {
  try {
    read();
  } catch (const Error& error) {
    check(*error.what() != '\0');
  }
}

/// In place of runs, which take long: a number that a measure's name decides.
double measured(const std::string& measure) { return static_cast<double>(measure.size()) - 8.0; }

void look_at(const Prose& words) {
  for (const ProseSpan& span : words)
    if (span.kind == ProseSpan::Kind::link)
      check(span.target.starts_with("https://") || span.target.starts_with("look:") || span.target.starts_with("model:") ||
            span.target.starts_with("lesson:"));
  may_refuse([&] { with_numbers(words, measured); });
}

void look_at(const TypedRun& run, const std::filesystem::path& folder) {
  for (const std::string& flag : file_flags())
    if (const auto found = run.given.find(flag); found != run.given.end() && !found->second.empty()) {
      const std::string place = std::filesystem::path(found->second).lexically_normal().string();
      check(place == folder.string() || place.starts_with(folder.string() + "/"));
    }
}

void look_at(const Question& question) {
  for (const std::string* words : {&question.text, &question.because}) may_refuse([&] { with_numbers(prose_of(*words), measured); });
  may_refuse([&] { measured_in(question); });
  const std::string given = question.kind == Question::Kind::number ? "1.5"
                            : question.order.empty()                ? std::string()
                                                                    : question.order.back();
  may_refuse([&] {
    if (question.kind == Question::Kind::act)
      judge_deed(question, measured);
    else
      judge(question, given, measured);
  });
}

}  // namespace

void fuzz_lesson(const std::filesystem::path& folder, std::string_view bytes) {
  may_refuse([&] {
    const Lesson lesson = parse_lesson(bytes, "x", folder);
    check(!lesson.steps.empty() && lesson.minutes >= 1 && !lesson.title.empty());
    std::set<std::string> ids;
    for (const LessonStep& step : lesson.steps) {
      check(ids.insert(step.id).second);
      for (const Block& block : step.blocks) {
        if (const auto* prose = std::get_if<ProseBlock>(&block)) look_at(prose->words);
        if (const auto* question = std::get_if<Question>(&block)) look_at(*question);
        if (const auto* lab = std::get_if<LabSetup>(&block)) {
          look_at(lab->run, folder);
          for (const TypedRun& pin : lab->pins) look_at(pin, folder);
          may_refuse([&] { measured_in(lesson, *lab); });
        }
      }
    }
  });
}

void fuzz_answers(std::string_view bytes) {
  may_refuse([&] {
    const Answers answers = answers_of(bytes, "x.json");
    check(answers_of(text_of(answers), "x.json") == answers);
  });
}
