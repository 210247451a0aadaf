// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/rng.h"

#include <bit>
#include <cmath>

#include "array/demand.h"

// A fused multiply-add rounds once where two operations round twice; which of them the compiler takes depends on the processor.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

namespace reclab {

namespace {

std::uint64_t splitmix(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// Natural logarithm of 0 < x < 1 from the four operations, which IEEE 754 rounds the same everywhere; error below 4e-16 relative to
/// the larger of 1 and |log x|. log(2^e m) = e log 2 + 2 artanh((m - 1) / (m + 1)) with sqrt(1/2) <= m < sqrt(2).
double portable_log(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2.0;
    --exponent;
  }
  const double z = (mantissa - 1.0) / (mantissa + 1.0), square = z * z;
  double series = 0.0;
  for (int k = 23; k >= 1; k -= 2) series = series * square + 1.0 / k;
  return exponent * 0.69314718055994531 + 2.0 * z * series;
}

}  // namespace

Rng::Rng(std::uint64_t seed) : seed_(seed) {
  for (auto& word : state_) word = splitmix(seed);
}

std::uint64_t Rng::bits() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9, shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Rng::uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

double Rng::uniform(double low, double high) {
  const double value = low + (high - low) * uniform();
  return value < high ? value : low;  // rounding can reach the end that is not in the interval
}

double Rng::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  for (;;) {
    const double u = 2.0 * uniform() - 1.0, v = 2.0 * uniform() - 1.0, s = u * u + v * v;
    if (s >= 1.0 || s == 0.0) continue;
    const double factor = std::sqrt(-2.0 * portable_log(s) / s);
    spare_ = v * factor;
    has_spare_ = true;
    return u * factor;
  }
}

std::int64_t Rng::integer(std::int64_t n) {
  RECLAB_DEMAND(n >= 1);
  const auto range = static_cast<std::uint64_t>(n);
  const std::uint64_t excess = (0 - range) % range;  // 2^64 mod n: that many draws would make the first numbers likelier
  std::uint64_t draw = bits();
  while (draw < excess) draw = bits();
  return static_cast<std::int64_t>(draw % range);
}

Rng Rng::split(std::string_view name) const {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  std::uint64_t mixed = seed_;
  hash ^= splitmix(mixed);
  return Rng(splitmix(hash));
}

}  // namespace reclab
