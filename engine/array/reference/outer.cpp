// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <limits>
#include <vector>

#include "array/reference/reference_backend.h"

namespace reclab::reference {

void ReferenceBackend::outer(DType type, const OuterDims& d, bool, const void* q, const void* k, const void* v, const void* initial,
                             void* o, void* states, void* final_state, std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const Index size = d.key * d.value;
    for (Index h = 0; h < d.heads; ++h) {
      std::vector<double> memory(static_cast<std::size_t>(size));
      for (Index i = 0; initial && i < size; ++i) memory[static_cast<std::size_t>(i)] = wide(as<T>(initial)[h * size + i]);
      for (Index t = 0; t < d.steps; ++t) {
        poll(stop);
        const Index row = t * d.heads + h;
        for (Index j = 0; j < d.value; ++j) {
          double read = 0.0;
          for (Index i = 0; i < d.key; ++i) {
            double& cell = memory[static_cast<std::size_t>(i * d.value + j)];
            const double before = cell;
            cell += wide(as<T>(k)[row * d.key + i]) * wide(as<T>(v)[row * d.value + j]);
            read += (d.read == ReadOrder::before ? before : cell) * wide(as<T>(q)[row * d.key + i]);
            if (states) as<T>(states)[row * size + i * d.value + j] = narrow<T>(cell);
          }
          as<T>(o)[row * d.value + j] = narrow<T>(read);
        }
      }
      for (Index i = 0; final_state && i < size; ++i) as<T>(final_state)[h * size + i] = narrow<T>(memory[static_cast<std::size_t>(i)]);
    }
  });
}

void ReferenceBackend::outer_adjoint(DType type, const OuterDims& d, bool attention, const void* q, const void* k, const void* v,
                                     const void* initial, const void* go, const void* carried, void* gq, void* gk, void* gv, void* ginitial,
                                     double* log2_norm, std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const Index size = d.key * d.value;
    const auto at = [&](Index i, Index j) { return static_cast<std::size_t>(i * d.value + j); };
    std::vector<double> squares(static_cast<std::size_t>(d.steps));
    for (Index h = 0; h < d.heads; ++h) {
      // The memory once more, for the queries.
      std::vector<double> memory(static_cast<std::size_t>(size)), lambda(static_cast<std::size_t>(size));
      for (Index i = 0; initial && i < size; ++i) memory[static_cast<std::size_t>(i)] = wide(as<T>(initial)[h * size + i]);
      for (Index t = 0; t < d.steps; ++t) {
        poll(stop);
        const Index row = t * d.heads + h;
        for (Index i = 0; i < d.key; ++i) {
          double sum = 0.0;
          for (Index j = 0; j < d.value; ++j) {
            const double before = memory[at(i, j)];
            memory[at(i, j)] += wide(as<T>(k)[row * d.key + i]) * wide(as<T>(v)[row * d.value + j]);
            sum += (d.read == ReadOrder::before ? before : memory[at(i, j)]) * wide(as<T>(go)[row * d.value + j]);
          }
          add(as<T>(gq)[row * d.key + i], sum);
        }
      }
      // Its adjoint, for the keys and the values.
      for (Index i = 0; carried && i < size; ++i) lambda[static_cast<std::size_t>(i)] = wide(as<T>(carried)[h * size + i]);
      for (Index t = d.steps - 1; t >= 0; --t) {
        const Index row = t * d.heads + h;
        const auto read = [&] {
          for (Index i = 0; i < d.key; ++i)
            for (Index j = 0; j < d.value; ++j) lambda[at(i, j)] += wide(as<T>(q)[row * d.key + i]) * wide(as<T>(go)[row * d.value + j]);
        };
        if (d.read == ReadOrder::after) read();
        for (const double x : lambda) squares[static_cast<std::size_t>(t)] += x * x;
        for (Index i = 0; i < d.key; ++i) {
          double sum = 0.0;
          for (Index j = 0; j < d.value; ++j) sum += lambda[at(i, j)] * wide(as<T>(v)[row * d.value + j]);
          add(as<T>(gk)[row * d.key + i], sum);
        }
        for (Index j = 0; j < d.value; ++j) {
          double sum = 0.0;
          for (Index i = 0; i < d.key; ++i) sum += lambda[at(i, j)] * wide(as<T>(k)[row * d.key + i]);
          add(as<T>(gv)[row * d.value + j], sum);
        }
        if (d.read == ReadOrder::before) read();
      }
      for (Index i = 0; ginitial && i < size; ++i) add(as<T>(ginitial)[h * size + i], lambda[static_cast<std::size_t>(i)]);
    }
    // As attention there is no memory at a step, hence no adjoint of it.
    for (Index t = 0; log2_norm && t < d.steps; ++t)
      log2_norm[t] = attention ? -std::numeric_limits<double>::infinity() : 0.5 * std::log2(squares[static_cast<std::size_t>(t)]);
  });
}

}  // namespace reclab::reference
