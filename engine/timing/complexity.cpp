// SPDX-License-Identifier: GPL-3.0-or-later
#include "timing/complexity.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "array/error.h"
#include "timing/timing.h"
#include "trace/kinds.h"
#include "trace/writers.h"

namespace reclab {
namespace {

using Json = nlohmann::ordered_json;

double constant(double, double) { return 1.0; }
double linear(double length, double) { return length; }
double quadratic(double length, double) { return length * length; }
double quadratic_space(double length, double width) { return length * length + length * width; }
double linear_space(double length, double width) { return length * width + width * width; }
double log_linear(double length, double) { return length * std::log2(length); }
double log_linear_product(double length, double width) { return length * width * (std::log2(length) + width); }

constexpr std::string_view whole_pass =
    "The survey counts the state that a step keeps; here it is a whole pass, whose inputs and outputs alone are L d.";
constexpr std::string_view in_segments =
    "A pass step by step is cut in segments, whose arrays are used again: inputs, outputs and a state a segment grow.";

constexpr StatedComplexity stated[] = {
    {2, "2", "Recurrent net", true, "L d²", "L d", linear, linear, "elman", "sequential", "", in_segments},
    {2, "3", "Transformer", false, "L² d", "L² + L d", quadratic, quadratic_space, "transformer", "attention", "",
     "The scores of a query are made, used and given up row by row here, so the L × L of them are never held."},
    {2, "3.1", "Linear transformer", true, "L d²", "L d + d²", linear, linear_space, "linear-attention", "chunkwise", "", ""},
    {2, "3.2", "RWKV", true, "L d", "d", linear, constant, "rwkv-4", "sequential", "", in_segments},
    {2, "3.3", "Transformer-XL", true, "T² d", "T² + T m", linear, constant, "transformer-xl", "sequential",
     "The survey counts a segment of T steps; a sequence has L / T of them.",
     "The survey counts a segment; its arrays are used again by the next, and inputs and outputs grow."},
    {2, "3.4", "RetNet", true, "L d²", "d²", linear, constant, "retnet", "chunkwise", "", whole_pass},
    {3, "4", "H3", true, "L d (log L + d)", "L d", log_linear_product, linear, "h3", "convolution", "", ""},
    {3, "4", "S4", true, "L d²", "L d", linear, linear, "s4", "convolution", "", ""},
    {3, "4", "Hyena", true, "L d (log L + d)", "L log L d", log_linear_product, log_linear, "hyena", "convolution", "",
     "The filters are made once for all steps, so what the transforms hold grows as L; their log L is of work, not of memory."},
    {3, "4", "Mamba", true, "L d", "d", linear, constant, "mamba", "sequential", "", in_segments},
};

/// Slope of log y against log x, by least squares.
double slope(std::span<const double> x, std::span<const double> y) {
  double mean_x = 0.0, mean_y = 0.0, top = 0.0, bottom = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mean_x += std::log(x[i]) / static_cast<double>(x.size());
    mean_y += std::log(y[i]) / static_cast<double>(x.size());
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    top += (std::log(x[i]) - mean_x) * (std::log(y[i]) - mean_y);
    bottom += (std::log(x[i]) - mean_x) * (std::log(x[i]) - mean_x);
  }
  return top / bottom;
}

std::vector<double> column(const Trace& trace, const std::string& form, const std::string& name) {
  const TraceArray* array = trace.find(key_of(Kind::timing, form + "/" + name));
  return array && array->real ? *array->real : std::vector<double>();
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

Json json_of(const Banded& band) { return {{"exponent", band.value}, {"low", band.low}, {"high", band.high}}; }
Banded band_of(const Json& json) {
  return {json.at("exponent").get<double>(), json.at("low").get<double>(), json.at("high").get<double>()};
}

}  // namespace

std::span<const StatedComplexity> stated_complexities() { return stated; }

std::vector<std::int64_t> complexity_lengths() { return {512, 1024, 2048, 4096, 8192, 16384}; }

double exponent_of(double (*cost)(double length, double width), std::span<const std::int64_t> lengths, double width) {
  std::vector<double> x, y;
  for (const std::int64_t length : lengths) {
    x.push_back(static_cast<double>(length));
    y.push_back(cost(x.back(), width));
  }
  return slope(x, y);
}

std::optional<ComplexityRow> measure_complexity(const Registry& registry, const PresetLibrary& presets, const StatedComplexity& stated,
                                                std::span<const std::int64_t> lengths, const Progress& progress, std::stop_token stop) {
  RunRequest request;
  request.preset = presets.find(stated.preset);
  request.device = "cpu";
  TaskOptions options = request.preset.task_options();
  options.length = std::max(options.length, std::ranges::max(lengths));
  request.sequence = make_task(request.preset.task, options);
  TimingRequest timing;
  timing.forms = {std::string(stated.form)};
  timing.lengths.assign(lengths.begin(), lengths.end());
  timing.backward = false;
  const TracePtr trace = time_forms(registry, request, timing, progress, stop);
  if (trace->info.outcome == Outcome::cancelled) throw Cancelled();
  const std::string form(stated.form);
  const std::vector<double> length = column(*trace, form, "length"), forward = column(*trace, form, "forward"),
                            low = column(*trace, form, "forward_low90"), high = column(*trace, form, "forward_high90"),
                            memory = column(*trace, form, "memory");
  if (length.size() != lengths.size()) return std::nullopt;
  std::vector<Banded> times, bytes;
  for (std::size_t i = 0; i < length.size(); ++i) {
    times.push_back({forward[i], low[i], high[i]});
    bytes.push_back({memory[i], memory[i], memory[i]});
  }
  const Hyper hyper = hyper_of(registry, request.preset);
  const bool wide = std::ranges::any_of(hyper.table(), [](const HyperSpec& spec) { return spec.key == "width"; });
  const double width = wide ? static_cast<double>(hyper.integer("width")) : 1.0;
  ComplexityRow row;
  row.table = stated.table;
  row.section = stated.section;
  row.model = stated.model;
  row.preset = stated.preset;
  row.form = form;
  row.recurrent = stated.recurrent;
  row.stated_time = stated.time;
  row.stated_space = stated.space;
  row.stated_time_exponent = exponent_of(stated.time_of, lengths, width);
  row.stated_space_exponent = exponent_of(stated.space_of, lengths, width);
  row.time = exponent(length, times);
  row.space = exponent(length, bytes);
  row.lengths.assign(lengths.begin(), lengths.end());
  row.device = trace->info.device;
  row.of_time = stated.of_time;
  row.of_space = stated.of_space;
  return row;
}

std::string verdict_of(const ComplexityRow& row) {
  const auto told = [](const std::string& what, double stated, const Banded& measured, const std::string& why) {
    if (agrees(stated, measured)) return what + " as stated" + (why.empty() ? "" : ": " + why);
    return what + " grows as L^" + short_number(measured.value) + ", not L^" + short_number(stated) + (why.empty() ? "" : ": " + why);
  };
  std::string text = told("time", row.stated_time_exponent, row.time, row.of_time);
  if (text.ends_with('.')) text.pop_back();
  text += "; " + told("memory", row.stated_space_exponent, row.space, row.of_space);
  text[0] = 'T';
  return text.ends_with('.') ? text : text + ".";
}

std::string to_csv(std::span<const ComplexityRow> rows) {
  std::string text =
      "table,section,model,recurrent,preset,form,stated_time,stated_space,stated_time_exponent,time_exponent,time_exponent_low,time_"
      "exponent_high,"
      "stated_space_exponent,memory_exponent,memory_exponent_low,memory_exponent_high,shortest,longest,device,verdict\n";
  for (const ComplexityRow& row : rows) {
    text += std::to_string(row.table);
    for (const std::string& cell :
         {row.section, row.model, std::string(row.recurrent ? "yes" : "no"), row.preset, row.form, row.stated_time, row.stated_space})
      text += "," + csv_cell(cell);
    for (const double value :
         {row.stated_time_exponent, row.time.value, row.time.low, row.time.high, row.stated_space_exponent, row.space.value, row.space.low,
          row.space.high, static_cast<double>(row.lengths.front()), static_cast<double>(row.lengths.back())}) {
      text += ",";
      if (std::isfinite(value)) append_number(text, value);
    }
    text += "," + csv_cell(row.device) + "," + csv_cell(verdict_of(row)) + "\n";
  }
  return text;
}

std::string to_json(std::span<const ComplexityRow> rows) {
  Json json = {{"schema", 1}, {"rows", Json::array()}};
  for (const ComplexityRow& row : rows)
    json["rows"].push_back({{"table", row.table},
                            {"section", row.section},
                            {"model", row.model},
                            {"recurrent", row.recurrent},
                            {"preset", row.preset},
                            {"form", row.form},
                            {"stated",
                             {{"time", row.stated_time},
                              {"space", row.stated_space},
                              {"time_exponent", row.stated_time_exponent},
                              {"space_exponent", row.stated_space_exponent}}},
                            {"time", json_of(row.time)},
                            {"memory", json_of(row.space)},
                            {"lengths", row.lengths},
                            {"device", row.device},
                            {"of_time", row.of_time},
                            {"of_space", row.of_space},
                            {"verdict", verdict_of(row)}});
  return json.dump(2) + "\n";
}

std::vector<ComplexityRow> complexities_from_json(const std::string& text, const std::string& source) {
  try {
    const Json json = Json::parse(text);
    std::vector<ComplexityRow> rows;
    for (const Json& one : json.at("rows")) {
      ComplexityRow row;
      row.table = one.at("table").get<int>();
      row.section = one.at("section").get<std::string>();
      row.model = one.at("model").get<std::string>();
      row.recurrent = one.at("recurrent").get<bool>();
      row.preset = one.at("preset").get<std::string>();
      row.form = one.at("form").get<std::string>();
      const Json& said = one.at("stated");
      row.stated_time = said.at("time").get<std::string>();
      row.stated_space = said.at("space").get<std::string>();
      row.stated_time_exponent = said.at("time_exponent").get<double>();
      row.stated_space_exponent = said.at("space_exponent").get<double>();
      row.time = band_of(one.at("time"));
      row.space = band_of(one.at("memory"));
      row.lengths = one.at("lengths").get<std::vector<std::int64_t>>();
      row.device = one.at("device").get<std::string>();
      row.of_time = one.at("of_time").get<std::string>();
      row.of_space = one.at("of_space").get<std::string>();
      rows.push_back(std::move(row));
    }
    return rows;
  } catch (const Json::exception&) {
    throw Error(source + " is no table of complexities: make it again with `reclab complexities --export`.", {.value = source});
  }
}

}  // namespace reclab
