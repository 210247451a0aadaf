// SPDX-License-Identifier: GPL-3.0-or-later
#include "checks/check_device.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "array/backend.h"
#include "checks/check_primitives.h"
#include "files/npz.h"
#include "trace/writers.h"

namespace reclab {
namespace {

/// The largest |difference| over the largest |value|. Logarithms of norms are compared as the norms are: by their ratio.
/// `rounding`: logarithms that are no more than these on both sides are of nothing but rounding, which is no difference; may be empty.
double relative_error(const TraceArray& on_cpu, const TraceArray& on_device, const std::vector<double>& rounding = {}) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (on_cpu.shape != on_device.shape || on_cpu.is_complex() != on_device.is_complex()) return nan;
  const bool logarithms = on_cpu.unit == "log10";
  const bool rounds = logarithms && rounding.size() == static_cast<std::size_t>(on_cpu.size());
  double difference = 0.0, largest = 0.0;
  const auto add = [&](auto a, auto b) {
    if (logarithms && a == b) return;  // zeros are -infinity
    difference = std::isnan(std::abs(a - b)) ? nan : std::max(difference, std::abs(a - b));
    largest = std::max(largest, std::abs(a));
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(on_cpu.size()) && !std::isnan(difference); ++i) {
    if (on_cpu.is_complex())
      add((*on_cpu.complex)[i], (*on_device.complex)[i]);
    else if (!rounds || std::max((*on_cpu.real)[i], (*on_device.real)[i]) > rounding[i])
      add((*on_cpu.real)[i], (*on_device.real)[i]);
  }
  if (logarithms) return std::expm1(std::log(10.0) * difference);
  return largest > 0.0 ? difference / largest : difference;
}

double relative_error(const std::vector<double>& on_cpu, const std::vector<double>& on_device) {
  double difference = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < on_cpu.size() && !std::isnan(difference); ++i) {
    const double one = std::abs(on_cpu[i] - on_device[i]);
    difference = std::isnan(one) ? one : std::max(difference, one);
    largest = std::max(largest, std::abs(on_cpu[i]));
  }
  return largest > 0.0 ? difference / largest : difference;
}

double largest_of(const TraceArray& array) {
  double largest = 0.0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(array.size()); ++i)
    largest = std::max(largest, array.is_complex() ? std::abs((*array.complex)[i]) : std::abs((*array.real)[i]));
  return largest;
}

/// Keeps the larger error and the name of its array.
void keep_worse(double error, const std::string& name, double& worst, std::string& array) {
  if (std::isnan(worst) || error <= worst) return;
  worst = error;  // NaN too
  array = name;
}

void compare_primitive(const PrimitiveCase& primitive, Backend& cuda, std::int64_t steps, const std::stop_token& stop,
                       DeviceReport& report) {
  const DType real = report.dtype == "f64" ? DType::f64 : DType::f32;
  const PrimitiveResult cpu = run_primitive(primitive, cpu_backend(), real, steps, stop),
                        device = run_primitive(primitive, cuda, real, steps, stop);
  report.cpu_seconds = cpu.seconds;
  report.cuda_seconds = device.seconds;
  for (std::size_t i = 0; i < cpu.outputs.size(); ++i)
    keep_worse(relative_error(cpu.outputs[i].second, device.outputs[i].second), cpu.outputs[i].first, report.forward_error,
               report.forward_array);
  for (std::size_t i = 0; i < cpu.gradients.size(); ++i)
    keep_worse(relative_error(cpu.gradients[i].second, device.gradients[i].second), cpu.gradients[i].first, report.gradient_error,
               report.gradient_array);
}

