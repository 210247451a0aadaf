// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/layers/encoder_layer.h"

#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"

namespace reclab::parts {

std::vector<HyperSpec> encoder_hyper(std::vector<HyperSpec> own) {
  std::vector<HyperSpec> rows{
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the width."),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
      hyper_choice("activation", "relu", {"relu", "gelu"}, "f of the feed-forward part."),
      hyper_flag("prenorm", false, "Whether norms come first (norm_first in PyTorch)."),
      hyper_flag("bias", true, "Whether projections and norms have biases.")};
  for (HyperSpec& row : own) rows.push_back(std::move(row));
  rows.push_back(hyper_real("norm_eps", "ε", 1e-5, 1e-12, 1.0, "Epsilon of all norms.", true));
  rows.push_back(hyper_flag("final_norm", true, "Whether a norm follows the last layer."));
  rows.push_back(hyper_choice("block", "residual", {"residual", "none"},
                              "The layer with norms, residuals and feed-forward, or the attention with its projections alone."));
  return rows;
}
HyperSpec position_hyper() {
  return hyper_choice("position", "sinusoidal", {"sinusoidal", "rotary", "none"}, "How a step knows where it is.");
}
HyperSpec rotary_base_hyper() { return hyper_real("rotary_base", "", 10000.0, 1.0, 1e9, "Base of the rotary angles.", true); }

void check_encoder(const Hyper& h, const std::string& model) {
  const std::int64_t d = h.integer("width"), heads = h.integer("heads");
  if (d % heads)
    throw Error(model + ": heads = " + h.text("heads") + " does not divide width = " + h.text("width") + ": choose a divisor.",
                {.model = model, .parameter = "heads", .value = h.text("heads"), .range = "a divisor of width"});
  if (!h.has("position")) return;
  const std::string& position = h.choice("position");
  if ((position == "sinusoidal" && d % 2) || (position == "rotary" && d / heads % 2))
    throw Error(model + ": position = " + position + " needs an even " + (position == "rotary" ? "width/heads" : "width") + ", not " +
                    std::to_string(position == "rotary" ? d / heads : d) + ": choose another width, or position=none.",
                {.model = model, .parameter = "position", .value = position, .range = "none"});
}

namespace {

std::vector<double> frequencies(std::int64_t width, double base) {
  std::vector<double> made;
  for (std::int64_t i = 0; i < width / 2; ++i) made.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(width)));
  return made;
}

}  // namespace

Var with_positions(Layer& l, Var x) { return l.hyper.choice("position") == "sinusoidal" && l.index() == 0 ? with_sinusoids(l, x) : x; }
Var with_sinusoids(Layer& l, Var x) {
  const std::int64_t T = l.steps(), d = x.dim(-1);
  const Var angle = reshape(angles(l, frequencies(d, 10000.0)), {T, 1, d / 2, 1});
  const Var both[] = {sin(angle), cos(angle)};
  return x + reshape(concat(both, -1), {T, 1, d});
}

AttentionInputs projected(Layer& l, const std::string& name, Var x, std::int64_t heads, Var from) {
  const std::int64_t d = x.dim(-1);
  const Var W = l.parameter(name + ".in_proj_weight", {3 * d, d}, xavier_uniform(d, 3 * d),
                            "W_in: rows of q, k, v, each by head; starts Xavier uniform.");
  const Var b = l.hyper.flag("bias") ? l.parameter(name + ".in_proj_bias", {3 * d}, init::constant(0.0), "Its bias; starts at 0.") : Var{};
  const auto mapped = [&](Var v, std::int64_t first, std::int64_t last) {
    const bool all = first == 0 && last == 3;
    const Var y = reclab::linear(v, all ? W : slice(W, 0, first * d, last * d));
    return b ? y + (all ? b : slice(b, 0, first * d, last * d)) : y;
  };
  std::vector<Var> three = from ? split(mapped(from, 1, 3), -1, 2) : split(mapped(x, 0, 3), -1, 3);
  if (from) three.insert(three.begin(), mapped(x, 0, 1));
  return {by_head(l, three[0], heads), by_head(l, three[1], heads), by_head(l, three[2], heads)};
}
AttentionInputs projected(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  AttentionInputs made = projected(l, "self_attn", x, h.integer("heads"));
  if (h.has("position") && h.choice("position") == "rotary") {
    const Var angle = angles(l, frequencies(made.q.dim(-1), h.real("rotary_base")));
    made.q = rotated(made.q, angle, true);
    made.k = rotated(made.k, angle, true);
  }
  return made;
}
Var out_projected(Layer& l, const std::string& name, Var read) {
  const std::int64_t d = read.dim(-1);
  const Linear out{torch_uniform(d), l.hyper.flag("bias") ? init::constant(0.0) : Init{}, "W_o", "starts uniform in ±1/√d, its bias at 0"};
  return linear(l, name + ".out_proj", read, d, out);
}

Var encoder_layer(Layer& l, Var x, const std::function<Var(Var)>& read) {
  const Hyper& h = l.hyper;
  const std::int64_t d = x.dim(-1);
  const bool block = h.choice("block") == "residual", prenorm = h.flag("prenorm"), bias = h.flag("bias");
  const double eps = h.real("norm_eps");
  const Var in = block && prenorm ? layer_norm(l, "norm1", x, eps, bias) : x;
  const Var y = out_projected(l, "self_attn", read(in));
  if (!block) return y;
  const std::int64_t F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d;
  const auto feed = [&](Var z) {
    const Var hidden = linear(l, "linear1", z, F, "W₁", bias);
    return linear(l, "linear2", activation(h.choice("activation"), hidden), d, "W₂", bias);
  };
  if (prenorm) {
    const Var after = x + y;
    return after + feed(layer_norm(l, "norm2", after, eps, bias));
  }
  const Var after = layer_norm(l, "norm1", x + y, eps, bias);
  return layer_norm(l, "norm2", after + feed(after), eps, bias);
}

Var encoder_finish(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  return h.choice("block") == "none" || !h.flag("final_norm") ? x : layer_norm(l, "norm", x, h.real("norm_eps"), h.flag("bias"));
}

}  // namespace reclab::parts
