// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/through_time/through_time.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "learning/losses.h"

namespace reclab {
namespace {

/// A part of a sequence has the loss that the whole sequence has there, from its step `counted` on.
class PartLoss final : public Loss {
 public:
  PartLoss(SequenceLoss whole, std::int64_t from, std::int64_t counted) : whole_(std::move(whole)), from_(from), counted_(counted) {}
  std::int64_t outputs() const override { return whole_.outputs(); }
  LossForm form() const override { return whole_.form(); }
  void rows(std::int64_t first, std::span<double> weights, std::span<double> targets) const override {
    const auto passed = static_cast<std::size_t>(std::clamp<std::int64_t>(counted_ - first, 0, std::ssize(weights)));
    if (passed == weights.size()) return;
    whole_.rows(from_ + first + static_cast<std::int64_t>(passed), weights.subspan(passed),
                targets.subspan(targets.size() / weights.size() * passed));
  }
  double gate_weight(std::int64_t step) const override { return step < counted_ ? 0.0 : whole_.gate_weight(from_ + step); }

 private:
  SequenceLoss whole_;
  std::int64_t from_, counted_;
};

/// The steps [from, from + steps) of a sequence, with the fields that a model and a loss read: a copy of the whole at each part would be
/// quadratic in its length.
Sequence part_of(const Sequence& whole, std::int64_t from, std::int64_t steps) {
  Sequence part;
  part.name = whole.name;
  part.source = whole.source;
  part.length = steps;
  part.width = whole.width;
  part.names = whole.names;
  part.time_name = whole.time_name;
  part.time_unit = whole.time_unit;
  part.standardised = whole.standardised;
  part.mean = whole.mean;
  part.deviation = whole.deviation;
  part.target_kind = whole.target_kind;
  part.target_width = whole.target_width;
  part.classes = whole.classes;
  part.target_names = whole.target_names;
  const auto cut = [&](const std::vector<double>& rows, std::vector<double>& to, std::int64_t width) {
    if (!rows.empty()) to.assign(rows.begin() + from * width, rows.begin() + (from + steps) * width);
  };
  cut(whole.input, part.input, whole.width);
  cut(whole.time, part.time, 1);
  cut(whole.target, part.target, whole.target_width);
  cut(whole.mask, part.mask, 1);
  return part;
}

/// Whether a target counts within the steps [from, to).
bool counts(const Sequence& sequence, std::int64_t from, std::int64_t to) {
  return std::any_of(sequence.mask.begin() + from, sequence.mask.begin() + to, [](double m) { return m != 0.0; });
}

class ThroughTime final : public LearningRule {
 public:
  ThroughTime(const LearningSetup& setup, OdeGradient ode)
      : model_(setup.model), options_(setup.options), ode_(ode), length_(setup.length) {
    if (options_.truncate > 0 && options_.advance > options_.truncate)
      throw Error(
          "advance = " + std::to_string(options_.advance) + " is more steps than truncate = " + std::to_string(options_.truncate) +
              ", so some would be learned from by no change: choose advance up to truncate.",
          {.parameter = "advance", .value = std::to_string(options_.advance), .range = "1 to " + std::to_string(options_.truncate)});
    truncate_ = options_.truncate > 0 ? std::min(options_.truncate, length_) : length_;
    advance_ = options_.advance > 0 ? std::min(options_.advance, truncate_) : truncate_;
    if (advance_ < length_) {
      for (std::int64_t b = 0; b < options_.batch; ++b)
        parts_.push_back(part_of(setup.examples[static_cast<std::size_t>(b)], 0, truncate_));
      rollout_ = std::make_unique<BatchRollout>(model_, batch_of(parts_), options_.form, ode_);
    } else {
      rollout_ = std::make_unique<BatchRollout>(model_, batch_of(setup.examples), options_.form, ode_);
    }
  }

  void begin(const std::deque<Sequence>& batch, std::int64_t number) override {
    sequences_ = &batch;
    number_ = number;
    learned_ = 0;
    carried_.clear();
  }
  bool left() const override { return learned_ < length_; }

