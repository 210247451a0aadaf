// SPDX-License-Identifier: GPL-3.0-or-later
//   h_t = f(V x_t + B^T h_{t-1}),   B = B_0 e^A,   A = triu(P, 1) - triu(P, 1)^T         f = modReLU: sign(z) relu(|z| + b)
//   or, Cayley's map in place of the exponential, B = B_0 (I + A)^-1 (I - A)
// M. Lezcano-Casado, D. Martinez-Rubio, Cheap orthogonal constraints in neural networks: a simple parametrization of the orthogonal and
// unitary group, ICML 2019. Names and conventions of the authors' OrthogonalRNN.
#include <cmath>
#include <numbers>

#include "autodiff/exponential.h"
#include "autodiff/inverse.h"
#include "models/parts/matrices.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture exp_rnn() {
  Architecture a;
  a.title = "expRNN";
  a.equations = {"A = triu(P, 1) − triu(P, 1)ᵀ,  B = B₀ e^A;  cayley: B = B₀ (I + A)⁻¹ (I − A)", "h_t = f(V x_t + Bᵀ h_{t-1})",
                 "modReLU: f(z) = sign(z) relu(|z| + b)", "y_t = h_t", "∂h_t/∂h_{t-1} = diag(f') Bᵀ"};
  a.notes = {
      "Names and shapes are those of the authors' code: P is recurrent_kernel.A, of which only what stands above the diagonal is read, B₀ "
      "is recurrent_kernel.base. It multiplies rows, h B, hence the transpose.",
      "B₀ is the identity in the authors' static mode; their dynamic one puts the present B in its place and P at 0 every so many steps of "
      "training. Its gradient is that of a free matrix: theirs is a buffer, which has none.",
      "Their buffer recurrent_kernel._B is made of the others and left out; without recurrent_kernel.base say base=no. In the older code P "
      "is log_recurrent_kernel.",
      "The exponential is that of double precision, made once and again when its parameter changes; the authors' is a polynomial of single "
      "precision that differs by about 1e-9.",
      "init=cayley is how A starts, whatever the map; Cayley's map reaches every rotation without the eigenvalue −1."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 1024, "Number of units.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_choice("activation", "modrelu", parts::nonlinearities(),
                          "The nonlinearity f; with identity the network is linear and keeps every length."),
             hyper_choice("map", "exponential", {"exponential", "cayley"},
                          "How the skew matrix A becomes an orthogonal one: e^A, or Cayley's (I + A)⁻¹ (I − A)."),
             hyper_flag("base", true, "Whether the base B₀ of the exponential is a parameter; no: it is the identity."),
             initialisation_only(hyper_choice(
                 "init", "henaff", {"henaff", "cayley"},
                 "How the 2×2 blocks of A start: angles uniform in ±π, or −√((1 − cos u)/(1 + cos u)) with u uniform in 0..π/2."))};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂h_t/∂h_{t-1}; where f is the identity those of Bᵀ, on the unit circle";
  a.source = {"M. Lezcano-Casado, D. Martínez-Rubio",
              "Cheap orthogonal constraints in neural networks: a simple parametrization of the orthogonal and unitary group", "ICML",
              "https://arxiv.org/abs/1901.08428", 2019};

  a.input_weights = {{"input_kernel.weight"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1);
    const Var V = l.parameter("input_kernel.weight", {H, in}, init::normal(std::sqrt(2.0 / static_cast<double>(in))),
                              "V, from the input; starts N(0, 2/inputs).");
    const Var P = l.parameter("recurrent_kernel.A", {H, H},
                              l.hyper.choice("init") == "henaff" ? parts::henaff(-std::numbers::pi, std::numbers::pi) : parts::cayley(),
                              "P, whose upper triangle less its transpose is A; starts as 2×2 blocks.");
    const Var A = parts::skew_of_upper(P), one = parts::identity(l.graph(), H);
    Var B = l.hyper.choice("map") == "exponential" ? matrix_exponential(A) : matmul(matrix_inverse(one + A), one - A);
    if (l.hyper.flag("base"))
      B = matmul(
          l.parameter("recurrent_kernel.base", {H, H}, init::each([=](Rng&, std::int64_t i) { return i % (H + 1) == 0 ? 1.0 : 0.0; }),
                      "B₀, orthogonal; starts as the identity."),
          B);
    const std::string f = l.hyper.choice("activation");
    const Var b =
        f == "modrelu" ? l.parameter("nonlinearity.b", {H}, init::uniform(-0.01, 0.01), "b of modReLU; starts uniform in ±0.01.") : Var{};
    const Var W = transpose(B);
    const Var drive = linear(x, V);
    const StateSpec state{"h", {H}, "The hidden state after the nonlinearity."};
    const CellFunction cell = [=](Cell&, std::span<const Var> u, std::span<const Var> s) {
      return std::vector<Var>{parts::nonlinearity(f, linear(s[0], W, u[0]), b)};
    };
    return f == "identity" ? parts::linear_step(l, state, [=] { return W; }, drive, {drive}, cell) : step(l, {state}, {drive}, cell)[0];
  };
  return a;
}

}  // namespace reclab::architectures
