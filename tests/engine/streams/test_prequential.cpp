// SPDX-License-Identifier: GPL-3.0-or-later
// Prequential errors, their curve, what a drift costs, and least squares that are updated.
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "algebra/ridge.h"
#include "array/rng.h"
#include "streams/prequential.h"
#include "streams/ridge_online.h"
#include "test.h"

using namespace reclab;

namespace {
const StreamForm one_number{.names = {"x"}, .target_kind = TargetKind::regress, .target_width = 1};
}

TEST_CASE("mean, windowed and fading error are those of the definition") {
  Rng rng(3);
  std::vector<Errors> all;
  Prequential errors({.burn_in = 30, .window = 20, .fading = 0.9});
  for (std::int64_t t = 0; t < 137; ++t) {
    all.push_back({rng.uniform(), rng.uniform()});
    errors.add(t, all.back());
  }
  for (std::size_t i = 0; i < 2; ++i) {
    double mean = 0.0, window = 0.0, faded = 0.0, weights = 0.0;
    for (std::size_t t = 0; t < all.size(); ++t) {
      if (t >= 30) mean += all[t][i] / 107.0;
      if (t >= 117) window += all[t][i] / 20.0;
      faded += std::pow(0.9, static_cast<double>(136 - t)) * all[t][i];
      weights += std::pow(0.9, static_cast<double>(136 - t));
    }
    CHECK_CLOSE(errors.mean()[i], mean, 1e-13);
    CHECK_CLOSE(errors.windowed()[i], window, 1e-13);
    CHECK_CLOSE(errors.faded()[i], faded / weights, 1e-13);
  }
}

TEST_CASE("errors of numbers are means over the outputs, those of classes are of probabilities") {
  const StreamForm two{.names = {"x"}, .target_kind = TargetKind::regress, .target_width = 2};
  const Errors numbers = errors_of(two, std::vector{1.0, -2.0}, std::vector{0.0, 1.0});
  CHECK_CLOSE(numbers[0], 5.0, 1e-15);
  CHECK_CLOSE(numbers[1], 2.0, 1e-15);
  const StreamForm three{.names = {"x"}, .target_kind = TargetKind::classify, .target_width = 1, .classes = 3};
  const std::vector<double> likely{0.2, 0.5, 0.3};
  CHECK_CLOSE(errors_of(three, likely, std::vector{1.0})[0], 0.04 + 0.25 + 0.09, 1e-15);
  CHECK_EQUAL(errors_of(three, likely, std::vector{1.0})[1], 0.0);
  CHECK_EQUAL(errors_of(three, likely, std::vector{2.0})[1], 1.0);
}

TEST_CASE("a curve of any length keeps fewer rows than its limit, at even distances") {
  PrequentialCurve curve(1);
  std::vector<Prequential> errors;
  errors.emplace_back(PrequentialOptions{.window = 4});
  for (std::int64_t t = 0; t < 100'000; ++t) {
    errors[0].add(t, {1.0, 2.0});
    if (curve.due(t + 1)) curve.add(t + 1, errors);
    CHECK(curve.rows() < PrequentialCurve::most);
  }
  CHECK_EQUAL(curve.stride(), 64);
  for (std::int64_t row = 0; row < curve.rows(); ++row) {
    CHECK_EQUAL(curve.steps()[static_cast<std::size_t>(row)], 64 * (row + 1));
    CHECK_EQUAL(curve.at(row, 0, PrequentialCurve::total, 1), 128.0 * static_cast<double>(row + 1));
  }
}

TEST_CASE("recovery, price and forgetting of a drift are those of errors that were made up") {
  DriftLog log(1, 2);
  std::int64_t step = 0;
  const auto regime = [&](std::int64_t which, std::int64_t steps, const auto& error) {
    for (std::int64_t i = 0; i < steps; ++i) {
      const double one[] = {error(i)};
      log.add(step++, which, one);
    }
  };
  regime(0, 1000, [](std::int64_t) { return 1.0; });
  regime(1, 960, [](std::int64_t i) { return i < 160 ? 5.0 : 2.0; });
  regime(0, 3000, [](std::int64_t i) { return i < 320 ? 4.0 : 1.0; });  // the profile's blocks have doubled twice
  regime(1, 10, [](std::int64_t) { return 2.0; });
  CHECK_EQUAL(log.drifts(), 3);
  CHECK_EQUAL(log.rows().size(), 3u);
  const RegimeErrors second = log.rows()[1].of[0], third = log.rows()[2].of[0];
  CHECK_EQUAL(log.rows()[1].step, 1000);
  CHECK_EQUAL(second.before, 1.0);
  CHECK_EQUAL(second.early, 5.0);
  CHECK_EQUAL(second.settled, 2.0);
  CHECK_CLOSE(second.recovery, 160.0, 16.0);
  CHECK_CLOSE(second.excess, 160.0 * 3.0, 1e-9);
  CHECK(std::isnan(second.forgetting));
  CHECK_EQUAL(third.before, 2.0);
  CHECK_EQUAL(third.forgetting, 3.0);  // 4 after its return, 1 when it was left
  CHECK_CLOSE(third.recovery, 320.0, 64.0);
  CHECK_CLOSE(third.excess, 320.0 * 3.0, 1e-9);
  CHECK_CLOSE(log.mean(0)[2], 1.5, 1e-15);
}

