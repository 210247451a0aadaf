// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/trainer.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "array/demand.h"
#include "array/host.h"
#include "array/stop.h"

namespace reclab {
namespace {

/// Whether the exception that is being handled says that the device was lost: it gets no more calls.
bool device_lost() {
  try {
    if (std::current_exception()) throw;
  } catch (const DeviceError& error) {
    return error.kind() == DeviceError::Kind::lost;
  } catch (...) {
  }
  return false;
}

/// Whether a name is a pattern's, in which a * stands for any letters.
bool matches(std::string_view pattern, std::string_view name) {
  constexpr std::size_t none = std::string_view::npos;
  std::size_t p = 0, n = 0, star = none,
              from = 0;  // the last * and the end of its match: of several, only the last needs another try
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p, ++n;
    } else if (star != none) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  return pattern.substr(p).find_first_not_of('*') == none;
}

std::vector<bool> frozen_of(const Model& model, const std::vector<std::string>& patterns) {
  std::vector<bool> frozen(model.weights().size());
  for (const std::string& pattern : patterns) {
    bool found = false;
    std::string known;
    for (std::size_t i = 0; i < frozen.size(); ++i) {
      const std::string& name = model.weights()[i].name;
      known += (i ? ", " : "") + name;
      if (!matches(pattern, name)) continue;
      frozen[i] = found = true;
    }
    if (!found)
      throw Error("freeze = " + pattern + " is the name of no weights: choose of " + known + ", with * for any letters.",
                  {.parameter = "freeze", .value = pattern, .range = known});
  }
  if (!frozen.empty() && std::ranges::all_of(frozen, [](bool f) { return f; }))
    throw Error("freeze leaves no weights to be trained: freeze fewer of them.", {.parameter = "freeze"});
  return frozen;
}

}  // namespace

/// Counts, besides, how well the outputs do: of this sequence alone, since others may be judged at the same time.
class Trainer::JudgingLoss final : public SequenceLoss {
 public:
  JudgingLoss(const Sequence& sequence, const TrainingOptions& options) : SequenceLoss(LossKind::task, sequence), sequence_(sequence) {
    if (options.gate_penalty > 0.0) penalise_gates(options.gate_penalty_of, options.gate_penalty);  // as in the rule's own rollout
    for (const double m : sequence.mask) counted_ += m;
  }
  bool sees_outputs() const override { return true; }
  void see(std::int64_t first, std::int64_t steps, std::int64_t width, std::span<const double> output) const override {
    for (std::int64_t t = first; t < first + steps && counted_ > 0.0; ++t) {
      const double weight = sequence_.mask[static_cast<std::size_t>(t)] / counted_;
      if (weight == 0.0) continue;
      const auto y = output.subspan(static_cast<std::size_t>((t - first) * width), static_cast<std::size_t>(width));
      if (sequence_.target_kind == TargetKind::classify) {
        if (std::ranges::max_element(y) - y.begin() == static_cast<std::ptrdiff_t>(sequence_.target[static_cast<std::size_t>(t)]))
          metric_ += weight;
      } else {
        for (std::size_t j = 0; j < y.size(); ++j)
          metric_ += weight * std::pow(y[j] - sequence_.target[static_cast<std::size_t>(t * width) + j], 2);
      }
    }
  }
  double metric() const { return metric_; }

 private:
  const Sequence& sequence_;
  mutable double metric_ = 0.0;
  double counted_ = 0.0;
};

Trainer::Trainer(Model& model, const Examples& examples, const TrainingOptions& options)
    : model_(model),
      examples_(examples),
      options_(options),
      frozen_(frozen_of(model, options.frozen)),
      optimiser_(model, options.optimiser, frozen_) {
  const auto least = [](const std::string& name, double value, double low) {
    if (!(value >= low) || !std::isfinite(value))
      throw Error(name + " is out of range: choose " + std::to_string(static_cast<long>(low)) + " or more.", {.parameter = name});
  };
  least("batch", static_cast<double>(options.batch), 1);
  least("truncate", static_cast<double>(options.truncate), 0);
  least("advance", static_cast<double>(options.advance), 0);
  least("clip", options.clip_norm, 0);
  least("clip-value", options.clip_value, 0);
  least("lr", options.rate.rate, 0);
  least("gate_penalty", options.gate_penalty, 0);
  const std::int64_t distinct = examples.held_out_count();
  const std::int64_t wanted = options.held_out > 0 ? options.held_out : distinct > 0 ? std::min<std::int64_t>(distinct, 128) : 128;
  const std::int64_t batches = (wanted + options.batch - 1) / options.batch;
  for (std::int64_t i = 0; i < batches * options.batch; ++i) held_out_.push_back(examples.held_out(i));
  if (held_out_[0].target_kind == TargetKind::none)
    throw Error(held_out_[0].name + " has no target, so there is nothing to learn: choose a task with a target, or a file.",
                {.parameter = "task", .value = held_out_[0].name});
  const bool classes = held_out_[0].target_kind == TargetKind::classify;
  metric_ = classes ? "accuracy" : "squared error";
  baseline_ = best_constant(held_out_);
  linear_predictor_ = reclab::linear_predictor(examples, held_out_);

  rule_ = make_learning_rule({model, options_, examples.length(), held_out_, frozen_});
  if (!rule_->whole()) judging_ = std::make_unique<BatchRollout>(model, held_out_batch(0), options_.form);
  std::int64_t largest = 1;
  for (std::size_t i = 0; i < model.weights().size(); ++i) {
    const std::int64_t n = model.weights()[i].entries();
    largest = std::max(largest, n);
    gradients_.emplace_back(model.backend(), model.real(), n);
    model.backend().zero(gradients_.back().data(), gradients_.back().bytes());
  }
  work_.resize(model.backend(), model.real(), largest);
}

