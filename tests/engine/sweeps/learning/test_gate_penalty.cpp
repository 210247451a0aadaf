// SPDX-License-Identifier: GPL-3.0-or-later
// A penalty on gates: its gradient against central differences for every architecture with gates, in every form; its weight 0; and that
// training lowers it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "array/error.h"
#include "array/host.h"
#include "array/rng.h"
#include "execution/rollout.h"
#include "learning/examples.h"
#include "learning/learning_rule.h"
#include "learning/losses.h"
#include "learning/trainer.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t length = 6;

/// The loss and the penalty of a batch, and the gradient of their sum, by weight.
struct Learned {
  double loss = 0.0, penalty = 0.0;
  std::vector<std::vector<double>> gradient;
  double whole() const { return loss + penalty; }
};
Learned learned(Model& model, const std::deque<Sequence>& batch, const TrainingOptions& options) {
  const auto rule = make_learning_rule({model, options, length, batch});
  rule->begin(batch, 1);
  const LearningRule::Part part = rule->learn({});
  Learned made{part.loss, part.gate_penalty, {}};
  for (const DeviceArray& array : rule->gradients())
    made.gradient.push_back(to_double(model.backend(), model.real(), array.data(), array.entries()));
  return made;
}

std::unique_ptr<Model> model_of(const Architecture& architecture, const Hyper& hyper, const Parameters& parameters) {
  return std::make_unique<Model>(architecture, hyper, parameters, cpu_backend(), DType::f64);
}

/// (f(x + h) - f(x - h)) / 2h at h and h/2, combined so that the error falls with the fourth power of h.
template <class F>
double slope_at_0(const F& f, double h) {
  const auto central = [&](double way) { return (f(way) - f(-way)) / (2 * way); };
  return (4.0 * central(h / 2) - central(h)) / 3.0;
}

}  // namespace

SWEEP_ARCHITECTURES("the gradient of a penalised loss is its derivative, in every form", architecture) {
  const Preset preset = test::preset_of(architecture.id);
  const Hyper hyper = hyper_of(builtin_registry(), preset, test::small_settings(preset));
  const auto examples = task_examples("adding", {.length = length, .seed = 4});
  const std::deque<Sequence> batch{examples->training(0, 0), examples->training(0, 1)};
  const Network network(architecture, hyper, {.steps = length, .input = batch[0].width, .head = 1});
  Parameters parameters = network.initialise(2);
  Rng numbers(11);
  for (auto& entry : parameters.entries()) {
    const bool positive = entry.name.ends_with("theta_inv");  // a window stays above 0
    for (double& value : entry.values) value = positive ? value * std::exp(0.1 * numbers.normal()) : value + 0.1 * numbers.normal();
  }
  const auto model = model_of(architecture, hyper, parameters);
  for (const GatePenalty kind : {GatePenalty::l1, GatePenalty::l2, GatePenalty::saturation}) {
    TrainingOptions options;
    options.batch = 2;
    options.gate_penalty = 3.0;
    options.gate_penalty_of = kind;
    Learned own;
    try {
      own = learned(*model, batch, options);
    } catch (const TrainingDiverged&) {
      throw;
    } catch (const Error& error) {
      const std::string said = error.what();
      const bool none = said.find("no gates") != std::string::npos, slower = said.find("slower than the sequence") != std::string::npos;
      CHECK_SAYS(none || slower, said);
      // Only where there are none: of those of a bounded range, for their saturation.
      for (const auto& gate : network.gates())
        CHECK_SAYS(slower || !network.graph().wants_gradient(gate.var) || (kind == GatePenalty::saturation && !(gate.high > gate.low)),
                   said + " " + gate.name);
      continue;
    }
    CHECK_SAYS(std::isfinite(own.whole()) && own.penalty >= 0.0, architecture.id);
    double worst = 0.0;
    for (std::size_t i = 0; i < own.gradient.size(); ++i) {
      const auto& gradient = own.gradient[i];
      double largest = 0.0, expected = 0.0, squares = 0.0;
      std::vector<double> direction(gradient.size());
      for (std::size_t k = 0; k < gradient.size(); ++k) {
        largest = std::max(largest, std::abs(gradient[k]));
        direction[k] = numbers.normal();
        squares += direction[k] * direction[k];
      }
      for (std::size_t k = 0; k < gradient.size(); ++k) {
        direction[k] /= std::sqrt(squares);
        expected += gradient[k] * direction[k];
      }
      const auto moved = [&](double by) {
        Parameters there = parameters;
        for (std::size_t k = 0; k < gradient.size(); ++k) there.entries()[i].values[k] += by * direction[k];
        const auto other = model_of(architecture, hyper, there);
        return learned(*other, batch, options).whole();
      };
      const auto noise = [&](double h) { return 5 * std::numeric_limits<double>::epsilon() * (std::abs(own.loss) + own.penalty) / h; };
      double slope = 0.0, gap = 0.0, allowed = 0.0;
      for (double h = 4e-4; h > 2e-7; h /= 4) {  // a shorter step does not cross a kink of relu, |x| or max
        slope = slope_at_0(moved, h);
        gap = std::abs(slope - expected);
        allowed = 1e-6 * largest + noise(h);
        if (gap <= allowed) break;
      }
      CHECK_SAYS(gap <= allowed, parameters.entries()[i].name + " by " + std::string(to_string(kind)) + " is " + test::show(expected) +
                                     ", the central difference " + test::show(slope));
      if (largest > 0.0) worst = std::max(worst, gap / largest);
    }
    test::measured(architecture.id, std::string(to_string(kind)), worst);
    for (const Form form : network.forms()) {
      options.form = form;
      const Learned other = learned(*model, batch, options);
      CHECK_CLOSE(other.penalty, own.penalty, 1e-9 * own.penalty + 1e-14);  // a residual is all rounding
      for (std::size_t i = 0; i < own.gradient.size(); ++i) {
        double largest = 0.0, gap = 0.0;
        for (std::size_t k = 0; k < own.gradient[i].size(); ++k) {
          largest = std::max(largest, std::abs(own.gradient[i][k]));
          gap = std::max(gap, std::abs(other.gradient[i][k] - own.gradient[i][k]));
        }
        CHECK_SAYS(gap <= 1e-8 * largest + 1e-12, std::string(to_string(form)) + " " + parameters.entries()[i].name + " " +
                                                      test::show(gap) + " of " + test::show(largest));
      }
    }
  }
}

