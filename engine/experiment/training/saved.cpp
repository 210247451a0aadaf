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

/// The columns of the history: of every step, and of every evaluation.
struct HistoryColumn {
  const char* name;
  double (*of)(const TrainingStep& step);
  void (*put)(TrainingStep& step, double value);
};
constexpr HistoryColumn columns[] = {
    {"step", [](const TrainingStep& s) { return static_cast<double>(s.step); },
     [](TrainingStep& s, double v) { s.step = static_cast<std::int64_t>(v); }},
    {"loss", [](const TrainingStep& s) { return s.loss; }, [](TrainingStep& s, double v) { s.loss = v; }},
    {"rate", [](const TrainingStep& s) { return s.rate; }, [](TrainingStep& s, double v) { s.rate = v; }},
    {"gradient_norm", [](const TrainingStep& s) { return s.norm; }, [](TrainingStep& s, double v) { s.norm = v; }},
    {"clipped_norm", [](const TrainingStep& s) { return s.clipped; }, [](TrainingStep& s, double v) { s.clipped = v; }},
    {"gate_penalty", [](const TrainingStep& s) { return s.gate_penalty; }, [](TrainingStep& s, double v) { s.gate_penalty = v; }}};
/// All, or all but the last where gates have no penalty.
std::span<const HistoryColumn> columns_of(const TrainingPlan& plan) {
  return std::span(columns).first(std::size(columns) - (plan.options.gate_penalty > 0.0 ? 0 : 1));
}
struct JudgementColumn {
  const char* name;
  double (*of)(const Evaluation& judgement);
  void (*put)(Evaluation& judgement, double value);
};
constexpr JudgementColumn judged_columns[] = {
    {"held_out/step", [](const Evaluation& j) { return static_cast<double>(j.step); },
     [](Evaluation& j, double v) { j.step = static_cast<std::int64_t>(v); }},
    {"held_out/loss", [](const Evaluation& j) { return j.loss; }, [](Evaluation& j, double v) { j.loss = v; }},
    {"held_out/metric", [](const Evaluation& j) { return j.metric; }, [](Evaluation& j, double v) { j.metric = v; }}};

void add(NpzWriter& archive, const std::string& name, const std::vector<double>& values) {
  archive.add(name, {std::ssize(values)}, std::span<const double>(values));
}

void write_history_npz(const Training& training, AtomicFile& file) {
  NpzWriter archive(file);
  std::vector<double> values;
  for (const HistoryColumn& column : columns_of(training.request())) {
    values.clear();
    for (const TrainingStep& step : training.history()) values.push_back(column.of(step));
    add(archive, column.name, values);
  }
  for (const JudgementColumn& column : judged_columns) {
    values.clear();
    for (const Evaluation& judgement : training.evaluations()) values.push_back(column.of(judgement));
    add(archive, column.name, values);
  }
  for (std::size_t i = 0; i < training.model().weights().size(); ++i) {
    values.clear();
    for (const auto& changes : training.changes()) values.push_back(changes[i]);
    add(archive, "change/" + training.model().weights()[i].name, values);
  }
  archive.finish();
}

/// A line a step, with the evaluation after it.
void write_history_csv(const Training& training, AtomicFile& file) {
  std::string text;
  const auto of_steps = columns_of(training.request());
  for (const HistoryColumn& column : of_steps) text += (text.empty() ? "" : ",") + std::string(column.name);
  text += ",held_out_loss,held_out_" + std::string(training.trainer().metric() == "accuracy" ? "accuracy" : "squared_error") + '\n';
  auto judged = training.evaluations().begin();
  const auto judgement_of = [&](std::int64_t step) {
    while (judged != training.evaluations().end() && judged->step < step) ++judged;
    text += ',';
    const bool there = judged != training.evaluations().end() && judged->step == step;
    if (there) append_number(text, judged->loss);
    text += ',';
    if (there) append_number(text, judged->metric);
    text += '\n';
  };
  if (!training.evaluations().empty()) {
    text += "0" + std::string(of_steps.size() - 1, ',');
    judgement_of(0);
  }
  for (const TrainingStep& step : training.history()) {
    text += std::to_string(step.step);
    for (const HistoryColumn& column : of_steps.subspan(1)) {
      text += ',';
      append_number(text, column.of(step));
    }
    judgement_of(step.step);
  }
  file.write(text);
}

