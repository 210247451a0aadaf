// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <vector>

#include "array/reference/reference_backend.h"

namespace reclab::reference {

void ReferenceBackend::loss(DType type, LossTerm term, const LossDims& dims, const void* y_, const void* target_, const void* weight_,
                            void* value, void* gy_) {
  const Index width = dims.width;
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    std::fill(as<double>(value), as<double>(value) + dims.batch, 0.0);
    std::fill(as<T>(gy_), as<T>(gy_) + dims.steps * dims.batch * width, T(0));
    for (Index row = 0; row < dims.steps * dims.batch; ++row) {
      const double weight = as<double>(weight_)[row];
      if (weight == 0.0) continue;
      std::vector<double> y(as<T>(y_) + row * width, as<T>(y_) + (row + 1) * width), target(y.size(), 0.0), slope(y.size());
      const bool classes = term == LossTerm::cross_entropy;
      if (classes)
        target[static_cast<std::size_t>(as<double>(target_)[row])] = 1.0;
      else if (target_)
        std::copy_n(as<double>(target_) + row * width, width, target.begin());
      double all = 0.0, of_row = 0.0;
      const double largest = *std::max_element(y.begin(), y.end());
      for (const double each : y) all += std::exp(each - largest);
      for (std::size_t j = 0; j < y.size(); ++j) {
        const double share = std::exp(y[j] - largest) / all, error = y[j] - target[j];
        of_row += classes                     ? -target[j] * (y[j] - largest - std::log(all))
                  : term == LossTerm::product ? target[j] * y[j]
                                              : error * error / 2.0;
        slope[j] = classes ? share - target[j] : term == LossTerm::product ? target[j] : error;
      }
      as<double>(value)[row % dims.batch] += weight * of_row;
      for (std::size_t j = 0; j < y.size(); ++j) as<T>(gy_)[row * width + static_cast<Index>(j)] = narrow<T>(weight * slope[j]);
    }
  });
}

}  // namespace reclab::reference
