// SPDX-License-Identifier: GPL-3.0-or-later
// Operations on the vectors of a cell whose entries can be computed in parts, each by a thread of its own.
#pragma once

#include <cstdint>

#include "autodiff/graph.h"

namespace reclab {

class RunsByUnits {
 public:
  virtual ~RunsByUnits() = default;
  enum class Entries : std::uint8_t {
    none,       ///< cannot be computed in parts
    pointwise,  ///< entry i of the output is of entry i of each input, or of an input's only one
    product     ///< entry i of the output is of all of the first input, and of entry i of the last where that is as long as the output
  };
  virtual Entries entries() const = 0;
  /// Operation::forward for some entries of the output, of pointwise ones of a single range. Several threads may call it at once.
  virtual void forward(const ForwardCall& call, const EntryRanges& entries) = 0;
};

}  // namespace reclab
