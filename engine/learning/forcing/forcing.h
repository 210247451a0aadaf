// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace reclab {

/// Where and how strongly data replace the model's own output as the next input of a closed loop (closed_loop.h). strength is the alpha of
/// generalised teacher forcing (F. Hess, Z. Monfared, M. Brenner, D. Durstewitz, ICML 2023, equation 5); strength = 1 with every > 1 is
/// sparse teacher forcing (J. M. Mikhaeil, Z. Monfared, D. Durstewitz, NeurIPS 2022), strength = 1 with every = 1 teacher forcing (R. J.
/// Williams, D. Zipser, Neural Computation 1(2), 1989).
struct Forcing {
  double strength = 0.2;   ///< alpha, 0 to 1
  std::int64_t every = 1;  ///< steps from one forced step to the next

  /// The share of the data in the input of step t > 0.
  double at(std::int64_t t) const { return t % every == 0 ? strength : 0.0; }
  bool operator==(const Forcing&) const = default;
};

}  // namespace reclab
