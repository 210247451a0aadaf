// SPDX-License-Identifier: GPL-3.0-or-later
// The inverse of a matrix.
#pragma once

#include "autodiff/graph.h"

namespace reclab {

/// A^-1 of a real square matrix [n, n], or of each of [..., n, n], by elimination with pivots on the host, in double precision for every
/// type of the graph. Meant for parameters. The inverse of a singular matrix has entries that are not finite.
Var matrix_inverse(Var a);

}  // namespace reclab
