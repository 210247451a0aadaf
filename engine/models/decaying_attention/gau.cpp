// SPDX-License-Identifier: GPL-3.0-or-later
//   u, v, z = silu of W_u, W_v, W_z times norm x;   q = R(z ∘ g_q + b_q), k = R(z ∘ g_k + b_k), R turning by the position
//   y_t = x_t + W_o (u_t ∘ Σ_{s ≤ t} max(0, q_t·k_s/P + b_{t-s})² v_s)
// W. Hua, Z. Dai, H. Liu, Q. V. Le, Transformer quality in linear time, ICML 2022. Names and conventions of FlashQuadAttention in
// fairseq-evo.
#include "models/decaying_attention/gated_unit.h"
#include "models/decaying_attention/near_attention.h"

namespace reclab::architectures {

Architecture gau() {
  Architecture a;
  a.title = "Gated attention unit";
  a.equations = {"u = silu(W_u x̂),  v = silu(W_v x̂),  z = silu(W_z x̂),  x̂ = norm x",
                 "q_t = R_t (z_t ⊙ g_q + b_q),  k_t = R_t (z_t ⊙ g_k + b_k);  R_t turns (i, i + s/2) by t·10000^(−2i/s)",
                 "A_ts = max(0, q_t·k_s/P + b_{t−s})²,  s ≤ t", "y_t = x_t + W_o (u_t ⊙ Σ_s A_ts v_s)",
                 "bias=toeplitz: b_n = w[P−1−n];  bias=rotary: b_n = R_t a·R_{t−n} b"};
  a.notes = {
      "Names and shapes are those of FlashQuadAttention in OpenNLPLab's fairseq-evo, layers.<n>.self_attn; the authors published no code. "
      "With norm=scale_norm the norm has one weight, norm.scala.",
      "The scores are divided by P = max_positions, whatever the length, and no sum of weights is divided by.",
      "A step sees P steps, itself included. For a longer sequence the reference drops the bias and divides by the length of the whole "
      "sequence, which no step can know.",
      "The reference has w, a and b at once and means to take the biases from a and b where P is above 512, where its indexing stops it; "
      "here bias says which, and the others of a file are not read.",
      "The state is what each step appends, k after its turn; dL/dk_t and dL/dv_t count every read from step t on. There is no transition, "
      "hence no spectrum and no ds_T/ds_t.",
      "relu2 is exactly 0 below 0, so a key that no later query meets has a gradient of exactly 0."};
  a.hyper = {hyper_integer("width", "d", 32, 1, 4096, "Width of the stream.", "channels"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers in a row.")};
  for (auto& row : gated_unit::hyper()) a.hyper.push_back(std::move(row));
  a.spectrum = "none: attention reads the steps before all at once, and no matrix takes one state to the next";
  a.source = {"W. Hua, Z. Dai, H. Liu, Q. V. Le", "Transformer quality in linear time", "ICML", "https://arxiv.org/abs/2202.10447", 2022};
  a.reference = gated_unit::reference();
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) { gated_unit::check(h, "gau"); };

  a.layer = [](Layer& l, Var x) {
    const std::int64_t P = l.hyper.integer("max_positions");
    const gated_unit::Parts unit = gated_unit::parts_of(l, x);
    const Var q = gated_unit::turned(l, "q", unit.z) / static_cast<double>(P), k = gated_unit::turned(l, "k", unit.z);
    const parts::Reach reach = parts::reach(l, P, false);
    PointwiseAttention pairs;
    pairs.weight = ScoreWeight::relu_squared;
    parts::fill(pairs, parts::batch_first(q),
                parts::reached(l, reach, {"k", {k.dim(-1)}, "The key that each step appends to what later steps read."}, k),
                parts::reached(l, reach, {"v", {unit.v.dim(-1)}, "The value that each step appends."}, unit.v), reach,
                gated_unit::bias(l, P));
    return gated_unit::residual(l, x, unit.u, parts::batch_first(attention(l, pairs)));
  };
  a.final_layer = gated_unit::finish;
  return a;
}

}  // namespace reclab::architectures
