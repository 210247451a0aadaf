// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/feedback/local_alignment.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "array/error.h"
#include "array/rng.h"
#include "learning/losses.h"
#include "learning/online/sequence_rule.h"
#include "learning/structure/step_layers.h"

namespace reclab {
namespace {

/// A matrix within an array of several.
struct Matrix {
  std::size_t first = 0, rows = 0, columns = 0;
  std::size_t end() const { return first + rows * columns; }
};

std::vector<double> times(std::span<const double> all, const Matrix& matrix, std::span<const double> x) {
  std::vector<double> y(matrix.rows);
  for (std::size_t i = 0; i < matrix.rows; ++i)
    for (std::size_t j = 0; j < matrix.columns; ++j) y[i] += all[matrix.first + i * matrix.columns + j] * x[j];
  return y;
}

/// matrix += factor x y'
void add_outer(std::span<double> all, const Matrix& matrix, double factor, std::span<const double> x, std::span<const double> y) {
  for (std::size_t i = 0; i < matrix.rows; ++i)
    for (std::size_t j = 0; j < matrix.columns; ++j) all[matrix.first + i * matrix.columns + j] += factor * x[i] * y[j];
}

class LocalAlignment final : public SequenceRule {
 public:
  LocalAlignment(const LearningSetup& setup, const std::string& title, const AlignmentForm& form)
      : SequenceRule(checked(setup, title), title),
        form_(form),
        beta_(setup.options.align_step),
        alpha_(setup.options.align_prediction),
        rate_(setup.options.feedback_rate),
        batch_(static_cast<double>(setup.options.batch)),
        length_(static_cast<std::size_t>(setup.length)),
        memory_(setup.model, {}, std::vector<bool>(setup.model.weights().size())) {
    const Sequence& first = setup.examples.front();
    const auto outputs = static_cast<std::size_t>(SequenceLoss(LossKind::task, first).outputs());
    const StepLayers layers = step_layers({setup.model, setup.options, first.width, static_cast<std::int64_t>(outputs)});
    const std::set<int, std::greater<>> found(layers.of_state.begin(), layers.of_state.end());
    if (found.empty())
      throw Error(
          title + " has a target for the state of each layer, and " + setup.model.architecture().id + " has no state: choose another rule.",
          {.model = setup.model.architecture().id, .parameter = "rule", .value = setup.options.rule});
    for (const int layer : found) {
      Layer& one = layers_.emplace_back();
      for (std::size_t i = 0; i < layers.of_state.size(); ++i)
        if (layers.of_state[i] == layer) one.entries.push_back(i);
      for (std::size_t w = 0; w < layers.of_weight.size(); ++w)
        if (layers.of_weight[w] == layer) one.weights.push_back(w);
    }
    for (std::size_t w = 0; w < layers.of_weight.size(); ++w)
      if (layers.of_weight[w] == StepLayers::none) of_output_.push_back(w);

    std::size_t at = 0;
    const auto place = [&](std::size_t rows, std::size_t columns) {
      const Matrix made{at, rows, columns};
      at = made.end();
      return made;
    };
    for (std::size_t k = 0; k < layers_.size(); ++k)
      layers_[k].feedback = place(layers_[k].entries.size(), k == 0 ? outputs : layers_[k - 1].entries.size());
    for (std::size_t k = 1; form_.predicts && k < layers_.size(); ++k)
      layers_[k].prediction = place(layers_[k - 1].entries.size(), layers_[k].entries.size());
    own_ = &memory_.add("feedback", at);
    Rng rng = Rng(setup.options.seed).split("feedback");
    for (const Layer& layer : layers_) {  // those of a layer, E and W, start by its own width
      const double size = 1.0 / std::sqrt(static_cast<double>(layer.entries.size()));
      for (const Matrix& matrix : {layer.feedback, layer.prediction})
        for (std::size_t i = matrix.first; i < matrix.end(); ++i) (*own_)[i] = rng.uniform(-size, size);
    }
  }

  bool exact() const override { return false; }
  WeightMemory* memory() override { return &memory_; }
  void changed() override {
    const std::vector<double> down = sum_of_rule();
    for (std::size_t i = 0; i < down.size(); ++i) (*own_)[i] -= rate_ / batch_ * down[i];
  }

 private:
  struct Layer {
    std::vector<std::size_t> entries{}, weights{};  ///< of StepMap's state and weights
    Matrix feedback{}, prediction{};                ///< E[k]; W[k], of the state of the layer before it in the list
  };

