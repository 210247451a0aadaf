// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/structure/step_layers.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "array/rng.h"

namespace reclab {
namespace {

constexpr int quiet_rounds = 6;  // that show nothing new

}  // namespace

StepPattern StepLayers::within(const StepPattern& pattern, int layer) const {
  const std::size_t n = of_state.size(), weights = of_weight.size();
  StepPattern own{BitMatrix(n, n), BitMatrix(n, weights)};
  for (std::size_t i = 0; i < n; ++i) {
    if (layer != none && of_state[i] != layer) continue;
    for (const std::uint32_t j : pattern.jacobian.listed(i))
      if (of_state[i] == of_state[j]) own.jacobian.set(i, j);
    for (const std::uint32_t w : pattern.direct.listed(i))
      if (of_weight[w] == of_state[i]) own.direct.set(i, w);
  }
  return own;
}

StepLayers step_layers(const OnlineSetup& setup) {
  StepLayers found;
  {
    const StepMap step(setup.model, setup.inputs, setup.outputs);
    found.of_state.resize(step.states());
    for (std::size_t i = 0; i < step.parts().size(); ++i)
      std::fill_n(found.of_state.begin() + static_cast<std::ptrdiff_t>(step.parts()[i].first), step.parts()[i].entries,
                  step.network().states()[i].layer);
    found.of_weight.assign(step.weights(), StepLayers::none);
  }
  const std::set<int> layers(found.of_state.begin(), found.of_state.end());
  for (int round = 0, quiet = 0; quiet < quiet_rounds && !layers.empty(); ++round) {
    const std::vector<int> before = found.of_weight;
    Rng rng = Rng(1).split("layers " + std::to_string(round));
    probe_steps(setup, round, [&](StepMap& step, const Model&, std::span<const double>) {
      std::vector<double> adjoint(step.states());
      for (const int layer : layers) {  // sums of a row each, in which no entry of D is lost
        for (std::size_t i = 0; i < adjoint.size(); ++i) adjoint[i] = found.of_state[i] == layer ? rng.normal() : 0.0;
        step.pull_back(adjoint, {});
        for (std::size_t w = 0; w < found.of_weight.size(); ++w)
          if (step.weight_adjoint()[w] != 0.0) found.of_weight[w] = std::min(found.of_weight[w], layer);
      }
    });
    quiet = found.of_weight == before ? quiet + 1 : 0;
  }
  return found;
}

void require_blocks(const StepLayers& layers, const StepPattern& pattern, const OnlineSetup& setup, const std::string& id) {
  const std::size_t n = layers.of_state.size();
  BitMatrix self(n, n);
  for (std::size_t i = 0; i < n; ++i) self.set(i, i);
  const BitMatrix blocks = reached_within({layers.within(pattern).jacobian, self}, std::numeric_limits<std::int64_t>::max()).within;
  for (std::size_t i = 0; i < n; ++i) {
    const auto of_layer = static_cast<std::size_t>(std::ranges::count(layers.of_state, layers.of_state[i])),
               block = blocks.listed(i).size();
    if (block > 2 && 2 * block > of_layer)
      throw Error(
          setup.model.architecture().id + " has a layer in which " + std::to_string(block) + " of " + std::to_string(of_layer) +
              " entries of the state act on one of them, so its transition is neither diagonal nor in blocks: choose rtrl, or snap.",
          {.model = setup.model.architecture().id, .parameter = "rule", .value = id});
  }
}

LinearReadOut linear_read_out(const OnlineSetup& setup, const std::string& title, const std::string& id) {
  const Model& model = setup.model;
  const auto refuse = [&](const std::string& why) {
    throw Error(title + " is for states that a linear read-out sees, and " + model.architecture().id + " " + why + ": choose another rule.",
                {.model = model.architecture().id, .parameter = "rule", .value = id});
  };
  LinearReadOut found;
  std::size_t at = 0, width = 0;
  for (std::size_t i = 0; i < model.weights().size(); ++i) {
    const Model::Weight& weight = model.weights()[i];
    if (weight.name == "head/weight") found.weight = i, found.first_of_weight = at, width = static_cast<std::size_t>(weight.shape[1]);
    if (weight.name == "head/bias") found.first_of_bias = at;
    at += static_cast<std::size_t>(weight.entries());
  }
  if (width == 0) refuse("has none");
  std::vector<std::pair<std::vector<double>, std::vector<double>>> seen;  // next states, and what the read-out is multiplied with
  for (int round = 0; round < 2; ++round)
    probe_steps(setup, round, [&](StepMap& step, const Model&, std::span<const double>) {
      std::vector<double> unit(step.outputs());
      unit[0] = 1.0;
      const std::vector<double> next = step.next();
      step.pull_back({}, unit);
      const auto from = step.weight_adjoint().begin() + static_cast<std::ptrdiff_t>(found.first_of_weight);
      seen.emplace_back(next, std::vector<double>(from, from + static_cast<std::ptrdiff_t>(width)));
    });
  for (std::size_t k = 0; k < width; ++k) {
    std::size_t j = 0;
    const auto same = [&](const auto& one) { return std::abs(one.first[j] - one.second[k]) <= 1e-9 * std::abs(one.second[k]); };
    while (j < seen.front().first.size() && !std::ranges::all_of(seen, same)) ++j;
    if (j == seen.front().first.size()) refuse("has outputs that are not read from its state alone");
    found.read.push_back(j);
  }
  return found;
}

}  // namespace reclab
