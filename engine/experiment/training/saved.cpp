// SPDX-License-Identifier: GPL-3.0-or-later
// The folder of a training.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "experiment/training/training.h"
#include "files/files.h"
#include "files/json.h"
#include "files/npz.h"
#include "files/safetensors.h"
#include "trace/kinds.h"
#include "trace/writers.h"

namespace reclab {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* manifest = "training.json";
constexpr int schema = 1;

/// The columns of the history: of every step, and of every judgement.
struct HistoryColumn {
  const char* name;
  double (*of)(const TrainingStep& step);
  void (*put)(TrainingStep& step, double value);
};
constexpr HistoryColumn columns[] = {
    {"step", [](const TrainingStep& s) { return static_cast<double>(s.step); }, [](TrainingStep& s, double v) { s.step = static_cast<std::int64_t>(v); }},
    {"loss", [](const TrainingStep& s) { return s.loss; }, [](TrainingStep& s, double v) { s.loss = v; }},
    {"rate", [](const TrainingStep& s) { return s.rate; }, [](TrainingStep& s, double v) { s.rate = v; }},
    {"gradient_norm", [](const TrainingStep& s) { return s.norm; }, [](TrainingStep& s, double v) { s.norm = v; }},
    {"clipped_norm", [](const TrainingStep& s) { return s.clipped; }, [](TrainingStep& s, double v) { s.clipped = v; }}};
struct JudgementColumn {
  const char* name;
  double (*of)(const Judgement& judgement);
  void (*put)(Judgement& judgement, double value);
};
constexpr JudgementColumn judged_columns[] = {
    {"held_out/step", [](const Judgement& j) { return static_cast<double>(j.step); }, [](Judgement& j, double v) { j.step = static_cast<std::int64_t>(v); }},
    {"held_out/loss", [](const Judgement& j) { return j.loss; }, [](Judgement& j, double v) { j.loss = v; }},
    {"held_out/metric", [](const Judgement& j) { return j.metric; }, [](Judgement& j, double v) { j.metric = v; }}};

void add(NpzWriter& archive, const std::string& name, const std::vector<double>& values) {
  archive.add(name, {std::ssize(values)}, std::span<const double>(values));
}

void write_history_npz(const Training& training, AtomicFile& file) {
  NpzWriter archive(file);
  std::vector<double> values;
  for (const HistoryColumn& column : columns) {
    values.clear();
    for (const TrainingStep& step : training.history()) values.push_back(column.of(step));
    add(archive, column.name, values);
  }
  for (const JudgementColumn& column : judged_columns) {
    values.clear();
    for (const Judgement& judgement : training.judgements()) values.push_back(column.of(judgement));
    add(archive, column.name, values);
  }
  for (std::size_t i = 0; i < training.model().weights().size(); ++i) {
    values.clear();
    for (const auto& changes : training.changes()) values.push_back(changes[i]);
    add(archive, "change/" + training.model().weights()[i].name, values);
  }
  archive.finish();
}

/// A line a step, with what was judged after it.
void write_history_csv(const Training& training, AtomicFile& file) {
  std::string text;
  for (const HistoryColumn& column : columns) text += (text.empty() ? "" : ",") + std::string(column.name);
  text += ",held_out_loss,held_out_" + std::string(training.trainer().metric() == "accuracy" ? "accuracy" : "squared_error") + '\n';
  auto judged = training.judgements().begin();
  const auto judgement_of = [&](std::int64_t step) {
    while (judged != training.judgements().end() && judged->step < step) ++judged;
    text += ',';
    const bool there = judged != training.judgements().end() && judged->step == step;
    if (there) append_number(text, judged->loss);
    text += ',';
    if (there) append_number(text, judged->metric);
    text += '\n';
  };
  if (!training.judgements().empty()) {
    text += "0,,,,";
    judgement_of(0);
  }
  for (const TrainingStep& step : training.history()) {
    text += std::to_string(step.step);
    for (const HistoryColumn& column : std::span(columns).subspan(1)) {
      text += ',';
      append_number(text, column.of(step));
    }
    judgement_of(step.step);
  }
  file.write(text);
}

Json judgement_json(const Judgement& judgement) { return {{"step", judgement.step}, {"loss", judgement.loss}, {"metric", judgement.metric}}; }

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
  throw Error(file.string() + " " + what + ": give the folder of a training that `reclab train --export` wrote.", {.file = file.string()});
}

Json read_manifest(const std::filesystem::path& folder) {
  const auto file = folder / manifest;
  Json json;
  try {
    std::optional<std::string> twice;
    json = parse_json<Json>(read_file(file), twice);
    if (twice) fail(file, "has " + printable(*twice) + " twice");
    if (json.at("schema").get<int>() != schema) fail(file, "is of another version");
    for (const Json& one : json.at("files")) {
      const std::string name = one.at("name").get<std::string>();
      if (name != std::filesystem::path(name).filename()) fail(file, "names a file outside its folder");
      if (sha256_of_file(folder / name) != one.at("sha256").get<std::string>()) fail(folder / name, "has changed since it was written");
    }
  } catch (const Json::exception&) {
    fail(file, "cannot be read");
  }
  return json;
}

}  // namespace

