// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of torch.nn.TransformerEncoderLayer around its attention: projections, residuals, norms and the feed-forward part, for models
// that read the past in another way. Names and shapes are PyTorch's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/architecture.h"

namespace reclab::parts {

/// The rows width, heads, layers, feed_forward, activation, prenorm and bias, then `own`, then norm_eps, final_norm and block.
std::vector<HyperSpec> encoder_hyper(std::vector<HyperSpec> own);
/// The choices of a row `position` that `with_positions` and `turned` know.
HyperSpec position_hyper();
HyperSpec rotary_base_hyper();
/// Throws where heads or position do not go with the width.
void check_encoder(const Hyper& h, const std::string& model);

/// Adds positions in the lowest layer, where `position` is sinusoidal: x [steps, batch, d] with sin(t/10000^{2i/d}) and cos of the same
/// added to its entries 2i and 2i + 1.
Var with_positions(Layer& l, Var x);
Var with_sinusoids(Layer& l, Var x);

/// [steps, batch, heads, D].
struct AttentionInputs {
  Var q, k, v;
};
/// The projections by name.in_proj_weight, rows q, k, v, and name.in_proj_bias; keys and values of `from`, if it is not x.
AttentionInputs projected(Layer& l, const std::string& name, Var x, std::int64_t heads, Var from = {});
/// The projections of self_attn; queries and keys are turned where `position` is rotary.
AttentionInputs projected(Layer& l, Var x);
/// name.out_proj of the reads of the heads.
Var out_projected(Layer& l, const std::string& name, Var read);

/// One layer. `read` returns the reads of the heads, which self_attn.out_proj maps, from the layer's input, normed before where norms come
/// first. With block=none `read` alone.
Var encoder_layer(Layer& l, Var x, const std::function<Var(Var)>& read);
/// The norm after the last layer.
Var encoder_finish(Layer& l, Var x);

}  // namespace reclab::parts
