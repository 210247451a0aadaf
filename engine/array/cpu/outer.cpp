// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/cpu/cpu_backend.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "array/cpu/processor/scratch.h"

namespace reclab::cpu {
namespace {

template <class T>
void add_outer(const OuterDims& d, const T* k, const T* v, double* memory) {
  for (std::int64_t i = 0; i < d.key; ++i) {
    const double key = k[i];
    for (std::int64_t j = 0; j < d.value; ++j) memory[i * d.value + j] += key * v[j];
  }
}
template <class T>
void narrow(const cpu::Scratch<double>& from, T* to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<T>(from[i]);
}

}  // namespace

std::size_t CpuBackend::outer_scratch(DType, const OuterDims& d, bool attention, bool adjoint) const {
  const std::int64_t sums = attention && adjoint ? d.steps * (d.key + d.value) + d.key : 0;
  return static_cast<std::size_t>(d.key * d.value + d.value + (adjoint ? d.steps : 0) + sums) * sizeof(double);
}

void CpuBackend::outer(DType type, const OuterDims& d, bool attention, const void* q_, const void* k_, const void* v_, const void* initial_,
                       void* o_, void* states_, void* final_, std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t size = d.key * d.value;
    const std::int64_t own = d.read == ReadOrder::after ? 1 : 0;  // steps that a read sees beside those before it
    // Sums over all of time are kept in double: in float, a long memory would lose the differences between its reads.
    cpu::Scratch<double> memory(static_cast<std::size_t>(size)), read(static_cast<std::size_t>(d.value));
    for (std::int64_t h = 0; h < d.heads; ++h) {
      const auto key_at = [&](const void* p, std::int64_t t) { return as<T>(p) + (t * d.heads + h) * d.key; };
      const auto value_at = [&](const void* p, std::int64_t t) { return as<T>(p) + (t * d.heads + h) * d.value; };
      if (initial_)
        std::copy(as<T>(initial_) + h * size, as<T>(initial_) + (h + 1) * size, memory.begin());
      else
        std::fill(memory.begin(), memory.end(), T(0));
      for (std::int64_t t = 0; t < d.steps; ++t) {
        poll(stop);
        const T* q = key_at(q_, t);
        std::fill(read.begin(), read.end(), 0.0);
        double* o = read.data();
        if (attention) {
          if (initial_)
            for (std::int64_t i = 0; i < d.key; ++i)
              for (std::int64_t j = 0; j < d.value; ++j) o[j] += double(q[i]) * as<T>(initial_)[h * size + i * d.value + j];
          for (std::int64_t u = 0; u < t + own; ++u) {
            const T* k = key_at(k_, u);
            double score = 0;
            for (std::int64_t i = 0; i < d.key; ++i) score += double(q[i]) * k[i];
            const T* v = value_at(v_, u);
            for (std::int64_t j = 0; j < d.value; ++j) o[j] += score * v[j];
          }
        } else {
          const T* k = key_at(k_, t);
          const T* v = value_at(v_, t);
          for (std::int64_t i = 0; i < d.key; ++i) {
            double* row = memory.data() + i * d.value;
            const double key = k[i], query = q[i];
            for (std::int64_t j = 0; !own && j < d.value; ++j) o[j] += query * row[j];
            for (std::int64_t j = 0; j < d.value; ++j) row[j] += key * v[j];
            for (std::int64_t j = 0; own && j < d.value; ++j) o[j] += query * row[j];
          }
          if (states_) narrow(memory, as<T>(states_) + (t * d.heads + h) * size);
        }
        narrow(read, as<T>(o_) + (t * d.heads + h) * d.value);
      }
      if (attention)
        for (std::int64_t t = 0; t < d.steps; ++t) add_outer(d, key_at(k_, t), value_at(v_, t), memory.data());
      if (final_) narrow(memory, as<T>(final_) + h * size);
    }
  });
}

