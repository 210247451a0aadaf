// SPDX-License-Identifier: GPL-3.0-or-later
// The layers after SGConv's convolution: the activation, the norm and the output map with the reference's choices of each.
#include <cmath>
#include <numbers>
#include <string>

#include "models/long_convolutions/sgconv/parameters.h"
#include "models/parts/parts.h"

namespace reclab::architectures {
namespace {

/// The output map's start (get_initializer of the reference), for the activation after it.
Init output_start(const Hyper& h, std::int64_t in, std::int64_t out) {
  const std::string &how = h.choice("initializer"), &after = h.choice("postact");
  const double gain = after == "tanh"                                         ? 5.0 / 3.0
                      : after == "relu" || after == "gelu" || after == "silu" ? std::numbers::sqrt2
                                                                              : 1.0,
               n = static_cast<double>(in);
  if (how == "uniform") return init::uniform(-gain * std::sqrt(3.0 / n), gain * std::sqrt(3.0 / n));
  if (how == "normal") return init::normal(gain / std::sqrt(n));
  if (how == "xavier") return init::normal(std::sqrt(2.0 / static_cast<double>(in + out)));
  if (how == "zero" || how == "one") return init::constant(how == "one" ? 1.0 : 0.0);
  return parts::torch_uniform(in);
}

/// A layer norm with one scale and one shift, name.s and name.m, and no epsilon.
Var scalar_norm(Layer& l, const std::string& name, Var x) {
  const Var m =
      l.parameter(name + ".m", {1}, init::constant(0.0), "What the norm adds to all channels before it scales them; starts at 0.");
  const Var s = l.parameter(name + ".s", {1}, init::constant(1.0), "The norm's one scale; starts at 1.");
  const Var centred = x - mean_keep(x, -1);
  return s / sqrt(mean_keep(square(centred), -1) + 1e-36) * (centred + m);
}

/// After the convolution and after the output map.
Var activated(Layer& l, const std::string& kind, const std::string& name, Var x) {
  if (kind == "ln") return scalar_norm(l, name, x);
  if (kind == "glu") {
    const auto halves = split(x, -1, 2);
    return halves[0] * l.gate("glu", sigmoid(halves[1]), 0.0, 1.0, "The GLU after the output map: how much of each channel passes.");
  }
  if (kind == "modrelu") {
    const Var b = l.parameter(name + ".b", {x.dim(-1)}, init::uniform(-0.01, 0.01),
                              "What is added to |x| before it is cut at 0; starts uniform in ±0.01.");
    return detach(sign(x)) * relu(abs(x) + b);
  }
  return parts::activation(kind, x);
}

}  // namespace

Var sgconv_output(Layer& l, Var y) {
  const Hyper& h = l.hyper;
  const std::int64_t H = h.integer("width"), C = h.integer("channels");
  const std::string& after = h.choice("postact");
  const std::int64_t out = after == "glu" ? 2 * H : H;
  y = activated(l, h.choice("activation"), "activation", y);
  if (h.choice("ln") == "scalar") y = scalar_norm(l, "norm.norm", y);
  if (h.choice("ln") == "channels") y = parts::layer_norm(l, "norm.norm", y);
  const std::string name = after == "none" ? "output_linear" : "output_linear.0";
  const parts::Linear how{output_start(h, C * H, out), parts::torch_uniform(C * H),
                          after == "glu" ? "W, value rows, then gate rows" : "W, columns channel-major (c, h)",
                          "starts as initializer says"};
  return activated(l, after, "output_linear.1",
                   h.flag("weight_norm") ? parts::weight_normed(l, name, y, out, how) : parts::linear(l, name, y, out, how));
}

}  // namespace reclab::architectures
