// SPDX-License-Identifier: GPL-3.0-or-later
// The gated attention unit of GAU and FLASH: x + W_o (u ∘ read), u, v and z each an activated map of norm x. W. Hua, Z. Dai, H. Liu, Q. V.
// Le, Transformer quality in linear time, ICML 2022. Names and conventions of the FlashQuadAttention and FlashLinearAttention in
// fairseq-evo.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "array/error.h"
#include "models/architecture.h"
#include "models/decaying_attention/near_attention.h"
#include "models/parts/parts.h"

namespace reclab::gated_unit {

/// The rows that both have after width and layers.
inline std::vector<HyperSpec> hyper() {
  return {hyper_real("expansion", "e/d", 2.0, 0.01, 64.0, "Width of u and v by that of the stream.", true),
          hyper_integer("key_width", "s", 16, 2, 4096, "Width of queries and keys; even.", "channels"),
          hyper_integer("max_positions", "P", 512, 1, 65536, "Distances that have a bias (max_position_embeddings).", "steps"),
          hyper_choice("bias", "toeplitz", {"toeplitz", "rotary"},
                       "The bias of a distance: a number of its own, or the product of two turned vectors."),
          hyper_choice("norm", "scale_norm", {"scale_norm", "layer_norm"}, "Kind of the norm before the unit."),
          hyper_real("norm_eps", "ε", 1e-5, 1e-12, 1.0, "Its epsilon.", true),
          hyper_flag("final_norm", false, "Whether a layer norm follows the last layer.")};
}
inline std::vector<ReferenceName> reference() {
  return {{"layers.{n}.self_attn.*", "*"},
          {"layer_norm.*", "final/layer_norm.*"},
          {"self_attn.w", ""},
          {"self_attn.a", ""},
          {"self_attn.b", ""},
          {"version", ""}};
}
inline void check(const Hyper& h, const std::string& model) {
  if (h.integer("key_width") % 2)
    throw Error(model + ": key_width = " + h.text("key_width") + " is odd: its entries are turned in pairs, choose an even number.",
                {.model = model, .parameter = "key_width", .value = h.text("key_width"), .range = "even"});
  if (static_cast<double>(h.integer("width")) * h.real("expansion") < 1.0)
    throw Error(
        model + ": expansion = " + h.text("expansion") + " leaves no channel of width = " + h.text("width") + ": choose a larger one.",
        {.model = model, .parameter = "expansion", .value = h.text("expansion"), .range = "at least 1/width"});
}

struct Parts {
  Var u, v, z;  ///< [steps, batch, e], [steps, batch, e], [steps, batch, s]
};
inline Parts parts_of(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  const auto e = static_cast<std::int64_t>(static_cast<double>(h.integer("width")) * h.real("expansion"));
  const double eps = h.real("norm_eps");
  const Var in = h.choice("norm") == "layer_norm" ? parts::layer_norm(l, "norm", x, eps)
                                                  : parts::unit_rms(x, eps) * l.parameter("norm.scala", {1}, init::constant(1.0),
                                                                                          "The one scale of the norm; starts at 1.");
  const Var u = silu(parts::linear(l, "u_proj", in, e, "W_u of the gate")), v = silu(parts::linear(l, "v_proj", in, e, "W_v"));
  return {l.gate("u", u, 0.0, 0.0, "silu(W_u x): what multiplies what is read; unbounded above."), v,
          silu(parts::linear(l, "base_proj", in, h.integer("key_width"), "W_z, which queries and keys share"))};
}
/// R(t) (z ∘ name_weight + name_bias): R turns pairs (i, i + s/2) by t 10000^(-2i/s).
inline Var turned(Layer& l, const std::string& name, Var z) {
  const std::int64_t s = l.hyper.integer("key_width");
  const Var scaled = z * l.parameter(name + "_weight", {1, s}, init::normal(0.02), "The scale of each entry of z; starts N(0, 0.02²).") +
                     l.parameter(name + "_bias", {1, s}, init::constant(0.0), "Its shift; starts at 0.");
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < s / 2; ++i) frequencies.push_back(std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(s)));
  return parts::flat(l, parts::rotated(parts::by_head(l, scaled, 1), parts::angles(l, frequencies), false));
}
/// The bias of the distances 0 .. count - 1, [count].
inline Var bias(Layer& l, std::int64_t count) {
  return l.hyper.choice("bias") == "toeplitz" ? parts::toeplitz_bias(l, "w", l.hyper.integer("max_positions"), count)
                                              : parts::rotary_bias(l, "a", "b", l.hyper.integer("key_width"), count);
}
/// x + W_o (u ∘ read).
inline Var residual(Layer& l, Var x, Var u, Var read) { return x + parts::linear(l, "o", u * read, l.hyper.integer("width"), "W_o"); }
inline Var finish(Layer& l, Var x) { return l.hyper.flag("final_norm") ? parts::layer_norm(l, "layer_norm", x) : x; }

}  // namespace reclab::gated_unit
