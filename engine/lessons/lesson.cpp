// SPDX-License-Identifier: GPL-3.0-or-later
#include "lessons/lesson.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <system_error>

#include "array/error.h"
#include "files/data_folders.h"
#include "files/files.h"
#include "lessons/markdown.h"
#include "measures/expression.h"
#include "measures/measure.h"
#include "parameters/nearest.h"

namespace fs = std::filesystem;

namespace reclab {
namespace {

constexpr std::uintmax_t most_bytes = 1 << 20;  // of a lesson; ninety times the longest that comes with the program

/// The line of a file; further words follow a colon.
[[noreturn]] void refuse(int line, const std::string& why) { throw Error("line " + std::to_string(line) + ": " + why, {}); }

/// "[a, b]" or "a, b".
std::vector<std::string> list_of(std::string text) {
  text = std::string(trimmed(text));
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  std::vector<std::string> names;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    if (const std::string_view name = trimmed(std::string_view(text).substr(at, end - at)); !name.empty()) names.emplace_back(name);
    at = end + 1;
  }
  return names;
}

double number_of(const std::string& text, int line) {
  const std::string_view word = trimmed(text);
  const std::optional<double> value = number_in(word);
  if (!value) refuse(line, "\"" + std::string(word) + "\" is no number.");
  return *value;
}

std::int64_t whole_number_of(const std::string& text, int line) {
  const double value = number_of(text, line);
  if (!(std::abs(value) <= 1e9) || value != std::floor(value))
    refuse(line, "\"" + std::string(trimmed(text)) + "\" is no whole number up to 1e9.");
  return static_cast<std::int64_t>(value);
}

struct KeyedLine {
  std::string key, value;  ///< "key: value"; key is "" of a line that has none
  int number = 0;
};

/// The lines of a block; a key ends at a colon with a blank behind it. One that begins with blanks goes on with the line before it.
std::vector<KeyedLine> lines_of(const std::string& text, int first) {
  std::vector<KeyedLine> lines;
  int number = first;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (trimmed(line).empty()) continue;
    if (line.starts_with(' ') && !lines.empty()) {
      lines.back().value.append(" ").append(trimmed(line));
      continue;
    }
    const std::size_t colon = line.ends_with(':') ? line.size() - 1 : line.find(": ");
    const bool keyed = colon != std::string::npos && !line.starts_with("reclab ");
    const std::string_view all = line;
    lines.push_back(
        {std::string(keyed ? trimmed(all.substr(0, colon)) : ""), std::string(trimmed(keyed ? all.substr(colon + 1) : all)), number});
  }
  return lines;
}

[[noreturn]] void unknown(const KeyedLine& line, const std::vector<std::string>& keys, const std::string& of) {
  refuse(line.number, "\"" + line.key + "\" is no line of " + of + "; did you mean \"" + nearest_names(line.key, keys, 1) + "\"?");
}

/// Whether a file lies in a folder once links are followed.
bool lies_in(const fs::path& file, const fs::path& folder) {
  std::error_code none;
  const fs::path real = fs::weakly_canonical(file, none), home = fs::weakly_canonical(folder, none);
  return std::ranges::mismatch(home, real).in1 == home.end();
}

/// Files of a line are relative to the lesson's folder and stay in it.
void keep_inside(TypedRun& run, const fs::path& folder, int line) {
  for (const std::string& flag : file_flags()) {
    const auto found = run.given.find(flag);
    if (found == run.given.end() || found->second.empty()) continue;
    const fs::path path = fs::path(found->second).lexically_normal();
    if (path.is_absolute() || *path.begin() == "..")
      refuse(line, flag + " is " + found->second + "; a lesson's files lie in its own folder.");
    if (!lies_in(folder / path, folder)) refuse(line, flag + " is " + found->second + ", a link that leads out of the lesson's folder.");
    found->second = (folder / path).string();
  }
}

