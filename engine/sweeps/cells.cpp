// SPDX-License-Identifier: GPL-3.0-or-later
#include "sweeps/cells.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "array/error.h"
#include "experiment/command/command.h"
#include "experiment/command/run_fields.h"
#include "files/files.h"
#include "files/json.h"
#include "models/registry.h"

namespace reclab {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

/// "seed 3, set.width 8"
std::string text_of(const SweepPlan& plan, std::int64_t index) {
  const std::vector<HyperValue> at = plan.values(index);
  std::string text;
  for (std::size_t i = 0; i < at.size(); ++i) text += (i ? ", " : "") + plan.axes[i].name + " " + printable(as_text(at[i]));
  return text;
}

double number_of_json(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const double infinity = std::numeric_limits<double>::infinity();
  return json == "inf" ? infinity : json == "-inf" ? -infinity : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

const std::string& CellNames::hash_of(const std::string& file) {
  std::string& hash = hashes_[file];
  if (hash.empty()) hash = sha256_of_file(file.substr(0, fs::exists(file) ? file.size() : file.rfind(':')));  // FILE:PART
  return hash;
}

const Hyper& CellNames::own_hyper(const Preset& preset) {
  const auto key = std::pair(preset.id, preset.is_trained);
  const auto found = hypers_.find(key);
  return found != hypers_.end() ? found->second : hypers_.emplace(key, hyper_of(builtin_registry(), preset)).first->second;
}

/// Settings that are not the preset's own, each once, by their keys.
void CellNames::shorten(RunRequest& request) {
  const Hyper &own = own_hyper(request.preset), all = hyper_of(builtin_registry(), request.preset, request.set);
  std::map<std::string, std::string> settings;
  for (const auto& [key, text] : request.set) {
    const std::string value = all.text(key);
    if (value != own.text(key)) settings[key] = value;
  }
  request.set.assign(settings.begin(), settings.end());
}

SweepCell CellNames::cell(const TypedRun& run) {
  const Preset& preset = presets_.find(run.id);
  SweepCell cell;
  cell.words = {"reclab", run.trains ? "train" : "run"};
  const auto add = [&](const std::vector<std::string>& words) { cell.words.insert(cell.words.end(), words.begin(), words.end()); };
  std::vector<std::string> files{preset.file.string()};
  const auto shortened = [&](RunRequest& request) {
    shorten(request);
    if (request.preset.is_trained) files.push_back(request.preset.trained->weights.string());
  };
  if (run.trains) {
    TrainingRequest request = training_request_of(run.given, preset);
    shortened(request.run);
    add(arguments_of(request));
  } else {
    RunRequest request = request_of(run.given, preset);
    const SequenceChoice choice = sequence_of(run.given, request.preset, request.preset.task_length);
    refuse_misplaced(run.given, sequence_fields(), choice);
    shortened(request);
    CommandLine line;
    line.word(run.id);
    line.sequence(choice, request.seed);
    line.fields(run_fields(), request);
    add(line.words());
  }
  for (const std::string& flag : file_flags())
    if (is_given(run.given, flag)) files.push_back(run.given.at(flag));
  std::string text;
  for (const std::string& word : cell.words) text += word + '\n';
  for (const std::string& file : files) text += hash_of(file) + '\n';
  cell.name = sha256_hex(text).substr(0, digits_of_name);
  return cell;
}

void SweepFolder::write(const fs::path& folder, const SweepPlan& plan, const PresetLibrary& presets) {
  std::error_code none;
  if (fs::exists(folder, none) && fs::is_directory(folder, none) && !fs::is_empty(folder, none) &&
      !fs::exists(folder / "cells.jsonl", none))
    throw Error(folder.string() + " has files that are of no sweep; give a new folder.", {.file = folder.string()});
  CellNames names(presets);
  AtomicFolder made(folder);
  AtomicFile& lines = made.file("cells.jsonl");
  for (std::int64_t i = 0; i < plan.cells(); ++i) {
    try {
      const SweepCell cell = names.cell(plan.line(i));
      lines.write(Json{{"cell", cell.name}, {"argv", cell.words}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    } catch (const Error& error) {
      throw Error("cell " + std::to_string(i) + " (" + text_of(plan, i) + ") cannot be: " + error.sentence(), error.where());
    }
  }
  made.file("plan.json").write(plan.json);
  made.commit();
}

SweepFolder::SweepFolder(fs::path folder) : folder_(std::move(folder)) {
  const fs::path file = folder_ / "plan.json";
  std::error_code none;
  if (!fs::exists(file, none)) throw Error(folder_.string() + " is no folder of a sweep: it has no plan.json.", {.file = folder_.string()});
  plan_ = sweep_plan(read_file(file), file.string());
}

void SweepFolder::check(std::int64_t index) const {
  if (index < 0 || index >= size())
    throw Error("There is no cell " + std::to_string(index) + " in " + folder_.string() + ": they have the numbers 0 to " +
                    std::to_string(size() - 1) + ".",
                {.file = folder_.string(), .value = std::to_string(index)});
}

SweepCell SweepFolder::cell(std::int64_t index) const {
  check(index);
  CellReader reader(*this);
  for (std::int64_t i = 0; i < index; ++i) reader.skip();
  return *reader.next();
}

std::optional<CellResult> SweepFolder::result(const SweepCell& cell) const {
  const fs::path file = place(cell) / "result.json";
  std::error_code none;
  if (!fs::exists(file, none)) return {};
  const Json json = Json::parse(read_file(file), nullptr, false);
  if (!json.is_object() || json.value("cell", Json()) != cell.name || json.value("exit", Json()) != 0) return {};
  const Json measures = json.value("measures", Json::object()), seconds = json.value("seconds", Json());
  if (!measures.is_object() || !seconds.is_number()) return {};
  CellResult result{.diverged = json.value("status", Json()) == "diverged", .measures = {}, .seconds = seconds.get<double>()};
  for (const auto& [key, value] : measures.items()) result.measures[key] = number_of_json(value);
  const bool all = std::ranges::all_of(plan_.measures, [&](const std::string& one) { return result.measures.contains(one); });
  return all ? std::optional(std::move(result)) : std::nullopt;
}

CellReader::CellReader(const SweepFolder& folder)
    : file_(folder.path() / "cells.jsonl"), stream_(file_, std::ios::binary), size_(folder.size()) {
  if (!stream_) throw Error(file_.string() + " cannot be read: " + std::system_category().message(errno) + ".", {.file = file_.string()});
}

void CellReader::damaged(const std::string& why) const {
  const std::string place = "line " + std::to_string(index_ + 1);
  throw Error(file_.string() + ": " + place + " " + why + "; make it anew from the plan.", {.file = file_.string(), .place = place});
}

void CellReader::skip() {
  stream_.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  if (!stream_) damaged("is missing");
  ++index_;
}

std::optional<SweepCell> CellReader::next() {
  if (index_ == size_) return {};
  std::string line;
  if (!std::getline(stream_, line)) damaged("is missing");
  const Json json = Json::parse(line, nullptr, false);
  const Json name = json.is_object() ? json.value("cell", Json()) : Json(), words = json.is_object() ? json.value("argv", Json()) : Json();
  const auto is_text = [](const Json& one) { return one.is_string(); };
  // The name becomes a path.
  if (!name.is_string() || name.get_ref<const std::string&>().find_first_not_of("0123456789abcdef") != std::string::npos ||
      !words.is_array() || !std::ranges::all_of(words, is_text))
    damaged("is no cell");
  return SweepCell{.index = index_++, .name = name.get<std::string>(), .words = words.get<std::vector<std::string>>()};
}

}  // namespace reclab