Trainer::~Trainer() = default;

std::int64_t Trainer::bytes() const {
  std::size_t total = work_.bytes() + limit_.bytes();
  for (const auto* arrays : {&gradients_, &before_, &kept_})
    for (const DeviceArray& array : *arrays) total += array.bytes();
  return static_cast<std::int64_t>(total) + rule_->bytes() + (judging_ ? judging_->bytes() : 0) + optimiser_.bytes() + model_.bytes();
}

TrainingStep Trainer::step(std::stop_token stop, bool keep_it) {
  const StopScope scope(stop);
  // Between parts the weights are none that a whole step has; what a rule keeps of them changes with each.
  const bool in_between = rule_->parts() > 1 || rule_->memory();
  if (in_between || keep_it) keep();
  const std::int64_t changes = optimiser_.steps();
  try {
    return step_by_parts(stop);
  } catch (...) {
    if (in_between && (!whole_ || optimiser_.steps() != changes || rule_->changes_weights())) go_back();
    throw;
  }
}

void Trainer::undo() {
  RECLAB_DEMAND(steps_ > 0);
  go_back();
  --steps_;
}

/// Copies the weights and the optimiser's arrays on their device.
void Trainer::keep() {
  const StopScope whole{std::stop_token()};
  Backend& backend = model_.backend();
  kept_.resize(model_.weights().size());
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const Model::Weight& weight = model_.weights()[i];
    if (!frozen_[i]) backend.copy(kept_[i].resize(backend, model_.real(), weight.entries()), weight.values.data(), weight.values.bytes());
  }
  optimiser_.keep();
  if (WeightMemory* memory = rule_->memory()) memory->keep();
}

void Trainer::go_back() {
  if (device_lost()) return;
  const StopScope whole{std::stop_token()};
  whole_ = false;
  model_.update([&](std::size_t i, const Model::Weight& weight) {
    if (!frozen_[i]) model_.backend().copy(weight.values.data(), kept_[i].data(), weight.values.bytes());
  });
  optimiser_.go_back();
  if (WeightMemory* memory = rule_->memory()) memory->go_back();
  whole_ = true;
}

TrainingStep Trainer::step_by_parts(std::stop_token stop) {
  TrainingStep report{.step = steps_ + 1, .rate = options_.rate.at(steps_)};
  sequences_.clear();
  for (std::int64_t b = 0; b < options_.batch; ++b) sequences_.push_back(examples_.training(steps_, b));
  rule_->begin(sequences_, report.step);
  while (rule_->left()) {
    if (rule_->changes_weights()) watch_weights();
    const LearningRule::Part part = rule_->learn(stop);
    report.loss += part.loss / static_cast<double>(options_.batch);
    report.gate_penalty += part.gate_penalty / static_cast<double>(options_.batch);
    if (part.counts) change(report.rate, report);
  }
  ++steps_;
  return report;
}

void Trainer::change(double rate, TrainingStep& report) {
  const StopScope whole{std::stop_token()};  // weights of which some are changed are no step's
  Backend& backend = model_.backend();
  const DType real = model_.real();
  const auto totals = rule_->gradients();
  const auto each = [&](const auto& f) {
    for (std::size_t i = 0; i < totals.size(); ++i)
      if (!frozen_[i]) f(i, model_.weights()[i].entries());
  };
  each([&](std::size_t i, std::int64_t n) {
    backend.unary(Unary::affine, real, n, totals[i].data(), gradients_[i].data(), 1.0 / static_cast<double>(options_.batch), 0.0);
  });
  double norm = norm_of(backend, real, gradients_, frozen_);
  if (!std::isfinite(norm)) throw TrainingDiverged(report.step, "the gradient's norm became non-finite", "gradient");
  report.norm = std::max(report.norm, norm);
  if (rule_->changes_weights()) {
    report.clipped = report.norm;
    return see_changes();
  }
  if (options_.clip_norm > 0.0) {
    const double factor = options_.clip_norm / (norm + 1e-6);
    if (factor < 1.0) {
      each([&](std::size_t i, std::int64_t n) {
        backend.unary(Unary::affine, real, n, gradients_[i].data(), work_.data(), factor, 0.0);
        backend.copy(gradients_[i].data(), work_.data(), gradients_[i].bytes());
      });
      norm *= factor;
    }
  }
  if (options_.clip_value > 0.0) {
    if (!limit_) {
      const double low[] = {-options_.clip_value};
      limit_ = DeviceArray(backend, narrowed(real, low));
    }
    each([&](std::size_t i, std::int64_t n) {
      Broadcast shape{.rank = 1, .size = {n}, .stride_x = {1}, .stride_y = {0}, .elements = n};
      for (int side = 0; side < 2; ++side) {  // -max(x, low), which is then cut from the other side
        backend.binary(Binary::maximum, real, shape, gradients_[i].data(), limit_.data(), work_.data());
        backend.unary(Unary::affine, real, n, work_.data(), gradients_[i].data(), -1.0, 0.0);
      }
    });
    norm = norm_of(backend, real, gradients_, frozen_);
  }
  report.clipped = std::max(report.clipped, norm);
  watch_weights();
  whole_ = false;
  optimiser_.step(rate, gradients_);
  rule_->changed();
  whole_ = true;
  see_changes();
}

