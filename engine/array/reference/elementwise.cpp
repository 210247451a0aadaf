// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "array/demand.h"
#include "array/reference/ranged.h"
#include "array/reference/reference_backend.h"

namespace reclab::reference {
namespace {

/// (e^x - 1)/x = 1/1! + x/2! + x^2/3! + ..., or its derivative.
template <class W>
W mean_exp_series(W x, bool derivative) {
  W sum{}, power(1.0);
  double factorial = 1.0;
  for (int k = derivative ? 1 : 0; k < 30; ++k) {
    factorial = 1.0;
    for (int i = 2; i <= k + 1; ++i) factorial *= i;
    sum += (derivative ? static_cast<double>(k) : 1.0) * power / factorial;
    power *= x;
  }
  return sum;
}
template <class W>
W mean_exp(W x) {
  return std::abs(x) < 1.0 ? mean_exp_series(x, false) : (std::exp(x) - 1.0) / x;
}
template <class W>
W mean_exp_slope(W x) {
  return std::abs(x) < 1.0 ? mean_exp_series(x, true) : (std::exp(x) - mean_exp(x)) / x;
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double normal_density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::acos(-1.0)); }
/// The argument of the tanh in gelu_tanh, and its derivative.
double cubic(double x) { return std::sqrt(2.0 / std::acos(-1.0)) * (x + 0.044715 * x * x * x); }
double cubic_slope(double x) { return std::sqrt(2.0 / std::acos(-1.0)) * (1.0 + 3.0 * 0.044715 * x * x); }

double value(Unary op, double x, double p, double q) {
  switch (op) {
    case Unary::affine: return p * x + q;
    case Unary::exp: return std::exp(x);
    case Unary::log: return std::log(x);
    case Unary::sqrt: return std::sqrt(x);
    case Unary::square: return x * x;
    case Unary::reciprocal: return 1.0 / x;
    case Unary::sigmoid: return sigmoid(x);
    case Unary::tanh: return std::tanh(x);
    case Unary::relu: return std::max(x, 0.0);
    case Unary::softplus: return softplus(x);
    case Unary::silu: return x * sigmoid(x);
    case Unary::gelu: return x * normal_distribution(x);
    case Unary::gelu_tanh: return 0.5 * x * (1.0 + std::tanh(cubic(x)));
    case Unary::normal_cdf: return normal_distribution(x);
    case Unary::elu: return x > 0.0 ? x : std::expm1(x);
    case Unary::abs: return std::abs(x);
    case Unary::sign: return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : 0.0;
    case Unary::sin: return std::sin(x);
    case Unary::cos: return std::cos(x);
    case Unary::log_sigmoid: return -softplus(-x);
    case Unary::floor: return std::floor(x);
    case Unary::mean_exp: return mean_exp(x);
  }
  return 0.0;
}
double slope(Unary op, double x, double p) {
  switch (op) {
    case Unary::affine: return p;
    case Unary::exp: return std::exp(x);
    case Unary::log: return 1.0 / x;
    case Unary::sqrt: return 0.5 / std::sqrt(x);
    case Unary::square: return 2.0 * x;
    case Unary::reciprocal: return -1.0 / (x * x);
    case Unary::sigmoid: return sigmoid(x) * sigmoid(-x);
    case Unary::tanh: return 4.0 * sigmoid(2.0 * x) * sigmoid(-2.0 * x);
    case Unary::relu: return x > 0.0 ? 1.0 : 0.0;
    case Unary::softplus: return sigmoid(x);
    case Unary::silu: return sigmoid(x) + x * sigmoid(x) * sigmoid(-x);
    case Unary::gelu: return normal_distribution(x) + x * normal_density(x);
    case Unary::gelu_tanh:
      return 0.5 * (1.0 + std::tanh(cubic(x))) + 0.5 * x * 4.0 * sigmoid(2.0 * cubic(x)) * sigmoid(-2.0 * cubic(x)) * cubic_slope(x);
    case Unary::normal_cdf: return normal_density(x);
    case Unary::elu: return x > 0.0 ? 1.0 : std::exp(x);
    case Unary::abs: return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : 0.0;
    case Unary::sign: return 0.0;
    case Unary::sin: return std::cos(x);
    case Unary::cos: return -std::sin(x);
    case Unary::log_sigmoid: return sigmoid(-x);
    case Unary::floor: return 0.0;
    case Unary::mean_exp: return mean_exp_slope(x);
  }
  return 0.0;
}
/// The operations that complex arrays have.
std::complex<double> value(Unary op, std::complex<double> x, double p, double q) {
  switch (op) {
    case Unary::affine: return p * x + q;
    case Unary::exp: return std::exp(x);
    case Unary::square: return x * x;
    case Unary::reciprocal: return 1.0 / x;
    case Unary::mean_exp: return mean_exp(x);
    default: RECLAB_DEMAND(!"not an operation of complex arrays"); return {};
  }
}
std::complex<double> slope(Unary op, std::complex<double> x, double p) {
  switch (op) {
    case Unary::affine: return p;
    case Unary::exp: return std::exp(x);
    case Unary::square: return 2.0 * x;
    case Unary::reciprocal: return -1.0 / (x * x);
    case Unary::mean_exp: return mean_exp_slope(x);
    default: RECLAB_DEMAND(!"not an operation of complex arrays"); return {};
  }
}

template <class W>
W value(Binary op, W x, W y) {
  switch (op) {
    case Binary::add: return x + y;
    case Binary::subtract: return x - y;
    case Binary::multiply: return x * y;
    case Binary::divide: return x / y;
    case Binary::maximum:
      if constexpr (!complex_v<W>) return std::max(x, y);
      break;
  }
  RECLAB_DEMAND(!"not an operation of complex arrays");
  return {};
}
/// The derivative by x, or by y.
template <class W>
W slope(Binary op, bool by_y, W x, W y) {
  switch (op) {
    case Binary::add: return 1.0;
    case Binary::subtract: return by_y ? -1.0 : 1.0;
    case Binary::multiply: return by_y ? x : y;
    case Binary::divide: return by_y ? -x / (y * y) : 1.0 / y;
    case Binary::maximum:
      if constexpr (!complex_v<W>) return x == y ? 0.5 : (x > y) != by_y ? 1.0 : 0.0;
      break;
  }
  RECLAB_DEMAND(!"not an operation of complex arrays");
  return {};
}

/// The operands' offsets of element i of the result.
struct Operands {
  Index x = 0, y = 0;
};
Operands operands(const Broadcast& shape, Index i) {
  Operands at;
  for (int d = shape.rank - 1; d >= 0; --d) {
    at.x += i % shape.size[d] * shape.stride_x[d];
    at.y += i % shape.size[d] * shape.stride_y[d];
    i /= shape.size[d];
  }
  return at;
}

}  // namespace

