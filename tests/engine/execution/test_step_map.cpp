// SPDX-License-Identifier: GPL-3.0-or-later
// One step alone, step after step, is the whole: the outputs, states and gradients of every architecture against those of a run over the
// sequence, and the Jacobian-vector products against the vector-Jacobian products.
#include "execution/step_map.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "array/error.h"
#include "array/rng.h"
#include "execution/rollout.h"
#include "learning/losses.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t T = 9;

std::vector<double> drawn(Rng& rng, std::size_t n) {
  std::vector<double> values(n);
  for (double& value : values) value = rng.normal();
  return values;
}

double largest(std::span<const double> values) {
  double most = 0.0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

void check_equal(std::span<const double> own, std::span<const double> expected, const std::string& what) {
  CHECK_EQUAL(own.size(), expected.size());
  const double scale = std::max(1e-300, largest(expected));
  for (std::size_t i = 0; i < own.size(); ++i)
    CHECK_SAYS(std::abs(own[i] - expected[i]) <= 1e-9 * scale,
               what + " " + std::to_string(i) + ": " + test::show(own[i]) + " for " + test::show(expected[i]));
}

double dot(std::span<const double> x, std::span<const double> y) { return std::inner_product(x.begin(), x.end(), y.begin(), 0.0); }

/// Whether it was compared: not where it has no step of its own.
bool compare(const Architecture& architecture) {
  const Preset preset = test::preset_of(architecture.id);
  const Hyper hyper = hyper_of(builtin_registry(), preset, test::small_settings(preset));
  const Sequence sequence = make_task("noise", {.length = T, .seed = 5});
  const SequenceLoss loss(LossKind::random, sequence, 2);
  const Parameters parameters = Network(architecture, hyper, {.input = sequence.width, .head = 2}).initialise(3);
  const Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
  std::unique_ptr<StepMap> step;
  try {
    step = std::make_unique<StepMap>(model, sequence.width, 2);
  } catch (const Error& error) {
    const std::string why = error.what();
    CHECK_SAYS(why.find("grows with the sequence") != std::string::npos || why.find("no step of its own") != std::string::npos, why);
    return false;
  }
  Rollout rollout(model, Batch(sequence, loss), {});
  std::vector<double> outputs;
  CHECK(!rollout.forward(
      [&](const Rollout::Segment& s) {
        const auto own = to_double(cpu_backend(), DType::f64, s.network.graph().value(s.network.output()), s.steps * 2);
        outputs.insert(outputs.end(), own.begin(), own.end());
      },
      {}));
  CHECK(!rollout.backward({}, {}));

  // Forward, every state kept.
  const auto width = static_cast<std::size_t>(sequence.width);
  const auto input_at = [&](std::int64_t t) { return std::span(sequence.input).subspan(static_cast<std::size_t>(t) * width, width); };
  std::vector<std::vector<double>> states{step->start()};
  std::vector<double> own;
  double value = 0.0;
  for (std::int64_t t = 0; t < T; ++t) {
    step->evaluate(states.back(), input_at(t));
    own.insert(own.end(), step->output().begin(), step->output().end());
    value += loss.segment(t, 1, 2, step->output(), {});
    states.push_back(step->next());
  }
  check_equal(own, outputs, architecture.id + ": outputs");
  CHECK_CLOSE(value, rollout.loss(), 1e-9);
  const auto finals = rollout.final_states();
  for (std::size_t i = 0; i < step->parts().size(); ++i) {
    const StepMap::Part& part = step->parts()[i];
    std::vector<double> expected;
    const auto& given = finals.at(part.name);
    for (const auto& z : given) {
      expected.push_back(z.real());
      if (part.entries == 2 * given.size()) expected.push_back(z.imag());
    }
    check_equal(std::span(states.back()).subspan(part.first, part.entries), expected, architecture.id + ": " + part.name);
  }

  // Backward, one product after the other.
  std::vector<double> state_adjoint(step->states()), weights(step->weights());
  for (std::int64_t t = T - 1; t >= 0; --t) {
    step->evaluate(states[static_cast<std::size_t>(t)], input_at(t));
    std::vector<double> output_adjoint(2);
    loss.segment(t, 1, 2, step->output(), output_adjoint);
    step->pull_back(state_adjoint, output_adjoint);
    state_adjoint = step->state_adjoint();
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] += step->weight_adjoint()[i];
  }
  std::vector<double> expected;
  for (const Model::Weight& weight : model.weights()) {
    const auto& one = rollout.parameter_gradients().at(weight.name);
    expected.insert(expected.end(), one.begin(), one.end());
  }
  check_equal(weights, expected, architecture.id + ": gradients");

  const auto initial = rollout.initial_gradients();
  for (const StepMap::Part& part : step->parts()) {
    const auto own_part = std::span(state_adjoint).subspan(part.first, part.entries);
    const auto found = initial.find(part.name);
    if (found == initial.end()) {
      CHECK_SAYS(largest(own_part) == 0.0, architecture.id + ": " + part.name);
      continue;
    }
    std::vector<double> of_run;
    for (const auto& z : found->second) {
      of_run.push_back(z.real());
      if (part.entries == 2 * found->second.size()) of_run.push_back(z.imag());
    }
    if (largest(of_run) > 1e-12) check_equal(own_part, of_run, architecture.id + ": gradient of the initial " + part.name);
  }

  // <adjoint, J move> = <J^T adjoint, move>, at a step in the middle.
  Rng rng(11);
  step->evaluate(states[T / 2], input_at(T / 2));
  const std::vector<double> move = drawn(rng, step->states()), input_move = drawn(rng, width), next_adjoint = drawn(rng, step->states()),
                            output_adjoint = drawn(rng, 2);
  step->push_forward(move, input_move);
  step->pull_back(next_adjoint, output_adjoint);
  const double forward = dot(next_adjoint, step->next_move()) + dot(output_adjoint, step->output_move());
  const double back = dot(step->state_adjoint(), move) + dot(step->input_adjoint(), input_move);
  const double scale = largest(step->next_move()) * std::sqrt(static_cast<double>(step->states())) + largest(step->output_move());
  CHECK_SAYS(std::abs(forward - back) <= 1e-10 * std::max(scale, std::abs(forward)),
             architecture.id + ": " + test::show(forward) + " for " + test::show(back));
  return true;
}

}  // namespace