TypedRun run_of(const std::string& text, const fs::path& folder, int line) {
  try {
    TypedRun run = typed_run(text);
    keep_inside(run, folder, line);
    return run;
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with("line ")) throw;
    refuse(line, error.what());
  }
}

/// A pinned run is of the sequence of the run that is shown.
void take_sequence(TypedRun& pin, const LabSetup& lab, int line) {
  for (const Field& field : sequence_fields())
    if (pin.given.contains(field.flag)) refuse(line, field.flag + " of a pinned run; it is of the sequence of the run above it.");
  const Given& own = lab.run.given;
  const std::string seed = lab.run.sequence_seed();
  bool names = false;
  for (const Field& field : sequence_fields()) {
    if (!is_given(own, field.flag)) continue;
    pin.given[field.flag] = own.at(field.flag);
    names = names || field.row.key == "task" || field.row.key == "file";
  }
  if (!names) refuse(line, "the run above it names no sequence, which is that of its preset; name it there.");
  if (!seed.empty()) pin.given[TypedRun::sequence_seed_flag()] = seed;
}

LabSetup lab_of(const MarkdownBlock& block, const fs::path& folder) {
  LabSetup lab;
  lab.source_line = block.line;
  static const std::vector<std::string> keys{"pin", "look", "hide", "point", "say", "step"};
  for (const KeyedLine& line : lines_of(block.code, block.line)) {
    if (line.key.empty()) {
      if (!lab.line.empty()) refuse(line.number, "a second reclab line; further runs are `pin: reclab run ...`.");
      lab.line = line.value;
      lab.run = run_of(line.value, folder, line.number);
    } else if (line.key == "pin") {
      lab.pins.push_back(run_of(line.value, folder, line.number));
      if (lab.pins.back().trains) refuse(line.number, "a pinned run is a `reclab run`.");
      take_sequence(lab.pins.back(), lab, line.number);
    } else if (line.key == "look") {
      lab.look = list_of(line.value);
    } else if (line.key == "hide") {
      lab.hide = list_of(line.value);
    } else if (line.key == "point") {
      lab.point = line.value;
    } else if (line.key == "say") {
      lab.say = line.value;
    } else if (line.key == "step") {
      lab.step = whole_number_of(line.value, line.number);
    } else {
      unknown(line, keys, "a lab block");
    }
  }
  if (lab.line.empty()) refuse(block.line, "a lab block begins with a line \"reclab run ...\".");
  return lab;
}

/// "wrong" is behind it: of a choice "ANSWER -- MESSAGE", of a number "30..45: MESSAGE" or "near EXPRESSION: MESSAGE", of something to do
/// "CONDITION: MESSAGE".
PlannedWrong wrong_of(Question::Kind kind, const KeyedLine& line, const std::string& rest) {
  PlannedWrong wrong;
  if (kind == Question::Kind::choice || kind == Question::Kind::predict) {
    const std::size_t dashes = line.value.find(" -- ");
    if (dashes == std::string::npos) refuse(line.number, "a wrong answer is written \"wrong: ANSWER -- MESSAGE\".");
    wrong.answer = trimmed(line.value.substr(0, dashes));
    wrong.message = trimmed(line.value.substr(dashes + 4));
    return wrong;
  }
  wrong.message = line.value;
  if (kind == Question::Kind::act) {
    wrong.when = rest;
  } else if (rest.starts_with("near ")) {
    wrong.near = trimmed(rest.substr(5));
  } else {
    const std::size_t dots = rest.find("..");
    if (dots == std::string::npos)
      refuse(line.number, "a wrong number is written \"wrong 30..45: MESSAGE\" or \"wrong near MEASURE: MESSAGE\".");
    wrong.low = number_of(rest.substr(0, dots), line.number);
    wrong.high = number_of(rest.substr(dots + 2), line.number);
    if (wrong.low > wrong.high) refuse(line.number, "the range " + rest + " is empty.");
  }
  return wrong;
}