Json judgement_json(const Evaluation& judgement) {
  return {{"step", judgement.step}, {"loss", judgement.loss}, {"metric", judgement.metric}};
}

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
  throw Error(file.string() + " " + what + ": give the folder of a training that `reclab train --export` wrote.", {.file = file.string()});
}

constexpr const char* exported_files[] = {"weights.npz", "weights.safetensors", "optimiser.npz", "history.csv", "history.npz"};
constexpr std::int64_t most = std::int64_t{1} << 40;  ///< steps of a training
constexpr std::uint64_t longest_manifest = std::uint64_t{16} << 20;

/// training.json; whether it vouches for the other files is not asked.
Json parse_manifest(const std::filesystem::path& folder) {
  const auto file = folder / manifest;
  if (InputFile(file).size() > longest_manifest) fail(file, "is too long to be one of a training");
  std::optional<std::string> twice;
  Json json;
  try {
    json = parse_json<Json>(read_file(file), twice);
    if (twice) fail(file, "has " + printable(*twice) + " twice");
    if (const auto text = with_control_character(json)) fail(file, "has a control character in \"" + printable(*text) + "\"");
    if (json.at("schema").get<int>() != schema) fail(file, "is of another version");
  } catch (const Json::exception&) {
    fail(file, "cannot be read");
  }
  return json;
}

/// A whole number from 0 to `most`. A JSON number may be any, and one that is cast could become any other.
std::int64_t count_of(const Json& json, const char* key, const std::filesystem::path& file) {
  const auto found = json.find(key);
  if (found == json.end()) fail(file, "does not say where the training stands");
  const bool whole = found->is_number_unsigned() ? found->get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                                                 : found->is_number_integer() && found->get<std::int64_t>() >= 0;
  if (!whole)
    fail(file, "has " + std::string(key) + " = " + printable(found->dump()) + ", which is no number from 0 to " + std::to_string(most));
  return found->get<std::int64_t>();
}

Json read_manifest(const std::filesystem::path& folder) {
  const auto file = folder / manifest;
  Json json = parse_manifest(folder);
  try {
    std::map<std::string, const Json*> named;
    for (const Json& one : json.at("files")) {
      const std::string name = one.at("name").get<std::string>();
      if (std::ranges::find(exported_files, name) == std::end(exported_files))
        fail(file, "names " + printable(name) + ", which is no file of a training");
      if (!named.emplace(name, &one).second) fail(file, "names " + name + " twice");
      one.at("sha256").get<std::string>();
    }
    for (const char* name : exported_files)
      if (!named.contains(name)) fail(file, "does not name " + std::string(name));
    // All sizes before the first hash: a file that is too long is not read to its end.
    for (const auto& [name, one] : named) {
      const Json& bytes = one->at("bytes");
      if (!bytes.is_number_unsigned() || InputFile(folder / name).size() != bytes.get<std::uint64_t>())
        fail(folder / name, "has changed since it was written");
    }
    for (const auto& [name, one] : named)
      if (sha256_of_file(folder / name) != one->at("sha256").get<std::string>()) fail(folder / name, "has changed since it was written");
  } catch (const Json::exception&) {
    fail(file, "cannot be read");
  }
  return json;
}

