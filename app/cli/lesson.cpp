// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab lesson`.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "array/error.h"
#include "commands.h"
#include "files/files.h"
#include "lessons/answers.h"
#include "lessons/lesson.h"
#include "lessons/play.h"
#include "measures/measure.h"
#include "options.h"
#include "text.h"

namespace reclab::cli {
namespace {

using Json = nlohmann::ordered_json;

LessonLibrary all_lessons() {
  LessonLibrary library = lesson_library(lesson_folders());
  for (const std::string& problem : library.problems) std::cerr << "reclab: " << one_line(problem) << '\n';
  return library;
}

int list_lessons(const LessonOptions& options) {
  const LessonLibrary library = all_lessons();
  if (options.json) {
    Json json = Json::array();
    for (const Lesson& lesson : library.lessons) {
      Json steps = Json::array();
      for (const LessonStep& step : lesson.steps) steps.push_back({{"id", step.id}, {"title", step.title}});
      json.push_back({{"id", lesson.id},
                      {"title", lesson.title},
                      {"about", lesson.about},
                      {"minutes", lesson.minutes},
                      {"needs", lesson.needs},
                      {"after", lesson.after},
                      {"questions", questions_of(lesson).size()},
                      {"steps", steps},
                      {"folder", lesson.folder.string()}});
    }
    std::cout << json.dump(2) << '\n';
    return 0;
  }
  TextTable table(2);
  table.row({"lesson", "title", "minutes", "steps", "questions"});
  for (const Lesson& lesson : library.lessons)
    table.row({lesson.id, lesson.title, std::to_string(lesson.minutes), std::to_string(lesson.steps.size()),
               std::to_string(questions_of(lesson).size())});
  for (const std::size_t column : {2, 3, 4}) table.right_align(column);
  table.print(std::cout);
  return 0;
}

int list_measures() {
  TextTable table(2);
  table.row({"measure", "of", ""});
  for (const MeasureInfo& one : measures()) table.row({one.name, one.arguments, one.text});
  table.print(std::cout);
  paragraph(std::cout,
            "An array is a key of trace.npz, and @A:B behind it takes those steps alone. \"with KEY=VALUE\" at the end measures a run with "
            "another setting, \"pin N\" the N-th pinned run.");
  return 0;
}

int check_lessons(const LessonOptions& options, Interrupt& interrupt) {
  const LessonLibrary library = all_lessons();
  const PresetLibrary presets = reclab::cli::library();
  interrupt.enter(Interrupt::Phase::running);
  bool good = true;
  for (const std::string& name : options.names) {
    Lesson own;
    const Lesson* lesson = library.find(name);
    std::error_code none;
    if (lesson == nullptr || std::filesystem::is_directory(name, none)) {
      if (!std::filesystem::exists(name, none))
        throw Error("there is no lesson and no folder \"" + name + "\"; `reclab lesson list` names the lessons.", {});
      try {
        own = read_lesson(name);
      } catch (const Error& error) {
        std::cout << one_line(error.what()) << '\n';
        good = false;
        continue;
      }
      lesson = &own;
    }
    try {
      const std::vector<std::string> mistakes = mistakes_of(*lesson, presets, library, interrupt.token());
      for (const std::string& mistake : mistakes) std::cout << one_line(mistake) << '\n';
      if (mistakes.empty())
        std::cout << lesson->id << ": " << counted(static_cast<std::int64_t>(lesson->steps.size()), "step") << ", "
                  << counted(static_cast<std::int64_t>(questions_of(*lesson).size()), "question") << ", all as they should be" << std::endl;
      good = good && mistakes.empty();
    } catch (const Cancelled&) {
      cancelled("during the check");
    }
  }
  return good ? 0 : 1;
}

int grade_answers(const LessonOptions& options, Interrupt& interrupt) {
  const LessonLibrary library = all_lessons();
  const PresetLibrary presets = reclab::cli::library();
  std::vector<std::pair<std::string, Answers>> files;
  for (const std::string& file : options.names)
    files.emplace_back(file, answers_of(read_file(file), file));  // none is judged where one is bad
  interrupt.enter(Interrupt::Phase::running);
  Json json = Json::array();
  TextTable table(2);
  table.row({"file", "name", "lesson", "right", "at once", "answered", "questions"});
  std::vector<std::string> notes;
  for (const auto& [file, answers] : files) {
    std::vector<LessonGrade> grades;
    try {
      grades = grades_of(answers, library, presets, interrupt.token());
    } catch (const Cancelled&) {
      cancelled("during the grading");
    }
    for (const LessonGrade& grade : grades) {
      table.row({printable(file), printable(answers.name), printable(grade.lesson), std::to_string(grade.right),
                 std::to_string(grade.at_once), std::to_string(grade.answered), std::to_string(grade.questions)});
      json.push_back({{"file", file},
                      {"name", answers.name},
                      {"lesson", grade.lesson},
                      {"right", grade.right},
                      {"at_once", grade.at_once},
                      {"answered", grade.answered},
                      {"questions", grade.questions},
                      {"notes", grade.notes}});
      for (const std::string& note : grade.notes) notes.push_back(printable(file) + ", " + printable(grade.lesson) + ", " + note);
    }
  }
  if (options.json) {
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    return 0;
  }
  for (const std::size_t column : {3, 4, 5, 6}) table.right_align(column);
  table.print(std::cout);
  for (const std::string& note : notes) paragraph(std::cout, note);
  return 0;
}

}  // namespace

void add_lesson(CLI::App& app, LessonOptions& options, Interrupt& interrupt, int& status) {
  CLI::App* lesson = app.add_subcommand("lesson", "Lessons: lists them, checks one, or grades answers");
  lesson->require_subcommand(1);
  CLI::App* list = lesson->add_subcommand("list", "Every lesson");
  list->add_flag("--json", options.json, "For scripts");
  list->callback([&] { status = list_lessons(options); });
  CLI::App* measured = lesson->add_subcommand("measures", "What the numbers and questions of a lesson may be of");
  measured->callback([&] { status = list_measures(); });
  CLI::App* check = lesson->add_subcommand("check", "Plays lessons, and prints each mistake as a line; exit status 1 where there is one");
  check->add_option("lessons", options.names, "Lessons by name, or their folders")->required()->type_name("DIR|ID");
  check->callback([&] {
    interrupt.watch();
    status = check_lessons(options, interrupt);
  });
  CLI::App* grade = lesson->add_subcommand("grade", "Judges files of answers anew, and prints a row for each lesson in them");
  grade->add_option("files", options.names, "Files of answers, as the window saves them")->required()->type_name("FILE");
  grade->add_flag("--json", options.json, "For scripts");
  grade->callback([&] {
    interrupt.watch();
    status = grade_answers(options, interrupt);
  });
}

}  // namespace reclab::cli
