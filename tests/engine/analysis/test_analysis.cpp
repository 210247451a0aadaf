// SPDX-License-Identifier: GPL-3.0-or-later
// Singular values of Jacobian products, eigenvalues, slopes. Reference values are printed by tests/oracle/analysis.py.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <limits>
#include <new>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "algebra/eigen.h"
#include "analysis/product.h"
#include "analysis/slope.h"
#include "array/rng.h"
#include "test.h"

namespace {

std::atomic<long> allocations{0};

}  // namespace

// Counts, so that a test can show that stepping allocates nothing. Inlined, they look like a mismatch of malloc and delete to GCC.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  const auto step = static_cast<std::size_t>(alignment);
  if (void* p = std::aligned_alloc(step, (size + step - 1) / step * step)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace {

using namespace reclab;
using Matrix = std::vector<double>;  // row-major
using Complex = std::complex<double>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// The generator of tests/oracle/analysis.py.
struct Generator {
  std::uint64_t state;
  double uniform() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state >> 11) * 0x1p-53;
  }
  double symmetric() { return 2.0 * uniform() - 1.0; }
};

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

Matrix random(Generator& generator, std::int64_t n, double scale) {
  Matrix a(index(n * n));
  for (double& x : a) x = scale * generator.symmetric();
  return a;
}

Matrix graded(Generator& generator, std::int64_t n) {
  Matrix a;
  for (std::int64_t i = 0; i < n; ++i) {
    const double size = std::ldexp(1.0, -static_cast<int>(60.0 * generator.uniform()));
    for (std::int64_t j = 0; j < n; ++j) a.push_back(size * generator.symmetric());
  }
  return a;
}

Matrix jordan(std::int64_t n, double value, double coupling) {
  Matrix a(index(n * n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    a[index(i * n + i)] = value;
    if (i + 1 < n) a[index(i * n + i + 1)] = coupling;
  }
  return a;
}

/// A product of n reflections: orthogonal to rounding.
Matrix orthogonal(Generator& generator, std::int64_t n) {
  Matrix a(index(n * n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) a[index(i * n + i)] = 1.0;
  for (std::int64_t k = 0; k < n; ++k) {
    std::vector<double> v(index(n));
    for (double& x : v) x = generator.symmetric();
    const double squares = std::inner_product(v.begin(), v.end(), v.begin(), 0.0);
    for (std::int64_t i = 0; i < n; ++i) {
      double s = 0.0;
      for (std::int64_t j = 0; j < n; ++j) s += a[index(i * n + j)] * v[index(j)];
      for (std::int64_t j = 0; j < n; ++j) a[index(i * n + j)] -= 2.0 * s / squares * v[index(j)];
    }
  }
  return a;
}

Matrix times(const Matrix& a, const Matrix& b, std::int64_t n) {
  Matrix c(index(n * n), 0.0);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t k = 0; k < n; ++k)
      for (std::int64_t j = 0; j < n; ++j) c[index(i * n + j)] += a[index(i * n + k)] * b[index(k * n + j)];
  return c;
}

/// Compares with reference logarithms; the tolerance is that of the singular values themselves, relative.
void check_logs(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance) {
  CHECK_EQUAL(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) CHECK_CLOSE(actual[i], expected[i], tolerance / std::numbers::ln10);
}

/// Asked for at the end only, so that factors may be multiplied before they are factorised; and after every factor. Both must hold.
void check_product(const std::vector<Matrix>& factors, std::int64_t n, const std::vector<double>& expected, double tolerance) {
  JacobianProduct rarely(n), always(n), smallest_first(n);
  for (const auto& factor : factors) {
    rarely.multiply(factor);
    always.multiply(factor);
    smallest_first.multiply(factor);
    static_cast<void>(always.log10_largest(2));
    static_cast<void>(always.log10_smallest());
  }
  check_logs({smallest_first.log10_smallest()}, {expected.back()}, tolerance);
  check_logs(smallest_first.log10_largest(1), {expected.front()}, tolerance);
  check_logs(rarely.log10_largest(static_cast<int>(n)), expected, tolerance);
  check_logs({rarely.log10_smallest()}, {expected.back()}, tolerance);
  check_logs(always.log10_largest(static_cast<int>(n)), expected, tolerance);
}

/// Largest distance from an expected value to the nearest computed one, none used twice.
double distance(std::vector<Complex> actual, const std::vector<Complex>& expected) {
  if (actual.size() != expected.size()) return infinity;
  double worst = 0.0;
  for (const Complex& value : expected) {
    const auto nearest = std::min_element(actual.begin(), actual.end(),
                                          [&](const Complex& a, const Complex& b) { return std::abs(a - value) < std::abs(b - value); });
    worst = std::max(worst, std::abs(*nearest - value));
    if (std::isnan(nearest->real())) return infinity;
    actual.erase(nearest);
  }
  return worst;
}

/// The companion matrix of the polynomial with these real roots.
Matrix companion(const std::vector<double>& roots) {
  const auto n = static_cast<std::int64_t>(roots.size());
  std::vector<double> coefficients{1.0};  // highest power first
  for (const double root : roots) {
    coefficients.push_back(0.0);
    for (std::size_t i = coefficients.size() - 1; i > 0; --i) coefficients[i] -= root * coefficients[i - 1];
  }
  Matrix a(index(n * n), 0.0);
  for (std::int64_t j = 0; j < n; ++j) a[index(j)] = -coefficients[index(j + 1)];
  for (std::int64_t i = 1; i < n; ++i) a[index(i * n + i - 1)] = 1.0;
  return a;
}

}  // namespace

