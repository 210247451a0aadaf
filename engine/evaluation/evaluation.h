// SPDX-License-Identifier: GPL-3.0-or-later
// Evaluation: weights judged over many sequences that their training never saw, by length, position, delay, class and horizon, beside
// baselines on the same sequences, with confidence intervals over sequences.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "evaluation/score.h"
#include "experiment/experiment.h"
#include "learning/examples.h"
#include "parameters/field.h"

namespace reclab {

struct EvaluationPlan {
  std::vector<std::int64_t> lengths{};  ///< steps, rising; none: the run's own
  std::int64_t sequences = 100;         ///< of each seed and length; of a file at most as many windows as stand side by side
  std::vector<std::uint64_t> seeds{};   ///< of a task's sequences; none: the run's own
  std::vector<std::string> others{};    ///< further models: lines "ID --weights FILE --set KEY=VALUE"
  double confidence = 0.95;             ///< of the intervals
  std::int64_t batch = 16;              ///< sequences side by side, at most; no result depends on it
  WindowOptions windows{};              ///< of a file; its length is each of `lengths`
  std::int64_t horizon = 10;            ///< of a file that is to be foretold: steps ahead, up to which outputs are fed back; 0: none
};
/// In the order of the command line.
const std::vector<PlanField<EvaluationPlan>>& evaluation_fields();

/// One number of the table. `by` says of which steps: all of a sequence, or the part [from, to].
struct EvaluationRow {
  std::string model{};  ///< of EvaluationTable::models, or a baseline's name
  std::int64_t length = 0;
  ScoredBy by = ScoredBy::length;
  std::int64_t from = -1, to = -1;
  std::int64_t sequences = 0;  ///< that have such steps
  Estimate loss{}, metric{};
};

struct EvaluatedModel {
  std::string name{};     ///< the preset's id, with a number behind it where another before has the same
  std::string title{};    ///< of the preset; of a baseline its words
  std::string weights{};  ///< where they are from, in words; empty for a baseline
  std::string form{}, dtype{}, device{};
};
/// A model that cannot be run at a length, and why.
struct NotEvaluated {
  std::string model{};
  std::int64_t length = 0;
  Sentence why{};
};

struct EvaluationTable {
  std::string data{};       ///< the sequences, in words
  std::string metric{};     ///< "accuracy" or "squared error"
  std::string intervals{};  ///< how they are made, in words
  double confidence = 0.0;  ///< of 1
  std::vector<EvaluatedModel> models{}, baselines{};
  std::vector<EvaluationRow> rows{};  ///< by length, then by model, then by parts
  std::vector<NotEvaluated> missing{};
  std::string command{};  ///< that makes it again
  bool shares() const { return metric == "accuracy"; }
};

/// A model that is judged beside the request's, by a name.
struct JudgedRequest {
  std::string name{};
  RunRequest request{};  ///< its sequence is not looked at
};

/// Judges the request's model and the plan's others on the task, or the file, that the request's sequence was made by. Sequences of a task
/// are evaluation_sequence(); of a file the windows that a training with the same held-out share holds out. A model that cannot be run at a
/// length is in `missing`, and the others go on. The same bits for any number of threads and any batch on the CPU. Memory is that of the
/// sequences side by side and of one segment of the model. Throws Error for a request that no model can be judged by, and Cancelled.
EvaluationTable evaluate(const Registry& registry, const PresetLibrary& presets, const RunRequest& request, const EvaluationPlan& plan,
                         const Progress& progress, std::stop_token stop);
/// The same with models that are no lines, behind those that are; `name`: of the request's model. No command is in the table where two of
/// them learned in folders of the same name.
EvaluationTable evaluate(const Registry& registry, const PresetLibrary& presets, const JudgedRequest& model,
                         const std::vector<JudgedRequest>& beside, const EvaluationPlan& plan, const Progress& progress,
                         std::stop_token stop);

/// The table as arrays of the kind `evaluation`, K lengths and as many parts as the largest length has, NaN where there is none:
///   evaluation/<model>/<by>/loss, loss_low, loss_high, metric, metric_low, metric_high, sequences, from, to [K, parts]
///   evaluation/length [K]
Trace trace_of(const EvaluationTable& table);
/// Writes evaluation.csv, a line a row, trace.npz and manifest.json, all at once (AtomicFolder).
void export_evaluation(const EvaluationTable& table, const std::filesystem::path& folder);
/// As evaluation.csv has it.
std::string csv_of(const EvaluationTable& table);

}  // namespace reclab
