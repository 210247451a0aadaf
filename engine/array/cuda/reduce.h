// SPDX-License-Identifier: GPL-3.0-or-later
// Sums over axes, norms and exponents. The reductions are our own, not CUB's: the terms of a sum are made on the way and never stored, over
// axes that lie apart, for many sums at once, in double for every type, and in an order that follows from the shape alone; and the same
// kernels run on the host, where they are tested.
#pragma once

#include "array/cuda/kernel_backend.h"

namespace reclab::kernel {

// ---- Kernels -----------------------------------------------------------------------------------------------------------------------

/// out[o] = scale * sum_r term(o, r) over r = c, c + chunks, ...; index = c * outputs + o. One chunk gives the whole sum; with more, a
/// second pass adds the chunks.
template <class Term, class Out>
struct Reduce {
  using Wide = wide_t<Out>;
  Term term;
  Index outputs, length, chunks;
  Out* out;
  double scale;
  bool accumulate;
  RECLAB_HD void operator()(Index index) const {
    const Index o = index % outputs;
    Wide sum(0.0);
    for (Index r = index / outputs; r < length; r += chunks) sum += convert<Wide>(term(o, r));
    const Out scaled_sum = convert<Out>(scale * sum);
    out[index] = accumulate ? out[index] + scaled_sum : scaled_sum;
  }
};
template <class T>
struct ChunkTerm {
  const T* partial;
  Index outputs;
  RECLAB_HD T operator()(Index o, Index r) const { return partial[r * outputs + o]; }
};
template <class T>
struct SumTerm {
  const T* x;
  Index n, inner;
  RECLAB_HD T operator()(Index o, Index r) const { return x[((o / inner) * n + r) * inner + o % inner]; }
};
template <class T>
struct SumAdjoint {
  const T* gy;
  T* gx;
  Index n, inner;
  real_t<T> scale;
  RECLAB_HD void operator()(Index i) const { gx[i] += scale * gy[i / (n * inner) * inner + i % inner]; }
};

/// Two numbers of each row, one thread a row: its mean and its inverse root mean square.
template <class T>
struct NormStatistics {
  const T* x;
  double* statistics;
  Index n;
  bool centred;
  double eps;
  RECLAB_HD void operator()(Index r) const {
    double mean = 0.0, squares = 0.0;
    for (Index j = 0; centred && j < n; ++j) mean += static_cast<double>(x[r * n + j]);
    mean /= static_cast<double>(n);
    for (Index j = 0; j < n; ++j) {
      const double from_mean = static_cast<double>(x[r * n + j]) - mean;
      squares += from_mean * from_mean;
    }
    statistics[2 * r] = mean;
    statistics[2 * r + 1] = 1.0 / std::sqrt(squares / static_cast<double>(n) + eps);
  }
};
template <class T>
struct NormRow {
  const T *x, *weight, *bias;
  const double* statistics;
  T* y;
  Index n;
  RECLAB_HD void operator()(Index at) const {
    const Index r = at / n, j = at % n;
    double value = (static_cast<double>(x[at]) - statistics[2 * r]) * statistics[2 * r + 1];
    if (weight) value *= static_cast<double>(weight[j]);
    if (bias) value += static_cast<double>(bias[j]);
    y[at] = static_cast<T>(value);
  }
};
/// One thread a row.
template <class T>
struct NormAdjoint {
  const T *x, *weight, *gy;
  const double* statistics;
  T* gx;
  Index n;
  bool centred, accumulate;
  RECLAB_HD void operator()(Index r) const {
    const double mean = statistics[2 * r], root = statistics[2 * r + 1];
    const T *row = x + r * n, *from = gy + r * n;
    double mean_g = 0.0, mean_gz = 0.0;
    for (Index j = 0; j < n; ++j) {
      const double g = static_cast<double>(from[j]) * (weight ? static_cast<double>(weight[j]) : 1.0);
      mean_g += g;
      mean_gz += g * (static_cast<double>(row[j]) - mean) * root;
    }
    mean_g = centred ? mean_g / static_cast<double>(n) : 0.0;
    mean_gz /= static_cast<double>(n);
    for (Index j = 0; j < n; ++j) {
      const double g = static_cast<double>(from[j]) * (weight ? static_cast<double>(weight[j]) : 1.0);
      const auto value = static_cast<T>(root * (g - mean_g - (static_cast<double>(row[j]) - mean) * root * mean_gz));
      gx[r * n + j] = accumulate ? gx[r * n + j] + value : value;
    }
  }
};
/// The terms of the gradient of the weight, or the bias, of one column.
template <class T>
struct NormWeightTerm {
  const T *x, *gy;
  const double* statistics;  // null: of the bias
  Index n;
  RECLAB_HD T operator()(Index j, Index r) const {
    const T g = gy[r * n + j];
    return statistics
               ? static_cast<T>(static_cast<double>(g) * (static_cast<double>(x[r * n + j]) - statistics[2 * r]) * statistics[2 * r + 1])
               : g;
  }
};

/// One thread a sum: index = o * inner + i.
template <class T>
struct CumulativeSum {
  const T* x;
  T* y;
  Index n, inner;
  bool reverse, accumulate;
  RECLAB_HD void operator()(Index index) const {
    const Index start = index / inner * n * inner + index % inner;
    T sum(0);
    for (Index l = 0; l < n; ++l) {
      const Index at = start + (reverse ? n - 1 - l : l) * inner;
      sum += x[at];
      y[at] = accumulate ? y[at] + sum : sum;
    }
  }
};

/// The magnitude of one stretch of an array: the power of two just above its largest entry, and the sum of squares in units of that power.
struct Magnitude {
  double squares;
  Index exponent;  // as wide as the other, so that it is downloaded without bytes that nothing wrote
};
/// One block for every stretch of `span` entries. An entry i stands for x[i] 2^exponents[i] where there are exponents.
template <class T>
struct Magnitudes {
  const T* x;
  const int* exponents;
  Index n, span;
  Magnitude* out;
  struct Shared {
    double squares[256];
    int exponent[256];
  };
  RECLAB_HD int power(Index i) const { return exponents ? exponents[i] : 0; }
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared& shared) const {
    const Index first = index * span, last = least(n, first + span);
    block.phase([&](int thread) {
      int largest = no_exponent;
      for (Index i = first + thread; i < last; i += 256) {
        const int own = exponent_of(x[i]);
        const int full = own == no_exponent || own == infinite_exponent ? own : own + power(i);
        largest = full > largest ? full : largest;
      }
      shared.exponent[thread] = largest;
    });
    for (int half = 128; half; half /= 2)
      block.phase([&](int thread) {
        if (thread < half && shared.exponent[thread + half] > shared.exponent[thread])
          shared.exponent[thread] = shared.exponent[thread + half];
      });
    const int common = shared.exponent[0], unit = common == no_exponent || common == infinite_exponent ? 0 : common;
    block.phase([&](int thread) {
      double sum = 0.0;
      for (Index i = first + thread; i < last; i += 256) {
        if constexpr (complex_v<T>) {
          const double re = scaled(static_cast<double>(x[i].re), power(i) - unit),
                       im = scaled(static_cast<double>(x[i].im), power(i) - unit);
          sum += re * re + im * im;
        } else {
          const double value = scaled(static_cast<double>(x[i]), power(i) - unit);
          sum += value * value;
        }
      }
      shared.squares[thread] = sum;
    });
    for (int half = 128; half; half /= 2)
      block.phase([&](int thread) {
        if (thread < half) shared.squares[thread] += shared.squares[thread + half];
      });
    block.phase([&](int thread) {
      if (thread == 0) out[index] = {shared.squares[0], common};
    });
  }
};