TEST_CASE("a scaled orthogonal matrix: every singular value is R^(T-t), at every step") {
  constexpr std::int64_t n = 32, steps = 2000;
  Generator generator{11};
  const Matrix q = orthogonal(generator, n);
  for (const double r : {0.5, 0.9, 0.99, 1.0, 1.1}) {
    Matrix a = q;
    for (double& x : a) x *= r;
    JacobianProduct product(n);
    std::vector<std::int64_t> when;
    std::vector<double> largest, smallest;
    for (std::int64_t t = 1; t <= steps; ++t) {
      product.multiply(a);
      const auto values = product.log10_largest(4);
      when.push_back(t);
      largest.push_back(values.front());
      smallest.push_back(product.log10_smallest());
      const double expected = static_cast<double>(t) * std::log10(r);
      for (const double value : values) CHECK_CLOSE(value, expected, 2e-12);
      CHECK_CLOSE(smallest.back(), expected, 2e-12);
    }
    for (const double value : product.log10_largest(n)) CHECK_CLOSE(value, steps * std::log10(r), 2e-12);
    const double tolerance = r == 1.0 ? 1e-14 : 1e-9 * std::abs(std::log10(r));
    CHECK_CLOSE(slope_per_step(when, largest), std::log10(r), tolerance);
    CHECK_CLOSE(slope_per_step(when, smallest), std::log10(r), tolerance);
    if (r == 0.5) CHECK_SAYS(largest.back() < -600.0, "the curve was meant to pass 1e-600");
  }
}

TEST_CASE("diagonal factors from 1e-3 to 1e3: the products of their entries") {
  constexpr std::int64_t n = 16;
  Generator generator{12};
  std::vector<long double> logs(n, 0.0L);
  std::vector<Matrix> factors;
  for (int t = 0; t < 300; ++t) {
    Matrix a(n * n, 0.0);
    for (std::int64_t i = 0; i < n; ++i) {
      const double x = std::pow(10.0, 3.0 * generator.symmetric()) * (generator.uniform() < 0.5 ? -1.0 : 1.0);
      a[index(i * n + i)] = x;
      logs[index(i)] += std::log10(std::abs(static_cast<long double>(x)));
    }
    factors.push_back(a);
  }
  std::vector<double> expected(logs.begin(), logs.end());
  std::sort(expected.begin(), expected.end(), std::greater<>());
  check_product(factors, n, expected, 1e-12);
}

