// SPDX-License-Identifier: GPL-3.0-or-later
// The parts around the systems that the layers of S4, S4D, LSSL and H3 share.
#pragma once

#include <cstdint>
#include <string>

#include "models/architecture.h"

namespace reclab::parts {

/// The layer norm and the residual round a layer, where `block` asks for them: x + layer(norm x) with `prenorm`, else norm(x + layer(x)).
struct NormedBlock {
  Var scale{}, shift{};  ///< norm.weight and norm.bias [width]; none: no block
  bool prenorm = false;

  Var read(Var x) const;           ///< the layer's input
  Var around(Var x, Var y) const;  ///< the block's output, from its input x and the layer's output y
};
NormedBlock normed_block(Layer& l);

/// A complex array [rows, modes] of a parameter whose last axis is re and im.
Var complex_modes(Var v, std::int64_t rows, std::int64_t modes);
/// Rows that channels share in turn, for each of them.
Var for_channels(Var v, std::int64_t channels);
/// 1 for a mode that turns by less than half the limit a step, in turns, else 0. No gradient passes.
Var in_band(Var turns, double limit);

/// Im A of mode n of N/2 at the start: lin, πn, or those of S4D-Inv and its variants: inv, (N/π)(N/(2n+1) − 1), inv2, (N/π)(N/(n+1) − 1),
/// quad, (2n+1)²/π.
double frequency_at_start(const std::string& kind, double n, double N);

/// D u of each read, side by side; D [reads, width], or [width] of one.
Var skip(Var D, Var u);

/// v = W gelu(y) + b, v₁ ⊙ σ(v₂): W is output_linear.weight, kept as [2 width, columns] or with one tap more.
struct GatedOutput {
  std::string system;    ///< the system in front of it, in words
  std::string rows;      ///< of W
  bool one_tap = false;  ///< whether W's shape is [2 width, width, 1]
};
Var gated_output(Layer& l, Var y, const GatedOutput& how);

/// Throws where dt_min is above dt_max.
void check_time_steps(const Hyper& h, const std::string& model);
/// Throws where output = none leaves several reads a channel to a residual or a next layer.
void check_reads(const Hyper& h, const std::string& model);

}  // namespace reclab::parts
