// SPDX-License-Identifier: GPL-3.0-or-later
// Weights judged over many sequences, lengths and seeds: an EvaluationTable.
#include "evaluation/evaluation.h"
#include "studies/study.h"

namespace reclab::studies_by_name {

Study evaluate() {
  Study made;
  made.command = "evaluate";
  made.summary = "Judge weights on many sequences that training never saw: loss, metric and baselines by length, position, delay and class";
  made.cancelled_where = "during the evaluation";
  made.fields = {evaluation_fields().begin(), evaluation_fields().end()};
  made.fields.push_back(file_output("DIR", "Folder for evaluation.csv, trace.npz and manifest.json"));
  made.fields.push_back(json_output());
  made.takes_form = true;
  made.compute = [](const StudyInput& input, const FieldTexts& values, const StudyReport& report, std::stop_token stop) {
    return std::make_shared<EvaluationTable>(
        evaluate(input.registry, input.presets, input.run, plan_of(evaluation_fields(), values), report.progress, std::move(stop)));
  };
  return made;
}

}  // namespace reclab::studies_by_name