TEST_CASE("random factors: all singular values as in 200 digits") {
  Generator generator{1};
  std::vector<Matrix> factors;
  for (int t = 0; t < 50; ++t) factors.push_back(random(generator, 6, 1.0));
  check_product(
      factors, 6,
      {7.1283931766649833, 4.1605023380873151, -0.22326832085058923, -1.7022707655972192, -12.134787766194711, -30.019365571121442}, 1e-11);
}

TEST_CASE("random factors: beyond 1e-1400") {
  Generator generator{2};
  std::vector<Matrix> factors;
  for (int t = 0; t < 400; ++t) factors.push_back(random(generator, 5, 0x1p-10));
  check_product(factors, 5, {-1175.4459018881174, -1197.3788829793919, -1226.6812352032421, -1287.7953688083981, -1403.8432852483179},
                1e-10);
}

TEST_CASE("random factors: upwards beyond 1e+100000, downwards beyond the range of one factor") {
  Generator generator{2};
  JacobianProduct product(5);
  for (int t = 0; t < 400; ++t) product.multiply(random(generator, 5, 0x1p+990));
  const double shift = 400 * 1000 * std::log10(2.0);
  check_logs(product.log10_largest(5),
             {shift - 1175.4459018881174, shift - 1197.3788829793919, shift - 1226.6812352032421, shift - 1287.7953688083981,
              shift - 1403.8432852483179},
             1e-9);
  JacobianProduct down(2);
  for (int t = 0; t < 10; ++t) down.multiply(Matrix{1e-300, 0.0, 0.0, 1e-308});
  check_logs(down.log10_largest(2), {-3000.0, -3080.0}, 1e-10);
}

TEST_CASE("factors with rows from 1 to 1e-18, as of saturated units: the small values keep their digits") {
  Generator generator{3};
  std::vector<Matrix> factors;
  for (int t = 0; t < 40; ++t) factors.push_back(graded(generator, 6));
  check_product(
      factors, 6,
      {-102.80702807273571, -220.61382151370931, -313.38993284613398, -412.58566617973596, -512.26532820911294, -601.2932613537217}, 1e-10);
}

TEST_CASE("a strongly non-normal Jordan block: grows although its spectral radius is below one") {
  const std::vector<Matrix> factors(60, jordan(4, 0.875, 4.0));
  check_product(factors, 4, {3.0349745975031655, -1.3204050264521545, -5.5951940332345824, -10.03744281246125}, 1e-10);
}

TEST_CASE("factors multiplied before a factorisation change nothing") {
  constexpr std::int64_t n = 24;
  Generator generator{13};
  JacobianProduct blocks(n), singles(n);
  for (int t = 0; t < 400; ++t) {
    Matrix a = random(generator, n, 0.02);
    for (std::int64_t i = 0; i < n; ++i) a[index(i * n + i)] += 0.97;
    if (t % 50 == 49) a = random(generator, n, 1.0);  // ill-conditioned in the middle of a block: the block has to be taken apart
    blocks.multiply(a);
    singles.multiply(a);
    static_cast<void>(singles.rank());
  }
  check_logs(blocks.log10_largest(n), singles.log10_largest(n), 1e-11);
}

