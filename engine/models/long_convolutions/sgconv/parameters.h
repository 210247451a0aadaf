// SPDX-License-Identifier: GPL-3.0-or-later
// The card of SGConv, its parameters as the equations use them, and the layers after its convolution.
#pragma once

#include <vector>

#include "models/architecture.h"

namespace reclab::architectures {

Architecture sgconv_card();

constexpr std::int64_t sgconv_most_taps = std::int64_t{1} << 22;
/// The stretch of the weights of scale i, as a power of two.
std::int64_t sgconv_stretch(const Hyper& h, std::int64_t i);
/// The length of the kernel.
std::int64_t sgconv_taps(const Hyper& h);

/// The kernels of the layer's direction, R = channels * width rows.
struct SgconvKernel {
  std::vector<Var> w;  ///< of each scale, the shortest first, [R, d]
  Var decay;           ///< m, or with decay=power α, [R, 1]
  Var Z;               ///< [R, 1]
};
SgconvKernel sgconv_kernel(Layer& l);
/// D [channels * width].
Var sgconv_skip(Layer& l);

/// postact(W norm(f(y)) + b).
Var sgconv_output(Layer& l, Var y);

}  // namespace reclab::architectures
