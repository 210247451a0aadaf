// SPDX-License-Identifier: GPL-3.0-or-later
// The linear time-invariant system that a part of a graph computes, for kernels and frequency responses (analysis/response.h). Computing
// does not read it.
#pragma once

#include <optional>
#include <utility>

#include "autodiff/graph.h"
#include "recurrence/memory.h"

namespace reclab {

/// y_t = Σ_k K_k u_{t-k} from each channel of a sequence to one of another, both [steps, batch, ...]; of complex ones between the real
/// parts. The output is linear in the initial state too, which counts as 0 here.
struct LinearSystem {
  enum class Structure : std::uint8_t {
    modes,     ///< K_k = Re Σ_n c_n a_n^k b_n: a, b and c [channels, modes]; without b and c, a has an entry a channel, and K_k = Re a^k
    low_rank,  ///< h_n <- a_n h_n - p_n 2 Re Σ_m q_m h_m + b_n u,  y = 2 Re Σ_n c_n h_n: all [channels, modes], complex
    matrix,  ///< K_k = C A^k B: A [n, n] of all copies or [copies, n, n], B [n] or [copies, n], C [copies, reads, n]; without C all of the
             ///< state is read, without B every entry of the state is a channel, from its added input to itself
    taps     ///< K_k = a_k: a [channels, taps]; the input may have more rows than the output, which are earlier ones
  };
  Structure structure;
  Var input, output;
  Var a, b{}, c{}, p{}, q{};
};

/// An interface beside Operation, for the memory of such a system.
class HasLinearSystem {
 public:
  virtual ~HasLinearSystem() = default;
  void describe(LinearSystem system) { system_ = std::move(system); }
  /// None where the operation is not the same at every step, or has units that change.
  const std::optional<LinearSystem>& linear_system() const { return system_; }

 private:
  std::optional<LinearSystem> system_;
};

/// Replaces the system of `memory` by one with its driving and its reads, which the recurrence knows and the memory does not.
inline void describe(Memory* memory, LinearSystem system) {
  if (auto* has = dynamic_cast<HasLinearSystem*>(memory)) has->describe(std::move(system));
}

}  // namespace reclab
