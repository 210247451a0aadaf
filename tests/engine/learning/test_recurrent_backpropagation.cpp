// SPDX-License-Identifier: GPL-3.0-or-later
// Recurrent backpropagation where its fixed point is not stable, and a network that learns by it.
#include <cmath>
#include <string>
#include <vector>

#include "array/backend.h"
#include "array/error.h"
#include "learning/examples.h"
#include "learning/online/influence.h"
#include "learning/trainer.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

Model elman(std::int64_t width, std::int64_t input, std::int64_t head) {
  const Architecture& architecture = builtin_registry().find("elman");
  Hyper hyper(architecture.hyper);
  hyper.set("width", width, "elman");
  const Parameters parameters = Network(architecture, hyper, {.input = input, .head = head}).initialise(3);
  return Model(architecture, hyper, parameters, cpu_backend(), DType::f64);
}

std::vector<double> values_of(const Model& model, const std::string& name) {
  const Parameters all = model.parameters();
  for (const auto& entry : all.entries())
    if (entry.name == name) return entry.values;
  return {};
}

}  // namespace

TEST_CASE("where the fixed point is not stable RBP says so, and conjugate gradients have its gradient") {
  // h = tanh(W h) at h = 0: J = W, and the gradient of the bias is (I - W^T)^-1 V^T g, V being the read-out.
  Model model = elman(3, 1, 1);
  const std::vector<double> W{1.4, 0.3, 0.0, -0.2, 0.5, 0.7, 0.1, -0.6, 1.2}, V{1.0, -2.0, 0.5};
  model.set("0/weight_hh", W);
  for (const Model::Weight& weight : model.weights())
    if (weight.name.starts_with("0/bias")) model.set(weight.name, std::vector<double>(3));
  model.set("head/weight", V);
  StepMap step(model, 1, 1);
  const std::vector<double> rest(step.states()), input{0.0}, one{1.0};
  TrainingOptions options;
  options.rbp_damping = 0.0;
  const auto gradient = [&](const std::string& id) {
    const auto influence = learning_rule(id).online({model, options, 1, 1}).influence();
    influence->start({});
    step.evaluate(rest, input);
    std::vector<double> sum(step.weights());
    influence->credit(step, one, true, sum);
    return sum;
  };
  CHECK_ERROR(gradient("rbp"), "at no stable fixed point");
  const std::vector<double> all = gradient("cg-rbp");
  std::size_t at = 0;
  for (const Model::Weight& weight : model.weights()) {
    const auto entries = static_cast<std::size_t>(weight.entries());
    if (weight.name.starts_with("0/bias"))
      for (std::size_t j = 0; j < 3; ++j) {
        double left = all[at + j];
        for (std::size_t i = 0; i < 3; ++i) left -= W[3 * i + j] * all[at + i];
        CHECK_CLOSE(left, V[j], 1e-12);
      }
    at += entries;
  }
}

TEST_CASE("the Lipschitz penalty has the derivative of the fixed point's own") {
  Model model = elman(4, 2, 1);
  std::vector<double> W(16);
  for (std::size_t i = 0; i < 16; ++i) W[i] = 0.22 + 0.05 * static_cast<double>(i % 5);
  model.set("0/weight_hh", W);
  StepMap step(model, 2, 1);
  const std::vector<double> input{0.3, -0.2}, none{0.0}, ones(4, 1.0);
  TrainingOptions options;
  options.lipschitz = 0.7;
  options.lipschitz_bound = 0.4;
  const auto settle = [&] {
    std::vector<double> state = step.start();
    for (int t = 0; t < 2000; ++t) {
      step.evaluate(state, input);
      state = step.next();
    }
    step.evaluate(state, input);
  };
  const auto penalty = [&] {
    settle();
    step.pull_back(ones, {});
    double squares = 0.0;
    for (const double x : step.state_adjoint()) squares += x > 0.4 ? (x - 0.4) * (x - 0.4) : 0.0;
    return 0.7 * std::sqrt(squares);
  };
  CHECK(penalty() > 0.1);
  for (const std::string rule : {"rbp", "cg-rbp", "neumann-rbp"}) {
    options.rbp_damping = 0.0;
    options.rbp_terms = 1000;
    const auto influence = learning_rule(rule).online({model, options, 2, 1}).influence();
    influence->start({});
    settle();
    const std::vector<double> next = step.next();
    std::vector<double> gradient(step.weights());
    influence->credit(step, none, true, gradient);
    CHECK(step.next() == next);  // what comes after goes on from it
    std::size_t at = 0;
    for (const Model::Weight& weight : model.weights()) {
      const auto entries = static_cast<std::size_t>(weight.entries());
      std::vector<double> values = values_of(model, weight.name);
      for (std::size_t i = 0; i < entries; i += 3) {
        const double was = values[i], way = 1e-5;
        const auto with = [&](double value) {
          values[i] = value;
          model.set(weight.name, values);
          return penalty();
        };
        const double slope = (with(was + way) - with(was - way)) / (2.0 * way);
        with(was);
        CHECK_CLOSE(gradient[at + i], slope, 1e-7);
      }
      at += entries;
    }
  }
}

TEST_CASE("exclusive or of held bits is learned at a fixed point") {
  for (const std::string rule : {"rbp", "neumann-rbp", "cg-rbp"}) {
    Model model = elman(12, 2, 2);
    TrainingOptions options;
    options.rule = rule;
    options.batch = 16;
    options.held_out = 64;
    const auto examples = task_examples("held-bits", {.length = 40, .seed = 2});
    Trainer trainer(model, *examples, options);
    for (int i = 0; i < 400; ++i) trainer.step();
    const double loss = trainer.evaluate().loss;
    std::printf("%s: %.3g\n", rule.c_str(), loss);
    CHECK_SAYS(loss < 0.2, rule);
  }
}
