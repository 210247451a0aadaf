// SPDX-License-Identifier: GPL-3.0-or-later
// Random numbers that are the same bits on every machine: xoshiro256** (Blackman & Vigna 2021, "Scrambled linear pseudorandom number
// generators", ACM TOMS 47:36), seeded by splitmix64. No std:: distribution and no libm function takes part, because both differ between
// libraries.
#pragma once

#include <cstdint>
#include <string_view>

namespace reclab {

class Rng {
 public:
  explicit Rng(std::uint64_t seed);

  std::uint64_t bits();                     ///< 64 random bits
  double uniform();                         ///< in [0, 1), a multiple of 2^-53
  double uniform(double low, double high);  ///< in [low, high)
  double normal();                          ///< mean 0, deviation 1 (Marsaglia's polar method)
  std::int64_t integer(std::int64_t n);     ///< 0..n-1, each equally likely; n >= 1 (asserted)

  /// An independent stream that depends on this generator's seed and the name only, not on earlier draws: a model that draws each parameter
  /// from split(its name) keeps the others' values when one is added.
  Rng split(std::string_view name) const;

 private:
  std::uint64_t seed_;
  std::uint64_t state_[4];
  double spare_ = 0.0;  ///< the polar method makes two at a time
  bool has_spare_ = false;
};

}  // namespace reclab
