// SPDX-License-Identifier: GPL-3.0-or-later
// FORCE (D. Sussillo, L. F. Abbott, Neuron 63, 2009, equations 3 to 5): the read-out alone learns, at every step of a sequence, by
// recursive least squares. With the regressors r (1 behind them for the bias), the error e = y - target before the change and the
// forgetting factor lambda,
//   k = P r / (lambda + r' P r),  w_j -= e_j k,  P = (P - k r' P) / lambda,  P = I / alpha in the beginning.
// Where the model feeds its outputs back, the next step has the output of before the change. H. Jaeger, NIPS 2002, has it without feedback.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "learning/learning_rule.h"
#include "learning/losses.h"
#include "learning/online/influence.h"
#include "learning/online/sequence_rule.h"

namespace reclab::rules_by_name {
namespace {

constexpr const char* title = "FORCE: recursive least squares of the read-out";

class Force final : public LearningRule {
 public:
  explicit Force(const LearningSetup& setup)
      : model_(setup.model),
        options_(setup.options),
        memory_(setup.model, {}, std::vector<bool>(setup.model.weights().size())),
        length_(setup.length) {
    const auto within = [](const char* key, double value, bool good, const std::string& range) {
      if (!good)
        throw Error(std::string(key) + " is out of range: choose " + range + ".",
                    {.parameter = key, .value = std::to_string(value), .range = range});
    };
    within("force_alpha", options_.force_alpha, options_.force_alpha > 0.0, "more than 0");
    within("force_forget", options_.force_forget, options_.force_forget > 0.0 && options_.force_forget <= 1.0, "more than 0, at most 1");
    require_no_parts(options_, std::string(title) + " changes the weights at each step");
    const Sequence& first = setup.examples.front();
    require_numbers(title, first);
    const SequenceLoss loss(LossKind::task, first);
    step_ = std::make_unique<StepMap>(model_, first.width, loss.outputs());
    require_even_steps(title, *step_, first, loss);
    const Architecture& architecture = model_.architecture();
    if (const auto readout = architecture.fed_back ? architecture.fed_back(model_.hyper()) : std::nullopt) {
      if (readout->outputs != loss.outputs())
        throw Error(std::string(title) + " has the outputs fed back that have a target: choose feedback=" + std::to_string(loss.outputs()) +
                        ", or 0 for none.",
                    {.parameter = "feedback", .value = std::to_string(readout->outputs)});
      weight_ = place_of(readout->weight);
      bias_ = place_of(readout->bias);
      fed_back_ = true;
    } else {
      weight_ = place_of("head/weight");
      bias_ = place_of("head/bias");
    }
    for (const Place& one : {weight_, bias_})
      if (!setup.frozen.empty() && setup.frozen[one.index])
        throw Error(
            std::string(title) + " changes " + model_.weights()[one.index].name + " alone, and freeze holds it: leave it out there.",
            {.parameter = "freeze"});
    outputs_ = step_->outputs();
    features_ = weight_.entries / outputs_;
    P_ = &memory_.add("P", (features_ + 1) * (features_ + 1));
    begin_memory();
    for (const Model::Weight& one : model_.weights()) gradients_.emplace_back(model_.backend(), model_.real(), one.entries());
  }

  void begin(const std::deque<Sequence>& batch, std::int64_t number) override {
    if (number == 1) begin_memory();
    batch_ = &batch;
    number_ = number;
    left_ = true;
  }
  bool left() const override { return left_; }

  Part learn(std::stop_token stop) override {
    left_ = false;
    Part part;
    read_weights();
    std::vector<double> gradient(step_->weights());
    for (const Sequence& sequence : *batch_) take(sequence, stop, part, gradient);
    upload_gradients(model_, gradient, gradients_);
    return part;
  }
  std::span<const DeviceArray> gradients() const override { return gradients_; }
  bool changes_weights() const override { return true; }
  WeightMemory* memory() override { return &memory_; }

  bool exact() const override { return false; }
  std::int64_t parts() const override { return 1; }
  std::int64_t bytes() const override {
    std::size_t total = (step_->states() * 4 + step_->weights()) * sizeof(double);
    for (const DeviceArray& array : gradients_) total += array.bytes();
    return static_cast<std::int64_t>(total) + memory_.bytes();
  }

