// SPDX-License-Identifier: GPL-3.0-or-later
// Sums over a row that do not wait for each addition.
#pragma once

#include <cstdint>

namespace reclab::cpu {

inline constexpr std::int64_t lanes = 16;

/// The fold of N entries by `onto`, upper halves onto lower ones: onto(V lower, V upper) -> V, of vectors and in the end of single entries.
/// By value: a reference to a vector type promises its natural alignment, which entries of an array do not have.
template <std::int64_t N, class T, class F>
T folded(const T* x, const F& onto) {
  if constexpr (N == 1) {
    return *x;
  } else {
    typedef T Half __attribute__((vector_size(N / 2 * sizeof(T)), aligned(sizeof(T))));
    const Half both = onto(*reinterpret_cast<const Half*>(x), *reinterpret_cast<const Half*>(x + N / 2));
    return folded<N / 2>(reinterpret_cast<const T*>(&both), onto);
  }
}

/// The sum of term(j) over n columns, as many sums side by side as a vector has entries: the order is that of the columns from the first on
/// alone.
template <class F>
double in_lanes(std::int64_t n, const F& term) {
  double sums[lanes] = {};
  std::int64_t j = 0;
  for (; j + lanes <= n; j += lanes)
    for (std::int64_t l = 0; l < lanes; ++l) sums[l] += term(j + l);
  for (std::int64_t l = 0; j + l < n; ++l) sums[l] += term(j + l);
  return folded<lanes>(sums, [](auto lower, auto upper) { return lower + upper; });
}

}  // namespace reclab::cpu
