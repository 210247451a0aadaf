// SPDX-License-Identifier: GPL-3.0-or-later
//   h_t = f(W h_{t-1} + V x_t),   W = D_3 R_2 F^-1 D_2 Π R_1 F D_1,   h complex         f = modReLU: z relu(|z| + b)/(|z| + 1e-5)
//   D_i = diag(e^{iθ_i}), F the unitary DFT, R_i z = z - 2 (z^T v_i) conj(v_i)/|v_i|^2, (Π z)_j = z_{π_j}
// M. Arjovsky, A. Shah, Y. Bengio, Unitary evolution recurrent neural networks, ICML 2016. Names and conventions of the authors'
// complex_RNN.
#include <cmath>
#include <numbers>

#include "models/parts/matrices.h"
#include "models/parts/parts.h"
#include "parameters/numpy_random.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

/// Rows of complex numbers, [rows, n] each.
struct Rows {
  Var re, im;
};

Rows turned(const Rows& z, Var angle) {
  const Var c = cos(angle), s = sin(angle);
  return {z.re * c - z.im * s, z.re * s + z.im * c};
}
/// z - 2 (z^T v) conj(v)/|v|^2; v [2n], its real parts first.
Rows reflected(const Rows& z, Var v) {
  const std::int64_t n = z.re.dim(-1);
  const Var re = slice(v, 0, 0, n), im = slice(v, 0, n, 2 * n), column_re = reshape(re, {n, 1}), column_im = reshape(im, {n, 1});
  const Var scale = 2.0 * reciprocal(reshape(sum(square(v), 0), {1, 1}));
  const Var along = scale * (matmul(z.re, column_re) - matmul(z.im, column_im)),
            across = scale * (matmul(z.re, column_im) + matmul(z.im, column_re));
  return {z.re - along * re - across * im, z.im - across * re + along * im};
}
/// The unitary discrete Fourier transform of each row, or its inverse.
Rows transformed(const Rows& z, bool inverse) {
  const std::int64_t n = z.re.dim(-1);
  const auto size = static_cast<std::size_t>(n * n);
  std::vector<double> c(size), s(size);
  const double scale = 1.0 / std::sqrt(static_cast<double>(n));
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t k = 0; k < n; ++k) {
      const double angle = 2.0 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      c[static_cast<std::size_t>(j * n + k)] = scale * std::cos(angle);
      s[static_cast<std::size_t>(j * n + k)] = (inverse ? -scale : scale) * std::sin(angle);
    }
  const Var C = z.re.graph->constant({n, n}, std::move(c)), S = z.re.graph->constant({n, n}, std::move(s));
  return {matmul(z.re, C) + matmul(z.im, S), matmul(z.im, C) - matmul(z.re, S)};
}
Rows permuted(const Rows& z, const std::vector<std::int64_t>& order) {
  const std::int64_t n = z.re.dim(-1);
  std::vector<double> values(static_cast<std::size_t>(n * n));
  for (std::int64_t j = 0; j < n; ++j) values[static_cast<std::size_t>(order[static_cast<std::size_t>(j)] * n + j)] = 1.0;
  const Var order_of = z.re.graph->constant({n, n}, std::move(values));
  return {matmul(z.re, order_of), matmul(z.im, order_of)};
}

}  // namespace

