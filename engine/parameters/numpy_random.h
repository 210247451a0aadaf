// SPDX-License-Identifier: GPL-3.0-or-later
// Draws of numpy.random.RandomState, for models whose reference implementation draws with it: its Mersenne twister is std::mt19937, and its
// bounded draws are masked and drawn again.
#pragma once

#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace reclab {

class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint32_t seed) : draws_(seed) {}
  /// randint(n): 0 to n - 1.
  std::int64_t below(std::int64_t n) {
    const auto last = static_cast<std::uint32_t>(n - 1);
    if (last == 0) return 0;  // nothing is drawn
    std::uint32_t mask = last;
    for (int shift = 1; shift <= 16; shift *= 2) mask |= mask >> shift;
    std::uint32_t value = 0;
    do value = static_cast<std::uint32_t>(draws_()) & mask;
    while (value > last);
    return value;
  }
  std::vector<std::int64_t> permutation(std::int64_t n) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    for (std::int64_t last = n - 1; last > 0; --last)
      std::swap(order[static_cast<std::size_t>(last)], order[static_cast<std::size_t>(below(last + 1))]);
    return order;
  }
  /// choice(n, size, replace=False).
  std::vector<std::int64_t> choose(std::int64_t n, std::int64_t size) {
    std::vector<std::int64_t> order = permutation(n);
    order.resize(static_cast<std::size_t>(size));
    return order;
  }

 private:
  std::mt19937 draws_;
};

}  // namespace reclab
