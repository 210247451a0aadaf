// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/training/training.h"

#include <algorithm>
#include <utility>

#include "array/backend.h"
#include "experiment/command/command.h"
#include "experiment/command/run_fields.h"
#include "learning/losses.h"

namespace reclab {
namespace {

std::unique_ptr<Examples> examples_of(TrainingRequest& request) {
  SequenceChoice& from = request.from;
  if (!from.is_file()) {
    if (from.task.empty()) from.task = request.run.preset.task;
    return task_examples(from.task, from.make);
  }
  LoadOptions load = from.load;
  request.windows.standardise = std::exchange(load.standardise, false);
  return window_examples(std::make_shared<const Sequence>(load_sequence(from.file, load)), request.windows);
}

}  // namespace

Training::Training(const Registry& registry, const TrainingRequest& request, const WeightsOf& weights) : request_(request) {
  if (request_.steps < 0)
    throw Error("steps = " + std::to_string(request_.steps) + " is out of range: choose 0 or more.", {.parameter = "steps"});
  examples_ = examples_of(request_);
  RunRequest run = request_.run;
  run.sequence = examples_->training(0, 0);
  run.loss = LossKind::task;
  if (!run.state.empty()) throw Error("a training begins from rest: leave out the state.", {.parameter = "state"});
  const Prepared prepared(registry, run, weights);
  if (!prepared.readout_note.empty())
    throw Error(prepared.architecture.id +
                    " has a read-out that is fitted to the target at once, and nothing that is learned step by step: choose a drawn "
                    "read-out, another model, or run it.",
                {.model = prepared.architecture.id});
  title_ = run.preset.title.empty() ? prepared.architecture.title : run.preset.title;
  if (run.form == "auto")
    throw Error("form = auto is not for training: choose sequential, or an exact form of the model.",
                {.parameter = "form", .value = "auto"});
  request_.options.form = form_from(run.form);
  require_form(*prepared.shape_network, request_.options.form, prepared.architecture.id);
  request_.options.rate.steps = request_.steps;
  request_.options.seed = request_.run.seed;
  architecture_ = prepared.owner;
  model_ = std::make_unique<Model>(prepared.architecture, prepared.hyper, prepared.parameters, prepared.backend, prepared.real);
  trainer_ = std::make_unique<Trainer>(*model_, *examples_, request_.options);
  if (request_.floss.steps > 0) StepMap(*model_, run.sequence->width, prepared.loss.outputs());  // throws where there is no step to floss
  judge_every_ = request_.judge_every > 0 ? request_.judge_every : std::max<std::int64_t>(1, request_.steps / 20);
}

Training::~Training() = default;

void Training::begin(std::stop_token stop) {
  if (!evaluations_.empty()) return;
  if (request_.floss.steps > 0 && !flossed_)
    flossed_ = floss(*model_, *examples_, SequenceLoss(LossKind::task, examples_->training(0, 0)).outputs(), request_.floss,
                     trainer_->frozen(), stop);
  evaluations_.push_back(trainer_->evaluate(stop));
}

std::string Training::device() const { return model_->backend().device() == Device::cpu ? "cpu" : "cuda"; }
std::string Training::device_name() const { return model_->backend().name(); }

void Training::extend(std::int64_t steps) { request_.steps += steps; }

LearnedPtr Training::learned(std::uint64_t number) const {
  auto weights = std::make_shared<LearnedWeights>();
  weights->training = number;
  weights->step = trainer_->steps();
  weights->values = model_->parameters();
  weights->from = examples_->text();
  weights->folder = request_.run.preset.id + "-" + std::to_string(number) + "-after-" + std::to_string(weights->step);
  TrainingRequest so_far = request_;
  if (weights->step == 0)
    so_far.steps = 0;
  else if (weights->step < request_.steps)
    so_far.until = weights->step;
  weights->command = command_of(so_far) + " --export " + shell_word(weights->folder);
  return weights;
}

TrainingState Training::state() const {
  return {trainer_->steps(), trainer_->optimiser().steps(), model_->parameters(), trainer_->memory(), flossed_.has_value()};
}

std::string left_device(const DeviceError& error, std::int64_t at, std::int64_t from) {
  const char* happened = error.kind() == DeviceError::Kind::memory ? "ran out of memory"
                         : error.kind() == DeviceError::Kind::lost ? "was lost"
                                                                   : "failed";
  const std::string again = from + 1 < at ? ", from step " + std::to_string(from) : std::string();
  return "The CUDA device " + std::string(happened) + (at > 0 ? " at step " + std::to_string(at) + " of training" : "") + " (" +
         error.words() + "): training goes on on the CPU" + again + ".";
}

std::string Training::leave_device(const Registry& registry, const DeviceError& error, const std::optional<TrainingState>& state) {
  const std::int64_t at = trainer_->steps() + 1;
  TrainingRequest request = request_;
  request.run.device = "cpu";
  request.steps = request_.options.rate.steps;  // as many as at first: its rate and its evaluations go by them
  Training again(registry, request, state ? [&](const Network&) { return state->weights; } : WeightsOf());
  if (state) again.go_on(*this, *state);
  trainer_ = std::move(again.trainer_);  // before the model and the examples that it refers to
  model_ = std::move(again.model_);
  examples_ = std::move(again.examples_);
  architecture_ = again.architecture_;
  request_.run.device = "cpu";
  history_ = std::move(again.history_);
  evaluations_ = std::move(again.evaluations_);
  changes_ = std::move(again.changes_);
  if (request_.floss.steps > 0 && (!state || (state->steps == 0 && !state->flossed))) {  // it is done again, on the CPU
    flossed_.reset();
    evaluations_.clear();
  }
  return left_device(error, at, state ? state->steps : 0);
}

/// From where `before` stood, whose weights it has, with its history until then.
void Training::go_on(const Training& before, const TrainingState& state) {
  trainer_->restore(state.steps, state.changes, state.memory);
  history_.assign(before.history_.begin(), before.history_.begin() + state.steps);
  const auto judged = std::ranges::find_if(before.evaluations_, [&](const Evaluation& one) { return one.step > state.steps; }) -
                      before.evaluations_.begin();
  evaluations_.assign(before.evaluations_.begin(), before.evaluations_.begin() + judged);
  changes_.assign(before.changes_.begin(), before.changes_.begin() + std::max<std::ptrdiff_t>(0, judged - 1));
}

void Training::advance(std::stop_token stop) {
  begin(stop);
  const std::int64_t next = trainer_->steps() + 1;
  const bool judged = next % judge_every_ == 0 || next == request_.steps || next == request_.until;
  trainer_->watch_changes(judged);
  const std::size_t steps = history_.size(), judgements = evaluations_.size(), changes = changes_.size();
  try {
    // The rows are there before the step is made: that there is no memory for them is found while the step can be undone.
    history_.emplace_back();
    if (judged) evaluations_.emplace_back();
    if (judged) changes_.emplace_back(trainer_->model().weights().size());
    history_.back() = trainer_->step(stop, judged);
    if (!judged) return;
    std::ranges::copy(trainer_->changes(), changes_.back().begin());
    evaluations_.back() = trainer_->evaluate(stop);
  } catch (...) {
    history_.resize(steps);
    evaluations_.resize(judgements);
    changes_.resize(changes);
    if (trainer_->steps() == next) trainer_->undo();
    throw;
  }
}

namespace {
CommandLine line_of(const TrainingRequest& request) {
  CommandLine line;
  const auto fields = [&](Field::Of of) {
    for (const TrainingField& one : training_fields())
      if (one.of == of) line.field(one, one.get(request));
  };
  line.word(request.run.preset.id);
  line.sequence(request.from, request.run.seed);
  if (request.from.is_file()) {
    fields(Field::Of::file);
    if (request.windows.seed != request.run.seed) line.option("--task-seed", request.windows.seed);
  }
  line.fields(run_fields(), request.run, {"state", "loss", "every", "record"});
  fields(Field::Of::any);
  return line;
}
}  // namespace

std::vector<std::string> arguments_of(const TrainingRequest& request) { return line_of(request).words(); }

std::string command_of(const TrainingRequest& request) {
  const std::string text = line_of(request).text("reclab train");
  return request.run.learned ? request.run.learned->command + " && " + text : text;
}

}  // namespace reclab
