// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/choice.h"

#include <utility>

#include "files/files.h"
#include "parameters/typed.h"
#include "sequence/format.h"

namespace reclab {
namespace {

using ChoiceField = PlanField<SequenceChoice>;
constexpr std::int64_t longest = std::int64_t{1} << 40;

ChoiceField of(Field::Of of, std::string why, ChoiceField made) {
  made.of = of;
  made.why = std::move(why);
  return made;
}
ChoiceField of_file(std::string why, ChoiceField made) { return of(Field::Of::file, std::move(why), std::move(made)); }
ChoiceField of_task(std::string why, ChoiceField made) { return of(Field::Of::task, std::move(why), std::move(made)); }
ChoiceField wanting(std::function<std::string(std::string_view)> wanted, ChoiceField made) {
  made.wanted = std::move(wanted);
  return made;
}

ChoiceField length() {
  ChoiceField made = count_field<SequenceChoice>("--length", "T", "length", 1, longest, "Steps of the task",
                                                 [](auto& choice) -> auto& { return choice.make.length; });
  made.usual = "";
  made.always = true;
  return made;
}

ChoiceField missing() {
  ChoiceField made;
  made.row = hyper_choice("missing", std::string(to_string(Missing::refuse)), missing_choices(),
                          "What becomes of missing cells of the file (empty, NA, NaN): " + listed(missing_choices(), "or") +
                              " (refuse). leave-out: their rows; mask: as hold, and a channel for each column that has them. A step whose "
                              "target is missing does not count; a row whose time is missing is left out or refused");
  made.wanted = wanted_one_of(missing_choices());
  made.usual = "";
  made.flag = "--missing";
  made.argument = "HOW";
  made.get = [](const SequenceChoice& choice) { return HyperValue(std::string(to_string(choice.load.missing))); };
  made.set = [](SequenceChoice& choice, const HyperValue& value) {
    choice.load.missing = missing_choice(std::get<std::string>(value)).value_or(Missing::refuse);
  };
  return made;
}

std::string wanted_yes_or_no(std::string_view text) { return text.empty() || text == "yes" || text == "no" ? "" : "yes or no"; }

std::vector<ChoiceField> made() {
  using Choice = SequenceChoice;
  return {
      text_field<Choice>(
          "--input", "FILE", "file", "A " + sequence_format_names() + " file", [](const Choice& choice) { return choice.file; },
          [](Choice& choice, const std::string& text) { choice.file = text; }),
      text_field<Choice>(
          "--task", "NAME", "task", "A synthetic sequence (the preset's own)",
          [](const Choice& choice) { return choice.is_file() ? std::string() : choice.task; },
          [](Choice& choice, const std::string& text) { choice.task = text; }),
      of_task("a file is as long as it is", length()),
      of_task("a file has nothing drawn",
              wanting(wanted_seed, text_field<Choice>(
                                       "--task-seed", "N", "seed", "Of the task, where it is another than that of the weights",
                                       [](const Choice& choice) { return std::to_string(choice.make.seed); },
                                       [](Choice& choice, const std::string& text) { choice.make.seed = seed_of(text); }))),
      of_task("a file has no parameters",
              wanting(wanted_pair("delay=40"),
                      list_field<Choice>(
                          "--task-set", "set", Field::Says::texts, "A parameter of the task; `reclab task --help` lists them",
                          [](const Choice& choice) { return names_of_pairs(choice.make.set); },
                          [](Choice& choice, const std::vector<std::string>& names) {
                            choice.make.set.clear();
                            for (const std::string& name : names) choice.make.set.push_back(pair_of(name));
                          }))),
      of_file("a task has the columns it has",
              list_field<Choice>(
                  "--columns", "columns", Field::Says::names, "Columns of the file, by name or number from 1; \\, is a comma in a name",
                  [](const Choice& choice) { return choice.load.columns; },
                  [](Choice& choice, std::vector<std::string> names) { choice.load.columns = std::move(names); })),
      of_file("a task counts its steps",
              text_field<Choice>(
                  "--time", "NAME", "time", "The time column of the file, or none",
                  [](const Choice& choice) { return choice.load.time.value_or(std::string()); },
                  [](Choice& choice, const std::string& text) { choice.load.time = text.empty() ? std::nullopt : std::optional(text); })),
      of_file("a task brings the target that it has",
              list_field<Choice>(
                  "--target", "target", Field::Says::names,
                  "Columns of the file that are the target, and inputs only where --columns names them too; or next: the next value of the "
                  "input",
                  [](const Choice& choice) { return choice.load.target; },
                  [](Choice& choice, std::vector<std::string> names) { choice.load.target = std::move(names); })),
      of_file("a task has no missing cells", missing()),
      wanting(wanted_yes_or_no, text_field<Choice>(
                                    "--standardise", "Y", "standardise", "yes or no (yes for files, no for tasks)",
                                    [](const Choice& choice) {
                                      const bool file = choice.is_file(), does = file ? choice.load.standardise : choice.make.standardise;
                                      return does == file ? "" : does ? "yes" : "no";
                                    },
                                    [](Choice& choice, const std::string& text) {
                                      choice.load.standardise = text != "no";
                                      choice.make.standardise = text == "yes";
                                    })),
  };
}

}  // namespace

bool SequenceChoice::operator==(const SequenceChoice& other) const {
  if (file != other.file) return false;
  return is_file() ? load == other.load : task == other.task && make == other.make;
}

const std::vector<PlanField<SequenceChoice>>& sequence_fields() {
  static const std::vector<ChoiceField> all = made();
  return all;
}

bool is_of(const Field& field, const SequenceChoice& choice) {
  return field.of == Field::Of::any || (field.of == Field::Of::file) == choice.is_file();
}

void refuse_misplaced(const std::map<std::string, std::string>& given, const Field& field, const SequenceChoice& choice) {
  const auto found = given.find(field.flag);
  if (found != given.end() && !found->second.empty() && !is_of(field, choice))
    usage_error(field.flag, std::string("belongs to ") + (choice.is_file() ? "--task; " : "--input; ") + field.why + ".");
}

Sequence load_sequence(const SequenceChoice& choice) {
  return choice.is_file() ? load_sequence(choice.file, choice.load) : make_task(choice.task, choice.make);
}

SequenceChoice choice_of(const Sequence& sequence) {
  SequenceChoice choice;
  choice.task = sequence.task;
  if (sequence.task.empty()) choice.file = sequence.source;
  choice.load = sequence.load;
  choice.make = sequence.made;
  choice.load.standardise = choice.make.standardise = sequence.standardised;
  return choice;
}

}  // namespace reclab
