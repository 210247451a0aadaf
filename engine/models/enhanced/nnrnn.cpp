// SPDX-License-Identifier: GPL-3.0-or-later
//   h_t = f(U x_t + R^T h_{t-1}),   R = P (T∘M + D) P^T,   P = e^A,   A = triu(L, 1) - triu(L, 1)^T
//   D: blocks alpha_j (cos theta_j, -sin theta_j; sin theta_j, cos theta_j) along the diagonal, M: 1 above the diagonal
// G. Kerg, K. Goyette, M. Puelma Touzel, G. Gidel, E. Vorontsov, Y. Bengio, G. Lajoie, Non-normal recurrent neural network (nnRNN):
// learning long time dependencies while improving expressivity with transient dynamics, NeurIPS 2019. Conventions of the authors'
// OrthoRNNCell.
#include <cmath>
#include <numbers>

#include "array/error.h"
#include "autodiff/exponential.h"
#include "models/parts/matrices.h"
#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

/// Along the diagonal the 2 x 2 blocks (a_j, -b_j; b_j, a_j).
Var rotations(Var a, Var b) {
  const std::int64_t n = 2 * a.dim(0);
  Graph& graph = *a.graph;
  // `twice` [n, n/2] repeats each entry in rows 2j and 2j + 1; `same` and `across` are the masks of diagonal and off-diagonal entries.
  std::vector<double> twice(static_cast<std::size_t>(n * n / 2)), same(static_cast<std::size_t>(n * n)), across(same.size());
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t other = i ^ 1;
    twice[static_cast<std::size_t>(i * n / 2 + i / 2)] = 1.0;
    same[static_cast<std::size_t>(i * n + i)] = 1.0;
    across[static_cast<std::size_t>(i * n + other)] = i % 2 ? 1.0 : -1.0;
  }
  const Var repeat = graph.constant({n, n / 2}, std::move(twice));
  const auto rows = [&](Var v) { return matmul(repeat, reshape(v, {n / 2, 1})); };  // [n, 1]
  return rows(a) * graph.constant({n, n}, std::move(same)) + rows(b) * graph.constant({n, n}, std::move(across));
}

}  // namespace

