// SPDX-License-Identifier: GPL-3.0-or-later
// The operations of a graph that are convolutions over time, for analyses of their kernels.
#pragma once

#include <optional>
#include <span>

#include "autodiff/graph.h"

namespace reclab {

/// The kernel [channels, taps] of a causal convolution of real sequences (convolution.h); none of any other operation. In the convolution
/// form every time-invariant memory that is read out is one.
std::optional<Var> kernel_of(const Operation& operation, std::span<const Var> in);

}  // namespace reclab
