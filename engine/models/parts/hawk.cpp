// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/hawk.h"

#include <cmath>

#include "array/error.h"
#include "models/parts/layers/read_out.h"
#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::hawk {
namespace {

/// 1 - e^y for y <= 0, to the last digit near 0.
Var one_less_exp(Var y) {
  const Var t = tanh(y * 0.5);
  return t * -2.0 / (1.0 - t);
}
/// sqrt with a slope of at most 1000, as the reference bounds it.
Var bounded_sqrt(Var x) {
  const Var held = detach(x);
  const Var slope = reciprocal(sqrt(maximum(held * 4.0, affine(held, 0.0, 1e-6))));
  return sqrt(held) + (x - held) * slope;
}

}  // namespace

std::vector<HyperSpec> hyper(bool attention) {
  std::vector<HyperSpec> rows;
  rows.push_back(hyper_integer("lru_width", "W", 0, 0, 4096, "Width of the recurrence; 0: the stream's.", "channels"));
  rows.push_back(hyper_integer("conv", "K", 4, 1, 64, "Taps of the causal convolution before the recurrence.", "steps"));
  if (attention)
    rows.push_back(hyper_integer("window", "", 32, 0, 65536, "Steps before the current one that the local attention sees.", "steps"));
  rows.push_back(hyper_integer("mlp", "M", 0, 0, 65536, "Expanded width of the gated MLP; 0: three times the width.", "units"));
  rows.push_back(hyper_real("c", "c", 8.0, 0.01, 100.0, "The decay is the base to the power c r: larger lets the gate forget faster."));
  rows.push_back(initialisation_only(hyper_real("min_rad", "", 0.9, 0.0, 0.999999, "Smallest base of the decay at the start.")));
  rows.push_back(initialisation_only(hyper_real("max_rad", "", 0.999, 1e-6, 0.999999, "Largest base of the decay at the start.")));
  rows.push_back(initialisation_only(hyper_real(
      "conv_variance", "", 0.01, 1e-6, 100.0,
      "Variance of the convolution's output at the start, for inputs of variance 1: larger lets the input move the gates further.", true)));
  rows.push_back(hyper_flag(
      "reset", true, "Whether the first step of a sequence writes with full strength, as the reference does; the paper has no such step."));
  if (!attention)
    rows.push_back(
        hyper_integer("reset_column", "", 0, 0, 4096,
                      "Input column, the first being 1, that is above 0 where a document begins, and is not read otherwise; 0: none."));
  return rows;
}

std::vector<HyperSpec> hyper_after() {
  return {hyper_flag("final_norm", true, "Whether a norm follows the last block."), parts::read_out_row(), parts::soft_cap_row(),
          parts::scale_embedding_row()};
}

std::vector<ReferenceName> reference() {
  return {{"blocks.{n}.*", "*"},
          {"final_norm.*", "final/final_norm.*"},
          {"embedder.input_embedding", "encoder/weight", true},
          {"embedder.input_embedding", ""}};
}

Block block_of(const Hyper& h) {
  const std::int64_t width = h.integer("width");
  return {width,
          h.integer("lru_width") ? h.integer("lru_width") : width,
          h.integer("heads"),
          h.integer("conv"),
          h.integer("mlp") ? h.integer("mlp") : 3 * width,
          h.real("c"),
          h.real("min_rad"),
          h.real("max_rad"),
          2.0 / static_cast<double>(h.integer("layers")),
          h.flag("reset"),
          h.has("reset_column") ? h.integer("reset_column") : 0,
          h.real("conv_variance")};
}

void check(const Hyper& h, const std::string& model) {
  const std::int64_t W = h.integer("lru_width") ? h.integer("lru_width") : h.integer("width");
  if (W % h.integer("heads"))
    throw Error(
        model + ": heads = " + h.text("heads") + " does not divide the recurrence's width " + std::to_string(W) + ": choose a divisor.",
        {.model = model, .parameter = "heads", .value = h.text("heads"), .range = "a divisor of lru_width"});
  if (h.real("min_rad") > h.real("max_rad"))
    throw Error(
        model + ": min_rad = " + h.text("min_rad") + " is above max_rad = " + h.text("max_rad") + ": choose min_rad at most max_rad.",
        {.model = model, .parameter = "min_rad", .value = h.text("min_rad"), .range = "at most max_rad"});
}

Var norm(Layer& l, const std::string& name, Var x) { return rms_norm(x, parts::one_plus(l, name + ".scale", x.dim(-1)), 1e-6); }

Var normal_linear(Layer& l, const std::string& name, Var x, std::int64_t out, double variance, bool bias, const std::string& role) {
  const Var W = l.parameter(name + ".weight", {out, x.dim(-1)}, init::normal(std::sqrt(variance / static_cast<double>(x.dim(-1)))),
                            role + "; starts normal with variance " + (variance == 1.0 ? "1" : "s") + "/in.");
  return linear(x, W, bias ? l.parameter(name + ".bias", {out}, init::constant(0.0), "Its bias; starts at 0.") : Var{});
}