Architecture nnrnn() {
  Architecture a;
  a.title = "nnRNN";
  a.equations = {"A = triu(L, 1) − triu(L, 1)ᵀ,  P = e^A",
                 "R = P (triu(T, 1) + D) Pᵀ,  D: blocks α_j (cos θ_j, −sin θ_j; sin θ_j, cos θ_j) along the diagonal",
                 "h_t = f(U x_t + Rᵀ h_{t-1})",
                 "modReLU: f(z) = sign(z) relu(|z| + b)",
                 "y_t = h_t",
                 "∂h_t/∂h_{t-1} = diag(f') Rᵀ"};
  a.notes = {
      "Shapes and conventions are those of the authors' OrthoRNNCell: U.weight, U.bias, L is log_P, T is UppT, b is nonlinearity.b; it "
      "multiplies rows, h R, hence the transpose.",
      "alpha is their alpha_0, alpha_1, … after one another, theta the first H/2 of their theta_0, theta_1, … (the others take no part): "
      "entries by those names are read too.",
      "Their forward pass reads P, which a training step of theirs puts at e^A of log_P; a file of theirs holds both, and is read as it "
      "stands with basis=matrix. For basis=exponential, which has the gradient in log_P, leave P out.",
      "The mask of the authors' code leaves the entries (2j, 2j+1) of T inside the rotation blocks: where those are not 0 the eigenvalues "
      "are no longer α_j e^{±iθ_j}. In the paper T is above the blocks.",
      "In the authors' code nonlin=relu is the identity, since a later line overwrites it: activation=identity is what it computes.",
      "T starts at 0 there; transient says how strongly it starts here. The penalty on α − 1 is part of training, not of the cell."};
  a.hyper = {hyper_integer("width", "H", 64, 2, 1024, "Number of units, even.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_choice("activation", "modrelu", parts::nonlinearities(), "The nonlinearity f; identity makes the network linear."),
             hyper_choice("basis", "exponential", {"exponential", "matrix"},
                          "Whether P is e^A, orthogonal by itself, or a parameter that is read as it stands."),
             hyper_flag("bias", false, "Whether U has a bias."),
             initialisation_only(hyper_choice(
                 "init", "henaff", {"henaff", "cayley"},
                 "How the 2×2 blocks of A start: angles uniform in −π..0, or −√((1 − cos u)/(1 + cos u)) with u uniform in 0..π/2.")),
             initialisation_only(hyper_real("transient", "σ_T", 0.0, 0.0, 10.0, "T starts N(0, σ_T²) above the blocks, 0 inside them.")),
             initialisation_only(hyper_real("modulus", "", 1.0, 0.0, 2.0, "Where every α starts: the modulus of the eigenvalues."))};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂h_t/∂h_{t-1}; α e^{±iθ} where f is the identity and T is 0 inside the blocks";
  a.source = {
      "G. Kerg, K. Goyette, M. Puelma Touzel, G. Gidel, E. Vorontsov, Y. Bengio, G. Lajoie",
      "Non-normal recurrent neural network (nnRNN): learning long time dependencies while improving expressivity with transient dynamics",
      "NeurIPS", "https://arxiv.org/abs/1905.12080", 2019};
  a.reference = {{"alpha_{i}", "alpha"}, {"theta_{i}", "theta"}, {"theta_{i}", ""}, {"log_P", ""}, {"*", "*"}};
  a.check = [](const Hyper& h) {
    if (h.integer("width") % 2)
      throw Error("nnrnn: width = " + h.text("width") + " is odd, and its units are turned in pairs: choose an even width.",
                  {.model = "nnrnn", .parameter = "width", .value = h.text("width"), .range = "even"});
  };
  a.input_weights = {{"U.weight"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1);
    const double spread = l.hyper.real("transient");
    const Init xavier = init::normal(std::sqrt(2.0 / static_cast<double>(in + H)));
    const Var u = parts::linear(l, "U", x, H,
                                {.weight = xavier,
                                 .bias = l.hyper.flag("bias") ? parts::torch_uniform(in) : Init{},
                                 .role = "U, from the input",
                                 .starts = "starts N(0, 2/(inputs + H))"});
    const Var P = l.hyper.choice("basis") == "matrix"
                      ? l.parameter("P", {H, H}, init::orthogonal(1.0), "P, the orthogonal basis; starts as a random one.")
                      : matrix_exponential(parts::skew_of_upper(l.parameter(
                            "log_P", {H, H}, l.hyper.choice("init") == "henaff" ? parts::henaff(-std::numbers::pi, 0.0) : parts::cayley(),
                            "L, whose upper triangle less its transpose is A, P = e^A; starts as 2×2 blocks.")));
    const Var T = l.parameter("UppT", {H, H}, init::each([=](Rng& rng, std::int64_t i) {
                                const std::int64_t row = i / H, column = i % H;
                                return column / 2 > row / 2 && spread > 0.0 ? spread * rng.normal() : 0.0;
                              }),
                              "T, of which what stands above the diagonal is read; starts N(0, σ_T²) above the blocks, else 0.");
    const Var theta = l.parameter("theta", {H / 2}, init::uniform(0.0, 2.0 * 3.14),
                                  "θ, the angle of each block: theta_0, theta_1, … of the authors' code; starts uniform in 0..6.28.");
    const Var alpha = l.parameter("alpha", {H / 2}, init::constant(l.hyper.real("modulus")),
                                  "α, the modulus of each block: alpha_0, alpha_1, … of the authors' code; starts at 1, or at modulus.");
    const std::string f = l.hyper.choice("activation");
    const Var b =
        f == "modrelu" ? l.parameter("nonlinearity.b", {H}, init::uniform(-0.01, 0.01), "b of modReLU; starts uniform in ±0.01.") : Var{};
    const Var R = matmul_transposed(matmul(P, parts::upper(T) + rotations(alpha * cos(theta), alpha * sin(theta))), P);
    const Var W = transpose(R);
    const StateSpec state{"h", {H}, "The hidden state after the nonlinearity."};
    const CellFunction cell = [=](Cell&, std::span<const Var> tokens, std::span<const Var> s) {
      return std::vector<Var>{parts::nonlinearity(f, linear(s[0], W, tokens[0]), b)};
    };
    return f == "identity" ? parts::linear_step(l, state, [=] { return W; }, u, {u}, cell) : step(l, {state}, {u}, cell)[0];
  };
  return a;
}

}  // namespace reclab::architectures