 private:
  struct Place {
    std::size_t index = 0, first = 0, entries = 0;  ///< of the weight; of its entries in StepMap::weight_adjoint()
  };
  Place place_of(const std::string& name) const {
    Place found;
    for (const Model::Weight& one : model_.weights()) {
      found.entries = static_cast<std::size_t>(one.entries());
      if (one.name == name) return found;
      found.first += found.entries;
      ++found.index;
    }
    throw Error(std::string(title) + " has no read-out " + name + " in this model: choose backpropagation.", {.parameter = "rule"});
  }
  void begin_memory() {
    const std::size_t n = features_ + 1;
    std::ranges::fill(*P_, 0.0);
    for (std::size_t i = 0; i < n; ++i) (*P_)[i * n + i] = 1.0 / options_.force_alpha;
  }
  /// Before the first change the head of a model that feeds its outputs back becomes the identity, as in a fit of its read-out.
  void read_weights() {
    const Parameters now = model_.parameters();
    W_ = now.entries()[weight_.index].values;
    b_ = now.entries()[bias_.index].values;
    if (!fed_back_ || number_ > 1) return;
    std::vector<double> identity(outputs_ * outputs_);
    for (std::size_t j = 0; j < outputs_; ++j) identity[j * outputs_ + j] = 1.0;
    model_.set("head/weight", identity);
    model_.set("head/bias", std::vector<double>(outputs_));
  }

  void take(const Sequence& sequence, const std::stop_token& stop, Part& part, std::vector<double>& gradient) {
    const SequenceLoss loss(LossKind::task, sequence);
    const auto width = static_cast<std::size_t>(sequence.width), n = features_ + 1;
    std::vector<double> state = step_->start(), r(n, 1.0), k(n), adjoint(outputs_), unit(outputs_), error(outputs_);
    unit[0] = 1.0;
    for (std::size_t t = 0; t < static_cast<std::size_t>(length_); ++t) {
      if (stop.stop_requested()) throw Cancelled();
      step_->evaluate(state, std::span(sequence.input).subspan(t * width, width));
      const std::vector<double>& y = step_->output();
      state = step_->next();
      if (!std::ranges::all_of(y, [](double value) { return std::isfinite(value); }))
        throw TrainingDiverged(number_, "output became non-finite at step " + std::to_string(t) + " of a sequence", "output");
      if (sequence.mask[t] == 0.0) continue;
      part.counts = true;
      std::ranges::fill(adjoint, 0.0);
      part.loss += loss.segment(static_cast<std::int64_t>(t), 1, static_cast<std::int64_t>(outputs_), y, adjoint);
      step_->pull_back({}, unit);  // the read-out is linear: dy[0]/dw[0] = r
      std::copy_n(step_->weight_adjoint().begin() + static_cast<std::ptrdiff_t>(weight_.first), features_, r.begin());
      for (std::size_t j = 0; j < outputs_; ++j) {
        error[j] = y[j] - sequence.target[t * outputs_ + j];
        for (std::size_t i = 0; i < features_; ++i) gradient[weight_.first + j * features_ + i] += adjoint[j] * r[i];
        gradient[bias_.first + j] += adjoint[j];
      }
      gain(r, k);
      for (std::size_t j = 0; j < outputs_; ++j) {
        for (std::size_t i = 0; i < features_; ++i) W_[j * features_ + i] -= error[j] * k[i];
        b_[j] -= error[j] * k[features_];
      }
      model_.set(model_.weights()[weight_.index].name, W_);
      model_.set(model_.weights()[bias_.index].name, b_);
    }
  }

  /// k, and the P of after it, whose symmetry is kept to the bit.
  void gain(const std::vector<double>& r, std::vector<double>& k) {
    const std::size_t n = r.size();
    std::vector<double>& P = *P_;
    double scale = options_.force_forget;
    for (std::size_t i = 0; i < n; ++i) {
      k[i] = 0.0;
      for (std::size_t j = 0; j < n; ++j) k[i] += P[i * n + j] * r[j];
      scale += r[i] * k[i];
    }
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j <= i; ++j) P[j * n + i] = P[i * n + j] = (P[i * n + j] - k[i] * k[j] / scale) / options_.force_forget;
    for (double& one : k) one /= scale;
  }

  Model& model_;
  TrainingOptions options_;
  WeightMemory memory_;
  std::int64_t length_, number_ = 0;
  std::unique_ptr<StepMap> step_;
  Place weight_, bias_;
  bool fed_back_ = false, left_ = false;
  std::size_t outputs_ = 0, features_ = 0;
  std::vector<double>* P_ = nullptr;
  std::vector<double> W_, b_;
  std::vector<DeviceArray> gradients_;
  const std::deque<Sequence>* batch_ = nullptr;
};

}  // namespace

LearningRuleInfo force() {
  return {
      .title = title,
      .year = 2009,
      .name = "FORCE",
      .gradient = GradientKind::biased,
      .memory = "d_s²",
      .time = "d_s² + |θ|",
      .memory_power = 2,
      .time_power = 2,
      .source = "D. Sussillo, L. F. Abbott, Neuron 63, 2009, equations 3 to 5",
      .idea =
          "The recurrent weights stay, and the read-out goes at each step to the least squares of all steps so far, so errors are small "
          "from the first steps on, also while outputs are fed back. Nothing is learned of what the reservoir does not have.",
      .make = [](const LearningSetup& setup) -> std::unique_ptr<LearningRule> { return std::make_unique<Force>(setup); }};
}

}  // namespace reclab::rules_by_name
