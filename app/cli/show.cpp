// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab list` and `reclab show`: the lists, and the card of one preset.
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "array/error.h"
#include "commands.h"
#include "experiment/properties.h"
#include "experiment/weights/naming.h"
#include "models/families.h"
#include "models/registry.h"
#include "parameters/nearest.h"
#include "text.h"

namespace reclab::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> names(const std::vector<GateInfo>& gates) {
  std::vector<std::string> all;
  for (const GateInfo& gate : gates) all.push_back(gate.name);
  return all;
}

/// The names of the states that a trace records.
std::vector<std::string> names(const std::vector<StateInfo>& states) {
  std::vector<std::string> all;
  for (const StateInfo& state : states)
    if (state.recorded) all.push_back(state.name);
  return all;
}

/// The architecture's own defaults; a card has those of its preset.
Hyper defaults(const Preset& preset) { return Hyper(architecture_of(builtin_registry(), preset)->hyper); }

std::string or_dash(std::string text) { return text.empty() ? "-" : text; }

Json value_json(const HyperValue& value) {
  return std::visit([](const auto& typed) { return Json(typed); }, value);
}

Json source_json(const Reference& source) {
  return {{"authors", source.authors}, {"year", source.year}, {"title", source.title}, {"venue", source.venue}, {"url", source.url}};
}

Json descent_json(const Preset& preset) {
  Json json = Json::array();
  for (const Descent& descent : preset.descends_from) json.push_back({{"id", descent.id}, {"changed", descent.changed}});
  return json;
}

/// The entry of its trained weights, null where it has none.
Json trained_json(const Preset& preset) {
  if (!preset.trained) return nullptr;
  const TrainedPreset& trained = *preset.trained;
  Json parameters = Json::object(), hyper = Json::object();
  for (const auto& [key, value] : trained.task_set) parameters[key] = value;
  for (const auto& [key, value] : trained.hyper) hyper[key] = value_json(value);
  return {{"weights", trained.weights.string()},
          {"command", trained.command},
          {"idea", trained.idea},
          {"hyper", hyper},
          {"sequence", {{"task", trained.task}, {"length", trained.task_length}, {"seed", trained.task_seed}, {"parameters", parameters}}}};
}

/// The presets that descend from it, in the order of the library.
std::vector<std::pair<const Preset*, const Descent*>> descendants(const PresetLibrary& all, const std::string& id) {
  std::vector<std::pair<const Preset*, const Descent*>> found;
  for (const Preset& preset : all.presets())
    for (const Descent& descent : preset.descends_from)
      if (descent.id == id) found.emplace_back(&preset, &descent);
  return found;
}

Json properties_json(const Properties& properties) {
  Json json = Json::object();
  for (const PropertyInfo& info : property_infos()) json[info.id] = properties.*info.field;
  return json;
}

/// The names that it may have in files of the reference implementation; "theta_{i}" is row i, in an entry of its own.
Json reference_json(const ReferenceNames& names, const std::string& parameter) {
  Json json = Json::array();
  for (const auto& [name, transposed] : names.at(parameter)) json.push_back({{"name", name}, {"transposed", transposed}});
  return json;
}

