// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/hippo.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace reclab::hippo {

Normal legs_normal(std::int64_t size) {
  using Complex = std::complex<double>;
  const auto n = static_cast<std::size_t>(size);
  // -i times the skew-symmetric part is Hermitian: Jacobi's method, each rotation after its phase has been taken out.
  std::vector<Complex> h(n * n), v(n * n);
  const auto root = [](std::size_t i) { return std::sqrt(static_cast<double>(2 * i + 1)); };
  for (std::size_t r = 0; r < n; ++r) {
    v[r * n + r] = 1.0;
    for (std::size_t c = 0; c < n; ++c) h[r * n + c] = Complex(0.0, r == c ? 0.0 : (r > c ? 0.5 : -0.5) * root(r) * root(c));
  }
  for (int sweep = 0; sweep < 60; ++sweep) {
    double off = 0.0, all = 0.0;
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t c = 0; c < n; ++c) (r == c ? all : off) += std::norm(h[r * n + c]);
    if (off <= 1e-30 * (all + off)) break;
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        const double size_pq = std::abs(h[p * n + q]);
        if (size_pq == 0.0) continue;
        const Complex phase = h[p * n + q] / size_pq;
        const double tau = (h[q * n + q].real() - h[p * n + p].real()) / (2.0 * size_pq);
        const double t = (tau < 0.0 ? -1.0 : 1.0) / (std::abs(tau) + std::sqrt(1.0 + tau * tau)), cosine = 1.0 / std::sqrt(1.0 + t * t), sine = t * cosine;
        const auto turn = [&](Complex& a, Complex& b, Complex unit) {
          const Complex turned = b * unit, first = cosine * a - sine * turned;
          b = sine * a + cosine * turned;
          a = first;
        };
        for (std::size_t i = 0; i < n; ++i) turn(h[i * n + p], h[i * n + q], std::conj(phase));
        for (std::size_t i = 0; i < n; ++i) turn(h[p * n + i], h[q * n + i], phase);
        for (std::size_t i = 0; i < n; ++i) turn(v[i * n + p], v[i * n + q], std::conj(phase));
      }
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return h[a * n + a].real() < h[b * n + b].real(); });
  Normal normal;
  normal.vectors.resize(n * n);
  for (std::size_t k = 0; k < n; ++k) {
    normal.frequencies.push_back(h[order[k] * n + order[k]].real());
    Complex with_b = 0.0;
    for (std::size_t i = 0; i < n; ++i) with_b += std::conj(v[i * n + order[k]]) * root(i);
    const Complex unit = with_b == 0.0 ? Complex(1.0) : with_b / std::abs(with_b);
    for (std::size_t i = 0; i < n; ++i) normal.vectors[i * n + k] = v[i * n + order[k]] * unit;
  }
  return normal;
}

}  // namespace reclab::hippo