void write_training(const Training& training, AtomicFolder& out) {
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
    for (const auto& entry : weights.entries())
      archive.add(prefix_of(Kind::param) + entry.name, entry.shape, std::span<const double>(entry.values));
    archive.finish();
  });
  write("weights.safetensors", [&](AtomicFile& file) {
    std::vector<SafetensorsEntry> entries;
    for (const auto& entry : weights.entries()) entries.push_back({entry.name, entry.shape, entry.values});
    write_safetensors(file, entries, single);
  });
  write("optimiser.npz", [&](AtomicFile& file) {
    NpzWriter archive(file);
    for (const auto& [name, values] : training.trainer().memory()) add(archive, name, values);
    archive.finish();
  });
  write("history.csv", [&](AtomicFile& file) { write_history_csv(training, file); });
  write("history.npz", [&](AtomicFile& file) { write_history_npz(training, file); });
  const Trainer& trainer = training.trainer();
  Json json = {{"schema", schema}, {"version", RECLAB_VERSION}, {"preset", training.request().run.preset.id}, {"title", training.title()}};
  json["command"] = command_of(training.request());
  json["arguments"] = arguments_of(training.request());
  json["learns_from"] = training.examples().text();
  if (training.request().from.is_file()) json["input_sha256"] = sha256_of_file(training.request().from.file);
  json["device"] = training.device();
  json["steps"] = trainer.steps();
  json["changes"] = trainer.optimiser().steps();
  json["held_out"] = trainer.held_out();
  json["metric"] = trainer.metric();
  const auto baseline_json = [](const Baseline& baseline) {
    return Json{{"loss", baseline.loss}, {"metric", baseline.metric}, {"text", baseline.text}};
  };
  json["baseline"] = baseline_json(trainer.baseline());
  if (trainer.linear_predictor()) json["linear_predictor"] = baseline_json(*trainer.linear_predictor());
  if (!training.evaluations().empty()) json["last"] = judgement_json(training.evaluations().back());
  json["files"] = Json::array();
  for (const WrittenFile& file : files) json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  write(manifest, [&](AtomicFile& file) { file.write(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"); });
}

}  // namespace

void export_training(const Training& training, const std::filesystem::path& folder) {
  AtomicFolder out(folder);
  write_training(training, out);
  out.commit();
}

void check_export(const Training& training, const std::filesystem::path& folder) {
  AtomicFolder out(folder);
  write_training(training, out);
}

TrainingFolder training_in(const std::filesystem::path& folder) {
  std::error_code none;
  if (const auto status = std::filesystem::status(folder, none); std::filesystem::exists(status) && !std::filesystem::is_directory(status))
    throw Error(folder.string() + " is a file: give a folder.", {.file = folder.string()});
  const auto there = [&](const char* name) { return std::filesystem::exists(std::filesystem::symlink_status(folder / name, none)); };
  if (there(manifest)) {
    try {
      return {.holds = TrainingFolder::Holds::training,
              .steps = count_of(parse_manifest(folder), "steps", folder / manifest),
              .file = manifest};
    } catch (const Error&) {  // of another version, say, or damaged: it is a training's all the same, and not ours to replace
      return {.holds = TrainingFolder::Holds::training, .steps = 0, .file = manifest};
    }
  }
  for (const char* name : exported_files)
    if (there(name)) return {.holds = TrainingFolder::Holds::other, .steps = 0, .file = name};
  return {};
}

std::vector<std::string> arguments_in(const std::filesystem::path& folder) {
  const Json json = read_manifest(folder);
  try {
    return json.at("arguments").get<std::vector<std::string>>();
  } catch (const Json::exception&) {
    fail(folder / manifest, "has no arguments");
  }
}

std::unique_ptr<Training> resume(const Registry& registry, const TrainingRequest& request, const std::filesystem::path& folder) {
  const Json json = read_manifest(folder);
  const NpzFile weights(folder / "weights.npz"), optimiser(folder / "optimiser.npz"), history(folder / "history.npz");
  // What an array is, its header says; a small archive may hold one of any size.
  const auto is_real = [](const NpzFile& archive, const std::string& name, const Shape& shape) {
    const NpyHeader header = archive.header(name);
    return header.shape == shape && header.kind == 'f';
  };
  auto resumed = std::make_unique<Training>(registry, request, [&](const Network& network) {
    Parameters kept = network.undrawn();
    for (auto& weight : kept.entries()) {
      const std::string name = prefix_of(Kind::param) + weight.name;
      if (!is_real(weights, name, weight.shape)) fail(folder / "weights.npz", "holds weights of another shape");
      weight.values = weights.read(name).real;
    }
    return kept;
  });
  Training& training = *resumed;
  const std::int64_t steps = count_of(json, "steps", folder / manifest), changes = count_of(json, "changes", folder / manifest);
  if (changes > 0 && (steps == 0 || (changes - 1) / steps >= training.trainer_->changes_per_step()))
    fail(folder / manifest,
         "has " + std::to_string(changes) + " changes of the weights in " + std::to_string(steps) + " steps, which are too many");
  try {
    if (training.request().from.is_file() && json.at("input_sha256").get<std::string>() != sha256_of_file(training.request().from.file))
      throw Error(training.request().from.file + " has changed since it was learned from: begin anew, or bring back the file.",
                  {.file = training.request().from.file});
  } catch (const Json::exception&) {
    fail(folder / manifest, "does not say what was learned from");
  }
  const auto kept = training.trainer().memory_entries();
  for (const auto& [name, entries] : kept)
    if (!is_real(optimiser, name, {entries})) fail(folder / "optimiser.npz", "has " + name + " of another shape");
  if (optimiser.names().size() != kept.size()) fail(folder / "optimiser.npz", "holds more than this training keeps of its weights");

  const auto column = [&](const std::string& name, std::int64_t entries, const std::string& what) {
    if (!is_real(history, name, {entries})) fail(folder / "history.npz", "has another number of " + what);
    return history.read(name).real;
  };
  std::vector<TrainingStep> made;
  for (const HistoryColumn& one : columns_of(training.request())) {
    const auto values = column(one.name, steps, "steps than training.json");
    made.resize(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (&one == columns && values[i] != static_cast<double>(i + 1)) fail(folder / "history.npz", "does not count its steps from 1 on");
      one.put(made[i], values[i]);
    }
  }
  const Shape judged_shape = history.header(judged_columns[0].name).shape;
  const std::int64_t judgements = judged_shape.size() == 1 ? judged_shape[0] : -1;
  if (judgements < 0 || judgements > steps + 1) fail(folder / "history.npz", "has more judgements than steps");
  std::vector<Evaluation> judged(static_cast<std::size_t>(judgements));
  for (const JudgementColumn& one : judged_columns) {
    const auto values = column(one.name, judgements, "judgements in each of its arrays");
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double least = i == 0 ? 0.0 : static_cast<double>(judged[i - 1].step) + 1.0;
      if (&one == judged_columns && !(values[i] >= least && values[i] <= static_cast<double>(steps) && values[i] == std::floor(values[i])))
        fail(folder / "history.npz", "has judgements of steps that were not made");
      one.put(judged[i], values[i]);
    }
  }
  std::vector<std::vector<double>> changed(judged.empty() ? 0 : judged.size() - 1, std::vector<double>(training.model().weights().size()));
  for (std::size_t i = 0; i < training.model().weights().size(); ++i) {
    const auto values = column("change/" + training.model().weights()[i].name, std::ssize(changed), "judgements than of changes");
    for (std::size_t j = 0; j < values.size(); ++j) changed[j][i] = values[j];
  }
  std::map<std::string, std::vector<double>> memory;
  for (const auto& [name, entries] : kept) memory.emplace(name, optimiser.read(name).real);
  training.trainer_->restore(steps, changes, memory);
  training.history_ = std::move(made);
  training.evaluations_ = std::move(judged);
  training.changes_ = std::move(changed);
  return resumed;
}

}  // namespace reclab
