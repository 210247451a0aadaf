// SPDX-License-Identifier: GPL-3.0-or-later
// The residual block of Hawk and Griffin: norm, temporal mixing, residual, norm, gated MLP, residual; the RG-LRU in its recurrent block.
// S. De, S. Smith et al., Griffin: mixing gated linear recurrences with local attention, 2024. Conventions of recurrentgemma.
#pragma once

#include <string>

#include "models/architecture.h"

namespace reclab::hawk {

struct Block {
  std::int64_t width, lru_width, heads, taps, expanded;
  double c, min_rad, max_rad, variance;  ///< variance: of the last projections at the start, times the fan in
  bool reset;
  std::int64_t reset_column;  ///< that marks where documents begin; 0: none
  double conv_variance = 0.01;
};
/// The rows of the hyper-parameter table that the block needs, after width, layers and heads.
std::vector<HyperSpec> hyper(bool attention);
/// The rows after those: of the output after the last block.
std::vector<HyperSpec> hyper_after();
Block block_of(const Hyper& h);
std::vector<ReferenceName> reference();
void check(const Hyper& h, const std::string& model);

/// x / sqrt(mean x^2 + 1e-6) (1 + scale).
Var norm(Layer& l, const std::string& name, Var x);
Var normal_linear(Layer& l, const std::string& name, Var x, std::int64_t out, double variance, bool bias, const std::string& role);
Var rg_lru(Layer& l, const Block& b, Var x);
Var recurrent(Layer& l, const Block& b, Var u);
/// x + mlp(norm(x)).
Var with_mlp(Layer& l, const Block& b, Var x);
/// The whole residual block round a temporal mixing.
Var residual(Layer& l, const Block& b, Var x, const std::function<Var(Var)>& mixing);
Var final_norm(Layer& l, Var x);

}  // namespace reclab::hawk
