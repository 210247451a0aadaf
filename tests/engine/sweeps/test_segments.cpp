// SPDX-License-Identifier: GPL-3.0-or-later
// A sequence that is run in segments has the gradients of the whole, whatever units the adjoints are carried in from one to the next.
#include <algorithm>
#include <cmath>
#include <map>

#include "array/rng.h"
#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "models/registry.h"
#include "recurrence/outer/outer.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

struct Gradients {
  std::map<std::string, std::vector<double>> all;    ///< of parameters and of the input
  std::map<std::string, std::vector<double>> norms;  ///< log2 of those of the states of memories, a step each
  bool whole = false;
};

Gradients gradients_of(const Architecture& architecture, const Hyper& hyper, LossKind kind, const Sequence& sequence, std::int64_t segment,
                       bool record = true) {
  const SequenceLoss loss(kind, sequence);
  NetworkOptions one;
  one.input = sequence.width;
  const Parameters parameters = Network(architecture, hyper, one).initialise(1);
  Rollout::Options options;
  options.segment = segment;
  options.record = record;
  const Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
  Rollout rollout(model, Batch(sequence, loss), options);
  CHECK(!rollout.forward({}, {}));
  Gradients found;
  found.whole = rollout.network().needs_one_segment();
  auto& input = found.all["input"];
  input.resize(sequence.input.size());
  rollout.backward(
      [&](const Rollout::Segment& s, int scale) {
        const auto values = to_double(cpu_backend(), DType::f64, s.network.graph().gradient(s.network.input()), s.steps * sequence.width);
        for (std::size_t i = 0; i < values.size(); ++i)
          input[static_cast<std::size_t>(s.first * sequence.width) + i] = std::ldexp(values[i], scale);
        for (const auto& state : s.network.states()) {
          if (!state.memory || static_cast<std::size_t>(state.slot) >= state.memory->log2_norms().size()) continue;
          auto& norms = found.norms[Rollout::state_key(state)];
          norms.resize(static_cast<std::size_t>(sequence.length));
          for (std::int64_t t = 0; t < s.steps; ++t)
            norms[static_cast<std::size_t>(s.first + t)] =
                state.memory->log2_norms()[static_cast<std::size_t>(state.slot)][static_cast<std::size_t>(t)] + scale;
        }
      },
      {});
  found.all.insert(rollout.parameter_gradients().begin(), rollout.parameter_gradients().end());
  return found;
}

}  // namespace

SWEEP_PRESETS("the gradients are the same in segments of any length", preset) {
  const auto architecture = architecture_of(builtin_registry(), preset);
  const Hyper hyper = hyper_of(builtin_registry(), preset);
  const Sequence sequence = make_task("noise", {.length = 90, .seed = 2});
  for (const LossKind kind : {LossKind::last, LossKind::mean, LossKind::random}) {
    const Gradients whole = gradients_of(*architecture, hyper, kind, sequence, 90);
    if (whole.whole) throw test::Skip("it takes a sequence as one segment");
    double largest = 0.0;
    for (const auto& [name, values] : whole.all)
      for (const double x : values) largest = std::max(largest, std::abs(x));
    for (const std::int64_t segment : {1, 7, 64, -64}) {  // negative: nothing is recorded, and memories need not keep their states
      const Gradients parts = gradients_of(*architecture, hyper, kind, sequence, std::abs(segment), segment > 0);
      for (const auto& [name, values] : whole.all) {
        double size = 1e-6 * largest, difference = 0.0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          size = std::max(size, std::abs(values[i]));
          difference = std::max(difference, std::abs(values[i] - parts.all.at(name)[i]));
        }
        CHECK_SAYS(difference <= 1e-9 * size, preset.id + ", segments of " + std::to_string(segment) + ": " + name + " differs by " +
                                                  test::show(difference) + " of " + test::show(size));
      }
      for (const auto& [name, norms] : whole.norms)
        for (std::size_t t = 0; t < norms.size() && segment > 0; ++t) {
          if (norms[t] < std::log2(largest) - 40.0) continue;  // the rounding of larger terms
          CHECK_SAYS(std::abs(norms[t] - parts.norms.at(name)[t]) <= 1e-3,
                     preset.id + ", segments of " + std::to_string(segment) + ": |dL/d" + name + "| at step " + std::to_string(t) +
                         " is 2^" + test::show(parts.norms.at(name)[t]) + ", not 2^" + test::show(norms[t]));
        }
    }
  }
}

TEST_CASE("what is carried into a decaying memory counts in the units that it comes in") {
  const std::int64_t T = 40, H = 2, K = 3, V = 5;
  for (const Form form : {Form::sequential, Form::chunkwise})
    for (const bool record : {true, false})
      for (const std::int64_t decays : {std::int64_t{1}, K}) {
        const auto gradients = [&](int power) {
          Graph graph(DType::f64);
          Rng rng(3);
          std::vector<std::vector<double>> held;
          std::vector<Var> leaves;
          const auto leaf = [&](Shape shape, double low, double high) {
            leaves.push_back(graph.leaf(LeafKind::variable, std::move(shape), DType::f64));
            std::vector<double> values(static_cast<std::size_t>(count(leaves.back().shape())));
            for (double& x : values) x = rng.uniform(low, high);
            held.push_back(std::move(values));
            return leaves.back();
          };
          const Var q = leaf({T, 1, H, K}, -1.0, 1.0), k = leaf({T, 1, H, K}, -1.0, 1.0), v = leaf({T, 1, H, V}, -1.0, 1.0),
                    log_decay = leaf({T, 1, H, decays}, -0.3, 0.0);
          const OuterVars vars = outer(graph, form, {q, k, v, log_decay}, record);
          graph.allocate(cpu_backend(), true);
          std::vector<double> start(static_cast<std::size_t>(H * K * V)), carried(start.size());
          for (double& x : start) x = rng.uniform(-1.0, 1.0);
          for (double& x : carried) x = std::ldexp(rng.uniform(-1.0, 1.0), -power);
          for (std::size_t i = 0; i < leaves.size(); ++i) graph.bind(leaves[i], held[i].data());
          graph.bind(vars.initial[0], start.data());
          graph.forward();
          graph.clear_gradients();
          vars.memory->set_final_adjoint({carried.data()}, power);
          graph.backward();
          std::vector<double> all = to_double(cpu_backend(), DType::f64, graph.gradient(vars.initial[0]), std::ssize(start));
          for (double& x : all) x = std::ldexp(x, vars.memory->exponent());
          for (const Var var : leaves) {
            const auto values = to_double(cpu_backend(), DType::f64, graph.gradient(var), count(var.shape()));
            all.insert(all.end(), values.begin(), values.end());
          }
          return all;
        };
        const std::vector<double> plain = gradients(0);
        CHECK(*std::max_element(plain.begin(), plain.end()) > 0.1);
        for (const int power : {-500, 40, 900}) {
          const std::vector<double> other = gradients(power);
          for (std::size_t i = 0; i < plain.size(); ++i)
            CHECK_SAYS(std::abs(plain[i] - other[i]) <= 1e-12, std::string(to_string(form)) + (record ? ", recorded, " : ", ") +
                                                                   std::to_string(decays) + " decays, units of 2^" + std::to_string(power) +
                                                                   ": entry " + std::to_string(i) + " is " + test::show(other[i]) +
                                                                   ", not " + test::show(plain[i]));
        }
      }
}
