// SPDX-License-Identifier: GPL-3.0-or-later
// The layer of ag1988/dss and ag1988/dlr round a kernel that is a sum of powers, K_k = cast(sum_n w_n exp(z_n k)): skips, both directions,
// a product of outputs, the maps after it, and the block round it. Its names and shapes are those of the class DSS of these repositories.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/architecture.h"

namespace reclab::parts {

/// A bank of H diagonal systems, complex: h_t = exp(z) h_{t-1} + b u_t, with its read-out.
struct DiagonalKernel {
  Var exponent;           ///< z [H, N]
  Var drive;              ///< b [H, N]; none: 1
  Var readout;            ///< w [outputs, H, N]
  bool may_grow = false;  ///< whether |exp(z)| may be above 1
};

/// Rows of the table that stand before and after those of the kernel.
std::vector<HyperSpec> diagonal_system_hyper(std::vector<HyperSpec> own);
/// The equations of these rows, for the card: the line of the read-out and the lines after it.
std::vector<std::string> diagonal_system_equations();
std::vector<std::string> diagonal_system_notes();
std::vector<ReferenceName> diagonal_system_reference();
/// Throws where they do not go together.
void check_diagonal_system(const Hyper& h, const std::string& model);

/// A positive number from a parameter, as state-spaces/s4 has it: exp, none, relu (plus 1e-4), sigmoid, softplus; and the parameter of
/// which a number is made, which is raised to 1e-4 first, and for sigmoid lowered to 1e-4 below 1.
Var positive(const std::string& transform, Var x);
double from_positive(const std::string& transform, double value);

/// The outputs of the later steps that each step reads, from those of a layer that runs backward, in the order of time: the next row, and 0
/// at the last step.
Var from_next_step(Var backward);

/// The number of outputs a channel of the kernel, all directions together: the first axis of W.
std::int64_t diagonal_system_outputs(const Hyper& h);
/// Sets layer, shares_directions, combine_directions and final_layer.
void make_diagonal_system(Architecture& a, std::function<DiagonalKernel(Layer&)> kernel);

}  // namespace reclab::parts