Question question_of(const MarkdownBlock& block, const std::string& id) {
  static const std::map<std::string, Question::Kind> kinds{{"number", Question::Kind::number},
                                                           {"choice", Question::Kind::choice},
                                                           {"predict", Question::Kind::predict},
                                                           {"do", Question::Kind::act}};
  static const std::vector<std::string> keys{"measure", "within",  "unit",    "right",  "wrong",  "holds",   "answer",
                                             "hint",    "because", "such as", "number", "choice", "predict", "do"};
  Question made;
  made.id = id;
  made.source_line = block.line;
  const std::vector<KeyedLine> lines = lines_of(block.code, block.line);
  if (lines.empty() || !kinds.contains(lines.front().key))
    refuse(block.line, "a question begins with a line \"number:\", \"choice:\", \"predict:\" or \"do:\".");
  made.kind = kinds.at(lines.front().key);
  made.text = lines.front().value;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const KeyedLine& line = lines[i];
    std::string* text = line.key == "measure"   ? &made.measure
                        : line.key == "within"  ? &made.within
                        : line.key == "unit"    ? &made.unit
                        : line.key == "holds"   ? &made.holds
                        : line.key == "answer"  ? &made.answer
                        : line.key == "hint"    ? &made.hint
                        : line.key == "because" ? &made.because
                        : line.key == "right"   ? &made.right
                                                : nullptr;
    if (text != nullptr) {
      if (!text->empty()) refuse(line.number, "a second line \"" + line.key + "\".");
      *text = line.value;
      if (text == &made.right) made.order.push_back(line.value);
    } else if (line.key == "wrong" || line.key.starts_with("wrong ")) {
      made.wrong.push_back(wrong_of(made.kind, line, std::string(trimmed(line.key.substr(5)))));
      if (!made.wrong.back().answer.empty()) made.order.push_back(made.wrong.back().answer);
    } else if (line.key == "such as") {
      // The right one stands first in many a file.
      std::ranges::sort(made.order, {}, [&](const std::string& answer) { return sha256_hex(id + answer); });
      if (made.wrong.empty()) refuse(line.number, "\"such as\" stands behind a wrong answer.");
      made.wrong.back().such_as = line.value;
    } else {
      unknown(line, keys, "a question");
    }
  }
  const auto wants = [&](const std::string& text, const char* key) {
    if (text.empty()) refuse(block.line, std::string("the question has no line \"") + key + "\".");
  };
  if (made.kind == Question::Kind::number) {
    wants(made.measure, "measure");
    wants(made.within, "within");
    number_of(made.within.ends_with('%') ? made.within.substr(0, made.within.size() - 1) : made.within, block.line);
  } else if (made.kind == Question::Kind::act) {
    wants(made.holds, "holds");
    wants(made.answer, "answer");
    for (const PlannedWrong& wrong : made.wrong) wants(wrong.such_as, "such as");
  } else {
    wants(made.right, "right");
    wants(made.holds, "holds");
  }
  wants(made.because, "because");
  // The right one stands first in many a file.
  std::ranges::sort(made.order, {}, [&](const std::string& answer) { return sha256_hex(id + answer); });
  if (made.wrong.empty()) refuse(block.line, "the question has no wrong answer that was thought of: add a line \"wrong\".");
  return made;
}

/// The id at the end of a heading, "{#product}", taken off it.
std::string id_of(Prose& words, int line) {
  std::string& text = words.back().text;
  const std::size_t at = text.rfind("{#");
  if (words.back().kind != ProseSpan::Kind::text || at == std::string::npos || !text.ends_with('}'))
    refuse(line, "the heading has no id; end it with \"{#name}\".");
  const std::string id = text.substr(at + 2, text.size() - at - 3);
  text = std::string(trimmed(text.substr(0, at)));
  if (id.empty() || !std::ranges::all_of(id, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }))
    refuse(line, "the id \"" + id + "\" has other characters than a to z, 0 to 9 and -.");
  if (text.empty()) words.pop_back();
  return id;
}

