// SPDX-License-Identifier: GPL-3.0-or-later
// A model on its own output (learning/forcing/closed_loop.h): the exponent of that loop by how strongly it is forced by the data, the
// forcing that it needs, and how long it foretells without any.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "learning/forcing/closed_loop.h"
#include "parameters/field.h"

namespace reclab {

struct ForcingPlan {
  Forcing forcing{};
  std::int64_t warm_up = 0;  ///< steps of data before the model runs freely; 0: half of the sequence
  /// The error at which a forecast ends: its root mean square over the inputs, in standard deviations of the sequence, as for the valid
  /// prediction time of P. R. Vlachas and others (Neural Networks 126, 2020).
  double valid_error = 0.5;
};
/// In the order of the command line.
const std::vector<PlanField<ForcingPlan>>& forcing_fields();

struct ForcingTable {
  struct Row {
    double strength, exponent;  ///< alpha; natural logarithm a step, infinity where the loop leaves every bound
  };
  ForcingEstimate estimate{};
  double forced_exponent = 0.0;  ///< of the loop as the plan forces it
  std::vector<Row> rows{};       ///< alpha = 0, 0.05 ... 1, at every step
  std::int64_t warm_up = 0;
  std::vector<double> error{};   ///< of the free run, 1, 2, ... steps ahead of the data, in standard deviations; infinity from where it
                                 ///< leaves every bound
  std::int64_t valid_steps = 0;  ///< steps ahead before the error first exceeds the plan's
  std::string data{}, command{};
};

/// Throws Error for a model whose step cannot be taken alone, and for a sequence that does not foretell itself; Cancelled.
ForcingTable forcing_of(const Registry& registry, const RunRequest& request, const ForcingPlan& plan, const Progress& progress,
                        std::stop_token stop);

}  // namespace reclab
