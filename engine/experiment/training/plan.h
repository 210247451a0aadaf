// SPDX-License-Identifier: GPL-3.0-or-later
// How a model is trained, apart from which model and on what. Its options are data, one row each: from the table come the options of
// `reclab train` with their help, the command line that repeats a training, the form of the window, and what is kept of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "learning/trainer.h"
#include "parameters/form.h"
#include "parameters/hyper.h"

namespace reclab {

struct TrainingPlan {
  std::int64_t steps = 2000;
  std::int64_t until = 0;        ///< where it ends before that, at a rate that is that of all steps; 0: it does not
  std::int64_t judge_every = 0;  ///< steps between two judgements; 0: a twentieth of all steps
  WindowOptions windows;         ///< of a file
  TrainingOptions options;
  bool operator==(const TrainingPlan&) const = default;
};

/// One option of a plan.
struct TrainingField {
  std::string flag;      ///< "--weight-decay"
  std::string argument;  ///< what --help calls its value, "X"
  /// `key`: its name in files that are kept, "weight_decay"; kind, default and range; of an optimiser's reals check(OptimiserOptions) looks
  /// at the range; `text`: of --help, where `usual` stands behind it in brackets.
  HyperSpec row;
  std::string usual{};
  bool always = false;   ///< in the command line where it is the default too
  bool of_file = false;  ///< of a file that is learned from, and of no task
  std::function<HyperValue(const TrainingPlan&)> get{};
  std::function<void(TrainingPlan&, const HyperValue&)> set{};
  std::function<std::vector<std::string>&(TrainingPlan&)> list{};  ///< of one that is a list of names, instead of get and set
  std::function<bool(const TrainingPlan&)> applies{};              ///< whether it does anything, beside the others; empty: it always does
  FormRow form{};
};

/// All, in the order of the command line.
const std::vector<TrainingField>& training_fields();

}  // namespace reclab
