// SPDX-License-Identifier: GPL-3.0-or-later
// The survey's tables of complexities beside what was measured: the estimator on costs that are known, the file that is shipped, and a
// measurement.
#include "timing/complexity.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "array/error.h"
#include "files/files.h"
#include "models/registry.h"
#include "places.h"
#include "test.h"

using namespace reclab;

namespace {

PresetLibrary shipped() { return {builtin_registry(), {test::source("presets")}}; }

}  // namespace

TEST_CASE("the exponent of what is stated is that of its expression") {
  const auto lengths = complexity_lengths();
  CHECK_EQUAL(lengths.front(), 512);
  CHECK_EQUAL(lengths.back(), 16384);
  std::set<std::string> rows;
  for (const StatedComplexity& row : stated_complexities()) {
    rows.insert(std::string(row.model));
    const double time = exponent_of(row.time_of, lengths, 16.0), space = exponent_of(row.space_of, lengths, 16.0);
    const std::string said(row.time);
    if (said.find("L²") != std::string::npos)
      CHECK_CLOSE(time, 2.0, 1e-12);
    else if (said.find("log L") != std::string::npos)
      CHECK_SAYS(time > 1.02 && time < 1.13, said);  // L (log L + d)
    else
      CHECK_CLOSE(time, 1.0, 1e-12);
    CHECK_SAYS(space >= 0.0 && space <= 2.0, std::string(row.space));
  }
  CHECK_EQUAL(rows.size(), stated_complexities().size());
  // log2 of 512 and of 16384 are 9 and 14; between the ends L log L grows by 32 * 14 / 9.
  CHECK_CLOSE(exponent_of([](double l, double) { return l * std::log2(l); }, std::vector<std::int64_t>{512, 16384}, 1.0),
              std::log(32.0 * 14.0 / 9.0) / std::log(32.0), 1e-12);
}

TEST_CASE("the table that is shipped is of the rows that are stated, and says why where it differs") {
  const std::string file = test::source("resources/complexities.json");
  const std::vector<ComplexityRow> rows = complexities_from_json(read_file(file), file);
  CHECK_EQUAL(to_json(rows), read_file(file));
  const PresetLibrary all = shipped();
  std::size_t i = 0;
  std::vector<std::string> missing;
  for (const StatedComplexity& stated : stated_complexities()) {
    if (std::ranges::find(all.presets(), stated.preset, &Preset::id) == all.presets().end()) continue;
    if (i == rows.size() || rows[i].preset != stated.preset) {
      missing.emplace_back(stated.preset);
      continue;
    }
    const ComplexityRow& row = rows[i++];
    CHECK_EQUAL(row.form, std::string(stated.form));
    CHECK_EQUAL(row.stated_time, std::string(stated.time));
    CHECK_SAYS(row.lengths == complexity_lengths(), row.preset);
    CHECK_SAYS(row.time.low <= row.time.value && row.time.value <= row.time.high, row.preset);
    CHECK_SAYS(agrees(row.stated_time_exponent, row.time) || !row.of_time.empty(), row.preset + ": " + verdict_of(row));
    CHECK_SAYS(agrees(row.stated_space_exponent, row.space) || !row.of_space.empty(), row.preset + ": " + verdict_of(row));
  }
  // The file is made on an idle machine, so a preset may be there before its row is.
  for (const std::string& preset : missing)
    std::printf("%s is missing: make the file again with `reclab complexities --export resources/complexities.json`\n", preset.c_str());
  CHECK_SAYS(missing.empty(), std::to_string(missing.size()) + " rows are missing");
  CHECK_EQUAL(i, rows.size());
}

TEST_CASE("a row is measured") {
  const PresetLibrary all = shipped();
  const std::vector<std::int64_t> lengths{64, 128};
  const auto rwkv = std::ranges::find(stated_complexities(), "rwkv-4", &StatedComplexity::preset);
  const auto row = measure_complexity(builtin_registry(), all, *rwkv, lengths, {}, {});
  CHECK(row.has_value());
  CHECK(row->time.value > 0.0 && row->time.value < 3.0);
  CHECK_SAYS(verdict_of(*row).starts_with("Time ") && verdict_of(*row).find("; memory ") != std::string::npos, verdict_of(*row));
  const std::string csv = to_csv(std::vector{*row});
  CHECK_SAYS(csv.find("\n2,3.2,RWKV,yes,rwkv-4,sequential,") != std::string::npos, csv);
  std::stop_source stopped;
  stopped.request_stop();
  bool cancelled = false;
  try {
    static_cast<void>(measure_complexity(builtin_registry(), all, *rwkv, lengths, {}, stopped.get_token()));
  } catch (const Cancelled&) {
    cancelled = true;
  }
  CHECK(cancelled);
}

TEST_CASE("a file that is no table is one sentence") {
  for (const std::string text : {"", "{}", "[1]", R"({"rows": [{"table": 2}]})"}) {
    try {
      static_cast<void>(complexities_from_json(text, "here.json"));
      CHECK(false);
    } catch (const Error& error) {
      CHECK_SAYS(std::string(error.what()).starts_with("here.json is no table of complexities"), error.what());
    }
  }
}
