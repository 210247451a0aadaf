// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/network_layer_graph.h"

#include <algorithm>

#include "recurrence/pooling/pooling.h"

namespace reclab {

Network::LayerGraphOf::LayerGraphOf(Network& network, const Architecture& architecture, const Hyper& values, bool backward)
    : LayerGraph(values),
      network_(network),
      backward_(backward),
      first_(static_cast<int>(network.layers_.size())),
      rate_{1, network.options_.steps} {
  const std::int64_t period = architecture.period(values);
  if (period == 1) return;
  Graph& graph = network.graph_;
  const Var initial = graph.leaf(LeafKind::variable, {1, network.options_.batch, 1}, graph.real());
  rate_.phase = detach(initial);
  const Var passed = rate_.phase + static_cast<double>(rate_.sequence % period);  // below twice the period
  const double each = static_cast<double>(period);
  network.states_.push_back({first_,
                             "phase",
                             "How many steps have passed since all rates last began together.",
                             {1},
                             nullptr,
                             0,
                             initial,
                             Var{},
                             passed - floor((passed + 0.5) / each) * each});
}

int Network::LayerGraphOf::add(const LayerKind& kind, std::int64_t stride, const std::string& path, bool backward) {
  auto& layers = network_.layers_;
  const int number = static_cast<int>(layers.size());
  const bool lowest = std::none_of(layers.begin() + first_, layers.end(), [&](const LayerInfo& other) {
    return other.architecture == kind.architecture && other.reversed == backward;
  });
  std::string name = kind.architecture->id;
  if (stride > 1) name += " 1:" + std::to_string(stride);
  if (backward) name += " backward";
  layers.push_back({kind.architecture, name, backward, lowest, stride, path});
  return number;
}

Var Network::LayerGraphOf::layer(const LayerKind& kind, std::int64_t stride, const std::string& path, Var x) {
  const Architecture& of = *kind.architecture;
  Rate rate = rate_;
  rate.stride = stride;
  const bool joint = of.shares_directions && of.shares_directions(kind.hyper);
  const int number = add(kind, stride, path, backward_);
  const std::string prefix = std::to_string(number);
  LayerOf layer(network_, kind.hyper, prefix, number, number - first_, first_, joint);
  layer.set_rate(rate);
  const Var forward = of.layer(layer, x);
  if (!joint) return forward;

  const std::size_t states = network_.states_.size(), gates = network_.gates_.size();
  const int other = add(kind, stride, path, true);
  LayerOf turned(network_, kind.hyper, prefix, other, number - first_, first_, true);
  turned.set_rate(rate, true);
  const Var backward = only_whole(rate, reversed_whole(rate, of.layer(turned, reversed_whole(rate, x))));
  network_.turn(states, gates);
  LayerOf both(network_, kind.hyper, prefix, number, number - first_, first_, true);
  both.set_rate(rate);
  return of.combine_directions(both, x, forward, backward);
}

}  // namespace reclab
