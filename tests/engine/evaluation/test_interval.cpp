// SPDX-License-Identifier: GPL-3.0-or-later
// Quantiles against closed forms and tables, intervals against their formulas and against the share of draws that they cover.
#include "evaluation/interval.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "array/rng.h"
#include "test.h"

using namespace reclab;

TEST_CASE("the quantiles of Student's and of the normal distribution") {
  for (const double p : {0.5, 0.9, 0.95, 0.99, 0.9999}) {
    CHECK_CLOSE(student_t(p, 1), std::tan(std::numbers::pi * p / 2.0), 1e-10 * student_t(p, 1));
    CHECK_CLOSE(student_t(p, 2), p * std::sqrt(2.0 / (1.0 - p * p)), 1e-10 * student_t(p, 2));
    CHECK_CLOSE(std::erf(normal_z(p) / std::numbers::sqrt2), p, 1e-14);
    // The series for many degrees of freedom goes on where the exact sum ends.
    CHECK_CLOSE(student_t(p, 2001), student_t(p, 2000), 1e-5);
    CHECK(student_t(p, 2001) < student_t(p, 2000) && normal_z(p) < student_t(p, 1'000'000));
  }
  // Abramowitz and Stegun, table 26.10.
  CHECK_CLOSE(student_t(0.95, 3), 3.182, 5e-4);
  CHECK_CLOSE(student_t(0.95, 4), 2.776, 5e-4);
  CHECK_CLOSE(student_t(0.99, 10), 3.169, 5e-4);
  CHECK_CLOSE(student_t(0.95, 30), 2.042, 5e-4);
  CHECK_CLOSE(student_t(0.95, 120), 1.980, 5e-4);
  CHECK_CLOSE(normal_z(0.95), 1.959963984540054, 1e-12);
}

TEST_CASE("a mean has Student's interval, and a share of yes and no the score interval") {
  const std::vector<double> values{2.0, -1.0, 0.5, 4.0, 0.25};
  SequenceMean mean;
  CHECK(std::isnan(mean.estimate(0.9).mean));
  for (const double value : values) mean.add(value);
  double sum = 0.0, squares = 0.0;
  for (const double value : values) sum += value;
  for (const double value : values) squares += std::pow(value - sum / 5.0, 2);
  const Estimate found = mean.estimate(0.9);
  CHECK_CLOSE(found.mean, sum / 5.0, 1e-15);
  CHECK_CLOSE(found.high - found.mean, 2.131846786 * std::sqrt(squares / 4.0 / 5.0), 1e-8);  // t of 4 degrees of freedom, 5 % above it
  CHECK_CLOSE(found.mean - found.low, found.high - found.mean, 1e-14);

  SequenceMean one, right, mixed, parts;
  one.add(3.0);
  CHECK(one.estimate(0.9).mean == 3.0 && std::isnan(one.estimate(0.9).low));
  for (int i = 0; i < 10; ++i) {
    right.add(1.0);
    mixed.add(i < 8 ? 1.0 : 0.0);
    parts.add(i < 9 ? 1.0 : 0.5);
  }
  // R. G. Newcombe, Statistics in Medicine 17, 1998: 8 of 10; and n / (n + z²) where all are right.
  CHECK_CLOSE(mixed.estimate(0.95, true).low, 0.4902, 5e-5);
  CHECK_CLOSE(mixed.estimate(0.95, true).high, 0.9433, 5e-5);
  CHECK_CLOSE(right.estimate(0.95, true).low, 10.0 / (10.0 + std::pow(1.959963984540054, 2)), 1e-12);
  CHECK_EQUAL(right.estimate(0.95, true).high, 1.0);
  // Shares that are neither 0 nor 1 have Student's, within 0 and 1.
  CHECK_EQUAL(parts.estimate(0.95, true).high, 1.0);
  CHECK_CLOSE(parts.estimate(0.95, true).low, parts.estimate(0.95).low, 0.0);
  CHECK(parts.estimate(0.95).high > 1.0);
}

TEST_CASE("intervals cover the true mean as often as they say") {
  constexpr int draws = 4000;
  int normal = 0, yes = 0;
  Rng rng(1);
  for (int draw = 0; draw < draws; ++draw) {
    SequenceMean values, coins;
    for (int i = 0; i < 5; ++i) values.add(2.0 + 3.0 * rng.normal());
    for (int i = 0; i < 60; ++i) coins.add(rng.uniform() < 0.9 ? 1.0 : 0.0);
    const Estimate a = values.estimate(0.9), b = coins.estimate(0.9, true);
    normal += a.low <= 2.0 && 2.0 <= a.high;
    yes += b.low <= 0.9 && 0.9 <= b.high;
  }
  const double deviation = std::sqrt(0.9 * 0.1 / draws);
  CHECK_CLOSE(static_cast<double>(normal) / draws, 0.9, 4.0 * deviation);
  CHECK_CLOSE(static_cast<double>(yes) / draws, 0.9, 0.03);  // of few outcomes, nearly
}
