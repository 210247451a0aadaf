// SPDX-License-Identifier: GPL-3.0-or-later
// A hand-made Trace for widget tests: the record of a run of a gated cell, by formulas that a test can recompute.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace reclab::test {

struct SyntheticOptions {
  std::int64_t length = 300, units = 16, layers = 1, every = 1;
  double decades_per_step = -1.0 / 23.0;  ///< of dL/ds_t, going back in time
  bool continuous = false;                ///< exponentials of synthetic_flow(), one row for the run
  std::int64_t spectrum_every = 10;       ///< per-step spectra are computed for every so many steps; 0: one row for the run
  bool gates = true, spectra = true, gradients = true, timing = true, lyapunov = true;
};

inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
inline double synthetic_gate(double t, double unit, double phase) {
  return sigmoid(6.0 * std::sin(0.02 * t + 0.7 * unit + phase) + 2.0 * std::cos(0.31 * unit * unit));
}

/// Rank j after step t: wild at first, then 0.05, 0.01, -0.03 and so on.
inline double synthetic_exponent(double t, double j) { return 0.05 - 0.04 * j + (0.4 * std::cos(0.1 * t + j) - 0.2) / (1.0 + 0.2 * t); }

/// The j-th of n eigenvalues in continuous time, times the step.
inline std::complex<double> synthetic_flow(std::int64_t j, std::int64_t n) {
  return {-0.025 - 0.01 * static_cast<double>(j) / static_cast<double>(n),
          (j % 2 == 0 ? 1.0 : -1.0) * 0.05 * std::numbers::pi * static_cast<double>(j / 2)};
}

inline TraceArray real_array(std::string key, Shape shape, std::vector<Axis> axes, std::vector<double> values, std::string text = {}) {
  TraceArray array;
  array.key = std::move(key);
  array.shape = std::move(shape);
  array.axes = std::move(axes);
  array.text = std::move(text);
  array.real = std::make_shared<const std::vector<double>>(std::move(values));
  return array;
}

template <class F>
TraceArray unit_array(std::string key, const std::vector<std::int64_t>& steps, std::int64_t units, const F& value, std::string text) {
  std::vector<double> values;
  values.reserve(steps.size() * static_cast<std::size_t>(units));
  for (const std::int64_t t : steps)
    for (std::int64_t j = 0; j < units; ++j) values.push_back(value(static_cast<double>(t), static_cast<double>(j)));
  return real_array(std::move(key), {static_cast<std::int64_t>(steps.size()), units}, {{"time", "", {}}, {"unit", "", {}}},
                    std::move(values), std::move(text));
}