  static const LearningSetup& checked(const LearningSetup& setup, const std::string& title) {
    const auto within = [](const char* key, double value, bool good, const std::string& range) {
      if (!good)
        throw Error(std::string(key) + " is out of range: choose " + range + ".",
                    {.parameter = key, .value = std::to_string(value), .range = range});
    };
    const TrainingOptions& options = setup.options;
    within("align_step", options.align_step, options.align_step > 0.0, "more than 0");
    within("align_prediction", options.align_prediction, options.align_prediction >= 0.0, "0 or more");
    within("feedback_rate", options.feedback_rate, options.feedback_rate >= 0.0, "0 or more");
    require_no_parts(options, title + " goes back over no step");
    return setup;
  }
  std::size_t numbers(const StepMap& step) const override { return 4 * step.states() + 2 * own_->size(); }

  void take(StepMap& step, const Sequence& sequence, SequenceGradient& own, const std::stop_token& stop) const override {
    const SequenceLoss loss(LossKind::task, sequence);
    const auto width = static_cast<std::size_t>(sequence.width);
    double counted = 0.0;
    for (const double m : sequence.mask) counted += m;
    own.of_rule.assign(own_->size(), 0.0);
    std::vector<double> state = step.start(), error(step.outputs()), adjoint(step.states());
    std::vector<std::vector<double>> z(layers_.size()), off(layers_.size());
    for (std::size_t t = 0; t < length_; ++t) {
      if (stop.stop_requested()) throw Cancelled();
      step.evaluate(state, std::span(sequence.input).subspan(t * width, width));
      state = step.next();
      const auto finite = [](double x) { return std::isfinite(x); };
      if (!std::ranges::all_of(state, finite) || !std::ranges::all_of(step.output(), finite)) {
        own.bad = {"a state or an output became non-finite at step " + std::to_string(t) + " of a sequence", "state"};
        return;
      }
      if (sequence.mask[t] == 0.0) continue;
      std::ranges::fill(error, 0.0);
      own.value += loss.segment(static_cast<std::int64_t>(t), 1, std::ssize(error), step.output(), error);
      step.pull_back({}, error);
      for (const std::size_t w : of_output_) own.gradient[w] += step.weight_adjoint()[w];
      for (double& one : error) one *= counted;  // of the step alone
      for (std::size_t k = 0; k < layers_.size(); ++k) {
        z[k].clear();
        for (const std::size_t i : layers_[k].entries) z[k].push_back(state[i]);
      }
      std::vector<double> before = error;  // p[k-1], or d[k-1]
      for (std::size_t k = 0; k < layers_.size(); ++k) {
        const Layer& layer = layers_[k];
        off[k] = times(*own_, layer.feedback, before);
        add_outer(own.of_rule, layer.feedback, 1.0 / counted, z[k], before);
        std::vector<double> mismatch;
        if (form_.predicts && k + 1 < layers_.size()) {
          mismatch = times(*own_, layers_[k + 1].prediction, z[k + 1]);
          for (std::size_t i = 0; i < mismatch.size(); ++i) {
            mismatch[i] -= z[k][i];
            off[k][i] -= alpha_ * mismatch[i];
          }
          add_outer(own.of_rule, layers_[k + 1].prediction, 1.0 / counted, mismatch, z[k + 1]);
        }
        for (double& one : off[k]) one *= beta_;
        before = form_.predicts ? mismatch : off[k];
      }
      for (std::size_t k = 0; k < layers_.size(); ++k) {
        std::ranges::fill(adjoint, 0.0);
        for (std::size_t i = 0; i < off[k].size(); ++i) adjoint[layers_[k].entries[i]] = off[k][i];
        step.pull_back(adjoint, {});
        for (const std::size_t w : layers_[k].weights) own.gradient[w] += step.weight_adjoint()[w] / counted;
        for (std::size_t i = 0; form_.carries && i < off[k].size(); ++i) state[layers_[k].entries[i]] -= off[k][i];
      }
    }
  }

  AlignmentForm form_;
  double beta_, alpha_, rate_, batch_;
  std::size_t length_;
  WeightMemory memory_;
  std::vector<double>* own_ = nullptr;  // E and W, in memory_
  std::vector<Layer> layers_;           // that nearest to the output first
  std::vector<std::size_t> of_output_;  // weights that act on no state
};

}  // namespace

std::unique_ptr<LearningRule> local_alignment(const LearningSetup& setup, const std::string& title, const AlignmentForm& form) {
  return std::make_unique<LocalAlignment>(setup, title, form);
}

}  // namespace reclab
