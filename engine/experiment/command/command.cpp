// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/command/command.h"

#include <algorithm>

#include "experiment/command/run_fields.h"
#include "experiment/training/learned.h"

namespace reclab {
namespace {
constexpr std::string_view time_axis = "time";  // is in every export, so it may be named
}  // namespace

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

void CommandLine::option(const std::string& name, const std::string& value) {
  if (value.starts_with('-')) return word(name + "=" + value);
  word(name);
  word(value);
}

void CommandLine::field(const Field& field, const HyperValue& value) {
  for (const std::string& one : words_of(field, value)) word(one);
}

void CommandLine::sequence(const SequenceChoice& choice, std::uint64_t seed) {
  for (const PlanField<SequenceChoice>& one : sequence_fields())
    if (is_of(one, choice) && !(one.row.key == "seed" && choice.make.seed == seed)) field(one, one.get(choice));
}

void CommandLine::model(const RunRequest& request, const std::string& device, const std::set<std::string_view>& without) {
  word(request.preset.id);
  if (const SequenceChoice choice = choice_of(request.sequence); choice.is_file() || !choice.task.empty()) sequence(choice, request.seed);
  RunRequest told = request;
  const bool single = request.dtype == "f32" || request.dtype == "float32";
  told.dtype = single ? "f32" : "f64";
  // Nothing said is auto, which is the CPU wherever precision is float64.
  told.device = device != "cpu" || single ? device : "auto";
  fields(run_fields(), told, without);
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
  line.model(request, device, {});
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
