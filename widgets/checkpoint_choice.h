// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace reclab {

/// The run is to be trained, as it is set outside of the panel.
struct TrainingWish {};

/// Weights of a training to be looked at: those that are kept nearest to a step of it.
struct CheckpointChoice {
  std::uint64_t training = 0;
  std::int64_t step = 0;
  bool moving = false;  ///< more are about to follow
};

}  // namespace reclab
