// SPDX-License-Identifier: GPL-3.0-or-later
#include "lessons/answers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "array/error.h"
#include "files/files.h"
#include "files/json.h"
#include "lessons/play.h"

namespace reclab {
namespace {

using Json = nlohmann::ordered_json;
constexpr int version = 1;

[[noreturn]] void refuse(const std::string& file, const std::string& why) { throw Error(printable(file) + ": " + why, {.file = file}); }

const Json& member(const Json& json, const char* key, const std::string& file, const std::string& place) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end()) refuse(file, place + " has no \"" + key + "\".");
  return *found;
}

GivenAnswer answer_of(const Json& json, const std::string& file, const std::string& place) {
  GivenAnswer answer;
  const Json &given = member(json, "given", file, place), &right = member(json, "right", file, place);
  if (!given.is_string() || !right.is_boolean()) refuse(file, place + " is no answer: \"given\" is a text, \"right\" true or false.");
  answer.given = given.get<std::string>();
  answer.right = right.get<bool>();
  if (const auto at = json.find("at"); at != json.end() && at->is_string()) answer.at = at->get<std::string>();
  return answer;
}

}  // namespace

std::string text_of(const Answers& answers) {
  Json lessons = Json::object();
  for (const auto& [lesson, questions] : answers.lessons) {
    Json& of_lesson = lessons[lesson] = Json::object();
    for (const auto& [question, given] : questions)
      for (const GivenAnswer& one : given) of_lesson[question].push_back({{"given", one.given}, {"right", one.right}, {"at", one.at}});
  }
  return Json{{"reclab answers", version}, {"name", answers.name}, {"lessons", lessons}}.dump(2, ' ', false,
                                                                                              Json::error_handler_t::replace) +
         "\n";
}

Answers answers_of(std::string_view json, const std::string& file) {
  Json root;
  std::optional<std::string> twice;
  try {
    root = parse_json<Json>(json, twice);
  } catch (const Json::exception& error) {
    refuse(file, "is no JSON: " + printable(error.what()) + ".");
  }
  if (twice) refuse(file, "has the key \"" + printable(*twice) + "\" twice in one object.");
  if (const auto control = with_control_character(root)) refuse(file, "\"" + printable(*control) + "\" has a control character.");
  const Json& is = member(root, "reclab answers", file, "the file");
  if (!is.is_number_integer() || is != version) refuse(file, "is of another version; it has to be saved again by a program of this one.");
  Answers answers;
  if (const auto name = root.find("name"); name != root.end() && name->is_string()) answers.name = name->get<std::string>();
  const Json& lessons = member(root, "lessons", file, "the file");
  if (!lessons.is_object()) refuse(file, "\"lessons\" is no object.");
  for (const auto& [lesson, questions] : lessons.items()) {
    if (!questions.is_object()) refuse(file, "\"" + printable(lesson) + "\" is no object.");
    for (const auto& [question, given] : questions.items()) {
      const std::string place = "\"" + printable(question) + "\" of \"" + printable(lesson) + "\"";
      if (!given.is_array()) refuse(file, place + " is no list.");
      for (const Json& one : given) answers.lessons[lesson][question].push_back(answer_of(one, file, place));
    }
  }
  return answers;
}

namespace {

/// Whether a run of it reads no file: those of someone else are not here.
bool reads_no_file(const TypedRun& run) {
  return std::ranges::none_of(file_flags(), [&](const std::string& flag) { return run.given.contains(flag); });
}

/// A deed done again: the line that was run and the facts of the window behind it.
Judgement deed_again(const Question& question, const std::string& given, const PresetLibrary& presets, std::stop_token stop) {
  const std::size_t at = given.find(" view ");
  LabSetup lab;
  lab.run = typed_run(given.substr(0, at));
  if (lab.run.trains) throw Error("it is a training, and no run", {});
  if (!reads_no_file(lab.run)) throw Error("it was done with files, which are not here", {});
  LabRuns runs(lab, presets, measured_in(question), at == std::string::npos ? std::string() : given.substr(at), stop);
  return judge_deed(question, runs.measuring(stop));
}

}  // namespace

std::vector<LessonGrade> grades_of(const Answers& answers, const LessonLibrary& lessons, const PresetLibrary& presets,
                                   std::stop_token stop) {
  std::vector<LessonGrade> grades;
  for (const auto& [id, given] : answers.lessons) {
    LessonGrade grade{.lesson = id};
    const Lesson* lesson = lessons.find(id);
    if (lesson == nullptr) {
      grade.notes.push_back("there is no such lesson here, so its answers are not judged.");
      grades.push_back(std::move(grade));
      continue;
    }
    std::map<const LabSetup*, LabRuns> runs;
    for (std::size_t s = 0; s < lesson->steps.size(); ++s)
      for (const Question* question : questions_of(lesson->steps[s])) {
        ++grade.questions;
        const auto found = given.find(question->id);
        if (found == given.end() || found->second.empty()) continue;
        ++grade.answered;
        const LabSetup* lab = lab_measured_at(*lesson, s);
        bool right = false;
        for (std::size_t i = 0; i < found->second.size(); ++i) {
          const GivenAnswer& one = found->second[i];
          bool good = one.right;
          try {
            if (question->kind == Question::Kind::act) {
              good = deed_again(*question, one.given, presets, stop).right;
            } else if (lab != nullptr) {
              const bool number = question->kind == Question::Kind::number;  // an answer that is chosen needs no run
              if (number && !runs.contains(lab)) runs.try_emplace(lab, *lab, presets, measured_in(*lesson, *lab), std::string(), stop);
              good = judge(*question, one.given, number ? runs.at(lab).measuring(stop) : Measuring()).right;
            }
          } catch (const Error& error) {
            grade.notes.push_back(question->id + ": an answer counts as the file has it: " + error.what());
          }
          if (good != one.right)
            grade.notes.push_back(question->id + ": the file has an answer as " + (one.right ? "right" : "wrong") + ", and it is not.");
          if (i == 0 && good) ++grade.at_once;
          right = right || good;
        }
        grade.right += right;
      }
    const std::vector<const Question*> now = questions_of(*lesson);
    for (const auto& [question, all] : given)
      if (std::ranges::find(now, question, &Question::id) == now.end())
        grade.notes.push_back(question + ": the lesson has no such question now.");
    grades.push_back(std::move(grade));
  }
  return grades;
}

}  // namespace reclab
