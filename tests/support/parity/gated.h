// SPDX-License-Identifier: GPL-3.0-or-later
// The outer-product memory with decays.
#pragma once

#include "parity/parity.h"

namespace reclab::test {

/// Decays a head, a key dimension and none; from near 1 to far below the range, where the initial memory's adjoint comes in units of its
/// own; with the final memory's adjoint in plain units, in others, and without it.
inline void gated_parity(Backend& other, ScanMethod method, ReadOrder read) {
  struct Size {
    std::int64_t steps, heads, key, value;
  };
  for (const DType type : real_types)
    for (const Size s : {Size{1, 1, 1, 1}, Size{15, 3, 5, 7}, Size{31, 2, 31, 1}, Size{32, 1, 1, 33}, Size{33, 2, 32, 31},
                         Size{61, 5, 3, 13}, Size{97, 1, 64, 67}, Size{49, 2, 100, 40}, Size{40, 1, 131, 35}, Size{300, 1, 17, 130},
                         Size{1023, 2, 3, 1}, Size{1024, 1, 1, 5}, Size{1025, 1, 2, 2}})
      for (const std::int64_t decays : {std::int64_t{0}, std::int64_t{1}, s.key})
        for (const double strength : {1e-6, 0.2, 5.0, 300.0}) {
          if (decays == 0 && (strength != 0.2 || method == ScanMethod::steps)) continue;
          const bool started = strength != 1e-6, far = strength >= 5.0;
          const int unit = strength == 5.0 || decays == 0 ? 90 : 0;
          // Inputs within a chunk decay in plain units up to its start: remains below the type's range are compared as zeros.
          const bool in_units = method == ScanMethod::steps || strength != 300.0;
          const GatedDims d{s.steps, s.heads, s.key, s.value, decays == 0 ? 1 : decays, method, read};
          const std::int64_t keys = s.steps * s.heads * s.key, values = s.steps * s.heads * s.value, size = s.heads * s.key * s.value;
          Parity parity(other, 31);
          std::vector<double> logs, late(static_cast<std::size_t>(values), 0.0);
          Rng rng(32);
          for (std::int64_t i = 0; i < s.steps * s.heads * d.decays; ++i)
            logs.push_back(i % 7 == 3 ? 0.0 : -strength * rng.uniform(0.0, 1.0));
          // The loss at the last step alone: on the way back nothing fresh hides how far the adjoint falls.
          for (std::int64_t i = far ? values - s.heads * s.value : 0; i < values; ++i)
            late[static_cast<std::size_t>(i)] = rng.uniform(-1.0, 1.0);
          const std::size_t q = parity.array(type, keys), k = parity.array(type, keys), v = parity.array(type, values),
                            a = parity.array(type, logs), initial = parity.array(type, size), o = parity.array(type, values),
                            last = parity.array(type, size), go = parity.array(type, late), gfinal = parity.array(type, size),
                            gq = parity.array(type, keys), gk = parity.array(type, keys), gv = parity.array(type, values),
                            ga = parity.array(type, s.steps * s.heads * d.decays),
                            ginitial = parity.array(type, std::vector<double>(static_cast<std::size_t>(size), 0.0));
          parity.in_units(ginitial);
          try {
            parity.run(
                [&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
                  const void *log_decay = decays ? p[a] : nullptr, *start = started ? p[initial] : nullptr;
                  int power = unit;
                  b.gated(type, d, p[q], p[k], p[v], log_decay, start, p[o], nullptr, {});
                  b.gated(type, d, p[q], p[k], p[v], log_decay, start, p[o], p[last], {});
                  b.gated_adjoint(type, d, p[q], p[k], p[v], log_decay, start, p[go], strength == 300.0 ? nullptr : p[gfinal], p[gq], p[gk],
                                  p[gv], decays ? p[ga] : nullptr, p[ginitial], in_units ? &power : nullptr, {});
                  b.gated_adjoint(type, d, p[q], p[k], p[v], log_decay, start, p[go], nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                  nullptr, {});
                  return in_units ? power : 0;
                },
                0, type == DType::f32 ? 5e-5 : 1e-11);
          } catch (const Failure& failure) {
            throw Failure(name_of(type) + ", " + std::to_string(s.steps) + " steps, " + std::to_string(s.heads) + " heads of " +
                          std::to_string(s.key) + " x " + std::to_string(s.value) + ", " + std::to_string(decays) + " decays to " +
                          show(strength) + ": " + failure.what());
          }
        }
}
inline void gated_chunks_parity(Backend& other) { gated_parity(other, ScanMethod::chunks, ReadOrder::after); }
inline void gated_steps_parity(Backend& other) { gated_parity(other, ScanMethod::steps, ReadOrder::after); }
inline void gated_chunks_before_parity(Backend& other) { gated_parity(other, ScanMethod::chunks, ReadOrder::before); }
inline void gated_steps_before_parity(Backend& other) { gated_parity(other, ScanMethod::steps, ReadOrder::before); }

inline std::vector<ParityCase> gated_parity_cases() {
  return {{"gated: the memory in chunks, and its adjoints", gated_chunks_parity},
          {"gated: the memory step by step, and its adjoints", gated_steps_parity},
          {"gated: the memory in chunks, read before its update", gated_chunks_before_parity},
          {"gated: the memory step by step, read before its update", gated_steps_before_parity}};
}

}  // namespace reclab::test
