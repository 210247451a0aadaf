// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/trainer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <exception>
#include <utility>

#include "array/host.h"
#include "array/stop.h"

namespace reclab {
namespace {

/// A part of a sequence has the loss that the whole sequence has there, from its step `counted` on.
class PartLoss final : public Loss {
 public:
  PartLoss(const Sequence& whole, std::int64_t from, std::int64_t counted)
      : whole_(LossKind::task, whole), from_(from), counted_(counted) {}
  std::int64_t outputs() const override { return whole_.outputs(); }
  double segment(std::int64_t first, std::int64_t steps, std::int64_t width, std::span<const double> output,
                 std::span<double> adjoint) const override {
    const std::int64_t passed = std::clamp<std::int64_t>(counted_ - first, 0, steps);
    const auto entries = static_cast<std::size_t>(passed * width);
    return whole_.segment(from_ + first + passed, steps - passed, width, output.subspan(entries),
                          adjoint.empty() ? adjoint : adjoint.subspan(entries));
  }

 private:
  SequenceLoss whole_;
  std::int64_t from_, counted_;
};

/// Counts, besides, how well the outputs do: of this sequence alone, since others may be judged at the same time.
class JudgingLoss final : public Loss {
 public:
  explicit JudgingLoss(const Sequence& sequence) : sequence_(sequence), loss_(LossKind::task, sequence) {
    for (const double m : sequence.mask) counted_ += m;
  }
  std::int64_t outputs() const override { return loss_.outputs(); }
  double segment(std::int64_t first, std::int64_t steps, std::int64_t width, std::span<const double> output,
                 std::span<double> adjoint) const override {
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
    return loss_.segment(first, steps, width, output, adjoint);
  }
  double metric() const { return metric_; }

