// SPDX-License-Identifier: GPL-3.0-or-later
//   wkv_t = (e^{o-n} p + e^{u+k-n} v)/(e^{o-n} q + e^{u+k-n}), n = max(o, u+k);   o' = max(o+w, k), p' = e^{o+w-o'} p + e^{k-o'} v, q'
//   alike TimeMix: W_o (σ(r) wkv);   ChannelMix: σ(r) W_v relu(k)²;   block: x + TimeMix(ln₁ x), x + ChannelMix(ln₂ x)
// B. Peng et al., RWKV: reinventing RNNs for the Transformer era, EMNLP 2023. Names and conventions of RWKV-LM's RWKV-v4.
#include <cmath>

#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture rwkv_4() {
  Architecture a;
  a.title = "RWKV-4";
  a.equations = {"x_k = x_t ⊙ μ_k + x_{t-1} ⊙ (1 − μ_k), k = W_k x_k; v and r alike;  w = −exp(time_decay), u = time_first",
                 "wkv_t = (e^{o−n} p + e^{u+k−n} v)/(e^{o−n} q + e^{u+k−n}),  n = max(o, u+k), with the state before the step",
                 "o_t = max(o + w, k),  p_t = e^{o+w−o_t} p + e^{k−o_t} v,  q_t = e^{o+w−o_t} q + e^{k−o_t}",
                 "TimeMix = W_o (σ(r) ⊙ wkv_t);  ChannelMix = σ(W_r x_r) ⊙ W_v relu(W_k x_k)²",
                 "block: x ← x + TimeMix(ln₁ x),  x ← x + ChannelMix(ln₂ x)"};
  a.notes = {
      "Names and shapes are those of RWKV-LM's RWKV-v4: att.*, ffn.* and ln0 (first block only), ln1, ln2 of a block, and final/ln_out.",
      "p and q are the sums divided by e^o, o the running maximum, so nothing overflows; spectrum and ds_T/ds_t are those of the sums "
      "themselves, whose units do not change.",
      "o starts at −10³⁸, before anything has been seen. All norms are layer norms with epsilon 1e-5.",
      "The current token enters with the bonus u and is read before it is written to the state.",
      "ChannelMix alone remembers nothing but the step before: it has no spectrum and no ds_T/ds_t.",
      "The reference starts att.key, att.receptance, att.output, ffn.value and ffn.receptance at 0, where output and gradients vanish: "
      "zero_init=yes does so, otherwise they start uniform in ±1/√in."};
  a.hyper = {hyper_integer("width", "C", 64, 1, 4096, "Channels.", "channels"),
             hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
             hyper_integer("feed_forward", "F", 0, 0, 65536, "Hidden width of ChannelMix; 0: four times the width.", "units"),
             hyper_flag("ffn_pre", false, "Whether the first block has a ChannelMix ffnPre in place of TimeMix."),
             hyper_flag("final_norm", true, "Whether the norm ln_out follows the last block."),
             initialisation_only(hyper_flag("zero_init", false, "Whether five matrices start at 0 as in the reference.")),
             hyper_choice("block", "residual", {"residual", "none", "channel_mix"},
                          "The block with norms, residuals and ChannelMix, TimeMix alone, or ChannelMix alone.")};
  a.spectrum = "exp(w) = exp(−exp(time_decay)), of the numerator, then of the denominator; the same at every step";
  a.source = {"B. Peng et al.", "RWKV: reinventing RNNs for the Transformer era", "EMNLP", "https://arxiv.org/abs/2305.13048", 2023};
  a.reference = {{"blocks.{n}.*", "*"}, {"ln_out.*", "final/ln_out.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };

  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const std::int64_t C = h.integer("width"), F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * C, L = h.integer("layers");
    const double channels = static_cast<double>(C), layer = static_cast<double>(l.index());
    const double up = L > 1 ? layer / static_cast<double>(L - 1) : 0.0,
                 down = 1.0 - layer / static_cast<double>(L);  // 0..1 and 1..0 through the stack
    const bool zero = h.flag("zero_init");
    const auto matrix = [&](const std::string& name, Var z, std::int64_t out, const std::string& role, double orthogonal, bool zeroed) {
      const Init start = orthogonal > 0.0 ? init::orthogonal(orthogonal)
                         : zeroed && zero ? init::constant(0.0)
                                          : parts::torch_uniform(z.dim(-1));
      return parts::linear(l, name, z, out,
                           {start,
                            {},
                            role,
                            orthogonal > 0.0 ? "starts orthogonal"
                            : zeroed && zero ? "starts at 0"
                                             : "starts uniform in ±1/√in"});
    };
    const auto mix = [&](const std::string& name, Var now, Var before, double power, double shift) {
      const Var mu = l.parameter(
          name, {1, 1, C}, init::each([=](Rng&, std::int64_t i) { return std::pow(static_cast<double>(i) / channels, power) + shift; }),
          "Share of the current step in what the projection reads, the rest being the step before; starts as a power of the channel's "
          "number.");
      return now * mu + before * (1.0 - mu);
    };
    const auto shifted = [&](const std::string& buffer, Var z) {
      return slice(l.history(buffer, z, 1, "The input of the step before."), 0, 0, l.steps());
    };
    const auto channel_mix = [&](const std::string& prefix, const std::string& buffer, const std::string& gate, Var z) {
      const Var before = shifted(buffer, z), xk = mix(prefix + ".time_mix_k", z, before, down, 0.0),
                xr = mix(prefix + ".time_mix_r", z, before, down, 0.0);
      const Var k = square(relu(matrix(prefix + ".key", xk, F, "W_k of ChannelMix", 2.0, false)));
      const Var open = l.gate(gate, sigmoid(matrix(prefix + ".receptance", xr, C, "W_r of ChannelMix", 0.0, true)), 0.0, 1.0,
                              "σ(r) of ChannelMix: how much of it passes.");
      return open * matrix(prefix + ".value", k, C, "W_v of ChannelMix", 0.0, true);
    };
    const auto time_mix = [&](Var z) {
      const Var before = shifted("att_x", z);
      const Var xk = mix("att.time_mix_k", z, before, down, 0.0), xv = mix("att.time_mix_v", z, before, down, 0.3 * up),
                xr = mix("att.time_mix_r", z, before, 0.5 * down, 0.0);
      const Var k = matrix("att.key", xk, C, "W_k", 0.0, true), v = matrix("att.value", xv, C, "W_v", 1.0, false);
      const Var r = l.gate("receptance", sigmoid(matrix("att.receptance", xr, C, "W_r", 0.0, true)), 0.0, 1.0,
                           "σ(r): how much of what was read passes.");
      const double power = 0.7 + 1.3 * up;
      const Var decay = l.parameter("att.time_decay", {C}, init::each([=](Rng&, std::int64_t i) {
                                      return C == 1 ? -5.0 : -5.0 + 8.0 * std::pow(static_cast<double>(i) / (channels - 1.0), power);
                                    }),
                                    "log of −w; starts from −5 to 3 over the channels.");
      const Var bonus =
          l.parameter("att.time_first", {C},
                      init::each([](Rng&, std::int64_t i) { return std::log(0.3) + 0.5 * static_cast<double>((i + 1) % 3 - 1); }),
                      "u, the bonus of the current token; starts at log 0.3 + {−½, 0, ½} in turn.");
      const Var w = -exp_in_range(decay);
      const Var o =
          step(l, {{"o", {C}, "The running maximum of the exponents, which p and q are divided by.", true, -1e38}}, {k},
               [=](Cell&, std::span<const Var> u, std::span<const Var> s) { return std::vector<Var>{detach(maximum(s[0] + w, u[0]))}; })[0];
      // Outputs do not depend on which exponent is taken out. Held, it leaves the gradients as they are, without the large terms that
      // cancel.
      const Var old = l.previous_state(o), standing = old + w, top = detach(maximum(standing, k));
      const Var keep = exp(standing - top), write = exp(k - top), factor = exp(w);
      const Var p = l.previous_state(diagonal(l, {"p", {C}, "The weighted sum of values, divided by e^o."}, keep, write * v, factor));
      const Var q = l.previous_state(diagonal(l, {"q", {C}, "The sum of the weights, divided by e^o."}, keep, write, factor));
      const Var own = k + bonus, n = detach(maximum(old, own)), past = exp(old - n), present = exp(own - n);
      return matrix("att.output", r * ((past * p + present * v) / (past * q + present)), C, "W_o", 0.0, true);
    };
    if (h.choice("block") == "none") return time_mix(x);
    if (h.choice("block") == "channel_mix") return channel_mix("ffn", "ffn_x", "ffn_receptance", x);
    if (l.index() == 0) x = parts::layer_norm(l, "ln0", x);
    const Var first = parts::layer_norm(l, "ln1", x);
    x = x + (l.index() == 0 && h.flag("ffn_pre") ? channel_mix("ffnPre", "ffnPre_x", "ffnPre_receptance", first) : time_mix(first));
    return x + channel_mix("ffn", "ffn_x", "ffn_receptance", parts::layer_norm(l, "ln2", x));
  };
  a.final_layer = [](Layer& l, Var x) {
    return l.hyper.choice("block") == "residual" && l.hyper.flag("final_norm") ? parts::layer_norm(l, "ln_out", x) : x;
  };
  return a;
}

}  // namespace reclab::architectures
