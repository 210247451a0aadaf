// SPDX-License-Identifier: GPL-3.0-or-later
// Gradients that nothing was added to yet are written and not added to zeros, by operations that can.
#pragma once

#include <cstddef>
#include <span>

#include "autodiff/graph.h"

namespace reclab {

/// An operation whose adjoint may be the first that an array gets.
class OverwritesGradient {
 public:
  virtual ~OverwritesGradient() = default;
  /// Whether it can write the gradient of this input.
  virtual bool writes(std::size_t input) const = 0;
  /// Operation::backward, but where fresh[i] is set the contents of grad_in[i] mean nothing, and all of it is written. Only those of
  /// writes() are.
  virtual void backward(const BackwardCall& call, std::span<const char> fresh) = 0;
};

}  // namespace reclab
