// SPDX-License-Identifier: GPL-3.0-or-later
// Training plans, all of a training but the model and the data. The options are data, one row each: from the table come the options of
// `reclab train` with their help, the command line that repeats a training, the form of the window, and kept files.
#pragma once

#include <cstdint>
#include <vector>

#include "learning/flossing/flossing.h"
#include "learning/trainer.h"
#include "parameters/field.h"

namespace reclab {

struct TrainingPlan {
  std::int64_t steps = 2000;
  std::int64_t until = 0;        ///< where it ends before that, at a rate that is that of all steps; 0: it does not
  std::int64_t judge_every = 0;  ///< steps between two evaluations; 0: a twentieth of all steps
  WindowOptions windows;         ///< of a file
  FlossOptions floss;            ///< of the weights before the first step
  TrainingOptions options;
  bool operator==(const TrainingPlan&) const = default;
};

/// One option of a plan; of an optimiser's reals check(OptimiserOptions) looks at the range.
using TrainingField = PlanField<TrainingPlan>;
/// All, in the order of the command line.
const std::vector<TrainingField>& training_fields();

}  // namespace reclab
