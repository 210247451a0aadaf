// SPDX-License-Identifier: GPL-3.0-or-later
//   S_t = a_t S_{t-1} + k_t v_t^T,   y_t = Re(S_t)^T q_t,   a_t = σ(|z_t|) e^{i arg z_t}, z_t complex from the input (the paper: σ(α)
//   e^{iβ}) GateLoop: W_o (y silu(W_g x));   block: x + GateLoop(rms x), x + W₂ gelu(W₁ rms x)
// T. Katsch, GateLoop: fully data-controlled linear recurrence for sequence modeling, 2023. Names and conventions of lucidrains'
// gateloop-transformer.
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/outer/outer.h"

namespace reclab::architectures {
namespace {

std::int64_t inner_of(const Hyper& h) { return h.integer("inner") ? h.integer("inner") : h.integer("width"); }
std::int64_t heads_of(const Hyper& h) { return h.integer("heads") ? h.integer("heads") : inner_of(h); }

}  // namespace

Architecture gateloop() {
  Architecture a;
  a.title = "GateLoop";
  a.equations = {"q, k, v = W_qkv x;  z_t = W_a x_t + b_a, two numbers a transition: α + iβ",
                 "a_t = σ(|z_t|) e^{i arg z_t}  (transition=polar: σ(α_t) e^{iβ_t};  real: σ(|α_t|) sign α_t;  none: 1)",
                 "S_t = a_t S_{t-1} + k_t v_tᵀ,  y_t = Re(S_t)ᵀ q_t, by head",
                 "GateLoop = W_o (y_t ⊙ silu(W_g x_t)), with sub_norm after the layer norm of y_t",
                 "block: x ← x + GateLoop(rms(x)),  x ← x + W₂ gelu(W₁ rms(x) + b₁) + b₂"};
  a.notes = {
      "Names and shapes are those of gateloop-transformer: layers.{n}.0 is the GateLoop, layers.{n}.1 the feed-forward part, each with fn "
      "and norm; to_logits.0 is the final norm.",
      "The memory is read after its update; queries have no scale. transition=polar is the paper's; its pseudocode has a transition for "
      "each key dimension (transition_of=key), the package one a head.",
      "The survey of Tiezzi et al. 2024 writes a modulus and an angle that are projected apart, for each key dimension: nearest to it is "
      "transition=polar with transition_of=key, where both come of one complex number.",
      "The package passes 0.9 of its gradient to z (frac_gradient_state_transition); gradient_share does so, and is 1 here, where "
      "gradients are those of the outputs.",
      "Its rms norm is x √d/|x|. With heads = 0 there are as many heads as channels, each with one key and one value, as in the package.",
      "The rows of W_qkv are q, k, v, each by head; those of W_a are α, β of each transition in turn."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
      hyper_integer("inner", "", 0, 0, 16384, "Keys and values of all heads; 0: the width.", "channels"),
      hyper_integer("heads", "h", 0, 0, 16384, "Heads; must divide the inner width; 0: one a channel."),
      hyper_choice("transition", "complex", {"complex", "polar", "real", "none"},
                   "What a_t is: of z in Cartesian or in polar coordinates, of its real part alone, or 1."),
      hyper_choice("transition_of", "head", {"head", "key"}, "Whether a head has one transition, or one for each key dimension."),
      hyper_real("gradient_share", "", 1.0, 0.0, 1.0, "Share of its gradient that passes to z."),
      hyper_flag("swish_gate", true, "Whether silu(W_g x) multiplies what is read."),
      hyper_flag("sub_norm", false, "Whether a layer norm follows the read."),
      hyper_integer("feed_forward", "F", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
      hyper_flag("post_norm", false, "Whether layer norms follow the residuals, in place of rms norms before the parts and at the end."),
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norms, residuals and feed-forward, or the GateLoop alone.")};
  a.spectrum = "a_t of each entry of S";
  a.source = {"T. Katsch", "GateLoop: fully data-controlled linear recurrence for sequence modeling", "",
              "https://arxiv.org/abs/2311.01927", 2023};
  a.reference = {{"layers.{n}.*", "*"}, {"to_logits.0.*", "final/norm.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (inner_of(h) % heads_of(h) == 0) return;
    throw Error(
        "gateloop: heads = " + h.text("heads") + " does not divide the inner width " + std::to_string(inner_of(h)) + ": choose a divisor.",
        {.model = "gateloop", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of the inner width"});
  };

  const auto rms = [](Layer& l, const std::string& name, Var x) {
    return parts::unit_rms(x, 1e-24) *
           l.parameter(name + ".gamma", {x.dim(-1)}, init::constant(1.0), "Scale of the rms norm; starts at 1.");
  };
  a.layer = [rms](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), inner = inner_of(h), H = heads_of(h), n = inner / H, T = l.steps(), B = l.batch(),
                       F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d;
    const bool block = h.choice("block") == "residual", post = h.flag("post_norm");
    const std::string& transition = h.choice("transition");
    const auto gateloop = [&](Var x) {
      const auto qkv = split(parts::linear(l, "0.fn.to_qkv", x, 3 * inner, "W_qkv: rows of q, k and v, each by head", false), -1, 3);
      OuterInputs in{.q = parts::by_head(l, qkv[0], H), .k = parts::by_head(l, qkv[1], H), .v = parts::by_head(l, qkv[2], H)};
      if (transition != "none") {
        const std::int64_t each = h.choice("transition_of") == "key" ? n : 1;
        Var z = parts::linear(l, "0.fn.to_a.0", x, 2 * H * each, "W_a: rows α, β of each transition");
        const double share = h.real("gradient_share");
        if (share != 1.0) z = z * share + detach(z) * (1.0 - share);
        const Var pairs = reshape(z, {T, B, H, each, 2});
        const auto part = [&](std::int64_t i) { return reshape(slice(pairs, -1, i, i + 1), {T, B, H, each}); };
        const Var alpha = part(0), beta = part(1);
        Var size;
        if (transition == "polar") {
          size = alpha;
          in.phase = beta;
        } else if (transition == "real") {
          size = abs(alpha);
          in.phase = complex(sign(alpha), affine(alpha, 0.0, 0.0));
        } else {
          size = sqrt(maximum(square(alpha) + square(beta), affine(alpha, 0.0, 1e-36)));
          in.phase = complex(alpha / size, beta / size);
        }
        in.key_decay = log_sigmoid(size);
        l.gate("forget", sigmoid(size), 0.0, 1.0, "|a_t|: how much of the memory is kept.");
      }
      Var y = parts::flat(l, outer(l, {"S", {H, n, n}, "The memory of each head, [key, value]; complex where a_t is."}, in));
      if (h.flag("sub_norm")) y = parts::layer_norm(l, "0.fn.maybe_sub_ln", y);
      if (h.flag("swish_gate"))
        y = l.gate("output", silu(parts::linear(l, "0.fn.to_gates.0", x, inner, "W_g, rows by head", false)), 0.0, 0.0,
                   "silu(W_g x): what multiplies the read; unbounded above.") *
            y;
      return inner != d || h.flag("swish_gate") ? parts::linear(l, "0.fn.to_out", y, d, "W_o, columns by head", false) : y;
    };
    if (!block) return gateloop(u);
    const auto feed = [&](Var x) {
      return parts::linear(l, "1.fn.2", gelu(parts::linear(l, "1.fn.0", x, F, "W₁ of the feed-forward part")), d,
                           "W₂ of the feed-forward part");
    };
    if (post) {
      u = parts::layer_norm(l, "0.norm", gateloop(u) + u);
      return parts::layer_norm(l, "1.norm", feed(u) + u);
    }
    u = gateloop(rms(l, "0.norm", u)) + u;
    return feed(rms(l, "1.norm", u)) + u;
  };
  a.final_layer = [rms](Layer& l, Var x) {
    return l.hyper.choice("block") == "residual" && !l.hyper.flag("post_norm") ? rms(l, "norm", x) : x;
  };
  return a;
}

}  // namespace reclab::architectures
