// SPDX-License-Identifier: GPL-3.0-or-later
// The scalar functions of every elementwise operation and their derivatives, written once: the CPU's loops vectorise them, the CUDA
// kernels call them. Each is a type with `value(x)` and `slope(x, y)`, y = value(x).
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#ifdef __CUDACC__
#define RECLAB_HD __host__ __device__
#else
#define RECLAB_HD
#endif

namespace reclab::fn {

/// The real type of an element; kernels' own complex type has one too.
template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};

// exp and expm1 without a branch, so that loops over them vectorise; within 2 units in the last place, 0 below -708 (float: -87).
namespace detail {

template <class T>
struct ExpParts {
  T scale;       // 2^(k-1)
  T polynomial;  // expm1(r), |r| <= ln2/2
};

RECLAB_HD inline ExpParts<double> exp_parts(double x) {
  constexpr double magic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer held in the low bits
  const double shifted = x * 1.4426950408889634 + magic;
  const double k = shifted - magic;
  const double r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r * r + r;
  const std::uint64_t bits = (std::bit_cast<std::uint64_t>(shifted) + 1022) << 52;
  return {std::bit_cast<double>(bits), p};
}

RECLAB_HD inline ExpParts<float> exp_parts(float x) {
  constexpr float magic = 12582912.0f;  // 1.5 * 2^23
  const float shifted = x * 1.44269504f + magic;
  const float k = shifted - magic;
  const float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r * r + r;
  const std::uint32_t bits = (std::bit_cast<std::uint32_t>(shifted) + 126u) << 23;
  return {std::bit_cast<float>(bits), p};
}

}  // namespace detail

template <class T>
RECLAB_HD inline T exp(T x) {
  constexpr T low = sizeof(T) == 8 ? T(-708) : T(-87);
  constexpr T high = sizeof(T) == 8 ? T(709.782712893384) : T(88.7228390);
  // Beyond these bounds the result is replaced below; a NaN stays one.
  const auto parts = detail::exp_parts(x);
  T y = (parts.polynomial * parts.scale + parts.scale) * T(2);
  y = x < low ? T(0) : y;
  return x > high ? std::numeric_limits<T>::infinity() : y;
}

/// exp(x) - 1 for 0 <= x <= 60.
template <class T>
RECLAB_HD inline T expm1_bounded(T x) {
  const auto parts = detail::exp_parts(x);
  const T scale = parts.scale * T(2);
  return parts.polynomial * scale + (scale - T(1));
}

template <class T>
RECLAB_HD inline T tanh(T x) {
  const T magnitude = std::abs(x);
  const T twice = magnitude > T(30) ? T(60) : T(2) * magnitude;
  const T e = expm1_bounded(twice);
  const T y = e / (e + T(2));
  return x != x ? x : std::copysign(y, x);
}

template <class T>
RECLAB_HD inline T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}

template <class T>
RECLAB_HD inline T softplus(T x) {
  return (x > T(0) ? x : T(0)) + std::log1p(exp(-std::abs(x)));
}

template <class T>
RECLAB_HD inline auto part_re(T x) {
  if constexpr (requires { x.re; })
    return x.re;
  else
    return x.real();
}
template <class T>
RECLAB_HD inline auto part_im(T x) {
  if constexpr (requires { x.im; })
    return x.im;
  else
    return x.imag();
}

/// x y; of complex numbers with one rounding for the second product of each part and the sum where there is such an instruction, said in so
/// many words: a compiler that may choose which of the two products is rounded chooses differently from loop to loop.
template <class T>
RECLAB_HD inline T product(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return x * y;
  } else {
    const auto a = part_re(x), b = part_im(x), c = part_re(y), d = part_im(y);
#if defined(__FMA__) || defined(__CUDA_ARCH__)
    return T(std::fma(a, c, -(b * d)), std::fma(a, d, b * c));
#else
    return T(a * c - b * d, a * d + b * c);
#endif
  }
}

/// x / y; of complex numbers by Smith's rule, in which no square leaves the range.
template <class T>
RECLAB_HD inline T quotient(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return x / y;
  } else {
    using R = typename RealOf<T>::type;
    const R a = part_re(x), b = part_im(x), c = part_re(y), d = part_im(y);
    if (std::abs(c) >= std::abs(d)) {
      const R r = d / c, n = c + d * r;
      return T((a + b * r) / n, (b - a * r) / n);
    }
    const R r = c / d, n = c * r + d;
    return T((a * r + b) / n, (b * r - a) / n);
  }
}