TEST_CASE("singular factors: the smallest is -infinity, the largest is right") {
  constexpr std::int64_t n = 6;
  Generator generator{14};
  const Matrix a = random(generator, n, 1.0), b = random(generator, n, 1.0);
  const auto with = [&](auto change) {
    Matrix c = a;
    change(c);
    return c;
  };
  struct Case {
    Matrix singular;
    std::int64_t rank;
  };
  Matrix low(n * n, 0.0);  // rank 2, none of its entries zero
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) low[index(i * n + j)] = a[index(i)] * b[index(j)] + a[index(i + n)] * b[index(j + n)];
  const std::vector<Case> cases{
      {with([&](Matrix& c) { std::fill_n(c.begin() + 2 * n, n, 0.0); }), 5},  // a dead unit
      {with([&](Matrix& c) {
         for (std::int64_t i = 0; i < n; ++i) c[index(i * n + 4)] = 0.0;
       }),
       5},                                                                          // a forgotten one
      {with([&](Matrix& c) { std::copy_n(c.begin(), n, c.begin() + 3 * n); }), 5},  // two that do the same
      {with([&](Matrix& c) {
         for (std::int64_t j = 0; j < n; ++j) c[index(j)] = 3.0 * c[index(j + n)];
       }),
       5},
      {low, 2},
      {Matrix(n * n, 0.0), 0},
  };
  for (const Case& test : cases) {
    JacobianProduct product(n);
    for (const Matrix& factor : {b, test.singular, b}) product.multiply(factor);
    CHECK_EQUAL(product.rank(), test.rank);
    CHECK_EQUAL(product.log10_smallest(), -infinity);
    const auto values = product.log10_largest(n);
    for (std::int64_t i = test.rank; i < n; ++i) CHECK_EQUAL(values[index(i)], -infinity);
    // The Frobenius norm of the explicit product.
    const Matrix m = times(times(b, test.singular, n), b, n);
    double squares = 0.0;
    for (const double value : values) squares += std::isinf(value) ? 0.0 : std::pow(10.0, 2.0 * value);
    CHECK_CLOSE(squares, std::inner_product(m.begin(), m.end(), m.begin(), 0.0), 1e-13 * (1.0 + squares));
    if (test.rank > 0) CHECK(std::isfinite(values[index(test.rank - 1)]));
    product.multiply(a);  // it stays so
    CHECK_EQUAL(product.rank(), test.rank);
    CHECK_EQUAL(product.log10_smallest(), -infinity);
    product.reset();
    product.multiply(jordan(n, 2.0, 0.0));
    CHECK_CLOSE(product.log10_smallest(), std::log10(2.0), 1e-15);
  }
}

TEST_CASE("small is not singular: factors from 1 to 1e-30 on the diagonal") {
  JacobianProduct product(3);
  for (int t = 0; t < 5; ++t) product.multiply(Matrix{1.0, 0.0, 0.0, 0.0, 1e-15, 0.0, 0.0, 0.0, 1e-30});
  CHECK_EQUAL(product.rank(), 3);
  check_logs(product.log10_largest(3), {0.0, -75.0, -150.0}, 1e-12);
}

TEST_CASE("singular values: the identity at the start, n = 1, more wanted than there are, none wanted") {
  JacobianProduct empty(3);
  check_logs(empty.log10_largest(3), {0.0, 0.0, 0.0}, 1e-16);
  CHECK_EQUAL(empty.log10_smallest(), 0.0);
  JacobianProduct one(1);
  for (int t = 0; t < 1000; ++t) one.multiply(Matrix{t % 2 == 0 ? -1e-3 : 1e-2});
  check_logs(one.log10_largest(1), {-2500.0}, 1e-10);
  check_logs({one.log10_smallest()}, {-2500.0}, 1e-10);
  CHECK_EQUAL(one.log10_largest(7).size(), 1u);
  Generator generator{15};
  JacobianProduct some(5);
  some.multiply(random(generator, 5, 1.0));
  CHECK_EQUAL(some.log10_largest(9).size(), 5u);
  CHECK_EQUAL(some.log10_largest(0).size(), 0u);
  CHECK_EQUAL(some.log10_largest(5).back(), some.log10_smallest());
}

TEST_CASE("singular values: a factor that is not finite makes them NaN") {
  for (const double bad : {not_a_number, infinity, -infinity}) {
    JacobianProduct product(2);
    product.multiply(Matrix{1.0, 2.0, 3.0, bad});
    product.multiply(Matrix{1.0, 0.0, 0.0, 1.0});
    CHECK(std::isnan(product.log10_largest(1)[0]));
    CHECK(std::isnan(product.log10_smallest()));
  }
}

