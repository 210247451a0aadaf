// SPDX-License-Identifier: GPL-3.0-or-later
// The card of the Token Turing machine, and its parameters in the groups in which the equations use them.
#pragma once

#include <string>
#include <vector>

#include "models/architecture.h"

namespace reclab::architectures {

Architecture token_turing_machine_card();

namespace token_turing {

/// x W + b.
struct Dense {
  Var kernel, bias;
  Var operator()(Var x) const { return bias ? matmul(x, kernel) + bias : matmul(x, kernel); }
};
struct Mlp {
  Dense first, second;
  Var operator()(Var x) const { return second(gelu_tanh(first(x))); }
};
struct Norm {
  Var scale, bias;
  Var operator()(Var x) const { return layer_norm(x, scale, bias, 1e-6); }
};
/// W of each head [d, heads, D], or [heads, D, d] of the reads.
struct HeadedAttention {
  Var query, query_bias, key, value, value_bias, out, out_bias;
};
/// Weighted means of tokens, or the reads of learned tokens.
struct Summary {
  Norm norm;
  Mlp mask;
  Var tokens;
  HeadedAttention attention;
};
struct EncoderBlock {
  Norm before_attention, before_mlp;
  HeadedAttention attention;
  Mlp mlp;
};
struct MixerBlock {
  Norm before_tokens, before_channels;
  Mlp tokens, channels;
};
struct MlpStage {
  Norm norm;
  Mlp mlp;
};
/// TL-AddErase.
struct AddErase {
  Norm memory, erased, added;
  Mlp select, erased_tokens, erased_channels, added_tokens, added_channels;
};

/// The processing unit: blocks of one kind, and a norm.
struct Processor {
  Var positions;  ///< of the transformer
  std::vector<EncoderBlock> blocks;
  std::vector<MixerBlock> mixers;
  std::vector<MlpStage> stages;
  Norm last;
};

/// The one that reads, with k = process, or the one that writes, with k = memory.
Summary reading(Layer& l);
Summary writing(Layer& l);
/// The processor of `rows` tokens.
Processor processor(Layer& l, std::int64_t rows);
AddErase add_erase(Layer& l);
/// The positions added to each of the rows that are read or written, [1, rows, d]; none without `position`.
Var read_positions(Layer& l);
Var write_positions(Layer& l);

}  // namespace token_turing
}  // namespace reclab::architectures
