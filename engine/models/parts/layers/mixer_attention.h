// SPDX-License-Identifier: GPL-3.0-or-later
// Softmax attention in place of some blocks' mixers in the models of mamba_ssm: its MHA, with a gated MLP beside it.
#pragma once

#include <string>

#include "models/architecture.h"

namespace reclab::parts {

/// Adds the rows attn_layers to attn_out_bias, equation, notes and check, and makes those blocks layers of a kind of their own, named
/// "attention". `layer` and `reference` must be set before.
void add_mixer_attention(Architecture& a, const std::string& id);
/// Whether this layer's block has attention for its mixer.
bool has_mixer_attention(const Layer& l);
/// The mixer: x [steps, batch, width] -> the same.
Var mixer_attention(Layer& l, Var x);

}  // namespace reclab::parts
