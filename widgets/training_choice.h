// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

namespace reclab {

/// How a model is to be trained, as a person chose it. Names are those of `reclab train`.
struct TrainingChoice {
  std::int64_t steps = 1000, batch = 32;
  double rate = 5e-3;
  std::string optimiser = "adam";  ///< sgd, rmsprop, adam, adamw
  double momentum = 0.0;           ///< of sgd and rmsprop
  double weight_decay = 0.0;
  std::string schedule = "constant";  ///< or cosine
  std::int64_t warm_up = 0;           ///< steps
  double clip = 1.0;                  ///< of the gradient's norm; 0: none
  std::int64_t truncate = 0;          ///< steps that gradients go back; 0: all
  std::int64_t window = 100;          ///< steps of a file that are learned from at once
  std::int64_t ahead = 1;             ///< of a file without a target: what is to be foretold
  bool beside = true;                 ///< pinned runs are trained beside it, on the same batches
  bool operator==(const TrainingChoice& other) const = default;
};

/// Weights of a training to be looked at: those that are kept nearest to a step of it.
struct CheckpointChoice {
  std::uint64_t training = 0;
  std::int64_t step = 0;
  bool moving = false;  ///< more are about to follow
};

}  // namespace reclab
