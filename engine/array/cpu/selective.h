// SPDX-License-Identifier: GPL-3.0-or-later
// The selective recurrence with its discretisation and its readout: what Backend::selective and its adjoint are on a CPU.
#pragma once

#include <stop_token>

#include "array/backend.h"

namespace reclab::cpu {

template <class T>
void selective(const SelectiveDims& d, const T* dt, const T* a, const T* x, const T* b, const T* c, const T* initial, T* y, T* states, T* final_state,
               const std::stop_token& stop);
template <class T>
void selective_adjoint(const SelectiveDims& d, const T* dt, const T* a, const T* x, const T* b, const T* c, const T* initial, const T* gy, const T* gstates,
                       const T* carried, T* gdt, T* ga, T* gx, T* gb, T* gc, T* ginitial, double* log2_norm, int* exponent, const std::stop_token& stop);

}  // namespace reclab::cpu
