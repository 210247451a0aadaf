// SPDX-License-Identifier: GPL-3.0-or-later
// Rules that make a step of continuous time, against their closed forms.
#include "trace/discretisation.h"

#include <cmath>
#include <numbers>

#include "test.h"

using namespace reclab;
using Complex = std::complex<double>;

TEST_CASE("each rule is its formula, and its inverse takes it back") {
  const auto rules = discretisations(0.6);
  CHECK_EQUAL(rules.size(), std::size_t{5});
  for (const Complex w : {Complex(-0.4, 0.9), Complex(-1e-9, 2e-7), Complex(0.3, -1.0), Complex(-2.5, 0.0), Complex(0.0, 3.0)}) {
    const Complex expected[] = {1.0 + w, 1.0 / (1.0 - w), (2.0 + w) / (2.0 - w), (1.0 + 0.4 * w) / (1.0 - 0.6 * w),
                                std::polar(std::exp(w.real()), w.imag())};
    for (std::size_t i = 0; i < rules.size(); ++i) {
      CHECK(std::abs(discrete(rules[i], w) - expected[i]) <= 1e-15 * (1.0 + std::abs(expected[i])));
      CHECK(std::abs(continuous(rules[i], discrete(rules[i], w)) - w) <= 2e-15 * (1.0 + std::abs(w)));
    }
  }
}

TEST_CASE("the bilinear rule takes the imaginary axis to the circle, Euler's rules beside it") {
  const auto rules = discretisations();
  for (const double turn : {0.01, 1.0, 20.0}) {
    CHECK_CLOSE(std::abs(discrete(rules[2], {0.0, turn})), 1.0, 1e-15);
    CHECK_CLOSE(std::arg(discrete(rules[2], {0.0, turn})), 2.0 * std::atan(0.5 * turn), 1e-14);
    CHECK_CLOSE(std::abs(discrete(rules[0], {0.0, turn})), std::sqrt(1.0 + turn * turn), 1e-14 * turn + 1e-15);
    CHECK_CLOSE(std::abs(discrete(rules[1], {0.0, turn})), 1.0 / std::sqrt(1.0 + turn * turn), 1e-15);
  }
  // exp forgets whole turns: the inverse is the slowest of those that there are.
  CHECK_CLOSE(continuous(rules[4], discrete(rules[4], {-0.1, 7.0})).imag(), 7.0 - 2.0 * std::numbers::pi, 1e-14);
  CHECK(std::isinf(continuous(rules[4], 0.0).real()));
  CHECK(std::isinf(continuous(rules[2], -1.0).real()));
}
