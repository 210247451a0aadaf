// SPDX-License-Identifier: GPL-3.0-or-later
// Lifted states by block coordinate descent (A. Askari, G. Negiar, R. Sambharya, L. El Ghaoui, arXiv:1805.01532, 2018, algorithm 1; for
// recurrent networks R. Sambharya, 2018; with the proximal term of J. Zeng, T. T.-K. Lau, S. Lin, Y. Yao, ICML 2019, algorithm 2): of
//   F = mean over the batch of sum_t L[t] + penalty/2 |f(s[t-1], u[t]) - s[t]|^2
// each state alone, then the weights of the read-out, then the other weights go to where F, of weights with proximal/2 |theta - those
// before|^2, is least.
#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "array/cpu/processor/threads.h"
#include "learning/lifted/conjugate_descent.h"
#include "learning/lifted/lifted.h"
#include "learning/online/influence.h"
#include "learning/online/sequence_rule.h"

namespace reclab::rules_by_name {
namespace {

constexpr const char* title = "Block coordinate descent of lifted states";

class BlockDescent final : public LearningRule {
 public:
  explicit BlockDescent(const LearningSetup& setup)
      : model_(setup.model),
        options_(setup.options),
        length_(setup.length),
        memory_(setup.model, {}, std::vector<bool>(setup.model.weights().size())) {
    check_lifted(options_);
    if (!(options_.lifted_proximal > 0.0))
      throw Error("lifted_proximal is out of range: choose more than 0.", {.parameter = "lifted_proximal", .range = "more than 0"});
    require_no_parts(options_, std::string(title) + " has the states of whole sequences", ", and choose shorter sequences");
    const Sequence& first = setup.examples.front();
    const SequenceLoss loss(LossKind::task, first);
    for (std::int64_t b = 0; b < options_.batch; ++b) steps_.push_back(std::make_unique<StepMap>(model_, first.width, loss.outputs()));
    require_even_steps(title, *steps_.front(), first, loss);
    for (const bool read_out : {true, false}) {
      std::vector<std::size_t> block;
      for (std::size_t i = 0; i < model_.weights().size(); ++i)
        if (model_.weights()[i].name.starts_with("head/") == read_out && (setup.frozen.empty() || !setup.frozen[i])) block.push_back(i);
      if (!block.empty()) blocks_.push_back(std::move(block));
    }
    for (const Model::Weight& weight : model_.weights()) {
      first_.push_back(weights_);
      weights_ += static_cast<std::size_t>(weight.entries());
      gradients_.emplace_back(model_.backend(), model_.real(), weight.entries());
    }
  }

  void begin(const std::deque<Sequence>& batch, std::int64_t number) override {
    batch_ = &batch;
    number_ = number;
    left_ = true;
  }
  bool left() const override { return left_; }

  Part learn(std::stop_token stop) override {
    left_ = false;
    Part part;
    lifted_.clear();
    lifted_.resize(steps_.size());
    each(stop, [&](std::size_t b) { lifted_[b] = std::make_unique<LiftedSequence>(*steps_[b], (*batch_)[b], stop); });
    for (std::size_t b = 0; b < lifted_.size(); ++b) {
      if (lifted_[b]->bad()) throw TrainingDiverged(number_, lifted_[b]->bad()->first, lifted_[b]->bad()->second);
      part.loss += lifted_[b]->loss();
      part.counts |= std::ranges::any_of((*batch_)[b].mask, [](double m) { return m != 0.0; });
    }
    if (!part.counts) return part;
    for (std::int64_t round = 0; round < options_.lifted_rounds; ++round) {
      each(stop, [&](std::size_t b) { lifted_[b]->sweep(options_.lifted_penalty, options_.lifted_iterations); });
      if (round == 0) {  // the gradient that is told of: of F, before any weight has changed
        std::vector<double> gradient(weights_);
        mean(stop, gradient);
        for (double& one : gradient) one *= static_cast<double>(options_.batch);  // it is a sum over the batch
        upload_gradients(model_, gradient, gradients_);
      }
      for (const std::vector<std::size_t>& block : blocks_) minimise(block, stop);
    }
    lifted_.clear();
    return part;
  }
  std::span<const DeviceArray> gradients() const override { return gradients_; }
  bool changes_weights() const override { return true; }
  WeightMemory* memory() override { return &memory_; }

  bool exact() const override { return false; }
  std::int64_t parts() const override { return 1; }
  std::int64_t bytes() const override {
    // States, their adjoints and duals; the curvature of a block; of the weights what each thread adds up, and a descent.
    constexpr std::size_t of_states = 3, of_descent = 5;
    const std::size_t states = steps_.front()->states(), batch = steps_.size();
    std::size_t total = batch * (of_states * static_cast<std::size_t>(length_) * states + 2 * states * states + weights_);
    total = (total + of_descent * weights_) * sizeof(double);
    for (const DeviceArray& array : gradients_) total += array.bytes();
    return static_cast<std::int64_t>(total) + memory_.bytes();
  }

