// SPDX-License-Identifier: GPL-3.0-or-later
// The diagonal recurrence.
#pragma once

#include "array/device_array.h"
#include "parity/parity.h"

namespace reclab::test {

inline void diagonal_parity(Backend& other) {
  struct Size {
    std::int64_t steps, width, period;
  };
  for (const DType type : every_type)
    for (const Size s :
         {Size{1, 4, 0}, Size{2, 4, 2}, Size{70, 6, 0}, Size{70, 6, 3}, Size{5000, 3, 0}, Size{5000, 4, 2}, Size{300, 300, 300},
          // around the widths of warps and blocks, and numbers that nothing divides
          Size{1, 1, 0}, Size{31, 31, 0}, Size{32, 33, 11}, Size{33, 32, 0}, Size{61, 7, 7}, Size{1023, 3, 0}, Size{1024, 5, 5},
          Size{1025, 1, 0}, Size{3, 1023, 0}, Size{2, 1024, 512}, Size{3, 1025, 205}})
      for (const ScanMethod method : {ScanMethod::steps, ScanMethod::tree, ScanMethod::chunks})
        for (const bool started : {false, true}) {
          const DiagonalDims d{s.steps, s.width, s.period};
          const std::int64_t n = s.steps * s.width, na = s.period ? s.period : n;
          Parity parity(other, 11);
          const std::size_t a = parity.factors(type, na, 0.5, 0.99), b = parity.array(type, n), initial = parity.array(type, s.width),
                            out = parity.array(type, n), g = parity.array(type, n), carried = parity.array(type, s.width),
                            ga = parity.array(type, na), gb = parity.array(type, n), ginitial = parity.array(type, s.width);
          try {
            parity.run(
                [&](Backend& backend, const Parity::Pointers& p, Parity::Host& norms) {
                  void* start = started ? p[initial] : nullptr;
                  backend.diagonal(type, d, method, p[a], p[b], start, p[out], {});
                  int exponent = method != ScanMethod::steps ? -3 : 0;
                  backend.diagonal_adjoint(type, d, method, p[a], p[out], start, p[g], started ? p[carried] : nullptr, p[ga], !started,
                                           p[gb], started, p[ginitial], norms.data(), &exponent, {});
                  CHECK_EQUAL(exponent, 0);
                  backend.diagonal_adjoint(type, d, method, p[a], p[out], start, p[g], nullptr, nullptr, true, p[gb], true, nullptr,
                                           nullptr, nullptr, {});
                  backend.diagonal_adjoint(type, d, method, p[a], p[out], start, p[g], p[carried], p[ga], true, nullptr, true, p[ginitial],
                                           nullptr, nullptr, {});
                  return 0;
                },
                static_cast<std::size_t>(s.steps), real_of(type) == DType::f32 ? 1e-4 : 1e-11);
          } catch (const Failure& failure) {
            throw Failure(name_of(type) + ", " + std::to_string(s.steps) + " steps of " + std::to_string(s.width) + ", period " +
                          std::to_string(s.period) + (method != ScanMethod::steps ? ", scan" : "") + (started ? ", from a state" : "") +
                          ": " + failure.what());
          }
        }
}

/// Adjoints far below and far above the range of the type, with one term at the last step.
inline void renormalised_parity(Backend& other) {
  for (const DType type : every_type)
    for (const bool explode : {false, true})
      for (const std::int64_t period : {0, 5}) {
        const DiagonalDims d{600, 10, period};
        const std::int64_t n = d.steps * d.width, na = period ? period : n;
        Parity parity(other, 12);
        const std::size_t a = explode ? parity.factors(type, na, 4.0, 4.5) : parity.factors(type, na, 0.1, 0.11);
        const std::size_t s = parity.array(type, n), initial = parity.array(type, d.width), carried = parity.array(type, d.width),
                          ginitial = parity.array(type, std::vector<double>(is_complex(type) ? 20 : 10, 0.0));
        std::vector<double> terms(static_cast<std::size_t>(is_complex(type) ? 2 * n : n), 0.0);
        std::fill(terms.end() - d.width, terms.end(), 0.75);
        const std::size_t g = parity.array(type, terms);
        parity.in_units(ginitial);
        parity.run(
            [&](Backend& backend, const Parity::Pointers& p, Parity::Host& norms) {
              int exponent = explode ? 300 : -300;
              backend.diagonal_adjoint(type, d, ScanMethod::steps, p[a], p[s], p[initial], p[g], p[carried], nullptr, true, nullptr, true,
                                       p[ginitial], norms.data(), &exponent, {});
              CHECK_SAYS(std::abs(exponent) > 1000, std::to_string(exponent));
              return exponent;
            },
            static_cast<std::size_t>(d.steps), real_of(type) == DType::f32 ? 2e-4 : 1e-11);
      }
}

inline void independent_parity(Backend& other) {
  for (const DType type : {DType::f32, DType::f64})
    for (const Unary f : {Unary::affine, Unary::relu, Unary::sigmoid, Unary::tanh})
      for (const DiagonalDims d : {DiagonalDims{1, 4, 4}, DiagonalDims{70, 6, 3}, DiagonalDims{5000, 3, 3}, DiagonalDims{300, 1025, 205},
                                   DiagonalDims{33, 2048, 1024}})
        for (const bool started : {false, true}) {
          Parity parity(other, 13);
          const std::size_t u = parity.factors(type, d.period, 0.5, 0.9), x = parity.array(type, d.steps * d.width),
                            initial = parity.array(type, d.width), s = parity.array(type, d.steps * d.width);
          parity.run(
              [&](Backend& backend, const Parity::Pointers& p, Parity::Host&) {
                backend.independent(f, type, d, p[u], p[x], started ? p[initial] : nullptr, p[s], {});
                return 0;
              },
              0, type == DType::f32 ? 1e-5 : 1e-12);
        }
  std::stop_source source;
  source.request_stop();
  DeviceArray memory(other, DType::f64, 64);
  bool heard = false;
  try {
    other.independent(Unary::tanh, DType::f64, {4, 2, 2}, memory.data(), memory.data(), nullptr, memory.data(), source.get_token());
  } catch (const Cancelled&) {
    heard = true;
  }
  CHECK(heard);
}

inline std::vector<ParityCase> diagonal_parity_cases() {
  return {{"diagonal: the recurrence, stepped and scanned, and its adjoints", diagonal_parity},
          {"diagonal: entries that see themselves alone, through an activation", independent_parity},
          {"diagonal: adjoints beyond the range of the type", renormalised_parity}};
}

}  // namespace reclab::test
