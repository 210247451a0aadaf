// SPDX-License-Identifier: GPL-3.0-or-later
// The output of `reclab capacity`.
#include "evaluation/capacity.h"

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "files/files.h"
#include "models/registry.h"
#include "study/subcommand.h"
#include "text.h"
#include "trace/writers.h"

namespace reclab::cli {
namespace {

using Json = nlohmann::ordered_json;

StudyAsked asked(const StudyOptions& options, const PresetLibrary& all) { return {{builtin_registry(), all}, values_given(options)}; }

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

void show_capacity(const StudyAsked&, const StudyResult& result, const StudyOutput& output) {
  const auto whole = result.get<CapacityTable>();
  const CapacityTable& table = *whole;
  if (!output.file.empty()) {
    AtomicFile file(output.file);
    file.write("map,features,rule,pairs,load,error,error_low,error_high\n");
    for (const CapacityRow& row : table.rows) {
      std::string line =
          row.map + "," + std::to_string(row.features) + "," + std::string(to_string(row.rule)) + "," + std::to_string(row.pairs);
      const double load = static_cast<double>(row.pairs) / static_cast<double>(row.features);
      for (const double value : {load, row.error.mean, row.error.low, row.error.high}) append_number(line += ",", value);
      file.write(line + "\n");
    }
    file.commit();
  }
  if (output.json) {
    Json json{{"rows", Json::array()}, {"knees", Json::array()}};
    for (const CapacityRow& row : table.rows)
      json["rows"].push_back({{"map", row.map},
                              {"features", row.features},
                              {"rule", to_string(row.rule)},
                              {"pairs", row.pairs},
                              {"error", number(row.error.mean)},
                              {"error_low", number(row.error.low)},
                              {"error_high", number(row.error.high)}});
    for (const CapacityKnee& knee : table.knees)
      json["knees"].push_back({{"map", knee.map}, {"features", knee.features}, {"low", knee.low}, {"high", knee.high}});
    std::cout << json.dump(2) << '\n';
    return;
  }
  TextTable rows(2);
  std::vector<std::string> names{"map", "features n", "held without error"};
  for (const double load : capacity_loads) names.push_back("N = " + number_text(load, 3) + " n");
  for (const WriteRule rule : {WriteRule::sum, WriteRule::delta, WriteRule::best}) {
    rows.heading(rule == WriteRule::sum     ? "Error of sums, S += v φᵀ"
                 : rule == WriteRule::delta ? "Error of the delta rule, S += (v − S φ) φᵀ, of features of length 1"
                                            : "Least error that any S has");
    rows.row(names);
    for (const CapacityKnee& knee : table.knees) {
      std::vector<std::string> cells{knee.map, std::to_string(knee.features),
                                     std::to_string(knee.low) + (knee.high > knee.low ? " to " + std::to_string(knee.high) : "")};
      for (const CapacityRow& row : table.rows)
        if (row.map == knee.map && row.rule == rule) cells.push_back(number_text(row.error.mean, 3));
      rows.row(std::move(cells));
    }
  }
  rows.print(std::cout);
  if (!output.file.empty()) std::cout << "Wrote " << output.file << '\n';
}

}  // namespace

StudyText capacity_text() { return {asked, show_capacity}; }

}  // namespace reclab::cli
