// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab run`, `check-device` and `task`, and how all take a model and a sequence.
#include "commands.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>

#include "array/backend.h"
#include "array/error.h"
#include "checks/check_device.h"
#include "models/registry.h"
#include "options.h"
#include "parameters/nearest.h"
#include "progress_line.h"
#include "text.h"
#include "trace/crossing.h"
#include "trace/input_scale.h"

namespace reclab::cli {

void cancelled(const std::string& where) {
  std::cout.flush();
  std::cerr << "cancelled " << where << "; nothing was exported" << std::endl;
  // Gigabytes of a record are given back faster by ending than by taking them apart.
  _exit(interrupted_status);
}

using Json = nlohmann::ordered_json;

RunRequest model_request_of(const ModelOptions& options, const Preset& preset, const Registry& registry) {
  RunRequest request = reclab::request_of(options.given, preset);
  if (options.sizes != "weights") hyper_of(registry, request.preset, request.set);  // a wrong value is said before a long file is read
  return request;
}

namespace {

std::string radius_text(const TraceArray& spectrum) {
  const std::int64_t n = spectrum.row_size(), rows = n > 0 ? spectrum.size() / n : 0;
  if (rows == 0) return "no eigenvalues";
  double sum = 0.0, largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t t = 0; t < rows; ++t) {
    double radius = -std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < n; ++i) {
      radius = std::max(radius, std::abs((*spectrum.complex)[static_cast<std::size_t>(t * n + i)]));
    }
    sum += radius;
    largest = std::max(largest, radius);
  }
  const std::string name = "largest modulus ";
  if (rows == 1) return name + number_text(largest);
  return name + number_text(sum / static_cast<double>(rows)) + " in the mean over " + counted(rows, "step") + ", " + number_text(largest) +
         " at most";
}

/// "10^-9.31 at the first step, 10^-0.42 at the last: -0.0446 decades a step back"
std::string gradient_text(const Trace& trace, const TraceArray& norms) {
  const auto& log = *norms.real;
  const auto& steps = norms.steps.empty() ? trace.steps : norms.steps;
  std::size_t first = 0, last = std::min(log.size(), steps.size());
  while (first < last && !std::isfinite(log[first])) ++first;
  while (last > first && !std::isfinite(log[last - 1])) --last;
  if (first == last) {
    const bool zero = std::ranges::all_of(log, [](double x) { return std::isinf(x) && x < 0; });
    return zero ? "zero at every step" : "not finite at any step";
  }
  const double from = log[last - 1], to = log[first];
  std::string text = "10^" + number_text(from, 3) + " at step " + std::to_string(steps[last - 1]) + ", 10^" + number_text(to, 3) +
                     " at step " + std::to_string(steps[first]);
  const auto between = static_cast<double>(steps[last - 1] - steps[first]);
  if (between > 0) {
    const double slope = (to - from) / between;
    text += std::abs(to - from) < 1.0 ? ": it holds" : slope < 0 ? ": it vanishes" : ": it explodes";
    text += " (" + number_text(slope, 3) + " decades a step back)";
  }
  return text;
}

void print_summary(const RunResult& result, const Sequence& sequence) {
  const Trace& trace = *result.trace;
  const RunInfo& info = trace.info;
  auto& out = std::cout;
  out << heading(info.title + " on " + sequence.name) << ": " << counted(sequence.length, "step") << ", "
      << counted(sequence.width, "input") << ", " << counted(info.layers, "layer") << ", seed " << info.seed << '\n';
  TextTable table(2);
  std::string read =
      info.input_mean.empty() ? "" : "standardised, each column to mean 0 and deviation 1 (--standardise no reads it as it is)";
  if (const std::string scale = input_scale_of(info); !scale.empty())
    read += (read.empty() ? "times " : ", then times ") + scale + " (input_scale)";
  if (!read.empty()) table.row({"input", read});
  if (const TraceArray* output = trace.find(key_of(Kind::output))) table.row({"output", shape_text(output->shape)});
  table.row({"loss", number_text(info.loss_value, 6) + (info.loss.empty() ? "" : "  (" + info.loss + ")")});
  for (const TraceArray* spectrum : trace.of(Kind::spectrum)) {
    if (!spectrum->is_complex()) continue;
    table.row({spectrum->key, radius_text(*spectrum)});
  }
  for (const TraceArray* norms : trace.matching(key_of(Kind::gradient, prefix_of(Kind::state))))
    if (!norms->is_complex()) table.row({norms->key, gradient_text(trace, *norms)});
  table.row({"time", seconds_text(info.seconds) + ", " + info.form + ", " + info.dtype + ", " + info.device});
  table.row({"memory", bytes_text(static_cast<double>(info.bytes))});
  table.print(out);
}

