// SPDX-License-Identifier: GPL-3.0-or-later
// Models that learn and models that are judged, of the rows and the studies that share them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/judged.h"
#include "learning/trainer.h"
#include "models/registry.h"

namespace reclab::bench {

/// The same batch at every step, so that nothing but training is timed (training.cpp).
class OneBatch final : public Examples {
 public:
  static constexpr std::int64_t steps = 100, width = 2;
  explicit OneBatch(std::int64_t size);
  Sequence training(std::int64_t step, std::int64_t index) const override;
  Sequence held_out(std::int64_t index) const override { return training(0, index); }
  std::int64_t held_out_count() const override { return std::ssize(sequences_); }
  std::int64_t length() const override { return steps; }
  std::string text() const override { return "one batch"; }

 private:
  std::vector<Sequence> sequences_;
};

/// A model with a trainer of it, which has made one step.
struct Learner {
  const Architecture& architecture;
  Hyper hyper;
  Parameters start;
  std::unique_ptr<Model> model;
  std::unique_ptr<Trainer> trainer;
  double first = 0.0;  ///< the loss of the weights as they were drawn

  Learner(const std::string& id, const std::vector<std::pair<std::string, std::string>>& set, const std::string& form, DType real,
          const OneBatch& examples);
};

/// The LSTM with 64 cells, float32, judged on sequences of the adding problem that are there beforehand (evaluation.cpp).
struct Judging {
  static constexpr std::int64_t steps = 100, side_by_side = 16, width = 64;
  RunRequest request;
  std::deque<Sequence> sequences;
  JudgedModel judged;

  explicit Judging(std::int64_t count);
  /// Outputs and losses of the first so many, by the engine's evaluation: their mean loss. `telling`: the seconds that the scores took
  /// after each round of batches are added to it.
  double loss(std::int64_t count, double* telling = nullptr) const;
};

}  // namespace reclab::bench