Json card_json(const Card& card, const Hyper& hyper, const Preset& preset, const PresetLibrary& all, std::int64_t inputs) {
  const ReferenceNames names = reference_names(builtin_registry(), preset, inputs);
  Json json = {{"id", card.id},     {"title", card.title},         {"family", card.family}, {"architecture", card.architecture},
               {"idea", card.idea}, {"equations", card.equations}, {"notes", card.notes}};
  const Hyper standard = defaults(preset);
  json["hyper"] = Json::array();
  for (const HyperSpec& row : card.hyper) {
    static constexpr const char* kinds[] = {"flag", "integer", "real", "choice"};
    Json entry = {{"key", row.key},
                  {"symbol", row.symbol},
                  {"unit", row.unit},
                  {"kind", kinds[static_cast<int>(row.kind)]},
                  {"value", value_json(hyper.value(row.key))},
                  {"default", value_json(standard.value(row.key))}};
    if (row.kind == HyperKind::integer || row.kind == HyperKind::real) entry["low"] = row.low, entry["high"] = row.high;
    if (row.kind == HyperKind::choice) entry["choices"] = row.choices;
    entry["initialisation_only"] = row.initialisation_only;
    entry["text"] = row.text;
    json["hyper"].push_back(entry);
  }
  // Of a head, which a run without a target has not, scripts that read "parameters" know nothing.
  json["parameters"] = Json::array();
  json["head"] = Json::array();
  for (const ParameterInfo& info : card.parameters)
    json[info.name.starts_with("head/") ? "head" : "parameters"].push_back({{"name", info.name},
                                                                            {"shape", info.shape},
                                                                            {"text", info.text},
                                                                            {"when", info.when.empty() ? Json() : Json(info.when)},
                                                                            {"reference", reference_json(names, info.name)}});
  json["states"] = Json::array();
  for (const StateInfo& info : card.states)
    json["states"].push_back(
        {{"name", info.name}, {"shape", info.shape}, {"complex", info.complex}, {"recorded", info.recorded}, {"text", info.text}});
  json["gates"] = Json::array();
  for (const GateInfo& info : card.gates) {
    Json range = info.low < info.high ? Json::array({info.low, info.high}) : Json();
    json["gates"].push_back({{"name", info.name}, {"shape", info.shape}, {"range", range}, {"text", info.text}});
  }
  json["spectrum"] = card.spectrum;
  json["forms"] = card.forms;
  json["sequence"] = {{"task", preset.task}, {"length", preset.task_length}, {"seed", preset.task_seed}, {"parameters", Json::object()}};
  const Hyper parameters = task_parameters(preset.task, preset.task_set);
  for (const HyperSpec& row : parameters.table())
    std::visit([&](const auto& value) { json["sequence"]["parameters"][row.key] = value; }, parameters.value(row.key));
  json["look_at"] = preset.look_at;
  json["properties"] = properties_json(properties_of(builtin_registry(), preset, inputs));
  json["descends_from"] = descent_json(preset);
  json["led_to"] = Json::array();
  for (const auto& [child, descent] : descendants(all, preset.id))
    json["led_to"].push_back({{"id", child->id}, {"changed", descent->changed}});
  json["source"] = source_json(card.source);
  json["trained"] = trained_json(preset);
  return json;
}

std::string range_text(const HyperSpec& row) {
  switch (row.kind) {
    case HyperKind::flag: return "true, false";
    case HyperKind::choice: return joined(row.choices);
    default: return number_text(row.low, 6) + " to " + number_text(row.high, 7) + (row.unit.empty() ? "" : " " + row.unit);
  }
}

}  // namespace

std::string task_parameters_text() {
  std::ostringstream out;
  out << "Parameters of the tasks:\n";
  TextTable table(2);
  table.row({"task", "key", "default", "range", ""});
  for (const TaskInfo& task : tasks())
    for (const HyperSpec& row : task.parameters)
      table.row(
          {&row == &task.parameters.front() ? task.name : "", row.key, Hyper(task.parameters).text(row.key), range_text(row), row.text});
  table.right_align(2);
  table.print(out);
  return out.str();
}

