// SPDX-License-Identifier: GPL-3.0-or-later
// Kernels, frequency responses and time constants of systems that can be worked out by hand.
#include "analysis/response.h"

#include <cmath>
#include <numbers>

#include "algebra/resolvent.h"
#include "array/rng.h"
#include "autodiff/ops.h"
#include "test.h"

using namespace reclab;

namespace {

using Complex = std::complex<double>;

/// A graph whose constants describe a system; only what is read of it is there.
struct Made {
  Graph graph{DType::f64};
  Var u, y;
  Made(std::int64_t inputs, std::int64_t outputs)
      : u(graph.leaf(LeafKind::variable, {4, 1, inputs}, DType::f64)), y(graph.leaf(LeafKind::variable, {4, 1, outputs}, DType::f64)) {}
  Var array(Shape shape, std::vector<double> values) { return graph.constant(std::move(shape), std::move(values)); }
  Response response(LinearSystem system, std::int64_t most = 100) {
    system.input = u;
    system.output = y;
    graph.allocate(cpu_backend(), false);
    graph.forward();
    return Response(system, cpu_backend(), most);
  }
};

}  // namespace

TEST_CASE("a resolvent solves for every z, also where the first entries vanish and where a matrix is Hessenberg already") {
  for (const std::int64_t n : {1, 2, 3, 7, 20}) {
    Rng rng = Rng(7).split("matrix " + std::to_string(n));
    std::vector<double> A, b;
    for (std::int64_t i = 0; i < n * n; ++i) A.push_back(i % (n + 1) == 0 ? 0.0 : rng.normal());
    if (n == 7)
      for (std::int64_t i = 2; i < n; ++i) A[static_cast<std::size_t>(i * n)] = 0.0;
    for (std::int64_t i = 0; i < n; ++i) b.push_back(rng.normal());
    Resolvent resolvent(A, n);
    const std::vector<double> turned = resolvent.turned(b);
    for (const Complex z : {Complex(1.0), Complex(0.0, 1.0), std::polar(0.8, 2.0), Complex(0.0)}) {
      std::vector<Complex> x(turned.begin(), turned.end());
      resolvent.solve(z, x);
      // c^T of the rows of the unit matrix and of A: (I - z A) times the solution is b.
      std::vector<Complex> plain;
      for (std::int64_t i = 0; i < n; ++i) {
        std::vector<double> unit(static_cast<std::size_t>(n), 0.0);
        unit[static_cast<std::size_t>(i)] = 1.0;
        const std::vector<double> row = resolvent.turned(unit);
        Complex entry = 0.0;
        for (std::size_t j = 0; j < row.size(); ++j) entry += row[j] * x[j];
        plain.push_back(entry);
      }
      for (std::size_t i = 0; i < plain.size(); ++i) {
        Complex left = plain[i];
        double size = 1.0;
        for (std::size_t j = 0; j < plain.size(); ++j) {
          left -= z * A[i * plain.size() + j] * plain[j];
          size += std::abs(plain[j]);
        }
        CHECK_SAYS(std::abs(left - b[i]) < 1e-13 * size * static_cast<double>(n),
                   std::to_string(n) + ": " + test::show(std::abs(left - b[i])));
      }
    }
  }
}

TEST_CASE("a mode is a geometric series: kernel, gain, phase and time constant") {
  Made made(3, 3);
  const Var a = made.array({3, 1}, {0.9, 0.9, 0.5}), b = made.array({3, 1}, {2.0, 2.0, 1.0}), c = made.array({3, 1}, {0.5, 0.5, -3.0});
  const Response response = made.response({.structure = LinearSystem::Structure::modes, .input = {}, .output = {}, .a = a, .b = b, .c = c});
  CHECK_EQUAL(response.channels().size(), std::size_t{2});
  CHECK(response.channels()[0].alike == 2 && response.channels()[1].input == 2 && response.channels()[1].output == 2);
  const auto k = response.kernels(4);
  for (int t = 0; t < 4; ++t) {
    CHECK_CLOSE(k[static_cast<std::size_t>(2 * t)], std::pow(0.9, t), 1e-15);
    CHECK_CLOSE(k[static_cast<std::size_t>(2 * t + 1)], -3.0 * std::pow(0.5, t), 1e-15);
  }
  const double angles[] = {0.0, std::numbers::pi};
  const auto H = response.responses(angles);
  CHECK_CLOSE(H[0].real(), 10.0, 1e-13);
  CHECK_CLOSE(H[1].real(), -6.0, 1e-13);
  CHECK_CLOSE(H[2].real(), 1.0 / 1.9, 1e-15);
  CHECK_CLOSE(response.time_constants()[0], -1.0 / std::log(0.9), 1e-12);
  CHECK_CLOSE(response.after(3).kernels(1)[0], std::pow(0.9, 3), 1e-15);
}

