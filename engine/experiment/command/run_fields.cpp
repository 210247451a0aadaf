// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/command/run_fields.h"

#include <utility>

#include "experiment/command/command.h"
#include "experiment/training/learned.h"
#include "files/archive.h"

namespace reclab {
namespace {

constexpr std::int64_t longest = std::int64_t{1} << 40;

std::vector<PlanField<RunSettings>> made_settings() {
  using Run = RunSettings;
  std::vector<PlanField<Run>> all;
  auto seed = text_field<Run>(
      "--seed", "N", "seed", "Of the weights (1), and of the task where that has none of its own",
      [](const Run& run) { return std::to_string(run.seed); }, [](Run& run, const std::string& text) { run.seed = seed_of(text); });
  seed.wanted = wanted_seed;
  all.push_back(std::move(seed));
  const auto choice = [&](std::string flag, std::string argument, HyperSpec row, auto of) {
    all.push_back(plan_field<Run, std::string>(std::move(flag), std::move(argument), std::move(row), of));
    all.back().usual = "";
    if (!all.back().row.choices.empty()) all.back().wanted = wanted_one_of(all.back().row.choices);
  };
  choice("--device", "D",
         hyper_choice("device", {}, {"auto", "cpu", "cuda"},
                      "auto, cpu or cuda (auto: cuda for float32 that is large enough, where there is a device)"),
         [](auto& run) -> auto& { return run.device; });
  all.back().row.standard = std::string("auto");
  choice("--dtype", "TYPE", hyper_choice("dtype", {}, {"f32", "f64"}, "f32 or f64 (f64)"), [](auto& run) -> auto& { return run.dtype; });
  choice("--form", "FORM", hyper_choice("form", {}, {}, "An exact form of the preset, or auto (sequential)"),
         [](auto& run) -> auto& { return run.form; });
  PlanField<Run> loss;
  loss.row = hyper_choice("loss", "auto", {"auto", "last", "mean", "task"}, "last, mean or task (task where there is a target, else last)");
  loss.wanted = wanted_one_of(loss.row.choices);
  loss.usual = "";
  loss.flag = "--loss";
  loss.argument = "L";
  loss.get = [](const Run& run) { return HyperValue(std::string(to_string(run.loss))); };
  loss.set = [](Run& run, const HyperValue& value) { run.loss = loss_kind(std::get<std::string>(value)).value_or(LossKind::automatic); };
  all.push_back(std::move(loss));
  return all;
}

std::string weights_of(const RunRequest& request) {
  if (request.learned) return request.learned->folder + "/weights.safetensors";
  const bool brought = request.preset.is_trained && request.weights == request.preset.trained->weights;
  return brought ? std::string() : request.weights.string();
}

std::vector<PlanField<RunRequest>> made() {
  using Run = RunRequest;
  std::vector<PlanField<Run>> all;
  auto set = list_field<Run>(
      "--set", "set", Field::Says::texts, "A hyper-parameter; `reclab show ID` lists them",
      [](const Run& run) { return names_of_pairs(run.set); },
      [](Run& run, const std::vector<std::string>& names) {
        run.set.clear();
        for (const std::string& name : names) run.set.push_back(pair_of(name));
      });
  set.wanted = wanted_pair("width=64");
  all.push_back(std::move(set));
  PlanField<Run> trained;
  trained.row = hyper_flag("trained", false,
                           "With the trained weights that the preset brings, on the sequence of their training; `reclab list` names the "
                           "presets that have them");
  trained.flag = "--trained";
  trained.get = [](const Run& run) { return HyperValue(run.preset.is_trained); };
  trained.set = [](Run& run, const HyperValue& value) {
    if (std::get<bool>(value)) use_trained(run);
  };
  all.push_back(std::move(trained));
  all.push_back(text_field<Run>("--weights", "FILE", "weights",
                                archive_format_names() + " file, names as on the card (with or without param/) or of the reference "
                                                         "implementation; FILE:PART is what stands below a prefix",
                                weights_of, [](Run& run, const std::string& text) { run.weights = text; }));
  PlanField<Run> new_head;
  new_head.row = hyper_flag("new_head", false, "The head is drawn, and not taken from the weights, which may be of another target");
  new_head.flag = "--new-head";
  new_head.get = [](const Run& run) { return HyperValue(run.new_head); };
  new_head.set = [](Run& run, const HyperValue& value) { run.new_head = std::get<bool>(value); };
  all.push_back(std::move(new_head));
  all.push_back(text_field<Run>(
      "--state", "FILE", "state", archive_format_names() + " file to start from, as state.npz of an export",
      [](const Run& run) { return run.state.string(); }, [](Run& run, const std::string& text) { run.state = text; }));
  for (const PlanField<RunSettings>& field : run_settings_fields()) all.push_back(of_derived<Run>(field));
  auto every =
      count_field<Run>("--every", "K", "every", 1, longest, "Record every K-th step", [](auto& run) -> auto& { return run.every; });
  every.usual = "chosen by the memory it takes";
  all.push_back(std::move(every));
  auto record = list_field<Run>(
      "--record", "record", Field::Says::list, "all, or keys of trace.npz or their beginnings, as state,gate/0",
      [](const Run& run) { return record_of(run.recording); },
      [](Run& run, const std::vector<std::string>& names) { run.recording = recording_of(names); });
  record.wanted = [](std::string_view name) {
    if (name == "all" || is_recorded_name(name)) return std::string();
    return "all, or names that begin with " + listed(recorded_names(), "or");
  };
  all.push_back(std::move(record));
  return all;
}

}  // namespace

const std::vector<PlanField<RunSettings>>& run_settings_fields() {
  static const std::vector<PlanField<RunSettings>> all = made_settings();
  return all;
}

const std::vector<PlanField<RunRequest>>& run_fields() {
  static const std::vector<PlanField<RunRequest>> all = made();
  return all;
}

}  // namespace reclab
