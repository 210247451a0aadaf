// SPDX-License-Identifier: GPL-3.0-or-later
//   h_t = (Ā + u_t diag(B̄)) h_{t-1} + B̄ u_t,   y_t = 2 Re(C h_t) + D u_t,   Ā and B̄ those of S4, one such system a channel
//   of order p, no more than p inputs are multiplied with each other: h = Σ_{j<=p} h_j,  h_1 = Ā h_1 + B̄ u_t,  h_j = Ā h_j + u_t B̄ ∘ h_{j-1}
//   layer: GLU(W gelu(y) + b),   block: x + layer(norm(x)), or norm(x + layer(x))
// R. Hasani, M. Lechner, T.-H. Wang, M. Chahine, A. Amini, D. Rus, Liquid structural state-space models, ICLR 2023 (arXiv 2022).
// Names and conventions of raminmh/liquid-s4 (src/models/sequence/ss/s4.py, kernel.py).
#include "models/parts/layers/low_rank_layer.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

/// What the systems make of u where their inputs multiply their states: `order` levels, or, with 0, the recurrence itself.
Var liquid(Layer& l, const LowRankSystem& system, Var u, std::int64_t order) {
  const std::int64_t T = u.dim(0), batch = u.dim(1), H = system.a.dim(0), M = system.a.dim(1), levels = order ? order : 1;
  const auto in_levels = [&](Var v) { return reshape(v, {H, 1, M}); };
  const Var ar = in_levels(real(system.a)), ai = in_levels(imag(system.a)), pr = in_levels(real(system.p)), pi = in_levels(imag(system.p)),
            qr = in_levels(real(system.q)), qi = in_levels(imag(system.q));
  const Var each = reshape(u, {T, batch, H, 1, 1});
  std::vector<Var> tokens{each * in_levels(real(system.b)), each * in_levels(imag(system.b))};
  const std::string text = order ? "The real coordinates of each channel's modes, one of each conjugate pair: for each order, first their real parts, then their imaginary ones."
                                 : "The real coordinates of each channel's modes, one of each conjugate pair: first their real parts, then their imaginary ones.";
  const Var states = step(l, {{"h", {H, levels * 2 * M, 1}, text}}, tokens, [=](Cell&, std::span<const Var> t, std::span<const Var> s) {
    const std::int64_t rows = s[0].dim(0);
    const Var h = reshape(s[0], {rows, H, levels, 2 * M}), re = slice(h, -1, 0, M), im = slice(h, -1, M, 2 * M);
    const Var read = reshape(sum(re * qr - im * qi, -1) * 2.0, {rows, H, levels, 1});
    const Var moved_re = ar * re - ai * im - pr * read, moved_im = ar * im + ai * re - pi * read;
    // What the input adds: of the first level B̄ u, of each level above it B̄ u times the level below.
    const auto driven = [&](Var from_re, Var from_im) { return std::pair{t[0] * from_re - t[1] * from_im, t[0] * from_im + t[1] * from_re}; };
    Var drive_re = t[0], drive_im = t[1];
    if (order == 0) {
      const auto [by_re, by_im] = driven(re, im);
      drive_re = drive_re + by_re;
      drive_im = drive_im + by_im;
    } else {
      const auto [by_re, by_im] = driven(slice(re, 2, 0, levels - 1), slice(im, 2, 0, levels - 1));
      const Var of_re[] = {drive_re, by_re}, of_im[] = {drive_im, by_im};
      drive_re = concat(of_re, 2);
      drive_im = concat(of_im, 2);
    }
    const Var next[] = {moved_re + drive_re, moved_im + drive_im};
    return std::vector<Var>{reshape(concat(next, -1), {rows, H, levels * 2 * M, 1})};
  }, Sees::own_column)[0];
  const Var h = reshape(states, {T, batch, H, levels, 2 * M});
  const Var all = order > 1 ? sum(h, 3) : reshape(h, {T, batch, H, 2 * M});
  return sum(slice(all, -1, 0, M) * real(system.c) - slice(all, -1, M, 2 * M) * imag(system.c), -1) * 2.0;
}

}  // namespace

