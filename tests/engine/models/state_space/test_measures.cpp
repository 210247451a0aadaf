// SPDX-License-Identifier: GPL-3.0-or-later
// The measures of HiPPO as a diagonal less terms of low rank: the same system as A and B in their own coordinates.
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "models/parts/hippo.h"
#include "test.h"

using namespace reclab;

namespace {

using Complex = std::complex<double>;
using Matrix = std::vector<std::vector<Complex>>;

/// b* (s - A)⁻¹ b, by elimination.
Complex transfer(const Matrix& A, const std::vector<Complex>& b, Complex s) {
  const std::size_t n = b.size();
  Matrix rows = A;
  for (std::size_t i = 0; i < n; ++i) {
    for (Complex& entry : rows[i]) entry = -entry;
    rows[i][i] += s;
    rows[i].push_back(b[i]);
  }
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t largest = k;
    for (std::size_t i = k; i < n; ++i)
      if (std::abs(rows[i][k]) > std::abs(rows[largest][k])) largest = i;
    std::swap(rows[k], rows[largest]);
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const Complex factor = rows[i][k] / rows[k][k];
      for (std::size_t j = k; j <= n; ++j) rows[i][j] -= factor * rows[k][j];
    }
  }
  Complex sum = 0.0;
  for (std::size_t i = 0; i < n; ++i) sum += std::conj(b[i]) * rows[i][n] / rows[i][i];
  return sum;
}

/// A and B as the papers have them; LegT and the others on a window of 1 and with time scaled as in state-spaces/s4.
void measure(const std::string& name, std::size_t n, Matrix& A, std::vector<Complex>& b) {
  A.assign(n, std::vector<Complex>(n));
  b.assign(n, 1.0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k) {
      const double roots = std::sqrt((2.0 * static_cast<double>(i) + 1.0) * (2.0 * static_cast<double>(k) + 1.0));
      if (name == "legs") A[i][k] = i > k ? -roots : i == k ? -static_cast<double>(i + 1) : 0.0;
      if (name == "legt") A[i][k] = -0.5 * roots * (i < k && (k - i) % 2 ? -1.0 : 1.0);
      if (name == "lagt") A[i][k] = i > k ? -1.0 : i == k ? -0.5 : 0.0;
    }
  for (std::size_t i = 0; i < n; ++i) {
    if (name == "legs") b[i] = std::sqrt(2.0 * static_cast<double>(i) + 1.0);
    if (name == "legt") b[i] = 0.5 * std::sqrt(2.0 * static_cast<double>(i) + 1.0);
    if (name == "fourier") b[i] = i % 2 ? 0.0 : i ? std::numbers::sqrt2 : 1.0;
  }
  if (name != "fourier") return;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k) A[i][k] = -b[i] * b[k];
  for (std::size_t i = 0; i < n; i += 2) {
    A[i][i + 1] -= std::numbers::pi * static_cast<double>(i / 2);
    A[i + 1][i] += std::numbers::pi * static_cast<double>(i / 2);
  }
}

}  // namespace

TEST_CASE("a measure's diagonal, low-rank part and B are its A and B in other coordinates") {
  for (const std::string name : {"legs", "legt", "lagt", "fourier"})
    for (const std::size_t n : {2U, 6U, 16U}) {
      Matrix A, both(n, std::vector<Complex>(n));
      std::vector<Complex> b, input;
      measure(name, n, A, b);
      const hippo::LowRankMeasure system = hippo::low_rank_of(name, static_cast<std::int64_t>(n));
      CHECK_EQUAL(system.low_rank.size(), name == "legt" ? std::size_t{2} : std::size_t{1});
      std::vector<std::vector<Complex>> terms(system.low_rank.size());
      for (const bool conjugate : {false, true})
        for (std::size_t k = 0; k < n / 2; ++k) {
          const auto as = [&](Complex z) { return conjugate ? std::conj(z) : z; };
          both[input.size()][input.size()] = as({-system.decay, -system.frequencies[k]});
          input.push_back(as(system.input[k]));
          CHECK(system.input[k].real() >= 0.0 && system.input[k].imag() == 0.0);
          for (std::size_t r = 0; r < terms.size(); ++r) terms[r].push_back(as(system.low_rank[r][k]));
          if (k) CHECK(system.frequencies[k] <= system.frequencies[k - 1]);
        }
      for (const auto& p : terms)
        for (std::size_t i = 0; i < n; ++i)
          for (std::size_t k = 0; k < n; ++k) both[i][k] -= p[i] * std::conj(p[k]);
      for (const Complex s : {Complex(0.7, 1.3), Complex(2.0, -11.0), Complex(0.1, 40.0)}) {
        const Complex expected = transfer(A, b, s), found = transfer(both, input, s);
        CHECK_SAYS(std::abs(found - expected) <= 1e-11 * std::abs(expected),
                   name + " of " + std::to_string(n) + ": off by " + test::show(std::abs(found - expected) / std::abs(expected)));
      }
    }
}