// The elementwise operations. `p` and `q` are the operation's two constants.
struct Affine {  // p x + q
  template <class T>
  RECLAB_HD static T value(T x, double p, double q) {
    return static_cast<typename RealOf<T>::type>(p) * x + static_cast<typename RealOf<T>::type>(q);
  }
  template <class T>
  RECLAB_HD static T slope(T, T, double p, double) {
    return T(static_cast<typename RealOf<T>::type>(p));
  }
};
struct Exp {
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return fn::exp(x);
  }
  template <class T>
  RECLAB_HD static std::complex<T> value(std::complex<T> x, double, double) {
    const T magnitude = fn::exp(x.real());
    return {magnitude * std::cos(x.imag()), magnitude * std::sin(x.imag())};
  }
  template <class T>
  RECLAB_HD static T slope(T, T y, double, double) {
    return y;
  }
};
struct Log {
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return std::log(x);
  }
  template <class T>
  RECLAB_HD static T slope(T x, T, double, double) {
    return T(1) / x;
  }
};
struct Sqrt {
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return std::sqrt(x);
  }
  template <class T>
  RECLAB_HD static T slope(T, T y, double, double) {
    return T(1) / (y + y);
  }
};
struct Square {
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return x * x;
  }
  template <class T>
  RECLAB_HD static T slope(T x, T, double, double) {
    return x + x;
  }
};
struct Reciprocal {
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return quotient(T(1), x);
  }
  template <class T>
  RECLAB_HD static T slope(T, T y, double, double) {
    return -(y * y);
  }
};
struct Sigmoid {  // the slope is not y (1 - y), which a saturated gate rounds to 0
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return fn::sigmoid(x);
  }
  template <class T>
  RECLAB_HD static T slope(T x, T, double, double) {
    const T e = fn::exp(-std::abs(x));
    return e / ((T(1) + e) * (T(1) + e));
  }
};
struct Tanh {  // nor (1 - y) (1 + y)
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return fn::tanh(x);
  }
  template <class T>
  RECLAB_HD static T slope(T x, T, double, double) {
    const T e = fn::exp(T(-2) * std::abs(x));
    return T(4) * e / ((T(1) + e) * (T(1) + e));
  }
};
struct Relu {
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return x > T(0) ? x : (x != x ? x : T(0));
  }
  template <class T>
  RECLAB_HD static T slope(T x, T, double, double) {
    return x > T(0) ? T(1) : T(0);
  }
};
struct Softplus {
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return fn::softplus(x);
  }
  template <class T>
  RECLAB_HD static T slope(T x, T, double, double) {
    return fn::sigmoid(x);
  }
};
struct Silu {
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return x * fn::sigmoid(x);
  }
  template <class T>
  RECLAB_HD static T slope(T x, T, double, double) {
    const T s = fn::sigmoid(x);
    return s * (T(1) + x * (T(1) - s));
  }
};
struct Gelu {  // x Phi(x), Phi the normal distribution
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440)));
  }
  template <class T>
  RECLAB_HD static T slope(T x, T, double, double) {
    return T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440))) + x * T(0.39894228040143267794) * fn::exp(T(-0.5) * x * x);
  }
};
struct GeluTanh {  // the tanh approximation, as JAX uses it
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return T(0.5) * x * (T(1) + fn::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
  }
  template <class T>
  RECLAB_HD static T slope(T x, T, double, double) {
    x = x < T(-30) ? T(-30) : (x > T(30) ? T(30) : x);  // 0 and 1 beyond, where the square would overflow
    const T t = fn::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x));
    return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * T(0.79788456080286535588) * (T(1) + T(3 * 0.044715) * x * x);
  }
};
struct NormalCdf {  // Phi, without cancellation where it is next to 0
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return T(0.5) * std::erfc(-x * T(0.70710678118654752440));
  }
  template <class T>
  RECLAB_HD static T slope(T x, T, double, double) {
    return T(0.39894228040143267794) * fn::exp(T(-0.5) * x * x);
  }
};
struct Elu {  // x for x > 0, exp(x) - 1 below
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return x > T(0) ? x : std::expm1(x);
  }
  template <class T>
  RECLAB_HD static T slope(T x, T, double, double) {
    return x > T(0) ? T(1) : fn::exp(x);
  }
};
struct MeanExp {  // (e^x - 1)/x, the mean of e^(sx) over s in [0, 1]; 1 at 0
  // sum of x^k/(k+1)!, and its derivative: for |x| <= 1/2, where the closed forms would cancel
  template <class T>
  RECLAB_HD static T near(T x, bool derivative) {
    using R = typename RealOf<T>::type;
    T sum = T(R(0));
    R factorial = R(6402373705728000.0);  // 18!
    for (int k = 17; k >= (derivative ? 1 : 0); --k) {
      sum = sum * x + T((derivative ? R(k) : R(1)) / factorial);
      factorial /= R(k + 1);
    }
    return sum;
  }
  template <class R>
  RECLAB_HD static bool is_near(R re, R im) {
    return std::abs(re) + std::abs(im) <= R(0.5);
  }
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    if constexpr (std::is_floating_point_v<T>) {
      return is_near(x, T(0)) ? near(x, false) : std::expm1(x) / x;
    } else {
      const auto re = part_re(x), im = part_im(x);
      if (is_near(re, im)) return near(x, false);
      const auto half = std::sin(im / 2);
      return quotient(T(std::expm1(re) * std::cos(im) - 2 * half * half, fn::exp(re) * std::sin(im)), x);
    }
  }
  template <class T>
  RECLAB_HD static T slope(T x, T y, double, double) {
    if constexpr (std::is_floating_point_v<T>) {
      return is_near(x, T(0)) ? near(x, true) : (fn::exp(x) - y) / x;
    } else {
      const auto re = part_re(x), im = part_im(x), size = fn::exp(re);
      if (is_near(re, im)) return near(x, true);
      return quotient(T(size * std::cos(im), size * std::sin(im)) - y, x);
    }
  }
};

