// SPDX-License-Identifier: GPL-3.0-or-later
// The answers that someone gave to the questions of lessons, as a file that a teacher can collect, and what they come to.
#pragma once

#include <filesystem>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lessons/lesson.h"

namespace reclab {

struct GivenAnswer {
  /// As it was typed or chosen; of something to do the reclab line of the run in which it was done, and behind it, after "view", facts of
  /// the window: "reclab run elman ... view pins=1".
  std::string given;
  bool right = false;
  std::string at{};  ///< "2026-11-28T09:30:00Z"
  bool operator==(const GivenAnswer&) const = default;
};
/// Of a lesson, by the ids of its questions, each in the order in which they were given.
using LessonAnswers = std::map<std::string, std::vector<GivenAnswer>>;

struct Answers {
  std::string name{};  ///< who gave them; may be empty
  std::map<std::string, LessonAnswers> lessons{};
  bool operator==(const Answers&) const = default;
};

/// JSON, and back. Throws Error with file and place.
std::string text_of(const Answers& answers);
Answers answers_of(std::string_view json, const std::string& file);

struct LessonGrade {
  std::string lesson;
  int questions = 0, answered = 0, at_once = 0, right = 0;  ///< at once: with the first answer
  std::vector<std::string> notes{};                         ///< answers that are not what the file says of them, a sentence each
};
/// Every answer judged anew: numbers by what the lab measures, things done by running their lines where these name no files. Takes seconds.
std::vector<LessonGrade> grades_of(const Answers& answers, const LessonLibrary& lessons, const PresetLibrary& presets,
                                   std::stop_token stop = {});

}  // namespace reclab
