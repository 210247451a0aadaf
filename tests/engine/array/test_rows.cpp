// SPDX-License-Identifier: GPL-3.0-or-later
// What is made of a row, a norm or a product of complex numbers, has the same bits whatever rows stand beside it.
#include <complex>
#include <cstring>
#include <vector>

#include "array/backend.h"
#include "array/rng.h"
#include "test.h"

using namespace reclab;

namespace {

template <class T>
void same_bits(DType type) {
  Backend& cpu = cpu_backend();
  const std::int64_t rows = 401;
  for (const std::int64_t n : {1, 4, 6, 16, 32, 64, 100, 1025})
    for (const bool centred : {false, true})
      for (const bool weighted : {false, true}) {
        Rng rng(3);
        const auto random = [&](std::int64_t count) {
          std::vector<T> values(static_cast<std::size_t>(count));
          for (T& x : values) x = static_cast<T>(rng.normal());
          return values;
        };
        const auto x = random(rows * n), g = random(rows * n), weight = random(n), bias = random(n), before = random(rows * n);
        const void *w = weighted ? weight.data() : nullptr, *b = weighted ? bias.data() : nullptr;
        auto y = before, gx = before, one_by_one = before, gx_one_by_one = before;
        cpu.norm(type, rows, n, centred, 1e-5, x.data(), w, b, y.data());
        cpu.norm_adjoint(type, rows, n, centred, 1e-5, x.data(), w, g.data(), gx.data(), weighted, nullptr, nullptr);
        for (std::int64_t r = 0; r < rows; ++r) {
          cpu.norm(type, 1, n, centred, 1e-5, x.data() + r * n, w, b, one_by_one.data() + r * n);
          cpu.norm_adjoint(type, 1, n, centred, 1e-5, x.data() + r * n, w, g.data() + r * n, gx_one_by_one.data() + r * n, weighted,
                           nullptr, nullptr);
        }
        const std::string where = std::to_string(n) + (centred ? ", centred" : "") + (weighted ? ", weighted" : "");
        if (std::memcmp(y.data(), one_by_one.data(), y.size() * sizeof(T)) != 0)
          throw test::Failure("rows of " + where + ": other bits one by one");
        if (std::memcmp(gx.data(), gx_one_by_one.data(), gx.size() * sizeof(T)) != 0)
          throw test::Failure("rows of " + where + ": another adjoint one by one");
      }
}

template <class T>
void same_products(DType type) {
  using Z = std::complex<T>;
  Backend& cpu = cpu_backend();
  const std::int64_t rows = 401;
  for (const std::int64_t n : {1, 5, 8, 16, 32, 64, 100}) {
    Rng rng(4);
    const auto random = [&](std::int64_t count) {
      std::vector<Z> values(static_cast<std::size_t>(count));
      for (Z& z : values) z = {static_cast<T>(rng.normal()), static_cast<T>(rng.normal())};
      return values;
    };
    const auto x = random(rows * n), y = random(n);
    auto z = x, one_by_one = x;
    Shape shape;
    cpu.binary(Binary::multiply, type, broadcast({rows, n}, {n}, shape), x.data(), y.data(), z.data());
    for (std::int64_t r = 0; r < rows; ++r)
      cpu.binary(Binary::multiply, type, broadcast({n}, {n}, shape), x.data() + r * n, y.data(), one_by_one.data() + r * n);
    if (std::memcmp(z.data(), one_by_one.data(), z.size() * sizeof(Z)) != 0)
      throw test::Failure("products by rows of " + std::to_string(n) + ": other bits one by one");
  }
}

}  // namespace

TEST_CASE("products of complex64 have the same bits whatever rows are beside") { same_products<float>(DType::c64); }
TEST_CASE("products of complex128 have the same bits whatever rows are beside") { same_products<double>(DType::c128); }
TEST_CASE("norms of float32 have the same bits whatever rows are beside") { same_bits<float>(DType::f32); }
TEST_CASE("norms of float64 have the same bits whatever rows are beside") { same_bits<double>(DType::f64); }
