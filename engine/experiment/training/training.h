// SPDX-License-Identifier: GPL-3.0-or-later
// A preset that learns: the request, the model and its trainer, the history so far, and the folder that it is kept in and goes on from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "experiment/prepared.h"
#include "experiment/training/learned.h"
#include "experiment/training/plan.h"
#include "learning/trainer.h"
#include "sequence/choice.h"

namespace reclab {

struct TrainingRequest : TrainingPlan {
  /// The model with its settings, seed of the weights, weights to begin from (a file's, or those that another training came to), device and
  /// precision; `form` is the form of the training. Its sequence is not read.
  RunRequest run;
  /// The training data: a task (empty: the preset's own), whose options' seed is that of all examples; or a file, standardised by mean and
  /// deviation of its training part.
  SequenceChoice from{.task = {}};
};

/// The state of a training, in the computer's own memory.
struct TrainingState {
  std::int64_t steps = 0, changes = 0;
  Parameters weights;
  std::map<std::string, std::vector<double>> memory;  ///< the arrays that the optimiser and the rule keep
  bool flossed = false;                               ///< the weights, where the plan has them flossed
};

/// A training that is under way. Everything is done on the caller's thread.
class Training {
 public:
  /// `weights`: those that it begins from, in place of the request's; empty: none. Throws Error for a request that no model can be trained
  /// by.
  Training(const Registry& registry, const TrainingRequest& request, const WeightsOf& weights = {});
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  const TrainingRequest& request() const { return request_; }
  const Examples& examples() const { return *examples_; }
  Trainer& trainer() { return *trainer_; }
  const Trainer& trainer() const { return *trainer_; }
  const Model& model() const { return *model_; }
  std::string device() const;  ///< "cpu" or "cuda"
  std::string device_name() const;
  const std::string& title() const { return title_; }

  /// The next step; every judge_every-th is followed by an evaluation, and so is the last. Throws TrainingDiverged, and Cancelled where a
  /// stop is heard, in the evaluation too. Step and evaluation are one: on any exception, the training is unchanged.
  void advance(std::stop_token stop = {});
  /// Flosses the weights where the plan says so and that was not done, and judges them, where nothing was judged yet.
  void begin(std::stop_token stop = {});
  /// The exponents before and after flossing; nothing where weights were not flossed, or by a training that this one goes on from.
  const std::optional<FlossReport>& flossed() const { return flossed_; }
  bool done() const { return trainer_->steps() >= (request_.until > 0 ? std::min(request_.until, request_.steps) : request_.steps); }
  /// Adds so many steps to those that it was to make. A schedule that falls to its least rate stays there.
  void extend(std::int64_t steps);
  /// The weights as they are now, under the number of the training.
  LearnedPtr learned(std::uint64_t number) const;
  TrainingState state() const;
  /// Leaves the device after a step that threw `error`: the training goes on on the CPU from `state`, or from its beginning where there is
  /// none, with its history until then; its device is asked for nothing more. Returns a sentence that says so.
  std::string leave_device(const Registry& registry, const DeviceError& error, const std::optional<TrainingState>& state);

  const std::vector<TrainingStep>& history() const { return history_; }
  const std::vector<Evaluation>& evaluations() const { return evaluations_; }  ///< the first is of the weights before the first step
  /// |change| / |weight| of the step before each evaluation but the first, in the order of the model's weights.
  const std::vector<std::vector<double>>& changes() const { return changes_; }
  std::int64_t judge_every() const { return judge_every_; }

 private:
  friend std::unique_ptr<Training> resume(const Registry& registry, const TrainingRequest& request, const std::filesystem::path& folder);
  void go_on(const Training& before, const TrainingState& state);
  TrainingRequest request_;
  std::string title_;
  std::unique_ptr<Examples> examples_;
  std::shared_ptr<const Architecture> architecture_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Trainer> trainer_;
  std::int64_t judge_every_ = 1;
  std::optional<FlossReport> flossed_;
  std::vector<TrainingStep> history_;
  std::vector<Evaluation> evaluations_;
  std::vector<std::vector<double>> changes_;
};

/// The sentence that says that a training's device failed in a step, 0 before the first, and from which step it goes on on the CPU.
std::string left_device(const DeviceError& error, std::int64_t at, std::int64_t from);

/// The words behind `reclab train` that ask for this; those with which export_training's folder is made again.
std::vector<std::string> arguments_of(const TrainingRequest& request);
/// The command line, as a POSIX shell reads it.
std::string command_of(const TrainingRequest& request);

/// Writes the folder, all of it at once (AtomicFolder): weights.npz and weights.safetensors, by the names on the card; optimiser.npz, the
/// optimiser's arrays; history.csv and history.npz; and training.json, which has the command, where it stands, and size and SHA-256 of the
/// others. Throws Error where it cannot be written, and the folder is as it was.
void export_training(const Training& training, const std::filesystem::path& folder);
/// Throws Error where export_training would, for a disk without room too: everything is written beside the folder, and taken away again.
void check_export(const Training& training, const std::filesystem::path& folder);
/// The contents of a folder that a training is to be exported to.
struct TrainingFolder {
  enum class Holds : std::uint8_t {
    nothing,   ///< none of the files that an export would write
    training,  ///< a training after `steps` steps; 0 where its training.json does not say
    other      ///< no training.json, and another file of an export's names: `file`
  };
  Holds holds = Holds::nothing;
  std::int64_t steps = 0;
  std::string file;
};
/// Looks at names and at training.json alone. Throws Error for a folder that is a file, or that may not be read.
TrainingFolder training_in(const std::filesystem::path& folder);
/// The words behind `reclab train` that a folder was made with. Throws Error for a folder that is none of a training.
std::vector<std::string> arguments_in(const std::filesystem::path& folder);
/// The training of the request that a folder was made with, from where the folder stands, whose weights alone are read, and none drawn: its
/// further steps have the bits of one that was never interrupted. More steps may be asked for. Throws Error for a folder, or a file that it
/// learns from, that has changed since.
std::unique_ptr<Training> resume(const Registry& registry, const TrainingRequest& request, const std::filesystem::path& folder);

}  // namespace reclab