TEST_CASE("a running sum never falls off, and has an infinite gain at rest") {
  Made made(1, 1);
  const Response response =
      made.response({.structure = LinearSystem::Structure::modes, .input = {}, .output = {}, .a = made.array({1}, {1.0})});
  const double angles[] = {0.0, std::numbers::pi};
  CHECK(std::isinf(response.time_constants()[0]));
  CHECK(!std::isfinite(std::abs(response.responses(angles)[0])));
  CHECK_CLOSE(response.responses(angles)[1].real(), 0.5, 1e-15);
}

TEST_CASE("a matrix has the kernel of its powers: a delay of two steps") {
  Made made(2, 6);  // two copies that share all
  const Response response = made.response({.structure = LinearSystem::Structure::matrix,
                                           .input = {},
                                           .output = {},
                                           .a = made.array({3, 3}, {0, 0, 0, 1, 0, 0, 0, 1, 0}),
                                           .b = made.array({3}, {1, 0, 0})});
  CHECK_EQUAL(response.channels().size(), std::size_t{3});
  CHECK(response.channels()[2].input == 0 && response.channels()[2].output == 2 && response.channels()[2].alike == 2);
  const auto k = response.kernels(4);
  for (std::size_t t = 0; t < 4; ++t)
    for (std::size_t i = 0; i < 3; ++i) CHECK_EQUAL(k[t * 3 + i], t == i ? 1.0 : 0.0);
  const double angles[] = {0.7};
  const auto H = response.responses(angles);
  for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(H[i] - std::polar(1.0, -0.7 * static_cast<double>(i))) < 1e-15);
  CHECK_EQUAL(response.time_constants()[0], 0.0);
}

TEST_CASE("taps are their own kernel, and the time constant of an exponential is its own") {
  Made made(1, 1);
  std::vector<double> taps;
  for (int t = 0; t < 400; ++t) taps.push_back(std::pow(0.9, t) * (t % 2 ? -1.0 : 1.0));
  const Response response =
      made.response({.structure = LinearSystem::Structure::taps, .input = {}, .output = {}, .a = made.array({1, 400}, taps)});
  CHECK_EQUAL(response.kernels(3)[2], taps[2]);
  CHECK_EQUAL(response.kernels(401)[400], 0.0);
  CHECK_CLOSE(response.time_constants()[0], -1.0 / std::log(0.9), 0.02);
  CHECK_EQUAL(response.after(399).kernels(2)[0], taps[399]);
  CHECK_EQUAL(response.after(399).kernels(2)[1], 0.0);
}

TEST_CASE("channels beyond those that are wanted are counted") {
  Made made(5, 5);
  const Response response = made.response(
      {.structure = LinearSystem::Structure::modes, .input = {}, .output = {}, .a = made.array({5}, {0.1, 0.2, 0.3, 0.1, 0.4})}, 2);
  CHECK(response.channels().size() == 2 && response.left_out() == 2 && response.channels()[0].alike == 2);
}

TEST_CASE("the frequencies go up to half a cycle a step") {
  const auto all = response_frequencies();
  CHECK(all.back() == 0.5 && std::abs(all.front() - 5e-5) < 1e-18);
  for (std::size_t i = 1; i < all.size(); ++i) CHECK_CLOSE(all[i] / all[i - 1], all[1] / all[0], 1e-12);
}