Architecture liquid_s4() {
  Architecture a;
  a.title = "Liquid-S4";
  a.equations = {"A = Λ − P P*, Λ = −exp(inv_w_real) + i w_imag and its conjugates",
                 "Ā = (1 − Δ/2 A)⁻¹(1 + Δ/2 A), B̄ = (1 − Δ/2 A)⁻¹ Δ B, Δ = exp(log_dt)",
                 "order = 0: h_t = (Ā + u_t diag(B̄)) h_{t-1} + B̄ u_t, N modes a channel, of which one of each conjugate pair is stored",
                 "order = p: h_t = h_t⁽¹⁾ + … + h_t⁽ᵖ⁾, h_t⁽¹⁾ = Ā h_{t-1}⁽¹⁾ + B̄ u_t, h_t⁽ʲ⁾ = Ā h_{t-1}⁽ʲ⁾ + u_t B̄ ⊙ h_{t-1}⁽ʲ⁻¹⁾",
                 "y_t = 2 Re Σ_n C_n h_t,n + D u_t;  L = l_kernel > 0: with (1 − Āᴸ)⁻ᵀ C in place of C",
                 "bidirectional: y_t + 2 Re Σ_n C'_n h'_n with h' of the steps after t, last one first",
                 "layer: v = W gelu(y_t) + b, out = v₁ ⊙ σ(v₂)"};
  a.notes = {
      "Names and shapes are those of the reference's S4 without kernel.kernel., and output_linear without .0; the last axis of B, P, C is re, im.",
      "The paper's A + B u adds a vector to a matrix: here, as in its powers of B, B stands on the diagonal, in the coordinates of the stored modes. What an input multiplies "
      "therefore depends on the phase of B, unlike anything in S4.",
      "order counts inputs in a product: 1 is S4, with all of its forms; p is what the paper calls liquid order, with the powers of Ā between the inputs kept; "
      "0 is the recurrence, which has all orders and is the limit of them.",
      "The reference computes something else, from the same parameters: its polyb and kb add terms in products of inputs that are taken from the end of the whole sequence to its start, so "
      "they are not causal, with frozen copies of log_dt, B, C and w that are not in its files. They are not here: a file trained with liquid_kernel other than null gives other outputs there.",
      "Its kernel of liquid_kernel = null is order 1; its C is C̃ = (1 − Āᴸ)ᵀ C after the first forward pass: set l_kernel to its buffer L.",
      "C starts complex normal, and B as the eigenvectors' V* B with phases that make it real and positive, which is a choice of the diagonal's coordinates too.",
      "Orders above 1 repeat each eigenvalue: a level is driven by the one below, and ds_t/ds_{t-1} has too few eigenvectors, so rounding moves its eigenvalues apart.",
      "With order = 0 a large input makes a state grow, u_t B̄ counting as much as Ā; a finite order never does.",
      "real_transform relu is without the 1e-4 that later versions add. gelu is exact and the block's norm a layer norm with epsilon 1e-5, before the layer by default."};
  a.hyper = parts::low_rank_layer_hyper(true);
  a.hyper.insert(a.hyper.begin() + 3, hyper_integer("order", "p", 2, 0, 8, "Most inputs that are multiplied with each other; 1: S4; 0: all, the recurrence itself."));
  a.spectrum = "eigenvalues of ∂h_t/∂h_{t-1} of every channel: of Ā + u_t diag(B̄) with order = 0; of Ā, once an order, otherwise";
  a.source = {"R. Hasani, M. Lechner, T.-H. Wang, M. Chahine, A. Amini, D. Rus", "Liquid structural state-space models", "ICLR", "https://arxiv.org/abs/2209.12951", 2022};
  a.reference = {{"kernel.kernel.L", ""}, {"layers.{n}.layer.kernel.kernel.*", "*"}, {"kernel.kernel.*", "*"}, {"layers.{n}.layer.D", "D"},
                 {"layers.{n}.layer.output_linear.0.*", "output_linear.*"}, {"output_linear.0.*", "output_linear.*"}, {"layers.{n}.norm.norm.*", "norm.*"}};
  parts::make_low_rank_layer(a, {.id = "liquid-s4",
                                 .read = [](Layer& l, const LowRankSystem& system, Var u) {
                                   const std::int64_t order = l.hyper.integer("order");
                                   return order == 1 ? parts::low_rank_modes(l, system, u) : liquid(l, system, u, order);
                                 },
                                 .first_version = true});
  return a;
}

}  // namespace reclab::architectures
