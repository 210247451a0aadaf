// SPDX-License-Identifier: GPL-3.0-or-later
// Lyapunov exponents against closed forms, a plain Gram-Schmidt process in long double, determinants, and two states that part.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "array/rng.h"
#include "experiment/command/command.h"
#include "experiment/experiment.h"
#include "models/network.h"
#include "models/registry.h"
#include "places.h"
#include "runs.h"
#include "safetensors.h"
#include "scratch.h"
#include "test.h"
#include "timing/primitives.h"

using namespace reclab;
using test::finished;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// On noise; which rows there are is the run's to choose.
RunRequest request_for(const std::string& architecture, std::int64_t length, test::Settings set) {
  RunRequest request = test::request_of(architecture, make_task("noise", {.length = length, .seed = 1}), std::move(set));
  request.every = 0;
  request.recording = recording_of({"lyapunov", "param", "state", "spectrum"});
  return request;
}

std::vector<double> exponents(const Trace& trace, const std::string& key = "lyapunov/0") {
  const TraceArray* array = trace.find(key);
  CHECK_SAYS(array && array->real, key);
  return *array->real;
}

/// Row t is the mean over the steps from this one to t.
std::size_t first_of(std::size_t t) { return (t + 1) / 4; }

/// Of an Elman network with tanh: J_t = diag(1 - h_t²) W.
std::vector<std::vector<long double>> jacobian_of(const Trace& trace, std::size_t t, std::size_t n) {
  const auto &h = *trace.find("state/0/h")->real, &w = *trace.find("param/0/weight_hh")->real;
  std::vector<std::vector<long double>> made(n, std::vector<long double>(n));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) made[i][j] = (1.0L - static_cast<long double>(h[t * n + i]) * h[t * n + i]) * w[i * n + j];
  return made;
}

/// ln R[j][j] of the columns, which become orthonormal: Gram and Schmidt's process, twice.
std::vector<long double> gram_schmidt(std::vector<std::vector<long double>>& columns) {
  std::vector<long double> logs;
  const auto dot = [](const auto& a, const auto& b) {
    long double sum = 0.0L;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  for (std::size_t j = 0; j < columns.size(); ++j) {
    for (int twice = 0; twice < 2; ++twice)
      for (std::size_t before = 0; before < j; ++before) {
        const long double part = dot(columns[before], columns[j]);
        for (std::size_t i = 0; i < columns[j].size(); ++i) columns[j][i] -= part * columns[before][i];
      }
    const long double length = std::sqrt(dot(columns[j], columns[j]));
    for (long double& x : columns[j]) x /= length;
    logs.push_back(std::log(length));
  }
  return logs;
}

}  // namespace

TEST_CASE("Lyapunov exponents are the logarithms of a linear network's radius, however far the product leaves the range of a double") {
  for (const double radius : {0.2, 0.95, 1.1}) {
    const TracePtr trace =
        finished(request_for("elman", 1500, {{"activation", "identity"}, {"spectral_radius", std::to_string(radius)}, {"width", "9"}}));
    const TraceArray* array = trace->find("lyapunov/0");
    CHECK(array && array->shape == Shape({1500, 9}) && array->steps.empty() && array->unit == "1/step");
    for (const double exponent : *array->real) CHECK_CLOSE(exponent, std::log(radius), 1e-12);
  }
}

