// SPDX-License-Identifier: GPL-3.0-or-later
//   h_t = tanh(W h_t + U x_t + V h_{t-1} + b),   y_t = h_t
// S. Bai, J. Z. Kolter, V. Koltun, Deep equilibrium models, NeurIPS 2019: an implicit layer, its equilibrium by Anderson's iteration and
// its derivatives by the implicit function theorem. Here f is one layer of tanh units, and V, where it exists, carries the state on.
#include <algorithm>
#include <span>
#include <vector>

#include "autodiff/inverse.h"
#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

constexpr double anderson_damping = 1e-10;  // of the residuals' Gram matrix, as a share of its trace
constexpr double least_damping = 1e-30;     // where there are no residuals left

Var column(Var x) {  // [..., n] -> [..., n, 1]
  Shape shape = x.shape();
  shape.push_back(1);
  return reshape(x, std::move(shape));
}

Var flat(Var x) {  // [..., n, 1] -> [..., n]
  Shape shape = x.shape();
  shape.pop_back();
  return reshape(x, std::move(shape));
}

Var row(Var x) {  // [..., n] -> [..., 1, n]
  Shape shape = x.shape();
  shape.insert(shape.end() - 1, 1);
  return reshape(x, std::move(shape));
}

Var identity(Graph& graph, std::int64_t n) {
  std::vector<double> values(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i * n + i)] = 1.0;
  return graph.constant({n, n}, std::move(values));
}

/// (I - diag(1 - f^2) W)^-1, at f = tanh(...)
Var inverse_of_residual(Var one, Var f, Var W) { return matrix_inverse(one - column(1.0 - square(f)) * W); }

/// The next point of Anderson's iteration: the mean of f at the last points, with weights of sum 1 that make the mean of f(h) - h least.
Var mixed(std::span<const Var> f, std::span<const Var> residuals) {
  std::vector<Var> values, left;
  for (std::size_t i = 0; i < f.size(); ++i) {
    values.push_back(row(f[i]));
    left.push_back(row(residuals[i]));
  }
  const Var G = concat(left, -2), gram = matmul_transposed(G, G), one = identity(*gram.graph, std::ssize(f));
  const Var trace = column(column(sum(sum(gram * one, -1), -1)));
  const Var weights = sum(matrix_inverse(gram + (anderson_damping * trace + least_damping) * one), -1);
  const Var shares = weights / (static_cast<double>(f.size()) * mean_keep(weights, -1));
  return flat(transpose(matmul(row(shares), concat(values, -2))));
}

/// The equilibrium of h = tanh(W h + u), without derivatives.
Var equilibrium(Var W, Var u, std::int64_t iterations, std::int64_t memory) {
  Var h = 0.0 * u;
  const Var one = identity(*u.graph, u.dim(-1));
  std::vector<Var> values, residuals;
  for (std::int64_t k = 0; k < iterations; ++k) {
    const Var f = tanh(linear(h, W, u)), residual = f - h;
    if (memory == 0) {  // Newton
      h = h + flat(matmul(inverse_of_residual(one, f, W), column(residual)));
      continue;
    }
    values.push_back(f);
    residuals.push_back(residual);
    const auto last = static_cast<std::size_t>(std::min(memory, std::ssize(values)));
    h = mixed(std::span(values).last(last), std::span(residuals).last(last));
  }
  return h;
}

}  // namespace

Architecture deep_equilibrium() {
  Architecture a;
  a.title = "Deep equilibrium layer";
  a.equations = {"h_t = tanh(W h_t + U x_t + V h_{t-1} + b), solved for h_t", "y_t = h_t",
                 "∂h_t/∂h_{t-1} = (I − D_t W)⁻¹ D_t V,  D_t = diag(1 − h_t²)",
                 "solver=newton: h ← h + (I − D W)⁻¹ (f(h) − h), K times from h = 0, f(h) = tanh(W h + U x_t + V h_{t-1} + b)",
                 "solver=anderson: h ← Σ_i α_i f(h_i) over the last m points, α least squares of Σ_i α_i (f(h_i) − h_i) with Σ_i α_i = 1"};
  a.notes = {
      "The derivatives are those of the equilibrium, by the implicit function theorem, and not those of the iterations: one more step of "
      "Newton's method, in which the point and the inverse are held, has them, forward and backward.",
      "recurrent=false leaves V out: each step is an implicit layer of its own, as in the paper, and the state has no past.",
      "There is one equilibrium while the norm of W is below 1, where it starts; training may leave that range. The gate residual "
      "says how far from the equilibrium the last iteration ended.",
      "The paper's f is a transformer block, and Anderson's iteration with m = 5; here f is a layer of tanh units. Names are ours."};
  a.hyper = {hyper_integer("width", "H", 32, 1, 512, "Number of units.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_flag("recurrent", true, "Whether V exists, and the state is carried on."),
             hyper_choice("solver", "newton", {"newton", "anderson"}, "How the equilibrium is found."),
             hyper_integer("iterations", "K", 12, 1, 200, "Iterations of the solver, a time step."),
             hyper_integer("memory", "m", 5, 1, 20, "Points that Anderson's iteration mixes.", "points"),
             initialisation_only(hyper_real("within", "", 0.5, 0.0, 10.0, "The norm of W where it starts.")),
             initialisation_only(hyper_real("across", "", 0.5, 0.0, 10.0, "The norm of V where it starts."))};
  a.spectrum = "eigenvalues of the Jacobian of the equilibrium, ∂h_t/∂h_{t-1} = (I − D_t W)⁻¹ D_t V";
  a.source = {"S. Bai, J. Z. Kolter, V. Koltun", "Deep equilibrium models", "NeurIPS", "https://arxiv.org/abs/1909.01377", 2019};
  a.input_weights = {{"U"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), K = l.hyper.integer("iterations");
    const std::int64_t memory = l.hyper.choice("solver") == "anderson" ? l.hyper.integer("memory") : 0;
    const Var U = l.parameter("U", {H, x.dim(-1)}, parts::torch_uniform(x.dim(-1)), "U, from the input; starts uniform within ±1/√in.");
    const Var W = l.parameter("W", {H, H}, init::orthogonal(l.hyper.real("within")),
                              "W, from the state at the same step; starts orthogonal, of norm within.");
    Var V{};
    if (l.hyper.flag("recurrent"))
      V = l.parameter("V", {H, H}, init::orthogonal(l.hyper.real("across")),
                      "V, from the state before; starts orthogonal, of norm across.");
    const Var b = l.parameter("b", {H}, init::constant(0.0), "b; starts at 0.");
    const Var held = detach(W);  // in the layer: a cell may be built again when the layer's graph has its memory
    return step(l, {{"h", {H}, "The equilibrium, which is read out."}}, {linear(x, U, b)},
                [=](Cell& cell, std::span<const Var> tokens, std::span<const Var> s) {
                  const Var u = V ? linear(s[0], V, tokens[0]) : tokens[0];
                  const Var h = equilibrium(held, detach(u), K, memory);
                  const Var f = tanh(linear(h, W, u)), residual = f - h;
                  cell.gate("residual", detach(residual), 0.0, 0.0, "f(h) − h where the last iteration ended, unbounded.");
                  const Var inverse = inverse_of_residual(identity(*h.graph, H), detach(f), held);
                  return std::vector<Var>{h + flat(matmul(detach(inverse), column(residual)))};
                })[0];
  };
  return a;
}

}  // namespace reclab::architectures
