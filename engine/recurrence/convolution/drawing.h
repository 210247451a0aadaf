// SPDX-License-Identifier: GPL-3.0-or-later
// The evaluation order of convolutions.
#pragma once

#include "recurrence/plan.h"

namespace reclab::drawing {

/// A convolution by Fourier transforms: inputs the kernel and the sequence, output their convolution.
void transforms(Plan& plan, const Drawn& drawn);

}  // namespace reclab::drawing
