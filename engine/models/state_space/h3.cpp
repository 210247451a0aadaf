// SPDX-License-Identifier: GPL-3.0-or-later
//   q = W_q u + b_q, k = W_k u + b_k, v = W_v u + b_v
//   s_t = shift(s_{t-1}) + B k_t,  k'_t = C·s_t + D_k k_t       the shift system: Σ_j B_j C_{i+j} is the tap at lag i = 0 .. N-1
//   h_t = Ā h_{t-1} + B̄ (k'_t ⊗ v_t),  r_t = 2 Re(C h_t) + D (k'_t ⊗ v_t)       the diagonal system, one for each pair of a head's
//                                                                             dimensions
//   y_t = W_o (q_tᵀ r_t) + b_o
// D. Y. Fu, T. Dao, et al., Hungry hungry hippos: towards language modeling with state space models, ICLR 2023. Names and conventions of
// HazyResearch/H3 (src/models/ssm/h3.py, ss_kernel.py, ss_kernel_diag.py, ss_kernel_shift.py; the block of ssm_seq.py).
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/parts/layers/modal_filter.h"
#include "models/parts/parts.h"
#include "models/state_space/h3/parameters.h"
#include "recurrence/convolution/convolution.h"
#include "recurrence/flow.h"

namespace reclab::architectures {
namespace {

/// Σ_j B_j C_{i+j} for i = 0 .. N-1, the kernel of a shift system [channels, N], cut at l_max.
Var shift_kernel(Layer& l, const H3Shift& system) {
  const std::int64_t channels = system.B.dim(0), N = system.B.dim(1), l_max = l.hyper.integer("l_max");
  const Var places = reshape(transpose(system.C), {N, 1, channels});
  const Var later = l.graph().constant({N, 1, channels}, std::vector<double>(static_cast<std::size_t>(N * channels), 0.0));
  const Var both[] = {places, slice(later, 0, 0, N - 1)};
  const Var kernel = depthwise(N > 1 ? concat(both, 0) : places, system.B);
  return slice(transpose(reshape(kernel, {N, channels})), -1, 0, l_max ? std::min(N, l_max) : N);
}

/// Ā, B̄ and the readout 2 C (disc=dss: C) of A, B, C and Δ.
H3Modes discretised(Layer& l, const H3Diagonal& p) {
  const auto& [A, dt, B, C] = p;
  const std::string& disc = l.hyper.choice("disc");
  const Var dtA = A * dt;
  declare_flow(l, {.rule = disc == "bilinear" ? Flow::Rule::bilinear : Flow::Rule::exponential, .exponents = dtA});
  if (disc == "zoh") return {exp(dtA), B * (mean_exp(dtA) * dt), C * 2.0};
  if (disc == "bilinear") {
    const Var inverse = reciprocal(1.0 - dtA * 0.5);
    return {(dtA * 0.5 + 1.0) * inverse, B * (inverse * dt), C * 2.0};
  }
  // B ⊙ (Ā − 1)/(A (Āᴸ − 1)), of a mode that grows with −ΔA and times Ā¹⁻ᴸ; 1/x = x̄/(|x|² + 1e-7)
  const double length = static_cast<double>(l.hyper.integer("length"));
  const Var grows = detach(relu(sign(real(A)))), falling = dtA * (1.0 - 2.0 * grows);
  const Var below = mean_exp(falling * length) * falling * length * A;
  const Var inverse = complex(real(below), -imag(below)) * reciprocal(square(real(below)) + square(imag(below)) + 1e-7);
  return {exp(dtA), B * (mean_exp(falling) * falling * inverse * exp(detach(dtA) * (grows * (1.0 - length)))), C,
          l.hyper.choice("real_type") == "none"};
}

/// 1 − σ(δ) σ(α), σ(δ) β and γ/√N.
H3Modes averaging(const H3Averages& p) {
  const auto& [delta, alpha, beta, gamma] = p;
  return {sigmoid(-delta) + sigmoid(delta) * sigmoid(-alpha), sigmoid(delta) * beta,
          gamma * std::sqrt(1.0 / static_cast<double>(gamma.dim(1)))};  // 1 - pq = (1 - p) + p (1 - q)
}

/// The output of the system over the products, [steps, batch, channels]; `each` channels of a head after another.
Var remembered(Layer& l, Var kv, std::int64_t each) {
  const std::string& mode = l.hyper.choice("mode");
  if (parts::has_modal_filter(l.hyper)) return parts::modal_filter(l, kv);
  if (mode == "shift") return h3_by_taps(l, shift_kernel(l, h3_shift(l, "kernel.kernel", h3_heads(l.hyper))), kv, each);
  return h3_by_modes(l, mode == "ema" ? averaging(h3_averages(l)) : discretised(l, h3_diagonal(l)), kv, each);
}

Var h3_operator(Layer& l, Var u) {
  const Hyper& h = l.hyper;
  const std::int64_t d = h.integer("width"), n = h.integer("head_dim"), H = h3_heads(h), T = u.dim(0), batch = u.dim(1);
  const Var q = l.gate("q", parts::linear(l, "q_proj", u, d, "W_q, rows (head, dimension)"), 0.0, 0.0,
                       "q: what the memory of the products is multiplied with; unbounded.");
  const Var k = parts::linear(l, "k_proj", u, d, "W_k, rows (head, dimension)");
  const Var v = parts::linear(l, "v_proj", u, d, "W_v, rows (head, dimension)");
  const Var taps = shift_kernel(l, h3_shift(l, "ssm_k_kernel.kernel", d));
  const Var D_k = l.parameter("ssm_k_D", {d}, init::normal(1.0), "D_k, the skip beside the shift system; starts normal.");
  const Var past = taps.dim(-1) > 1 ? l.history("k", k, taps.dim(-1) - 1, "The keys that the shift system keeps, oldest first.") : k;
  const Var shifted = l.gate("k", convolve_directly(taps, past, T) + D_k * k, 0.0, 0.0,
                             "k': the keys behind the shift system, with which the values are multiplied; unbounded.");
  const Var D = l.parameter("D", {H}, init::normal(1.0), "D, the skip beside the diagonal system, one a head; starts normal.");
  const Var kv = reshape(shifted, {T, batch, H, n, 1}) * reshape(v, {T, batch, H, 1, n});
  const Var r = reshape(remembered(l, reshape(kv, {T, batch, d * n}), n * n), {T, batch, H, n, n}) + kv * reshape(D, {H, 1, 1});
  const Var y = sum(r * reshape(q, {T, batch, H, n, 1}), 3);
  return parts::linear(l, "output_linear", reshape(n > 1 ? transpose(y) : y, {T, batch, d}), d, "W_o, columns (dimension, head)");
}

}  // namespace

Architecture h3() {
  Architecture a = h3_card();
  a.layer = [](Layer& l, Var x) {
    if (l.hyper.choice("block") == "none") return h3_operator(l, x);
    const std::int64_t d = l.hyper.integer("width"), hidden = l.hyper.integer("mlp") ? l.hyper.integer("mlp") : 4 * d;
    x = x + h3_operator(l, parts::layer_norm(l, "norm1", x));
    const Var inside = gelu_tanh(parts::linear(l, "mlp.fc1", parts::layer_norm(l, "norm2", x), hidden, "W₁ of the feed-forward part"));
    return x + parts::linear(l, "mlp.fc2", inside, d, "W₂ of the feed-forward part");
  };
  a.final_layer = [](Layer& l, Var x) {
    return l.hyper.choice("block") == "residual" && l.hyper.flag("final_norm") ? parts::layer_norm(l, "ln_f", x) : x;
  };
  return a;
}

}  // namespace reclab::architectures
