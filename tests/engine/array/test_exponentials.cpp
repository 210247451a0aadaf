// SPDX-License-Identifier: GPL-3.0-or-later
// The exponentials of whole registers, beside those of the C library in a wider type.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "array/backend.h"
#include "test.h"

using namespace reclab;

namespace {

/// exp(x): of one state, whose factor exp(dt a) it is, from 1 on.
template <class T>
std::vector<T> exponentials(DType type, const std::vector<T>& x) {
  const std::vector<T> ones(x.size(), T(1)), zeros(x.size(), T(0));
  std::vector<T> y(x.size());
  const SelectiveDims one_step{.steps = 1, .batch = 1, .channels = static_cast<std::int64_t>(x.size()), .states = 1};
  cpu_backend().selective(type, one_step, ones.data(), x.data(), zeros.data(), zeros.data(), ones.data(), ones.data(), y.data(), nullptr,
                          nullptr, {});
  return y;
}

template <class T>
void close_to_the_library(DType type, T low, T high) {
  constexpr std::int64_t number = 2'000'003;
  std::vector<T> x;
  for (std::int64_t i = 0; i <= number; ++i) x.push_back(low + (high - low) * static_cast<T>(i) / static_cast<T>(number));
  for (std::int64_t i = 0; i <= number; ++i) x.push_back(static_cast<T>(2 * i - number) / static_cast<T>(number));
  const std::vector<T> y = exponentials(type, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double exact = std::exp(static_cast<long double>(x[i]));
    const long double unit = std::nextafter(static_cast<T>(exact), std::numeric_limits<T>::infinity()) - static_cast<T>(exact);
    if (!(std::abs(static_cast<long double>(y[i]) - exact) <= 1.5L * unit))
      throw test::Failure("exp(" + std::to_string(x[i]) + ") is off by " +
                          std::to_string(static_cast<double>((static_cast<long double>(y[i]) - exact) / unit)) +
                          " units in the last place");
  }
}

template <class T>
void at_the_ends(DType type, T largest) {
  constexpr T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN(),
              most = std::numeric_limits<T>::max();
  const std::vector<T> y =
      exponentials<T>(type, {-infinity, -most, T(-1e4), T(0), T(-0.0), largest, largest + 1, T(1e4), most, infinity, nan});
  const std::vector<T> exact{0, 0, 0, 1, 1, std::exp(largest), infinity, infinity, infinity, infinity};
  for (std::size_t i = 0; i < exact.size(); ++i)
    if (!(y[i] == exact[i] || std::abs(y[i] - exact[i]) < exact[i] * 4 * std::numeric_limits<T>::epsilon()))
      throw test::Failure("entry " + std::to_string(i) + " is " + std::to_string(y[i]));
  CHECK(std::isnan(y.back()));
}

}  // namespace

TEST_CASE("exponentials of float32 are those of the C library") { close_to_the_library<float>(DType::f32, -87.0f, 88.7f); }
TEST_CASE("exponentials of float64 are those of the C library") { close_to_the_library<double>(DType::f64, -708.0, 709.7); }
TEST_CASE("exponentials end in zero and in infinity") {
  at_the_ends<float>(DType::f32, 88.5f);
  at_the_ends<double>(DType::f64, 709.5);
}
