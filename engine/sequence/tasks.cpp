// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <numeric>
#include <span>

#include "array/error.h"
#include "files/files.h"
#include "sequence/standardise.h"
#include "sequence/task.h"

namespace reclab {

namespace {

constexpr const char *target_key = "target", *next_input = "next-input";

/// Whether each step has one channel that is 1 and others that are 0.
bool shows_tokens(const Sequence& sequence) {
  const auto width = static_cast<std::size_t>(sequence.width);
  if (width < 2) return false;
  for (std::size_t t = 0; t < static_cast<std::size_t>(sequence.length); ++t) {
    const auto row = std::span(sequence.input).subspan(t * width, width);
    if (std::ranges::count(row, 1.0) != 1 || std::ranges::count(row, 0.0) != sequence.width - 1) return false;
  }
  return true;
}

/// The target of each step but the last is the next input: a class where inputs are tokens, else its numbers.
void foretell_input(Sequence& sequence) {
  const auto width = static_cast<std::size_t>(sequence.width), last = static_cast<std::size_t>(sequence.length) - 1;
  const bool tokens = shows_tokens(sequence);
  add_target(sequence, tokens ? TargetKind::classify : TargetKind::regress, tokens ? 1 : sequence.width);
  sequence.classes = tokens ? sequence.width : 0;
  sequence.target_names = tokens ? std::vector<std::string>() : sequence.names;
  sequence.shown.clear();
  for (std::size_t t = 0; t < last; ++t) {
    const auto next = std::span(sequence.input).subspan((t + 1) * width, width);
    if (tokens)
      sequence.target[t] = static_cast<double>(std::ranges::find(next, 1.0) - next.begin());
    else
      std::ranges::copy(next, sequence.target.begin() + static_cast<std::ptrdiff_t>(t * width));
    sequence.mask[t] = 1.0;
  }
}

}  // namespace

void arrange(std::vector<Task>& table) {
  for (Task& task : table)
    if (!task.foretells)
      task.info.parameters.push_back(
          hyper_choice(target_key, "own", {"own", next_input},
                       "The task's own target, or the next input, which a model may learn to foretell before the task itself"));
  std::ranges::sort(table, {}, [](const Task& task) { return task.info.name; });
  std::ranges::stable_partition(table, [](const Task& task) { return !task.signal; });
}

namespace {

constexpr std::int64_t longest = 100'000'000, most_values = 1'000'000'000;  // 8 GB

const Task& task_of(const std::string& name) {
  std::vector<std::string> known;
  for (const Task& task : task_table()) {
    if (task.info.name == name) return task;
    known.push_back(task.info.name);
  }
  throw Error("there is no task '" + name + "': choose from " + listed(known, ","),
              {.parameter = "task", .value = name, .range = listed(known, ",")});
}

}  // namespace

const std::vector<TaskInfo>& tasks() {
  static const std::vector<TaskInfo> infos = [] {
    std::vector<TaskInfo> result;
    for (const Task& task : task_table()) result.push_back(task.info);
    return result;
  }();
  return infos;
}

Hyper task_parameters(const std::string& name, const TaskSettings& set) {
  const Task& task = task_of(name);
  Hyper parameters(task.info.parameters);
  for (const auto& [key, text] : set) {
    if (!parameters.has(key)) {
      std::vector<std::string> keys;
      for (const HyperSpec& row : task.info.parameters) keys.push_back(row.key);
      const std::string known = keys.empty() ? "none" : listed(keys, "and");
      throw Error("the task " + name + " has no parameter \"" + printable(key) + "\"; it has " + known + ".",
                  {.parameter = key, .value = text, .range = known});
    }
    parameters.set_text(key, text, "the task " + name);
  }
  return parameters;
}

TaskSettings settings_of(const Hyper& parameters) {
  const Hyper standard(parameters.table());
  TaskSettings set;
  for (const HyperSpec& row : parameters.table())
    if (parameters.value(row.key) != standard.value(row.key)) set.emplace_back(row.key, parameters.text(row.key));
  return set;
}

std::int64_t shortest_task(const std::string& name, const TaskSettings& set) {
  return task_of(name).least(task_parameters(name, set)).first;
}

Sequence make_task(const std::string& name, const TaskOptions& options) {
  const Task& task = task_of(name);
  const Hyper parameters = task_parameters(name, options.set);
  const auto [shortest, why] = task.least(parameters);
  if (options.length < shortest || options.length > longest) {
    const std::string range = std::to_string(shortest) + " to " + std::to_string(longest);
    throw Error("the task " + name + " cannot be " + std::to_string(options.length) + " steps long" +
                    (options.length < shortest ? " (it needs " + why + ")" : "") + ": choose a length from " + range,
                {.parameter = "length", .value = std::to_string(options.length), .range = range});
  }
  Sequence sequence;
  sequence.name = sequence.task = name;
  sequence.made = options;
  sequence.made.set = settings_of(parameters);
  sequence.source = "task " + name + " --length " + std::to_string(options.length) + " --seed " + std::to_string(options.seed);
  std::vector<std::string> said;
  for (const auto& [key, text] : sequence.made.set) {
    sequence.source += " --task-set " + key + "=" + text;
    said.push_back(key + " = " + text);
  }
  if (!said.empty()) sequence.name += " (" + listed(said, ",") + ")";
  sequence.length = options.length;
  sequence.time.resize(static_cast<std::size_t>(options.length));
  std::iota(sequence.time.begin(), sequence.time.end(), 0.0);
  task.make(sequence, parameters, Rng(options.seed).split(name));
  sequence.mean.assign(sequence.names.size(), 0.0);
  sequence.deviation.assign(sequence.names.size(), 1.0);
  if (options.standardise) standardise(sequence);
  if (parameters.has(target_key) && parameters.choice(target_key) == next_input) foretell_input(sequence);
  Sha256 hash;
  hash.update(sequence.input.data(), sequence.input.size() * sizeof(double));
  hash.update(sequence.target.data(), sequence.target.size() * sizeof(double));
  if (sequence.time_name != "step") hash.update(sequence.time.data(), sequence.time.size() * sizeof(double));
  sequence.sha256 = hash.hex();
  return sequence;
}

void add_target(Sequence& sequence, TargetKind kind, std::int64_t width) {
  sequence.target_kind = kind;
  sequence.target_width = width;
  sequence.target.assign(static_cast<std::size_t>(sequence.length * width), 0.0);
  sequence.mask.assign(static_cast<std::size_t>(sequence.length), 0.0);
}

double sine_at(std::int64_t k, std::int64_t period) {
  k %= period;
  if (2 * k > period) return -sine_at(period - k, period);
  if (4 * k > period) return sine_at(period - 2 * k, 2 * period);  // sin(pi - x), with x in units half as large
  const double x = 6.283185307179586477 * static_cast<double>(k) / static_cast<double>(period), square = x * x;
  double series = 1.0;
  for (int n = 24; n >= 2; n -= 2) series = 1.0 - series * square / (n * (n + 1));
  return x * series;
}

void set_width(Sequence& sequence, std::vector<std::string> names) {
  sequence.names = std::move(names);
  sequence.width = static_cast<std::int64_t>(sequence.names.size());
  if (sequence.length > most_values / sequence.width)
    throw Error("the task " + sequence.task + " of " + std::to_string(sequence.length) + " steps and " + std::to_string(sequence.width) +
                    " channels does not fit into memory: choose a length of at most " + std::to_string(most_values / sequence.width) +
                    ", or fewer channels",
                {.parameter = "length", .value = std::to_string(sequence.length)});
  sequence.input.assign(static_cast<std::size_t>(sequence.length * sequence.width), 0.0);
}

void one_hot(Sequence& sequence, const std::vector<std::int64_t>& tokens, std::int64_t channels, const std::string& name) {
  std::vector<std::string> names;
  for (std::int64_t token = 0; token < channels; ++token) names.push_back(name + " " + std::to_string(token));
  set_width(sequence, std::move(names));
  for (std::size_t t = 0; t < tokens.size(); ++t)
    sequence.input[t * static_cast<std::size_t>(channels) + static_cast<std::size_t>(tokens[t])] = 1.0;
}

void shown_at(Sequence& sequence, std::size_t step, std::size_t shown) {
  sequence.shown.resize(static_cast<std::size_t>(sequence.length), -1);
  sequence.shown[step] = static_cast<std::int64_t>(shown);
}

void answer(Sequence& sequence, std::size_t step, std::int64_t wanted, std::int64_t classes, std::optional<std::size_t> shown) {
  if (shown) shown_at(sequence, step, *shown);
  if (sequence.target_kind == TargetKind::none) add_target(sequence, TargetKind::classify, 1);
  sequence.classes = classes;
  sequence.target[step] = static_cast<double>(wanted);
  sequence.mask[step] = 1.0;
}

void recall(Sequence& sequence, const Rng& rng, const std::vector<std::size_t>& places, std::int64_t alphabet) {
  const auto marker = static_cast<std::size_t>(alphabet + 1), channels = marker + 1, kept = places.size();
  std::vector<std::string> names;
  for (std::size_t symbol = 0; symbol < channels; ++symbol) names.push_back("symbol " + std::to_string(symbol));
  set_width(sequence, std::move(names));
  add_target(sequence, TargetKind::classify, 1);
  sequence.classes = static_cast<std::int64_t>(channels);
  const auto length = static_cast<std::size_t>(sequence.length);
  std::vector<std::size_t> shown(length, 0);
  Rng draw = rng.split("symbols");
  for (std::size_t i = 0; i < kept; ++i) {
    const std::size_t end = length - kept + i;
    shown[places[i]] = static_cast<std::size_t>(1 + draw.integer(alphabet));
    shown[end] = marker;
    sequence.target[end] = static_cast<double>(shown[places[i]]);
    sequence.mask[end] = 1.0;
    shown_at(sequence, end, places[i]);
  }
  for (std::size_t t = 0; t < length; ++t) sequence.input[t * channels + shown[t]] = 1.0;
}

}  // namespace reclab
