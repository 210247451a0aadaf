// SPDX-License-Identifier: GPL-3.0-or-later
// Lessons as data: what is read, what is refused, how answers are judged and graded, and the lessons that come with the program.
#include <filesystem>
#include <fstream>
#include <set>

#include "array/error.h"
#include "lessons/answers.h"
#include "lessons/lesson.h"
#include "lessons/play.h"
#include "models/registry.h"
#include "scratch.h"
#include "sweep.h"
#include "test.h"

namespace fs = std::filesystem;
using namespace reclab;

namespace {

const std::string front = "---\ntitle: A title\nminutes: 5\n---\n";
const std::string lab =
    "```lab\nreclab run elman --set activation=identity --set spectral_radius=0.9 --task noise --length 100 --seed 1\n```\n";

Lesson lesson_of(const std::string& body, const fs::path& folder = "/nowhere") { return parse_lesson(front + body, "own", folder); }
const Question& question_of(const Lesson& lesson) { return *questions_of(lesson).at(0); }
std::string all_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}
std::string mistakes_in(const std::string& body) { return all_of(mistakes_of(lesson_of(body), test::shipped(), {})); }

const std::string number = "## One {#one}\n" + lab +
                           "```ask\nnumber: How many?\nmeasure: steps_until gradient/state/0/h -1\nwithin: 2\nwrong near [steps_until "
                           "gradient/state/0/h -1] * 2: Half.\n"
                           "wrong 1..3: Too few.\nbecause: It is {{steps_until gradient/state/0/h -1 | 0}}.\n```\n";
const std::string deed = "## One {#one}\n" + lab +
                         "```ask\ndo: Hold it.\nholds: span gradient/state/0/h < 0.3\nanswer: --set spectral_radius=1\n"
                         "wrong factor gradient/state/0/h > 1.01: It grows by {{span gradient/state/0/h | 1}}.\nsuch as: --set "
                         "spectral_radius=1.2\nbecause: Held.\n```\n";

}  // namespace

TEST_CASE("a lesson is read as it is written") {
  const Lesson lesson = parse_lesson(
      "---\ntitle: The *title*\nabout: What it is.\nminutes: 12\nneeds: [gradients, spectrum]\nafter: [state]\norder: 3\n---\n"
      "## First words {#first}\n\nProse with *emphasis*, **weight**, `code`, $h_{t-1}$, {{0.9^2 | 2}} and [a link](look:gradients:h).\n"
      "Second line & more.\n\n$a = b$\n\n- one\n- two\n\n### Below\n\n" +
          lab + "\n## Second {#second}\n\nNothing.\n",
      "own", "/nowhere");
  CHECK_EQUAL(lesson.title, "The *title*");
  CHECK_EQUAL(lesson.minutes, 12);
  CHECK_EQUAL(lesson.order, 3);
  CHECK(lesson.needs == (std::vector<std::string>{"gradients", "spectrum"}) && lesson.after == std::vector<std::string>{"state"});
  CHECK_EQUAL(lesson.steps.size(), 2u);
  CHECK_EQUAL(lesson.steps[0].id, "first");
  CHECK_EQUAL(lesson.steps[0].title, "First words");
  const auto& blocks = lesson.steps[0].blocks;
  CHECK_EQUAL(blocks.size(), 6u);
  const Prose& words = std::get<ProseBlock>(blocks[0]).words;
  std::string kinds;
  for (const ProseSpan& span : words) kinds += std::to_string(static_cast<int>(span.kind));
  CHECK_EQUAL(kinds, "0102030405060");
  CHECK_EQUAL(words[9].text, "0.9^2 | 2");
  CHECK_EQUAL(words[11].target, "look:gradients:h");
  CHECK_EQUAL(words[12].text, ". Second line & more.");
  CHECK(std::get<ProseBlock>(blocks[1]).kind == ProseBlock::Kind::formula);
  CHECK(std::get<ProseBlock>(blocks[2]).kind == ProseBlock::Kind::item && std::get<ProseBlock>(blocks[3]).kind == ProseBlock::Kind::item);
  CHECK(std::get<ProseBlock>(blocks[4]).kind == ProseBlock::Kind::heading);
  CHECK_EQUAL(std::get<LabSetup>(blocks[5]).run.id, "elman");
  CHECK_EQUAL(std::get<LabSetup>(blocks[5]).run.given.at("--set"), "activation=identity,spectral_radius=0.9");
  CHECK(lab_at(lesson, 1, 0) == lesson.steps[0].lab() && lesson.steps[1].lab() == nullptr);
  // Arithmetic is no markup.
  const Prose starred = prose_of("It is {{2 * 3 | 0}} and {{[max output] * 4 * 5}}.");
  CHECK_EQUAL(starred[1].text, "2 * 3 | 0");
  CHECK_EQUAL(starred[3].text, "[max output] * 4 * 5");
}

