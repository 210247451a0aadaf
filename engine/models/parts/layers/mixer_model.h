// SPDX-License-Identifier: GPL-3.0-or-later
// The stack and the language model around the mixers of mamba_ssm: its Block, MixerModel and MambaLMHeadModel.
#pragma once

#include <functional>
#include <vector>

#include "models/architecture.h"

namespace reclab::parts {

/// The rows of the table by which it is set, after those of the mixer: block, block_norm, norm_eps, mlp and read_out.
std::vector<HyperSpec> mixer_model_rows();
/// The names in mamba_ssm of all parameters but the mixer's own.
std::vector<ReferenceName> mixer_model_reference();

/// u + mixer(norm(u)), then, with an MLP, u + mlp(norm2(u)); the mixer alone where there is no block.
Var mixer_block(Layer& l, Var u, const std::function<Var(Var)>& mixer);
/// The norm after the last block.
Var mixer_model_finish(Layer& l, Var x);

}  // namespace reclab::parts
