// SPDX-License-Identifier: GPL-3.0-or-later
// The matrix exponential.
#pragma once

#include "autodiff/graph.h"

namespace reclab {

/// e^A of a real square matrix [n, n], by scaling, a Taylor polynomial and squaring, in double precision for every type of the graph: about
/// 20 + log2 |A| products of [n, n]. Meant for parameters: it looks at A's size on the host.
Var matrix_exponential(Var a);

}  // namespace reclab
