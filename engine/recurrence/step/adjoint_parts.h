// SPDX-License-Identifier: GPL-3.0-or-later
// The adjoint of a cell as a sum: of the ways from the states before to the states after that pass no matrix, and of those that do.
#pragma once

#include <span>
#include <vector>

#include "recurrence/mixing/passed_back.h"
#include "recurrence/step/newton.h"

namespace reclab {

class AdjointParts {
 public:
  /// A cell of one row, whose graph has memory and is bound to a step; the caller keeps it.
  explicit AdjointParts(CellGraph& cell);
  /// The parts of the adjoint where the graph last ran forward; x [entries of all states].
  std::optional<PassedBack> pass_back(std::span<const double> x);

 private:
  CellGraph& cell_;
  struct Mixed {
    Var made;
    Var added;  // a summand of the product itself that depends on a state, a way around its matrix; or none
  };
  std::vector<Mixed> mixed_;   // results of products and sums that depend on a state, in the order in which they are run
  std::optional<bool> apart_;  // units see no others but through these

  PassedBack parts_of(std::span<const double> x);
  bool keeps_units_apart();

  /// One pass backward: x (empty: zeros) at the states after, `at_mixed` (one each) at the products of the matrices, and the opposite at
  /// their addends.
  void pass(std::span<const double> x, const std::vector<std::vector<double>>& at_mixed);
  std::vector<double> at_states() const;
  std::vector<double> gradient(Var var) const;
};

}  // namespace reclab
