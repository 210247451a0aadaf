// SPDX-License-Identifier: GPL-3.0-or-later
// The kernels and frequency responses of a trace, as the numbers that are drawn.
#pragma once

#include <QString>
#include <QStringList>
#include <complex>
#include <optional>
#include <span>
#include <vector>

#include "panels/step_time.h"
#include "trace/trace.h"

namespace reclab {

/// One time-invariant memory of a run. Arrays that were not recorded are null.
struct KernelMemory {
  QString key;  ///< "0/h"
  const TraceArray *kernel = nullptr, *response = nullptr, *constants = nullptr;
  std::int64_t channels = 0;
  QStringList labels;  ///< of the channels

  std::int64_t lags() const { return kernel ? kernel->shape[0] : 0; }
  double at(std::int64_t lag, std::int64_t channel) const { return (*kernel->real)[static_cast<std::size_t>(lag * channels + channel)]; }
  std::complex<double> gain(std::int64_t point, std::int64_t channel) const {
    return (*response->complex)[static_cast<std::size_t>(point * channels + channel)];
  }
  double timeConstant(std::int64_t channel) const;  ///< steps; NaN where it was not recorded
};

std::vector<KernelMemory> kernelMemories(const Trace& trace);
/// Cycles a step; empty where no response was recorded.
std::span<const double> responseFrequencies(const Trace& trace);
/// The phases of a channel in degrees, without jumps from one frequency to the next.
std::vector<double> unwrappedPhases(const KernelMemory& memory, std::int64_t channel);
/// The last lag at which the kernel of a channel is more than a part of its largest value.
std::int64_t reachOf(const KernelMemory& memory, std::int64_t channel, double part);

/// The file's own time, where its steps are even and are no plain numbers.
std::optional<StepTime> stepTime(const Trace& trace);

}  // namespace reclab