TEST_CASE("singular values: the same bits each time") {
  constexpr std::int64_t n = 20;
  std::vector<double> before;
  for (int repeat = 0; repeat < 2; ++repeat) {
    Generator generator{16};
    JacobianProduct product(n);
    std::vector<double> values;
    for (int t = 0; t < 60; ++t) {
      product.multiply(t % 3 == 0 ? graded(generator, n) : random(generator, n, 1.0));
      if (t % 7 != 0) continue;
      for (const double value : product.log10_largest(3)) values.push_back(value);
      values.push_back(product.log10_smallest());
    }
    if (repeat == 0) before = values;
    CHECK(values == before);
  }
}

TEST_CASE("stepping a product allocates nothing") {
  for (const std::int64_t n : {5, 40, 130}) {
    Generator generator{17};
    std::vector<Matrix> factors{random(generator, n, 1.0), graded(generator, n), jordan(n, 0.9, 0.01), Matrix(index(n * n), 1.0)};
    JacobianProduct product(n);
    DiagonalProduct diagonal(n);
    const std::vector<double> logs(index(n), -0.5);
    const long before = allocations;
    for (int t = 0; t < 12; ++t) {
      product.multiply(factors[index(t % 3)]);
      static_cast<void>(product.log10_smallest());
      diagonal.multiply(logs);
    }
    product.multiply(factors[3]);
    static_cast<void>(product.rank());
    CHECK_EQUAL(allocations - before, 0);
  }
}

