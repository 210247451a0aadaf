// SPDX-License-Identifier: GPL-3.0-or-later
#include "sweeps/compute.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>
#include <optional>
#include <system_error>

#include "array/error.h"
#include "experiment/command/command.h"
#include "experiment/training/training.h"
#include "files/files.h"
#include "files/parts.h"
#include "learning/learning_rule.h"
#include "measures/measure.h"
#include "models/registry.h"
#include "sweeps/lock.h"

namespace reclab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

Json json_of(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0.0 ? "inf" : "-inf";
}

/// A cell that came to its end.
struct Computed {
  bool diverged = false;
  std::string sentence{};
  std::vector<std::pair<std::string, double>> measures;
  Json course = Json::array();  ///< of a training its evaluations
};

/// The measures of the plan, of `run` or of one that is made when the first of them asks for it.
std::vector<std::pair<std::string, double>> measured(const SweepPlan& plan, const RunRequest& request,
                                                     const std::map<std::string, double>& known, std::stop_token stop,
                                                     std::optional<MeasuredRun> run = {}) {
  const Measuring measuring = [&](const std::string& name) {
    if (const auto found = known.find(name); found != known.end()) return found->second;
    if (!run) run = run_measured(request, plan.measures, stop);
    return measure(*run, name, stop);
  };
  std::vector<std::pair<std::string, double>> all;
  for (const std::string& one : plan.measures) all.emplace_back(one, value_of(one, measuring));
  return all;
}

/// The run that measures of a training are taken of.
RunRequest run_of(const TrainingRequest& training) {
  RunRequest request = training.run;
  request.sequence = load_sequence(training.from);
  request.form = "sequential";
  return request;
}

/// What the outputs say of the classes of a sequence beyond how often each is there; NaN where there are none.
double bits_of(const Training& training, const Sequence& one) {
  if (one.classes == 0) return nan;
  const double nats = training.trainer().baseline().loss - training.evaluations().back().loss;
  return std::max(0.0, nats / std::numbers::ln2) * std::reduce(one.mask.begin(), one.mask.end());
}

std::map<std::string, double> measures_of(const Training& training, const Sequence& one) {
  const Trainer& trainer = training.trainer();
  const Evaluation& last = training.evaluations().back();
  return {{"loss", last.loss},
          {"bits", bits_of(training, one)},
          {"metric", last.metric},
          {"baseline", trainer.baseline().loss},
          {"baseline_metric", trainer.baseline().metric},
          {"batch_loss", training.history().empty() ? nan : training.history().back().loss},
          {"steps", static_cast<double>(trainer.steps())}};
}

std::vector<std::pair<std::string, double>> none_of(const SweepPlan& plan) {
  std::vector<std::pair<std::string, double>> all;
  for (const std::string& one : plan.measures) all.emplace_back(one, nan);
  return all;
}

/// From its checkpoint, where there is a whole one.
std::unique_ptr<Training> begun(const TrainingRequest& request, const fs::path& checkpoint) {
  try {
    if (training_in(checkpoint).holds == TrainingFolder::Holds::training) return resume(builtin_registry(), request, checkpoint);
  } catch (const Error&) {  // of another line, or damaged: it begins anew
  }
  return std::make_unique<Training>(builtin_registry(), request);
}

Computed train(const SweepFolder& folder, const SweepCell& cell, const TypedRun& typed, const Preset& preset, std::stop_token stop) {
  const fs::path checkpoint = folder.work(cell);
  const auto made = begun(training_request_of(typed.given, preset), checkpoint);
  Training& training = *made;
  const std::int64_t begun_at = training.trainer().steps();
  Computed result;
  const auto keep = [&] {
    if (training.trainer().whole() && training.trainer().steps() > begun_at) export_training(training, checkpoint);
  };
  double wait = 60.0;  // a checkpoint that takes long is written less often
  auto last = Clock::now();
  try {
    training.begin(stop);
    while (!training.done()) {
      training.advance(stop);
      if (training.done() || seconds_since(last) < wait) continue;
      const auto begin = Clock::now();
      try {
        keep();
      } catch (const Error&) {  // a full disk may have room again before the end
      }
      last = Clock::now();
      wait = std::max(60.0, 20.0 * seconds_since(begin));
    }
    RunRequest run = run_of(training.request());
    run.learned = training.learned(1);
    result.measures = measured(folder.plan(), run, measures_of(training, *run.sequence), stop);
  } catch (const Cancelled&) {
    keep();
    throw;
  } catch (const TrainingDiverged& error) {
    result.diverged = true;
    result.sentence = error.what();
    result.measures = none_of(folder.plan());
  }
  for (const Evaluation& one : training.evaluations())
    result.course.push_back({{"step", one.step}, {"loss", json_of(one.loss)}, {"metric", json_of(one.metric)}});
  if (folder.plan().keeps_trainings && !result.diverged) export_training(training, folder.place(cell));
  return result;
}

