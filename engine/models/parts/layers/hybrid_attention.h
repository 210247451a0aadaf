// SPDX-License-Identifier: GPL-3.0-or-later
// Softmax attention in place of some blocks' own mixers, as the setting attn of flash-linear-attention's models has it.
#pragma once

#include <string>
#include <vector>

#include "models/architecture.h"

namespace reclab::parts {

/// Adds the rows attn, attn_layers, attn_heads, attn_kv_heads, attn_qkv_bias, attn_window and attn_rope_theta, equation, note and check,
/// and makes those blocks layers of a kind of their own, named "attention". `layer` and `reference` must be set before.
void add_hybrid_attention(Architecture& a, const std::string& id);
/// Whether this layer's block has attention for its mixer.
bool has_attention(const Layer& l);
/// The mixer: x [steps, batch, width] -> the same, with the parameters <prefix>q_proj to <prefix>o_proj that start N(0, deviation²).
Var hybrid_attention(Layer& l, const std::string& prefix, Var x, double deviation);

}  // namespace reclab::parts
