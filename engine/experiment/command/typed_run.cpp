// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/command/typed_run.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "array/error.h"
#include "experiment/command/command.h"
#include "experiment/command/run_fields.h"
#include "experiment/training/plan.h"
#include "learning/optimiser.h"
#include "parameters/nearest.h"
#include "parameters/typed.h"

namespace reclab {
namespace {

/// The fields that a line may name, of a training or a run.
std::vector<const Field*> fields_of(bool trains) {
  std::vector<const Field*> all;
  for (const Field& field : sequence_fields()) all.push_back(&field);
  for (const Field& field : run_fields()) all.push_back(&field);
  if (trains)
    for (const Field& field : training_fields()) all.push_back(&field);
  return all;
}

void take(TypedRun& run, const std::vector<std::string>& words, std::size_t from) {
  const std::vector<const Field*> fields = fields_of(run.trains);
  for (std::size_t i = from; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("--")) {
      if (!run.id.empty()) throw Error("\"" + word + "\" is one word too many in \"reclab " + run.id + "\".", {});
      run.id = word;
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    const auto found = std::ranges::find(fields, flag, [](const Field* field) { return field->flag; });
    if (found == fields.end()) {
      std::vector<std::string> flags;
      for (const Field* field : fields) flags.push_back(field->flag);
      usage_error(flag, "is no option of such a line; did you mean " + nearest_names(flag, flags, 1) + "?");
    }
    const Field& field = **found;
    std::string& text = run.given[flag];
    if (field.row.kind == HyperKind::flag) {
      text = "true";
      continue;
    }
    std::string value;
    if (equals != std::string::npos)
      value = word.substr(equals + 1);
    else if (++i < words.size())
      value = words[i];
    else
      usage_error(flag, "has no value.");
    if (field.says == Field::Says::one) {
      text = value;
    } else {
      std::vector<std::string> names = names_of_list(text);
      std::ranges::move(field.says == Field::Says::texts ? std::vector{value} : names_of_list(value), std::back_inserter(names));
      text = list_of_names(names);
    }
    typed_value(field, text);
  }
}

}  // namespace

bool is_given(const Given& given, const std::string& flag) {
  const auto found = given.find(flag);
  return found != given.end() && !found->second.empty();
}

const std::vector<std::string>& file_flags() {
  static const std::vector<std::string> flags{"--input", "--weights", "--state"};
  return flags;
}

std::string TypedRun::sequence_seed() const {
  if (is_given(given, "--input")) return {};
  for (const std::string& flag : {sequence_seed_flag(), std::string("--seed")})
    if (is_given(given, flag)) return given.at(flag);
  return {};
}
const std::string& TypedRun::sequence_seed_flag() {
  static const std::string flag = "--task-seed";
  return flag;
}

std::vector<std::string> shell_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == ' ' || c == '\t' || c == '\n') {
      if (std::exchange(inside, false)) words.push_back(std::exchange(word, {}));
    } else if (c == '\'' || c == '"') {
      inside = true;
      const char quote = c;
      for (++i; i < line.size() && line[i] != quote; ++i) {
        if (quote == '"' && line[i] == '\\' && i + 1 < line.size() &&
            std::string_view("\"\\$`").find(line[i + 1]) != std::string_view::npos)
          ++i;
        word += line[i];
      }
      if (i == line.size()) throw Error("a quote in \"" + std::string(line) + "\" is not closed.", {});
    } else {
      inside = true;
      if (c == '\\' && i + 1 < line.size()) ++i;
      word += line[i];
    }
  }
  if (inside) words.push_back(word);
  return words;
}

TypedRun typed_run(std::string_view line) { return typed_run(shell_words(line)); }

TypedRun typed_run(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  if (words.size() < 3 || words[0] != "reclab" || (words[1] != "run" && words[1] != "train"))
    throw Error("\"" + line + "\" is no line \"reclab run ID ...\" or \"reclab train ID ...\".", {});
  TypedRun run{.trains = words[1] == "train", .id = {}};
  take(run, words, 2);
  if (run.id.empty()) throw Error("\"" + line + "\" names no preset.", {});
  return run;
}

TypedRun with_options(TypedRun run, std::string_view options) { return with_options(std::move(run), shell_words(options)); }

TypedRun with_options(TypedRun run, const std::vector<std::string>& words) {
  const bool other = !words.empty() && !words.front().starts_with("--");
  if (other) run.id = words.front();
  take(run, words, other ? 1 : 0);
  return run;
}

RunRequest request_of(const Given& given, const Preset& preset) {
  RunRequest request;
  request.preset = preset;
  request.device = "auto";
  for (const PlanField<RunRequest>& field : run_fields())
    if (is_given(given, field.flag)) field.set(request, typed_value(field, given.at(field.flag)));
  return request;
}

SequenceChoice sequence_of(const Given& given, const Preset& preset, std::int64_t length) {
  const bool task = is_given(given, "--task");
  if (is_given(given, "--input") && task) usage_error("--task", "and --input exclude each other; give one of them.");
  SequenceChoice choice = preset.own_sequence();
  choice.make.length = length;
  if (task) choice.make.set.clear();
  const TaskSettings own = choice.make.set;
  if (is_given(given, "--seed")) choice.make.seed = seed_of(given.at("--seed"));
  for (const PlanField<SequenceChoice>& field : sequence_fields())
    if (is_given(given, field.flag)) field.set(choice, typed_value(field, given.at(field.flag)));
  if (is_given(given, "--task-set")) choice.make.set.insert(choice.make.set.begin(), own.begin(), own.end());
  return choice;
}

RunRequest run_request_of(const Given& given, const Preset& preset) {
  RunRequest request = request_of(given, preset);
  const SequenceChoice choice = sequence_of(given, request.preset, request.preset.task_length);
  refuse_misplaced(given, sequence_fields(), choice);
  request.sequence = load_sequence(choice);
  return request;
}

TrainingRequest training_request_of(const Given& given, const Preset& preset) {
  TrainingRequest request;
  request.run = request_of(given, preset);
  request.from = sequence_of(given, request.run.preset, request.run.preset.task_length);
  if (!is_given(given, "--task-seed")) request.from.make.seed = request.run.seed;
  if (request.from.is_file()) request.windows.seed = request.from.make.seed;
  Given others = given;
  others.erase("--task-seed");  // the windows of a file are drawn by it
  refuse_misplaced(others, sequence_fields(), request.from);
  refuse_misplaced(others, training_fields(), request.from);
  if (const auto& target = request.from.load.target; std::ranges::find(target, "next") != target.end())
    usage_error("--target", "is \"next\"; leave it out, and give --ahead 1.");
  if (is_given(given, "--ahead") && !request.from.load.target.empty())
    usage_error("--ahead", "belongs to files without a target of their own.");
  for (const TrainingField& field : training_fields())
    if (is_given(given, field.flag)) field.set(request, typed_value(field, given.at(field.flag)));
  check(request.options.optimiser);
  return request;
}

}  // namespace reclab
