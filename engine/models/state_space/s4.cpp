// SPDX-License-Identifier: GPL-3.0-or-later
//   A = Λ - P P*, Ā = (1 - Δ/2 A)⁻¹(1 + Δ/2 A), B̄ = (1 - Δ/2 A)⁻¹ Δ B,   h_t = Ā h_{t-1} + B̄ u_t (one such system a channel)
//   y_t = 2 Re(C h_t) + D u_t,   layer: GLU(W gelu(y) + b),   block: x + layer(norm(x)), or norm(x + layer(x))
// A. Gu, K. Goel, C. Ré, Efficiently modeling long sequences with structured state spaces, ICLR 2022.
// Names and conventions of state-spaces/s4 (kernels/ssm.py, SSMKernelDPLR; modules/s4block.py).
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "array/error.h"
#include "models/architecture.h"
#include "models/parts/hippo.h"
#include "recurrence/linear/linear.h"

namespace reclab::architectures {
namespace {

/// The readout c of which c (1 - Abar^length) is C~: c = C~ (1 + M)(1 + M^2)(1 + M^4)..., M = Abar^length, until the powers of any decay
/// from 1e-9 a step on have died away. In real coordinates, where a readout is the row (Re c, -Im c) and the state the column (Re h, Im h).
Var solved_readout(const LowRankSystem& system, Var c, std::int64_t length) {
  const std::int64_t H = c.dim(0), n = c.dim(1);
  Graph& graph = *c.graph;
  std::vector<double> identity(static_cast<std::size_t>(n * n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) identity[static_cast<std::size_t>(i * n + i)] = 1.0;
  const Var one = graph.constant({n, n}, std::move(identity));
  const auto diagonal = [&](Var v) { return reshape(v, {H, n, 1}) * one; };
  const auto product = [&](Var p, Var q) { return reshape(p, {H, n, 1}) * reshape(q, {H, 1, n}) * 2.0; };
  const Var a = real(system.a), b = imag(system.a), p = real(system.p), s = imag(system.p), q = real(system.q), r = imag(system.q);
  const Var above[] = {diagonal(a) - product(p, q), product(p, r) - diagonal(b)},
            below[] = {diagonal(b) - product(s, q), diagonal(a) + product(s, r)};
  const Var rows[] = {concat(above, -1), concat(below, -1)};
  Var power = concat(rows, -2), M;
  for (std::int64_t left = length; left > 0; left /= 2) {
    if (left % 2) M = M ? matmul(M, power) : power;
    if (left > 1) power = matmul(power, power);
  }
  const Var parts[] = {real(c), -imag(c)};
  Var row = reshape(concat(parts, -1), {H, 1, 2 * n});
  for (double steps = static_cast<double>(length); steps < 4e10; steps *= 2.0) {
    row = row + matmul(row, M);
    M = matmul(M, M);
  }
  row = reshape(row, {H, 2 * n});
  return complex(slice(row, -1, 0, n), -slice(row, -1, n, 2 * n));
}

}  // namespace

Architecture s4() {
  Architecture a;
  a.title = "S4";
  a.equations = {"A = Λ − P P*, Λ = −exp(A_real) − i A_imag and its conjugates",
                 "Ā = (1 − Δ/2 A)⁻¹(1 + Δ/2 A), B̄ = (1 − Δ/2 A)⁻¹ Δ B, Δ = exp(inv_dt)",
                 "h_t = Ā h_{t-1} + B̄ u_t, N modes a channel, of which one of each conjugate pair is stored",
                 "y_t = 2 Re Σ_n C_n h_t,n + D u_t;  l_kernel = L > 0: with (1 − Ā^L)⁻ᵀ C in place of C",
                 "layer: v = W gelu(y_t) + b, out = v₁ ⊙ σ(v₂)"};
  a.notes = {
      "Names and shapes are those of the reference's SSMKernelDPLR and S4Block without layer. and kernel., and output_linear without .0; "
      "the last axis of B, P, C is re, im.",
      "C is the readout of the recurrence; the reference overwrites its C with C̃ = (1 − Ā^L)ᵀ C at its first forward pass and trains that. "
      "For weights that were saved later, set l_kernel to the reference's buffer of that name: C is then C̃.",
      "B starts as the eigenvectors' V* B. The reference's has another phase, that of eigenvectors whose first entry is real, and its "
      "imaginary part there is cut to ±2, which B_clip=2 does here too; P is not cut.",
      "Channel h uses copy h mod n_ssm of A, B, P.",
      "Ā is a diagonal less a product of two vectors, so a step costs O(N) a channel; the forms scan and convolution go through the real N "
      "× N matrix.",
      "The stored half alone is not moved by a complex matrix: spectrum and ds_T/ds_t are those of all N modes, as of the real map of (Re "
      "h, Im h).",
      "gelu is exact and the block's norm a layer norm with epsilon 1e-5, before the layer by default."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Channels; each is a system of its own.", "channels"),
             hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
             hyper_integer("state", "N", 64, 2, 1024, "State size a channel, conjugates counted: N/2 complex modes are stored.", "states"),
             hyper_integer("n_ssm", "S", 0, 0, 4096,
                           "Independent copies of A, B, P, shared by the channels in turn; it divides the width; 0: one a channel."),
             draws_only(hyper_real("dt_min", "Δ_min", 0.001, 1e-6, 10.0, "Smallest time step at the start.", true)),
             draws_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-6, 10.0, "Largest time step at the start.", true)),
             hyper_choice("dt_transform", "exp", {"exp", "softplus"}, "How the time step comes from inv_dt."),
             draws_only(hyper_real("B_clip", "", 0.0, 0.0, 1000.0, "Where the imaginary part of B is cut at the start (2 in the reference); 0: nowhere.")),
             hyper_integer("l_kernel", "L", 0, 0, 1 << 20,
                           "Length that the reference's kernel was made for, where C is its C̃; 0: C is the readout itself.", "steps"),
             hyper_choice("output", "glu", {"glu", "none"}, "After the system: gelu and a gated linear map, or nothing."),
             hyper_choice("block", "residual", {"residual", "none"}, "The block with norm and residual, or the S4 layer alone."),
             hyper_flag("prenorm", true, "Whether the norm comes before the layer (after the residual otherwise).")};
  a.spectrum = "eigenvalues of the discretised transition Ā of every channel, all N of them, the same at every step";
  a.source = {"A. Gu, K. Goel, C. Ré", "Efficiently modeling long sequences with structured state spaces", "ICLR",
              "https://arxiv.org/abs/2111.00396", 2022};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.integer("state") % 2)
      throw Error("s4: state = " + h.text("state") + " is odd: it counts conjugate pairs, choose an even number.",
                  {.model = "s4", .parameter = "state", .value = h.text("state"), .range = "even"});
    if (h.integer("n_ssm") && h.integer("width") % h.integer("n_ssm"))
      throw Error("s4: n_ssm = " + h.text("n_ssm") + " does not divide width = " + h.text("width") +
                      ": choose a divisor, or 0 for one copy a channel.",
                  {.model = "s4", .parameter = "n_ssm", .value = h.text("n_ssm"), .range = "a divisor of width"});
    if (h.real("dt_min") > h.real("dt_max"))
      throw Error("s4: dt_min = " + h.text("dt_min") + " is above dt_max = " + h.text("dt_max") + ": choose dt_min at most dt_max.",
                  {.model = "s4", .parameter = "dt_min", .value = h.text("dt_min"), .range = "at most dt_max"});
  };

  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), N = l.hyper.integer("state"), modes = N / 2,
                       S = l.hyper.integer("n_ssm") ? l.hyper.integer("n_ssm") : H;
    const bool block = l.hyper.choice("block") == "residual", prenorm = l.hyper.flag("prenorm"),
               softplus_dt = l.hyper.choice("dt_transform") == "softplus";
    const double low = std::log(l.hyper.real("dt_min")), high = std::log(l.hyper.real("dt_max"));
    const Var scale = block ? l.parameter("norm.weight", {H}, init::constant(1.0), "Scale of the layer norm; starts at 1.") : Var{};
    const Var shift = block ? l.parameter("norm.bias", {H}, init::constant(0.0), "Shift of the layer norm; starts at 0.") : Var{};

    const Var inv_dt = l.parameter("inv_dt", {H, 1}, init::each([=](Rng& rng, std::int64_t) {
                                     const double value = rng.uniform(low, high);
                                     return softplus_dt ? std::log(std::expm1(std::exp(value))) : value;
                                   }),
                                   "Δ a channel before exp or softplus; starts with log Δ uniform between log dt_min and log dt_max.");
    /// Every copy starts as the same modes of HiPPO-LegS.
    const auto from_legs = [N, modes](auto value) -> Init {
      return [=](InitContext& c) {
        const auto legs = hippo::legs_normal(N);
        const std::size_t each = c.shape.size() == 4 ? 2 : 1;
        for (std::size_t i = 0; i < c.values.size(); i += each) {
          const std::complex<double> start = value(legs, i / each % static_cast<std::size_t>(modes));
          c.values[i] = start.real();
          if (each == 2) c.values[i + 1] = start.imag();
        }
      };
    };
    const double clip = l.hyper.real("B_clip");
    const auto clipped = [clip](const hippo::Normal& legs, std::size_t n) -> std::complex<double> {
      if (clip == 0.0) return legs.input[n];
      const std::complex<double> phase = legs.vectors[n] / std::abs(legs.vectors[n]), theirs = legs.input[n] * phase;
      return std::complex<double>(theirs.real(), std::clamp(theirs.imag(), -clip, clip)) / phase;
    };
    const Var A_real = l.parameter("A_real", {S, modes}, init::constant(std::log(0.5)), "log of −Re Λ; starts at log ½.");
    const Var A_imag =
        l.parameter("A_imag", {S, modes}, from_legs([](const hippo::Normal& legs, std::size_t n) { return std::max(-legs.frequencies[n], 1e-4); }),
                    "−Im Λ; starts with the eigenvalues of HiPPO-LegS, largest first.");
    const Var B =
        l.parameter("B", {1, S, modes, 2}, from_legs(clipped),
                    "B in the eigenvectors' basis, last axis re and im; starts as HiPPO-LegS with phases that make it real and positive" +
                        std::string(clip == 0.0 ? "." : ", then cut."));
    const Var P = l.parameter("P", {1, S, modes, 2},
                              from_legs([](const hippo::Normal& legs, std::size_t n) { return legs.input[n] * std::numbers::sqrt2 / 2.0; }),
                              "P of the low-rank part, last axis re and im; starts as HiPPO-LegS, B/√2.");
    const Var C =
        l.parameter("C", {1, H, modes, 2}, init::normal(std::sqrt(0.5)), l.hyper.integer("l_kernel") ? "C̃ = (1 − Ā^L)ᵀ times the readout, last axis re and im; starts complex normal." : "The readout C, last axis re and im; starts complex normal.");
    const Var D = l.parameter("D", {1, H}, init::normal(1.0), "The skip D; starts normal.");

    const auto number = [&](Var v, std::int64_t rows) {
      return complex(reshape(slice(v, -1, 0, 1), {rows, modes}), reshape(slice(v, -1, 1, 2), {rows, modes}));
    };
    const auto for_channels = [&](Var v) {
      std::vector<Var> copies(static_cast<std::size_t>(H / S), v);
      return copies.size() == 1 ? v : concat(copies, 0);
    };
    const auto half_sum = [](Var v) { return reshape(sum(real(v), -1) * 2.0, {v.dim(0), 1}); };  // over a mode and its conjugate
    const Var lambda = for_channels(complex(-exp_in_range(A_real), -A_imag)), low_rank = for_channels(number(P, S)),
              input = for_channels(number(B, S));
    const Var dt = softplus_dt ? softplus(inv_dt) : exp(inv_dt), half = dt * 0.5;
    // (1 - Δ/2 A)⁻¹ by Sherman and Morrison; Ā = 2 (1 - Δ/2 A)⁻¹ - 1.
    const Var inverse = reciprocal(1.0 - lambda * half), conjugate = complex(real(low_rank), -imag(low_rank));
    LowRankSystem system;
    system.a = inverse * 2.0 - 1.0;
    system.q = conjugate * inverse;
    system.p = inverse * low_rank * (dt / (1.0 + half * half_sum(low_rank * system.q)));
    system.b = inverse * input * dt - system.p * (half * half_sum(system.q * input));
    system.c = number(C, H);
    if (const std::int64_t length = l.hyper.integer("l_kernel")) system.c = solved_readout(system, system.c, length);

    const Var u = block && prenorm ? layer_norm(x, scale, shift, 1e-5) : x;
    Var y = low_rank_bank(l, {"h", {H, modes}, "The complex modes of each channel, one of each conjugate pair."}, system, u) +
            reshape(D, {H}) * u;
    if (l.hyper.choice("output") == "glu") {
      const double k = 1.0 / std::sqrt(static_cast<double>(H));
      const Var W = l.parameter("output_linear.weight", {2 * H, H}, init::uniform(-k, k),
                                "W of the GLU: value rows, then gate rows; starts uniform in ±1/√H.");
      const Var b = l.parameter("output_linear.bias", {2 * H}, init::uniform(-k, k), "Its bias; starts uniform in ±1/√H.");
      const auto parts = split(linear(gelu(y), W, b), -1, 2);
      y = parts[0] * l.gate("glu", sigmoid(parts[1]), 0.0, 1.0, "The GLU after the system: how much of each channel passes.");
    }
    if (!block) return y;
    return prenorm ? x + y : layer_norm(x + y, scale, shift, 1e-5);
  };
  return a;
}

}  // namespace reclab::architectures
