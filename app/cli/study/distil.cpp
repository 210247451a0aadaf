// SPDX-License-Identifier: GPL-3.0-or-later
// The output of `reclab distill`.
#include "distillation/distil.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "experiment/command/command.h"
#include "study/subcommand.h"
#include "text.h"

namespace reclab::cli {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Distillation& found) {
  Json json{{"id", found.id},         {"modes", found.modes},           {"taps", found.taps},
            {"whole", found.whole},   {"why_not_whole", found.why_not}, {"model", found.preset.id},
            {"errors", Json::array()}};
  for (const ModesRow& row : found.rows)
    json["errors"].push_back({{"modes", row.modes},
                              {"l2", row.l2},
                              {"largest", row.largest},
                              {"hankel", row.hankel},
                              {"hankel_bound", row.below},
                              {"l2_bound", row.above}});
  json["singular_values"] = found.singular_values;
  json["filters"] = Json::array();
  for (const DistilledFilter& filter : found.filters) {
    Json channels = Json::array();
    for (std::size_t c = 0; c < filter.fits.size(); ++c) {
      const ModalFit& fit = filter.fits[c].back();
      Json modes = Json::array();
      for (std::size_t n = 0; n < fit.filter.poles.size(); ++n)
        modes.push_back({{"pole", {fit.filter.poles[n].real(), fit.filter.poles[n].imag()}},
                         {"residue", {fit.filter.residues[n].real(), fit.filter.residues[n].imag()}}});
      channels.push_back({{"l2", fit.error.l2},
                          {"largest", fit.error.largest},
                          {"hankel", fit.error.hankel},
                          {"direct", fit.filter.direct},
                          {"modes", modes},
                          {"singular_values", filter.spectra[c].taps.values}});
    }
    json["filters"].push_back({{"layer", filter.filter.layer}, {"filter", filter.filter.number}, {"channels", channels}});
  }
  return json;
}

void print(const Distillation& found) {
  std::int64_t channels = 0;
  for (const DistilledFilter& filter : found.filters) channels += filter.filter.channels;
  std::cout << heading(found.title) << ": " << counted(std::ssize(found.filters), "long filter") << ", " << counted(channels, "channel")
            << ", fitted over " << counted(found.taps, "step") << ". Errors of the worst channel\n";
  TextTable table(2);
  table.row({"modes", "l2", "at most", "largest tap", "Hankel", "at least"});
  for (const ModesRow& row : found.rows) {
    table.row({std::to_string(row.modes), number_text(row.l2, 3), row.above < 1.0 ? number_text(row.above, 3) : "",
               number_text(row.largest, 3), number_text(row.hankel, 3), number_text(row.below, 3)});
  }
  for (const std::size_t column : {0, 1, 2, 3, 4, 5}) table.right_align(column);
  table.print(std::cout);
  paragraph(std::cout,
            "l2 is the norm of the difference over that of the filter, and is at most what balanced truncation leaves (nothing where that "
            "says nothing); Hankel the Hankel norm of the "
            "difference over that of the filter, which is at least the next Hankel singular value whatever the fit. Both poles of a "
            "conjugate pair count.");
  if (!found.whole)
    paragraph(
        std::cout,
        "The first filter alone is made a model of, since what stands round the filters has no place in an architecture with modes: " +
            found.why_not + ".");
}

void show_filters(const StudyAsked&, const StudyResult& result, const StudyOutput& output) {
  const auto whole = result.get<Distillation>();
  const Distillation& found = *whole;
  const std::string& folder = output.file;
  if (!folder.empty()) export_distillation(found, folder);
  if (output.json) {
    std::cout << json_of(found).dump(2) << '\n';
    return;
  }
  print(found);
  if (folder.empty()) return;
  std::cout << "Wrote " << folder << ": "
            << (found.whole ? "the model with its filters as modes" : "the first filter as a model of its own")
            << ", errors.csv and singular_values.csv\n";
  std::cout << "Open it with: RECLAB_PRESETS=" << shell_word(folder) << " reclab run " << found.preset.id << " --weights "
            << shell_word((std::filesystem::path(folder) / weights_file(found)).string()) << '\n';
}

}  // namespace

StudyText distil_text() { return {{}, show_filters}; }

}  // namespace reclab::cli
