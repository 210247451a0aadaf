// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "autodiff/graph.h"

namespace reclab {

/// Whether an array is what layer_norm() or rms_norm() returned, whatever its shape is seen as.
bool is_normalised(Var y);

}  // namespace reclab
