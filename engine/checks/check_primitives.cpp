// SPDX-License-Identifier: GPL-3.0-or-later
#include "checks/check_primitives.h"

#include <chrono>
#include <cmath>

#include "execution/rollout.h"

namespace reclab {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

std::vector<PrimitiveCase> primitive_cases() {
  std::vector<PrimitiveCase> cases;
  for (const Primitive& one : all_primitives())
    for (const CheckedPrimitive& checked : one.checked)
      for (const Form form : checked.forms)
        cases.push_back({checked.name, std::string(to_string(form)), one.id,
                         [form, build = checked.build](Graph& graph, RandomLeaves& leaves, std::int64_t steps) {
                           return build(form, graph, leaves, steps);
                         }});
  return cases;
}

PrimitiveResult run_primitive(const PrimitiveCase& primitive, Backend& backend, DType real, std::int64_t steps, std::stop_token stop) {
  Graph graph(real);
  RandomLeaves leaves(graph, 7);
  const std::vector<Var> outputs = primitive.build(graph, leaves, steps);
  graph.allocate(backend, true);
  std::vector<DeviceArray> held;
  for (const auto& leaf : leaves.all()) {
    held.emplace_back(backend, narrowed(real, leaf.parts));
    graph.bind(leaf.var, held.back().data());
  }
  const auto parts_of = [](Var var) { return count(var.shape()) * (is_complex(var.dtype()) ? 2 : 1); };
  PrimitiveResult result;
  const auto start = Clock::now();
  graph.forward(stop);
  for (const Var output : outputs)
    result.outputs.emplace_back("output " + std::to_string(result.outputs.size()),
                                to_double(backend, real, graph.value(output), parts_of(output)));
  graph.clear_gradients();
  Rng rng(11);
  for (const Var output : outputs) {
    std::vector<double> weights(static_cast<std::size_t>(parts_of(output)));
    for (double& w : weights) w = rng.uniform(-1.0, 1.0);
    const DeviceArray seed(backend, narrowed(real, weights));
    if (void* gradient = graph.gradient(output)) backend.add_scaled(real, parts_of(output), 0, seed.data(), gradient, true);
    backend.finish();
  }
  graph.backward(stop);
  for (const auto& leaf : leaves.all()) {
    if (!graph.gradient(leaf.var)) continue;
    auto values = to_double(backend, real, graph.gradient(leaf.var), parts_of(leaf.var));
    if (leaf.memory)
      for (double& x : values) x = std::ldexp(x, leaf.memory->exponent());
    result.gradients.emplace_back("gradient " + std::to_string(result.gradients.size()), std::move(values));
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return result;
}

}  // namespace reclab
