// SPDX-License-Identifier: GPL-3.0-or-later
// The selective recurrence of Mamba.
#pragma once

#include "recurrence/layer.h"

namespace reclab {

/// h_t[c, n] = exp(dt_t[c] a[c, n]) h_{t-1}[c, n] + dt_t[c] x_t[c] b_t[n], y_t[c] = sum_n h_t[c, n] c_t[n]: Mamba's selective recurrence
/// with its discretisation and its readout. dt, x [steps, batch, C]; b, c [steps, batch, N]; a [C, N]; all real. Forms: sequential (one
/// operation, which keeps every h_t with `record`), scan, chunkwise. A. Gu, T. Dao, 2023, algorithm 2.
struct SelectiveVars : MemoryVars {
  Var output;  ///< [steps, batch, C]
};
SelectiveVars selective(Graph& graph, Form form, Var dt, Var a, Var x, Var b, Var c, bool record);

/// A selective state space in a layer; returns the reads.
Var selective(Layer& layer, const StateSpec& state, Var dt, Var a, Var x, Var b, Var c);

}  // namespace reclab
