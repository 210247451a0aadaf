// SPDX-License-Identifier: GPL-3.0-or-later
#include <nlohmann/json.hpp>
#include <sstream>

#include "distillation/distil.h"
#include "files/files.h"
#include "files/npz.h"

namespace reclab {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const HyperValue& value) {
  return std::visit([](const auto& own) { return Json(own); }, value);
}

std::string preset_json(const Preset& preset) {
  Json json{{"schema", 1},           {"id", preset.id},         {"architecture", preset.architecture},
            {"title", preset.title}, {"family", preset.family}, {"idea", preset.idea}};
  json["hyper"] = Json::object();
  for (const auto& [key, value] : preset.hyper) json["hyper"][key] = json_of(value);
  json["sequence"] = {{"task", preset.task}, {"length", preset.task_length}, {"seed", preset.task_seed}};
  const Hyper set = task_parameters(preset.task, preset.task_set);
  for (const auto& [key, text] : preset.task_set) json["sequence"]["parameters"][key] = json_of(set.value(key));
  json["look_at"] = preset.look_at;
  json["descends_from"] = Json::array();
  for (const Descent& descent : preset.descends_from) json["descends_from"].push_back({{"id", descent.id}, {"changed", descent.changed}});
  json["source"] = {{"authors", preset.source.authors},
                    {"year", preset.source.year},
                    {"title", preset.source.title},
                    {"venue", preset.source.venue},
                    {"url", preset.source.url}};
  return json.dump(2) + "\n";
}

}  // namespace

std::string to_csv(const std::vector<ModesRow>& rows) {
  std::ostringstream text;
  text.precision(17);
  text << "modes,error_l2,error_largest,error_hankel,hankel_bound,l2_bound\n";
  for (const ModesRow& row : rows)
    text << row.modes << ',' << row.l2 << ',' << row.largest << ',' << row.hankel << ',' << row.below << ',' << row.above << '\n';
  return text.str();
}

std::string singular_values_csv(const Distillation& found) {
  std::ostringstream text;
  text.precision(17);
  text << "layer,filter,channel,number,value\n";
  for (const DistilledFilter& filter : found.filters)
    for (std::size_t c = 0; c < filter.spectra.size(); ++c)
      for (std::size_t k = 0; k < filter.spectra[c].taps.values.size(); ++k)
        text << filter.filter.layer << ',' << filter.filter.number << ',' << c << ',' << k + 1 << ',' << filter.spectra[c].taps.values[k]
             << '\n';
  return text.str();
}

std::string weights_file(const Distillation& found) { return found.preset.id + ".npz"; }

void export_distillation(const Distillation& found, const std::filesystem::path& folder) {
  AtomicFolder out(folder);
  const auto text = [&](const std::string& name, const std::string& bytes) {
    AtomicFile& file = out.file(name);
    file.write(bytes);
    out.finish(file);
  };
  AtomicFile& weights = out.file(weights_file(found));
  NpzWriter archive(weights);
  for (const Parameters::Entry& entry : found.weights.entries())
    archive.add("param/" + entry.name, entry.shape, std::span<const double>(entry.values));
  archive.finish();
  out.finish(weights);
  text("errors.csv", to_csv(found.rows));
  text("singular_values.csv", singular_values_csv(found));
  text(found.preset.id + ".json", preset_json(found.preset));
  out.commit();
}

}  // namespace reclab
