// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/kernels/kernel_data.h"

#include "trace/stream_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace reclab {

double KernelMemory::timeConstant(std::int64_t channel) const {
  return constants ? (*constants->real)[static_cast<std::size_t>(channel)] : std::numeric_limits<double>::quiet_NaN();
}

std::vector<KernelMemory> kernelMemories(const Trace& trace) {
  std::vector<KernelMemory> found;
  for (const TraceArray* array : trace.of(Kind::kernel)) {
    if (!array->real || array->shape.size() != 2 || array->size() == 0) continue;
    KernelMemory memory;
    memory.kernel = array;
    memory.channels = array->shape[1];
    memory.key = QString::fromStdString(array->key).section(u'/', 1);
    const std::string key = memory.key.toStdString();
    const TraceArray *response = trace.find(key_of(Kind::response, key)), *constants = trace.find(prefix_of(Kind::time_constant) + key);
    if (response && response->complex && response->shape.size() == 2 && response->shape[1] == memory.channels &&
        response->shape[0] == std::ssize(responseFrequencies(trace)))
      memory.response = response;
    if (constants && constants->real && constants->size() == memory.channels) memory.constants = constants;
    const bool named = array->axes.size() == 2 && std::ssize(array->axes[1].labels) == memory.channels;
    for (std::int64_t i = 0; i < memory.channels; ++i)
      memory.labels << (named ? QString::fromStdString(array->axes[1].labels[static_cast<std::size_t>(i)]) : QString::number(i));
    found.push_back(std::move(memory));
  }
  return found;
}

std::span<const double> responseFrequencies(const Trace& trace) {
  const TraceArray* array = trace.find(key_of(Kind::response, "frequency"));
  return array && array->real ? std::span<const double>(*array->real) : std::span<const double>();
}

std::vector<double> unwrappedPhases(const KernelMemory& memory, std::int64_t channel) {
  std::vector<double> phases;
  double turns = 0.0, before = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t i = 0; memory.response && i < memory.response->shape[0]; ++i) {
    const std::complex<double> gain = memory.gain(i, channel);
    const double phase = std::abs(gain) > 0.0 ? std::arg(gain) * 180.0 / std::numbers::pi : std::numeric_limits<double>::quiet_NaN();
    if (phase - before > 180.0) turns -= 360.0;
    if (phase - before < -180.0) turns += 360.0;
    if (std::isfinite(phase)) before = phase;
    phases.push_back(phase + turns);
  }
  return phases;
}

std::int64_t reachOf(const KernelMemory& memory, std::int64_t channel, double part) {
  double largest = 0.0;
  for (std::int64_t lag = 0; lag < memory.lags(); ++lag) largest = std::max(largest, std::abs(memory.at(lag, channel)));
  for (std::int64_t lag = memory.lags() - 1; lag > 0; --lag)
    if (std::abs(memory.at(lag, channel)) > part * largest) return lag;
  return 0;
}

std::optional<StepTime> stepTime(const Trace& trace) {
  if (trace.time_name == "step" || counts_stream(trace) || trace.time.size() < 2 || trace.time.size() != trace.steps.size()) return {};
  const double span = static_cast<double>(trace.steps.back() - trace.steps.front()),
               spacing = (trace.time.back() - trace.time.front()) / span;
  if (!(spacing > 0.0) || !std::isfinite(spacing)) return {};
  for (std::size_t i = 0; i < trace.time.size(); ++i)
    if (!(std::abs(trace.time[i] - trace.time.front() - spacing * static_cast<double>(trace.steps[i] - trace.steps.front())) <=
          0.5 * spacing))
      return {};
  return StepTime{spacing, QString::fromStdString(trace.time_unit.empty() ? trace.time_name : trace.time_unit)};
}

}  // namespace reclab