void export_training(const Training& training, const std::filesystem::path& folder) {
  AtomicFolder out(folder);
  std::vector<WrittenFile> files;
  const auto write = [&](const std::string& name, const auto& writer) {
    AtomicFile& file = out.file(name);
    writer(file);
    files.push_back(out.finish(file));
  };
  const Parameters weights = training.model().parameters();
  const bool single = training.model().real() == DType::f32;
  write("weights.npz", [&](AtomicFile& file) {
    NpzWriter archive(file);
    for (const auto& entry : weights.entries()) archive.add(prefix_of(Kind::param) + entry.name, entry.shape, std::span<const double>(entry.values));
    archive.finish();
  });
  write("weights.safetensors", [&](AtomicFile& file) {
    std::vector<SafetensorsEntry> entries;
    for (const auto& entry : weights.entries()) entries.push_back({entry.name, entry.shape, entry.values});
    write_safetensors(file, entries, single);
  });
  write("optimiser.npz", [&](AtomicFile& file) {
    NpzWriter archive(file);
    for (const auto& [name, values] : training.trainer().optimiser().memory()) add(archive, name, values);
    archive.finish();
  });
  write("history.csv", [&](AtomicFile& file) { write_history_csv(training, file); });
  write("history.npz", [&](AtomicFile& file) { write_history_npz(training, file); });
  const Trainer& trainer = training.trainer();
  Json json = {{"schema", schema}, {"version", RECLAB_VERSION}, {"preset", training.request().run.preset.id}, {"title", training.title()}};
  json["command"] = command_of(training.request());
  json["arguments"] = arguments_of(training.request());
  json["learns_from"] = training.examples().text();
  if (!training.request().file.empty()) json["input_sha256"] = sha256_of_file(training.request().file);
  json["device"] = training.device();
  json["steps"] = trainer.steps();
  json["changes"] = trainer.optimiser().steps();
  json["held_out"] = trainer.held_out();
  json["metric"] = trainer.metric();
  const auto baseline_json = [](const Baseline& baseline) { return Json{{"loss", baseline.loss}, {"metric", baseline.metric}, {"text", baseline.text}}; };
  json["baseline"] = baseline_json(trainer.baseline());
  if (trainer.linear_predictor()) json["linear_predictor"] = baseline_json(*trainer.linear_predictor());
  if (!training.judgements().empty()) json["last"] = judgement_json(training.judgements().back());
  json["files"] = Json::array();
  for (const WrittenFile& file : files) json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  write(manifest, [&](AtomicFile& file) { file.write(json.dump(2) + "\n"); });
  out.commit();
}

std::vector<std::string> arguments_in(const std::filesystem::path& folder) {
  const Json json = read_manifest(folder);
  try {
    return json.at("arguments").get<std::vector<std::string>>();
  } catch (const Json::exception&) {
    fail(folder / manifest, "has no arguments");
  }
}

void resume(Training& training, const std::filesystem::path& folder) {
  const Json json = read_manifest(folder);
  std::int64_t steps = 0, changes = 0;
  try {
    steps = json.at("steps").get<std::int64_t>();
    changes = json.at("changes").get<std::int64_t>();
    if (!training.request().file.empty() && json.at("input_sha256").get<std::string>() != sha256_of_file(training.request().file))
      throw Error(training.request().file.string() + " has changed since it was learned from: begin anew, or bring back the file.", {.file = training.request().file.string()});
  } catch (const Json::exception&) {
    fail(folder / manifest, "does not say where the training stands");
  }
  const NpzFile weights(folder / "weights.npz"), optimiser(folder / "optimiser.npz"), history(folder / "history.npz");
  const auto of_weight = [](const Model::Weight& weight) { return prefix_of(Kind::param) + weight.name; };
  for (const Model::Weight& weight : training.model().weights())
    if (weights.header(of_weight(weight)).shape != weight.shape) fail(folder / "weights.npz", "holds weights of another shape");
  std::map<std::string, std::vector<double>> memory;
  for (const std::string& name : optimiser.names()) memory.emplace(name, optimiser.read(name).real);
  training.trainer_->restore(steps, changes, memory);
  for (const Model::Weight& weight : training.model().weights()) training.model_->set(weight.name, weights.read(of_weight(weight)).real);

  const auto column = [&](const std::string& name) { return history.read(name).real; };
  training.history_.resize(static_cast<std::size_t>(steps));
  for (const HistoryColumn& one : columns) {
    const auto values = column(one.name);
    if (std::ssize(values) != steps) fail(folder / "history.npz", "has another number of steps than training.json");
    for (std::size_t i = 0; i < values.size(); ++i) one.put(training.history_[i], values[i]);
  }
  for (const JudgementColumn& one : judged_columns) {
    const auto values = column(one.name);
    training.judgements_.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) one.put(training.judgements_[i], values[i]);
  }
  const std::size_t judged = training.judgements_.empty() ? 0 : training.judgements_.size() - 1;
  training.changes_.assign(judged, std::vector<double>(training.model().weights().size()));
  for (std::size_t i = 0; i < training.model().weights().size(); ++i) {
    const auto values = column("change/" + training.model().weights()[i].name);
    if (values.size() != judged) fail(folder / "history.npz", "has another number of judgements than of changes");
    for (std::size_t j = 0; j < judged; ++j) training.changes_[j][i] = values[j];
  }
}

}  // namespace reclab