TEST_CASE("a lesson with a mistake is refused, with its line") {
  const std::pair<std::string, const char*> wrong[] = {
      {"No front matter", "line 1"},
      {"---\ntitle: A\n", "no end"},
      {"---\nminutes: 3\n---\n## A {#a}\n", "no title"},
      {"---\ntitle: A\n---\n## A {#a}\n", "minutes"},
      {"---\ntitle: A\nminutes: 3\ncolour: red\n---\n## A {#a}\n", "line 4: \"colour\" is no line of the front matter"},
      {front + "Words.\n", "before the first step"},
      {front, "no step"},
      {front + "## A\n", "line 5: the heading has no id"},
      {front + "## A {#A b}\n", "other characters"},
      {front + "## A {#a}\n\n## B {#a}\n", "line 7: two steps have the id \"a\""},
      {front + "## A {#a}\n\n```python\nx\n```\n", "line 7: a block ```python"},
      {front + "## A {#a}\n\n> quoted\n", "a quotation"},
      {front + "## A {#a}\n\n![a](b.png)\n", "a picture"},
      {front + "## A {#a}\n\n|a|b|\n|---|---|\n|1|2|\n", "a table"},
      {front + "## A {#a}\n\n[a](file:///etc/passwd)\n", "a link leads to"},
      {front + "## A {#a}\n\n[a](javascript:1)\n", "a link leads to"},
      {front + "## A {#a}\n\n```lab\nlook: gradients\n```\n", "begins with a line \"reclab run"},
      {front + "## A {#a}\n\n```lab\nreclab run elman\nreclab run lstm\n```\n", "second reclab line"},
      {front + "## A {#a}\n\n```lab\nreclab bench elman\n```\n", "no line \"reclab run"},
      {front + "## A {#a}\n\n```lab\nreclab run elman --export /tmp/x\n```\n", "--export"},
      {front + "## A {#a}\n\n```lab\nreclab run elman --length many\n```\n", "--length"},
      {front + "## A {#a}\n\n```lab\nreclab run elman --weights /etc/passwd\n```\n", "its own folder"},
      {front + "## A {#a}\n\n```lab\nreclab run elman --weights ../other/w.npz\n```\n", "its own folder"},
      {front + "## A {#a}\n\n```lab\nreclab run elman --input a/../../x.csv\n```\n", "its own folder"},
      {front + "## A {#a}\n\n```lab\nreclab run elman\npin: reclab run lstm\n```\n", "names no sequence"},
      {front + "## A {#a}\n\n```lab\nreclab run elman --task noise\npin: reclab run lstm --task sine\n```\n", "--task of a pinned run"},
      {front + "## A {#a}\n\n" + lab + lab, "a second lab block"},
      {front + "## A {#a}\n\n```ask\nguess: What?\n```\n", "a question begins with"},
      {front + "## A {#a}\n\n```ask\nnumber: What?\nwithin: 1\nbecause: So.\nwrong 1..2: No.\n```\n", "no line \"measure\""},
      {front + "## A {#a}\n\n```ask\nnumber: What?\nmeasure: 1\nwithin: some\nbecause: So.\nwrong 1..2: No.\n```\n", "no number"},
      {front + "## A {#a}\n\n```ask\nnumber: What?\nmeasure: 1\nwithin: 1\nbecause: So.\n```\n", "no wrong answer"},
      {front + "## A {#a}\n\n```ask\nnumber: What?\nmeasure: 1\nwithin: 1\nbecause: So.\nwrong 3..2: No.\n```\n", "is empty"},
      {front + "## A {#a}\n\n```ask\nchoice: What?\nright: a\nholds: 1 > 0\nbecause: So.\nwrong: b\n```\n", "ANSWER -- MESSAGE"},
      {front + "## A {#a}\n\n```ask\ndo: What?\nholds: 1 > 0\nanswer: --seed 2\nbecause: So.\nwrong 1 > 0: No.\n```\n", "such as"},
  };
  for (const auto& [text, says] : wrong) {
    std::string said;
    try {
      static_cast<void>(parse_lesson(text, "own", "/nowhere"));
    } catch (const Error& error) {
      said = error.what();
    }
    CHECK_SAYS(said.find(says) != std::string::npos, std::string(says) + " is not in \"" + said + "\"");
  }
}

