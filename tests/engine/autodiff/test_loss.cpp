// SPDX-License-Identifier: GPL-3.0-or-later
// The loss as an operation of a graph: its value by hand, its gradient against central differences, and rows that do not count.
#include <cmath>
#include <limits>
#include <vector>

#include "array/rng.h"
#include "autodiff/loss.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t steps = 5, batch = 3, width = 4;

/// A graph that is nothing but outputs and their loss.
class OfOutputs {
 public:
  OfOutputs(LossTerm term, bool has_target) : graph_(DType::f64), y_(graph_.leaf(LeafKind::variable, {steps, batch, width}, DType::f64)) {
    node_ = add_loss(y_, term, has_target);
    graph_.allocate(cpu_backend(), true);
    Rng rng(3);
    outputs.resize(steps * batch * width);
    weights.resize(steps * batch);
    targets.resize(term == LossTerm::cross_entropy ? steps * batch : steps * batch * width);
    for (double& x : outputs) x = rng.normal();
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = i % 4 == 2 ? 0.0 : rng.uniform(0.5, 1.5);
    for (std::size_t i = 0; i < targets.size(); ++i)
      targets[i] = term == LossTerm::cross_entropy ? static_cast<double>(i % width) : rng.normal();
    graph_.bind(y_, outputs.data());
    graph_.bind(node_.weight, weights.data());
    if (node_.target) graph_.bind(node_.target, targets.data());
  }
  /// Of each sequence.
  std::vector<double> values() {
    graph_.forward();
    const auto* values = static_cast<const double*>(graph_.value(node_.value));
    return {values, values + batch};
  }
  std::vector<double> gradient(int unit = 0) {
    values();
    graph_.clear_gradients();
    node_.operation->set_unit(unit);
    graph_.backward();
    const auto* slopes = static_cast<const double*>(graph_.gradient(y_));
    return {slopes, slopes + outputs.size()};
  }
  double sum() {
    double all = 0.0;
    for (const double one : values()) all += one;
    return all;
  }
  std::vector<double> outputs, weights, targets;

 private:
  Graph graph_;
  Var y_;
  LossNode node_;
};

struct Kind {
  LossTerm term;
  bool has_target;
};
constexpr Kind kinds[] = {
    {LossTerm::squared_error, true}, {LossTerm::squared_error, false}, {LossTerm::cross_entropy, true}, {LossTerm::product, true}};

}  // namespace

TEST_CASE("the gradient of a loss is that of central differences") {
  for (const auto& [term, has_target] : kinds) {
    OfOutputs loss(term, has_target);
    const std::vector<double> gradient = loss.gradient();
    constexpr double h = 1e-5;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double at = loss.outputs[i];
      loss.outputs[i] = at + h;
      const double above = loss.sum();
      loss.outputs[i] = at - h;
      const double below = loss.sum();
      loss.outputs[i] = at;
      CHECK_CLOSE(gradient[i], (above - below) / (2.0 * h), 1e-9);
    }
  }
}

TEST_CASE("a loss in other units has the gradient in these") {
  OfOutputs loss(LossTerm::cross_entropy, true);
  const std::vector<double> plain = loss.gradient(), scaled = loss.gradient(100);
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK_EQUAL(scaled[i], std::ldexp(plain[i], -100));
}

TEST_CASE("what a loss does not count is not read") {
  for (const auto& [term, has_target] : kinds) {
    OfOutputs loss(term, has_target);
    const std::vector<double> values = loss.values(), gradient = loss.gradient();
    for (std::size_t row = 0; row < loss.weights.size(); ++row)
      for (std::size_t j = 0; j < width && loss.weights[row] == 0.0; ++j) {
        CHECK_EQUAL(gradient[row * width + j], 0.0);
        loss.outputs[row * width + j] = std::numeric_limits<double>::quiet_NaN();
      }
    CHECK(loss.values() == values);
    CHECK(loss.gradient() == gradient);
  }
}

TEST_CASE("losses that one can check by hand") {
  double y[] = {1.0, 3.0}, target[] = {2.0, 1.0}, weight = 2.0, value = 0.0, slope[2] = {};
  const LossDims dims{1, 1, 2};
  cpu_backend().loss(DType::f64, LossTerm::squared_error, dims, y, target, &weight, &value, slope);
  CHECK_EQUAL(value, 5.0);  // (1 - 2)^2 + (3 - 1)^2
  CHECK(slope[0] == -2.0 && slope[1] == 4.0);
  cpu_backend().loss(DType::f64, LossTerm::squared_error, dims, y, nullptr, &weight, &value, slope);
  CHECK_EQUAL(value, 10.0);
  cpu_backend().loss(DType::f64, LossTerm::product, dims, y, target, &weight, &value, slope);
  CHECK_EQUAL(value, 10.0);
  CHECK(slope[0] == 4.0 && slope[1] == 2.0);
  y[1] = 1.0;  // two classes that are as likely
  cpu_backend().loss(DType::f64, LossTerm::cross_entropy, dims, y, target + 1, &weight, &value, slope);
  CHECK_CLOSE(value, 2.0 * std::log(2.0), 1e-15);
  CHECK_CLOSE(slope[0], 1.0, 1e-15);
  CHECK_CLOSE(slope[1], -1.0, 1e-15);
}
