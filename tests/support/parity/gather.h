// SPDX-License-Identifier: GPL-3.0-or-later
// Boxes of strided arrays.
#pragma once

#include <algorithm>

#include "parity/parity.h"

namespace reclab::test {

inline void movement_parity(Backend& other) {
  Strided box;  // [4, 3, 5] out of something larger, the last two transposed
  box.rank = 3;
  box.elements = 60;
  box.offset = 7;
  const std::int64_t size[] = {4, 3, 5}, stride[] = {40, 1, 6};
  std::copy(size, size + 3, box.size);
  std::copy(stride, stride + 3, box.stride);
  for (const DType type : every_type)
    for (const bool accumulate : {false, true}) {
      Parity parity(other, 4);
      const std::size_t wide = parity.array(type, 200), dense = parity.array(type, 60), other_wide = parity.array(type, 200),
                        single = parity.array(type, 1);
      parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
        b.gather(type, box, p[wide], p[dense], accumulate);
        b.scatter(type, box, p[dense], p[other_wide], accumulate);
        Strided one;
        one.offset = 3;
        b.gather(type, one, p[wide], p[single], accumulate);
        b.copy(p[wide], static_cast<char*>(p[other_wide]) + bytes_of(type), 9 * bytes_of(type));
        b.zero(static_cast<char*>(p[wide]) + 20 * bytes_of(type), 5 * bytes_of(type));
        return 0;
      });
    }
}

inline std::vector<ParityCase> gather_parity_cases() { return {{"gather: boxes of strided arrays, copies and clearing", movement_parity}}; }

}  // namespace reclab::test