Architecture unitary_rnn() {
  Architecture a;
  a.title = "uRNN";
  a.equations = {"W = D₃ R₂ F⁻¹ D₂ Π R₁ F D₁,  D_i = diag(e^{iθ_i}),  F the unitary DFT",
                 "R_i z = z − 2 (zᵀ v_i) v̄_i/|v_i|²,  (Π z)_j = z_{π_j}", "h_t = f(W h_{t-1} + V x_t),  h_t complex, h_0 learned",
                 "modReLU: f(z) = z relu(|z| + b)/(|z| + 10⁻⁵)", "y_t = (Re h_t, Im h_t)"};
  a.notes = {
      "Names and shapes are those of the authors' complex_RNN: V, hidden_bias, reflection, theta, h_0; complex numbers are 2H columns, "
      "real parts first. Its read-out U [2H, outputs], out_bias is the head and read for it.",
      "The reflections take the conjugate of v, as in the code; its D is e^{+iθ}.",
      "π is numpy.random.RandomState(permutation_seed).permutation(H); the authors' seed is 1234. It is no parameter there either.",
      "h_0 enters at the first step, beside a state of zeros; a run that goes on from a state has passed it.",
      "W is multiplied out once a segment, so a step costs 4H² multiplications where the factors one after another cost about H log H.",
      "At z = 0 the slope of modReLU is b/10⁻⁵ where b is above 0: Newton's forms, which begin from states of 0, then do not converge, and "
      "the sequential one is run.",
      "activation=identity leaves f out: then every step keeps the length of every difference of states."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 512, "Complex units.", "units"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
      hyper_choice("activation", "modrelu", {"modrelu", "identity"}, "The nonlinearity f; identity makes the network linear and unitary."),
      hyper_integer("permutation_seed", "", 1234, 0, 2147483647, "Seed of the permutation π, which is not learned.")};
  a.spectrum =
      "eigenvalues of the recurrent Jacobian of (Re h, Im h); where f is the identity those of W and their conjugates, on the unit circle";
  a.reference = {{"U", "head/weight", true}, {"out_bias", "head/bias"}};
  a.source = {"M. Arjovsky, A. Shah, Y. Bengio", "Unitary evolution recurrent neural networks", "ICML", "https://arxiv.org/abs/1511.06464",
              2016};

  a.input_weights = {{"V"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1);
    const Var V = l.parameter("V", {in, 2 * H}, parts::xavier_uniform(in, 2 * H),
                              "V, a row an input, columns real parts, imaginary parts; starts uniform in ±√(6/(inputs + 2H)).");
    const bool acts = l.hyper.choice("activation") == "modrelu";
    const Var b = acts ? l.parameter("hidden_bias", {H}, init::uniform(-0.01, 0.01), "b of modReLU; starts uniform in ±0.01.") : Var{};
    const Var v = l.parameter("reflection", {2, 2 * H}, parts::xavier_uniform(2, 2 * H),
                              "v₁ and v₂, columns real parts, imaginary parts; start uniform in ±√(6/(2 + 2H)).");
    const Var theta = l.parameter("theta", {3, H}, init::uniform(-std::numbers::pi, std::numbers::pi), "θ₁, θ₂, θ₃; start uniform in ±π.");
    const double bucket = std::sqrt(1.5 / static_cast<double>(H));
    const Var h_0 = l.parameter("h_0", {1, 2 * H}, init::uniform(-bucket, bucket),
                                "The state before the first step, columns real parts, imaginary parts; starts uniform in ±√(3/(2H)).");
    const auto row = [](Var of, std::int64_t i) { return reshape(slice(of, 0, i, i + 1), {of.dim(-1)}); };

    // The cell applied to the rows of the identity: row j is W e_j.
    const Var one = parts::identity(l.graph(), H);
    Rows z = transformed({one * cos(row(theta, 0)), one * sin(row(theta, 0))}, false);
    z = permuted(reflected(z, row(v, 0)), NumpyRandom(static_cast<std::uint32_t>(l.hyper.integer("permutation_seed"))).permutation(H));
    z = reflected(transformed(turned(z, row(theta, 1)), true), row(v, 1));
    z = turned(z, row(theta, 2));
    const Var of_real[] = {z.re, z.im}, of_imaginary[] = {-z.im, z.re}, halves[] = {concat(of_real, 1), concat(of_imaginary, 1)};
    const Var W = transpose(concat(halves, 0));  // [2H, 2H], of (Re h, Im h)

    // The learned state before the first step, and zeros before all others.
    const Var before = (1.0 - minimum(l.position(), 1.0)) * reshape(h_0, {1, 1, 2 * H});
    return step(l,
                {{.name = "h",
                  .shape = {2 * H},
                  .text = "The complex hidden state after the nonlinearity: H real parts, then H imaginary parts.",
                  .pairs = true}},
                {matmul(x, V), before}, [=](Cell&, std::span<const Var> u, std::span<const Var> s) {
                  const Var sum = linear(s[0] + u[1], W, u[0]);
                  if (!acts) return std::vector<Var>{sum};
                  const Var re = slice(sum, -1, 0, H), im = slice(sum, -1, H, 2 * H);
                  const Var modulus = sqrt(square(re) + square(im) + 1e-36);  // of zero with slope zero
                  const Var scale = relu(modulus + b) / (modulus + 1e-5);
                  const Var both[] = {re * scale, im * scale};
                  return std::vector<Var>{concat(both, -1)};
                })[0];
  };
  return a;
}

}  // namespace reclab::architectures