TEST_CASE("steps one after another are the run, and their products its gradients, for every architecture that has a step") {
  std::size_t compared = 0;
  std::string others;
  for (const Architecture& architecture : builtin_registry().all())
    if (compare(architecture))
      ++compared;
    else
      others += architecture.id + " ";
  std::printf("compared: %zu, without a step of their own: %s\n", compared, others.c_str());
  CHECK(compared > builtin_registry().all().size() / 2);
}

TEST_CASE("a step sees the weights as they are, and says what has none") {
  const Architecture& elman = builtin_registry().find("elman");
  Hyper hyper(elman.hyper);
  hyper.set_text("width", "3", "elman");
  Model model(elman, hyper, Network(elman, hyper, {.input = 2, .head = 1}).initialise(1), cpu_backend(), DType::f64);
  StepMap step(model, 2, 1);
  CHECK_EQUAL(step.states(), 3u);
  CHECK_EQUAL(step.inputs(), 2u);
  CHECK_EQUAL(step.outputs(), 1u);
  const std::vector<double> input{0.5, -1.0};
  step.evaluate(step.start(), input);
  const auto before = step.next();
  for (const Model::Weight& weight : model.weights())
    model.set(weight.name, std::vector<double>(static_cast<std::size_t>(weight.entries())));
  step.evaluate(step.start(), input);
  CHECK(before != step.next() && largest(step.next()) == 0.0);
  const Architecture& transformer = builtin_registry().find("transformer");
  const Hyper usual(transformer.hyper);
  const Model grows(transformer, usual, Network(transformer, usual, {.input = 1}).initialise(1), cpu_backend(), DType::f64);
  CHECK_ERROR(StepMap(grows, 1, 0), "grows with the sequence");
}
