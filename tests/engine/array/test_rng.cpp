// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>
#include <vector>

#include "array/rng.h"
#include "test.h"

using reclab::Rng;

// The expected bits come from a separate transcription of the published algorithms in Python's integers, which gives 11520, 0,
// 1509978240 from the state 1, 2, 3, 4 as the authors' C code does.
TEST_CASE("the generator is xoshiro256** seeded by splitmix64") {
  const std::uint64_t seeds[] = {0, 1, ~std::uint64_t{0}};
  const std::uint64_t expected[3][3] = {{0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0},
                                        {0xb3f2af6d0fc710c5, 0x853b559647364cea, 0x92f89756082a4514},
                                        {0x8f5520d52a7ead08, 0xc476a018caa1802d, 0x81de31c0d260469e}};
  for (int i = 0; i < 3; ++i) {
    Rng rng(seeds[i]);
    for (const std::uint64_t bits : expected[i]) CHECK_EQUAL(rng.bits(), bits);
  }
}

TEST_CASE("normal numbers are the polar method's to rounding") {
  // From 40-digit arithmetic on the same bits.
  Rng rng(42);
  for (const double value : {-0.72621913824478569999, -0.21119691823195986038, 0.2216227015035933363, 0.52277168775601455213})
    CHECK_CLOSE(rng.normal(), value, 4e-16);
}

TEST_CASE("normal numbers have the moments of the normal distribution") {
  Rng rng(3);
  const int n = 1'000'000;
  double sum = 0.0, squares = 0.0, fourths = 0.0;
  for (int i = 0; i < n; ++i) {
    const double x = rng.normal();
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  // Five standard errors: 1, sqrt 2 and sqrt 96 over sqrt n.
  CHECK_CLOSE(sum / n, 0.0, 5e-3);
  CHECK_CLOSE(squares / n, 1.0, 7.1e-3);
  CHECK_CLOSE(fourths / n, 3.0, 4.9e-2);
}

TEST_CASE("uniform numbers stay in their interval and fill it evenly") {
  Rng rng(4);
  std::array<int, 10> bins{};
  for (int i = 0; i < 100'000; ++i) {
    const double x = rng.uniform(-2.0, 3.0);
    CHECK(x >= -2.0 && x < 3.0);
    ++bins[static_cast<std::size_t>((x + 2.0) * 2.0)];
  }
  for (const int count : bins) CHECK_CLOSE(count, 10'000, 475);  // five standard errors
  const double next = std::nextafter(1.0, 2.0);
  for (int i = 0; i < 1000; ++i) CHECK_EQUAL(rng.uniform(1.0, next), 1.0);  // rounding must not reach the open end
}

TEST_CASE("integers are even over any range") {
  Rng rng(5);
  std::array<int, 3> counts{};
  for (int i = 0; i < 30'000; ++i) ++counts[static_cast<std::size_t>(rng.integer(3))];
  for (const int count : counts) CHECK_CLOSE(count, 10'000, 410);
  CHECK_EQUAL(rng.integer(1), 0);
  // Of 3/4 of 2^64 possible draws a plain remainder would make the lower third twice as likely.
  const std::int64_t large = std::int64_t{3} << 61;
  int low = 0;
  for (int i = 0; i < 30'000; ++i) low += rng.integer(large) < large / 3;
  CHECK_CLOSE(low, 10'000, 410);
}

TEST_CASE("streams split by name do not depend on what was drawn") {
  Rng fresh(7), used(7);
  for (int i = 0; i < 5; ++i) used.normal();
  CHECK_EQUAL(fresh.split("weight").bits(), std::uint64_t{0xa942aea7028efa72});
  CHECK_EQUAL(used.split("weight").bits(), std::uint64_t{0xa942aea7028efa72});
  CHECK(fresh.split("weight").bits() != fresh.split("weights").bits());
  CHECK(fresh.split("weight").bits() != Rng(8).split("weight").bits());
  Rng a = fresh.split("a"), b = fresh.split("b");
  double product = 0.0;
  for (int i = 0; i < 100'000; ++i) product += a.normal() * b.normal();
  CHECK_CLOSE(product / 100'000, 0.0, 5.0 / std::sqrt(100'000.0));
}
