// SPDX-License-Identifier: GPL-3.0-or-later
// For every architecture whose state settles while its input is held: recurrent backpropagation has the gradient of backpropagation
// through time, and K terms of Neumann's series that of its truncation to K steps before the last.
#include <algorithm>
#include <cmath>

#include "array/backend.h"
#include "array/error.h"
#include "array/host.h"
#include "execution/step_map.h"
#include "learning/examples.h"
#include "learning/learning_rule.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t length = 600, terms = 5;  // length: a multiple of terms + 1
constexpr double settled = 1e-13;

double largest(const std::vector<double>& values) {
  double size = 0.0;
  for (const double value : values) size = std::max(size, std::abs(value));
  return size;
}

/// Whether the state stays where it is when the held input has been read so long.
bool settles(const Model& model, const Sequence& sequence) {
  StepMap step(model, sequence.width, 2);
  std::vector<double> state = step.start();
  const std::span<const double> input = std::span(sequence.input).first(step.inputs());
  for (std::int64_t t = 0; t < length / 2; ++t) {
    step.evaluate(state, input);
    state = step.next();
  }
  step.evaluate(state, input);
  double change = 0.0;
  for (std::size_t i = 0; i < state.size(); ++i) change = std::max(change, std::abs(step.next()[i] - state[i]));
  return change <= settled * largest(state);
}

}  // namespace

SWEEP_ARCHITECTURES("at a fixed point RBP is BPTT, and K terms of it are K steps", architecture) {
  const Preset preset = test::preset_of(architecture.id);
  const Hyper hyper = hyper_of(builtin_registry(), preset, test::small_settings(preset));
  const auto examples = task_examples("held-bits", {.length = length, .seed = 4});
  const std::deque<Sequence> batch{examples->training(0, 0)};
  const Parameters parameters = Network(architecture, hyper, {.input = batch[0].width, .head = 2}).initialise(2);
  Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
  try {
    if (!settles(model, batch[0])) return;
  } catch (const Error&) {
    return;  // it has no step of its own
  }
  TrainingOptions options;
  options.batch = 1;
  options.rbp_damping = 0.0;
  const auto gradient = [&](const std::string& id) {
    options.rule = id;
    const auto rule = make_learning_rule({model, options, length, batch});
    rule->begin(batch, 1);
    while (rule->left()) rule->learn({});
    std::vector<double> all;
    for (const DeviceArray& array : rule->gradients()) {
      const auto values = to_double(model.backend(), model.real(), array.data(), array.entries());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  const auto compare = [&](const std::string& name, const std::vector<double>& own, const std::vector<double>& truth) {
    double error = 0.0;
    for (std::size_t i = 0; i < own.size(); ++i) error = std::max(error, std::abs(own[i] - truth[i]));
    error /= largest(truth);
    test::measured(architecture.id, name, error);
    CHECK_SAYS(error <= 1e-10, name + " " + test::show(error));
  };
  const std::vector<double> whole = gradient("bptt");
  options.truncate = terms + 1;
  const std::vector<double> last = gradient("bptt");
  options.truncate = 0;
  options.rbp_terms = terms;
  compare("neumann-rbp", gradient("neumann-rbp"), last);
  options.rbp_terms = 400;
  std::vector<double> own;
  try {
    own = gradient("rbp");
  } catch (const Error& error) {  // it stays where it is pushed to: an eigenvalue of 1
    CHECK_SAYS(std::string(error.what()).find("at no stable fixed point") != std::string::npos, error.what());
    test::measured(architecture.id, "not-stable", 1.0);
    return;
  }
  compare("rbp", own, whole);
  compare("cg-rbp", gradient("cg-rbp"), whole);
}