void compare_preset(const Registry& registry, const Preset& preset, const DeviceCheck& check, const std::stop_token& stop,
                    DeviceReport& report) {
  RunRequest request;
  request.preset = preset;
  request.form = report.form;
  request.dtype = report.dtype;
  request.cuda = check.cuda;
  TaskOptions make = preset.task_options();
  if (check.length > 0) make.length = std::max(check.length, shortest_task(preset.task, make.set));
  request.sequence = make_task(preset.task, make);
  request.loss = LossKind::random;
  request.recording.kinds.remove(kinds_of(Stage::late));
  RunResult results[2];
  for (const bool cuda : {false, true}) {
    request.device = cuda ? "cuda" : "cpu";
    results[cuda] = run(registry, request, {}, stop);
    const RunInfo& info = results[cuda].trace->info;
    if (info.outcome == Outcome::cancelled) throw Cancelled();
    if (info.device != request.device) {  // it failed, and the CPU did its work: that is no comparison
      report.problem = info.notes.front();
      report.forward_error = report.gradient_error = std::numeric_limits<double>::quiet_NaN();
      return;
    }
    if (info.outcome != Outcome::finished && report.problem.empty()) report.problem = "on " + request.device + ": " + info.sentence;
    (cuda ? report.cuda_seconds : report.cpu_seconds) = info.seconds;
  }
  // A gradient that is zero, as of taps of a kernel that no step meets, is rounding where it comes out of a transform. There is nothing to
  // compare then, if it is no more than that on both: a share of the largest gradient of a parameter.
  const auto of_parameter = [](const TraceArray& array) { return array.key.starts_with(key_of(Kind::gradient, prefix_of(Kind::param))); };
  const double epsilon =
      report.dtype == "f64" ? std::numeric_limits<double>::epsilon() : static_cast<double>(std::numeric_limits<float>::epsilon());
  double rounding = 0.0;
  for (const auto& array : results[0].trace->arrays())
    if (of_parameter(*array)) rounding = std::max(rounding, largest_of(*array));
  rounding *= epsilon;
  // A gate that is what is left of an equation, of an equilibrium that was found, is rounding of its terms: of the order of the states.
  double rounding_of_gates = 0.0;
  for (const auto& array : results[0].trace->arrays())
    if (parse_key(array->key)->kind == Kind::state) rounding_of_gates = std::max(rounding_of_gates, 16.0 * epsilon * largest_of(*array));
  // Likewise that of a state on which nothing depends: a share of the largest gradient of a state at the same step.
  std::vector<double> rounding_of_states;
  for (const auto& array : results[0].trace->arrays())
    if (array->key.starts_with(key_of(Kind::gradient, "state")) && array->unit == "log10" && !array->is_complex()) {
      rounding_of_states.resize(std::max(rounding_of_states.size(), array->real->size()), -std::numeric_limits<double>::infinity());
      for (std::size_t i = 0; i < array->real->size(); ++i)
        rounding_of_states[i] = std::max(rounding_of_states[i], (*array->real)[i] + std::log10(epsilon));
    }
  TracePtr exact;  // float64 on the CPU, where float32 needs it
  const auto as_near = [&](const TraceArray& array, const TraceArray& of_device) {
    if (!exact) {
      RunRequest whole = request;
      whole.device = "cpu";
      whole.dtype = "f64";
      exact = run(registry, whole, {}, stop).trace;
      if (exact->info.outcome == Outcome::cancelled) throw Cancelled();
    }
    const TraceArray* its = exact->find(array.key);
    return its && relative_error(*its, of_device, rounding_of_states) <=
                      std::max(report.allowed(), relative_error(*its, array, rounding_of_states));
  };
  for (const auto& array : results[0].trace->arrays()) {
    const Kind kind = parse_key(array->key)->kind;
    if (!Kinds{Kind::output, Kind::state, Kind::gate, Kind::gradient}.has(kind)) continue;
    const bool gradient = kind == Kind::gradient;
    const TraceArray* other = results[1].trace->find(array->key);
    if (other && of_parameter(*array) && largest_of(*array) <= rounding && largest_of(*other) <= rounding) continue;
    if (other && kind == Kind::gate && std::max(largest_of(*array), largest_of(*other)) <= rounding_of_gates) continue;
    const double error = other ? relative_error(*array, *other, rounding_of_states) : std::numeric_limits<double>::quiet_NaN();
    if (report.dtype != "f64" && error > report.allowed() && as_near(*array, *other)) {
      report.coarse.push_back(array->key);
      continue;
    }
    keep_worse(error, array->key, gradient ? report.gradient_error : report.forward_error,
               gradient ? report.gradient_array : report.forward_array);
  }
}

}  // namespace

