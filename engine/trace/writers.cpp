// SPDX-License-Identifier: GPL-3.0-or-later
#include "trace/writers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "files/npz.h"
#include "trace/input_scale.h"

namespace reclab {

namespace {

using Json = nlohmann::ordered_json;

/// Hyper-parameters are kept as text; a script wants 64, not "64".
Json typed(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  const char *from = text.data(), *to = from + text.size();
  std::int64_t whole = 0;
  if (const auto [end, code] = std::from_chars(from, to, whole); code == std::errc{} && end == to) return whole;
  double real = 0.0;
  if (const auto [end, code] = std::from_chars(from, to, real); code == std::errc{} && end == to && std::isfinite(real)) return real;
  return text;
}

Json of_array(const TraceArray& array) {
  Json axes = Json::array();
  for (const Axis& axis : array.axes) {
    Json entry = {{"name", axis.name}, {"unit", axis.unit}};
    if (!axis.labels.empty()) entry["labels"] = axis.labels;
    axes.push_back(std::move(entry));
  }
  Json entry = {{"key", array.key},   {"shape", array.shape}, {"dtype", array.is_complex() ? "complex128" : "float64"},
                {"unit", array.unit}, {"axes", axes},         {"text", array.text}};
  if (array.low < array.high) entry["range"] = {array.low, array.high};
  if (!array.steps.empty()) entry["steps"] = "step/" + array.key;
  return entry;
}

/// The step of each row of an array that moves with time; empty when its rows are not steps (one row for the whole run).
std::span<const std::int64_t> steps_of(const Trace& trace, const TraceArray& array) {
  if (!moves_with_time(array)) return {};
  const auto& steps = array.steps.empty() ? trace.steps : array.steps;
  return static_cast<std::int64_t>(steps.size()) == array.shape[0] ? std::span(steps) : std::span<const std::int64_t>{};
}

std::string position_name(const Axis* axis, std::int64_t index) {
  if (axis && static_cast<std::size_t>(index) < axis->labels.size()) return axis->labels[static_cast<std::size_t>(index)];
  return (axis && !axis->name.empty() ? axis->name + " " : "") + std::to_string(index);
}

/// Names for the entries of a row: the positions on the axes after the first.
std::vector<std::string> entry_names(const TraceArray& array) {
  const std::size_t rank = array.shape.size();
  std::vector<std::string> names;
  if (rank <= 1) return {array.key};
  std::vector<std::int64_t> index(rank, 0);
  for (std::int64_t i = 0; i < array.row_size(); ++i) {
    std::string name;
    for (std::size_t d = 1; d < rank; ++d)
      name += (d > 1 ? " " : "") + position_name(d < array.axes.size() ? &array.axes[d] : nullptr, index[d]);
    names.push_back(std::move(name));
    for (std::size_t d = rank; d-- > 1 && ++index[d] == array.shape[d];) index[d] = 0;
  }
  return names;
}

}  // namespace

std::string manifest_json(const Trace& trace, const std::vector<WrittenFile>& files) {
  const RunInfo& info = trace.info;
  Json written = Json::object(), hyper = Json::object(), spectra = Json::array(), each_layer = Json::array(), arrays = Json::array();
  for (const WrittenFile& file : files) written[file.name] = {{"bytes", file.bytes}, {"sha256", file.sha256}};
  for (const auto& [key, value] : info.hyper) hyper[key] = typed(value);
  for (const SpectrumInfo& spectrum : info.spectra) {
    spectra.push_back({{"of", spectrum.of}, {"continuous", spectrum.continuous}, {"per_step", spectrum.per_step}});
    if (spectrum.continuous) spectra.back()["rule"] = spectrum.rule;
    if (spectrum.rule == "generalised") spectra.back()["share"] = spectrum.share;
  }
  for (const LayerInfo& layer : info.each_layer) each_layer.push_back({{"name", layer.name}, {"backward", layer.reversed}});
  for (const auto& array : trace.arrays()) arrays.push_back(of_array(*array));
  Json input = {{"name", info.input_name}, {"sha256", info.input_sha256}, {"length", info.length}, {"channels", trace.input_names}};
  if (!info.input_mean.empty()) {
    input["mean"] = info.input_mean;
    input["deviation"] = info.input_deviation;
  }
  if (!info.missing.treated.empty())
    input["missing"] = {{"treated", info.missing.treated},           {"cells", info.missing.cells},
                        {"columns", info.missing.columns},           {"rows_left_out", info.missing.rows_left_out},
                        {"target_steps", info.missing.target_steps}, {"columns_left_out", info.missing.columns_left_out}};
  if (const std::string scale = input_scale_of(info); !scale.empty()) input["scale"] = typed(scale);
  Json absent = Json::object();
  for (const auto& [kind, why] : info.absent) absent[std::string(info_of(kind).name)] = why;
  const Json manifest = {
      {"schema", 1},
      {"version", info.version},
      {"preset", info.preset},
      {"title", info.title},
      {"architecture", info.architecture},
      {"family", info.family},
      {"hyper", hyper},
      {"layers", info.layers},
      {"each_layer", each_layer},
      {"seed", info.seed},
      {"weights", info.weights.empty() ? Json() : Json(info.weights)},
      {"learned", info.learned ? Json{{"steps", info.learned->steps}, {"from", info.learned->from}} : Json()},
      {"state", info.state.empty() ? Json() : Json(info.state)},
      {"device", info.device},
      {"dtype", info.dtype},
      {"form", info.form},
      {"record_form", info.record_form},
      {"forms", info.forms},
      {"devices", info.devices},
      {"batch", info.batch},
      {"input", input},
      {"output", {{"channels", trace.output_names}}},
      {"time", {{"name", trace.time_name}, {"unit", trace.time_unit}, {"rows", trace.steps.size()}, {"every", info.every}}},
      {"loss", {{"kind", info.loss}, {"value", info.loss_value}}},
      {"outcome", std::string(to_string(info.outcome))},
      {"sentence", info.sentence},
      {"notes", info.notes},
      {"absent", absent},
      {"spectra", spectra},
      {"wall_seconds", info.seconds},
      {"bytes", info.bytes},
      {"command", info.command},
      {"files", written},
      {"arrays", arrays},
  };
  // A channel may be named by bytes that are no UTF-8; that must not cost the export.
  return manifest.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_trace_npz(const Trace& trace, AtomicFile& file) {
  NpzWriter archive(file);
  const auto rows = static_cast<std::int64_t>(trace.steps.size());
  if (!trace.find("step")) archive.add("step", {rows}, std::span<const std::int64_t>(trace.steps));
  if (!trace.find("time")) archive.add("time", {static_cast<std::int64_t>(trace.time.size())}, std::span<const double>(trace.time));
  for (const auto& array : trace.arrays()) {
    if (array->is_complex())
      archive.add(array->key, array->shape, std::span<const std::complex<double>>(*array->complex));
    else
      archive.add(array->key, array->shape, std::span<const double>(*array->real));
    if (!array->steps.empty())
      archive.add("step/" + array->key, {static_cast<std::int64_t>(array->steps.size())}, std::span<const std::int64_t>(array->steps));
  }
  archive.finish();
}

bool moves_with_time(const TraceArray& array) { return !array.shape.empty() && !array.axes.empty() && array.axes[0].name == "time"; }

void write_csv(const Trace& trace, const TraceArray& array, AtomicFile& file) {
  const std::span<const std::int64_t> steps = steps_of(trace, array);
  const bool scalar = array.shape.empty();
  const std::string first_axis = array.axes.empty() || array.axes[0].name.empty() ? "index" : array.axes[0].name;
  std::string line = !steps.empty() ? "step,time" : scalar ? "" : csv_cell(moves_with_time(array) ? "row" : first_axis);
  for (const std::string& name : entry_names(array)) {
    if (!line.empty()) line += ',';
    line += array.is_complex() ? csv_cell(name + "_re") + "," + csv_cell(name + "_im") : csv_cell(name);
  }
  file.write(line + "\n");

  const std::int64_t rows = scalar ? 1 : array.shape[0], width = array.row_size();
  for (std::int64_t row = 0; row < rows; ++row) {
    line.clear();
    if (!steps.empty()) {
      const std::int64_t step = steps[static_cast<std::size_t>(row)];
      line += std::to_string(step) + ',';
      const auto at = std::lower_bound(trace.steps.begin(), trace.steps.end(), step);
      const auto index = static_cast<std::size_t>(at - trace.steps.begin());
      if (at != trace.steps.end() && *at == step && index < trace.time.size()) append_number(line, trace.time[index]);
    } else if (!scalar) {
      const bool labelled = !array.axes.empty() && static_cast<std::size_t>(row) < array.axes[0].labels.size();
      line += labelled ? csv_cell(array.axes[0].labels[static_cast<std::size_t>(row)]) : std::to_string(row);
    }
    for (std::int64_t i = 0; i < width; ++i) {
      if (!line.empty()) line += ',';
      const auto at = static_cast<std::size_t>(row * width + i);
      if (array.is_complex()) {
        append_number(line, (*array.complex)[at].real());
        append_number(line += ',', (*array.complex)[at].imag());
      } else {
        append_number(line, (*array.real)[at]);
      }
    }
    file.write(line += '\n');
  }
}

std::string csv_file_name(std::string_view key) {
  std::string name(key);
  std::replace(name.begin(), name.end(), '/', '_');
  return name + ".csv";
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n#") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

void append_number(std::string& to, double value) {
  if (std::isnan(value)) {
    to += "nan";
    return;
  }
  char text[32];
  to.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

}  // namespace reclab