  Part learn(std::stop_token stop) override {
    const bool in_parts = advance_ < length_, overlap = advance_ < truncate_;  // of one part and the next
    const std::int64_t learned = std::exchange(learned_, std::min(learned_ + advance_, length_)), end = learned_;
    const auto begin_of = [&](std::int64_t part) { return std::max<std::int64_t>(0, part + advance_ - truncate_); };
    const std::int64_t from = begin_of(learned), next = begin_of(end);
    Part part;
    part.counts = !in_parts || std::ranges::any_of(*sequences_, [&](const Sequence& sequence) { return counts(sequence, learned, end); });
    if (part.counts || !overlap) {
      rollout_->set_batch(in_parts ? parts_of(from, end, learned) : batch_of(*sequences_));
      if (in_parts && !overlap && from > 0) {
        rollout_->continue_states();
      } else if (in_parts) {
        rollout_->reset_states();
        rollout_->set_initial(carried_);
      }
      if (const auto bad = rollout_->forward(stop, true)) throw TrainingDiverged(number_, sentence(*bad) + " of a sequence", bad->array);
      if (!std::isfinite(rollout_->loss()))
        throw TrainingDiverged(number_, "the loss became non-finite at step " + std::to_string(rollout_->loss_step()) + " of a sequence",
                               "loss");
      part.loss = rollout_->loss();
      part.gate_penalty = rollout_->gate_penalty();
    }
    if (part.counts)
      if (const auto bad = rollout_->backward(stop))
        throw TrainingDiverged(number_, sentence(*bad) + " of a sequence, on the way back", bad->array);
    if (overlap && next > from && end < length_) advance_initial_state(from, next, stop);
    return part;
  }
  std::span<const DeviceArray> gradients() const override { return rollout_->device_gradients(); }

  bool exact() const override { return truncate_ == length_ && ode_ == OdeGradient::steps; }
  std::int64_t parts() const override { return (length_ + advance_ - 1) / advance_; }
  std::int64_t bytes() const override {
    std::int64_t total = rollout_->bytes();
    for (const auto& [steps, carrier] : carriers_) total += carrier->bytes();
    return total;
  }
  BatchRollout* whole() override { return advance_ < length_ ? nullptr : rollout_.get(); }

 private:
  Batch batch_of(const std::deque<Sequence>& sequences) {
    std::vector<Example> examples;
    losses_.clear();
    for (std::int64_t b = 0; b < options_.batch; ++b) {
      const Sequence& sequence = sequences[static_cast<std::size_t>(b)];
      losses_.push_back(std::make_unique<SequenceLoss>(loss_of(sequence)));
      examples.push_back({&sequence, losses_.back().get()});
    }
    return Batch(std::move(examples));
  }

  bool penalises() const { return options_.gate_penalty > 0.0; }
  SequenceLoss loss_of(const Sequence& sequence) const {
    SequenceLoss loss(LossKind::task, sequence);
    if (penalises()) loss.penalise_gates(options_.gate_penalty_of, options_.gate_penalty);
    return loss;
  }

  /// The steps [from, to) of the batch's sequences, with the loss from step `counted` on.
  Batch parts_of(std::int64_t from, std::int64_t to, std::int64_t counted) {
    parts_.clear();
    losses_.clear();
    std::vector<Example> examples;
    for (const Sequence& sequence : *sequences_) {
      parts_.push_back(part_of(sequence, from, to - from));
      losses_.push_back(std::make_unique<PartLoss>(loss_of(sequence), from, counted - from));
      examples.push_back({&parts_.back(), losses_.back().get()});
    }
    return Batch(std::move(examples));
  }

  /// Takes the carried state from where one part begins to where the next one does.
  void advance_initial_state(std::int64_t from, std::int64_t to, std::stop_token stop) {
    const Batch batch = parts_of(from, to, to);
    auto& carrier = carriers_[to - from];
    if (carrier)
      carrier->set_batch(batch);
    else
      carrier = std::make_unique<BatchRollout>(model_, batch, options_.form, ode_);
    carrier->reset_states();
    carrier->set_initial(carried_);
    if (const auto bad = carrier->forward(stop)) throw TrainingDiverged(number_, sentence(*bad) + " of a sequence", bad->array);
    carried_ = carrier->final_states();
    carrier->continue_states();  // throws for states that cannot be
  }

  Model& model_;
  const TrainingOptions& options_;
  OdeGradient ode_;
  std::int64_t length_, truncate_ = 0, advance_ = 0;  // the latter are k2 and k1, within a sequence
  const std::deque<Sequence>* sequences_ = nullptr;
  std::int64_t number_ = 0, learned_ = 0;
  std::unique_ptr<BatchRollout> rollout_;
  std::map<std::int64_t, std::unique_ptr<BatchRollout>> carriers_;  // by their steps: from where one part begins to where the next does
  BatchRollout::States carried_;                                    // the state where the part begins; empty: at rest
  std::deque<Sequence> parts_;
  std::vector<std::unique_ptr<Loss>> losses_;
};

}  // namespace

std::unique_ptr<LearningRule> through_time(const LearningSetup& setup, OdeGradient ode) {
  return std::make_unique<ThroughTime>(setup, ode);
}

}  // namespace reclab
