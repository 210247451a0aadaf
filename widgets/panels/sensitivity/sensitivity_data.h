// SPDX-License-Identifier: GPL-3.0-or-later
// The data of the sensitivity panel: |dy_t/du_s|, or the weights of a mixing matrix.
#pragma once

#include <QString>
#include <cstdint>
#include <memory>
#include <vector>

#include "trace/trace.h"

namespace reclab {

/// The choice of the array: the sensitivities, or one head or channel of a mixing matrix.
struct SensitivityChoice {
  bool mixing = false;
  QString memory;  ///< "0/S": the key of the mixing matrix without its kind; empty: the last one of the first layer
  std::int64_t group = 0;
  bool normalised = true;  ///< where there are both
};
/// The array of a run, the steps of its rows and columns, and the part that is shown: the values, and log10 of their moduli.
struct SensitivityBlocks {
  const TraceArray* array = nullptr;
  std::vector<std::int64_t> rows, columns;
  std::shared_ptr<const std::vector<double>> values, logarithms;
  double at(std::int64_t row, std::int64_t column) const {
    return (*logarithms)[static_cast<std::size_t>(row * std::ssize(columns) + column)];
  }
  double value(std::int64_t row, std::int64_t column) const {
    return (*values)[static_cast<std::size_t>(row * std::ssize(columns) + column)];
  }
  std::int64_t columnNear(std::int64_t step) const;
  /// The distance back to the inputs that move the output of a row by a hundredth of the strongest's effect, and the strongest.
  struct Reach {
    std::int64_t strongest = -1, back = 0, ahead = 0;  // -1: none moves it
    double largest = 0.0;                              // log10
  };
  Reach reachOf(std::int64_t row) const;
};
/// The blocks of a run; without an array where the run has none of it.
SensitivityBlocks sensitivityBlocks(const Trace& trace, const SensitivityChoice& choice);

/// "0/S" of the mixing matrix that is looked at: the wanted one, or else the last of the first layer that has one, since the parts before a
/// layer's memory (a short convolution) are no memories to look at.
QString mixingMemory(const Trace& trace, const QString& wanted);
/// The mixing matrix before it is normalised; null where there is none.
const TraceArray* mixingUnnormalised(const Trace& trace, const QString& memory);

}  // namespace reclab