Sentence DeviceReport::verdict() const {
  if (!problem.empty()) return problem;
  if (agrees() && !coarse.empty()) return "agrees with float64, from which the CPU's float32 is as far in " + some_of(coarse);
  if (agrees()) return "agrees";
  return "differs: " + (forward_error <= allowed() ? gradient_array : forward_array);
}

std::vector<DeviceReport> check_device(const Registry& registry, const PresetLibrary& presets, const Progress& progress,
                                       std::stop_token stop, const DeviceCheck& check) {
  std::string why;
  Backend* const cuda = check.cuda ? check.cuda : cuda_backend(&why);
  if (cuda && !cuda->lost().empty()) why = "the CUDA device was lost (" + cuda->lost() + "); start the program again";
  if (!cuda || !cuda->lost().empty())
    throw Error("There is nothing to compare the CPU with, " + why + ".", {.parameter = "device", .value = "cuda"});
  constexpr std::int64_t primitive_steps = 160;  // several chunks and recorded blocks, and a rest of each
  std::vector<std::pair<DeviceReport, std::function<void(DeviceReport&)>>> works;
  const auto plan = [&](const std::string& id, const std::string& form, bool primitive, const std::function<void(DeviceReport&)>& work) {
    for (const char* dtype : {"f64", "f32"}) {
      DeviceReport report{id, form, dtype};
      report.primitive = primitive;
      works.emplace_back(std::move(report), work);
    }
  };
  const std::vector<PrimitiveCase> primitives = primitive_cases();
  for (const std::string& id : check.only)
    if (std::ranges::find(primitives, id, &PrimitiveCase::primitive) == primitives.end()) presets.find(id);
  const auto wanted = [&](const std::string& id) { return check.only.empty() || std::ranges::find(check.only, id) != check.only.end(); };
  for (const PrimitiveCase& primitive : primitives)
    if (wanted(primitive.primitive))
      plan(primitive.name, primitive.form, true, [&, primitive](DeviceReport& report) {
        compare_primitive(primitive, *cuda, check.length > 0 ? check.length : primitive_steps, stop, report);
      });
  for (const Preset& preset : presets.presets())
    if (wanted(preset.id))
      for (const std::string& form : card(registry, preset).forms)
        plan(preset.id, form, false,
             [&, &preset = preset](DeviceReport& report) { compare_preset(registry, preset, check, stop, report); });
  std::vector<DeviceReport> reports;
  for (auto& [report, work] : works) {
    if (stop.stop_requested()) throw Cancelled();
    if (progress)
      progress(static_cast<double>(reports.size()) / static_cast<double>(works.size()),
               report.id + ", " + report.form + ", " + report.dtype);
    try {
      work(report);
    } catch (const Error& error) {
      report.problem = error.sentence();
      report.forward_error = report.gradient_error = std::numeric_limits<double>::quiet_NaN();
    }
    reports.push_back(std::move(report));
    if (check.found) check.found(reports.back());
    if (!cuda->lost().empty()) break;
  }
  return reports;
}

std::string to_csv(const std::vector<DeviceReport>& reports) {
  std::ostringstream text;
  text.precision(17);
  text
      << "kind,name,form,dtype,forward_error,forward_array,gradient_error,gradient_array,allowed,agrees,verdict,cpu_seconds,cuda_seconds\n";
  for (const DeviceReport& r : reports)
    text << (r.primitive ? "primitive," : "preset,") << csv_cell(r.id) << ',' << r.form << ',' << r.dtype << ',' << r.forward_error << ','
         << csv_cell(r.forward_array) << ',' << r.gradient_error << ',' << csv_cell(r.gradient_array) << ',' << r.allowed() << ','
         << (r.agrees() ? "yes" : "no") << ',' << csv_cell(r.verdict().terminal_text()) << ',' << r.cpu_seconds << ',' << r.cuda_seconds
         << '\n';
  return text.str();
}

}  // namespace reclab