SWEEP_ARCHITECTURES("a gate penalty of weight 0 changes no bit of the gradient", architecture) {
  const Preset preset = test::preset_of(architecture.id);
  const Hyper hyper = hyper_of(builtin_registry(), preset, test::small_settings(preset));
  const auto examples = task_examples("adding", {.length = length, .seed = 4});
  const Sequence sequence = examples->training(0, 0);
  const auto model = model_of(architecture, hyper, Network(architecture, hyper, {.input = sequence.width, .head = 1}).initialise(2));
  const auto gradient = [&](GatePenalty kind) {
    SequenceLoss loss(LossKind::task, sequence);
    loss.penalise_gates(kind, 0.0);
    Rollout rollout(*model, Batch(sequence, loss), {.record = true, .gradients = GradientsOn::device});
    CHECK(!rollout.forward({}, {}, true) && !rollout.backward({}, {}));
    CHECK_EQUAL(rollout.gate_penalty(), 0.0);
    std::vector<double> all;
    for (const DeviceArray& array : rollout.device_gradients()) {
      const auto values = to_double(model->backend(), DType::f64, array.data(), array.entries());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  try {
    const auto with = gradient(GatePenalty::l2), without = gradient(GatePenalty::none);
    CHECK(with.size() == without.size() && std::equal(with.begin(), with.end(), without.begin()));
  } catch (const Error& error) {
    CHECK_SAYS(std::string(error.what()).find("gate") != std::string::npos, error.what());
  }
}

TEST_CASE("training with a gate penalty lowers it, in parts of a sequence too") {
  const auto end_of = [](double weight, std::int64_t truncate, GatePenalty kind) {
    const auto examples = task_examples("adding", {.length = 20, .seed = 4});
    const Architecture& architecture = builtin_registry().find("lstm");
    const Hyper hyper = hyper_of(builtin_registry(), test::preset_of("lstm"), {{"width", "6"}});
    Model model(architecture, hyper, Network(architecture, hyper, {.input = 2, .head = 1}).initialise(2), cpu_backend(), DType::f64);
    TrainingOptions options;
    options.batch = 4;
    options.held_out = 4;
    options.gate_penalty = weight;
    options.gate_penalty_of = kind;
    options.truncate = truncate;
    options.rate.rate = 0.02;
    Trainer trainer(model, *examples, options);
    std::vector<double> penalties;
    for (int i = 0; i < 40; ++i) penalties.push_back(trainer.step().gate_penalty / weight);
    CHECK(std::isfinite(trainer.evaluate().loss));
    return std::pair(penalties.front(), penalties.back());
  };
  for (const GatePenalty kind : {GatePenalty::l1, GatePenalty::l2})
    for (const std::int64_t truncate : {0, 5}) {
      const auto [first, last] = end_of(2.0, truncate, kind);
      const auto [same, unheld] = end_of(1e-9, truncate, kind);
      CHECK_CLOSE(first, same, truncate ? 0.05 : 1e-12);
      CHECK_SAYS(last < 0.8 * first && last < 0.8 * unheld, test::show(first) + " " + test::show(last) + " " + test::show(unheld));
    }
}
