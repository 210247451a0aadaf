// SPDX-License-Identifier: GPL-3.0-or-later
// Losses of rows of outputs, with their derivatives.
#pragma once

#include <algorithm>

#include "parity/parity.h"

namespace reclab::test {

/// A third of the rows have the weight 0 and large outputs, which nobody is to read.
inline void loss_parity(Backend& other) {
  for (const DType type : real_types)
    for (const LossDims& dims : {LossDims{1, 1, 1}, LossDims{7, 3, 5}, LossDims{1030, 1, 2}, LossDims{40, 33, 17}})
      for (const LossTerm term : {LossTerm::squared_error, LossTerm::cross_entropy, LossTerm::product})
        for (const bool has_target : {true, false}) {
          if (!has_target && term != LossTerm::squared_error) continue;
          Parity parity(other, 31);
          const std::int64_t rows = dims.steps * dims.batch, n = rows * dims.width;
          Rng rng(7);
          std::vector<double> outputs(static_cast<std::size_t>(n)), weights(static_cast<std::size_t>(rows)),
              targets(static_cast<std::size_t>(term == LossTerm::cross_entropy ? rows : n));
          for (double& x : outputs) x = rng.uniform(-3.0, 3.0);
          for (double& x : targets)
            x = term == LossTerm::cross_entropy ? std::floor(rng.uniform(0.0, static_cast<double>(dims.width))) : rng.uniform(-1.0, 1.0);
          for (std::int64_t row = 0; row < rows; ++row) {
            weights[static_cast<std::size_t>(row)] = row % 3 == 1 ? 0.0 : rng.uniform(0.1, 1.0);
            if (row % 3 == 1) std::fill_n(outputs.begin() + row * dims.width, dims.width, 1e30);
          }
          const std::size_t target = parity.array(DType::f64, targets), weight = parity.array(DType::f64, weights),
                            value = parity.array(DType::f64, dims.batch), gy = parity.array(type, n);
          const std::size_t y = parity.array(type, outputs);
          parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
            b.loss(type, term, dims, p[y], has_target ? p[target] : nullptr, p[weight], p[value], p[gy]);
            return 0;
          });
        }
}

inline std::vector<ParityCase> loss_parity_cases() { return {{"loss: sums over steps and their derivatives", loss_parity}}; }

}  // namespace reclab::test
