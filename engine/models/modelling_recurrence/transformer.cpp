// SPDX-License-Identifier: GPL-3.0-or-later
//   att_t = W_o Σ_{s ≤ t} softmax_s(q_t·k_s/√D) v_s by head;   x ← norm₁(x + att), x ← norm₂(x + W₂ f(W₁ x)), or with the norms first
// A. Vaswani et al., Attention is all you need, NeurIPS 2017. Names and conventions of torch.nn.TransformerEncoderLayer with a causal mask.
#include <cmath>

#include "models/parts/layers/encoder_layer.h"
#include "models/parts/parts.h"
#include "recurrence/attention/attention.h"

namespace reclab::architectures {

Architecture transformer() {
  Architecture a;
  a.title = "Transformer";
  a.equations = {"[q k v] = W_in x_t + b, by head", "att_t = W_o concat_h Σ_{s≤t} softmax_s(q_t·k_s/√D) v_s + b",
                 "after the residual: x ← norm₁(x + att),  x ← norm₂(x + W₂ f(W₁ x))",
                 "before it (prenorm): x ← x + att(norm₁ x),  x ← x + W₂ f(W₁ norm₂ x)",
                 "positions: sinusoidal, PE_t[2i] = sin(t/10000^{2i/d}), PE_t[2i+1] = cos, added before the first layer; or rotary"};
  a.notes = {
      "Names and shapes are those of torch.nn.TransformerEncoderLayer: self_attn.in_proj_weight with rows q, k, v, self_attn.out_proj, "
      "linear1, linear2, norm1, norm2; final/norm is that of the stack.",
      "The state is the cache: step t appends k_t and v_t (the key after its rotation) and then reads. dL/dk_t and dL/dv_t count every "
      "read from step t on; there is no transition, hence no spectrum and no ds_T/ds_t.",
      "Rotary positions turn neighbouring pairs (2i, 2i+1), as in the paper; GPT-NeoX and LLaMA pair i with i + D/2.",
      "The norms' epsilon is norm_eps, 1e-5 in PyTorch."};
  a.hyper = parts::encoder_hyper({parts::position_hyper(), parts::rotary_base_hyper(),
                                  hyper_integer("window", "", 0, 0, 1000000, "Steps that a step sees, itself included; 0: all.", "steps")});
  a.spectrum = "none: attention reads all stored steps at once, and no matrix takes one state to the next";
  a.source = {"A. Vaswani, N. Shazeer, N. Parmar, J. Uszkoreit, L. Jones, A. N. Gomez, Ł. Kaiser, I. Polosukhin",
              "Attention is all you need", "NeurIPS", "https://arxiv.org/abs/1706.03762", 2017};
  a.reference = {{"layers.{n}.*", "*"}, {"norm.*", "final/norm.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) { parts::check_encoder(h, "transformer"); };
  a.layer = [](Layer& l, Var x) {
    return parts::encoder_layer(l, parts::with_positions(l, x), [&](Var in) {
      const auto [q, k, v] = parts::projected(l, in);
      const std::int64_t heads = q.dim(2), D = q.dim(3);
      return parts::flat(l, attention(l, {"k", {heads, D}, "The key that each step appends to the cache."},
                                      {"v", {heads, D}, "The value that each step appends to the cache."},
                                      q / std::sqrt(static_cast<double>(D)), k, v, l.hyper.integer("window")));
    });
  };
  a.final_layer = parts::encoder_finish;
  return a;
}

}  // namespace reclab::architectures
