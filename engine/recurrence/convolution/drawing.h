// SPDX-License-Identifier: GPL-3.0-or-later
// How convolutions go over time.
#pragma once

#include "recurrence/plan.h"

namespace reclab::drawing {

/// By Fourier transforms: inputs the kernel and what it meets, output their convolution.
void transforms(Plan& plan, const Drawn& drawn);

}  // namespace reclab::drawing
