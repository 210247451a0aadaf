// SPDX-License-Identifier: GPL-3.0-or-later
// The Kronecker structure of a model's step: where weights act as matrices on vectors, z = W v, the derivative of the step by W is D = v
// (x) Q with Q = ds/dz (A. Mujika, F. Meier, A. Steger, NeurIPS 2018).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "learning/online/influence.h"

namespace reclab {

/// Weights that act as one matrix of `rows` rows, on v of columns() entries; parameters that are summed into the same z are one matrix.
struct KroneckerMatrix {
  std::size_t rows = 0;
  std::vector<std::size_t> first{};   ///< of each column: where its first row lies among all weights,
  std::vector<std::size_t> stride{};  ///< and how far the next row is from it
  std::size_t columns() const { return first.size(); }
  std::size_t at(std::size_t row, std::size_t column) const { return first[column] + row * stride[column]; }
};

/// All weights on which the state depends at once. Throws Error naming one that acts otherwise.
std::vector<KroneckerMatrix> kronecker_matrices(const OnlineSetup& setup);

}  // namespace reclab