/// Copies the weights of before a change.
void Trainer::watch_weights() {
  if (!watch_) return;
  Backend& backend = model_.backend();
  if (before_.empty())
    for (const Model::Weight& weight : model_.weights()) before_.emplace_back(backend, model_.real(), weight.entries());
  for (std::size_t i = 0; i < before_.size(); ++i)
    if (!frozen_[i]) backend.copy(before_[i].data(), model_.weights()[i].values.data(), before_[i].bytes());
}

/// |change| / |weight| since watch_weights().
void Trainer::see_changes() {
  if (!watch_) return;
  Backend& backend = model_.backend();
  const DType real = model_.real();
  changes_.assign(before_.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < before_.size(); ++i) {
    if (frozen_[i]) continue;
    const std::int64_t n = model_.weights()[i].entries();
    const double weight = backend.log2_norm(real, n, before_[i].data(), 0);
    backend.unary(Unary::affine, real, n, before_[i].data(), work_.data(), -1.0, 0.0);
    backend.add_scaled(real, n, 0, model_.weights()[i].values.data(), work_.data(), true);
    if (std::isfinite(weight)) changes_[i] = std::exp2(backend.log2_norm(real, n, work_.data(), 0) - weight);
  }
}

/// The held-out batch from `first` on, with losses for its evaluation; they live until the next one.
Batch Trainer::held_out_batch(std::size_t first) {
  std::vector<Example> examples;
  std::vector<std::unique_ptr<JudgingLoss>> losses;
  for (std::size_t b = first; b < first + static_cast<std::size_t>(options_.batch); ++b) {
    losses.push_back(std::make_unique<JudgingLoss>(held_out_[b], options_));
    examples.push_back({&held_out_[b], losses.back().get()});
  }
  losses_ = std::move(losses);
  return Batch(std::move(examples));
}

Evaluation Trainer::evaluate(std::stop_token stop) {
  const StopScope scope(stop);
  Evaluation found{.step = steps_, .metric = 0.0};
  BatchRollout& rollout = judging_ ? *judging_ : *rule_->whole();
  for (std::size_t first = 0; first < held_out_.size(); first += static_cast<std::size_t>(options_.batch)) {
    rollout.set_batch(held_out_batch(first));
    if (const auto bad = rollout.forward(stop))
      throw TrainingDiverged(steps_, sentence(*bad) + " of a sequence that is held out", bad->array);
    found.loss += rollout.loss();
    for (const auto& loss : losses_) found.metric += loss->metric();
  }
  found.loss /= static_cast<double>(held_out_.size());
  found.metric /= static_cast<double>(held_out_.size());
  if (held_out_[0].target_kind == TargetKind::classify) found.metric = std::min(found.metric, 1.0);  // a sum of shares, each rounded
  if (!std::isfinite(found.loss)) throw TrainingDiverged(steps_, "the loss of what is held out became non-finite", "loss");
  return found;
}

std::map<std::string, std::int64_t> Trainer::memory_entries() const {
  auto all = optimiser_.memory_entries();
  if (const WeightMemory* memory = rule_->memory()) all.merge(memory->entries());
  return all;
}

std::map<std::string, std::vector<double>> Trainer::memory() const {
  auto all = optimiser_.memory();
  if (const WeightMemory* memory = rule_->memory()) all.merge(memory->values());
  return all;
}

void Trainer::restore(std::int64_t steps, std::int64_t changes, const std::map<std::string, std::vector<double>>& memory) {
  std::map<std::string, std::vector<double>> of_optimiser = memory;
  WeightMemory* of_rule = rule_->memory();
  if (of_rule)
    for (const auto& [name, entries] : of_rule->entries()) of_optimiser.erase(name);
  optimiser_.restore(changes, of_optimiser);
  if (of_rule) of_rule->restore(memory, "the rule " + options_.rule);
  steps_ = steps;
}

std::int64_t Trainer::changes_per_step() const { return rule_->parts(); }

}  // namespace reclab
