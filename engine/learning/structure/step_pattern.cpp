// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/structure/step_pattern.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "array/backend.h"
#include "array/rng.h"

namespace reclab {
namespace {

constexpr int seen = 4;                                 // steps of a round
constexpr int quiet_rounds = 6;                         // that show nothing new, at which the pattern is whole
constexpr double most_entries = std::int64_t{1} << 30;  // of a pattern, a bit each
constexpr double amplitudes[] = {0.1, 0.01, 0.0};       // of a probe's weights: the next where values are not finite

bool all_finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double x) { return std::isfinite(x); });
}

Parameters moved(Parameters parameters, double amplitude, Rng rng) {
  for (Parameters::Entry& entry : parameters.entries())
    for (double& value : entry.values) value += amplitude * rng.normal();
  return parameters;
}

}  // namespace

std::vector<std::uint32_t> BitMatrix::listed(std::size_t i) const {
  std::vector<std::uint32_t> all;
  const auto words = row(i);
  for (std::size_t w = 0; w < words.size(); ++w)
    for (std::uint64_t bits = words[w]; bits; bits &= bits - 1)
      all.push_back(static_cast<std::uint32_t>(64 * w + static_cast<std::size_t>(std::countr_zero(bits))));
  return all;
}

std::size_t BitMatrix::count() const {
  std::size_t total = 0;
  for (const std::uint64_t word : bits_) total += static_cast<std::size_t>(std::popcount(word));
  return total;
}

void unite(std::span<std::uint64_t> to, std::span<const std::uint64_t> from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] |= from[i];
}

bool meet(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] & b[i]) return true;
  return false;
}

void probe_steps(const OnlineSetup& setup, int round, const SeeStep& see) {
  const Rng rng = Rng(1).split("round " + std::to_string(round));
  for (const double amplitude : amplitudes) {
    const Model model(setup.model.architecture(), setup.model.hyper(), moved(setup.model.parameters(), amplitude, rng.split("weights")),
                      cpu_backend(), DType::f64);
    StepMap step(model, setup.inputs, setup.outputs);
    const auto walk = [&](const auto& at) {
      Rng inputs = rng.split("inputs");
      std::vector<double> state = step.start(), input(step.inputs());
      for (int t = 0; t < seen * (round + 1); ++t) {
        for (double& x : input) x = inputs.normal();
        step.evaluate(state, input);
        if (!all_finite(step.next()) || !all_finite(step.output())) return false;
        const std::vector<double> next = step.next();
        if (t >= seen * round) at(state);
        state = next;
      }
      return true;
    };
    if (!walk([](const std::vector<double>&) {})) continue;
    walk([&](const std::vector<double>& state) { see(step, model, state); });
    return;
  }
  throw Error(setup.model.architecture().id +
                  " has values that are not finite after a few steps on random inputs, so its structure cannot be seen: choose other "
                  "hyper-parameters.",
              {.model = setup.model.architecture().id});
}

StepPattern step_pattern(const OnlineSetup& setup) {
  StepPattern found;
  {
    const StepMap step(setup.model, setup.inputs, setup.outputs);
    if (static_cast<double>(step.states()) * static_cast<double>(step.states() + step.weights()) > most_entries)
      throw Error(setup.model.architecture().id + " has " + std::to_string(step.states()) + " entries of the state and " +
                      std::to_string(step.weights()) +
                      " weights, which is too much to look for the structure of its step: choose a narrower model.",
                  {.model = setup.model.architecture().id, .parameter = "rule"});
    found = {BitMatrix(step.states(), step.states()), BitMatrix(step.states(), step.weights())};
  }
  for (int round = 0, quiet = 0; quiet < quiet_rounds; ++round) {
    const StepPattern before = found;
    probe_steps(setup, round, [&](StepMap& step, const Model&, std::span<const double>) {
      std::vector<double> unit(step.states());
      for (std::size_t i = 0; i < unit.size(); ++i) {
        unit[i] = 1.0;
        step.pull_back(unit, {});
        unit[i] = 0.0;
        for (std::size_t j = 0; j < step.states(); ++j)
          if (step.state_adjoint()[j] != 0.0) found.jacobian.set(i, j);
        for (std::size_t j = 0; j < step.weights(); ++j)
          if (step.weight_adjoint()[j] != 0.0) found.direct.set(i, j);
      }
    });
    quiet = found == before ? quiet + 1 : 0;
  }
  return found;
}

Reached reached_within(const StepPattern& pattern, std::int64_t steps) {
  Reached reached{pattern.direct, true};
  for (std::int64_t n = 1; reached.grows && n <= steps; ++n) {
    BitMatrix next = reached.within;
    for (std::size_t i = 0; i < next.rows(); ++i)
      for (const std::uint32_t j : pattern.jacobian.listed(i)) unite(next.row(i), reached.within.row(j));
    reached.grows = !(next == reached.within);
    if (n < steps) reached.within = std::move(next);
  }
  return reached;
}

}  // namespace reclab
