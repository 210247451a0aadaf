// SPDX-License-Identifier: GPL-3.0-or-later
// The matrix memory with decays, a chunk of steps at a time: what Backend::gated and its adjoint are on a CPU.
#pragma once

#include <stop_token>

#include "array/backend.h"

namespace reclab::cpu {

template <class T>
void gated(const GatedDims& d, const T* q, const T* k, const T* v, const T* log_decay, const T* initial, T* o, T* final_state, const std::stop_token& stop);
template <class T>
void gated_adjoint(const GatedDims& d, const T* q, const T* k, const T* v, const T* log_decay, const T* initial, const T* go, const T* gfinal, T* gq, T* gk, T* gv,
                   T* glog_decay, T* ginitial, int* exponent, const std::stop_token& stop);

}  // namespace reclab::cpu
