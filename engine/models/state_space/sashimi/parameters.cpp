// SPDX-License-Identifier: GPL-3.0-or-later
// Names, shapes and starts of SaShiMi's maps and norms, as the standalone code (models/sashimi/sashimi.py) and the full one have them.
#include "models/state_space/sashimi/parameters.h"

#include "models/parts/parts.h"

namespace reclab::architectures::sashimi_parts {
namespace {

/// S4D has a row `code` of its own: its blocks are told apart by `around`.
bool is_full(const Hyper& h) { return h.choice(h.has("around") ? "around" : "code") == "full"; }

}  // namespace

/// W x + b over channels, as the standalone code keeps it, a convolution of one tap.
Var mapped(Layer& l, const std::string& name, Var x, std::int64_t out, const std::string& role) {
  const std::int64_t in = x.dim(-1);
  const Init start = parts::torch_uniform(in);
  if (is_full(l.hyper)) return parts::linear(l, name, x, out, role);
  const Var W = l.parameter(name + ".weight", {out, in, 1}, start, role + "; starts uniform in ±1/√in, as its bias.");
  return reclab::linear(x, reshape(W, {out, in}), l.parameter(name + ".bias", {out}, start, "The bias of " + name + "."));
}

/// The map of a pooling stage, with its activation.
Var of_stage(Layer& l, Var x, std::int64_t out, const std::string& role) {
  const std::string& act = l.hyper.choice("act_pool");
  const std::int64_t made = act == "glu" ? 2 * out : out;
  const Init start = parts::torch_uniform(x.dim(-1));
  const Var y = is_full(l.hyper) ? parts::weight_normed(l, "linear", x, made, {start, start, role, "starts uniform in ±1/√in"})
                                 : mapped(l, "linear", x, made, role);
  if (act != "glu") return parts::activation(act, y);
  const auto halves = split(y, -1, 2);
  return halves[0] * sigmoid(halves[1]);
}

/// The norm of a block: a layer norm, or the full code's for transposed arrays, whose scale and shift are one number each and which has no
/// epsilon.
Var normed(Layer& l, Var x) {
  if (!is_full(l.hyper) || !l.hyper.flag("transposed")) return parts::layer_norm(l, "norm", x);
  const Var m = l.parameter("norm.m", {1}, init::constant(0.0), "What is added to the channels less their mean; starts at 0.");
  const Var s = l.parameter("norm.s", {1}, init::constant(1.0), "The deviation that the norm gives them; starts at 1.");
  const Var centred = x - mean_keep(x, -1);
  return (centred + m) * s / sqrt(mean_keep(square(centred), -1));
}

}  // namespace reclab::architectures::sashimi_parts
