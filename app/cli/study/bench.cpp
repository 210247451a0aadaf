// SPDX-License-Identifier: GPL-3.0-or-later
// The request of `reclab bench`, and the output of a timing.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "array/error.h"
#include "files/files.h"
#include "models/registry.h"
#include "study/subcommand.h"
#include "text.h"
#include "timing/primitives.h"
#include "timing/timing.h"
#include "trace/crossing.h"
#include "trace/writers.h"

namespace reclab::cli {
namespace {

using Json = nlohmann::ordered_json;

/// The arrays of a timing, by name.
class Timed {
 public:
  explicit Timed(const Trace& trace) : trace_(trace) {}
  std::vector<double> operator()(const std::string& form, const std::string& what) const { return of(form + "/" + what); }
  std::vector<double> of(const std::string& key) const {
    const TraceArray* array = trace_.find(key_of(Kind::timing, key));
    return array && array->real ? *array->real : std::vector<double>{};
  }
  Json one(const std::string& key) const {
    const auto values = of(key);
    return values.empty() ? Json() : Json(values[0]);
  }

 private:
  const Trace& trace_;
};

struct Crossover {
  std::string later, earlier;
  double length;
};
Curve curve_of(const Timed& timed, const std::string& form) {
  return {form, timed(form, "length"), timed(form, "seconds"), timed(form, "low90"), timed(form, "high90")};
}

/// "16,384"
std::string grouped(long long n) {
  std::string text = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

/// The headline of the panel's plot of times.
std::string headline_of(const Timed& timed, const std::vector<std::string>& forms) {
  std::vector<Curve> curves;
  for (const std::string& form : forms) curves.push_back(curve_of(timed, form));
  const auto found = leader(curves);
  if (!found) return {};
  const std::string at = " at T = " + grouped(std::llround(found->length));
  return found->overtaken.empty() ? found->best + " is fastest" + at : found->best + " overtakes " + found->overtaken + at;
}

const std::vector<std::string> columns_of_lengths{"seconds",         "low",           "high",           "low90",    "high90",
                                                  "forward",         "forward_low90", "forward_high90", "backward", "backward_low90",
                                                  "backward_high90", "memory",        "flops",          "bytes",    "output_error",
                                                  "gradient_error",  "iterations",    "converged"};
const std::vector<std::string> exponents{"exponent", "forward_exponent", "backward_exponent", "memory_exponent"};
const std::vector<std::string> ends{"", "_low", "_high"};
const std::vector<std::pair<std::string, std::string>> of_machine{{"lyapunov", "lyapunov"},     {"noise", "noise"},
                                                                  {"roof_triad", "roof/triad"}, {"roof_cached", "roof/cached"},
                                                                  {"roof_flops", "roof/flops"}, {"between", "between"}};

/// A line for each form and length, with the values of the form and of the whole timing repeated. Unknown cells are empty.
void write_timing(const Trace& trace, const std::vector<std::string>& forms, const std::filesystem::path& file) {
  const Timed timed(trace);
  std::string text = "form,length";
  for (const std::string& name : columns_of_lengths) text += "," + name;
  for (const std::string& name : exponents)
    for (const std::string& end : ends) text += "," + name + end;
  for (const auto& [name, key] : of_machine) text += "," + name;
  text += '\n';
  const auto cell = [&](const std::vector<double>& values, std::size_t i) {
    text += ',';
    if (i < values.size() && std::isfinite(values[i])) append_number(text, values[i]);
  };
  for (const std::string& form : forms) {
    const auto length = timed(form, "length");
    for (std::size_t i = 0; i < length.size(); ++i) {
      text += csv_cell(form);
      cell(length, i);
      for (const std::string& name : columns_of_lengths) cell(timed(form, name), i);
      for (const std::string& name : exponents)
        for (const std::string& end : ends) cell(timed(form, name + end), 0);
      for (const auto& [name, key] : of_machine) cell(timed.of(key), 0);
      text += '\n';
    }
  }
  write_file(file, text);
}

Json timing_json(const RunRequest& request, const TimingRequest& timing, const Trace& trace, const std::vector<std::string>& forms,
                 const std::vector<Crossover>& crossovers) {
  const Timed timed(trace);
  Json json = {{"id", request.preset.id}, {"device", trace.info.device}, {"dtype", request.dtype}, {"forms", Json::array()}};
  for (const std::string& form : forms) {
    Json entry = {{"form", form}, {"exponent", timed.one(form + "/exponent")}, {"lengths", Json::array()}};
    for (const double steps : timed(form, "length")) entry["lengths"].push_back(static_cast<std::int64_t>(steps));
    for (const std::string& name : columns_of_lengths) {
      const auto values = timed(form, name);
      if (values.empty() && name != "seconds" && name != "low" && name != "high") continue;
      entry[name] = Json::array();
      for (const double value : values)
        entry[name].push_back(name == "converged"    ? Json(value != 0.0)
                              : name == "iterations" ? Json(static_cast<int>(value))
                                                     : Json(value));
    }
    for (const std::string& name : exponents)
      for (const std::string& end : ends)
        if (name + end != "exponent" && !timed(form, name + end).empty()) entry[name + end] = timed.one(form + "/" + name + end);
    json["forms"].push_back(std::move(entry));
  }
  json["batch"] = timing.batch;
  json["backward_timed"] = timing.backward;
  json["crossovers"] = Json::array();
  for (const Crossover& crossing : crossovers)
    json["crossovers"].push_back({{"form", crossing.later}, {"overtakes", crossing.earlier}, {"length", std::llround(crossing.length)}});
  if (const std::string headline = headline_of(timed, forms); !headline.empty()) json["headline"] = headline;
  json["roof"] = timed.of("roof/triad").empty() ? Json()
                                                : Json{{"triad_bytes_per_second", timed.one("roof/triad")},
                                                       {"cached_bytes_per_second", timed.one("roof/cached")},
                                                       {"flops_per_second", timed.one("roof/flops")}};
  json["lyapunov"] = timed.one("lyapunov");
  json["noise"] = timed.one("noise");
  json["between"] = timed.one("between");
  json["command"] = trace.info.command;
  if (!trace.info.notes.empty()) json["notes"] = trace.info.notes;
  return json;
}

void print_timing(const RunRequest& request, const TimingRequest& timing, const Trace& trace, const std::vector<std::string>& forms,
                  const std::vector<Crossover>& crossovers) {
  const Timed timed(trace);
  TextTable table(2);
  table.row({"form", "length", "median", "90 % band", "forward", "backward", "memory", "error", "exponent"});
  for (const std::string& form : forms) {
    const auto length = timed(form, "length"), seconds = timed(form, "seconds"), low = timed(form, "low90"), high = timed(form, "high90"),
               forward = timed(form, "forward"), backward = timed(form, "backward"), memory = timed(form, "memory"),
               error = timed(form, "output_error"), slope = timed(form, "exponent"), least = timed(form, "exponent_low"),
               most = timed(form, "exponent_high");
    for (std::size_t i = 0; i < length.size(); ++i)
      table.row({i == 0 ? form : "", number_text(length[i], 9), seconds_text(seconds[i]),
                 seconds_text(low[i]) + " to " + seconds_text(high[i]), seconds_text(forward[i]),
                 backward.empty() ? "" : seconds_text(backward[i]), bytes_text(memory[i]),
                 std::isfinite(error[i]) ? number_text(error[i], 2) : "",
                 i == 0 && !slope.empty()   ? number_text(slope[0], 3)
                 : i == 1 && !slope.empty() ? number_text(least[0], 3) + " to " + number_text(most[0], 3)
                                            : ""});
  }
  std::cout << heading(request.preset.title) << ", " << trace.info.device << ", " << request.dtype
            << (timing.batch > 1 ? ", batch " + std::to_string(timing.batch) : "")
            << (timing.backward ? ": time of one pass forward and back\n" : ": time of one pass forward\n");
  for (const std::size_t column : {1, 2, 4, 5, 6, 7}) table.right_align(column);
  table.print(std::cout);
  const std::string headline = headline_of(timed, forms);
  if (!headline.empty()) std::cout << headline << '\n';
  for (const Crossover& crossing : crossovers)
    if (const std::string also = crossing.later + " overtakes " + crossing.earlier + " at T = " + grouped(std::llround(crossing.length));
        also != headline)
      std::cout << also << '\n';
  if (const auto lyapunov = timed.of("lyapunov"); !lyapunov.empty())
    std::cout << "largest Lyapunov exponent " << number_text(lyapunov[0]) << " a step\n";
  std::cout << "noise of the machine ±" << number_text(100.0 * timed.of("noise").at(0), 2) << " %, from one run to another ±"
            << number_text(100.0 * timed.of("between").at(0), 2) << " %";
  if (const auto triad = timed.of("roof/triad"), cached = timed.of("roof/cached"), flops = timed.of("roof/flops"); !triad.empty())
    std::cout << "; its roof: memory " << number_text(triad[0] / 1e9, 3) << " GB/s, caches " << number_text(cached[0] / 1e9, 3) << " GB/s, "
              << number_text(flops[0] / 1e9, 3) << " GFLOP/s";
  std::cout << '\n';
  for (const Sentence& note : trace.info.notes) paragraph(std::cout, note.terminal_text());
}

/// The forms that are timed of a model.
std::vector<std::string> forms_of(const StudyInput& input, const TimingRequest& timing) {
  if (!timing.forms.empty()) return timing.forms;
  Preset set = input.run.preset;
  const Hyper hyper = hyper_of(input.registry, set, input.run.set);
  set.hyper.clear();
  for (const HyperSpec& row : hyper.table()) set.hyper.emplace_back(row.key, hyper.value(row.key));
  return card(input.registry, set, input.run.sequence->width).forms;
}

/// A preset on its sequence, repeated or cut to each length, or a primitive on random inputs.
StudyAsked asked(const StudyOptions& options, const PresetLibrary& all) {
  const bool primitive = is_primitive(options.id) && std::ranges::find(all.presets(), options.id, &Preset::id) == all.presets().end();
  StudyAsked made{{primitive ? primitives() : builtin_registry(), all}};
  RunRequest& request = made.input.run;
  request = model_request_of(options, primitive ? primitive_preset(options.id) : all.find(options.id), made.input.registry);
  made.values = values_given(options);
  const TimingRequest timing = plan_of(timing_fields(), made.values);
  const std::int64_t longest = timing.lengths.back();
  if (primitive) {
    const auto refuse = [](const std::string& flag, bool given) {
      if (given) usage_error(flag, "belongs to a preset; a primitive is timed on random inputs.");
    };
    for (const Field& field : sequence_fields()) refuse(field.flag, options.is_set(field.flag));
    for (const char* flag : {"--trained", "--weights", "--state"}) refuse(flag, options.is_set(flag));
    refuse("--sizes", !options.sizes.empty());
    request.sequence = primitive_input(options.id, hyper_of(primitives(), request.preset, request.set), longest, request.seed);
  } else {
    request.sequence = load_sequence(sequence_of(options.given, request.preset, std::max(longest, request.preset.task_length)));
    take_sizes(options, request, !options.is_set("--json"));
  }
  const std::vector<std::string> known = forms_of(made.input, {});
  for (const std::string& form : timing.forms)
    if (std::ranges::find(known, form) == known.end())
      usage_error("--forms", "names \"" + form + "\"; " + request.preset.id + " has " + joined(known) + ".");
  return made;
}

void show_timing(const StudyAsked& what, const StudyResult& found, const StudyOutput& output) {
  const TracePtr whole = found.get<Trace>();
  const Trace& trace = *whole;
  const RunRequest& request = what.input.run;
  const TimingRequest timing = plan_of(timing_fields(), what.values);
  const std::vector<std::string> forms = forms_of(what.input, timing);
  const Timed timed(trace);
  std::vector<Crossover> crossovers;
  for (const std::string& later : forms)
    for (const std::string& earlier : forms)
      if (const double length = overtakes(curve_of(timed, later), curve_of(timed, earlier)); length > 0.0)
        crossovers.push_back({later, earlier, length});
  if (!output.file.empty()) write_timing(trace, forms, output.file);
  if (output.json) {
    std::cout << timing_json(request, timing, trace, forms, crossovers).dump(2) << '\n';
    return;
  }
  print_timing(request, timing, trace, forms, crossovers);
  if (!output.file.empty()) std::cout << "Wrote " << output.file << '\n';
}

}  // namespace

StudyText bench_text() { return {asked, show_timing}; }

}  // namespace reclab::cli