void print_remarks(const RunInfo& info) {
  if (!info.sentence.empty()) paragraph(std::cout, info.sentence);
  for (const Sentence& note : info.notes) paragraph(std::cout, note.terminal_text());
}

void print_written(const std::filesystem::path& folder, bool csv) {
  TextTable table(2);
  const auto add = [&](const std::string& name) {
    std::error_code none;
    const auto size = std::filesystem::file_size(folder / name, none);
    if (!none) table.row({name, bytes_text(static_cast<double>(size))});
  };
  for (const char* name : {"manifest.json", "trace.npz", "state.npz"}) add(name);
  std::cout << "Wrote " << folder.string() << '\n';
  if (csv) table.row({"*.csv", "one an array"});
  table.print(std::cout);
}

}  // namespace

void take_sizes(const ModelOptions& options, RunRequest& request, bool tell) {
  if (options.sizes.empty() || options.sizes == "preset") return;
  if (options.sizes != "weights") usage_error("--sizes", "is \"" + options.sizes + "\"; give preset or weights.");
  if (request.weights.empty()) usage_error("--sizes", "weights needs --weights FILE, whose sizes are to be taken.");
  const SizesInFile sizes = sizes_in_file(builtin_registry(), request, request.weights);
  for (const auto& [key, value] : sizes.settings) {
    if (tell) std::cout << "The weights set " << key << " = " << value << ".\n";
    request.set.emplace_back(key, value);
  }
  if (tell && !sizes.others.empty())
    std::cout << "The shapes leave a choice, and " << sizes.others << " would fit as well: give --set for what was trained.\n";
}

PresetLibrary library(bool tell) {
  PresetLibrary all(builtin_registry(), preset_folders());
  if (tell)
    for (const std::string& problem : all.problems()) std::cerr << "reclab: " << one_line(problem) << '\n';
  return all;
}

std::vector<std::pair<std::string, std::string>> settings(const std::vector<std::string>& texts, const std::string& option,
                                                          const std::string& example) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      usage_error(option, "is \"" + text + "\"; give key=value, as in " + option + " " + example + ".");
    pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return pairs;
}

RunRequest request_of(const ModelOptions& options, const PresetLibrary& presets) {
  RunRequest request = model_request_of(options, presets.find(options.id), builtin_registry());
  const SequenceChoice choice = sequence_of(options.given, request.preset, request.preset.task_length);
  refuse_misplaced(options.given, sequence_fields(), choice);
  request.sequence = load_sequence(choice);
  return request;
}

int run(const RunOptions& options, Interrupt& interrupt) {
  if (options.csv && options.folder.empty()) usage_error("--csv", "needs --export DIR, the folder to write to.");
  const PresetLibrary all = library();
  RunRequest request = request_of(options, all);
  if (options.folder.empty()) {
    // A summary needs no more of these than a reader does.
    request.recording.dense_rows = 200;
    request.recording.kinds.remove(kinds_of(Stage::late).remove({Kind::spectrum}));
  }
  take_sizes(options, request);

  ProgressLine line;
  interrupt.enter(Interrupt::Phase::running);
  const RunResult result = reclab::run(builtin_registry(), request, line.callback(), interrupt.token());
  line.clear();
  const RunInfo& info = result.trace->info;
  if (info.outcome == Outcome::cancelled)
    cancelled("at step " + std::to_string(result.trace->steps.empty() ? 0 : result.trace->steps.back() + 1));

  interrupt.enter(Interrupt::Phase::writing);
  if (!options.folder.empty()) export_run(result, options.folder, options.csv);
  if (options.folder.empty()) print_summary(result, request.sequence);
  if (!options.folder.empty()) print_written(options.folder, options.csv);
  if (info.outcome == Outcome::finished) {
    print_remarks(info);
    return 0;
  }
  std::cout.flush();
  std::cerr << "reclab: " << one_line(info.sentence) << '\n';
  return 1;
}