struct Abs {  // |x|, slope 0 at 0
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return std::abs(x);
  }
  template <class T>
  RECLAB_HD static T slope(T x, T, double, double) {
    return x > T(0) ? T(1) : (x < T(0) ? T(-1) : T(0));
  }
};
struct Sign {  // -1, 0 or 1; no slope
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return x > T(0) ? T(1) : (x < T(0) ? T(-1) : x);
  }
  template <class T>
  RECLAB_HD static T slope(T, T, double, double) {
    return T(0);
  }
};
struct Sin {
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return std::sin(x);
  }
  template <class T>
  RECLAB_HD static T slope(T x, T, double, double) {
    return std::cos(x);
  }
};
struct Cos {
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return std::cos(x);
  }
  template <class T>
  RECLAB_HD static T slope(T x, T, double, double) {
    return -std::sin(x);
  }
};
struct LogSigmoid {
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return -fn::softplus(-x);
  }
  template <class T>
  RECLAB_HD static T slope(T x, T, double, double) {
    return fn::sigmoid(-x);
  }
};
struct Floor {  // no slope
  template <class T>
  RECLAB_HD static T value(T x, double, double) {
    return std::floor(x);
  }
  template <class T>
  RECLAB_HD static T slope(T, T, double, double) {
    return T(0);
  }
};

struct Add {
  template <class T>
  RECLAB_HD static T value(T x, T y) {
    return x + y;
  }
  template <class T>
  RECLAB_HD static T slope_x(T, T) {
    return T(1);
  }
  template <class T>
  RECLAB_HD static T slope_y(T, T) {
    return T(1);
  }
};
struct Subtract {
  template <class T>
  RECLAB_HD static T value(T x, T y) {
    return x - y;
  }
  template <class T>
  RECLAB_HD static T slope_x(T, T) {
    return T(1);
  }
  template <class T>
  RECLAB_HD static T slope_y(T, T) {
    return T(-1);
  }
};
struct Multiply {
  template <class T>
  RECLAB_HD static T value(T x, T y) {
    return product(x, y);
  }
  template <class T>
  RECLAB_HD static T slope_x(T, T y) {
    return y;
  }
  template <class T>
  RECLAB_HD static T slope_y(T x, T) {
    return x;
  }
};
struct Divide {
  template <class T>
  RECLAB_HD static T value(T x, T y) {
    return quotient(x, y);
  }
  template <class T>
  RECLAB_HD static T slope_x(T, T y) {
    return quotient(T(1), y);
  }
  template <class T>
  RECLAB_HD static T slope_y(T x, T y) {
    return -quotient(quotient(x, y), y);  // y squared may be out of range
  }
};

struct Maximum {  // real; where both are equal each gets half of the slope
  template <class T>
  RECLAB_HD static T value(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) return x > y || x != x ? x : y;
    return x;
  }
  template <class T>
  RECLAB_HD static T slope_x(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) return x > y ? T(1) : (x < y ? T(0) : T(0.5));
    return T(1);
  }
  template <class T>
  RECLAB_HD static T slope_y(T x, T y) {
    if constexpr (std::is_floating_point_v<T>) return x < y ? T(1) : (x > y ? T(0) : T(0.5));
    return T(1);
  }
};

}  // namespace reclab::fn
