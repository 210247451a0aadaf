// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <limits>

#include "array/backend.h"
#include "experiment/experiment.h"
#include "recurrence/memory.h"

namespace reclab {
namespace {

/// The largest |difference| over the largest |value|. Logarithms of norms are compared as the norms are: by their ratio.
double relative_error(const TraceArray& on_cpu, const TraceArray& on_device) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (on_cpu.shape != on_device.shape || on_cpu.is_complex() != on_device.is_complex()) return nan;
  const bool logarithms = on_cpu.unit == "log10";
  double difference = 0.0, largest = 0.0;
  const auto add = [&](auto a, auto b) {
    if (logarithms && a == b) return;  // zeros are -infinity
    difference = std::isnan(std::abs(a - b)) ? nan : std::max(difference, std::abs(a - b));
    largest = std::max(largest, std::abs(a));
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(on_cpu.size()) && !std::isnan(difference); ++i) {
    if (on_cpu.is_complex())
      add((*on_cpu.complex)[i], (*on_device.complex)[i]);
    else
      add((*on_cpu.real)[i], (*on_device.real)[i]);
  }
  if (logarithms) return std::expm1(std::log(10.0) * difference);
  return largest > 0.0 ? difference / largest : difference;
}

double worse(double x, double y) { return std::isnan(x) || std::isnan(y) ? std::numeric_limits<double>::quiet_NaN() : std::max(x, y); }

}  // namespace

std::vector<DeviceReport> check_device(const Registry& registry, const PresetLibrary& presets, const Progress& progress, std::stop_token stop,
                                       std::int64_t length) {
  struct Work {
    const Preset* preset;
    std::string form;
  };
  std::vector<Work> works;
  for (const Preset& preset : presets.presets())
    for (const std::string& form : card(registry, preset).forms)
      if (!is_newton(form_from(form))) works.push_back({&preset, form});  // Newton's iteration ends where the sequential form does
  std::vector<DeviceReport> reports;
  for (const auto& [preset, form] : works)
    for (const char* dtype : {"f64", "f32"}) {
      if (stop.stop_requested()) throw Cancelled();
      if (progress) progress(static_cast<double>(reports.size()) / static_cast<double>(2 * works.size()), preset->id + ", " + form + ", " + dtype);
      RunRequest request;
      request.preset = *preset;
      request.form = form;
      request.dtype = dtype;
      TaskOptions make;
      make.length = length > 0 ? length : preset->task_length;
      make.seed = preset->task_seed;
      request.sequence = make_task(preset->task, make);
      request.loss = LossKind::random;
      request.probe.spectra = request.probe.jacobians = false;
      DeviceReport report{preset->id, form, dtype};
      RunResult results[2];
      for (const bool cuda : {false, true}) {
        request.device = cuda ? "cuda" : "cpu";
        results[cuda] = run(registry, request, {}, stop);
        const RunInfo& info = results[cuda].trace->info;
        if (info.outcome == Outcome::cancelled) throw Cancelled();
        if (info.outcome != Outcome::finished && report.problem.empty()) report.problem = "on " + request.device + ": " + info.sentence;
        (cuda ? report.cuda_seconds : report.cpu_seconds) = info.seconds;
      }
      for (const auto& array : results[0].trace->arrays()) {
        const bool gradient = array->key.starts_with("gradient/");
        if (!gradient && array->key != "output" && !array->key.starts_with("state/") && !array->key.starts_with("gate/")) continue;
        const TraceArray* other = results[1].trace->find(array->key);
        const double error = other ? relative_error(*array, *other) : std::numeric_limits<double>::quiet_NaN();
        double& worst = gradient ? report.gradient_error : report.forward_error;
        const double before = worst;
        worst = worse(worst, error);
        if (worst != before) (gradient ? report.gradient_array : report.forward_array) = array->key;
      }
      reports.push_back(std::move(report));
    }
  return reports;
}

}  // namespace reclab