TEST_CASE("a log of very many drifts keeps the first and the last") {
  DriftLog log(1, 2);
  for (std::int64_t step = 0; step < 40'000; ++step) {
    const double one[] = {1.0};
    log.add(step, step / 20 % 2, one);
  }
  CHECK_EQUAL(log.drifts(), 1999);
  CHECK_EQUAL(std::ssize(log.rows()), DriftLog::most);
  CHECK_EQUAL(log.rows().front().step, 0);
  CHECK_EQUAL(log.rows().back().step, 39'960);
}

TEST_CASE("updated least squares are the ridge regression of all that came") {
  constexpr std::int64_t inputs = 2, outputs = 2, past = 3, features = inputs * past;
  constexpr double ridge = 0.3;
  OnlineRidge online(inputs, outputs, past, ridge, 1.0);
  RidgeRegression whole(features, outputs);
  Rng rng(11);
  std::vector<double> window(features), prediction(outputs);
  for (int t = 0; t < 60; ++t) {
    const std::vector<double> input{rng.normal(), rng.normal()}, target{rng.normal(), input[0] - 0.5 * window[2]};
    std::copy(window.begin() + inputs, window.end(), window.begin());
    std::ranges::copy(input, window.end() - inputs);
    online.predict(input, prediction);
    online.learn(target);
    whole.add(window, target);
  }
  std::vector<double> weight(features * outputs), bias(outputs);
  CHECK(whole.solve(ridge, weight, bias));
  for (std::size_t j = 0; j < outputs; ++j) {
    for (std::size_t i = 0; i < features; ++i) CHECK_CLOSE(online.weights()[j * (features + 1) + i], weight[j * features + i], 1e-11);
    CHECK_CLOSE(online.weights()[j * (features + 1) + features], bias[j], 1e-11);
  }
}

TEST_CASE("least squares that fade solve their weighted equations") {
  constexpr double ridge = 0.2, forget = 0.95;
  OnlineRidge online(1, 1, 1, ridge, forget);
  Rng rng(12);
  // Of the features x and 1: the matrix and the right side, with what is given back in turn.
  double a[2][2] = {{ridge, 0.0}, {0.0, ridge}}, b[2] = {};
  for (int t = 0; t < 300; ++t) {
    const double x = rng.normal(), y = 2.0 * x + 0.1 * rng.normal(), z[] = {x, 1.0};
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < 2; ++k) a[i][k] = forget * a[i][k] + z[i] * z[k];
      b[i] = forget * b[i] + z[i] * y;
    }
    a[t % 2][t % 2] += (1.0 - forget) * ridge * 2.0;
    double prediction[1];
    online.predict(std::vector{x}, prediction);
    online.learn(std::vector{y});
    for (int i = 0; i < 2; ++i) CHECK_CLOSE(a[i][0] * online.weights()[0] + a[i][1] * online.weights()[1], b[i], 1e-10);
  }
}

TEST_CASE("least squares that fade follow a law that changes, and stay finite where inputs leave directions out") {
  OnlineRidge fading(1, 1, 4, 1e-6, 0.9), all(1, 1, 4, 1e-6, 1.0);
  double last_fading = 0.0, last_all = 0.0;
  for (int t = 0; t < 200'000; ++t) {
    const double x = std::sin(0.1 * t), y = t < 100'000 ? 2.0 * x : -x;  // of five directions two are there
    const double input[] = {x}, target[] = {y};
    double a[1], b[1];
    fading.predict(input, a);
    all.predict(input, b);
    fading.learn(target);
    all.learn(target);
    last_fading = std::abs(a[0] - y);
    last_all = std::max(t > 199'900 ? last_all : 0.0, std::abs(b[0] - y));
  }
  CHECK(last_fading < 1e-6);
  CHECK(last_all > 0.5);
}
