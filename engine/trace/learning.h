// SPDX-License-Identifier: GPL-3.0-or-later
// Learning: the course of trainings, as plain data. A view of a training's weights is a run like any other; this is the data between the
// runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reclab {

/// One training.
struct LearningCurve {
  std::uint64_t training = 0;  ///< its number
  std::string name;            ///< "LSTM", "LSTM, from step 420"; Learning::runs may have another
  std::string from;            ///< the data that it learns from, in words
  std::string command;         ///< the line that trains as far as this has come
  /// The step of another training that it goes on from: all steps are counted from where the weights were drawn or read, so its own first
  /// one is first + 1. 0: of none.
  std::int64_t first = 0;
  std::uint64_t parent = 0;           ///< that other training; 0: none
  bool waits = false;                 ///< it goes on from there once it is asked to
  std::int64_t done = 0, wanted = 0;  ///< steps

  /// The figures of each step: its loss before the weights changed, the rate, and the norm of the gradient before and after clipping, from
  /// step first + 1 on.
  std::vector<double> loss, rate, norm, clipped;
  /// The evaluations on held-out data: the steps after which they were made, loss and metric.
  std::vector<std::int64_t> judged;
  std::vector<double> judged_loss, judged_metric;
  std::string metric;  ///< "accuracy" or "squared error"
  double baseline_loss = 0.0, baseline_metric = 0.0;
  std::string baseline;  ///< the baseline in words: "always the target's mean"
  double clip = 0.0;     ///< where the norm is cut off; 0: nowhere

  std::vector<std::string> weights;          ///< their names
  std::vector<std::vector<double>> changes;  ///< |change| / |weight| of each, a row for each evaluation but the first

  std::vector<std::int64_t> kept;  ///< the steps whose weights can be looked at
  /// The end of a scale of steps that has room for more: the power of two from `done` on, or the wanted steps where that is less.
  std::int64_t scale() const {
    std::int64_t last = 64;
    while (last < done) last *= 2;
    return done < wanted && last < wanted ? last : (done > wanted ? done : wanted);
  }
  /// The index of a step's values in loss, rate, norm and clipped; nothing where the training has not made that step.
  std::optional<std::size_t> at(std::int64_t step) const {
    if (step <= first || step - first > static_cast<std::int64_t>(loss.size())) return std::nullopt;
    return static_cast<std::size_t>(step - first - 1);
  }
  /// The last evaluation up to a step; nothing before the first.
  std::optional<std::size_t> judgement(std::int64_t step) const {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < judged.size() && judged[i] <= step; ++i) found = i;
    return found;
  }
  std::string note;     ///< a choice that was made for the user on the way, a sentence; empty: none
  std::string problem;  ///< why it ended early, a sentence; empty where it did not
};
using LearningCurvePtr = std::shared_ptr<const LearningCurve>;

/// The name of the run of a training, and the colour that it has in every picture.
struct LearningRun {
  std::uint64_t training = 0;
  std::string name, colour;  ///< colour: "#rrggbb"; empty: it is in no picture of a run
};

struct Learning {
  std::vector<LearningCurvePtr> trainings;   ///< in the order in which they began
  std::uint64_t current = 0;                 ///< the training that is, or would be, trained on; 0: none
  std::vector<std::uint64_t> together = {};  ///< those that learn in turn, a step each
  double pace = 0.0;                         ///< steps a second of each of them, lately; 0 where it is not known
  bool running = false;
  std::uint64_t shown = 0;  ///< that whose weights are looked at; 0: weights that were drawn or read
  std::int64_t shown_step = 0;
  /// The time of training: the number of the training (0: none), the step, and whether the pictures are of these weights.
  std::uint64_t line = 0;
  std::int64_t line_step = 0;
  bool line_shown = false;
  std::vector<LearningRun> runs = {};
  const std::string& name_of(const LearningCurve& curve) const {
    for (const LearningRun& one : runs)
      if (one.training == curve.training) return one.name;
    return curve.name;
  }
  std::string colour_of(const LearningCurve& curve) const {
    for (const LearningRun& one : runs)
      if (one.training == curve.training) return one.colour;
    return {};
  }
  const LearningCurve* find(std::uint64_t training) const {
    for (const LearningCurvePtr& one : trainings)
      if (one->training == training) return one.get();
    return nullptr;
  }
};
using LearningPtr = std::shared_ptr<const Learning>;

}  // namespace reclab
