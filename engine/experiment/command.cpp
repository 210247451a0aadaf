// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/command.h"

#include <algorithm>

#include "experiment/training/learned.h"

namespace reclab {
namespace {

constexpr std::string_view time_axis = "time";  // is in every export, so it may be named

/// What --record has to name for a recording that names no arrays; nothing where all are kept.
std::vector<std::string> record_of(const RecordingOptions& recording) {
  if (!recording.only.empty()) return recording.only;
  if (recording.kinds.has_all(recordable())) return {};
  std::vector<std::string> names;
  Kinds said;
  for (const KindInfo& row : kind_table()) {
    if (!recording.kinds.has(row.kind) || said.has(row.kind)) continue;
    // A name stands for every kind that begins with it, with a slash for its own alone.
    Kinds alike;
    for (const KindInfo& other : kind_table())
      if (other.name.starts_with(row.name)) alike.add({other.kind});
    const bool all = recording.kinds.has_all(alike);
    names.push_back(all ? std::string(row.name) : prefix_of(row.kind));
    said.add(all ? alike : Kinds{row.kind});
  }
  return names;
}

}  // namespace

void CommandLine::option(const std::string& name, const std::string& value) {
  if (value.starts_with('-')) return word(name + "=" + value);
  word(name);
  word(value);
}

void CommandLine::list(const std::string& name, const std::vector<std::string>& values) {
  for (const std::string& value : values) option(name, list_of_names({value}));
}

void CommandLine::field(const Field& field, const HyperValue& value) {
  for (const std::string& one : words_of(field, value)) word(one);
}

void CommandLine::task(const std::string& name, const TaskOptions& made, bool standardised, std::uint64_t seed) {
  option("--task", name);
  option("--length", static_cast<std::uint64_t>(made.length));
  if (made.seed != seed) option("--task-seed", made.seed);
  for (const auto& [key, value] : made.set) option("--task-set", key + "=" + value);
  if (standardised) option("--standardise", "yes");
}

void CommandLine::file(const std::string& name, const LoadOptions& load, bool standardised) {
  option("--input", name);
  list("--columns", load.columns);
  if (load.time) option("--time", *load.time);
  list("--target", load.target);
  if (load.missing != Missing::refuse) option("--missing", std::string(to_string(load.missing)));
  if (!standardised) option("--standardise", "no");
}

void CommandLine::changes(const RunRequest& request) {
  for (const auto& [key, value] : request.set) option("--set", key + "=" + value);
  if (request.preset.is_trained) word("--trained");
  if (request.learned)
    option("--weights", request.learned->folder + "/weights.safetensors");
  else if (!request.weights.empty() && !(request.preset.is_trained && request.weights == request.preset.trained->weights))
    option("--weights", request.weights.string());
}

void CommandLine::model(const RunRequest& request, const std::string& device) {
  word(request.preset.id);
  const Sequence& sequence = request.sequence;
  if (!sequence.task.empty())
    task(sequence.task, sequence.made, sequence.standardised, request.seed);
  else if (!sequence.source.empty())
    file(sequence.source, sequence.load, sequence.standardised);
  changes(request);
  if (!request.state.empty()) option("--state", request.state.string());
  option("--seed", request.seed);
  // Nothing said is auto, which is the CPU wherever precision is float64.
  const bool single = request.dtype == "f32" || request.dtype == "float32";
  if (device != "cpu" || single) option("--device", device);
  if (single) option("--dtype", "f32");
}

std::string CommandLine::text(const std::string& command) const {
  std::string text = command;
  for (const std::string& one : words_) {
    const std::size_t equals = one.starts_with('-') ? one.find("=-") : std::string::npos;
    text += ' ' + (equals == std::string::npos ? shell_word(one) : one.substr(0, equals + 1) + shell_word(one.substr(equals + 1)));
  }
  return text;
}

std::string command_of(const RunRequest& request, const std::string& device) {
  CommandLine line;
  line.model(request, device);
  if (request.form != "sequential") line.option("--form", request.form);
  if (request.loss != LossKind::automatic) line.option("--loss", to_string(request.loss));
  if (request.every > 0) line.option("--every", static_cast<std::uint64_t>(request.every));
  std::string record;
  for (const std::string& name : record_of(request.recording)) record += (record.empty() ? "" : ",") + name;
  if (!record.empty()) line.option("--record", record);
  const std::string text = line.text("reclab run");
  return request.learned ? request.learned->command + " && " + text : text;
}

std::vector<std::string> recorded_names() {
  std::vector<std::string> names;
  for (const KindInfo& row : kind_table())
    if (recordable().has(row.kind)) names.emplace_back(row.name);
  names.emplace_back(time_axis);
  return names;
}

bool is_recorded_name(std::string_view name) {
  return name == time_axis || std::ranges::any_of(kind_table(), [&](const KindInfo& row) {
           return recordable().has(row.kind) && row.name == name.substr(0, name.find('/'));
         });
}

RecordingOptions recording_of(const std::vector<std::string>& record) {
  RecordingOptions recording;
  if (record.empty() || (record.size() == 1 && record[0] == "all")) return recording;
  recording.only = record;
  recording.kinds = {};
  for (const KindInfo& row : kind_table()) {
    const std::string prefix = prefix_of(row.kind);
    if (recordable().has(row.kind) &&
        std::ranges::any_of(record, [&](const std::string& name) { return name.starts_with(prefix) || prefix.starts_with(name); }))
      recording.kinds.add({row.kind});
  }
  return recording;
}

std::string shell_word(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace reclab
