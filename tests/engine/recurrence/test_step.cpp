// SPDX-License-Identifier: GPL-3.0-or-later
// Cells whose entries see no other: their transitions and Newton forms are those of a cell that may see everything, for less.
#include <cmath>

#include "array/rng.h"
#include "autodiff/ops.h"
#include "recurrence/step/step.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t steps = 40, batch = 2;

struct Made {
  Graph graph{DType::f64};
  StepVars vars;
};

/// One state or two of `width` entries; what an entry becomes depends on that entry of each alone.
std::unique_ptr<Made> made(std::size_t states, std::int64_t width, Form form, Sees sees) {
  auto all = std::make_unique<Made>();
  Graph& graph = all->graph;
  Rng rng(5);
  const auto numbers = [&](Shape shape) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < count(shape); ++i) values.push_back(rng.uniform(-1.0, 1.0));
    return graph.constant(std::move(shape), std::move(values));
  };
  const Var x = numbers({steps, batch, width}), u = numbers({width}), v = numbers({width});
  std::vector<StateShape> shapes{{"a", {width}}, {"b", {width}}};
  std::vector<Var> initial{numbers({batch, width}), numbers({batch, width})};
  shapes.resize(states);
  initial.resize(states);
  const auto cell = [=](Cell&, std::span<const Var> token, std::span<const Var> s) {
    const Var keep = sigmoid(token[0] + v * s[0]);
    if (states == 1) return std::vector<Var>{keep * s[0] + (1.0 - keep) * token[0] * u};
    return std::vector<Var>{keep * s[0] + 0.3 * s[1], tanh(u * s[0] * s[1] + token[0])};
  };
  all->vars = step(graph, batch, shapes, {x}, cell, initial, form, sees);
  graph.allocate(cpu_backend(), true);
  graph.forward();
  return all;
}

std::vector<double> trajectory(const Made& run) {
  const auto* values = static_cast<const double*>(run.graph.value(run.vars.trajectories[0]));
  return {values, values + count(run.vars.trajectories[0].shape())};
}

}  // namespace

TEST_CASE("a transition by entries is the whole Jacobian, which has nothing beside it") {
  constexpr std::int64_t width = 5;
  for (const std::size_t states : {1, 2}) {
    const auto whole = made(states, width, Form::sequential, Sees::all), own = made(states, width, Form::sequential, Sees::own_entry);
    const Transition of = own->vars.memory->transition();
    const auto k = static_cast<std::int64_t>(states), n = k * width;
    CHECK(of.kind == (states == 1 ? Transition::Kind::diagonal : Transition::Kind::blocks) && of.varies);
    CHECK_EQUAL(of.width(), n);
    CHECK_EQUAL(of.entries(), width * k * k);
    std::vector<double> dense(static_cast<std::size_t>(n * n)), blocks(static_cast<std::size_t>(of.entries()));
    for (const std::int64_t t : {std::int64_t{0}, std::int64_t{1}, steps - 1}) {
      whole->vars.memory->jacobian(t, dense);
      own->vars.memory->jacobian(t, blocks);
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          const double said =
              i % width == j % width ? blocks[static_cast<std::size_t>(((i % width) * k + i / width) * k + j / width)] : 0.0;
          CHECK_SAYS(said == dense[static_cast<std::size_t>(i * n + j)], std::to_string(i) + ", " + std::to_string(j));
        }
      if (states > 1) continue;
      std::vector<std::complex<double>> factors(static_cast<std::size_t>(n));
      own->vars.memory->factors(t, factors);
      for (std::size_t i = 0; i < factors.size(); ++i) CHECK(factors[i] == blocks[i]);
    }
  }
}

TEST_CASE("by entries every Newton form is Newton's, and takes states whose whole Jacobians would be too large") {
  constexpr std::int64_t wide = 5000;
  const auto sequential = trajectory(*made(1, wide, Form::sequential, Sees::own_entry));
  std::vector<std::vector<double>> residuals;
  for (const Form form : {Form::newton, Form::quasi_newton, Form::damped_newton}) {
    const auto run = made(1, wide, form, Sees::own_entry);
    const NewtonReport* report = run->vars.memory->newton();
    CHECK_SAYS(report && report->converged, std::string(to_string(form)) + ": " + report->reason);
    CHECK_EQUAL(report->jacobians, report->iterations());
    CHECK_SAYS(report->iterations() < 12, std::to_string(report->iterations()));
    const auto found = trajectory(*run);
    for (std::size_t i = 0; i < found.size(); ++i) CHECK_CLOSE(found[i], sequential[i], 1e-11);
    residuals.push_back(report->residuals);
  }
  CHECK(residuals[0] == residuals[1]);
  const auto refused = made(1, wide, Form::newton, Sees::all);
  CHECK(!refused->vars.memory->newton()->converged);
}