TEST_CASE(
    "exponents of diagonal factors are the means of their logarithms over the last three quarters of the steps so far, largest first") {
  RunRequest request;
  request.preset = primitive_preset("diagonal");
  request.set = {{"width", "3"}};
  request.sequence = primitive_input("diagonal", hyper_of(primitives(), request.preset, request.set), 1024, 1);
  const auto factor = [](std::size_t t, std::size_t j) { return t < 250 ? 0.1 : j == 0 ? 1e-300 : j == 1 ? 0.9 : 0.5; };
  for (std::size_t t = 0; t < 1024; ++t)
    for (std::size_t j = 0; j < 3; ++j) request.sequence.own().input[t * 6 + j] = factor(t, j);
  request.recording = recording_of({"lyapunov"});
  const std::vector<double> found = exponents(*finished(request, primitives()));
  for (const std::size_t t : {std::size_t{0}, std::size_t{2}, std::size_t{3}, std::size_t{400}, std::size_t{1023}}) {
    std::vector<double> expected;
    for (std::size_t j = 0; j < 3; ++j) {
      long double sum = 0.0L;
      for (std::size_t s = first_of(t); s <= t; ++s) sum += std::log(static_cast<long double>(factor(s, j)));
      expected.push_back(static_cast<double>(sum / static_cast<long double>(t + 1 - first_of(t))));
    }
    std::ranges::sort(expected, std::greater<>());
    for (std::size_t j = 0; j < 3; ++j) CHECK_CLOSE(found[t * 3 + j], expected[j], 1e-12 * std::max(1.0, std::abs(expected[j])));
  }
  CHECK_CLOSE(found[1023 * 3], std::log(0.9), 1e-12);  // nothing of the first 250
  // A factor of 0 forgets at once, for as long as it is among the steps of the mean.
  request.sequence.own().input[300 * 6 + 1] = 0.0;
  const std::vector<double> forgot = exponents(*finished(request, primitives()));
  CHECK(std::isfinite(forgot[299 * 3 + 2]) && forgot[300 * 3 + 2] == -infinity && forgot[1023 * 3 + 2] == -infinity &&
        std::isfinite(forgot[1023 * 3 + 1]));
}

TEST_CASE(
    "every exponent of every row is that of a plain Gram-Schmidt process over the whole sequence, however the run is cut into segments") {
  const std::size_t n = 12, steps = 4000;
  RunRequest request = request_for("elman", static_cast<std::int64_t>(steps), {{"spectral_radius", "1.4"}, {"width", std::to_string(n)}});
  request.every = 1;
  const TracePtr trace = finished(request);
  const std::vector<double> found = exponents(*trace);
  std::vector<std::vector<long double>> frame(n, std::vector<long double>(n));
  Rng rng = Rng(1).split("lyapunov");
  for (auto& column : frame)
    for (long double& x : column) x = rng.normal();
  gram_schmidt(frame);
  std::vector<std::vector<long double>> sums(steps + 1, std::vector<long double>(n, 0.0L));
  double worst = 0.0;
  for (std::size_t t = 0; t < steps; ++t) {
    const auto jacobian = jacobian_of(*trace, t, n);
    std::vector<std::vector<long double>> next(n, std::vector<long double>(n, 0.0L));
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t l = 0; l < n; ++l) next[j][i] += jacobian[i][l] * frame[j][l];
    frame = std::move(next);
    const auto logs = gram_schmidt(frame);
    for (std::size_t j = 0; j < n; ++j) sums[t + 1][j] = sums[t][j] + logs[j];
    std::vector<double> row;
    for (std::size_t j = 0; j < n; ++j)
      row.push_back(static_cast<double>((sums[t + 1][j] - sums[first_of(t)][j]) / static_cast<long double>(t + 1 - first_of(t))));
    std::ranges::sort(row, std::greater<>());
    for (std::size_t j = 0; j < n; ++j) worst = std::max(worst, std::abs(row[j] - found[t * n + j]));
  }
  CHECK_SAYS(worst < 1e-9, "differs by " + test::show(worst));
}