TEST_CASE("a link out of a lesson's folder is refused") {
  const test::Scratch scratch;
  const fs::path folder = scratch.path() / "lesson";
  fs::create_directories(folder);
  std::ofstream(scratch.path() / "secret.csv") << "a\n1\n2\n";
  fs::create_symlink(scratch.path() / "secret.csv", folder / "data.csv");
  CHECK_ERROR(lesson_of("## A {#a}\n\n```lab\nreclab run elman --input data.csv\n```\n", folder), "leads out of");
  fs::remove(folder / "data.csv");
  std::ofstream(folder / "data.csv") << "a\n1\n2\n";
  const Lesson lesson = lesson_of("## A {#a}\n\n```lab\nreclab run elman --input data.csv\n```\n", folder);
  CHECK_EQUAL(lesson.steps[0].lab()->run.given.at("--input"), (folder / "data.csv").string());
}

TEST_CASE("a lesson of a stranger reads its own folder alone, and no file of any size") {
  const test::Scratch scratch;
  const fs::path folder = scratch.path() / "lesson";
  fs::create_directories(folder);
  std::ofstream(scratch.path() / "other.md") << front << "## A {#a}\n\nWords.\n";
  fs::create_symlink(scratch.path() / "other.md", folder / "lesson.md");
  CHECK_ERROR(read_lesson(folder), "leads out of");
  fs::remove(folder / "lesson.md");
  std::ofstream(folder / "lesson.md") << front << "## A {#a}\n\n" << std::string(2 << 20, 'a') << "\n";
  CHECK_ERROR(read_lesson(folder), "bytes; a lesson has less");
  for (const char* file : {"../data.csv", "/etc/passwd", "a/../../data.csv"})
    CHECK_ERROR(lesson_of(std::string("## A {#a}\n\n```lab\nreclab run elman --input ") + file + "\n```\n", folder), "its own folder");
  for (const char* target : {"file:///etc/passwd", "http://a.b", "javascript:a()", "reclab:run?gru", "/etc/passwd", "HTTPS://a.b"})
    CHECK_ERROR(lesson_of(std::string("## A {#a}\n\n[words](") + target + ")\n", folder), "a link leads to");
}

