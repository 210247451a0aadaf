// SPDX-License-Identifier: GPL-3.0-or-later
// The matrix exponential and the inverse against closed forms, and their adjoints and tangents against central differences.
#include <algorithm>
#include <cmath>
#include <vector>

#include "array/rng.h"
#include "autodiff/exponential.h"
#include "autodiff/inverse.h"
#include "autodiff/ops.h"
#include "host_machine.h"
#include "tangents.h"
#include "test.h"

using namespace reclab;

namespace {

std::vector<double> made_of(Var (*operation)(Var), const std::vector<double>& a, std::int64_t n) {
  Graph graph(DType::f64);
  const Var x = graph.leaf(LeafKind::variable, {n, n}, DType::f64), y = operation(x);
  graph.allocate(cpu_backend(), false);
  graph.bind(x, a.data());
  graph.forward();
  const auto* made = static_cast<const double*>(graph.value(y));
  return {made, made + a.size()};
}
std::vector<double> exponential_of(const std::vector<double>& a, std::int64_t n) { return made_of(matrix_exponential, a, n); }

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b, std::size_t n) {
  std::vector<double> c(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
  return c;
}

}  // namespace

TEST_CASE("of zeros it is the identity, of a diagonal the exponentials, of a nilpotent matrix its polynomial") {
  CHECK(exponential_of({0, 0, 0, 0}, 2) == std::vector<double>({1, 0, 0, 1}));
  const auto diagonal = exponential_of({-3, 0, 0, 0, 0.25, 0, 0, 0, 5}, 3);
  for (const std::size_t i : {0u, 1u, 2u}) CHECK_CLOSE(diagonal[4 * i] / std::exp(i == 0 ? -3.0 : i == 1 ? 0.25 : 5.0), 1.0, 1e-14);
  const auto nilpotent = exponential_of({0, 2, 3, 0, 0, 4, 0, 0, 0}, 3);
  const std::vector<double> expected{1, 2, 3 + 4, 0, 1, 4, 0, 0, 1};
  for (std::size_t i = 0; i < 9; ++i) CHECK_CLOSE(nilpotent[i], expected[i], 1e-14);
}

TEST_CASE("of a skew 2 x 2 matrix it is the rotation by its angle, however large") {
  for (const double angle : {1e-8, 0.3, 3.0, 25.0, 1000.0}) {
    const auto made = exponential_of({0, -angle, angle, 0}, 2);
    const std::vector<double> expected{std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle)};
    for (std::size_t i = 0; i < 4; ++i) CHECK_CLOSE(made[i], expected[i], 1e-14 * (1.0 + 4.0 * angle));
  }
}

TEST_CASE("of a skew matrix it is orthogonal, and the exponential of the opposite is the inverse") {
  constexpr std::size_t n = 40;
  Rng numbers(3);
  for (const double size : {0.01, 1.0, 10.0}) {
    std::vector<double> a(n * n), opposite(n * n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < i; ++j) {
        a[i * n + j] = size * numbers.normal();
        a[j * n + i] = -a[i * n + j];
      }
    for (std::size_t i = 0; i < n * n; ++i) opposite[i] = -a[i];
    const auto x = exponential_of(a, n), y = exponential_of(opposite, n), one = product(x, y, n);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        CHECK_CLOSE(one[i * n + j], i == j ? 1.0 : 0.0, 1e-11);
        CHECK_CLOSE(x[i * n + j], y[j * n + i], 1e-11);
      }
  }
}

TEST_CASE("its adjoint and its tangent are central differences, small or large, and the kernels' on the host") {
  test::HostBackend kernels;
  for (const double size : {0.1, 0.9, 4.0})
    test::check_tangents(
        "matrix_exponential of size " + test::show(size),
        [size](Graph&, RandomLeaves& leaves) { return std::vector<Var>{matrix_exponential(leaves.real({4, 4}, -size, size))}; }, kernels);
  test::check_tangents(
      "matrix_exponential of what moves",
      [](Graph&, RandomLeaves& leaves) {
        const Var x = leaves.real({3, 3});
        return std::vector<Var>{matmul(matrix_exponential(x - transpose(x)), x)};
      },
      kernels);
}

TEST_CASE("an inverse times its matrix is the identity, also where a pivot is 0, and of a singular matrix nothing is finite") {
  CHECK(made_of(matrix_inverse, {0, 2, 4, 0}, 2) == std::vector<double>({0, 0.25, 0.5, 0}));
  constexpr std::size_t n = 30;
  Rng numbers(5);
  std::vector<double> a(n * n);
  for (double& value : a) value = numbers.normal();
  const auto one = product(made_of(matrix_inverse, a, n), a, n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) CHECK_CLOSE(one[i * n + j], i == j ? 1.0 : 0.0, 1e-11);
  // Below the diagonal larger entries than on it, which are no pivots.
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      a[i * n + j] = i < j    ? 0.0
                     : i == j ? 1.0 + 0.05 * static_cast<double>(i + 1)
                              : 0.1 * std::sqrt((2.0 * static_cast<double>(i) + 1.0) * (2.0 * static_cast<double>(j) + 1.0));
  const auto lower = made_of(matrix_inverse, a, n);
  for (std::size_t i = 0; i < n; ++i) {
    CHECK_EQUAL(lower[i * n + i], 1.0 / a[i * n + i]);
    for (std::size_t j = i + 1; j < n; ++j) CHECK_EQUAL(lower[i * n + j], 0.0);
  }
  const auto none = made_of(matrix_inverse, {1, 2, 2, 4}, 2);
  CHECK(std::ranges::none_of(none, [](double value) { return std::isfinite(value); }));
}

TEST_CASE("an inverse's adjoint and its tangent are central differences, the kernels' on the host too") {
  test::HostBackend kernels;
  test::check_tangents(
      "matrix_inverse",
      [](Graph& graph, RandomLeaves& leaves) {
        const Var one = graph.constant({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
        return std::vector<Var>{matrix_inverse(one + leaves.real({3, 3}, -0.3, 0.3))};
      },
      kernels);
  test::check_tangents(
      "matrix_inverse of several",
      [](Graph& graph, RandomLeaves& leaves) {
        const Var one = graph.constant({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
        return std::vector<Var>{matrix_inverse(one + leaves.real({2, 3, 3}, -0.3, 0.3))};
      },
      kernels);
}
