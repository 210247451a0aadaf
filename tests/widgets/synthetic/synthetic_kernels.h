// SPDX-License-Identifier: GPL-3.0-or-later
// Kernels of a hand-made memory: channel j is a wave that fades with the time constant 5 (j + 1) steps, so that all of it can be
// recomputed.
#pragma once

#include <cmath>
#include <complex>
#include <numbers>

#include "synthetic_trace.h"

namespace reclab::test {

inline double synthetic_constant(double j) { return 5.0 * (j + 1.0); }
inline std::complex<double> synthetic_mode(double j, double slower) {
  return std::polar(std::exp(-1.0 / (slower * synthetic_constant(j))), 0.25 / (1.0 + 0.3 * j));
}
inline double synthetic_kernel(double lag, double j, double slower = 1.0) {
  return std::pow(synthetic_mode(j, slower), lag).real() / (1.0 + 0.2 * j);
}
inline std::complex<double> synthetic_response(double cycles, double j, double slower = 1.0) {
  const std::complex<double> z = std::polar(1.0, -2.0 * std::numbers::pi * cycles), a = synthetic_mode(j, slower);
  return 0.5 * (1.0 / (1.0 - a * z) + 1.0 / (1.0 - std::conj(a) * z)) / (1.0 + 0.2 * j);
}

inline void put_kernels(Trace& trace, const std::string& key = "0/h", std::int64_t channels = 6, double slower = 1.0,
                        std::int64_t lags = 300) {
  std::vector<double> kernels, constants, frequencies;
  auto responses = std::make_shared<std::vector<std::complex<double>>>();
  std::vector<std::string> labels;
  constexpr int points = 201;
  for (std::int64_t lag = 0; lag < lags; ++lag)
    for (std::int64_t j = 0; j < channels; ++j)
      kernels.push_back(synthetic_kernel(static_cast<double>(lag), static_cast<double>(j), slower));
  for (int i = 0; i < points; ++i) {
    frequencies.push_back(0.5 * std::pow(10.0, 4.0 * (static_cast<double>(i) / (points - 1) - 1.0)));
    for (std::int64_t j = 0; j < channels; ++j)
      responses->push_back(synthetic_response(frequencies.back(), static_cast<double>(j), slower));
  }
  for (std::int64_t j = 0; j < channels; ++j) {
    constants.push_back(slower * synthetic_constant(static_cast<double>(j)));
    labels.push_back(std::to_string(j));
  }
  const Axis channel{"channel", "", labels};
  trace.put(real_array("kernel/" + key, {lags, channels}, {{"lag", "steps", {}}, channel}, kernels, "The kernel of " + key + "."));
  trace.put(real_array("response/frequency", {points}, {{"frequency", "1/step", {}}}, frequencies));
  TraceArray response;
  response.key = "response/" + key;
  response.shape = {points, channels};
  response.axes = {{"frequency", "1/step", {}}, channel};
  response.complex = std::move(responses);
  trace.put(std::move(response));
  TraceArray constant = real_array("time_constant/" + key, {channels}, {channel}, constants);
  constant.unit = "steps";
  trace.put(std::move(constant));
}

}  // namespace reclab::test