TEST_CASE("diagonal products: sums that lose nothing in 1e6 steps, zeros, NaNs") {
  DiagonalProduct product(3);
  for (int t = 0; t < 1'000'000; ++t) product.multiply(std::vector<double>{-0.1, std::log(0.5), 0.1});
  const double ln10 = std::numbers::ln10;
  // -0.1 as a double, times 1e6, is exact to rounding: a plain sum is off by 1e-6.
  CHECK_CLOSE(product.log10_largest(3)[0] * ln10, 1e5, 3e-11);
  CHECK_CLOSE(product.log10_largest(3)[1] * ln10, -1e5, 3e-11);
  CHECK_CLOSE(product.log10_largest(1)[0] * ln10, 1e5, 3e-11);
  CHECK_CLOSE(product.log10_smallest(), 1e6 * std::log10(0.5), 1e-9);
  product.multiply(std::vector<double>{0.0, -infinity, 0.0});
  product.multiply(std::vector<double>{0.0, 1.0, 0.0});
  product.multiply(std::vector<double>{0.0, -infinity, 0.0});
  CHECK_EQUAL(product.log10_smallest(), -infinity);
  CHECK_EQUAL(product.log10_largest(5).size(), 3u);
  CHECK_EQUAL(product.log10_largest(3)[2], -infinity);
  CHECK_CLOSE(product.log10_largest(1)[0] * ln10, 1e5, 3e-11);
  product.multiply(std::vector<double>{not_a_number, 0.0, 0.0});
  CHECK(std::isnan(product.log10_smallest()));
  CHECK(std::isnan(product.log10_largest(1)[0]));
  product.reset();
  CHECK_EQUAL(product.log10_smallest(), 0.0);
  DiagonalProduct wide(100'000);
  std::vector<double> logs(100'000);
  for (std::size_t i = 0; i < logs.size(); ++i) logs[i] = -static_cast<double>((i * 7919) % 100'000);
  wide.multiply(logs);
  check_logs(wide.log10_largest(3), {0.0, -1.0 / ln10, -2.0 / ln10}, 1e-15);
  CHECK_CLOSE(wide.log10_smallest(), -99'999.0 / ln10, 1e-10);
}

TEST_CASE("eigenvalues of companion matrices are the roots") {
  const std::vector<double> roots{-3.0, -2.0, -1.0, -0.5, 0.25, 1.0, 2.0, 4.0};
  CHECK_SAYS(distance(eigenvalues(companion(roots), 8), {roots.begin(), roots.end()}) < 1e-11, "real roots");
  for (const std::int64_t n : {3, 5, 64, 129}) {  // x^n = 1
    Matrix a(index(n * n), 0.0);
    a[index(n - 1)] = 1.0;
    for (std::int64_t i = 1; i < n; ++i) a[index(i * n + i - 1)] = 1.0;
    std::vector<Complex> unity;
    for (std::int64_t k = 0; k < n; ++k)
      unity.push_back(std::polar(1.0, 2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n)));
    CHECK_SAYS(distance(eigenvalues(a, n), unity) < 1e-13, "roots of unity, n = " + std::to_string(n));
  }
}

TEST_CASE("eigenvalues of a multiple of the identity and a matrix of low rank are those of the sum") {
  constexpr std::int64_t n = 9;
  Rng rng(4);
  for (const std::int64_t rank : {1, 2, 3, 9}) {
    std::vector<double> u(static_cast<std::size_t>(n * rank)), v(u.size()), sum(static_cast<std::size_t>(n * n), 0.0);
    for (auto* values : {&u, &v})
      for (double& x : *values) x = rng.uniform(-1.0, 1.0);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double& entry = sum[static_cast<std::size_t>(i * n + j)];
        entry = i == j ? -0.4 : 0.0;
        for (std::int64_t r = 0; r < rank; ++r)
          entry += u[static_cast<std::size_t>(i * rank + r)] * v[static_cast<std::size_t>(j * rank + r)];
      }
    CHECK_SAYS(distance(low_rank_eigenvalues(-0.4, u, v, n, rank), eigenvalues(sum, n)) < 1e-12, "rank " + std::to_string(rank));
    u[0] = std::nan("");
    for (const auto& value : low_rank_eigenvalues(-0.4, u, v, n, rank)) CHECK(std::isnan(value.real()));
  }
}

TEST_CASE("eigenvalues of rotation blocks, hidden by an orthogonal similarity") {
  constexpr std::int64_t n = 40;
  Generator generator{21};
  Matrix blocks(n * n, 0.0);
  std::vector<Complex> expected;
  for (std::int64_t i = 0; i < n; i += 2) {
    const double r = 0.2 + generator.uniform(), angle = std::numbers::pi * generator.uniform();
    blocks[index(i * n + i)] = blocks[index((i + 1) * n + i + 1)] = r * std::cos(angle);
    blocks[index((i + 1) * n + i)] = r * std::sin(angle);
    blocks[index(i * n + i + 1)] = -r * std::sin(angle);
    expected.push_back(std::polar(r, angle));
    expected.push_back(std::polar(r, -angle));
  }
  CHECK(distance(eigenvalues(blocks, n), expected) < 1e-14);
  const Matrix q = orthogonal(generator, n);
  Matrix q_transposed(n * n);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) q_transposed[index(j * n + i)] = q[index(i * n + j)];
  const Matrix hidden = times(times(q, blocks, n), q_transposed, n);
  const auto values = eigenvalues(hidden, n);
  CHECK(distance(values, expected) < 2e-14);
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    CHECK(std::abs(values[i]) >= std::abs(values[i + 1]));
    if (std::abs(values[i]) == std::abs(values[i + 1])) CHECK(std::arg(values[i]) <= std::arg(values[i + 1]));
  }
  CHECK_EQUAL(spectral_radius(hidden, n), std::abs(values[0]));
  CHECK(values == eigenvalues(hidden, n));
}