TEST_CASE("the largest exponent is the rate at which two states that begin close to each other part") {
  const std::size_t n = 32, steps = 6000;
  for (const char* radius : {"0.9", "2"}) {
    RunRequest request =
        request_for("elman", static_cast<std::int64_t>(steps), {{"spectral_radius", radius}, {"width", std::to_string(n)}});
    std::ranges::fill(request.sequence.own().input, 0.01);
    request.every = 1;
    const TracePtr trace = finished(request);
    const auto &h = *trace->find("state/0/h")->real, &w = *trace->find("param/0/weight_hh")->real;
    // What drives the second state too, from the first: atanh(h_t) - W h_{t-1} is what the input and the biases add.
    std::vector<double> apart(n, 1e-7 / std::sqrt(static_cast<double>(n)));
    double sum = 0.0;
    for (std::size_t t = 1; t < steps; ++t) {
      std::vector<double> next(n);
      double length = 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        double add = 0.0;
        for (std::size_t j = 0; j < n; ++j) add += w[i * n + j] * apart[j];
        next[i] = std::tanh(std::atanh(h[t * n + i]) + add) - h[t * n + i];
        length += next[i] * next[i];
      }
      length = std::sqrt(length);
      if (t >= steps / 4) sum += std::log(length / 1e-7);
      for (std::size_t i = 0; i < n; ++i) apart[i] = next[i] * (1e-7 / length);
    }
    const double largest = exponents(*trace)[(steps - 1) * n];
    CHECK((largest > 0.0) == (std::string(radius) == "2"));
    CHECK_CLOSE(largest, sum / static_cast<double>(steps - steps / 4), 1e-3);
  }
}

TEST_CASE("the exponents of every preset sum to the mean logarithm of |det ds_t/ds_{t-1}|, with the columns on which a block acts") {
  const PresetLibrary library(builtin_registry(), {test::source("presets")});
  int compared = 0;
  for (const Preset& preset : library.presets()) {
    RunRequest request;
    request.preset = preset;
    request.sequence = make_task(preset.task, {.length = 24, .seed = 1});
    request.every = 1;
    request.recording = recording_of({"lyapunov", "spectrum", "state"});
    const TracePtr trace = finished(request);
    const auto architecture = architecture_of(builtin_registry(), preset);
    const Network network(*architecture, hyper_of(builtin_registry(), preset), {.input = request.sequence->width});
    CHECK_EQUAL(trace->of(Kind::lyapunov).size(), trace->of(Kind::spectrum).size());
    for (const TraceArray* array : trace->of(Kind::lyapunov)) {
      const auto layer = static_cast<std::size_t>(parse_key(array->key)->layer);
      const TraceArray* spectrum = trace->find(key_of(Kind::spectrum, static_cast<std::int64_t>(layer)));
      CHECK_SAYS(array->row_size() == spectrum->row_size() && array->shape[0] == 24, preset.id + " " + array->key);
      const auto n = static_cast<std::size_t>(array->row_size());
      const bool backward = trace->info.each_layer[layer].reversed;
      // By the layer's own time.
      const auto at = [&](std::size_t t) { return backward ? 23 - t : t; };
      // A layer at a slower rate stands still between its own steps, and what stands still grows by nothing.
      const auto moves = [&](std::size_t t) {
        return network.layers()[layer].stride == 1 ||
               std::ranges::any_of(trace->matching(key_of(Kind::state, static_cast<std::int64_t>(layer), "")),
                                   [&](const TraceArray* state) {
                                     const auto size = static_cast<std::size_t>(state->row_size());
                                     const auto same = [&](const auto& values) {
                                       return std::equal(values.begin() + static_cast<std::ptrdiff_t>(at(t) * size),
                                                         values.begin() + static_cast<std::ptrdiff_t>((at(t) + 1) * size),
                                                         values.begin() + static_cast<std::ptrdiff_t>(at(t - 1) * size));
                                     };
                                     return state->is_complex() ? !same(*state->complex) : !same(*state->real);
                                   });
      };
      long double sum = 0.0L;
      bool singular = false;
      for (std::size_t t = first_of(23); t < 24; ++t)
        for (std::size_t j = 0; moves(t) && j < n; ++j) {
          const double size = std::abs((*spectrum->complex)[(spectrum->shape[0] == 1 ? 0 : at(t)) * n + j]);
          singular =
              singular || size < 1e-8;  // what is left where 1 cancels is known to 1e-16 of that 1, and its logarithm no better than 1e-8
          sum += std::log(static_cast<long double>(size));
        }
      const std::span<const double> row = std::span<const double>(*array->real).subspan(at(23) * n, n);
      CHECK_SAYS(std::ranges::is_sorted(row, std::greater<>()), preset.id);
      if (singular) continue;
      double all = 0.0;
      for (const double exponent : row) all += exponent;
      const double expected = static_cast<double>(sum / (24.0L - static_cast<long double>(first_of(23))));
      CHECK_SAYS(std::abs(all - expected) <= 1e-8 * std::max(1.0, std::abs(expected)),
                 preset.id + " " + array->key + ": " + test::show(all) + ", not " + test::show(expected));
      ++compared;
    }
  }
  CHECK_SAYS(compared >= 20, std::to_string(compared));
}