int check_device(const CheckDeviceOptions& options, Interrupt& interrupt) {
  std::string why;
  const Backend* device = cuda_backend(&why);
  const std::string name = device ? device->name() : "";
  if (!device) {
    const std::string none = "no CUDA device";
    if (options.json)
      std::cout << Json{{"device", nullptr}, {"skipped", none}, {"presets", Json::array()}, {"primitives", Json::array()}}.dump(2) << '\n';
    else
      std::cout << "skipped: " << none << (why == none ? "" : " (" + why + ")") << '\n';
    return 0;
  }
  const PresetLibrary all = library();
  const auto reports = computed(interrupt, "during the comparison", [&](const Progress& progress) {
    return reclab::check_device(builtin_registry(), all, progress, interrupt.token(), {.only = options.ids});
  });
  const bool agrees = std::ranges::all_of(reports, [](const DeviceReport& report) { return report.agrees(); });
  if (options.json) {
    Json json = {{"device", name}, {"agrees", agrees}, {"presets", Json::array()}, {"primitives", Json::array()}};
    for (const DeviceReport& report : reports)
      json[report.primitive ? "primitives" : "presets"].push_back({{"id", report.id},
                                                                   {"form", report.form},
                                                                   {"dtype", report.dtype},
                                                                   {"forward_error", report.forward_error},
                                                                   {"forward_array", report.forward_array},
                                                                   {"gradient_error", report.gradient_error},
                                                                   {"gradient_array", report.gradient_array},
                                                                   {"allowed", report.allowed()},
                                                                   {"agrees", report.agrees()},
                                                                   {"cpu_seconds", report.cpu_seconds},
                                                                   {"cuda_seconds", report.cuda_seconds},
                                                                   {"coarse", report.coarse},
                                                                   {"problem", report.problem}});
    std::cout << json.dump(2) << '\n';
    return agrees ? 0 : 1;
  }
  std::cout << heading(name) << ": largest errors relative to the CPU\n";
  TextTable table(2);
  table.row({"primitive or preset", "form", "dtype", "forward", "gradients", "allowed", "CPU", "CUDA", ""});
  for (const DeviceReport& report : reports)
    table.row({report.id, report.form, report.dtype, number_text(report.forward_error, 2), number_text(report.gradient_error, 2),
               number_text(report.allowed(), 1), seconds_text(report.cpu_seconds), seconds_text(report.cuda_seconds),
               report.agrees() && report.coarse.empty() ? "" : report.verdict().terminal_text()});
  for (const std::size_t column : {3, 4, 5, 6, 7}) table.right_align(column);
  table.print(std::cout);
  return agrees ? 0 : 1;
}

int task(const TaskOptionsText& options) {
  SequenceChoice choice{.task = options.id};
  for (const PlanField<SequenceChoice>& field : task_fields())
    if (options.is_set(field.flag)) field.set(choice, typed_value(field, options.given.at(field.flag)));
  const Sequence sequence = load_sequence(choice);
  save_sequence(sequence, options.file);
  std::cout << "Wrote " << options.file << ": " << counted(sequence.length, "step") << ", " << counted(sequence.width, "input") << " ("
            << joined(sequence.names) << ")" << (sequence.target_kind == TargetKind::none ? "" : ", a target and its mask") << '\n';
  return 0;
}

}  // namespace reclab::cli