 private:
  /// A thread each; throws Cancelled.
  template <class Do>
  void each(const std::stop_token& stop, const Do& act) const {
    cpu::parallel(std::ssize(steps_), [&](std::int64_t b) {
      try {
        act(static_cast<std::size_t>(b));
      } catch (const Cancelled&) {  // of all, below
      }
    });
    if (stop.stop_requested()) throw Cancelled();
  }
  /// F with the weights and states as they are; its gradient by all weights is added.
  double mean(const std::stop_token& stop, std::vector<double>& gradient) const {
    std::vector<std::vector<double>> own(lifted_.size(), std::vector<double>(weights_));
    std::vector<double> values(lifted_.size());
    each(stop, [&](std::size_t b) { values[b] = lifted_[b]->objective(options_.lifted_penalty, own[b]); });
    const double share = 1.0 / static_cast<double>(lifted_.size());
    double sum = 0.0;
    for (std::size_t b = 0; b < lifted_.size(); ++b) {
      sum += share * values[b];
      add_scaled(gradient, share, own[b]);
    }
    return sum;
  }

  void minimise(const std::vector<std::size_t>& block, const std::stop_token& stop) {
    const Parameters now = model_.parameters();
    std::vector<double> x;
    for (const std::size_t i : block) x.insert(x.end(), now.entries()[i].values.begin(), now.entries()[i].values.end());
    const std::vector<double> before = x;
    const auto set = [&](const std::vector<double>& to) {
      std::size_t at = 0;
      for (const std::size_t i : block) {
        const auto entries = static_cast<std::size_t>(model_.weights()[i].entries());
        const std::span<const double> own = std::span(to).subspan(at, entries);
        if (!std::ranges::all_of(own, [](double value) { return std::isfinite(value); }))
          throw TrainingDiverged(number_, model_.weights()[i].name + " became non-finite", model_.weights()[i].name);
        model_.set(model_.weights()[i].name, own);
        at += entries;
      }
    };
    const auto value = [&](const std::vector<double>& at, std::vector<double>& gradient) {
      set(at);
      std::vector<double> all(weights_);
      double sum = mean(stop, all);
      gradient.clear();
      for (const std::size_t i : block)
        for (std::size_t k = 0; k < static_cast<std::size_t>(model_.weights()[i].entries()); ++k) gradient.push_back(all[first_[i] + k]);
      for (std::size_t i = 0; i < at.size(); ++i) {
        const double off = at[i] - before[i];
        sum += 0.5 * options_.lifted_proximal * off * off;
        gradient[i] += options_.lifted_proximal * off;
      }
      return sum;
    };
    conjugate_descent(x, value,
                      {.iterations = options_.lifted_iterations,
                       .nudge = model_.real() == DType::f64 ? 1e-6 : 1e-2,  // seen in the model's precision
                       .first_step = 1.0 / options_.lifted_proximal});
    set(x);
  }

  Model& model_;
  TrainingOptions options_;
  std::int64_t length_, number_ = 0;
  WeightMemory memory_;  // empty; with it the trainer puts the weights back where a step fails
  std::vector<std::unique_ptr<StepMap>> steps_;
  std::vector<std::unique_ptr<LiftedSequence>> lifted_;  // of the batch
  std::vector<std::vector<std::size_t>> blocks_;         // weights, by their places in the model's
  std::vector<std::size_t> first_;                       // of each weight, one after another
  std::size_t weights_ = 0;
  std::vector<DeviceArray> gradients_;
  const std::deque<Sequence>* batch_ = nullptr;
  bool left_ = false;
};

}  // namespace

LearningRuleInfo block_descent() {
  return {.title = title,
          .year = 2018,
          .name = "block descent",
          .gradient = GradientKind::biased,
          .past_facing = false,
          .local = true,
          .memory = "6 |θ| + T d_s, d_s² for a full matrix",
          .time = "K d_s³",
          .memory_power = 2,
          .time_power = 3,
          .source = "A. Askari, G. Negiar, R. Sambharya, L. El Ghaoui, arXiv:1805.01532, 2018, algorithm 1; J. Zeng and others, ICML 2019",
          .idea =
              "States are variables beside the weights, held to the recurrence by a penalty, and everything goes down one function by "
              "turns: each "
              "state to where it is least with all others held, then the read-out, then the other weights. Each turn is a small problem, "
              "solved "
              "by itself and in closed form where it is linear, and none raises the function; there is no rate, and a weight that is alone "
              "with "
              "its batch follows it closely.",
          .make = [](const LearningSetup& setup) -> std::unique_ptr<LearningRule> { return std::make_unique<BlockDescent>(setup); }};
}

}  // namespace reclab::rules_by_name