TEST_CASE("a triangular matrix has the logarithms of its diagonal, and -infinity for what it forgets at once") {
  RunRequest request = request_for("elman", 600, {{"activation", "identity"}, {"width", "3"}});
  const test::Scratch folder;
  const double weight_hh[9] = {0.5, 0.0, 0.0, 40.0, 0.25, 0.0, -7.0, 3.0, 0.0};
  std::string header, data;
  const auto add = [&](const std::string& name, const std::string& shape, const std::vector<double>& values) {
    header +=
        (header.empty() ? "" : ",") + test::safetensors_entry("0/" + name, "F64", shape, data.size(), data.size() + 8 * values.size());
    data.append(reinterpret_cast<const char*>(values.data()), 8 * values.size());
  };
  add("weight_ih", "[3,1]", {1.0, 1.0, 1.0});
  add("weight_hh", "[3,3]", std::vector<double>(weight_hh, weight_hh + 9));
  add("bias_ih", "[3]", {0.0, 0.0, 0.0});
  add("bias_hh", "[3]", {0.0, 0.0, 0.0});
  request.weights = folder.file("weights.safetensors", test::safetensors("{" + header + "}", data));
  const std::vector<double> found = exponents(*finished(request));
  const std::size_t last = 599 * 3;
  CHECK_CLOSE(found[last], std::log(0.5), 1e-9);
  CHECK_CLOSE(found[last + 1], std::log(0.25), 1e-9);
  CHECK(found[last + 2] == -infinity);
  // Where the radius is 0, all are.
  for (const double exponent :
       exponents(*finished(request_for("elman", 30, {{"activation", "identity"}, {"spectral_radius", "0"}, {"width", "4"}}))))
    CHECK(exponent == -infinity);
}

TEST_CASE("a layer that runs backward has its exponents from the end on") {
  const TracePtr trace = finished(
      request_for("elman", 200, {{"width", "6"}, {"direction", "backward"}, {"activation", "identity"}, {"spectral_radius", "0.8"}}));
  CHECK(trace->info.each_layer[0].reversed);
  CHECK_CLOSE(exponents(*trace)[0], std::log(0.8), 1e-12);
  // With tanh the first rows, which are the ends of the means, differ less than the last ones, which are of few steps.
  const TracePtr bent = finished(request_for("elman", 200, {{"width", "6"}, {"direction", "backward"}}));
  const std::vector<double> found = exponents(*bent);
  CHECK(std::abs(found[0] - found[6]) < 0.1 * std::abs(found[198 * 6] - found[199 * 6]));
}

TEST_CASE("what has no transition has no exponents and says why; what takes long has the largest, and says so") {
  const TracePtr none = finished(request_for("transformer", 20, {}));
  CHECK(!none->has(Kind::lyapunov));
  CHECK(std::ranges::any_of(none->info.note_kinds, [](const auto& note) {
    return note.first == Kind::lyapunov &&
           note.second.terminal_text().find("has no Lyapunov exponents, because what it carries is a record of the past, ") !=
               std::string::npos;
  }));
  RunRequest wide = request_for("lstm", 700, {{"width", "160"}});
  wide.recording = {};
  wide.recording.kinds = {Kind::lyapunov};
  const TracePtr some = finished(wide);
  const TraceArray* array = some->find("lyapunov/0");
  CHECK(array && array->row_size() >= 1 && array->row_size() < 320 && array->shape[0] == 700);
  CHECK(std::ranges::any_of(some->info.note_kinds, [&](const auto& note) {
    return note.first == Kind::lyapunov && note.second.terminal_text().find("has the largest " + std::to_string(array->row_size()) +
                                                                            " of the 320 Lyapunov exponents") != std::string::npos;
  }));
}
