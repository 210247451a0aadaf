// SPDX-License-Identifier: GPL-3.0-or-later
// Losses of rows of outputs, with their derivatives.
#pragma once

#include "array/cuda/kernel_backend.h"
#include "array/cuda/reduce.h"

namespace reclab::kernel {

// ---- Kernels -----------------------------------------------------------------------------------------------------------------------

/// One thread a row.
template <class T>
struct LossRow {
  LossTerm term;
  Index width;
  const T* y;
  const double *target, *weight;
  double* value;  // of each row
  T* gy;
  RECLAB_HD void operator()(Index row) const {
    const double own = weight[row];
    const T* from = y + row * width;
    T* to = gy + row * width;
    double sum = 0.0;
    if (own == 0.0) {
      for (Index j = 0; j < width; ++j) to[j] = T(0);
    } else if (term == LossTerm::cross_entropy) {
      const auto number = static_cast<Index>(target[row]);
      double largest = static_cast<double>(from[0]), total = 0.0;
      for (Index j = 1; j < width; ++j) largest = static_cast<double>(from[j]) > largest ? static_cast<double>(from[j]) : largest;
      for (Index j = 0; j < width; ++j) total += std::exp(static_cast<double>(from[j]) - largest);
      sum = largest + std::log(total) - static_cast<double>(from[number]);
      for (Index j = 0; j < width; ++j)
        to[j] = static_cast<T>(own * (std::exp(static_cast<double>(from[j]) - largest) / total - (j == number ? 1.0 : 0.0)));
    } else {
      for (Index j = 0; j < width; ++j) {
        const double entry = static_cast<double>(from[j]), wanted = target ? target[row * width + j] : 0.0, error = entry - wanted;
        const bool product = term == LossTerm::product;
        sum += product ? wanted * entry : 0.5 * error * error;
        to[j] = static_cast<T>(own * (product ? wanted : error));
      }
    }
    value[row] = own * sum;
  }
};

// ---- Launches ----------------------------------------------------------------------------------------------------------------------

template <class Machine>
void KernelBackend<Machine>::loss(DType type, LossTerm term, const LossDims& dims, const void* y, const void* target, const void* weight,
                                  void* value, void* gy) {
  const Scratch<double> rows(machine_, dims.steps * dims.batch);
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    machine_.each(dims.steps * dims.batch,
                  LossRow<T>{term, dims.width, as<T>(y), as<double>(target), as<double>(weight), rows.data, as<T>(gy)});
  });
  sum(DType::f64, 1, dims.steps, dims.batch, 1.0, rows.data, value);
}

}  // namespace reclab::kernel