inline std::shared_ptr<const Trace> synthetic_trace(const SyntheticOptions& options = {}) {
  auto trace = std::make_shared<Trace>();
  const std::int64_t T = options.length, n = options.units;
  RunInfo& info = trace->info;
  info.version = "0.1.0";
  info.preset = info.architecture = "lstm";
  info.title = "LSTM";
  info.family = "gated";
  info.hyper = {{"width", std::to_string(n)}, {"layers", std::to_string(options.layers)}};
  info.seed = 1;
  info.device = "cpu";
  info.dtype = "float64";
  info.form = info.record_form = "sequential";
  info.input_name = "sunspots.csv";
  info.loss = "last";
  info.length = T;
  info.every = options.every;
  info.layers = options.layers;
  info.command = "reclab run lstm --input sunspots.csv --seed 1";
  for (std::int64_t t = 0; t < T; t += options.every) {
    trace->steps.push_back(t);
    trace->time.push_back(1749.0 + static_cast<double>(t) / 12.0);
  }
  trace->time_name = "year";
  trace->input_names = {"sunspots"};
  trace->output_names = {"y"};
  const std::vector<std::int64_t>& steps = trace->steps;
  const auto rows = static_cast<std::int64_t>(steps.size());
  trace->put(unit_array("input", steps, 1, [](double t, double) { return std::sin(0.05 * t) + 0.3 * std::sin(0.41 * t); }, "the input"));

  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    const std::string at = "/" + std::to_string(layer) + "/";
    const double shift = static_cast<double>(layer);
    trace->put(unit_array(
        "state" + at + "hidden", steps, n,
        [&](double t, double j) { return std::tanh(2.0 * std::sin(0.03 * t + 0.5 * j + shift)) * std::cos(0.2 * j); },
        "what the cell shows"));
    trace->put(unit_array(
        "state" + at + "cell", steps, n, [&](double t, double j) { return 3.0 * std::sin(0.013 * t + 0.3 * j + shift); }, "the memory"));
    if (options.gates) {
      const std::vector<std::pair<std::string, double>> gates = {{"forget", 0.0}, {"input", 1.0}, {"output", 2.0}};
      for (const auto& [name, phase] : gates) {
        TraceArray gate = unit_array(
            "gate" + at + name, steps, n, [&](double t, double j) { return synthetic_gate(t, j, phase + shift); }, "the " + name + " gate");
        gate.high = 1.0;
        trace->put(std::move(gate));
      }
      trace->put(unit_array(
          "gate" + at + "step_size", steps, n, [](double t, double j) { return 0.5 + 0.4 * std::sin(0.05 * t) * std::cos(j); },
          "the step size, unbounded"));
    }
    if (options.spectra) {
      TraceArray spectrum;
      spectrum.key = "spectrum/" + std::to_string(layer);
      spectrum.axes = {{"time", "", {}}, {"eigenvalue", "", {}}};
      spectrum.text = "eigenvalues of the recurrent Jacobian";
      auto values = std::make_shared<std::vector<std::complex<double>>>();
      const bool moves = !options.continuous && options.spectrum_every > 0;
      if (moves) {
        for (std::int64_t t = 0; t < T; t += options.spectrum_every) spectrum.steps.push_back(t);
      }
      const std::vector<std::int64_t> at_steps = moves ? spectrum.steps : std::vector<std::int64_t>{0};
      for (const std::int64_t t : at_steps) {
        for (std::int64_t j = 0; j < n; ++j) {
          const double x = static_cast<double>(j) / static_cast<double>(n), pi = std::numbers::pi;
          if (options.continuous) {
            values->push_back(std::exp(synthetic_flow(j, n)));
          } else {
            const double modulus = 0.6 + 0.397 * std::sqrt(x) * std::pow(std::cos(0.01 * static_cast<double>(t)), 2.0);
            values->push_back(
                std::polar(modulus, (j % 2 == 0 ? 1.0 : -1.0) * pi * (0.1 + 0.8 * static_cast<double>(j / 2 * 2) / static_cast<double>(n)) +
                                        0.0004 * static_cast<double>(t)));
          }
        }
      }
      spectrum.shape = {static_cast<std::int64_t>(at_steps.size()), n};
      spectrum.complex = values;
      trace->put(std::move(spectrum));
      info.spectra.push_back({.continuous = options.continuous,
                              .per_step = moves,
                              .of = options.continuous ? "the discretised transition" : "eigenvalues of the recurrent Jacobian ∂sₜ/∂sₜ₋₁",
                              .rule = options.continuous ? "exponential" : ""});
      if (options.continuous) {
        TraceArray flow;
        flow.key = "flow/" + std::to_string(layer);
        flow.shape = {1, n};
        flow.axes = {{"time", "", {}}, {"eigenvalue", "", {}}};
        std::vector<std::complex<double>> exponents;
        for (std::int64_t j = 0; j < n; ++j) exponents.push_back(synthetic_flow(j, n));
        flow.complex = std::make_shared<const std::vector<std::complex<double>>>(std::move(exponents));
        trace->put(std::move(flow));
      }
    }
    if (options.gradients) {
      const auto lag = [&](double t) { return static_cast<double>(T - 1) - t; };
      const auto put_log = [&](const std::string& key, const auto& value, std::int64_t k) {
        TraceArray array = unit_array(key, steps, k, value, "log10");
        if (k == 1) {
          array.shape.pop_back();
          array.axes.pop_back();
        }
        array.unit = "log10";
        trace->put(std::move(array));
      };
      const double slope = options.decades_per_step;
      put_log("gradient/state" + at + "hidden", [&](double t, double) { return slope * 1.1 * lag(t) + 0.15 * std::sin(0.9 * t) - 1.0; }, 1);
      put_log("gradient/state" + at + "cell", [&](double t, double) { return slope * lag(t) + 0.1 * std::sin(0.7 * t) - 0.5; }, 1);
      put_log("jacobian/" + std::to_string(layer), [&](double t, double j) { return slope * (1.0 + j) * lag(t); }, 4);
      put_log("jacobian_min/" + std::to_string(layer), [&](double t, double) { return slope * 8.0 * lag(t); }, 1);
    }
    if (options.lyapunov) {
      TraceArray array = unit_array("lyapunov/" + std::to_string(layer), steps, n, synthetic_exponent, "the exponents");
      array.axes[1].name = "rank";
      array.unit = "1/step";
      trace->put(std::move(array));
    }
  }

  if (options.timing) {
    const auto put_form = [&](const std::string& form, double at_one, double exponent) {
      std::vector<double> lengths, seconds, low, high;
      for (double length = 64; length <= 16384; length *= 2) {
        lengths.push_back(length);
        seconds.push_back(at_one * std::pow(length, exponent) + 2e-5);
        low.push_back(seconds.back() * 0.85);
        high.push_back(seconds.back() * 1.25);
      }
      const auto k = static_cast<std::int64_t>(lengths.size());
      trace->put(real_array("timing/" + form + "/length", {k}, {{"length", "steps", {}}}, lengths));
      trace->put(real_array("timing/" + form + "/seconds", {k}, {{"length", "steps", {}}}, seconds));
      trace->put(real_array("timing/" + form + "/low", {k}, {{"length", "steps", {}}}, low));
      trace->put(real_array("timing/" + form + "/high", {k}, {{"length", "steps", {}}}, high));
      trace->put(real_array("timing/" + form + "/exponent", {1}, {{"", "", {}}}, {exponent}));
    };
    put_form("sequential", 2e-6, 1.0);
    put_form("scan", 6e-7, 1.02);
    put_form("attention", 3e-9, 1.97);
  }
  info.bytes = rows * n * 8 * 6;
  return trace;
}

}  // namespace reclab::test
