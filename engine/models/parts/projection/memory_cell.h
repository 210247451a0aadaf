// SPDX-License-Identifier: GPL-3.0-or-later
// The HiPPO-RNN: a hidden state that writes a linear memory and reads it, with the names of the reference's MemoryCell (state-spaces/s4
// rnns/cells/memory.py, HazyResearch/hippo-code model/memory.py).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/architecture.h"

namespace reclab::hippo {

struct MemoryCell {
  std::int64_t width = 0, memory = 1, order = 0;
  std::string gate = "G";  ///< the reference's letters; N: none
  std::string memory_activation = "id", hidden_activation = "tanh";
  bool bias = true, ux = true, hx = true, hm = true, hh = false, um = false, memory_output = false;
};
/// The choices of the two activations and of the gate.
std::vector<std::string> cell_activations(), cell_gates();

/// Ā and B̄ are [order, order] and [order], or of each step: [steps, order, order] and [steps, order]. `past`: how c is read back; none
/// where it has no values.
Var memory_cell(Layer& l, const MemoryCell& how, Var x, Var A, Var B, const PastBasis& past);

}  // namespace reclab::hippo
