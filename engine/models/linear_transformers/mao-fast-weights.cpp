// SPDX-License-Identifier: GPL-3.0-or-later
//   S_t = (f_k f_v^T) ∘ S_{t-1} + k_t v_t^T,   o_t = S_t^T q_t,   f_k = σ(W_fk x + b_fk)^(1/τ), f_v alike
//   write=complement: S_t = G ∘ S_{t-1} + (1 - G) ∘ k_t v_t^T, G = f_k f_v^T;   update=delta: S_t = S_{t-1} + k_t (v_t - S_{t-1}^T k_t)^T,
//   o_t = S_{t-1}^T q_t block: x ← x + W_o o(LN₁ x) + b, x ← x + W₂ gelu(W₁ LN₂ x + b₁) + b₂
// H. H. Mao, Fine-tuning pre-trained transformers into decaying fast weights, EMNLP 2022. Conventions of jenni-ai/T2FW, round GPT-2, whose
// names the parameters have.
#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "models/parts/features.h"
#include "models/parts/parts.h"
#include "recurrence/chunks.h"
#include "recurrence/delta/delta.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {
namespace {

/// GPT-2's matrices are stored [in, out].
Var stored_in_out(Layer& l, const std::string& name, Var x, std::int64_t out, const Init& weight, const Init& bias, const std::string& role,
                  const std::string& starts) {
  const Var y = matmul(x, l.parameter(name + ".weight", {x.dim(-1), out}, weight, role + " [in, out]; " + starts + "."));
  return bias ? y + l.parameter(name + ".bias", {out}, bias, "The bias of " + name + ".") : y;
}

/// log f of one side's gate, by head, with f named as a gate.
Var log_forget(Layer& l, Var x, const std::string& name, const std::string& gate, std::int64_t size, const std::string& text) {
  const Hyper& h = l.hyper;
  const std::int64_t heads = h.integer("heads");
  const double least = 1.0 / static_cast<double>(heads * size), tau = h.real("tau");
  const Init spread = init::each([=](Rng& rng, std::int64_t) {
    const double u = rng.uniform(std::min(least, 0.5), std::max(1.0 - least, 0.5));
    return std::log(u / (1.0 - u));
  });
  Var z = parts::by_head(l,
                         stored_in_out(l, name, x, heads * size, init::normal(h.real("gate_std")), h.flag("gate_bias") ? spread : Init{},
                                       "W of " + gate + ", columns by head", "starts N(0, gate_std²)"),
                         heads);
  z = log_sigmoid(z);
  if (tau != 1.0) z = z / tau;
  l.gate(gate, exp(z), 0.0, 1.0, text);
  return z;
}

}  // namespace