std::string plain(const Prose& words) {
  std::string text;
  for (const ProseSpan& span : words) text += span.text;
  return text;
}

void check_links(const Prose& words, int line) {
  for (const ProseSpan& span : words) {
    if (span.kind != ProseSpan::Kind::link) continue;
    const auto is = [&](const char* scheme) { return span.target.starts_with(scheme); };
    if (!is("https://") && !is("look:") && !is("model:") && !is("lesson:"))
      refuse(line, "a link leads to \"" + span.target + "\"; links are https://, look:PANEL, model:ID and lesson:ID.");
  }
}

/// The front matter, and where the text behind it begins: lines and bytes.
struct FrontMatter {
  std::vector<KeyedLine> lines;
  int last = 0;
  std::size_t end = 0;
};
FrontMatter front_matter_of(std::string_view text) {
  if (!text.starts_with("---\n")) refuse(1, "a lesson begins with a line \"---\" and the title.");
  const std::size_t end = text.find("\n---\n", 3);
  if (end == std::string_view::npos) refuse(1, "the lines between two \"---\" have no end.");
  FrontMatter front;
  front.lines = lines_of(std::string(text.substr(4, end - 3)), 1);
  front.end = end + 5;
  front.last = static_cast<int>(std::ranges::count(text.substr(0, front.end), '\n'));
  return front;
}

void read_front(Lesson& lesson, const FrontMatter& front) {
  static const std::vector<std::string> keys{"title", "about", "minutes", "needs", "after", "order"};
  for (const KeyedLine& line : front.lines) {
    if (line.key == "title")
      lesson.title = line.value;
    else if (line.key == "about")
      lesson.about = line.value;
    else if (line.key == "minutes")
      lesson.minutes = static_cast<int>(whole_number_of(line.value, line.number));
    else if (line.key == "order")
      lesson.order = static_cast<int>(whole_number_of(line.value, line.number));
    else if (line.key == "needs")
      lesson.needs = list_of(line.value);
    else if (line.key == "after")
      lesson.after = list_of(line.value);
    else
      unknown(line, keys, "the front matter");
  }
  if (lesson.title.empty()) refuse(1, "the lesson has no title.");
  if (lesson.minutes < 1 || lesson.minutes > 600) refuse(1, "the lesson has no minutes, from 1 to 600.");
}

}  // namespace

const LabSetup* LessonStep::lab() const {
  for (const Block& block : blocks)
    if (const auto* lab = std::get_if<LabSetup>(&block)) return lab;
  return nullptr;
}

Prose prose_of(std::string_view markdown) {
  Prose words;
  for (MarkdownBlock& block : blocks_of(markdown)) {
    if (!words.empty()) words.push_back({ProseSpan::Kind::text, " "});
    std::ranges::move(block.words, std::back_inserter(words));
  }
  return words;
}

