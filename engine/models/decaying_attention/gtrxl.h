// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of the blocks of ReLiT and AReLiT: the layers of flax, and the gates of GTrXL.
#pragma once

#include <numbers>
#include <string>

#include "models/parts/parts.h"

namespace reclab::gtrxl {

/// flax' Dense: x K [+ b] with name.kernel [in, out] and name.bias [out].
inline Var dense(Layer& l, const std::string& name, Var x, std::int64_t out, const std::string& role, bool bias = true) {
  const Var y = matmul(x, l.parameter(name + ".kernel", {x.dim(-1), out}, init::orthogonal(std::numbers::sqrt2),
                                      role + " [in, out]; starts orthogonal times √2."));
  return bias ? y + l.parameter(name + ".bias", {out}, init::constant(0.0), "The bias of " + name + "; starts at 0.") : y;
}

inline Var norm(Layer& l, const std::string& name, Var x) {
  const Var scale = l.parameter(name + ".scale", {x.dim(-1)}, init::constant(1.0), "Scale of the layer norm; starts at 1.");
  return layer_norm(x, scale, l.parameter(name + ".bias", {x.dim(-1)}, init::constant(0.0), "Its shift; starts at 0."), 1e-6);
}

/// GTrXL's gate in place of a residual.
inline Var gated(Layer& l, const std::string& name, const std::string& gate, Var x, Var y) {
  const auto map = [&](const std::string& letter, Var z) { return dense(l, name + "." + letter, z, x.dim(-1), letter, false); };
  const Var bias = l.parameter(name + ".bgp", {x.dim(-1)}, init::constant(l.hyper.real("gru_bias")),
                               "What is taken off the gate, so that the block starts near its input; starts at gru_bias.");
  const Var r = sigmoid(map("Wr", y) + map("Ur", x));
  const Var z = l.gate(gate, sigmoid(map("Wz", y) + map("Uz", x) - bias), 0.0, 1.0, "z: how much of the stream is replaced.");
  return x + z * (tanh(map("Wg", y) + map("Ug", r * x)) - x);
}

}  // namespace reclab::gtrxl
