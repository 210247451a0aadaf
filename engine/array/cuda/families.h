// SPDX-License-Identifier: GPL-3.0-or-later
// KernelBackend with the operations of all families.
#pragma once

#include "array/cuda/attention.h"
#include "array/cuda/convolution.h"
#include "array/cuda/diagonal.h"
#include "array/cuda/elementwise.h"
#include "array/cuda/gated.h"
#include "array/cuda/gather.h"
#include "array/cuda/loss.h"
#include "array/cuda/outer.h"
#include "array/cuda/product.h"
#include "array/cuda/reduce.h"
#include "array/cuda/selective.h"
