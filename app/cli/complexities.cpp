// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab complexities`.
#include "timing/complexity.h"

#include <algorithm>
#include <iostream>

#include "array/error.h"
#include "commands.h"
#include "files/files.h"
#include "models/registry.h"
#include "parameters/nearest.h"
#include "progress_line.h"
#include "text.h"

namespace reclab::cli {
namespace {

constexpr std::int64_t longest = std::int64_t{1} << 24;

/// The rows that are asked for and whose preset there is.
std::vector<StatedComplexity> chosen(const ComplexitiesOptions& options, const PresetLibrary& all) {
  std::vector<std::string> known;
  for (const StatedComplexity& row : stated_complexities()) known.emplace_back(row.preset);
  for (const std::string& id : options.ids)
    if (std::ranges::find(known, id) == known.end())
      usage_error("id", "\"" + id + "\" is in no table of the survey; those are of " + joined(known) + ".");
  std::vector<StatedComplexity> rows;
  for (const StatedComplexity& row : stated_complexities()) {
    const std::string id(row.preset);
    const bool wanted = options.ids.empty() || std::ranges::find(options.ids, id) != options.ids.end();
    if (wanted && std::ranges::find(all.presets(), id, &Preset::id) != all.presets().end()) rows.push_back(row);
  }
  return rows;
}

std::string with_band(const Banded& band) {
  return number_text(band.value, 3) + " (" + number_text(band.low, 3) + "–" + number_text(band.high, 3) + ")";
}

void print(const std::vector<ComplexityRow>& rows) {
  TextTable table(2);
  table.row({"model", "form", "time", "as L^", "measured", "memory", "as L^", "measured"});
  for (const ComplexityRow& row : rows)
    table.row({row.model, row.form, row.stated_time, number_text(row.stated_time_exponent, 3), with_band(row.time), row.stated_space,
               number_text(row.stated_space_exponent, 3), number_text(row.space.value, 3)});
  std::cout << heading("Complexities")
            << ": as the survey states them for L steps and d features (Tables 2 and 3), and of a forward pass here\n";
  table.print(std::cout);
  for (const ComplexityRow& row : rows)
    if (!agrees(row.stated_time_exponent, row.time) || !agrees(row.stated_space_exponent, row.space) || !row.of_time.empty())
      paragraph(std::cout, row.model + ": " + verdict_of(row));
}

}  // namespace

int complexities(const ComplexitiesOptions& options, Interrupt& interrupt) {
  const PresetLibrary all = library();
  std::vector<std::int64_t> lengths;
  for (const std::string& text : options.lengths) lengths.push_back(*integer("--lengths", text, 1, longest));
  if (lengths.empty()) lengths = complexity_lengths();
  std::ranges::sort(lengths);
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  if (lengths.size() < 2) usage_error("--lengths", "names one length; an exponent needs two.");
  const std::vector<StatedComplexity> wanted = chosen(options, all);

  const auto rows = computed(interrupt, "during the timing", [&](const Progress& progress) {
    std::vector<ComplexityRow> measured;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Progress part = !progress ? Progress() : [&, i](double fraction, std::string_view stage) {
        progress((static_cast<double>(i) + fraction) / static_cast<double>(wanted.size()),
                 std::string(wanted[i].preset) + ", " + std::string(stage));
      };
      const auto row = measure_complexity(builtin_registry(), all, wanted[i], lengths, part, interrupt.token());
      if (!row)
        throw Error(std::string(wanted[i].preset) + " cannot be timed at all of these lengths: give shorter ones with --lengths.",
                    {.model = std::string(wanted[i].preset)});
      measured.push_back(*row);
    }
    return measured;
  });
  interrupt.enter(Interrupt::Phase::writing);
  if (!options.file.empty()) write_file(options.file, options.file.ends_with(".json") ? to_json(rows) : to_csv(rows));
  if (options.json)
    std::cout << to_json(rows);
  else
    print(rows);
  if (!options.file.empty() && !options.json) std::cout << "Wrote " << options.file << '\n';
  return 0;
}

}  // namespace reclab::cli