Architecture mao_fast_weights() {
  Architecture a;
  a.title = "Decaying fast weights";
  a.equations = {"[q k v] = W x_t + b by head;  q ← φ(q), k ← φ(k)",
                 "f_k = σ(W_fk x_t + b_fk)^{1/τ},  f_v = σ(W_fv x_t + b_fv)^{1/τ};  gates=key: f_v = 1,  gates=value: f_k = 1",
                 "S_t = (f_k f_vᵀ) ⊙ S_{t-1} + k_t v_tᵀ,  o_t = S_tᵀ q_t",
                 "write=complement: S_t = G ⊙ S_{t-1} + (1 − G) ⊙ k_t v_tᵀ,  G = f_k f_vᵀ",
                 "update=delta: S_t = S_{t-1} + k_t (v_t − S_{t-1}ᵀ k_t)ᵀ,  o_t = S_{t-1}ᵀ q_t, without gates",
                 "block: x ← x + W_o o_t + b_o of LN₁ x,  x ← x + W₂ gelu(W₁ LN₂ x + b₁) + b₂;  after the last, LN_f"};
  a.notes = {
      "The authors' code (T2FW) is the rule alone, t2fw_torch and t2dfw_torch, with a memory [value, key] where this one is [key, value]; "
      "there is neither a divisor nor a scale of the scores.",
      "Blocks have GPT-2's names below h.{n}, matrices stored [in, out]: ln_1, attn.c_attn with the columns q, k, v, each by head, "
      "attn.c_proj, ln_2, mlp.c_fc, mlp.c_proj, and final/ln_f. The gates are attn.f (values) and attn.f_key (keys), named as the rule's "
      "arguments.",
      "GPT-2's positional embedding is left out. Its gelu is the tanh approximation.",
      "The memory is read after the update; with update=delta before it, as in the authors' code, so a step does not see its own write.",
      "With update=delta an eigenvalue 1 − |k|² is below −1 where |k|² is above 2, and the memory then grows: the rule has no share β that "
      "would bound it.",
      "τ = 16 and gates without biases are those of the unified view of Qin et al. (2024), whose Table 1 has the rule as DUR and, with the "
      "same equation, as gated fast weights (GFW, Schlag and Schmidhuber 2018).",
      "write=complement gives what is written the share that the gate takes off the memory, as in highway networks; of the recurrent "
      "network of gated fast weights it is the memory's update alone.",
      "Biases of gates start at log(u/(1 − u)), u uniform from 1/n to 1 − 1/n for n gates: with τ = 1 the gates are then spread evenly "
      "between 0 and 1."};
  a.hyper = {
      hyper_integer("width", "d", 32, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the width."),
      hyper_integer("key_dim", "m", 0, 0, 4096, "Size of a head's queries and keys, the rows of its memory; 0: width/heads.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_choice("update", "decay", {"decay", "delta"},
                   "What becomes of the memory: it decays and is added to, or what the key recalls is replaced."),
      hyper_choice("gates", "both", {"both", "key", "value"}, "update=decay: which side of the memory has a gate."),
      hyper_choice("write", "plain", {"plain", "complement"},
                   "update=decay: whether k vᵀ is written as it is, or by the share that is not kept."),
      hyper_real("tau", "τ", 1.0, 1e-3, 1000.0, "update=decay: gates are σ(·)^{1/τ}; larger: nearer to 1.", true),
      hyper_flag("gate_bias", true, "update=decay: whether gates have biases."),
      hyper_choice("feature_map", "none", {"none", "elu", "relu"}, "φ of queries and keys: none, elu + 1, or relu."),
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
      hyper_real("norm_eps", "ε", 1e-5, 1e-12, 1.0, "Epsilon of all norms.", true),
      initialisation_only(hyper_real("init_std", "", 0.02, 1e-6, 10.0,
                                     "Deviation that the matrices of queries, keys, values and of the feed-forward part start with.",
                                     true)),
      initialisation_only(hyper_real("gate_std", "", 0.02, 1e-6, 10.0,
                                     "Deviation that the matrices of the gates start with: larger lets the input move them further.",
                                     true)),
      hyper_choice("block", "residual", {"residual", "none"}, "GPT-2's block, or the fast weights with their projections alone.")};
  a.spectrum =
      "f_k[i] f_v[j], an entry for each key and value dimension of each head; with update=delta 1, and 1 − |k|² once for each value "
      "dimension of a head";
  a.source = {"H. H. Mao", "Fine-tuning pre-trained transformers into decaying fast weights", "EMNLP", "https://arxiv.org/abs/2210.04243",
              2022};
  a.reference = {{"h.{n}.*", "*"}, {"layers.{n}.*", "*"}, {"ln_f.*", "final/ln_f.*"}, {"attn.bias", ""}, {"attn.masked_bias", ""}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.integer("width") % h.integer("heads"))
      throw Error("mao-fast-weights: heads = " + h.text("heads") + " does not divide width = " + h.text("width") + ": choose a divisor.",
                  {.model = "mao-fast-weights", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of width"});
  };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), D = d / heads,
                       m = h.integer("key_dim") ? h.integer("key_dim") : D;
    const double eps = h.real("norm_eps"), deviation = h.real("init_std");
    const bool block = h.choice("block") == "residual";
    const Init small = init::normal(deviation), last = init::normal(deviation / std::sqrt(2.0 * static_cast<double>(h.integer("layers")))),
               zero = init::constant(0.0);
    const std::string starts = "starts N(0, init_std²)", starts_last = "starts N(0, init_std²/(2 layers))";

    const Var x = block ? parts::layer_norm(l, "ln_1", u, eps) : u;
    const Var qkv = stored_in_out(l, "attn.c_attn", x, heads * (2 * m + D), small, zero, "W, columns q, k, v, each by head,", starts);
    const auto part = [&](std::int64_t from, std::int64_t size) {
      return parts::by_head(l, slice(qkv, -1, from, from + heads * size), heads);
    };
    const auto features = [&](Var z) {
      return h.choice("feature_map") == "elu" ? elu(z) + 1.0 : h.choice("feature_map") == "relu" ? relu(z) : z;
    };
    const Var q = features(part(0, m)), k = features(part(heads * m, m)), v = part(2 * heads * m, D);
    const StateSpec memory{"S", {heads, m, D}, "The fast weights of each head, [key, value]."};
    Var read;
    if (h.choice("update") == "delta") {
      DeltaInputs in{q, k, v};
      in.read_before = true;
      read = delta(l, memory, in);
    } else {
      Var by_key, by_value;
      if (h.choice("gates") != "value")
        by_key = log_forget(l, x, "attn.f_key", "forget_key", m, "f_k: how much of each key dimension of the memory is kept.");
      if (h.choice("gates") != "key")
        by_value = log_forget(l, x, "attn.f", "forget_value", D, "f_v: how much of each value dimension of the memory is kept.");
      if (h.choice("write") == "plain") {
        OuterInputs in{q, k, v};
        in.key_decay = by_key;
        in.value_decay = by_value;
        read = outer(l, memory, in);
      } else {
        Var exponent;
        if (by_key) exponent = chunks::with_axis(by_key, -1);
        if (by_value) exponent = exponent ? exponent + chunks::with_axis(by_value, -2) : chunks::with_axis(by_value, -2);
        const Var all = exponent + l.graph().constant({m, D}, std::vector<double>(static_cast<std::size_t>(m * D), 0.0));
        const Var write = chunks::with_axis(k, -1) * chunks::with_axis(v, -2);
        const Var S = diagonal(l, memory, exp(all), -(all * mean_exp(all)) * write);
        read = sum(chunks::with_axis(q, -1) * S, -2);
      }
    }
    const Var o = stored_in_out(l, "attn.c_proj", parts::flat(l, read), d, last, zero, "W_o", starts_last);
    if (!block) return o;
    const Var after = u + o;
    const Var hidden = gelu_tanh(stored_in_out(l, "mlp.c_fc", parts::layer_norm(l, "ln_2", after, eps),
                                               h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d, small, zero, "W₁", starts));
    return after + stored_in_out(l, "mlp.c_proj", hidden, d, last, zero, "W₂", starts_last);
  };
  a.final_layer = [](Layer& l, Var x) {
    return l.hyper.choice("block") == "none" ? x : parts::layer_norm(l, "ln_f", x, l.hyper.real("norm_eps"));
  };
  return a;
}

}  // namespace reclab::architectures