Lesson parse_lesson(std::string_view text, const std::string& id, const fs::path& folder) {
  Lesson lesson;
  lesson.id = id;
  lesson.folder = folder;
  const FrontMatter front = front_matter_of(text);
  read_front(lesson, front);
  std::vector<MarkdownBlock> blocks = blocks_of(text.substr(front.end));
  std::set<std::string> ids;
  int questions = 0;
  for (MarkdownBlock& block : blocks) {
    block.line += front.last;
    if (block.kind == MarkdownBlock::Kind::heading && block.level <= 2) {
      LessonStep step;
      step.source_line = block.line;
      step.id = id_of(block.words, block.line);
      step.title = plain(block.words);
      if (!ids.insert(step.id).second) refuse(block.line, "two steps have the id \"" + step.id + "\".");
      lesson.steps.push_back(std::move(step));
      questions = 0;
      continue;
    }
    if (lesson.steps.empty()) refuse(block.line, "words stand before the first step; begin it with \"## Title {#id}\".");
    LessonStep& step = lesson.steps.back();
    if (block.kind == MarkdownBlock::Kind::code) {
      if (block.info == "lab" && step.lab() != nullptr)
        refuse(block.line, "a second lab block in one step; begin another step for it.");
      else if (block.info == "lab")
        step.blocks.emplace_back(lab_of(block, folder));
      else if (block.info == "ask")
        step.blocks.emplace_back(question_of(block, step.id + "/" + std::to_string(++questions)));
      else
        refuse(block.line, "a block ```" + block.info + "; blocks are ```lab and ```ask.");
      continue;
    }
    check_links(block.words, block.line);
    const bool formula = block.words.size() == 1 && block.words.front().kind == ProseSpan::Kind::formula;
    step.blocks.emplace_back(ProseBlock{block.kind == MarkdownBlock::Kind::heading ? ProseBlock::Kind::heading
                                        : block.kind == MarkdownBlock::Kind::item  ? ProseBlock::Kind::item
                                        : formula                                  ? ProseBlock::Kind::formula
                                                                                   : ProseBlock::Kind::text,
                                        std::move(block.words)});
  }
  if (lesson.steps.empty()) refuse(front.last, "the lesson has no step; a step begins with \"## Title {#id}\".");
  return lesson;
}

Lesson read_lesson(const fs::path& folder) {
  const fs::path file = folder / "lesson.md";
  try {
    if (!lies_in(file, folder)) throw Error("is a link that leads out of the lesson's folder.", {});
    std::error_code none;
    if (fs::file_size(file, none) > most_bytes && !none)
      throw Error("has more than " + std::to_string(most_bytes) + " bytes; a lesson has less, and its data lie beside it.", {});
    return parse_lesson(read_file(file), fs::weakly_canonical(folder).filename().string(), folder);
  } catch (const Error& error) {
    if (!error.where().file.empty()) throw;
    throw Error(file.string() + ": " + error.sentence(), {.file = file.string()});
  }
}

std::vector<const Question*> questions_of(const LessonStep& step) {
  std::vector<const Question*> all;
  for (const Block& block : step.blocks)
    if (const auto* question = std::get_if<Question>(&block)) all.push_back(question);
  return all;
}

std::vector<const Question*> questions_of(const Lesson& lesson) {
  std::vector<const Question*> all;
  for (const LessonStep& step : lesson.steps) std::ranges::copy(questions_of(step), std::back_inserter(all));
  return all;
}

const Lesson* LessonLibrary::find(std::string_view id) const {
  const auto found = std::ranges::find(lessons, id, &Lesson::id);
  return found == lessons.end() ? nullptr : &*found;
}

LessonLibrary lesson_library(const std::vector<fs::path>& folders) {
  LessonLibrary library;
  for (const fs::path& folder : folders) {
    std::error_code none;
    std::set<fs::path> inside;
    for (const auto& entry : fs::directory_iterator(folder, none))
      if (fs::is_regular_file(entry.path() / "lesson.md", none)) inside.insert(entry.path());
    for (const fs::path& one : inside) {
      try {
        Lesson lesson = read_lesson(one);
        if (library.find(lesson.id) != nullptr)
          library.problems.push_back(one.string() + ": there is a lesson \"" + lesson.id + "\" already; its folder needs another name.");
        else
          library.lessons.push_back(std::move(lesson));
      } catch (const Error& error) {
        library.problems.emplace_back(error.what());
      }
    }
  }
  std::ranges::stable_sort(library.lessons, {}, [](const Lesson& lesson) { return std::pair(lesson.order, lesson.id); });
  return library;
}

std::vector<fs::path> lesson_folders() { return data_folders("RECLAB_LESSONS", "lessons", "resources/lessons"); }

}  // namespace reclab