TEST_CASE("markup of a stranger is words, and what is nested deep ends in a sentence") {
  const Lesson lesson = lesson_of("## <b>A</b> {#a}\n\nIs <img src=file:///x> bold &lt;b&gt;?\n");
  CHECK_EQUAL(lesson.steps[0].title, "<b>A</b>");
  std::string words;
  for (const ProseSpan& span : std::get<ProseBlock>(lesson.steps[0].blocks[0]).words) {
    CHECK(span.kind == ProseSpan::Kind::text);
    words += span.text;
  }
  CHECK_EQUAL(words, "Is <img src=file:///x> bold <b>?");
  const auto nested = [](const std::string& one, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += one;
    return text;
  };
  const Measuring none = [](const std::string& measure) -> double { throw Error(measure, {}); };
  CHECK_ERROR(evaluate(nested("(", 100'000), none), "too many brackets");
  CHECK_ERROR(evaluate(nested("-", 100'000) + "1", none), "too many signs");
  CHECK_ERROR(evaluate("1" + nested("^1", 100'000), none), "too many signs");
  CHECK_ERROR(with_numbers(prose_of("{{1 | 999999999}}"), none), "no manner of writing");
  CHECK(!prose_of(nested("- ", 5000) + "a").empty());
  CHECK(!prose_of(nested("*", 5000) + "a" + nested("*", 5000)).empty());
  for (const char* minutes : {"nan", "1e300", "inf", "1.5", "-1e30"})
    CHECK_ERROR(parse_lesson(std::string("---\ntitle: A\nminutes: ") + minutes + "\n---\n## A {#a}\n\nWords.\n", "own", "/nowhere"),
                "no whole number");
}

TEST_CASE("pinned runs are of the sequence of the run above them") {
  const Lesson lesson =
      lesson_of("## A {#a}\n\n```lab\nreclab run elman --task noise --length 50 --seed 7\npin: reclab run lstm --seed 3\n```\n");
  const TypedRun& pin = lesson.steps[0].lab()->pins.at(0);
  CHECK_EQUAL(pin.given.at("--task"), "noise");
  CHECK_EQUAL(pin.given.at("--length"), "50");
  CHECK_EQUAL(pin.given.at("--task-seed"), "7");
  CHECK_EQUAL(pin.given.at("--seed"), "3");
  LabRuns runs(*lesson.steps[0].lab(), test::shipped(), {"max input"});
  CHECK_EQUAL(runs.measure("max input"), runs.measure("max input pin 1"));
  CHECK_ERROR(runs.measure("max input pin 2"), "pinned run that there is not");
}

TEST_CASE("numbers of any size are written whole") {
  const std::vector<std::tuple<double, std::string, std::string>> cases{
      {22.4, "0", "22"},
      {-0.5, "3", "\u22120.500"},
      {1.2e-5, "", "1.2 × 10^{\u22125}"},
      {0.0123, "%", "1.2 %"},
      {1e300, "6", "1 × 10^{300}"},
      {-1.25e300, "0", "\u22121.25 × 10^{300}"},
      {1.7e308, "", "1.7 × 10^{308}"},
      {1e300, "%", "1 × 10^{302} %"},
      {1e300, "10", "10^{300.0}"},
      {123456789012345.0, "6", "123456789012345.000000"},
      {999999999999999.0, "0", "999999999999999"},
      {1e15, "0", "1 × 10^{15}"},
  };
  for (const auto& [value, manner, text] : cases) CHECK_EQUAL(written(value, manner), text);
}

TEST_CASE("numbers are judged by what the lab measures, and wrong ones get their own words") {
  const Lesson lesson = lesson_of(number);
  CHECK_EQUAL(mistakes_in(number), "");
  const Question& question = question_of(lesson);
  LabRuns runs(*lesson.steps[0].lab(), test::shipped(), measured_in(lesson, *lesson.steps[0].lab()));
  const Measuring measuring = runs.measuring();
  const auto said = [&](const std::string& given) {
    const Judgement judged = judge(question, given, measuring);
    return (judged.right ? "right " : "wrong ") + judged.message;
  };
  for (const char* given : {"22", "21", "24", " 22 ", "22.0", "2.2e1", "+22", "22,5"}) CHECK_SAYS(said(given).starts_with("right"), given);
  CHECK_EQUAL(said("44"), "wrong Half.");
  CHECK_EQUAL(said("2"), "wrong Too few.");
  CHECK_EQUAL(said("70"), "wrong ");
  CHECK_EQUAL(said("−22"), "wrong ");
  for (const char* given : {"", "many", "22 steps", "nan", "inf", "2 2 x"}) CHECK_ERROR(said(given), "is no number");
  CHECK_EQUAL(with_numbers(prose_of(question.because), measuring)[1].text, "22");
}

TEST_CASE("something is done when its condition holds") {
  CHECK_EQUAL(mistakes_in(deed), "");
  const Lesson lesson = lesson_of(deed);
  const Question& question = question_of(lesson);
  const LabSetup& setup = *lesson.steps[0].lab();
  const auto after = [&](const std::string& options) {
    LabRuns runs(setup, test::shipped(), measured_in(lesson, setup), options);
    return judge_deed(question, runs.measuring());
  };
  CHECK(after("--set spectral_radius=1").right);
  CHECK(!after("--set spectral_radius=0.95").right);
  CHECK(after("--set spectral_radius=0.95").message.empty());
  CHECK(after("--set spectral_radius=1.5").message.starts_with("It grows"));
  // In another way, too.
  CHECK(after("--set recurrent_init=rotations --set spectral_radius=1").right);
}

TEST_CASE("the check finds what is wrong with a lesson") {
  const auto changed = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    if (at == std::string::npos) throw Error("no \"" + from + "\"", {});
    return text.replace(at, from.size(), to);
  };
  const std::pair<std::string, const char*> wrong[] = {
      {changed(number, "near [steps_until gradient/state/0/h -1] * 2", "21..23"), "does not get its own words"},
      {changed(number, "measure: steps_until gradient/state/0/h -1", "measure: max gate/0/forget"), "records no gate/0/forget"},
      {changed(number, "It is {{", "It is 22, or {{"), "a number is typed"},
      {changed(number, "Too few.", "It is more than $\\alpha$."), "backslash"},
      {changed(number, "elman", "elmann"), "elmann"},
      {changed(number, "spectral_radius=0.9", "radius=0.9"), "radius"},
      {changed(deed, "answer: --set spectral_radius=1", "answer: --set spectral_radius=0.5"), "does not do it"},
      {changed(deed, "such as: --set spectral_radius=1.2", "such as: --set spectral_radius=0.8"), "does not get the words"},
      {changed(deed, "span gradient/state/0/h < 0.3", "span gradient/state/0/h < 30"), "before anything was done"},
      {changed(deed, "do: Hold it.", "do: Hold it for 30 steps."), "a number is typed"},
      {"## A {#a}\n\nIt is {{1 + 1}}.\n", "no lab block before it"},
      {"## A {#a}\n\n[words](lesson:none)\n", "no lesson \"none\""},
      {"## A {#a}\n\n[words](model:none)\n", "none"},
      {"## A {#a}\n\n" + changed(lab, "```\n", "") + "point: inspector/radius\n```\n", "no setting of that name"},
      {"## A {#a}\n\n" + lab + "It is {{max output | q}}.\n", "no manner"},
      {"## A {#a}\n\n" + lab + "```ask\nchoice: Which?\nright: a\nwrong: b -- No.\nholds: max spectrum/0 > 1\nbecause: So.\n```\n",
       "the right answer is not right"},
  };
  for (const auto& [text, says] : wrong) {
    std::string found;
    if (text.find("reclab run") != std::string::npos && text.find("point:") != std::string::npos)
      found = mistakes_in("## A {#a}\n\n```lab\nreclab run elman --task noise --length 20\npoint: inspector/radius\n```\n");
    else
      found = mistakes_in(text);
    CHECK_SAYS(found.find(says) != std::string::npos, std::string(says) + " is not in \"" + found + "\"");
    CHECK_SAYS(found.find("lesson.md, line ") != std::string::npos, found);
  }
}

TEST_CASE("answers are written and read, and what is none is refused") {
  Answers answers;
  answers.name = "Ada <b>\"L\"</b>";
  answers.lessons["own"]["one/1"] = {{"44", false, "2026-11-28T10:00:00Z"}, {"22", true, ""}};
  CHECK(answers_of(text_of(answers), "a.json") == answers);
  for (const char* text :
       {"", "{", "[]", "{}", R"({"reclab answers": 2, "lessons": {}})", R"({"reclab answers": 1})",
        R"({"reclab answers": 1, "lessons": []})", R"({"reclab answers": 1, "lessons": {"a": []}})",
        R"({"reclab answers": 1, "lessons": {"a": {"b": {}}}})", R"({"reclab answers": 1, "lessons": {"a": {"b": [1]}}})",
        R"({"reclab answers": 1, "lessons": {"a": {"b": [{"given": 1, "right": true}]}}})",
        R"({"reclab answers": 1, "lessons": {}, "lessons": {}})"})
    CHECK_ERROR(answers_of(text, "a.json"), "a.json");
}

TEST_CASE("a grade is of what the lab says, not of what a file says") {
  LessonLibrary library;
  library.lessons = {lesson_of(number)};
  Answers answers;
  const auto graded = [&](const std::vector<GivenAnswer>& given) {
    answers.lessons = {{"own", {{"one/1", given}}}};
    return grades_of(answers, library, test::shipped()).at(0);
  };
  const LessonGrade good = graded({{"44", false}, {"22", true}});
  CHECK(good.questions == 1 && good.answered == 1 && good.right == 1 && good.at_once == 0 && good.notes.empty());
  const LessonGrade lied = graded({{"44", true}});
  CHECK(lied.right == 0 && lied.at_once == 0 && lied.notes.size() == 1);
  const LessonGrade none = graded({});
  CHECK(none.answered == 0 && none.right == 0);
  answers.lessons = {{"other", {{"one/1", {{"22", true}}}}}, {"own", {{"two/1", {{"22", true}}}}}};
  const auto both = grades_of(answers, library, test::shipped());
  CHECK(both.at(0).notes.at(0).find("no such lesson") != std::string::npos);
  CHECK(both.at(1).notes.at(0).find("no such question") != std::string::npos);
}

TEST_CASE("something that was done is graded by doing it again") {
  LessonLibrary library;
  library.lessons = {lesson_of(deed)};
  Answers answers;
  const auto graded = [&](const std::string& given, bool right) {
    answers.lessons = {{"own", {{"one/1", {{given, right}}}}}};
    return grades_of(answers, library, test::shipped()).at(0);
  };
  const std::string line = "reclab run elman --set activation=identity --task noise --length 100 --seed 1 --set spectral_radius=";
  CHECK(graded(line + "1 view pins=0", true).right == 1);
  const LessonGrade lied = graded(line + "0.5 view pins=0", true);
  CHECK(lied.right == 0 && lied.notes.size() == 1);
  const LessonGrade files = graded(line + "0.5 --weights /home/else/w.npz view pins=0", true);
  CHECK(files.right == 1 && files.notes.at(0).find("as the file has it") != std::string::npos);
}

TEST_CASE("the lessons that come with the program are as they should be") {
  const LessonLibrary library = lesson_library(lesson_folders());
  CHECK_SAYS(library.problems.empty(), all_of(library.problems));
  CHECK(!library.lessons.empty());
  for (const Lesson& lesson : library.lessons) {
    const std::vector<std::string> mistakes = mistakes_of(lesson, test::shipped(), library);
    CHECK_SAYS(mistakes.empty(), all_of(mistakes));
    std::set<Question::Kind> kinds;
    for (const Question* question : questions_of(lesson)) kinds.insert(question->kind);
    using Kind = Question::Kind;
    const bool tour = lesson.minutes < 10;  // the first, of the window itself
    CHECK_SAYS(kinds.contains(Kind::act) && (tour || (kinds.contains(Kind::number) && kinds.contains(Kind::predict))),
               lesson.id + " has no prediction, no number or nothing to do");
    CHECK_SAYS(!lesson.about.empty(), lesson.id);
  }
}
