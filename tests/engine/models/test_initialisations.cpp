// SPDX-License-Identifier: GPL-3.0-or-later
// How recurrent matrices start, and what is said of networks that start so.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "algebra/eigen.h"
#include "array/error.h"
#include "experiment/experiment.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

TracePtr run_of(const std::string& preset, const test::Settings& set, const Sequence& sequence) {
  RunRequest request;
  request.preset = test::shipped().find(preset);
  request.set = set;
  request.sequence = sequence;
  request.every = 1;
  request.recording.kinds.remove(kinds_of(Stage::late));
  return run(builtin_registry(), request, {}, {}).trace;
}

/// W_hh of an Elman network as it is drawn.
std::vector<double> drawn(const std::string& kind, int width, double radius, const test::Settings& more = {}) {
  test::Settings set{{"recurrent_init", kind}, {"width", std::to_string(width)}, {"spectral_radius", std::to_string(radius)}};
  set.insert(set.end(), more.begin(), more.end());
  return *run_of("elman", set, make_task("noise", {.length = 2}))->find("param/0/weight_hh")->real;
}

/// A product of square matrices [n, n].
std::vector<double> times(const std::vector<double>& a, const std::vector<double>& b, std::size_t n) {
  std::vector<double> c(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
  return c;
}

/// The eigenvalues of what a pair of units does to small deviations in the time from `from` until it is back where it was, as nearly as it
/// ever is, to the power of one over the turns that it made meanwhile.
struct Multipliers {
  double larger, smaller;
  double missed;  ///< how far from where it was, as a share of its distance from 0
};
Multipliers multipliers(const Trace& trace, std::size_t pair, std::size_t from) {
  const auto& h = *trace.find("state/0/h")->real;
  const auto& W = *trace.find("param/0/weight_hh")->real;
  const auto width = static_cast<std::size_t>(trace.find("state/0/h")->shape[1]), steps = h.size() / width;
  const auto at = [&](std::size_t t) { return std::complex<double>(h[t * width + 2 * pair], h[t * width + 2 * pair + 1]); };
  std::size_t back = 0;
  double nearest = std::numeric_limits<double>::infinity();
  for (std::size_t t = from + 40; t < steps; ++t)
    if (std::abs(at(t) - at(from)) < nearest) {
      nearest = std::abs(at(t) - at(from));
      back = t;
    }
  double angle = 0.0, logarithm = 0.0;  // of the determinant: of a long product the smaller eigenvalue is rounding
  std::vector<double> product{1.0, 0.0, 0.0, 1.0};
  for (std::size_t t = from + 1; t <= back; ++t) {
    angle += std::arg(at(t) / at(t - 1));
    std::vector<double> step(4);
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < 2; ++j) {
        const double value = h[t * width + 2 * pair + i];
        step[i * 2 + j] = (1.0 - value * value) * W[(2 * pair + i) * width + 2 * pair + j];
      }
    product = times(step, product, 2);
    logarithm += std::log(std::abs(step[0] * step[3] - step[1] * step[2]));
  }
  const double turns = std::round(angle / (2.0 * std::numbers::pi));
  CHECK(turns >= 1.0);
  const double larger = std::pow(std::abs(eigenvalues(product, 2)[0]), 1.0 / turns);
  return {larger, std::exp(logarithm / turns) / larger, nearest / std::abs(at(from))};
}

}  // namespace

