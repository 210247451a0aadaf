// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/matrices.h"

#include <cmath>
#include <numbers>

#include "models/parts/parts.h"
#include "recurrence/linear/linear.h"
#include "recurrence/mixing/mixing.h"

namespace reclab::parts {
namespace {

/// 1 where `inside` says so of row and column, else 0.
template <class Inside>
Var pattern(Graph& graph, std::int64_t n, Inside&& inside) {
  std::vector<double> values(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) values[static_cast<std::size_t>(i * n + j)] = inside(i, j) ? 1.0 : 0.0;
  return graph.constant({n, n}, std::move(values));
}

}  // namespace

Var identity(Graph& graph, std::int64_t n) {
  return pattern(graph, n, [](std::int64_t i, std::int64_t j) { return i == j; });
}

Var upper(Var a) {
  return a * pattern(*a.graph, a.dim(0), [](std::int64_t i, std::int64_t j) { return j > i; });
}
Var skew_of_upper(Var a) {
  const Var above = upper(a);
  return above - transpose(above);
}

Var mixture(Var B, double beta, double gamma) {
  const Var other = transpose(B);
  return beta * (B - other) + (1.0 - beta) * (B + other) - gamma * identity(*B.graph, B.dim(0));
}

Var modrelu(Var x, Var b) { return sign(x) * relu(abs(x) + b); }

std::vector<std::string> nonlinearities() { return {"modrelu", "tanh", "relu", "identity"}; }
Var nonlinearity(const std::string& name, Var x, Var b) { return name == "modrelu" ? modrelu(x, b) : activation(name, x); }

Init skew_blocks(std::function<double(Rng&)> draw) {
  return [draw = std::move(draw)](InitContext& c) {
    const auto n = static_cast<std::size_t>(c.shape[0]);
    for (std::size_t i = 0; i + 1 < n; i += 2) {
      const double s = draw(c.rng);
      c.values[i * n + i + 1] = s;
      c.values[(i + 1) * n + i] = -s;
    }
  };
}
Init henaff(double low, double high) {
  return skew_blocks([=](Rng& rng) { return rng.uniform(low, high); });
}
Init cayley() {
  return skew_blocks([](Rng& rng) {
    const double u = rng.uniform(0.0, std::numbers::pi / 2.0);
    return -std::sqrt((1.0 - std::cos(u)) / (1.0 + std::cos(u)));
  });
}

Var linear_step(Layer& l, const StateSpec& state, const std::function<Var()>& A, Var u, const std::vector<Var>& tokens,
                const CellFunction& cell) {
  l.declare_forms({Form::scan});
  const auto made = [&](Var trajectory) {
    if (tokens.size() == 1)
      declare_mixing(l, {.name = state.name, .value = tokens[0], .output = trajectory, .reads = u.dim(-1), .joined = true});
    return trajectory;
  };
  if (l.form() != Form::scan) return made(step(l, {state}, tokens, cell)[0]);
  const std::int64_t T = l.steps(), B = l.batch(), n = u.dim(-1);
  const Var initial = l.graph().leaf(LeafKind::variable, {B, n}, u.dtype());
  MemoryVars vars = dense_from(l.graph(), Form::scan, A(), reshape(u, {T, B, 1, n}), reshape(initial, {B, 1, n}));
  vars.initial = {initial};
  vars.trajectories = {reshape(vars.trajectories[0], {T, B, n})};
  vars.finals = {reshape(vars.finals[0], {B, n})};
  l.declare({state}, vars);
  return made(vars.trajectories[0]);
}

}  // namespace reclab::parts
