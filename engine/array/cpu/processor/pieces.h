// SPDX-License-Identifier: GPL-3.0-or-later
// An operation over many entries in pieces, on all processors where there are more than two of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "array/cpu/processor/threads.h"

namespace reclab::cpu {

/// Calls f(from, to) for pieces of about `piece` entries that are independent of each other, on all processors where there are more than
/// two. Pieces begin at multiples of `unit`.
template <class F>
void in_pieces(std::int64_t n, std::int64_t unit, std::int64_t piece, const F& f) {
  const std::int64_t size = (piece + unit - 1) / unit * unit;
  if (n <= 2 * size) {
    if (n) f(std::int64_t{0}, n);
    return;
  }
  cpu::parallel((n + size - 1) / size, [&](std::int64_t i) { f(i * size, std::min(n, (i + 1) * size)); });
}
/// Entries of an operation that take as long as several rendezvous of threads.
inline constexpr std::int64_t piece_of_sums = std::int64_t{1} << 13, piece_of_exponentials = std::int64_t{1} << 11;

}  // namespace reclab::cpu
