// SPDX-License-Identifier: GPL-3.0-or-later
//   S_t = S_{t-1} + [φ(k_t) sin a_t; φ(k_t) cos a_t] v_t^T,   z_t = z_{t-1} + [φ(k_t) sin a_t; φ(k_t) cos a_t],   a_t = π t / 2M
//   o_t = S_t^T [φ(q_t) sin a_t; φ(q_t) cos a_t] / (z_t·[..]):   a weight φ(q_t)·φ(k_s) cos(π (t - s) / 2M) for each past step
// Z. Qin et al., cosFormer: rethinking softmax in attention, ICLR 2022. Names and conventions of the authors' cosformer.py.
#include <cmath>
#include <numbers>

#include "models/parts/fairseq.h"
#include "models/parts/features.h"
#include "models/parts/parts.h"

namespace reclab::architectures {

Architecture cosformer() {
  Architecture a;
  a.title = "cosFormer";
  a.equations = {
      "a_t = (π/2)(t + 1)/M for step t = 0, 1, …;  turned(x)_t = [φ(x_t) sin a_t; φ(x_t) cos a_t] for queries and keys of each head, φ = "
      "relu or elu + 1",
      "S_t = S_{t-1} + turned(k)_t v_tᵀ,  z_t = z_{t-1} + turned(k)_t", "o_t = S_tᵀ turned(q)_t/max(z_t·turned(q)_t, ε)",
      "so the weight of step s is φ(q_t)·φ(k_s) cos((π/2)(t − s)/M)",
      "block: u ← u + W_o o(norm(u)),  u ← u + fc2(f(fc1(norm(u)))), or with the norms after the residuals"};
  a.notes = {
      "Names and shapes are those of the authors' CosformerAttention, here within fairseq's decoder layer: self_attn.{q,k,v,out}_proj, "
      "self_attn_layer_norm, fc1, fc2, final_layer_norm, and final/layer_norm of the decoder. Heads are the slow part of rows, in S and z "
      "all sines come before all cosines.",
      "M is the length of the sequence at hand in the code, so that each further token would change all weights; here it is fixed "
      "(horizon). Put the length of a sequence there to have the code's numbers for it. Positions count from 1.",
      "A step further back than M has a negative weight, and the sum of weights is then kept at ε or above, as in the code.",
      "There is no 1/√d. The memory is updated before it is read. act_fun=elu of the code, 1 + F.elu, is an error there; elu+1 is what it "
      "means.",
      "The memory stands in a frame that does not turn, so its transition is the identity; seen in the frame of the current step it turns "
      "by π/2M a step."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
             hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the width."),
             hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
             hyper_integer("horizon", "M", 512, 1, 1000000, "Steps after which the weight of a past step has fallen to 0.", "steps"),
             hyper_choice("feature_map", "relu", {"relu", "elu+1"}, "φ."),
             hyper_real("least", "ε", 1e-6, 0.0, 1.0, "The least that the read is divided by.", true),
             hyper_flag("out_projection", true, "Whether W_o follows (has_outproj).")};
  parts::add_fairseq_rows(a.hyper);
  a.spectrum = "the transition of the memory: the identity (in the frame that turns with the position, exp(iπ/2M))";
  a.source = {"Z. Qin, W. Sun, H. Deng, D. Li, Y. Wei, B. Lv, J. Yan, L. Kong, Y. Zhong", "cosFormer: rethinking softmax in attention",
              "ICLR", "https://arxiv.org/abs/2202.08791", 2022};
  a.reference = parts::fairseq_names(true);
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) { parts::heads_divide_width(h, "cosformer"); };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), heads = h.integer("heads");
    return parts::fairseq_layer(l, u, [&](Var x) {
      const auto project = [&](const std::string& which, const std::string& role) {
        return parts::by_head(l, parts::linear(l, "self_attn." + which + "_proj", x, d, role + ", rows by head"), heads);
      };
      const Var angle = reshape((l.position() + 1.0) * (std::numbers::pi / (2.0 * static_cast<double>(h.integer("horizon")))),
                                {l.steps(), l.batch(), 1, 1});
      const auto turned = [&](Var y) {
        const Var features = parts::entrywise(h.choice("feature_map"), y);
        const Var both[] = {features * sin(angle), features * cos(angle)};
        return concat(both, -1);
      };
      const Var q = turned(project("q", "W_q")), k = turned(project("k", "W_k"));
      const auto [read, weight] =
          parts::linear_read(l, q, k, project("v", "W_v"), "The sum of turned keys times values of each head, [sines then cosines, value].",
                             "The sum of turned keys of each head: the normaliser.");
      const Var o = parts::flat(l, read / parts::at_least(weight, h.real("least")));
      return h.flag("out_projection") ? parts::linear(l, "self_attn.out_proj", o, d, "W_o, columns by head") : o;
    });
  };
  a.final_layer = parts::fairseq_finish;
  return a;
}

}  // namespace reclab::architectures
