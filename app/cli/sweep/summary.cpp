// SPDX-License-Identifier: GPL-3.0-or-later
#include "sweep/summary.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "files/files.h"
#include "parameters/typed.h"
#include "study/subcommand.h"
#include "sweeps/results.h"
#include "text.h"

namespace reclab::cli {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

/// Their options and those of the output.
std::vector<Field> fields() {
  std::vector<Field> all{summary_fields().begin(), summary_fields().end()};
  all.push_back(file_output("FILE", "The rows of the summary as a CSV file"));
  all.push_back(json_output());
  return all;
}

std::int64_t missing_of(const ResultGroup& group) {
  return group.rows() - group.of(CellState::done) - group.of(CellState::diverged) - group.of(CellState::failed);
}

void print_json(const ResultTable& table, const ResultSummary& summary) {
  Json json{{"measure", summary.measure}, {"by", summary.by}, {"confidence", summary.confidence}, {"groups", Json::array()}};
  for (const ResultGroup& group : summary.groups) {
    Json axes = Json::object();
    for (std::size_t i = 0; i < summary.by.size(); ++i) {
      const ResultAxis& axis = table.axis(summary.by[i]);
      axes[axis.name] = axis.numbers.empty() ? Json(axis.levels[group.levels[i]]) : Json(axis.numbers[group.levels[i]]);
    }
    json["groups"].push_back({{"axes", axes},
                              {"rows", group.rows()},
                              {"values", group.values},
                              {"mean", number(group.mean.mean)},
                              {"low", number(group.mean.low)},
                              {"high", number(group.mean.high)},
                              {"least", number(group.least)},
                              {"greatest", number(group.greatest)},
                              {"diverged", group.of(CellState::diverged)},
                              {"failed", group.of(CellState::failed)},
                              {"missing", missing_of(group)}});
  }
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

void print_table(const ResultTable& table, const ResultSummary& summary) {
  paragraph(std::cout, "Mean of " + printable(summary.measure) + " over the rows of each group, with the " +
                           number_text(100.0 * summary.confidence) + " % interval of Student's t");
  TextTable text(2);
  std::vector<std::string> names;
  for (const std::string& name : summary.by) names.push_back(printable(name));
  const std::size_t axes = names.size();
  for (const char* name : {"mean", "from", "to", "values", "without"}) names.emplace_back(name);
  text.row(std::move(names));
  for (const ResultGroup& group : summary.groups) {
    std::vector<std::string> row;
    for (std::size_t i = 0; i < axes; ++i) row.push_back(printable(table.axis(summary.by[i]).levels[group.levels[i]]));
    for (const double value : {group.mean.mean, group.mean.low, group.mean.high})
      row.push_back(std::isnan(value) ? "" : number_text(value));
    row.push_back(std::to_string(group.values));
    std::vector<std::string> without;
    for (std::size_t i = 0; i < cell_states.size(); ++i)
      if (group.count[i] > 0 && static_cast<CellState>(i) != CellState::done)
        without.push_back(std::to_string(group.count[i]) + " " + std::string(cell_states[i]));
    if (const std::int64_t none = group.of(CellState::done) - group.values; none > 0)
      without.push_back(std::to_string(none) + " not a number");
    row.push_back(joined(without));
    text.row(std::move(row));
  }
  for (std::size_t i = 0; i < 4; ++i) text.right_align(axes + i);
  text.print(std::cout);
}

int tell_summary(const SummaryOptions& options) {
  const auto given = [&](const std::string& flag) {
    const auto found = options.given.find(flag);
    return found == options.given.end() ? std::string() : found->second;
  };
  FieldTexts values;
  for (const PlanField<SummaryPlan>& field : summary_fields())
    if (const std::string text = given(field.flag); !text.empty()) values.emplace_back(field.row.key, as_text(typed_value(field, text)));
  const SummaryPlan plan = plan_of(summary_fields(), values);
  const ResultTable table = read_results(options.place, plan.measure);
  const ResultSummary summary = summary_of(table, plan);
  const std::string file = given("--export");
  if (!file.empty()) write_file(file, summary_csv(table, summary));
  if (!given("--json").empty()) {
    print_json(table, summary);
    return 0;
  }
  print_table(table, summary);
  if (!file.empty()) std::cout << "Wrote " << file << '\n';
  return 0;
}

}  // namespace

void add_summary(CLI::App& sweep, SummaryOptions& options, int& status) {
  CLI::App* made =
      sweep.add_subcommand("summary", "A measure by the values of axes: means with intervals over seeds, and how many cells lack");
  made->add_option("table", options.place, "A CSV table, as of collect, or the folder of a sweep")->required()->type_name("FILE");
  add_fields(*made, fields(), options.given);
  made->callback([&options, &status] { status = tell_summary(options); });
}

}  // namespace reclab::cli
