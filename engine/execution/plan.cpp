// SPDX-License-Identifier: GPL-3.0-or-later
#include "execution/plan.h"

#include <algorithm>
#include <map>
#include <vector>

#include "array/device_array.h"
#include "execution/planning_backend.h"

namespace reclab {

std::int64_t planned_memory(const Architecture& architecture, const Hyper& hyper, const NetworkOptions& options, Backend& backend) {
  PlanningBackend planning(backend), outside(backend);
  Network network(architecture, hyper, options);  // declared after the backends that its arrays are returned to
  std::int64_t largest = 0;
  std::vector<Var> given{network.input()};
  for (const auto& parameter : network.parameters()) given.push_back(parameter.var);
  for (const auto& state : network.states()) {
    given.push_back(state.initial);
    if (state.unscaled_initial) given.push_back(state.unscaled_initial);
  }
  for (const Var var : given) largest = std::max(largest, count(var.shape()) * static_cast<std::int64_t>(bytes_of(var.dtype())));
  const DeviceArray zeros(outside, static_cast<std::size_t>(largest));

  Graph& graph = network.graph();
  graph.allocate(planning, true);
  for (const Var var : given) graph.bind(var, zeros.data());
  graph.forward({}, Graph::Part::all, true);
  graph.clear_gradients();
  std::map<Memory*, std::vector<const void*>> carried;
  for (const auto& state : network.states())
    if (state.memory && state.memory->carries()) carried[state.memory].push_back(zeros.data());
  for (const auto& [memory, slots] : carried) memory->set_final_adjoint(slots, 1);  // as from a later segment, in other units
  graph.backward();
  return planning.account().peak();
}

}  // namespace reclab