Computed run(const SweepPlan& plan, const RunRequest& request, std::stop_token stop) {
  MeasuredRun made{.request = recording_for(request, plan.measures)};
  RunResult result = reclab::run(builtin_registry(), made.request, [](double, std::string_view) {}, stop);
  made.trace = std::move(result.trace);
  made.state = std::move(result.state);
  const RunInfo& info = made.trace->info;
  if (info.outcome == Outcome::cancelled) throw Cancelled();
  if (info.outcome != Outcome::finished) return {.diverged = true, .sentence = info.sentence, .measures = none_of(plan)};
  return {.measures = measured(plan, request, {}, stop, std::move(made))};
}

void write_result(const SweepFolder& folder, const SweepCell& cell, const Computed& computed, double seconds) {
  CommandLine line;
  for (std::size_t i = 2; i < cell.words.size(); ++i) line.word(cell.words[i]);
  Json measures = Json::object();
  for (const auto& [name, value] : computed.measures) measures[name] = json_of(value);
  Json json = {{"cell", cell.name}, {"exit", 0}, {"status", computed.diverged ? "diverged" : "done"}, {"version", RECLAB_VERSION}};
  json["line"] = line.text("reclab " + cell.words[1]);
  json["measures"] = measures;
  if (!computed.course.empty()) json["evaluations"] = computed.course;
  if (!computed.sentence.empty()) json["sentence"] = computed.sentence;
  json["seconds"] = seconds;
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  AtomicFolder made(folder.place(cell));  // beside the files of a training that is kept, where it is
  made.file("result.json").write(text);
  made.commit();
}

CellOutcome compute(const SweepFolder& folder, const SweepCell& cell, const PresetLibrary& presets, std::stop_token stop) {
  if (folder.result(cell)) return {};
  const CellLock lock(folder.lock(cell));
  if (!lock.held()) return {CellEnd::taken, "it is being computed by " + lock.holder()};
  if (folder.result(cell)) return {};
  const auto begin = Clock::now();
  const TypedRun typed = typed_run(cell.words);
  if (CellNames(presets).cell(typed).name != cell.name)
    throw Error("Its preset, or a file that it reads, has changed since the plan was made: make " + folder.path().string() +
                    " anew from its plan, and what is as it was is not computed again.",
                {.file = folder.path().string()});
  const Preset& preset = presets.find(typed.id);
  try {
    const Computed computed =
        typed.trains ? train(folder, cell, typed, preset, stop) : run(folder.plan(), run_request_of(typed.given, preset), stop);
    write_result(folder, cell, computed, seconds_since(begin));
  } catch (const Cancelled&) {
    return {CellEnd::interrupted, typed.trains ? "stopped; it goes on from its checkpoint" : "stopped; it begins anew"};
  }
  std::error_code none;
  fs::remove_all(folder.work(cell), none);
  fs::remove(folder.failure(cell), none);
  return {};
}

}  // namespace

CellOutcome compute_cell(const SweepFolder& folder, const SweepCell& cell, const PresetLibrary& presets, std::stop_token stop) noexcept {
  CellOutcome outcome;
  try {
    outcome = compute(folder, cell, presets, stop);
  } catch (const DeviceError& error) {
    outcome = {CellEnd::fault, error.what()};
  } catch (const Error& error) {
    outcome = {CellEnd::mistake, error.what()};
  } catch (const std::bad_alloc&) {
    outcome = {CellEnd::mistake, "There is not enough memory for it; run fewer at a time."};
  } catch (const std::exception& error) {
    outcome = {CellEnd::fault, std::string("A mistake in reclab itself, not yours: ") + error.what()};
  }
  if (outcome.end == CellEnd::mistake || outcome.end == CellEnd::fault) try {
      const Json json = {{"exit", outcome.end == CellEnd::mistake ? 2 : 1}, {"sentence", outcome.sentence}};
      write_file(folder.failure(cell), json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    } catch (const std::exception&) {  // on a full disk the outcome alone says it
    }
  return outcome;
}

void tidy(const SweepFolder& folder) noexcept try {
  const fs::path work = folder.path() / "work";
  parts::remove_dead_files(work, {});
  for (const auto& entry : fs::directory_iterator(work)) {
    const std::string file = entry.path().filename().string();
    const SweepCell cell{.name = file.substr(file.starts_with('.') ? 1 : 0, digits_of_name)};
    if (fs::exists(folder.place(cell) / "result.json") && !CellLock::is_taken(folder.lock(cell))) fs::remove_all(entry.path());
  }
} catch (const std::exception&) {  // there is none, or others take it away
}

void check_measures(const SweepPlan& plan, const PresetLibrary& presets, std::stop_token stop) {
  const TypedRun typed = plan.line(0);
  const Preset& preset = presets.find(typed.id);
  std::map<std::string, double> known;
  if (typed.trains)
    for (const auto& [name, text] : training_measures()) known[name] = 1.0;
  const RunRequest request = typed.trains ? run_of(training_request_of(typed.given, preset)) : run_request_of(typed.given, preset);
  measured(plan, request, known, stop);
}

}  // namespace reclab
