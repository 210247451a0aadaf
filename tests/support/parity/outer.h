// SPDX-License-Identifier: GPL-3.0-or-later
// The outer-product memory.
#pragma once

#include "parity/parity.h"

namespace reclab::test {

inline void outer_parity(Backend& other, ReadOrder read) {
  struct Size {
    std::int64_t steps, heads, key, value;
  };
  for (const DType type : real_types)
    for (const Size s :
         {Size{1, 1, 1, 1}, Size{40, 3, 5, 7}, Size{300, 2, 8, 4}, Size{4200, 1, 2, 3}, Size{31, 3, 31, 1}, Size{32, 1, 1, 33},
          Size{33, 2, 32, 7}, Size{61, 5, 3, 13}, Size{1023, 1, 3, 1}, Size{1024, 1, 1, 3}, Size{1025, 1, 2, 2}})
      for (const bool attention : {false, true})
        for (const bool started : {false, true}) {
          if (attention && s.steps > 1000) continue;
          const OuterDims d{s.steps, s.heads, s.key, s.value, read};
          const std::int64_t keys = s.steps * s.heads * s.key, values = s.steps * s.heads * s.value, size = s.heads * s.key * s.value;
          Parity parity(other, 13);
          const std::size_t q = parity.array(type, keys), k = parity.array(type, keys), v = parity.array(type, values),
                            initial = parity.array(type, size), o = parity.array(type, values), states = parity.array(type, s.steps * size),
                            last = parity.array(type, size), go = parity.array(type, values), carried = parity.array(type, size),
                            gq = parity.array(type, keys), gk = parity.array(type, keys), gv = parity.array(type, values),
                            ginitial = parity.array(type, size);
          try {
            parity.run(
                [&](Backend& b, const Parity::Pointers& p, Parity::Host& norms) {
                  void* start = started ? p[initial] : nullptr;
                  b.outer(type, d, attention, p[q], p[k], p[v], start, p[o], nullptr, nullptr, {});
                  b.outer(type, d, attention, p[q], p[k], p[v], start, p[o], attention ? nullptr : p[states], p[last], {});
                  b.outer_adjoint(type, d, attention, p[q], p[k], p[v], start, p[go], started ? p[carried] : nullptr, p[gq], p[gk], p[gv],
                                  p[ginitial], norms.data(), {});
                  b.outer_adjoint(type, d, attention, p[q], p[k], p[v], start, p[go], nullptr, p[gq], p[gk], p[gv], nullptr, nullptr, {});
                  return 0;
                },
                static_cast<std::size_t>(s.steps), type == DType::f32 ? 2e-4 : 1e-11);
          } catch (const Failure& failure) {
            throw Failure(name_of(type) + ", " + std::to_string(s.steps) + " steps, " + std::to_string(s.heads) + " heads" +
                          (attention ? ", attention" : "") + (started ? ", from a state" : "") + ": " + failure.what());
          }
        }
}

inline void outer_after_parity(Backend& other) { outer_parity(other, ReadOrder::after); }
inline void outer_before_parity(Backend& other) { outer_parity(other, ReadOrder::before); }

inline std::vector<ParityCase> outer_parity_cases() {
  return {{"outer: the memory, stepped and as attention, and its adjoints", outer_after_parity},
          {"outer: the memory read before its update, stepped and as attention, and its adjoints", outer_before_parity}};
}

}  // namespace reclab::test
