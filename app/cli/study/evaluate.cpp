// SPDX-License-Identifier: GPL-3.0-or-later
// The request and the output of `reclab evaluate`.
#include "evaluation/evaluation.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "models/registry.h"
#include "study/subcommand.h"
#include "text.h"

namespace reclab::cli {
namespace {

using Json = nlohmann::ordered_json;

/// The model, and a sequence of the task or the whole file: the evaluation draws its own.
StudyAsked asked(const StudyOptions& options, const PresetLibrary& all) {
  StudyAsked made{{builtin_registry(), all}, values_given(options)};
  RunRequest& request = made.input.run;
  request = model_request_of(options, all.find(options.id), builtin_registry());
  const EvaluationPlan plan = plan_of(evaluation_fields(), made.values);
  SequenceChoice choice = sequence_of(options.given, request.preset, request.preset.task_length);
  refuse_misplaced(options.given, sequence_fields(), choice);
  refuse_misplaced(options.given, evaluation_fields(), choice);
  if (const auto& target = choice.load.target; std::ranges::find(target, "next") != target.end())
    usage_error("--target", "is \"next\"; leave it out, and give --ahead 1.");
  if (options.is_set("--ahead") && !choice.load.target.empty()) usage_error("--ahead", "belongs to files without a target of their own.");
  if (!plan.lengths.empty()) choice.make.length = plan.lengths.front();
  request.sequence = load_sequence(choice);
  take_sizes(options, request, !options.is_set("--json"));
  return made;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json json_of(const EvaluationTable& table) {
  Json json{{"data", table.data},      {"metric", table.metric},     {"intervals", table.intervals}, {"confidence", table.confidence},
            {"models", Json::array()}, {"baselines", Json::array()}, {"rows", Json::array()},        {"missing", Json::array()}};
  for (const EvaluatedModel& model : table.models)
    json["models"].push_back({{"name", model.name},
                              {"title", model.title},
                              {"weights", model.weights},
                              {"form", model.form},
                              {"dtype", model.dtype},
                              {"device", model.device}});
  for (const EvaluatedModel& baseline : table.baselines) json["baselines"].push_back({{"name", baseline.name}, {"text", baseline.title}});
  for (const EvaluationRow& row : table.rows)
    json["rows"].push_back({{"model", row.model},
                            {"length", row.length},
                            {"by", to_string(row.by)},
                            {"from", row.from},
                            {"to", row.to},
                            {"sequences", row.sequences},
                            {"loss", number(row.loss.mean)},
                            {"loss_low", number(row.loss.low)},
                            {"loss_high", number(row.loss.high)},
                            {"metric", number(row.metric.mean)},
                            {"metric_low", number(row.metric.low)},
                            {"metric_high", number(row.metric.high)}});
  for (const NotEvaluated& one : table.missing)
    json["missing"].push_back({{"model", one.model}, {"length", one.length}, {"why", one.why.terminal_text()}});
  json["command"] = table.command;
  return json;
}

std::string text_of(const Estimate& estimate) {
  std::string text = number_text(estimate.mean, 4);
  if (std::isfinite(estimate.low)) text += "  " + number_text(estimate.low, 3) + " to " + number_text(estimate.high, 3);
  return text;
}

void print(const EvaluationTable& table) {
  std::cout << heading(joined([&] {
    std::vector<std::string> names;
    for (const EvaluatedModel& model : table.models) names.push_back(model.name);
    return names;
  }())) << " on "
            << table.data << '\n';
  TextTable models(2);
  for (const EvaluatedModel& model : table.models)
    models.row({model.name, model.title + ", weights " + model.weights + "; " + model.form + ", " + model.dtype + ", " + model.device});
  for (const EvaluatedModel& baseline : table.baselines) models.row({baseline.name, baseline.title});
  models.print(std::cout);
  TextTable rows(2);
  constexpr std::int64_t most = 20;  // parts of one length that are read at a glance
  std::string hidden;
  for (const ScoredBy by : scored_by) {
    const auto of_part = [&](const EvaluationRow& row) { return row.by == by; };
    const auto last = std::find_if(table.rows.rbegin(), table.rows.rend(), of_part);
    if (last == table.rows.rend()) continue;
    const auto shown = [&](const EvaluationRow& row) { return row.by == by && (by == ScoredBy::length || row.length == last->length); };
    const std::string name(to_string(by));
    if (by != ScoredBy::length &&
        std::ranges::count_if(table.rows, [&](const EvaluationRow& row) { return shown(row) && row.model == last->model; }) > most) {
      hidden += (hidden.empty() ? "" : " and ") + name;
      continue;
    }
    rows.heading("By " + name + (by == ScoredBy::length ? "" : ", of " + counted(last->length, "step")));
    rows.row({name, "model", "sequences", "loss", table.metric});
    for (const EvaluationRow& row : table.rows)
      if (shown(row))
        rows.row({row.from == row.to ? std::to_string(row.from) : std::to_string(row.from) + " to " + std::to_string(row.to), row.model,
                  std::to_string(row.sequences), text_of(row.loss), text_of(row.metric)});
  }
  rows.print(std::cout);
  for (const NotEvaluated& one : table.missing)
    paragraph(std::cout, one.model + " on " + counted(one.length, "step") + ": " + one.why.terminal_text());
  paragraph(std::cout, "Intervals: " + table.intervals + "." +
                           (hidden.empty() ? "" : " By " + hidden + " there are more rows: --export DIR, or --json, has them."));
}

void show_evaluation(const StudyAsked&, const StudyResult& result, const StudyOutput& output) {
  const auto whole = result.get<EvaluationTable>();
  const EvaluationTable& table = *whole;
  if (!output.file.empty()) export_evaluation(table, output.file);
  if (output.json) {
    std::cout << json_of(table).dump(2) << '\n';
    return;
  }
  print(table);
  if (!output.file.empty()) std::cout << "Wrote " << output.file << ": evaluation.csv, trace.npz and manifest.json\n";
}

}  // namespace

StudyText evaluate_text() { return {asked, show_evaluation}; }

}  // namespace reclab::cli
