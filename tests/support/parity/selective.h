// SPDX-License-Identifier: GPL-3.0-or-later
// The selective recurrence.
#pragma once

#include "parity/parity.h"

namespace reclab::test {

/// Rates from near 0 to far beyond full decay in a step, slabs of channels that are full, over-full and not full.
inline void selective_parity(Backend& other) {
  struct Size {
    std::int64_t steps, batch, channels, states;
  };
  for (const DType type : real_types)
    for (const Size s :
         {Size{1, 1, 1, 1}, Size{2, 3, 5, 7}, Size{31, 2, 31, 1}, Size{32, 1, 64, 16}, Size{33, 2, 65, 17}, Size{61, 1, 130, 3},
          Size{300, 1, 7, 40}, Size{20, 2, 5, 70}, Size{1023, 1, 3, 5}, Size{1024, 1, 2, 16}, Size{1025, 2, 3, 2}, Size{4113, 1, 1, 2}})
      for (const double strength : {1e-6, 0.2, 5.0, 300.0}) {
        // Factors that are all 0 in the type are none in the reference: then its adjoint falls where the other's has ended.
        if (strength == 300.0 && s.steps > 4096) continue;
        const bool started = strength != 1e-6, far = strength >= 5.0, watched = strength != 0.2;
        // A factor is a plain number of the type. Where no state stays, an initial one's adjoint may be below the type's range, and is
        // compared as zero.
        const bool in_units = strength != 300.0 || s.channels * s.states > 3;
        const SelectiveDims d{s.steps, s.batch, s.channels, s.states};
        const std::int64_t rows = s.steps * s.batch, wide = rows * s.channels, few = rows * s.states,
                           width = s.batch * s.channels * s.states;
        Parity parity(other, 33);
        std::vector<double> rates, steps, late(static_cast<std::size_t>(wide), 0.0);
        Rng rng(34);
        for (std::int64_t i = 0; i < s.channels * s.states; ++i) rates.push_back(i % 7 == 3 ? 0.0 : -strength * rng.uniform(0.1, 1.0));
        for (std::int64_t i = 0; i < wide; ++i) steps.push_back(rng.uniform(0.1, 1.0));
        // The loss at the last step alone: on the way back nothing fresh hides how far the adjoint falls.
        for (std::int64_t i = far ? wide - s.batch * s.channels : 0; i < wide; ++i)
          late[static_cast<std::size_t>(i)] = rng.uniform(-1.0, 1.0);
        const std::size_t dt = parity.array(type, steps), a = parity.array(type, rates), x = parity.array(type, wide),
                          b = parity.array(type, few), c = parity.array(type, few), initial = parity.array(type, width),
                          y = parity.array(type, wide), states = parity.array(type, wide * s.states), last = parity.array(type, width),
                          gy = parity.array(type, late), gstates = parity.array(type, wide * s.states), carried = parity.array(type, width),
                          gdt = parity.array(type, wide), ga = parity.array(type, s.channels * s.states), gx = parity.array(type, wide),
                          gb = parity.array(type, few), gc = parity.array(type, few),
                          ginitial = parity.array(type, std::vector<double>(static_cast<std::size_t>(width), 0.0));
        parity.in_units(ginitial);
        try {
          parity.run(
              [&](Backend& backend, const Parity::Pointers& p, Parity::Host& norms) {
                const void* start = started ? p[initial] : nullptr;
                int power = far ? 0 : -3;
                backend.selective(type, d, p[dt], p[a], p[x], p[b], p[c], start, p[y], nullptr, nullptr, {});
                backend.selective(type, d, p[dt], p[a], p[x], p[b], p[c], start, p[y], p[states], p[last], {});
                backend.selective_adjoint(type, d, p[dt], p[a], p[x], p[b], p[c], start, p[gy], nullptr, nullptr, nullptr, nullptr, p[gx],
                                          nullptr, p[gc], nullptr, nullptr, nullptr, {});
                backend.selective_adjoint(type, d, p[dt], p[a], p[x], p[b], p[c], start, p[gy], watched && !far ? p[gstates] : nullptr,
                                          far ? nullptr : p[carried], p[gdt], p[ga], p[gx], p[gb], p[gc], p[ginitial], norms.data(),
                                          in_units ? &power : nullptr, {});
                return in_units ? power : 0;
              },
              static_cast<std::size_t>(s.steps), type == DType::f32 ? 5e-5 : 1e-11);
        } catch (const Failure& failure) {
          throw Failure(name_of(type) + ", " + std::to_string(s.steps) + " steps of " + std::to_string(s.batch) + " x " +
                        std::to_string(s.channels) + " x " + std::to_string(s.states) + ", rates to " + show(strength) + ": " +
                        failure.what());
        }
      }
}

/// Cases with so many channels, or steps, that a device shares them out otherwise; and states that lie anywhere.
inline void wide_selective_parity(Backend& other) {
  struct Size {
    DType type;
    std::int64_t steps, batch, channels, states;
  };
  for (const Size& s : {Size{DType::f64, 18, 3, 4370, 5}, Size{DType::f32, 37, 1, 4100, 16}, Size{DType::f64, 9, 2, 1200, 30},
                        Size{DType::f32, 17, 2, 600, 64}, Size{DType::f32, 3, 1, 950, 70}, Size{DType::f64, 4113, 1, 2, 3}})
    for (const bool apart : {false, true}) {
      const SelectiveDims d{s.steps, s.batch, s.channels, s.states};
      const std::int64_t wide = s.steps * s.batch * s.channels, few = s.steps * s.batch * s.states, width = s.batch * s.channels * s.states;
      Parity parity(other, 35);
      const std::size_t dt = parity.array(s.type, wide, 0.01, 1.0), a = parity.array(s.type, s.channels * s.states, -2.0, 0.0),
                        x = parity.array(s.type, wide), b = parity.array(s.type, few), c = parity.array(s.type, few),
                        initial = parity.array(s.type, width), y = parity.array(s.type, wide),
                        states = parity.array(s.type, s.steps * width + 1), last = parity.array(s.type, width);
      try {
        parity.run([&](Backend& backend, const Parity::Pointers& p, Parity::Host&) {
          void* all = static_cast<char*>(p[states]) + (apart ? bytes_of(s.type) : 0);
          backend.selective(s.type, d, p[dt], p[a], p[x], p[b], p[c], p[initial], p[y], all, apart ? nullptr : p[last], {});
          return 0;
        });
      } catch (const Failure& failure) {
        throw Failure(name_of(s.type) + ", " + std::to_string(s.steps) + " steps of " + std::to_string(s.batch) + " x " +
                      std::to_string(s.channels) + " x " + std::to_string(s.states) + ": " + failure.what());
      }
    }
}

inline std::vector<ParityCase> selective_parity_cases() {
  return {{"selective: the recurrence and its adjoints", selective_parity}, {"selective: many channels", wide_selective_parity}};
}

}  // namespace reclab::test
