// SPDX-License-Identifier: GPL-3.0-or-later
// What a rollout takes gradients of. The losses there are: learning/losses.h.
#pragma once

#include <cstdint>
#include <span>

namespace reclab {

/// A sum over time steps, so that it can be evaluated segment by segment. The losses of a batch may be asked at the same time, so
/// what one of them changes is no other's.
class Loss {
 public:
  virtual ~Loss() = default;
  /// The outputs that it asks of the model; 0: any.
  virtual std::int64_t outputs() const = 0;
  /// The loss of the steps [first, first + steps) and, added to `adjoint` if it is not empty, its derivative; both [steps, width].
  virtual double segment(std::int64_t first, std::int64_t steps, std::int64_t width, std::span<const double> output,
                         std::span<double> adjoint) const = 0;
};

}  // namespace reclab
