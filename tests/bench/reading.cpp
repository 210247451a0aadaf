// SPDX-License-Identifier: GPL-3.0-or-later
// The opening of a long table of text: a column of times and one of values.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "array/error.h"
#include "inputs.h"
#include "rows.h"
#include "sequence/sequence.h"

namespace reclab::bench {

Row reading(const std::string& name, const std::filesystem::path& folder) {
  constexpr std::int64_t steps = 10'000'000;
  struct Data {
    std::filesystem::path file;
    std::vector<double> time, value;
    Sequence opened;
  };
  auto data = std::make_shared<Data>();
  Data& d = *data;
  d.file = folder / "steps.csv";
  Rng rng(1);
  std::string text = "t,value\n";
  for (std::int64_t i = 0; i < steps; ++i) {
    d.time.push_back(static_cast<double>(i) / 100.0);
    d.value.push_back(std::round(1e6 * rng.normal()) / 1e6);
    char line[64];
    char* end = std::to_chars(line, line + 30, d.time.back()).ptr;
    *end++ = ',';
    end = std::to_chars(end, line + 63, d.value.back()).ptr;
    *end++ = '\n';
    text.append(line, end);
  }
  {
    std::ofstream file(d.file, std::ios::binary);
    file << text;
    if (!file.flush()) throw Error(d.file.string() + " could not be written: make room for " + std::to_string(text.size()) + " bytes.");
  }
  Row row;
  row.name = name;
  row.text = "opening a CSV file of " + std::to_string(steps) + " steps, a time and a value each, " +
             std::to_string(text.size() / 1'000'000) + " MB, that the system holds in memory; ours hashes it too";
  Part part{"opening", [&d] {
              d.opened = {};
              LoadOptions options;
              options.standardise = false;
              d.opened = load_sequence(d.file, options);
            }};
  part.bytes = static_cast<double>(text.size()) + 16.0 * static_cast<double>(steps);
  part.floor = "reads the file, writes two float64 a step";
  row.parts.push_back(part);
  row.error = [&d] {
    if (d.opened.length != steps || d.opened.width != 1) throw Error("The table was not read as one column of values beside its times.");
    return std::max(difference(d.opened.input, d.value), difference(d.opened.time, d.time));
  };
  row.save = [&d](NpzWriter& file) {
    file.add("time", {steps}, std::span<const double>(d.time));
    file.add("value", {steps}, std::span<const double>(d.value));
  };
  row.kept = data;
  return row;
}

}  // namespace reclab::bench
