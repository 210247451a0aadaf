// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "autodiff/graph.h"

namespace reclab {

/// Whether an array is a result of layer_norm() or rms_norm(), in any view of its shape.
bool is_normalised(Var y);

}  // namespace reclab
