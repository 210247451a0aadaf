// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/standing.h"

#include <algorithm>

#include "array/demand.h"
#include "execution/elapsed_times.h"

namespace reclab {

namespace {

/// Whether a model of one can have the weights of the other: hyper-parameters that matter for drawing weights alone may differ.
bool share_model(const Structure& a, const Structure& b) {
  const NetworkOptions &of_a = a.shape_network->options(), &of_b = b.shape_network->options();
  return a.parts() == b.parts() && &a.backend == &b.backend && of_a.input == of_b.input && of_a.head == of_b.head &&
         of_a.real == of_b.real && std::ranges::all_of(a.hyper.table(), [&](const HyperSpec& row) {
           return row.initialisation_only || a.hyper.value(row.key) == b.hyper.value(row.key);
         });
}

}  // namespace

Rollout& StandingModel::rollout(const Prepared& run, const Batch& batch, const Rollout::Options& options) {
  RECLAB_DEMAND(batch.size() == 1 && options.segment == 0 && !options.timing_only && options.gradients == GradientsOn::host);
  if (!has_weights_) {
    if (structure_ && share_model(*structure_, run)) {
      model_->set(run.parameters);
    } else {
      clear();
      model_ = std::make_unique<Model>(run.architecture, run.hyper, run.parameters, run.backend, run.real);
      architecture_ = run.owner;
    }
    structure_ = std::make_unique<Structure>(run);
    has_weights_ = true;
  }
  NetworkOptions wanted;
  wanted.input = batch.width();
  wanted.head = batch.outputs();
  wanted.real = run.real;
  wanted.steps = batch.length();
  wanted.form = options.form;
  wanted.record = options.record;
  wanted.cached_steps = options.cached_steps;
  wanted.timed = ElapsedTimes::uneven(batch);
  const auto fits = [&](const Standing& one) { return one.options == wanted && one.loss == batch.loss_form(); };
  if (const auto same = std::ranges::find_if(rollouts_, fits); same != rollouts_.end()) {
    same->used = true;
    same->rollout->set_batch(batch);
    same->rollout->reset_states();
    return *same->rollout;
  }
  std::erase_if(rollouts_, [](const Standing& one) { return !one.used; });
  rollouts_.push_back({wanted, batch.loss_form(), std::make_unique<Rollout>(*model_, batch, options), true});
  if (bytes() > most_bytes) rollouts_.erase(rollouts_.begin(), rollouts_.end() - 1);
  return *rollouts_.back().rollout;
}

void StandingModel::end_run() {
  has_weights_ = false;
  std::erase_if(rollouts_, [](const Standing& one) { return !one.used; });
  for (Standing& one : rollouts_) one.used = false;
  if (model_ && (bytes() > most_bytes || !model_->backend().lost().empty())) clear();
}

void StandingModel::clear() {
  rollouts_.clear();
  model_.reset();
  structure_.reset();
}

std::int64_t StandingModel::bytes() const {
  std::int64_t total = model_->bytes();
  for (const Standing& one : rollouts_) total += one.rollout->bytes() - model_->bytes();
  return total;
}

}  // namespace reclab
