// SPDX-License-Identifier: GPL-3.0-or-later
// Learning: how trainings go, as plain data. What is looked at of them is a run like any other; this is what lies between the runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reclab {

/// One training.
struct LearningCurve {
  std::uint64_t training = 0;  ///< its number
  std::string name;            ///< "LSTM, after 420 of training 1", as a legend has it
  std::string from;            ///< what is learned from, in words
  std::string command;         ///< the line that trains as far as this has come
  std::int64_t done = 0, wanted = 0;  ///< steps
  double pace = 0.0;                  ///< steps a second, lately; 0 where it is not known

  /// Of each step: its loss before the weights changed, the rate, and the norm of the gradient before and after clipping. The first is step 1.
  std::vector<double> loss, rate, norm, clipped;
  /// Of what is held out: the steps after which it was judged, loss and metric.
  std::vector<std::int64_t> judged;
  std::vector<double> judged_loss, judged_metric;
  std::string metric;               ///< "accuracy" or "squared error"
  double baseline_loss = 0.0, baseline_metric = 0.0;
  std::string baseline;             ///< what it is, in words: "always the target's mean"
  double clip = 0.0;                ///< where the norm is cut off; 0: nowhere

  std::vector<std::string> weights;          ///< their names
  std::vector<std::vector<double>> changes;  ///< |change| / |weight| of each, a row for each judgement but the first

  std::vector<std::int64_t> kept;  ///< the steps whose weights can be looked at
  /// Where a scale of steps ends that has room for more: at what was wanted, or before that at twice what is done, in powers of two.
  std::int64_t scale() const {
    std::int64_t last = 64;
    while (last < done) last *= 2;
    return done < wanted && last < wanted ? last : (done > wanted ? done : wanted);
  }
  std::string problem;             ///< why it ended early, a sentence; empty where it did not
};
using LearningCurvePtr = std::shared_ptr<const LearningCurve>;

struct Learning {
  std::vector<LearningCurvePtr> trainings;  ///< in the order in which they began
  std::uint64_t current = 0;     ///< that which is, or would be, trained on; 0: none
  bool running = false;
  std::uint64_t shown = 0;       ///< that whose weights are looked at; 0: weights that were drawn or read
  std::int64_t shown_step = 0;
  const LearningCurve* find(std::uint64_t training) const {
    for (const LearningCurvePtr& one : trainings)
      if (one->training == training) return one.get();
    return nullptr;
  }
};
using LearningPtr = std::shared_ptr<const Learning>;

}  // namespace reclab
