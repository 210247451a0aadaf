// SPDX-License-Identifier: GPL-3.0-or-later
//   S_t = S_{t-1} + l_t v_t^T/c,   linear_t = (S at the end of the last chunk)^T m_t,   quadratic_t = Σ_s max(0, q_t·k_s/c + b_{t-s})² v_s
//   over the chunk y_t = x_t + W_o (u_t ∘ (quadratic_t + linear_t));   u, v, z = silu of maps of norm x;   q, k, m, l: z, scaled, shifted
//   and turned by the position
// W. Hua, Z. Dai, H. Liu, Q. V. Le, Transformer quality in linear time, ICML 2022. Names and conventions of FlashLinearAttention in
// fairseq-evo.
#include "array/error.h"
#include "models/decaying_attention/gated_unit.h"
#include "models/decaying_attention/near_attention.h"
#include "models/parts/parts.h"
#include "recurrence/outer/outer.h"

namespace reclab::architectures {

Architecture flash() {
  Architecture a;
  a.title = "FLASH";
  a.equations = {
      "u = silu(W_u x̂),  v = silu(W_v x̂),  z = silu(W_z x̂),  x̂ = norm x",
      "quad_q, quad_k, lin_q, lin_k = R_t (z_t ⊙ g + b), each with g and b of its own;  R_t turns (i, i + s/2) by t·10000^(−2i/s)",
      "S_t = S_{t-1} + lin_k_t v_tᵀ/c,  linear_t = S_{t₀−1}ᵀ lin_q_t,  t₀ = c ⌊t/c⌋ the chunk's first step",
      "quadratic_t = Σ_{t₀≤s≤t} max(0, quad_q_t·quad_k_s/c + b_{t−s})² v_s",
      "y_t = x_t + W_o (u_t ⊙ (quadratic_t + linear_t))",
      "bias=toeplitz: b_n = w[P−1−n];  bias=rotary: b_n = R_t a·R_{t−n} b"};
  a.notes = {
      "Names and shapes are those of FlashLinearAttention in OpenNLPLab's fairseq-evo with its causal mask, layers.<n>.self_attn; the "
      "authors published no code. With norm=scale_norm the norm has one weight, norm.scala.",
      "The state S is written at every step and read as it was when the chunk began: what the read of S_t has of the chunk's own steps is "
      "taken out again, which is exact to rounding. dL/dS_t counts the reads of all steps from t on, with those of its own chunk.",
      "Both parts are divided by the chunk's length c, that of a full chunk also in the last one; no sum of weights is divided by.",
      "Keys and values of the chunk are buffers, so spectrum and ds_T/ds_t are those of S.",
      "The reference has w, a and b at once and means to take the biases from a and b where P is above 512, where its indexing stops it; "
      "here bias says which, and the others of a file are not read."};
  a.hyper = {hyper_integer("width", "d", 32, 1, 4096, "Width of the stream.", "channels"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
             hyper_integer("chunk", "c", 5, 1, 65536, "Steps of a chunk; at most max_positions.", "steps")};
  for (auto& row : gated_unit::hyper()) a.hyper.push_back(std::move(row));
  a.spectrum = "ones: the memory S is never decayed";
  a.source = {"W. Hua, Z. Dai, H. Liu, Q. V. Le", "Transformer quality in linear time", "ICML", "https://arxiv.org/abs/2202.10447", 2022};
  a.reference = gated_unit::reference();
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    gated_unit::check(h, "flash");
    if (h.integer("chunk") > h.integer("max_positions"))
      throw Error("flash: chunk = " + h.text("chunk") + " is above max_positions = " + h.text("max_positions") +
                      ", and a distance would have no bias: choose a smaller chunk, or more positions.",
                  {.model = "flash", .parameter = "chunk", .value = h.text("chunk"), .range = "1.." + h.text("max_positions")});
  };

  a.layer = [](Layer& l, Var x) {
    const std::int64_t c = l.hyper.integer("chunk"), s = l.hyper.integer("key_width");
    const double share = 1.0 / static_cast<double>(c);
    const gated_unit::Parts unit = gated_unit::parts_of(l, x);
    const Var quad_q = gated_unit::turned(l, "quad_q", unit.z) * share, quad_k = gated_unit::turned(l, "quad_k", unit.z);
    const Var lin_q = gated_unit::turned(l, "lin_q", unit.z), lin_k = gated_unit::turned(l, "lin_k", unit.z) * share;
    const parts::Reach reach = parts::reach(l, c, true);
    const Var values = parts::reached(l, reach, "v", unit.v, "The chunk's values so far.");
    PointwiseAttention quadratic, own;
    quadratic.weight = ScoreWeight::relu_squared;
    parts::fill(quadratic, parts::batch_first(quad_q), parts::reached(l, reach, "quad_k", quad_k, "The chunk's keys so far."), values,
                reach, gated_unit::bias(l, c));
    own.q = parts::batch_first(lin_q);
    own.k = parts::reached(l, reach, "lin_k", lin_k, "The chunk's keys of the linear part so far.");
    own.v = values;
    own.low = reach.low;
    own.window = reach.length;
    const std::int64_t e = unit.v.dim(-1);
    const Var all = outer(l, {"S", {1, s, e}, "The sum of lin_k vᵀ/c of all steps so far, [key, value]."},
                          {.q = parts::by_head(l, lin_q, 1), .k = parts::by_head(l, lin_k, 1), .v = parts::by_head(l, unit.v, 1)});
    const Var linear = parts::flat(l, all) - parts::batch_first(attention(l, own));
    return gated_unit::residual(l, x, unit.u, parts::batch_first(attention(l, quadratic)) + linear);
  };
  a.final_layer = gated_unit::finish;
  return a;
}

}  // namespace reclab::architectures
