// SPDX-License-Identifier: GPL-3.0-or-later
// The closed loop of a model that foretells its own input. With the step s[t], y[t] = f(s[t-1], u[t]),
//   u[0] = x[0],  u[t] = a[t] x[t] + (1 - a[t]) y[t-1],  a[t] = Forcing::at(t).
// The state of the loop is (s[t], u[t+1]); forcing pulls its observed part, u, towards the data. Where the step has no state, this is
// generalised teacher forcing with the identity as observation (Hess and others, ICML 2023): the Jacobian of the loop is (1 - a) dy/du.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "execution/loss.h"
#include "execution/step_map.h"
#include "learning/forcing/forcing.h"
#include "sequence/sequence.h"

namespace reclab {

/// Throws Error, which begins with `what`, unless the target of every step that counts is the input of the next, so that outputs can be
/// fed back.
void require_own_future(const Sequence& sequence, const std::string& what);

class ClosedLoop {
 public:
  /// All must outlive it. The step map has as many outputs as inputs.
  ClosedLoop(StepMap& step, const Sequence& sequence);

  /// Goes over the sequence from the state at rest; keeps states, inputs and outputs. The first step whose values are not finite ends it.
  /// No step from `free_from` on is forced.
  void run(const Forcing& forcing, std::stop_token stop, std::int64_t free_from = std::numeric_limits<std::int64_t>::max());
  /// The name of the array and the step where run() ended; empty: nowhere.
  const std::string& bad_array() const { return bad_array_; }
  std::int64_t bad_step() const { return bad_step_; }
  /// [T, outputs], of run().
  const std::vector<double>& outputs() const { return outputs_; }
  const std::vector<double>& inputs() const { return inputs_; }  ///< [T, inputs], u

  /// The gradient of sum_t L[t](y[t]) by all weights, added, with `output_adjoints` [T, outputs] = dL[t]/dy[t]: backpropagation through the
  /// loop of the last run(). `gradient`: StepMap::weights() entries.
  void pull_back(std::span<const double> output_adjoints, std::span<double> gradient, std::stop_token stop);

  /// The largest Lyapunov exponent of the loop along the last run(), natural logarithm a step: the mean growth of a perturbation of s and u
  /// after the first `skipped` steps, in which it turns to the direction that grows most. -infinity where it becomes 0.
  double exponent(std::int64_t skipped, std::stop_token stop);

 private:
  std::span<const double> row(const std::vector<double>& of, std::size_t t, std::size_t width) const {
    return std::span(of).subspan(t * width, width);
  }

  StepMap& step_;
  const Sequence& sequence_;
  std::size_t length_, states_width_, width_;
  std::vector<double> states_, inputs_, outputs_, shares_;  // s[t-1], u[t], y[t], a[t]
  std::string bad_array_;
  std::int64_t bad_step_ = -1;
};

/// The forcing that a model needs along a sequence.
struct ForcingEstimate {
  double free_exponent = 0.0;  ///< lambda of the loop without forcing
  /// Steps in which an error doubles, ln 2 / lambda: the interval of sparse teacher forcing (Mikhaeil and others 2022, section 4.2);
  /// infinity where lambda <= 0.
  double interval = std::numeric_limits<double>::infinity();
  /// max(0, 1 - exp(-lambda)): the alpha at which (1 - alpha) J neither grows nor shrinks in the geometric mean over the steps, were all of
  /// the loop's state forced (Hess and others 2023, section 3.3).
  double geometric = 0.0;
  /// The least alpha, to 1e-3, at which the exponent of the loop, of which u alone is forced, is at most 0; NaN where teacher forcing
  /// itself has a larger one.
  double least = 0.0;
};
ForcingEstimate estimate_forcing(ClosedLoop& loop, std::int64_t skipped, std::stop_token stop);

}  // namespace reclab
