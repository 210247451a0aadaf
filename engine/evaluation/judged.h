// SPDX-License-Identifier: GPL-3.0-or-later
// Models that are judged, and the sequences that they are judged on. Inside the floor only.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evaluation/evaluation.h"
#include "execution/model.h"
#include "experiment/prepared.h"

namespace reclab {

/// Sequences by number, each a value of its number alone.
struct Judged {
  std::int64_t count = 0;
  std::int64_t length = 0;
  std::function<Sequence(std::int64_t)> at{};
  std::shared_ptr<const Examples> examples{};  ///< that a training learns from, of the same length
};

/// A model with its weights.
struct JudgedModel {
  EvaluatedModel about;
  std::unique_ptr<Prepared> prepared;  ///< before the model that refers to it
  std::unique_ptr<Model> model;
  Form form = Form::sequential;
};

/// Runs the model over the sequences 0 .. count - 1, `lengths` of which are side by side, some batches at a time. `loss_of` makes the loss
/// of a sequence; `done` is given each sequence's, in their order. A value that is not finite is an Error.
struct JudgedRun {
  std::int64_t count = 0, length = 0;
  std::function<Sequence(std::int64_t)> at{};
  std::function<std::unique_ptr<SequenceLoss>(const Sequence&)> loss_of{};
  std::function<void(std::int64_t, const Sequence&, const SequenceLoss&)> done{};
  std::function<void(std::int64_t)> progress{};  ///< so many are done
};
void run_judged(const JudgedModel& judged, const JudgedRun& run, std::int64_t batch, std::stop_token stop);

/// Adds the errors by horizon to the table: each model's outputs are fed back as inputs.
void add_horizons(const std::vector<JudgedModel>& models, const std::shared_ptr<const Sequence>& file, const EvaluationPlan& plan,
                  std::int64_t length, EvaluationTable& table, std::stop_token stop);

/// The rows of these means.
void add_rows(EvaluationTable& table, const std::string& model, std::int64_t length, const ScoreMeans& means);

}  // namespace reclab
