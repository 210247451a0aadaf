// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <vector>

#include "array/reference/ranged.h"
#include "array/reference/reference_backend.h"

namespace reclab::reference {
namespace {

/// The logarithm of the decay of key i of head h at step t; 0 without decays.
template <class T>
double log_decay_of(const GatedDims& d, const T* log_decay, Index t, Index h, Index i) {
  return log_decay ? wide(log_decay[(t * d.heads + h) * d.decays + (d.decays == 1 ? 0 : i)]) : 0.0;
}

/// The memories of head h before each step and, last, after all of them: [steps + 1, key, value].
template <class T>
std::vector<double> memories_of(const GatedDims& d, const T* k, const T* v, const T* log_decay, const T* initial, Index h,
                                const std::stop_token& stop) {
  const Index size = d.key * d.value;
  std::vector<double> memories(static_cast<std::size_t>((d.steps + 1) * size));
  for (Index c = 0; initial && c < size; ++c) memories[static_cast<std::size_t>(c)] = wide(initial[h * size + c]);
  for (Index t = 0; t < d.steps; ++t) {
    poll(stop);
    const double* before = memories.data() + t * size;
    double* after = memories.data() + (t + 1) * size;
    for (Index i = 0; i < d.key; ++i) {
      const double decay = std::exp(log_decay_of(d, log_decay, t, h, i));
      for (Index j = 0; j < d.value; ++j)
        after[i * d.value + j] =
            decay * before[i * d.value + j] + wide(k[(t * d.heads + h) * d.key + i]) * wide(v[(t * d.heads + h) * d.value + j]);
    }
  }
  return memories;
}

}  // namespace

void ReferenceBackend::gated(DType type, const GatedDims& d, const void* q, const void* k, const void* v, const void* log_decay,
                             const void* initial, void* o, void* final_state, std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const Index size = d.key * d.value;
    for (Index h = 0; h < d.heads; ++h) {
      const std::vector<double> memories = memories_of(d, as<T>(k), as<T>(v), as<T>(log_decay), as<T>(initial), h, stop);
      for (Index t = 0; t < d.steps; ++t)
        for (Index j = 0; j < d.value; ++j) {
          double read = 0.0;
          for (Index i = 0; i < d.key; ++i)
            read += memories[static_cast<std::size_t>((d.read == ReadOrder::before ? t : t + 1) * size + i * d.value + j)] *
                    wide(as<T>(q)[(t * d.heads + h) * d.key + i]);
          as<T>(o)[(t * d.heads + h) * d.value + j] = narrow<T>(read);
        }
      for (Index c = 0; final_state && c < size; ++c)
        as<T>(final_state)[h * size + c] = narrow<T>(memories[static_cast<std::size_t>(d.steps * size + c)]);
    }
  });
}

void ReferenceBackend::gated_adjoint(DType type, const GatedDims& d, const void* q_, const void* k_, const void* v_, const void* log_decay,
                                     const void* initial, const void* go_, const void* gfinal, void* gq, void* gk, void* gv,
                                     void* glog_decay, void* ginitial, int* exponent, std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const Index size = d.key * d.value;
    std::vector<Ranged<double>> lambda(static_cast<std::size_t>(d.heads * size));
    for (std::size_t c = 0; gfinal && c < lambda.size(); ++c) lambda[c] = Ranged<double>(wide(as<T>(gfinal)[c]), exponent ? *exponent : 0);
    std::vector<double> gdecay(glog_decay ? static_cast<std::size_t>(d.steps * d.heads * d.decays) : 0);
    for (Index h = 0; h < d.heads; ++h) {
      const std::vector<double> memories = memories_of(d, as<T>(k_), as<T>(v_), as<T>(log_decay), as<T>(initial), h, stop);
      for (Index t = d.steps - 1; t >= 0; --t) {
        poll(stop);
        const Index row = t * d.heads + h;
        const T *q = as<T>(q_) + row * d.key, *k = as<T>(k_) + row * d.key, *v = as<T>(v_) + row * d.value,
                *go = as<T>(go_) + row * d.value;
        std::vector<double> of_v(static_cast<std::size_t>(d.value));
        for (Index i = 0; i < d.key; ++i) {
          const Ranged<double> decay = exp_of(log_decay_of(d, as<T>(log_decay), t, h, i));
          double of_q = 0.0, of_k = 0.0, of_decay = 0.0;
          for (Index j = 0; j < d.value; ++j) {
            const double before = memories[static_cast<std::size_t>(t * size + i * d.value + j)],
                         after = memories[static_cast<std::size_t>((t + 1) * size + i * d.value + j)];
            Ranged<double>& own = lambda[static_cast<std::size_t>(h * size + i * d.value + j)];
            const Ranged<double> read(wide(q[i]) * wide(go[j]));
            if (d.read == ReadOrder::after) own = own + read;
            const double plain = own.plain();
            of_q += (d.read == ReadOrder::before ? before : after) * wide(go[j]);
            of_k += plain * wide(v[j]);
            of_v[static_cast<std::size_t>(j)] += plain * wide(k[i]);
            own = own * decay;
            of_decay += (own * before).plain();
            if (d.read == ReadOrder::before) own = own + read;
          }
          if (gq) add(as<T>(gq)[row * d.key + i], of_q);
          if (gk) add(as<T>(gk)[row * d.key + i], of_k);
          if (glog_decay) gdecay[static_cast<std::size_t>(row * d.decays + (d.decays == 1 ? 0 : i))] += of_decay;
        }
        for (Index j = 0; gv && j < d.value; ++j) add(as<T>(gv)[row * d.value + j], of_v[static_cast<std::size_t>(j)]);
      }
    }
    for (std::size_t c = 0; c < gdecay.size(); ++c) add(as<T>(glog_decay)[c], gdecay[c]);
    const int unit = exponent ? unit_of(lambda) : 0;
    for (std::size_t c = 0; ginitial && c < lambda.size(); ++c) add(as<T>(ginitial)[c], lambda[c].in_units(unit));
    if (exponent) *exponent = unit;
  });
}

}  // namespace reclab::reference