 private:
  const Sequence& sequence_;
  SequenceLoss loss_;
  mutable double metric_ = 0.0;
  double counted_ = 0.0;
};

/// The steps [from, from + steps) of a sequence: what a model and a loss look at, since a copy of all of it at each part would be quadratic
/// in its length.
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

/// Whether what ended the step, which is being handled, is that the device was lost: nothing is asked of it any more.
bool device_lost() {
  try {
    if (std::current_exception()) throw;
  } catch (const DeviceError& error) {
    return error.kind() == DeviceError::Kind::lost;
  } catch (...) {
  }
  return false;
}

/// Whether a target counts within the steps [from, to).
bool counts(const Sequence& sequence, std::int64_t from, std::int64_t to) {
  return std::any_of(sequence.mask.begin() + from, sequence.mask.begin() + to, [](double m) { return m != 0.0; });
}

/// Whether a name is a pattern's, in which a * stands for any letters.
bool matches(std::string_view pattern, std::string_view name) {
  constexpr std::size_t none = std::string_view::npos;
  std::size_t p = 0, n = 0, star = none,
              from = 0;  // the last * and where what it stands for ends: of several, the last alone is worth another try
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

TrainingDiverged::TrainingDiverged(std::int64_t at, const std::string& what, std::string of)
    : Error("Training ended at step " + std::to_string(at) + ", where " + what + Remedy{": ", "choose a smaller rate (", {"lr"}, ")"} +
                Remedy{", or ", "clip the gradient (", {"clip", "1"}, ")"} + ".",
            {.place = "step " + std::to_string(at), .parameter = of}),
      step(at),
      array(std::move(of)) {}

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
  if (options.truncate > 0 && options.advance > options.truncate)
    throw Error("advance = " + std::to_string(options.advance) + " is more steps than truncate = " + std::to_string(options.truncate) +
                    ", so some would be learned from by no change: choose advance up to truncate.",
                {.parameter = "advance", .value = std::to_string(options.advance), .range = "1 to " + std::to_string(options.truncate)});
  least("clip", options.clip_norm, 0);
  least("clip-value", options.clip_value, 0);
  least("lr", options.rate.rate, 0);
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

  const Batch first = batch_of(held_out_, 0);
  const std::int64_t length = examples.length();
  truncate_ = options.truncate > 0 ? std::min(options.truncate, length) : length;
  advance_ = options.advance > 0 ? std::min(options.advance, truncate_) : truncate_;
  if (advance_ < length) {
    judging_ = std::make_unique<BatchRollout>(model, first, options.form);
    for (std::int64_t b = 0; b < options.batch; ++b) parts_.push_back(part_of(held_out_[static_cast<std::size_t>(b)], 0, truncate_));
    rollout_ = std::make_unique<BatchRollout>(model, batch_of(parts_, 0), options.form);
  } else {
    rollout_ = std::make_unique<BatchRollout>(model, first, options.form);
  }
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
  for (const auto& [steps, carrier] : carriers_) total += static_cast<std::size_t>(carrier->bytes());
  return static_cast<std::int64_t>(total) + rollout_->bytes() + (judging_ ? judging_->bytes() : 0) + optimiser_.bytes() + model_.bytes();
}

Batch Trainer::batch_of(const std::deque<Sequence>& sequences, std::int64_t first) {
  std::vector<Example> examples;
  losses_.clear();
  for (std::int64_t b = 0; b < options_.batch; ++b) {
    const Sequence& sequence = sequences[static_cast<std::size_t>(first + b)];
    losses_.push_back(std::make_unique<SequenceLoss>(LossKind::task, sequence));
    examples.push_back({&sequence, losses_.back().get()});
  }
  return Batch(std::move(examples));
}

/// The steps [from, to) of the batch's sequences, with the loss from step `counted` on.
Batch Trainer::parts_of(std::int64_t from, std::int64_t to, std::int64_t counted) {
  parts_.clear();
  losses_.clear();
  std::vector<Example> examples;
  for (const Sequence& sequence : sequences_) {
    parts_.push_back(part_of(sequence, from, to - from));
    losses_.push_back(std::make_unique<PartLoss>(sequence, from, counted - from));
    examples.push_back({&parts_.back(), losses_.back().get()});
  }
  return Batch(std::move(examples));
}

/// Takes the carried state from where one part begins to where the next one does.
void Trainer::carry(std::int64_t from, std::int64_t to, std::stop_token stop) {
  const Batch batch = parts_of(from, to, to);
  auto& carrier = carriers_[to - from];
  if (carrier)
    carrier->set_batch(batch);
  else
    carrier = std::make_unique<BatchRollout>(model_, batch, options_.form);
  carrier->reset_states();
  carrier->set_initial(carried_);
  if (const auto bad = carrier->forward(stop)) throw TrainingDiverged(steps_ + 1, sentence(*bad) + " of a sequence", bad->array);
  carried_ = carrier->final_states();
  carrier->continue_states();  // throws for states that cannot be
}

TrainingStep Trainer::step(std::stop_token stop, bool keep_it) {
  const StopScope scope(stop);
  const bool by_parts = advance_ < examples_.length();  // between which the weights are none that a whole step has
  if (by_parts || keep_it) keep();
  const std::int64_t changes = optimiser_.steps();
  try {
    return step_by_parts(stop);
  } catch (...) {
    if (by_parts && (!whole_ || optimiser_.steps() != changes)) go_back();
    throw;
  }
}

void Trainer::undo() {
  assert(steps_ > 0);
  go_back();
  --steps_;
}

/// Copies the weights, and what the optimiser keeps, on the device where they lie.
void Trainer::keep() {
  const StopScope whole{std::stop_token()};
  Backend& backend = model_.backend();
  kept_.resize(model_.weights().size());
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const Model::Weight& weight = model_.weights()[i];
    if (!frozen_[i]) backend.copy(kept_[i].resize(backend, model_.real(), weight.entries()), weight.values.data(), weight.values.bytes());
  }
  optimiser_.keep();
}

void Trainer::go_back() {
  if (device_lost()) return;
  const StopScope whole{std::stop_token()};
  whole_ = false;
  model_.update([&](std::size_t i, const Model::Weight& weight) {
    if (!frozen_[i]) model_.backend().copy(weight.values.data(), kept_[i].data(), weight.values.bytes());
  });
  optimiser_.go_back();
  whole_ = true;
}

TrainingStep Trainer::step_by_parts(std::stop_token stop) {
  TrainingStep report{.step = steps_ + 1, .rate = options_.rate.at(steps_)};
  sequences_.clear();
  for (std::int64_t b = 0; b < options_.batch; ++b) sequences_.push_back(examples_.training(steps_, b));
  const std::int64_t length = examples_.length();
  const bool overlap = advance_ < truncate_;  // of one part and the next
  carried_.clear();
  for (std::int64_t learned = 0; learned < length; learned += advance_) {
    const std::int64_t end = std::min(learned + advance_, length);
    const auto begin_of = [&](std::int64_t part) { return std::max<std::int64_t>(0, part + advance_ - truncate_); };
    const std::int64_t from = begin_of(learned), next = begin_of(end);
    const bool counted =
        !judging_ || std::ranges::any_of(sequences_, [&](const Sequence& sequence) { return counts(sequence, learned, end); });
    if (counted || !overlap) {
      rollout_->set_batch(judging_ ? parts_of(from, end, learned) : batch_of(sequences_, 0));
      if (judging_ && !overlap && from > 0) {
        rollout_->continue_states();
      } else if (judging_) {
        rollout_->reset_states();
        rollout_->set_initial(carried_);
      }
      if (const auto bad = rollout_->forward(stop, true))
        throw TrainingDiverged(report.step, sentence(*bad) + " of a sequence", bad->array);
      if (!std::isfinite(rollout_->loss()))
        throw TrainingDiverged(report.step,
                               "the loss became non-finite at step " + std::to_string(rollout_->loss_step()) + " of a sequence", "loss");
      report.loss += rollout_->loss() / static_cast<double>(options_.batch);
    }
    if (counted)
      if (const auto bad = rollout_->backward(stop))
        throw TrainingDiverged(report.step, sentence(*bad) + " of a sequence, on the way back", bad->array);
    if (overlap && next > from && end < length) carry(from, next, stop);
    if (counted) change(report.rate, report);
  }
  ++steps_;
  return report;
}

void Trainer::change(double rate, TrainingStep& report) {
  const StopScope whole{std::stop_token()};  // weights of which some are changed are no step's
  Backend& backend = model_.backend();
  const DType real = model_.real();
  const auto totals = rollout_->device_gradients();
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
  if (watch_ && before_.empty())
    for (const Model::Weight& weight : model_.weights()) before_.emplace_back(backend, real, weight.entries());
  if (watch_)
    each([&](std::size_t i, std::int64_t) { backend.copy(before_[i].data(), model_.weights()[i].values.data(), before_[i].bytes()); });
  whole_ = false;
  optimiser_.step(rate, gradients_);
  whole_ = true;
  if (!watch_) return;
  changes_.assign(totals.size(), std::numeric_limits<double>::quiet_NaN());
  each([&](std::size_t i, std::int64_t n) {
    const double weight = backend.log2_norm(real, n, before_[i].data(), 0);
    backend.unary(Unary::affine, real, n, before_[i].data(), work_.data(), -1.0, 0.0);
    backend.add_scaled(real, n, 0, model_.weights()[i].values.data(), work_.data(), true);
    if (std::isfinite(weight)) changes_[i] = std::exp2(backend.log2_norm(real, n, work_.data(), 0) - weight);
  });
}

Judgement Trainer::judge(std::stop_token stop) {
  const StopScope scope(stop);
  Judgement found{.step = steps_, .metric = 0.0};
  BatchRollout& rollout = judging_ ? *judging_ : *rollout_;
  for (std::size_t first = 0; first < held_out_.size(); first += static_cast<std::size_t>(options_.batch)) {
    std::vector<Example> examples;
    std::vector<std::unique_ptr<Loss>> losses;
    std::vector<const JudgingLoss*> judging;
    for (std::size_t b = first; b < first + static_cast<std::size_t>(options_.batch); ++b) {
      auto loss = std::make_unique<JudgingLoss>(held_out_[b]);
      judging.push_back(loss.get());
      examples.push_back({&held_out_[b], loss.get()});
      losses.push_back(std::move(loss));
    }
    rollout.set_batch(Batch(std::move(examples)));
    losses_ = std::move(losses);
    if (const auto bad = rollout.forward(stop))
      throw TrainingDiverged(steps_, sentence(*bad) + " of a sequence that is held out", bad->array);
    found.loss += rollout.loss();
    for (const JudgingLoss* loss : judging) found.metric += loss->metric();
  }
  found.loss /= static_cast<double>(held_out_.size());
  found.metric /= static_cast<double>(held_out_.size());
  if (held_out_[0].target_kind == TargetKind::classify) found.metric = std::min(found.metric, 1.0);  // a sum of shares, each rounded
  if (!std::isfinite(found.loss)) throw TrainingDiverged(steps_, "the loss of what is held out became non-finite", "loss");
  return found;
}

void Trainer::restore(std::int64_t steps, std::int64_t changes, const std::map<std::string, std::vector<double>>& memory) {
  optimiser_.restore(changes, memory);
  steps_ = steps;
}

std::int64_t Trainer::changes_per_step() const { return (examples_.length() + advance_ - 1) / advance_; }

}  // namespace reclab