// ---- Launches ----------------------------------------------------------------------------------------------------------------------

/// Sums in two passes where one would keep few threads busy. The split depends on the shape alone.
template <class Machine>
template <class Term, class T>
void KernelBackend<Machine>::reduce(const Term& term, Index outputs, Index length, T* out, double scale, bool accumulate) {
  const Index chunks = std::min({length / 32, 65536 / std::max<Index>(outputs, 1), Index{512}});
  if (chunks < 2) {
    machine_.each(outputs, Reduce<Term, T>{term, outputs, length, 1, out, scale, accumulate});
    return;
  }
  using Wide = wide_t<T>;
  Scratch<Wide> partial(machine_, outputs * chunks);
  machine_.each(outputs * chunks, Reduce<Term, Wide>{term, outputs, length, chunks, partial.data, 1.0, false});
  machine_.each(outputs, Reduce<ChunkTerm<Wide>, T>{{partial.data, outputs}, outputs, chunks, 1, out, scale, accumulate});
}

template <class Machine>
template <class T>
std::vector<Magnitude> KernelBackend<Machine>::magnitudes_of(const T* x, const int* exponents, Index n, Index span) {
  std::vector<Magnitude> parts(static_cast<std::size_t>((n + span - 1) / span));
  if (parts.empty()) return parts;
  const auto count = static_cast<Index>(parts.size());
  Scratch<Magnitude> out(machine_, count);
  machine_.blocks(count, Magnitudes<T>{x, exponents, n, span, out.data});
  machine_.download(parts.data(), out.data, parts.size() * sizeof(Magnitude));
  return parts;
}
template <class Machine>
std::vector<Magnitude> KernelBackend<Machine>::magnitudes(DType type, Index n, const void* x) {
  std::vector<Magnitude> parts;
  with_type(type, [&](auto zero) { parts = magnitudes_of(as<decltype(zero)>(x), nullptr, n, 4096); });
  return parts;
}