namespace {

void section(std::string_view title) { std::cout << '\n' << heading(title) << '\n'; }

/// The models that it was made from and those made from it, one a row with the change.
void print_lineage(const Preset& preset, const PresetLibrary& all, std::size_t indent) {
  const auto led_to = descendants(all, preset.id);
  if (preset.descends_from.empty() && led_to.empty()) return;
  section("Lineage");
  TextTable table(indent);
  for (const Descent& descent : preset.descends_from) table.row({"from", descent.id, descent.changed});
  for (const auto& [child, descent] : led_to) table.row({"to", child->id, descent->changed});
  table.print(std::cout);
}

void print_card(const Card& card, const Hyper& hyper, const Preset& preset, const PresetLibrary& all, std::int64_t inputs) {
  constexpr std::size_t indent = 2;
  auto& out = std::cout;
  const std::string facts = card.family + ", " + std::to_string(card.source.year);
  const std::string title = card.title + (card.id == card.architecture ? "" : "  (" + card.architecture + ")");
  out << heading(title)
      << std::string(std::max<std::size_t>(2, page_width - std::min(page_width, columns_of(title) + columns_of(facts))), ' ') << facts
      << "\n\n";
  paragraph(out, card.idea);

  if (!card.equations.empty()) section("Equations");
  for (const std::string& equation : card.equations) {
    std::size_t within = indent;  // longer text continues on the next line, indented further
    for (const std::string& line :
         columns_of(equation) + indent <= page_width ? std::vector{equation} : wrapped(equation, page_width - indent - 4)) {
      out << std::string(within, ' ') << line << '\n';
      within = indent + 4;
    }
  }

  section("Hyper-parameters");
  const Hyper standard = defaults(preset);
  TextTable table(indent);
  table.row({"key", "symbol", "value", "default", "range", ""});
  for (const HyperSpec& row : card.hyper)
    table.row({row.key, row.symbol, hyper.text(row.key), standard.text(row.key), range_text(row), row.text});
  table.right_align(2);
  table.right_align(3);
  table.print(out);

  section("Parameters for " + counted(inputs, "input"));
  TextTable parameters(indent);
  for (const ParameterInfo& info : card.parameters)
    parameters.row({info.name, shape_text(info.shape), info.text + (info.when.empty() ? "" : " It is there " + info.when + ".")});
  parameters.print(out);

  section("States of a layer");
  TextTable states(indent);
  for (const StateInfo& info : card.states)
    states.row({info.name, shape_text(info.shape) + (info.complex ? " complex" : ""),
                info.text + (info.recorded ? "" : " (a buffer, not recorded)")});
  states.print(out);

  if (!card.gates.empty()) {
    section("Gates of a layer");
    TextTable gates(indent);
    for (const GateInfo& info : card.gates)
      gates.row({info.name, shape_text(info.shape),
                 info.low < info.high ? number_text(info.low) + " to " + number_text(info.high) : "unbounded", info.text});
    gates.print(out);
  }
  if (!card.spectrum.empty()) {
    section("Spectrum");
    paragraph(out, card.spectrum, indent);
  }
  section("Properties");
  paragraph(out, joined(words_of(properties_of(builtin_registry(), preset, inputs))), indent);
  section("Exact forms");
  paragraph(out, joined(card.forms), indent);
  section("Shown on");
  std::string set;
  for (const auto& [key, value] : preset.task_set) set += ", " + key + " = " + value;
  paragraph(out, "task " + preset.task + set + ", " + counted(preset.task_length, "step") + "; look at " + or_dash(joined(preset.look_at)),
            indent);
  if (preset.trained) {
    section("Trained: reclab run " + preset.id + " --trained");
    paragraph(out, preset.trained->idea, indent);
    paragraph(out, "Made by: " + preset.trained->command, indent);
  }
  print_lineage(preset, all, indent);
  if (!card.notes.empty()) section("Notes");
  for (const std::string& note : card.notes) {
    const auto lines = wrapped(note, page_width - indent - 2);
    for (std::size_t i = 0; i < lines.size(); ++i) out << std::string(indent, ' ') << (i ? "  " : "- ") << lines[i] << '\n';
  }
  section("Source");
  paragraph(out,
            card.source.authors + " (" + std::to_string(card.source.year) + "). " + card.source.title + "." +
                (card.source.venue.empty() ? "" : " " + card.source.venue + "."),
            indent);
  if (!card.source.url.empty()) out << std::string(indent, ' ') << card.source.url << '\n';
}

}  // namespace