void ReferenceBackend::add_scaled(DType type, Index n, int power, const void* x, void* y, bool accumulate) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index i = 0; i < n; ++i) as<T>(y)[i] = narrow<T>(times_power(wide(as<T>(x)[i]), power) + (accumulate ? wide(as<T>(y)[i]) : 0.0));
  });
}

void ReferenceBackend::unary(Unary op, DType type, Index n, const void* x, void* y, double p, double q) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index i = 0; i < n; ++i) as<T>(y)[i] = narrow<T>(value(op, wide(as<T>(x)[i]), p, q));
  });
}
void ReferenceBackend::unary_adjoint(Unary op, DType type, Index n, const void* x, const void*, const void* gy, void* gx, double p,
                                     double) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index i = 0; i < n; ++i) add(as<T>(gx)[i], wide(as<T>(gy)[i]) * conjugate(slope(op, wide(as<T>(x)[i]), p)));
  });
}

void ReferenceBackend::binary(Binary op, DType type, const Broadcast& shape, const void* x, const void* y, void* z) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index i = 0; i < shape.elements; ++i) {
      const Operands at = operands(shape, i);
      as<T>(z)[i] = narrow<T>(value(op, wide(as<T>(x)[at.x]), wide(as<T>(y)[at.y])));
    }
  });
}
void ReferenceBackend::binary_adjoint(Binary op, DType type, const Broadcast& shape, const void* x, const void* y, const void* gz, void* gx,
                                      void* gy) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    if (shape.elements == 0) return;
    for (const bool by_y : {false, true}) {
      T* g = as<T>(by_y ? gy : gx);
      if (!g) continue;
      // An element that was repeated gets the sum of the gradients of all its uses.
      const Operands last = operands(shape, shape.elements - 1);
      std::vector<wide_t<T>> sums(static_cast<std::size_t>((by_y ? last.y : last.x) + 1));
      for (Index i = 0; i < shape.elements; ++i) {
        const Operands at = operands(shape, i);
        sums[static_cast<std::size_t>(by_y ? at.y : at.x)] +=
            wide(as<T>(gz)[i]) * conjugate(slope(op, by_y, wide(as<T>(x)[at.x]), wide(as<T>(y)[at.y])));
      }
      for (std::size_t i = 0; i < sums.size(); ++i) add(g[i], sums[i]);
    }
  });
}

void ReferenceBackend::join(DType complex, Index n, const void* real, const void* imag, void* z) {
  with_real(real_of(complex), [&](auto zero) {
    using T = decltype(zero);
    for (Index i = 0; i < n; ++i) as<std::complex<T>>(z)[i] = {as<T>(real)[i], as<T>(imag)[i]};
  });
}
void ReferenceBackend::join_adjoint(DType complex, Index n, const void* gz, void* greal, void* gimag) {
  with_real(real_of(complex), [&](auto zero) {
    using T = decltype(zero);
    for (Index i = 0; greal && i < n; ++i) as<T>(greal)[i] += as<std::complex<T>>(gz)[i].real();
    for (Index i = 0; gimag && i < n; ++i) as<T>(gimag)[i] += as<std::complex<T>>(gz)[i].imag();
  });
}
void ReferenceBackend::part(DType complex, int which, Index n, const void* z, void* y) {
  with_real(real_of(complex), [&](auto zero) {
    using T = decltype(zero);
    for (Index i = 0; i < n; ++i) as<T>(y)[i] = which == 0 ? as<std::complex<T>>(z)[i].real() : as<std::complex<T>>(z)[i].imag();
  });
}
void ReferenceBackend::part_adjoint(DType complex, int which, Index n, const void* gy, void* gz) {
  with_real(real_of(complex), [&](auto zero) {
    using T = decltype(zero);
    for (Index i = 0; i < n; ++i)
      as<std::complex<T>>(gz)[i] += which == 0 ? std::complex<T>(as<T>(gy)[i], 0) : std::complex<T>(0, as<T>(gy)[i]);
  });
}

}  // namespace reclab::reference