TEST_CASE("each way that a recurrent matrix can start is what it says") {
  const std::size_t n = 64;
  const auto identity = drawn("identity", 64, 0.7), diagonal = drawn("diagonal", 64, 0.7), antisymmetric = drawn("antisymmetric", 64, 0.7),
             rotations = drawn("rotations", 64, 1.5);
  double low = 1.0, high = 0.0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      CHECK_EQUAL(identity[i * n + j], i == j ? 0.7 : 0.0);
      CHECK(i == j ? std::abs(diagonal[i * n + j]) <= 0.7 : diagonal[i * n + j] == 0.0);
      CHECK_EQUAL(antisymmetric[i * n + j], -antisymmetric[j * n + i]);
      CHECK(i / 2 == j / 2 || rotations[i * n + j] == 0.0);
      if (i == j) low = std::min(low, diagonal[i * n + j]), high = std::max(high, diagonal[i * n + j]);
    }
  CHECK(low < -0.5 && high > 0.5);
  for (const auto& value : eigenvalues(antisymmetric, 64)) CHECK_CLOSE(value.real(), 0.0, 1e-12);
  CHECK_CLOSE(spectral_radius(antisymmetric, 64), 0.7,
              0.07);  // the edge of Wigner's semicircle, which a matrix of this size has to some percent
  double least = 10.0, most = 0.0;
  for (const auto& value : eigenvalues(rotations, 64)) {
    CHECK_CLOSE(std::abs(value), 1.5, 1e-12);
    least = std::min(least, std::abs(std::arg(value)));
    most = std::max(most, std::abs(std::arg(value)));
  }
  CHECK(least >= std::numbers::pi / 21.0 - 1e-4 && most <= std::numbers::pi / 3.8 + 1e-4 && most - least > 0.5);
  for (const auto& value : eigenvalues(drawn("rotations", 8, 1.0, {{"angle_min", "0.5"}, {"angle_max", "0.5"}}), 8))
    CHECK_CLOSE(std::abs(std::arg(value)), 0.5, 1e-12);

  CHECK_ERROR(drawn("rotations", 7, 1.0), "width");
  CHECK_ERROR(drawn("rotations", 8, 1.0, {{"angle_min", "0.5"}, {"angle_max", "0.4"}}), "angle_min");
}

TEST_CASE("input weights and biases start as they are told to, and not otherwise") {
  const Sequence sequence = make_task("noise", {.length = 2});
  const auto plain = run_of("elman", {}, sequence), zero = run_of("elman", {{"bias_init", "zero"}}, sequence),
             normal =
                 run_of("elman", {{"input_init", "normal"}, {"input_deviation", "0.5"}, {"width", "1000"}, {"recurrent_init", "diagonal"}},
                        sequence);
  for (const char* bias : {"param/0/bias_ih", "param/0/bias_hh"}) {
    for (const double value : *zero->find(bias)->real) CHECK_EQUAL(value, 0.0);
    CHECK(std::ranges::none_of(*plain->find(bias)->real, [](double value) { return value == 0.0; }));
  }
  CHECK(*plain->find("param/0/weight_ih")->real == *zero->find("param/0/weight_ih")->real);
  double squares = 0.0;
  for (const double value : *normal->find("param/0/weight_ih")->real) squares += value * value;
  CHECK_CLOSE(std::sqrt(squares / 1000.0), 0.5, 0.04);
}

TEST_CASE("each pair of the limit cycle network keeps one Floquet multiplier at 1 to 1e-3, and the other below") {
  const Sequence sequence = make_task("impulse", {.length = 6000});
  const auto cycle = run_of("limit-cycle-rnn", {}, sequence);
  for (std::size_t pair = 0; pair < 8; ++pair) {
    const Multipliers found = multipliers(*cycle, pair, 1000);
    CHECK_SAYS(found.missed < 1e-2, std::to_string(pair) + " is not back: " + test::show(found.missed));
    CHECK_SAYS(std::abs(found.larger - 1.0) < 1e-3, std::to_string(pair) + ": " + test::show(found.larger));
    CHECK_SAYS(found.smaller < 0.01, std::to_string(pair) + ": " + test::show(found.smaller));
  }
  // Where the rotations do not lengthen, 0 is stable and both multipliers are below 1.
  const auto fading = run_of("limit-cycle-rnn", {{"spectral_radius", "0.98"}}, make_task("impulse", {.length = 300}));
  for (std::size_t pair = 0; pair < 8; ++pair) CHECK(multipliers(*fading, pair, 100).larger < 0.95);
}
