// SPDX-License-Identifier: GPL-3.0-or-later
// The output of `reclab forcing`.
#include "evaluation/forcing.h"

#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "files/files.h"
#include "study/subcommand.h"
#include "text.h"
#include "trace/writers.h"

namespace reclab::cli {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no infinity: null.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

void write(const ForcingTable& table, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const auto line_of = [](std::string first, double second) {
    append_number(first += ",", second);
    return first + "\n";
  };
  AtomicFile exponents(folder / "exponents.csv"), error(folder / "error.csv");
  exponents.write("share,exponent\n");
  for (const ForcingTable::Row& row : table.rows) {
    std::string share;
    append_number(share, row.strength);
    exponents.write(line_of(std::move(share), row.exponent));
  }
  error.write("steps_ahead,error\n");
  for (std::size_t k = 0; k < table.error.size(); ++k) error.write(line_of(std::to_string(k + 1), table.error[k]));
  exponents.commit();
  error.commit();
}

void show_forcing(const StudyAsked& asked, const StudyResult& result, const StudyOutput& output) {
  const auto whole = result.get<ForcingTable>();
  const ForcingTable& table = *whole;
  const ForcingEstimate& estimate = table.estimate;
  if (!output.file.empty()) write(table, output.file);
  if (output.json) {
    Json json{{"data", table.data},
              {"free_exponent", number(estimate.free_exponent)},
              {"interval", number(estimate.interval)},
              {"geometric", number(estimate.geometric)},
              {"least", number(estimate.least)},
              {"forced_exponent", number(table.forced_exponent)},
              {"exponents", Json::array()},
              {"warm_up", table.warm_up},
              {"valid_steps", table.valid_steps},
              {"error", Json::array()}};
    for (const ForcingTable::Row& row : table.rows)
      json["exponents"].push_back({{"share", row.strength}, {"exponent", number(row.exponent)}});
    for (const double error : table.error) json["error"].push_back(number(error));
    json["command"] = table.command;
    std::cout << json.dump(2) << '\n';
    return;
  }
  std::cout << heading(asked.input.run.preset.title) << " on its own output, beside " << table.data << '\n';
  TextTable rows(2);
  rows.row({"exponent without forcing", number_text(estimate.free_exponent, 4) + " a step"});
  rows.row({"exponent as it is forced", number_text(table.forced_exponent, 4) + " a step"});
  rows.row({"an error doubles in", std::isfinite(estimate.interval) ? number_text(estimate.interval, 4) + " steps" : "no number of steps"});
  rows.row({"share of data, 1 - exp(-exponent)", number_text(estimate.geometric, 4)});
  rows.row(
      {"least share without growth", std::isnan(estimate.least) ? "none: it grows with all data, too" : number_text(estimate.least, 4)});
  rows.row({"foretells freely", counted(table.valid_steps, "step") + " after " + counted(table.warm_up, "step") + " of data"});
  rows.print(std::cout);
  TextTable exponents(2);
  exponents.row({"share of data", "exponent a step"});
  for (const ForcingTable::Row& row : table.rows) exponents.row({number_text(row.strength, 3), number_text(row.exponent, 4)});
  exponents.print(std::cout);
  if (!output.file.empty()) std::cout << "Wrote " << output.file << ": exponents.csv and error.csv\n";
}

}  // namespace

StudyText forcing_text() { return {{}, show_forcing}; }

}  // namespace reclab::cli
