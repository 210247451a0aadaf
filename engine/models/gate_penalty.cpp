// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/gate_penalty.h"

#include <array>
#include <string>

#include "array/demand.h"
#include "array/error.h"
#include "autodiff/ops.h"
#include "models/network.h"

namespace reclab {
namespace {

constexpr std::array<std::string_view, 4> names{"none", "l1", "l2", "saturation"};

Var penalty_of(const Network::GateVar& gate, GatePenalty penalty) {
  if (penalty == GatePenalty::l1) return abs(gate.var);
  if (penalty == GatePenalty::l2) return square(gate.var);
  const double range = gate.high - gate.low;
  return square(affine(gate.var, 2.0 / range, -(gate.high + gate.low) / range));
}

}  // namespace

std::string_view to_string(GatePenalty penalty) { return names[static_cast<std::size_t>(penalty)]; }

GatePenalty gate_penalty(std::string_view name) {
  for (std::size_t i = 1; i < names.size(); ++i)
    if (name == names[i]) return static_cast<GatePenalty>(i);
  throw Error("There is no gate penalty " + std::string(name) + ": choose l1, l2 or saturation.",
              {.parameter = "gate_penalty_of", .value = std::string(name), .range = "l1, l2, saturation"});
}

Var add_gate_penalty(Network& network, GatePenalty penalty) {
  RECLAB_DEMAND(penalty != GatePenalty::none && network.options().record);
  const Graph& graph = network.graph();
  const std::int64_t steps = network.options().steps, batch = network.options().batch;
  Var sum_of_all;
  std::int64_t entries = 0;
  for (const Network::GateVar& gate : network.gates()) {
    const Network::LayerInfo* layer = gate.layer >= 0 ? &network.layers()[static_cast<std::size_t>(gate.layer)] : nullptr;
    if (layer && layer->stride > 1)
      throw Error("The gate " + gate.name + " of " + layer->architecture->id +
                      " is of a layer that is slower than the sequence, where gates " +
                      "pass no gradient: choose no gate penalty, or another model.",
                  {.model = layer->architecture->id, .parameter = "gate_penalty", .range = "0"});
    if (!graph.wants_gradient(gate.var)) continue;
    if (penalty == GatePenalty::saturation && !(gate.high > gate.low)) continue;
    RECLAB_DEMAND(!is_complex(gate.var.dtype()) && gate.var.dim(0) == steps && gate.var.dim(1) == batch);
    const Var of_gate = sum(reshape(penalty_of(gate, penalty), {steps, batch, -1}), -1);
    entries += count(gate.var.shape()) / (steps * batch);
    sum_of_all = sum_of_all ? sum_of_all + of_gate : of_gate;
  }
  if (!sum_of_all) {
    const std::string id = network.layers().empty() ? "The model" : network.layers().front().architecture->id;
    throw Error(id +
                    (penalty == GatePenalty::saturation ? " has no gates between two bounds that its weights move"
                                                        : " has no gates that its weights move") +
                    ", so there is nothing for a gate penalty to lower: choose none" +
                    (penalty == GatePenalty::saturation ? ", another form of it," : "") + " or another model.",
                {.model = id, .parameter = "gate_penalty", .range = "0"});
  }
  return sum_of_all * (1.0 / static_cast<double>(entries));
}

}  // namespace reclab