void CpuBackend::outer_adjoint(DType type, const OuterDims& d, bool attention, const void* q_, const void* k_, const void* v_,
                               const void* initial_, const void* go_, const void* carried_, void* gq_, void* gk_, void* gv_,
                               void* ginitial_, double* log2_norm, std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t size = d.key * d.value, own = d.read == ReadOrder::after ? 1 : 0;
    cpu::Scratch<double> memory(static_cast<std::size_t>(size));
    cpu::Scratch<double> gv(static_cast<std::size_t>(d.value));
    cpu::Scratch<double> squares(log2_norm ? static_cast<std::size_t>(d.steps) : 0, 0.0);
    for (std::int64_t h = 0; h < d.heads; ++h) {
      const auto key_at = [&](auto* p, std::int64_t t) { return as<T>(p) + (t * d.heads + h) * d.key; };
      const auto value_at = [&](auto* p, std::int64_t t) { return as<T>(p) + (t * d.heads + h) * d.value; };
      if (attention) {
        // Keys' and values' adjoints are sums over later steps: kept in double until they are whole.
        cpu::Scratch<double> gk(static_cast<std::size_t>(d.steps * d.key)), gvs(static_cast<std::size_t>(d.steps * d.value)),
            gq(static_cast<std::size_t>(d.key));
        for (std::int64_t t = 0; t < d.steps; ++t) {
          poll(stop);
          const T* q = key_at(q_, t);
          const T* go = value_at(go_, t);
          std::fill(gq.begin(), gq.end(), 0.0);
          for (std::int64_t u = 0; u < t + own; ++u) {
            const T* k = key_at(k_, u);
            const T* v = value_at(v_, u);
            double score = 0, gscore = 0;
            for (std::int64_t i = 0; i < d.key; ++i) score += double(q[i]) * k[i];
            for (std::int64_t j = 0; j < d.value; ++j) gscore += double(go[j]) * v[j];
            double* gk_u = gk.data() + u * d.key;
            double* gv_u = gvs.data() + u * d.value;
            for (std::int64_t i = 0; i < d.key; ++i) {
              gq[static_cast<std::size_t>(i)] += gscore * k[i];
              gk_u[i] += gscore * q[i];
            }
            for (std::int64_t j = 0; j < d.value; ++j) gv_u[j] += score * go[j];
          }
          for (std::int64_t i = 0; i < d.key; ++i) key_at(gq_, t)[i] += static_cast<T>(gq[static_cast<std::size_t>(i)]);
        }
        for (std::int64_t t = 0; t < d.steps; ++t) {
          for (std::int64_t i = 0; i < d.key; ++i) key_at(gk_, t)[i] += static_cast<T>(gk[static_cast<std::size_t>(t * d.key + i)]);
          for (std::int64_t j = 0; j < d.value; ++j) value_at(gv_, t)[j] += static_cast<T>(gvs[static_cast<std::size_t>(t * d.value + j)]);
        }
        // The gradients through the initial and the final memory.
        if (initial_)
          for (std::int64_t t = 0; t < d.steps; ++t)
            for (std::int64_t i = 0; i < d.key; ++i)
              for (std::int64_t j = 0; j < d.value; ++j)
                key_at(gq_, t)[i] += value_at(go_, t)[j] * as<T>(initial_)[h * size + i * d.value + j];
        std::fill(memory.begin(), memory.end(), T(0));
        if (carried_) std::copy(as<T>(carried_) + h * size, as<T>(carried_) + (h + 1) * size, memory.begin());
        for (std::int64_t t = 0; t < d.steps && carried_; ++t)
          for (std::int64_t i = 0; i < d.key; ++i)
            for (std::int64_t j = 0; j < d.value; ++j) {
              key_at(gk_, t)[i] += static_cast<T>(memory[static_cast<std::size_t>(i * d.value + j)] * value_at(v_, t)[j]);
              value_at(gv_, t)[j] += static_cast<T>(memory[static_cast<std::size_t>(i * d.value + j)] * key_at(k_, t)[i]);
            }
        if (ginitial_) {
          for (std::int64_t t = 0; t < d.steps; ++t) add_outer(d, key_at(q_, t), value_at(go_, t), memory.data());
          for (std::int64_t i = 0; i < size; ++i) as<T>(ginitial_)[h * size + i] += static_cast<T>(memory[static_cast<std::size_t>(i)]);
        }
        continue;
      }
      // Sequential: the queries' adjoint on the way there, with the memory rebuilt; keys and values on the way back, with its adjoint.
      if (initial_)
        std::copy(as<T>(initial_) + h * size, as<T>(initial_) + (h + 1) * size, memory.begin());
      else
        std::fill(memory.begin(), memory.end(), T(0));
      for (std::int64_t t = 0; t < d.steps; ++t) {
        poll(stop);
        if (own) add_outer(d, key_at(k_, t), value_at(v_, t), memory.data());
        const T* go = value_at(go_, t);
        for (std::int64_t i = 0; i < d.key; ++i) {
          double sum = 0;
          for (std::int64_t j = 0; j < d.value; ++j) sum += memory[static_cast<std::size_t>(i * d.value + j)] * go[j];
          key_at(gq_, t)[i] += static_cast<T>(sum);
        }
        if (!own) add_outer(d, key_at(k_, t), value_at(v_, t), memory.data());
      }
      std::fill(memory.begin(), memory.end(), T(0));
      if (carried_) std::copy(as<T>(carried_) + h * size, as<T>(carried_) + (h + 1) * size, memory.begin());
      for (std::int64_t t = d.steps - 1; t >= 0; --t) {
        poll(stop);
        if (own) add_outer(d, key_at(q_, t), value_at(go_, t), memory.data());
        const T* k = key_at(k_, t);
        const T* v = value_at(v_, t);
        std::fill(gv.begin(), gv.end(), 0.0);
        for (std::int64_t i = 0; i < d.key; ++i) {
          const double* row = memory.data() + i * d.value;
          const double key = k[i];
          double sum = 0;
          for (std::int64_t j = 0; j < d.value; ++j) sum += row[j] * v[j];
          key_at(gk_, t)[i] += static_cast<T>(sum);
          for (std::int64_t j = 0; j < d.value; ++j) gv[static_cast<std::size_t>(j)] += row[j] * key;
        }
        for (std::int64_t j = 0; j < d.value; ++j) value_at(gv_, t)[j] += static_cast<T>(gv[static_cast<std::size_t>(j)]);
        if (log2_norm)
          for (const double x : memory) squares[static_cast<std::size_t>(t)] += x * x;
        if (!own) add_outer(d, key_at(q_, t), value_at(go_, t), memory.data());
      }
      if (ginitial_)
        for (std::int64_t i = 0; i < size; ++i) as<T>(ginitial_)[h * size + i] += static_cast<T>(memory[static_cast<std::size_t>(i)]);
    }
    for (std::size_t t = 0; t < squares.size(); ++t) log2_norm[t] = 0.5 * std::log2(squares[t]);
  });
}

}  // namespace reclab::cpu