Var rg_lru(Layer& l, const Block& b, Var x) {
  const std::int64_t W = x.dim(-1), size = W / b.heads;
  const std::string name = "recurrent_block.rg_lru.";
  const auto gate = [&](const std::string& which, const std::string& role) {
    const Var w = l.parameter(name + which + ".w", {b.heads, size, size}, init::normal(1.0 / std::sqrt(static_cast<double>(size))),
                              "Blocks of the " + role + ", [head, in, out]; start N(0, 1/in).");
    const Var shift = l.parameter(name + which + ".b", {b.heads, size}, init::constant(0.0), "Its bias; starts at 0.");
    return sigmoid(parts::by_block(l, x, w, false) + reshape(shift, {W}));
  };
  const double low = b.min_rad * b.min_rad, high = b.max_rad * b.max_rad;
  const Var a_param =
      l.parameter(name + "a_param", {W}, init::each([=](Rng& rng, std::int64_t) {
                    const double base = std::sqrt(rng.uniform(low, high) + 1e-8);
                    return std::log(std::expm1(-std::log(base)));
                  }),
                  "The decay's base is exp(−softplus(a_param)); starts with the base's square uniform between min_rad² and max_rad².");
  const Var i = l.gate("input", gate("input_gate", "input gate"), 0.0, 1.0, "i: how much of the input is written.");
  const Var r =
      l.gate("recurrence", gate("a_gate", "recurrence gate"), 0.0, 1.0, "r: how far the decay goes from 1 to the base's c-th power.");
  const Var log_a = r * softplus(a_param) * -b.c;
  Var decay = exp(log_a), strength = bounded_sqrt(one_less_exp(log_a * 2.0));
  Var later;  // 0 where a document begins, 1 elsewhere
  if (b.reset) later = sign(l.position());
  if (b.reset_column) {
    const Var inside = 1.0 - l.document_starts(b.reset_column);
    later = later ? later * inside : inside;
  }
  if (later) {
    decay = decay * later;
    strength = strength * later + (1.0 - later);
  }
  l.gate("decay", decay, 0.0, 1.0, "a_t: what is kept of the state.");
  return diagonal(l, {"h", {W}, "The state of the RG-LRU."}, decay, strength * (i * x));
}

namespace {

/// The convolution of `inputs` [taps - 1 + steps, batch, W] with w [taps, W], without the inputs before the current document.
Var within_documents(Layer& l, const Block& b, Var inputs, Var w) {
  const std::int64_t T = l.steps(), last = b.taps - 1;
  const Var starts = l.history("starts", l.document_starts(b.reset_column), last, "Where the last documents began, for the convolution.");
  Var sum, inside;
  for (std::int64_t back = 0; back <= last; ++back) {
    Var term = slice(inputs, 0, last - back, last - back + T) * slice(w, 0, last - back, b.taps - back);
    if (back) {  // no document began in the steps from that one's next to this one
      const Var same = 1.0 - slice(starts, 0, last - back + 1, last - back + 1 + T);
      inside = inside ? inside * same : same;
      term = term * inside;
    }
    sum = sum ? sum + term : term;
  }
  return sum;
}

}  // namespace

Var recurrent(Layer& l, const Block& b, Var u) {
  const std::string name = "recurrent_block.";
  const Var branch =
      l.gate("branch", gelu_tanh(normal_linear(l, name + "linear_y", u, b.lru_width, 1.0, true, "W_y of the multiplicative branch")), 0.0,
             0.0, "gelu(W_y u): what multiplies the recurrence's output; unbounded above.");
  const Var z = normal_linear(l, name + "linear_x", u, b.lru_width, 1.0, true, "W_x of the recurrent branch");
  const Var w =
      l.parameter(name + "conv_1d.w", {b.taps, b.lru_width}, init::normal(std::sqrt(b.conv_variance / static_cast<double>(b.taps))),
                  "Taps of each channel, [tap, channel], the last the current step; start N(0, conv_variance/K).");
  const Var shift = l.parameter(name + "conv_1d.b", {b.lru_width}, init::constant(0.0), "Its bias; starts at 0.");
  const Var inputs = l.history("conv", z, b.taps - 1, "The convolution's last inputs, oldest first.");
  const Var convolved = (b.reset_column ? within_documents(l, b, inputs, w) : depthwise(inputs, transpose(w))) + shift;
  return normal_linear(l, name + "linear_out", rg_lru(l, b, convolved) * branch, b.width, b.variance, true, "W_out");
}

Var with_mlp(Layer& l, const Block& b, Var x) {
  const Var v = norm(l, "channel_pre_norm", x);
  const Var w = l.parameter("mlp_block.ffw_up.w", {2, b.width, b.expanded}, init::normal(1.0 / std::sqrt(static_cast<double>(b.width))),
                            "W of the gelu'd gate, then of the value, each [in, out]; starts N(0, 1/in).");
  const Var shift = l.parameter("mlp_block.ffw_up.b", {2, 1, 1, b.expanded}, init::constant(0.0), "Their biases; start at 0.");
  const auto part = [&](std::int64_t c) {
    return matmul(v, reshape(slice(w, 0, c, c + 1), {b.width, b.expanded})) + reshape(slice(shift, 0, c, c + 1), {b.expanded});
  };
  const Var open = l.gate("mlp", gelu_tanh(part(0)), 0.0, 0.0, "The MLP's gelu'd gate; unbounded above.");
  return x + normal_linear(l, "mlp_block.ffw_down", open * part(1), b.width, b.variance, true, "W_down of the MLP");
}

Var residual(Layer& l, const Block& b, Var x, const std::function<Var(Var)>& mixing) {
  return with_mlp(l, b, x + mixing(norm(l, "temporal_pre_norm", x)));
}

Var final_norm(Layer& l, Var x) { return norm(l, "final_norm", x); }

}  // namespace reclab::hawk
