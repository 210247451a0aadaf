// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "experiment/training/plan.h"

namespace reclab {

/// A training's options as a person chose them; the defaults make a short one.
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
