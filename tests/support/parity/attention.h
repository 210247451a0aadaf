// SPDX-License-Identifier: GPL-3.0-or-later
// Attention scores.
#pragma once

#include "parity/parity.h"

namespace reclab::test {

/// Windows that begin before, at and behind the first column, and rows that see nothing.
inline void softmax_parity(Backend& other) {
  struct Size {
    std::int64_t batch, rows, columns, first;
  };
  for (const DType type : real_types)
    for (const Size s : {Size{1, 1, 1, 0}, Size{3, 7, 7, 0}, Size{2, 31, 64, 33}, Size{1, 33, 1057, 1024}, Size{5, 3, 40, 20}})
      for (const double size : {1.0, 8.0, 80.0})
        for (const bool windowed : {false, true}) {
          Parity parity(other, 18);
          std::vector<double> low;
          for (std::int64_t i = 0; i < s.rows; ++i)
            low.push_back(static_cast<double>(i % 3 == 0 ? s.first + i : i % 3 == 1 ? s.first + i - 5 : i % 2 ? -4 : s.first + i + 1));
          const std::size_t scores = parity.array(type, s.batch * s.rows * s.columns, -size, size),
                            g = parity.array(type, s.batch * s.rows * s.columns), from = parity.array(type, low);
          parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
            b.softmax(type, s.batch, s.rows, s.columns, s.first, windowed ? p[from] : nullptr, p[scores]);
            if (size < 80.0)
              b.softmax_adjoint(type, s.batch * s.rows, s.columns, p[scores], p[g]);  // beyond, it is a difference that vanishes
            return 0;
          });
        }
}

inline void distance_parity(Backend& other) {
  struct Size {
    std::int64_t batch, rows, columns, distances, first;
  };
  for (const DType type : real_types)
    for (const Size s :
         {Size{1, 1, 1, 1, 0}, Size{3, 7, 7, 7, 0}, Size{2, 31, 64, 5, 33}, Size{1, 33, 65, 65, 32}, Size{2, 3, 10, 40, 7}}) {
      Parity parity(other, 19);
      const std::size_t far = parity.array(type, s.batch * s.rows * s.distances), scores = parity.array(type, s.batch * s.rows * s.columns),
                        gfar = parity.array(type, s.batch * s.rows * s.distances);
      parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
        b.by_distance(type, s.batch, s.rows, s.columns, s.distances, s.first, p[far], p[scores]);
        b.by_distance_adjoint(type, s.batch, s.rows, s.columns, s.distances, s.first, p[scores], p[gfar]);
        return 0;
      });
    }
}

inline void columns_parity(Backend& other) {
  const std::int64_t batch = 3, rows = 7, columns = 33;
  for (const DType type : real_types)
    for (const bool from : {false, true}) {
      Parity parity(other, 20);
      const std::size_t bound = parity.array(type, std::vector<double>{0, 1, 16, 32, 33, 40, -3}),
                        scores = parity.array(type, batch * rows * columns);
      parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
        b.keep_columns(type, batch, rows, columns, p[bound], from, p[scores]);
        return 0;
      });
    }
}

/// Exponents of a million and more of which only differences count.
inline void weigh_parity(Backend& other) {
  for (const DType type : real_types)
    for (const double decay : {0.01, 3.0, 1e4}) {
      const std::int64_t batch = 2, steps = 70, first = 20, rows = 30, columns = first + rows;
      Parity parity(other, 21);
      std::vector<double> row, column, row_low, column_low;
      Rng rng(22);
      for (std::int64_t b = 0; b < batch; ++b) {
        double sum = -1e6;
        for (std::int64_t t = 0; t < steps; ++t) {
          const double next = sum - std::floor(decay * rng.uniform(0.0, 2.0) * 64.0) / 64.0, low = rng.uniform(-0.01, 0.01);
          row.push_back(sum = type == DType::f32 ? static_cast<double>(static_cast<float>(next)) : next);
          column.push_back(-sum);
          row_low.push_back(low);
          column_low.push_back(-low);
        }
      }
      const std::size_t r = parity.array(type, row), c = parity.array(type, column), rl = parity.array(type, row_low),
                        cl = parity.array(type, column_low), scores = parity.array(type, batch * rows * columns),
                        g = parity.array(type, batch * rows * columns), gr = parity.array(type, batch * steps),
                        gc = parity.array(type, batch * steps);
      parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
        b.weigh(type, batch, steps, first, rows, columns, p[r], p[c], p[rl], p[cl], p[scores]);
        b.weigh_adjoint(type, batch, steps, first, rows, columns, p[r], p[c], p[rl], p[cl], p[scores], p[g], p[gr], p[gc]);
        return 0;
      });
    }
}

inline std::vector<ParityCase> attention_parity_cases() {
  return {{"attention: softmax within windows, and its adjoint", softmax_parity},
          {"attention: scores by distance, and their adjoint", distance_parity},
          {"attention: columns before and from a bound", columns_parity},
          {"attention: scores weighted by decays and their adjoints", weigh_parity}};
}

}  // namespace reclab::test