template <class Machine>
double KernelBackend<Machine>::log2_norm(DType type, Index n, const void* x, int power) {
  const auto parts = magnitudes(type, n, x);
  int largest = no_exponent;
  for (const Magnitude& part : parts) largest = std::max(largest, static_cast<int>(part.exponent));
  const int unit = unit_of(largest);
  double squares = 0.0;
  for (const Magnitude& part : parts) squares += std::ldexp(part.squares, 2 * (unit_of(static_cast<int>(part.exponent)) - unit));
  return 0.5 * std::log2(squares) + unit + power;
}

template <class Machine>
int KernelBackend<Machine>::exponent(DType type, Index n, const void* x) {
  int largest = no_exponent;
  for (const Magnitude& part : magnitudes(type, n, x)) largest = std::max(largest, static_cast<int>(part.exponent));
  return largest;
}

template <class Machine>
void KernelBackend<Machine>::sum(DType type, Index outer, Index n, Index inner, double scale, const void* x, void* y) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    reduce(SumTerm<T>{as<T>(x), n, inner}, outer * inner, n, as<T>(y), scale, false);
  });
}

template <class Machine>
void KernelBackend<Machine>::sum_adjoint(DType type, Index outer, Index n, Index inner, double scale, const void* gy, void* gx) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    machine_.each(outer * n * inner, SumAdjoint<T>{as<T>(gy), as<T>(gx), n, inner, static_cast<real_t<T>>(scale)});
  });
}

template <class Machine>
void KernelBackend<Machine>::norm(DType type, Index rows, Index n, bool centred, double eps, const void* x, const void* weight,
                                  const void* bias, void* y) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    Scratch<double> statistics(machine_, 2 * rows);
    machine_.each(rows, NormStatistics<T>{as<T>(x), statistics.data, n, centred, eps});
    machine_.each(rows * n, NormRow<T>{as<T>(x), as<T>(weight), as<T>(bias), statistics.data, as<T>(y), n});
  });
}
template <class Machine>
void KernelBackend<Machine>::norm_adjoint(DType type, Index rows, Index n, bool centred, double eps, const void* x, const void* weight,
                                          const void* gy, void* gx, bool accumulate, void* gweight, void* gbias) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    Scratch<double> statistics(machine_, 2 * rows);
    machine_.each(rows, NormStatistics<T>{as<T>(x), statistics.data, n, centred, eps});
    if (gx) machine_.each(rows, NormAdjoint<T>{as<T>(x), as<T>(weight), as<T>(gy), statistics.data, as<T>(gx), n, centred, accumulate});
    if (gweight) reduce(NormWeightTerm<T>{as<T>(x), as<T>(gy), statistics.data, n}, n, rows, as<T>(gweight), 1.0, true);
    if (gbias) reduce(NormWeightTerm<T>{as<T>(x), as<T>(gy), nullptr, n}, n, rows, as<T>(gbias), 1.0, true);
  });
}

template <class Machine>
void KernelBackend<Machine>::cumulative_sum(DType type, Index outer, Index n, Index inner, bool reverse, const void* x, void* y,
                                            bool accumulate) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    machine_.each(outer * inner, CumulativeSum<T>{as<T>(x), as<T>(y), n, inner, reverse, accumulate});
  });
}

}  // namespace reclab::kernel