TEST_CASE("eigenvalues of the Grcar matrix") {
  constexpr std::int64_t n = 12;
  Matrix a(n * n, 0.0);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = std::max<std::int64_t>(i - 1, 0); j < std::min(i + 4, n); ++j) a[index(i * n + j)] = j < i ? -1.0 : 1.0;
  const std::vector<Complex> expected{
      {0.16385019605333668, -2.1661259441633713}, {0.16385019605333668, 2.1661259441633713},  {0.43557090136027511, -1.8912512247741779},
      {0.43557090136027511, 1.8912512247741779},  {1.5878216642321803, -0.96187899331715566}, {1.5878216642321803, 0.96187899331715566},
      {1.4081391688008635, -1.1320104439263999},  {1.4081391688008635, 1.1320104439263999},   {0.865000338703728, -1.4976082948476999},
      {0.865000338703728, 1.4976082948476999},    {1.5396177308496164, -0.3476040091130328},  {1.5396177308496164, 0.3476040091130328}};
  const auto values = eigenvalues(a, n);
  for (std::size_t i = 0; i < values.size(); ++i) CHECK_SAYS(std::abs(values[i] - expected[i]) < 1e-12, "value " + std::to_string(i));
}

TEST_CASE("eigenvalues of triangular matrices, shuffled or not, are the diagonal, exactly") {
  constexpr std::int64_t n = 30;
  Generator generator{22};
  std::vector<std::int64_t> order(n);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t i = n - 1; i > 0; --i)
    std::swap(order[i], order[static_cast<std::size_t>(generator.uniform() * static_cast<double>(i + 1))]);
  Matrix upper(n * n, 0.0), lower(n * n, 0.0), shuffled(n * n, 0.0);
  std::vector<Complex> expected;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = i; j < n; ++j) {
      const double x = generator.symmetric() * (i == j ? 1.0 : 100.0);
      upper[index(i * n + j)] = lower[index(j * n + i)] = shuffled[index(order[index(i)] * n + order[index(j)])] = x;
      if (i == j) expected.push_back(x);
    }
  }
  for (const Matrix& a : {upper, lower, shuffled}) CHECK_EQUAL(distance(eigenvalues(a, n), expected), 0.0);
  CHECK_EQUAL(distance(eigenvalues(Matrix(n * n, 0.0), n), std::vector<Complex>(n)), 0.0);
  CHECK_EQUAL(eigenvalues(Matrix{-7.0}, 1)[0], Complex(-7.0));
}

TEST_CASE("eigenvalues survive bad scaling") {
  constexpr std::int64_t n = 12;
  Generator generator{23};
  const Matrix a = random(generator, n, 1.0);
  const auto expected = eigenvalues(a, n);
  Matrix unbalanced = a;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) unbalanced[index(i * n + j)] *= std::ldexp(1.0, static_cast<int>(5 * (i - j)));
  CHECK(distance(eigenvalues(unbalanced, n), expected) < 1e-13);
  for (const double scale : {0x1p+1000, 0x1p-1000}) {
    Matrix b = a;
    for (double& x : b) x *= scale;
    auto values = eigenvalues(b, n);
    for (auto& value : values) value = Complex(value.real() / scale, value.imag() / scale);
    CHECK_EQUAL(distance(values, expected), 0.0);
  }
}

TEST_CASE("eigenvalues of random matrices: traces of powers, conjugate pairs") {
  for (const std::int64_t n : {2, 3, 7, 33, 64, 150}) {
    Generator generator{static_cast<std::uint64_t>(100 + n)};
    const Matrix a = random(generator, n, 1.0 / std::sqrt(static_cast<double>(n)));
    const Matrix square = times(a, a, n), cube = times(square, a, n);
    const auto values = eigenvalues(a, n);
    Complex sums[3] = {};
    for (const Complex& value : values) {
      sums[0] += value;
      sums[1] += value * value;
      sums[2] += value * value * value;
      CHECK(std::find(values.begin(), values.end(), std::conj(value)) != values.end());
    }
    double traces[3] = {};
    for (std::int64_t i = 0; i < n; ++i) {
      traces[0] += a[index(i * n + i)];
      traces[1] += square[index(i * n + i)];
      traces[2] += cube[index(i * n + i)];
    }
    for (int k = 0; k < 3; ++k)
      CHECK_SAYS(std::abs(sums[k] - traces[k]) < 1e-12, "n = " + std::to_string(n) + ", power " + std::to_string(k + 1));
  }
}

