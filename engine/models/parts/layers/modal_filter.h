// SPDX-License-Identifier: GPL-3.0-or-later
// A sum of exponentials a channel in the place of a layer's own long filter, made by distillation.
#pragma once

#include "models/architecture.h"

namespace reclab::parts {

/// The row filter_modes of an architecture's table.
HyperSpec modal_filter_row();
bool has_modal_filter(const Hyper& h);
/// h_t = p ∘ h_{t-1} + u_t,  y_t = Re Σ_n r_n h_{t,n} + direct u_t for each channel of u [steps, batch, channels]; parameters modes.poles
/// and modes.residues [channels, modes, 2] and modes.direct [channels]. `apart`: of two directions of a layer each has its own, the one
/// that runs backward those of modes_backward.
Var modal_filter(Layer& l, Var u, bool apart = false);

}  // namespace reclab::parts