int list(const ListOptions& options) {
  const PresetLibrary all = library(true);
  std::vector<std::string> families;
  for (const Preset& preset : all.presets())
    if (std::ranges::find(families, preset.family) == families.end()) families.push_back(preset.family);
  if (!options.family.empty() && std::ranges::find(families, options.family) == families.end())
    usage_error("--family", "there is no family \"" + options.family + "\"; the families are " + joined(families) + ".");

  Json json = Json::array();
  // By family, in the order of the library; states and gates are on the card.
  std::map<std::string, std::vector<std::vector<std::string>>> rows;
  std::vector<std::string> trained;
  for (const Preset& preset : all.presets()) {
    if (!options.family.empty() && preset.family != options.family) continue;
    const Card shown = card(builtin_registry(), preset);
    if (preset.trained) trained.push_back(preset.id);
    if (!options.json) {
      rows[preset.family].push_back({preset.id, shortened(preset.title, 30), std::to_string(preset.source.year), joined(shown.forms)});
      continue;
    }
    json.push_back({{"id", preset.id},
                    {"title", preset.title},
                    {"family", preset.family},
                    {"year", preset.source.year},
                    {"forms", shown.forms},
                    {"gates", names(shown.gates)},
                    {"states", names(shown.states)},
                    {"properties", properties_json(properties_of(builtin_registry(), preset))},
                    {"descends_from", descent_json(preset)},
                    {"trained", preset.trained.has_value()}});
  }
  if (options.json) {
    std::cout << json.dump(2) << '\n';
  } else {
    TextTable table;
    table.row({"id", "title", "year", "exact forms"});
    for (const std::string& family : families) {
      if (!rows.contains(family)) continue;
      table.heading(family_place(family) < reclab::families().size() ? family + "    " + family_heading(family) : family);
      for (std::vector<std::string>& row : rows[family]) table.row(std::move(row));
    }
    table.print(std::cout);
    std::cout << "\n`reclab show ID` is the card of one, with its states and gates.\n";
    if (!trained.empty()) paragraph(std::cout, "`reclab run ID --trained` runs one with trained weights: " + joined(trained) + ".");
  }
  return 0;
}

int kinds(bool for_scripts) {
  static constexpr const char* keys[] = {"", "/LAYER", "/LAYER/NAME", "/NAME"};
  static constexpr const char* stages[] = {"always", "passing", "late", "asked"};
  Json json = Json::array();
  TextTable table;
  table.row({"key", "axes", "unit", ""});
  for (const KindInfo& kind : kind_table()) {
    const std::string key = std::string(kind.name) + keys[static_cast<int>(kind.form)];
    json.push_back({{"kind", kind.name},
                    {"key", key},
                    {"recorded", stages[static_cast<int>(kind.stage)]},
                    {"axes", kind.axes},
                    {"unit", kind.unit},
                    {"text", kind.text}});
    table.row({key, std::string(kind.axes), std::string(kind.unit), std::string(kind.text)});
  }
  if (for_scripts)
    std::cout << json.dump(2) << '\n';
  else
    table.print(std::cout);
  return 0;
}

int show(const ShowOptions& options) {
  const Registry& registry = builtin_registry();
  const PresetLibrary all = library();
  Preset preset = all.find(options.id);
  const std::int64_t inputs = integer("--inputs", options.inputs, 1, 1'000'000).value_or(1);
  const Hyper hyper = hyper_of(registry, preset, settings(options.set));
  preset.hyper.clear();  // the card's shapes are those of the values with --set
  for (const HyperSpec& row : hyper.table()) preset.hyper.emplace_back(row.key, hyper.value(row.key));
  const Card shown = card(registry, preset, inputs);
  if (options.json) {
    std::cout << card_json(shown, hyper, preset, all, inputs).dump(2) << '\n';
  } else {
    print_card(shown, hyper, preset, all, inputs);
  }
  return 0;
}

}  // namespace reclab::cli
