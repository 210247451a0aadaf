// SPDX-License-Identifier: GPL-3.0-or-later
// Losses: what gradients are of. A loss is a sum over time steps, so it is evaluated segment by segment.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sequence/sequence.h"

namespace reclab {

class Loss {
 public:
  /// random: L = 1/sqrt(T) sum_t w_t . y_t with fixed normal w, which no normalisation of the output makes constant: for comparing forms.
  enum class Kind : std::uint8_t { last, mean, task, random };
  /// task needs a sequence with a target (asserted). The sequence must outlive the loss. `outputs` of a random loss: as another one asks.
  Loss(Kind kind, const Sequence& sequence, std::int64_t outputs = 0);

  /// The outputs that the target asks of the model; 0: any (last, mean).
  std::int64_t outputs() const;
  /// The loss of the steps [first, first + steps) and, added to `adjoint` if it is not empty, its derivative; both [steps, width].
  double segment(std::int64_t first, std::int64_t steps, std::int64_t width, std::span<const double> output, std::span<double> adjoint) const;
  std::string name() const;
  std::string formula() const;  ///< in words and symbols, for the manifest

 private:
  Kind kind_;
  const Sequence& sequence_;
  std::int64_t outputs_;
  double weight_;  ///< of one step
};

}  // namespace reclab