TEST_CASE("eigenvalues of a matrix that is not finite are NaN") {
  for (const double bad : {not_a_number, infinity}) {
    for (const Complex& value : eigenvalues(Matrix{1.0, bad, 0.0, 1.0}, 2)) CHECK(std::isnan(value.real()) && std::isnan(value.imag()));
    CHECK(std::isnan(spectral_radius(Matrix{1.0, bad, 0.0, 1.0}, 2)));
  }
}

TEST_CASE("eigenvalues of many matrices: as one by one") {
  constexpr std::int64_t n = 17, count = 40;
  std::vector<Matrix> matrices;
  Generator generator{24};
  for (std::int64_t i = 0; i < count; ++i) matrices.push_back(random(generator, n, 1.0));
  std::vector<std::vector<Complex>> found(count);
  eigenvalues_of_many(
      count, n,
      [&](std::int64_t i, std::span<double> matrix) { std::copy(matrices[index(i)].begin(), matrices[index(i)].end(), matrix.begin()); },
      [&](std::int64_t i, const std::vector<Complex>& values) { found[index(i)] = values; }, {});
  for (std::int64_t i = 0; i < count; ++i) CHECK(found[index(i)] == eigenvalues(matrices[index(i)], n));
  eigenvalues_of_many(
      0, n, [](std::int64_t, std::span<double>) { throw std::logic_error("nothing to fill"); },
      [](std::int64_t, const std::vector<Complex>&) {}, {});
}

TEST_CASE("eigenvalues of many matrices: a stop is heard within 100 ms, a throw ends the work") {
  constexpr std::int64_t n = 256, count = 100'000;
  std::stop_source source;
  std::atomic<std::int64_t> done{0};
  std::chrono::steady_clock::time_point asked;
  std::jthread asker([&] {
    done.wait(0);
    asked = std::chrono::steady_clock::now();
    source.request_stop();
  });
  const auto fill = [](std::int64_t i, std::span<double> matrix) {
    Generator generator{static_cast<std::uint64_t>(i)};
    for (double& x : matrix) x = generator.symmetric();
  };
  eigenvalues_of_many(
      count, n, fill,
      [&](std::int64_t, const std::vector<Complex>&) {
        ++done;
        done.notify_all();
      },
      source.get_token());
  const auto ended = std::chrono::steady_clock::now();
  asker.join();
  CHECK_SAYS(ended - asked < std::chrono::milliseconds(100), std::to_string(std::chrono::duration<double>(ended - asked).count()) + " s");
  CHECK(done > 0 && done < count);

  std::string said;
  try {
    eigenvalues_of_many(count, 8, fill,
                        [](std::int64_t i, const std::vector<Complex>&) {
                          if (i == 5) throw std::runtime_error("five");
                        },
                        {});
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  CHECK_EQUAL(said, "five");
}

TEST_CASE("the slope of a curve with holes") {
  std::vector<std::int64_t> steps;
  std::vector<double> values;
  for (std::int64_t t = 1'000'000; t < 1'000'200; t += 2) {
    steps.push_back(t);
    values.push_back(t % 10 == 0 ? -infinity : t % 10 == 4 ? not_a_number : 3.0 - 0.125 * static_cast<double>(t));
  }
  CHECK_CLOSE(slope_per_step(steps, values), -0.125, 1e-13);
  CHECK_CLOSE(slope_per_step(std::vector<std::int64_t>{0, 1, 2, 3}, std::vector<double>{0.0, 1.0, 0.0, 1.0}), 0.2, 1e-15);
  CHECK_EQUAL(slope_per_step(std::vector<std::int64_t>{0, 1, 2}, std::vector<double>{2.0, 2.0, 2.0}), 0.0);
  CHECK(std::isnan(slope_per_step(std::vector<std::int64_t>{0, 1}, std::vector<double>{1.0, -infinity})));
  CHECK(std::isnan(slope_per_step({}, {})));
}
