// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "experiment/training/plan.h"

namespace reclab {

/// How a model is to be trained, as a person chose it; one that nobody changed is quick to see.
struct TrainingChoice : TrainingPlan {
  bool beside = true;  ///< pinned runs are trained beside it, on the same batches
  TrainingChoice() {
    steps = 1000;
    options.rate.rate = 5e-3;
    options.clip_norm = 1.0;
  }
  bool operator==(const TrainingChoice& other) const = default;
};

}  // namespace reclab
