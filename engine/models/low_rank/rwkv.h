// SPDX-License-Identifier: GPL-3.0-or-later
// The parts that RWKV's fifth and sixth versions share: tokens that are mixed with the one before, ways of starting, the norm by head and
// the feed-forward part.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "array/error.h"
#include "models/parts/parts.h"

namespace reclab::parts::rwkv {

/// The place of a layer in its stack: up goes from 0 to 1, down from 1 to almost 0.
struct Depth {
  double up, down;
  explicit Depth(const Layer& l);
};

inline Depth::Depth(const Layer& l) {
  const double depth = static_cast<double>(l.hyper.integer("layers")), layer = static_cast<double>(l.index());
  up = depth > 1.0 ? layer / (depth - 1.0) : 0.0;
  down = 1.0 - layer / depth;
}

/// The hyper-parameters that both versions have.
inline std::vector<HyperSpec> hyper() {
  return {
      hyper_integer("width", "C", 64, 1, 4096, "Channels.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
      hyper_integer("attention_width", "A", 0, 0, 65536, "Keys and values of all heads; 0: the width.", "channels"),
      hyper_integer("head_size", "N", 16, 1, 1024,
                    "Size of a head, of its keys and of its values; must divide the attention's width (the reference has 64).", "channels"),
      hyper_integer("feed_forward", "F", 0, 0, 65536,
                    "Hidden width of the feed-forward part; 0: 3.5 times the width, down to a multiple of 32 (4 times where that is 0).",
                    "units"),
      hyper_choice("feed_forward_kind", "channel_mix", {"channel_mix", "mish_glu"}, "ChannelMix, or the reference's MishGLU."),
      hyper_real("divisor", "", 8.0, 1e-3, 1e3, "What the reads are divided by before their norm (head_size_divisor)."),
      hyper_flag("final_norm", true, "Whether the norm ln_out follows the last block."),
      initialisation_only(
          hyper_flag("zero_init", false, "Whether W_o, and W_v and W_r of the feed-forward part, start at 0 as in the reference.")),
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norms, residuals and feed-forward, or TimeMix alone.")};
}
inline std::int64_t attention_width(const Hyper& h) {
  return h.integer("attention_width") ? h.integer("attention_width") : h.integer("width");
}
inline std::int64_t feed_forward_width(const Hyper& h) {
  if (h.integer("feed_forward")) return h.integer("feed_forward");
  const std::int64_t width = h.integer("width"), whole = static_cast<std::int64_t>(3.5 * static_cast<double>(width)) / 32 * 32;
  return whole ? whole : 4 * width;
}
/// Throws Error unless the heads divide the attention's width.
inline void check(const std::string& model, const Hyper& h) {
  if (attention_width(h) % h.integer("head_size") == 0) return;
  throw Error(model + ": head_size = " + h.text("head_size") + " does not divide the attention's width " +
                  std::to_string(attention_width(h)) + ": choose a divisor.",
              {.model = model, .parameter = "head_size", .value = h.text("head_size"), .range = "a divisor of the attention's width"});
}

/// name.weight of a projection: orthogonal with this gain, or, where the gain is 0, at 0 as in the reference or uniform in ±1/√in.
inline Var matrix(Layer& l, const std::string& name, Var x, std::int64_t out, const std::string& role, double gain) {
  const bool zero = l.hyper.flag("zero_init");
  const Init start = gain > 0.0 ? init::orthogonal(gain) : zero ? init::constant(0.0) : torch_uniform(x.dim(-1));
  return linear(l, name, x, out,
                {start,
                 {},
                 role,
                 gain > 0.0 ? "starts orthogonal" + std::string(gain == 1.0 ? "" : ", times 0.1")
                 : zero     ? "starts at 0"
                            : "starts uniform in ±1/√in"});
}

/// The sequence one step later, the first one that of the step before the segment.
inline Var shifted(Layer& l, const std::string& buffer, Var x) {
  return slice(l.history(buffer, x, 1, "The input of the step before."), 0, 0, l.steps());
}

/// A parameter [1, 1, C]: the share of the current token in the input of a projection (version 5), or of the one before (6).
inline Var share(Layer& l, const std::string& name, bool of_before, const std::function<double(double)>& start_of_current,
                 std::int64_t channels) {
  const double n = static_cast<double>(channels);
  return l.parameter(name, {1, 1, channels}, init::each([=](Rng&, std::int64_t i) {
                       const double current = start_of_current(static_cast<double>(i) / n);
                       return of_before ? 1.0 - current : current;
                     }),
                     std::string("Share of the ") + (of_before ? "step before" : "current step") + " in what is read, the rest being the " +
                         (of_before ? "current step" : "step before") + "; starts by a power of the channel's number.");
}

/// The logarithm of −w as it starts, of entry n of all heads; and u.
inline double decay_start(const Depth& depth, std::int64_t n, std::int64_t all) {
  return all == 1 ? -6.0 : -6.0 + 5.0 * std::pow(static_cast<double>(n) / static_cast<double>(all - 1), 0.7 + 1.3 * depth.up);
}
inline double bonus_start(const Depth& depth, std::int64_t n, std::int64_t all) {
  return (all == 1 ? depth.up : depth.up * (1.0 - static_cast<double>(n) / static_cast<double>(all - 1))) +
         0.1 * static_cast<double>((n + 1) % 3 - 1);
}

/// The norm by head of the reads [steps, batch, heads, size], divided by `divisor` before, flat, with name.weight and name.bias.
inline Var norm_by_head(Layer& l, const std::string& name, Var read, double divisor, double eps) {
  const std::int64_t all = read.dim(2) * read.dim(3);
  const double start = std::pow(static_cast<double>(l.index() + 1) / static_cast<double>(l.hyper.integer("layers")), 0.7);
  const Var scale =
      l.parameter(name + ".weight", {all}, init::constant(start), "Scale of the norm by head; starts at ((layer + 1)/L)^0.7.");
  const Var shift = l.parameter(name + ".bias", {all}, init::constant(0.0), "Shift of the norm by head; starts at 0.");
  return flat(l, normalised(divisor == 1.0 ? read : read / divisor, eps)) * scale + shift;
}
/// W_o of the gated reads.
inline Var output(Layer& l, Var read, Var gate_input, double divisor, double eps) {
  const Var open = l.gate("output", silu(matrix(l, "att.gate", gate_input, attention_width(l.hyper), "W_g", 0.1)), 0.0, 0.0,
                          "silu(W_g x): what multiplies the reads; unbounded above.");
  return matrix(l, "att.output", norm_by_head(l, "att.ln_x", read, divisor, eps) * open, l.hyper.integer("width"), "W_o", 0.0);
}

/// ChannelMix, or MishGLU; `of_before`: how the shares are told.
inline Var feed_forward(Layer& l, Var x, bool of_before) {
  const std::int64_t C = l.hyper.integer("width"), F = feed_forward_width(l.hyper);
  const double down = Depth(l).down;
  const Var before = shifted(l, "ffn_x", x), step = before - x;
  const bool glu = l.hyper.choice("feed_forward_kind") == "mish_glu";
  // MishGLU tells its shares as version 5 does.
  const bool told_of_before = of_before && !glu;
  const double power = told_of_before ? down * down * down : down;
  const auto mixed = [&](const std::string& which) {
    const Var mu = share(
        l, std::string("ffn.") + (told_of_before ? "time_maa_" : "time_mix_") + which, told_of_before,
        [=](double part) { return std::pow(part, power); }, C);
    return told_of_before ? x + step * mu : x * mu + before * (1.0 - mu);
  };
  const Var xk = mixed("k"), xr = mixed("r");
  if (glu) {
    const Var a = matrix(l, "ffn.aa", xk, F, "W_a of MishGLU", 1.0), b = matrix(l, "ffn.bb", xr, F, "W_b of MishGLU", 1.0);
    return matrix(l, "ffn.value", a * (b * tanh(softplus(b))), C, "W_v of MishGLU", 0.0);
  }
  const Var k = square(relu(matrix(l, "ffn.key", xk, F, "W_k of ChannelMix", 1.0)));
  const Var open = l.gate("ffn_receptance", sigmoid(matrix(l, "ffn.receptance", xr, C, "W_r of ChannelMix", 0.0)), 0.0, 1.0,
                          "σ(r) of ChannelMix: how much of it passes.");
  return open * matrix(l, "ffn.value", k, C, "W_v of ChannelMix", 0.0);
}

/// The block around a time mix, and the norm after the last one.
inline Var block(Layer& l, Var x, bool of_before, const std::function<Var(Var)>& time_mix) {
  if (l.hyper.choice("block") == "none") return time_mix(x);
  if (l.index() == 0) x = layer_norm(l, "ln0", x);
  x = x + time_mix(layer_norm(l, "ln1", x));
  return x + feed_forward(l, layer_norm(l, "ln2", x), of_before);
}
inline Var finish(Layer& l, Var x) {
  return l.hyper.choice("block") == "residual" && l.hyper.flag("final_norm") ? layer_norm(l, "ln_out", x) : x;
}

}  // namespace reclab::parts::rwkv
