// SPDX-License-Identifier: GPL-3.0-or-later
#include <fftw3.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <type_traits>
#include <vector>

#include "array/backend.h"
#include "array/cpu/exponents.h"
#include "array/cpu/fourier.h"
#include "array/cpu/gated.h"
#include "array/cpu/gemm.h"
#include "array/cpu/norms.h"
#include "array/cpu/pairs.h"
#include "array/cpu/selective.h"
#include "array/cpu/stream.h"
#include "array/cpu/threads.h"
#include "array/error.h"
#include "array/functions.h"
#include "array/order.h"
#include "array/stop.h"

namespace reclab {
namespace {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};
template <class T>
using real_t = typename RealOf<T>::type;
template <class T>
constexpr bool complex_v = !std::is_same_v<T, real_t<T>>;

template <class T>
T conjugate(T x) {
  if constexpr (complex_v<T>)
    return std::conj(x);
  else
    return x;
}
template <class T>
const T* as(const void* p) {
  return static_cast<const T*>(p);
}
template <class T>
T* as(void* p) {
  return static_cast<T*>(p);
}

/// Calls f with a value of the element type.
template <class F>
void with_type(DType type, F&& f) {
  switch (type) {
    case DType::f32: f(float{}); break;
    case DType::f64: f(double{}); break;
    case DType::c64: f(std::complex<float>{}); break;
    case DType::c128: f(std::complex<double>{}); break;
  }
}
template <class F>
void with_real(DType type, F&& f) {
  assert(!is_complex(type));
  if (type == DType::f32)
    f(float{});
  else
    f(double{});
}

template <class F>
void with_unary(Unary op, F&& f) {
  switch (op) {
    case Unary::affine: f(fn::Affine{}); break;
    case Unary::exp: f(fn::Exp{}); break;
    case Unary::log: f(fn::Log{}); break;
    case Unary::sqrt: f(fn::Sqrt{}); break;
    case Unary::square: f(fn::Square{}); break;
    case Unary::reciprocal: f(fn::Reciprocal{}); break;
    case Unary::sigmoid: f(fn::Sigmoid{}); break;
    case Unary::tanh: f(fn::Tanh{}); break;
    case Unary::relu: f(fn::Relu{}); break;
    case Unary::softplus: f(fn::Softplus{}); break;
    case Unary::silu: f(fn::Silu{}); break;
    case Unary::gelu: f(fn::Gelu{}); break;
    case Unary::gelu_tanh: f(fn::GeluTanh{}); break;
    case Unary::elu: f(fn::Elu{}); break;
    case Unary::abs: f(fn::Abs{}); break;
    case Unary::sign: f(fn::Sign{}); break;
    case Unary::sin: f(fn::Sin{}); break;
    case Unary::cos: f(fn::Cos{}); break;
    case Unary::log_sigmoid: f(fn::LogSigmoid{}); break;
    case Unary::floor: f(fn::Floor{}); break;
    case Unary::mean_exp: f(fn::MeanExp{}); break;
  }
}
/// The operations that complex arrays have.
template <class Op>
constexpr bool for_complex = std::is_same_v<Op, fn::Affine> || std::is_same_v<Op, fn::Exp> || std::is_same_v<Op, fn::Square> ||
                             std::is_same_v<Op, fn::Reciprocal> || std::is_same_v<Op, fn::MeanExp>;

template <class F>
void with_binary(Binary op, F&& f) {
  switch (op) {
    case Binary::add: f(fn::Add{}); break;
    case Binary::subtract: f(fn::Subtract{}); break;
    case Binary::multiply: f(fn::Multiply{}); break;
    case Binary::divide: f(fn::Divide{}); break;
    case Binary::maximum: f(fn::Maximum{}); break;
  }
}

void poll(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled();
}
/// A step of so many entries takes longer than a look at the stop token.
constexpr std::int64_t worth_a_look = 1024;

std::int64_t row_count(const Broadcast& shape) {
  const std::int64_t inner = shape.rank ? shape.size[shape.rank - 1] : 1;
  return inner ? shape.elements / inner : 0;
}
/// Visits the innermost rows [first, last) of a broadcast: f(z offset, x offset, y offset).
template <class F>
void for_rows(const Broadcast& shape, std::int64_t first, std::int64_t last, F&& f) {
  const int outer = std::max(0, shape.rank - 1);
  std::int64_t index[6] = {};
  std::int64_t x = 0, y = 0;
  const std::int64_t inner = shape.rank ? shape.size[shape.rank - 1] : 1;
  for (std::int64_t d = outer - 1, row = first; d >= 0; row /= shape.size[d--]) {
    index[d] = row % shape.size[d];
    x += shape.stride_x[d] * index[d];
    y += shape.stride_y[d] * index[d];
  }
  for (std::int64_t row = first; row < last; ++row) {
    f(row * inner, x, y);
    for (int d = outer - 1; d >= 0; --d) {
      x += shape.stride_x[d];
      y += shape.stride_y[d];
      if (++index[d] < shape.size[d]) break;
      x -= shape.stride_x[d] * shape.size[d];
      y -= shape.stride_y[d] * shape.size[d];
      index[d] = 0;
    }
  }
}

template <class F>
void for_rows(const Strided& shape, F&& f) {
  const int outer = std::max(0, shape.rank - 1);
  std::int64_t index[6] = {};
  std::int64_t at = shape.offset, dense = 0;
  const std::int64_t inner = shape.rank ? shape.size[shape.rank - 1] : 1;
  const std::int64_t rows = inner ? shape.elements / inner : 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    f(at, dense);
    dense += inner;
    for (int d = outer - 1; d >= 0; --d) {
      at += shape.stride[d];
      if (++index[d] < shape.size[d]) break;
      at -= shape.stride[d] * shape.size[d];
      index[d] = 0;
    }
  }
}

/// The associative combination over time as a tree (Blelloch): on return b[t] is s_t for s_{-1} = 0 and a[t] the product a_0..a_t.
template <class T>
void tree_scan(std::int64_t steps, std::int64_t width, T* a, T* b, const std::stop_token& stop) {
  const auto combine = [&](std::int64_t earlier, std::int64_t later) {
    T* a1 = a + earlier * width;
    T* b1 = b + earlier * width;
    T* a2 = a + later * width;
    T* b2 = b + later * width;
    for (std::int64_t i = 0; i < width; ++i) {
      b2[i] = a2[i] * b1[i] + b2[i];
      a2[i] = a2[i] * a1[i];
    }
  };
  order::tree(steps, [&] { poll(stop); }, combine);
}
/// The same in chunks: within each by itself, then from last state to last state, then what each chunk's start adds inside it.
template <class T>
void chunk_scan(std::int64_t steps, std::int64_t width, T* a, T* b, const std::stop_token& stop) {
  constexpr std::int64_t chunk = order::diagonal_chunk;
  const auto within = [&](std::int64_t t) {
    poll(stop);
    for (std::int64_t i = t * width; i < (t + 1) * width; ++i) {
      b[i] += a[i] * b[i - width];
      a[i] *= a[i - width];
    }
  };
  const auto join = [&](std::int64_t last, std::int64_t t) {
    if (t % chunk == 0) poll(stop);
    const T* carry = b + last * width;
    for (std::int64_t i = 0; i < width; ++i) b[t * width + i] += a[t * width + i] * carry[i];
  };
  order::chunks(steps, chunk, within, join);
}
template <class T>
void parallel_scan(Pace pace, std::int64_t steps, std::int64_t width, T* a, T* b, const std::stop_token& stop) {
  if (pace == Pace::tree)
    tree_scan(steps, width, a, b, stop);
  else
    chunk_scan(steps, width, a, b, stop);
}

using cpu::Bits;
using cpu::exponent_of_bits;
using cpu::magnitude;
/// Of the real and imaginary parts.
template <class T>
int exponent_of(std::int64_t n, const T* x) {
  using R = real_t<T>;
  return cpu::exponent_of(n * static_cast<std::int64_t>(sizeof(T) / sizeof(R)), reinterpret_cast<const R*>(x));
}

template <class T>
double log2_norm_of(std::int64_t n, const T* x, int power) {
  const int own = exponent_of(n, x);
  double sum = 0.0;
  if (own == no_exponent || own == infinite_exponent || std::abs(own) < 400) {
    for (std::int64_t i = 0; i < n; ++i) {
      if constexpr (complex_v<T>) {
        const double re = static_cast<double>(x[i].real()), im = static_cast<double>(x[i].imag());
        sum += re * re + im * im;
      } else {
        sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      }
    }
    return 0.5 * std::log2(sum) + power;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (complex_v<T>) {
      const double re = std::ldexp(static_cast<double>(x[i].real()), -own), im = std::ldexp(static_cast<double>(x[i].imag()), -own);
      sum += re * re + im * im;
    } else {
      const double y = std::ldexp(static_cast<double>(x[i]), -own);
      sum += y * y;
    }
  }
  return 0.5 * std::log2(sum) + own + power;
}

template <class T>
T scaled(T x, int exponent) {
  if constexpr (complex_v<T>)
    return {std::ldexp(x.real(), exponent), std::ldexp(x.imag(), exponent)};
  else
    return std::ldexp(x, exponent);
}

/// next = conj(a) lambda + unit g, n entries (a null: of lambda itself), and how large both terms come to be.
template <class T>
void adjoint_step(std::int64_t n, const T* a, const T* lambda_, const T* g_, real_t<T> unit, T* next_, Bits<real_t<T>>& carried, Bits<real_t<T>>& added) {
  using R = real_t<T>;
  const R* __restrict lambda = reinterpret_cast<const R*>(lambda_);
  const R* __restrict g = reinterpret_cast<const R*>(g_);
  R* __restrict next = reinterpret_cast<R*>(next_);
  Bits<R> most = carried, most_added = added;
  if constexpr (complex_v<T>) {
    using P = cpu::Pairs<R>;
    const R* factor = reinterpret_cast<const R*>(a);
    typename P::I large{}, large_added{};
    std::int64_t i = 0;
    for (; i + P::lanes <= 2 * n; i += P::lanes) {
      typename P::V here = P::load(lambda + i);
      if (factor) here = P::product(here, P::load(factor + i), true);
      const typename P::V fresh = P::load(g + i);
      large = P::larger(large, P::magnitudes(here));
      large_added = P::larger(large_added, P::magnitudes(fresh));
      P::store(next + i, here + unit * fresh);
    }
    for (int lane = 0; lane < P::lanes; ++lane) {
      most = std::max(most, static_cast<Bits<R>>(large[lane]));
      most_added = std::max(most_added, static_cast<Bits<R>>(large_added[lane]));
    }
    for (; i < 2 * n; i += 2) {
      const R re = factor ? lambda[i] * factor[i] + lambda[i + 1] * factor[i + 1] : lambda[i];
      const R im = factor ? lambda[i + 1] * factor[i] - lambda[i] * factor[i + 1] : lambda[i + 1];
      most = std::max({most, magnitude(re), magnitude(im)});
      most_added = std::max({most_added, magnitude(g[i]), magnitude(g[i + 1])});
      next[i] = re + unit * g[i];
      next[i + 1] = im + unit * g[i + 1];
    }
  } else {
    const R* __restrict factor = a;
    for (std::int64_t i = 0; i < n; ++i) {
      const R here = factor ? lambda[i] * factor[i] : lambda[i];
      most = std::max(most, magnitude(here));
      most_added = std::max(most_added, magnitude(g[i]));
      next[i] = here + unit * g[i];
    }
  }
  carried = most;
  added = most_added;
}

/// What follows from an adjoint lambda 2^power of s_t, unit = 2^power: gb += it, ga += it times conj(s_{t-1}); gb and before may be null.
template <class T>
void adjoint_use(std::int64_t n, const T* lambda_, const T* before_, real_t<T> unit, T* gb_, T* ga_) {
  using R = real_t<T>;
  const R* __restrict lambda = reinterpret_cast<const R*>(lambda_);
  const R* __restrict before = reinterpret_cast<const R*>(before_);
  R* __restrict gb = reinterpret_cast<R*>(gb_);
  R* __restrict ga = reinterpret_cast<R*>(ga_);
  const std::int64_t parts = n * static_cast<std::int64_t>(sizeof(T) / sizeof(R));
  if (gb)
    for (std::int64_t i = 0; i < parts; ++i) gb[i] += unit * lambda[i];
  if (!before) return;
  if constexpr (complex_v<T>) {
    using P = cpu::Pairs<R>;
    std::int64_t i = 0;
    for (; i + P::lanes <= parts; i += P::lanes) P::store(ga + i, P::load(ga + i) + unit * P::product(P::load(lambda + i), P::load(before + i), true));
    for (; i < parts; i += 2) {
      ga[i] += unit * (lambda[i] * before[i] + lambda[i + 1] * before[i + 1]);
      ga[i + 1] += unit * (lambda[i + 1] * before[i] - lambda[i] * before[i + 1]);
    }
  } else {
    for (std::int64_t i = 0; i < parts; ++i) ga[i] += unit * (lambda[i] * before[i]);
  }
}

class CpuBackend final : public Backend {
 public:
  Device device() const override { return Device::cpu; }
  std::string name() const override { return "CPU"; }

  void* allocate(std::size_t bytes) override {
    constexpr std::size_t page = std::size_t{2} << 20;
    const std::size_t unit = bytes >= 2 * page ? page : 64;
    void* memory = std::aligned_alloc(unit, (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit);
    if (!memory) throw Error("There is not enough memory for an array of " + std::to_string(bytes >> 20) + " MiB: shorten the sequence or make the model smaller.");
#ifdef MADV_HUGEPAGE
    if (unit == page) madvise(memory, bytes, MADV_HUGEPAGE);  // a hint: without large pages it is slower and right
#endif
    return memory;
  }
  void release(void* memory) noexcept override { std::free(memory); }
  void zero(void* memory, std::size_t bytes) override { std::memset(memory, 0, bytes); }
  void upload(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void finish() override {}

  void add_scaled(DType type, std::int64_t n, int power, const void* x_, void* y_, bool accumulate) override {
    with_real(real_of(type), [&](auto zero) {
      using T = decltype(zero);
      const T* x = as<T>(x_);
      T* y = as<T>(y_);
      const std::int64_t parts = is_complex(type) ? 2 * n : n;
      if (std::abs(power) <= (sizeof(T) == 8 ? 1000 : 100)) {
        const T factor = std::ldexp(T(1), power);
        for (std::int64_t i = 0; i < parts; ++i) y[i] = accumulate ? y[i] + factor * x[i] : factor * x[i];
      } else {
        for (std::int64_t i = 0; i < parts; ++i) y[i] = std::ldexp(x[i], power) + (accumulate ? y[i] : T(0));
      }
    });
  }
  double log2_norm(DType type, std::int64_t n, const void* x, int power) override {
    double result = 0.0;
    with_type(type, [&](auto zero) { result = log2_norm_of(n, as<decltype(zero)>(x), power); });
    return result;
  }
  int exponent(DType type, std::int64_t n, const void* x) override {
    int result = 0;
    with_type(type, [&](auto zero) { result = exponent_of(n, as<decltype(zero)>(x)); });
    return result;
  }

  void unary(Unary op, DType type, std::int64_t n, const void* x_, void* y_, double p, double q) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      with_unary(op, [&](auto f) {
        using Op = decltype(f);
        if constexpr (!complex_v<T> || for_complex<Op>) {
          const T* __restrict x = as<T>(x_);
          T* __restrict y = as<T>(y_);
          in_pieces(n, 64, piece_of<Op>, [&](std::int64_t from, std::int64_t to) {
            for (std::int64_t i = from; i < to; ++i) y[i] = Op::value(x[i], p, q);
          });
        } else {
          assert(!"not an operation of complex arrays");
        }
      });
    });
  }

  void unary_adjoint(Unary op, DType type, std::int64_t n, const void* x_, const void* y_, const void* gy_, void* gx_, double p,
                     double q) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      with_unary(op, [&](auto f) {
        using Op = decltype(f);
        if constexpr (!complex_v<T> || for_complex<Op>) {
          const T* __restrict x = as<T>(x_);
          const T* __restrict y = as<T>(y_);
          const T* __restrict gy = as<T>(gy_);
          T* __restrict gx = as<T>(gx_);
          in_pieces(n, 64, piece_of<Op>, [&](std::int64_t from, std::int64_t to) {
            for (std::int64_t i = from; i < to; ++i) gx[i] += gy[i] * conjugate(Op::slope(x[i], y[i], p, q));
          });
        }
      });
    });
  }

  void binary(Binary op, DType type, const Broadcast& shape, const void* x_, const void* y_, void* z_) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      with_binary(op, [&](auto f) {
        using Op = decltype(f);
        const std::int64_t inner = shape.rank ? shape.size[shape.rank - 1] : 1;
        const std::int64_t sx = shape.rank ? shape.stride_x[shape.rank - 1] : 0, sy = shape.rank ? shape.stride_y[shape.rank - 1] : 0;
        /// `size`: the length of a row, of a type that may know it when this is compiled.
        const auto some_rows = [&](std::int64_t first, std::int64_t last, auto size) {
          for_rows(shape, first, last, [&](std::int64_t zo, std::int64_t xo, std::int64_t yo) {
            const T* __restrict x = as<T>(x_) + xo;
            const T* __restrict y = as<T>(y_) + yo;
            T* __restrict z = as<T>(z_) + zo;
            const std::int64_t n = size;
            if (sx && sy)
              for (std::int64_t i = 0; i < n; ++i) z[i] = Op::value(x[i], y[i]);
            else if (sx)
              for (std::int64_t i = 0; i < n; ++i) z[i] = Op::value(x[i], y[0]);
            else if (sy)
              for (std::int64_t i = 0; i < n; ++i) z[i] = Op::value(x[0], y[i]);
            else
              for (std::int64_t i = 0; i < n; ++i) z[i] = Op::value(x[0], y[0]);
          });
        };
        const auto rows = [&](auto size) {
          in_pieces(shape.elements, std::max<std::int64_t>(inner, 1), piece_of_sums, [&](std::int64_t from, std::int64_t to) { some_rows(from / inner, to / inner, size); });
        };
        if (shape.rank == 1 && sx && sy) {
          const T* __restrict x = as<T>(x_);
          const T* __restrict y = as<T>(y_);
          T* __restrict z = as<T>(z_);
          in_pieces(inner, 64, piece_of_sums, [&](std::int64_t from, std::int64_t to) {
            for (std::int64_t i = from; i < to; ++i) z[i] = Op::value(x[i], y[i]);
          });
          return;
        }
        switch (inner) {  // many short rows
          case 8: rows(std::integral_constant<std::int64_t, 8>{}); break;
          case 16: rows(std::integral_constant<std::int64_t, 16>{}); break;
          case 32: rows(std::integral_constant<std::int64_t, 32>{}); break;
          case 64: rows(std::integral_constant<std::int64_t, 64>{}); break;
          default: rows(inner);
        }
      });
    });
  }

  void binary_adjoint(Binary op, DType type, const Broadcast& shape, const void* x_, const void* y_, const void* gz_, void* gx_,
                      void* gy_) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      with_binary(op, [&](auto f) {
        using Op = decltype(f);
        const std::int64_t inner = shape.rank ? shape.size[shape.rank - 1] : 1;
        const std::int64_t sx = shape.rank ? shape.stride_x[shape.rank - 1] : 0, sy = shape.rank ? shape.stride_y[shape.rank - 1] : 0;
        /// Columns [from, to) of every row: what is added up over rows stays in its order however the columns are cut.
        const auto columns = [&](std::int64_t from, std::int64_t to) {
          for_rows(shape, 0, row_count(shape), [&](std::int64_t zo, std::int64_t xo, std::int64_t yo) {
            const T* x = as<T>(x_) + xo;
            const T* y = as<T>(y_) + yo;
            const T* gz = as<T>(gz_) + zo;
            const auto one_side = [&](T* g, std::int64_t own, auto slope) {
              if (own) {
                if (sx && sy)
                  for (std::int64_t i = from; i < to; ++i) g[i] += gz[i] * conjugate(slope(x[i], y[i]));
                else
                  for (std::int64_t i = from; i < to; ++i) g[i] += gz[i] * conjugate(slope(x[i * sx], y[i * sy]));
              } else {
                T sum{};
                for (std::int64_t i = from; i < to; ++i) sum += gz[i] * conjugate(slope(x[i * sx], y[i * sy]));
                g[0] += sum;
              }
            };
            if (gx_) one_side(as<T>(gx_) + xo, sx, [](T u, T v) { return Op::slope_x(u, v); });
            if (gy_) one_side(as<T>(gy_) + yo, sy, [](T u, T v) { return Op::slope_y(u, v); });
          });
        };
        constexpr std::int64_t worth_threads = std::int64_t{1} << 14, least = 256;
        if (sx && sy && shape.elements >= worth_threads && inner >= 2 * least) {
          const std::int64_t pieces = std::min<std::int64_t>(inner / least, 32);
          cpu::parallel(pieces, [&](std::int64_t i) { columns(inner * i / pieces, inner * (i + 1) / pieces); });
        } else {
          columns(0, inner);
        }
      });
    });
  }

  void gather(DType type, const Strided& shape, const void* strided, void* dense, bool accumulate) override {
    move(type, shape, [&](auto* from_strided, auto* to_dense, std::int64_t inner, std::int64_t stride) {
      if (accumulate)
        for (std::int64_t i = 0; i < inner; ++i) to_dense[i] += from_strided[i * stride];
      else if (stride == 1)
        std::copy(from_strided, from_strided + inner, to_dense);
      else
        for (std::int64_t i = 0; i < inner; ++i) to_dense[i] = from_strided[i * stride];
    }, const_cast<void*>(strided), dense);
  }
  void scatter(DType type, const Strided& shape, const void* dense, void* strided, bool accumulate) override {
    move(type, shape, [&](auto* to_strided, auto* from_dense, std::int64_t inner, std::int64_t stride) {
      if (accumulate)
        for (std::int64_t i = 0; i < inner; ++i) to_strided[i * stride] += from_dense[i];
      else
        for (std::int64_t i = 0; i < inner; ++i) to_strided[i * stride] = from_dense[i];
    }, strided, const_cast<void*>(dense));
  }

  void sum(DType type, std::int64_t outer, std::int64_t n, std::int64_t inner, double scale, const void* x_, void* y_) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      const auto s = static_cast<real_t<T>>(scale);
      if (inner == 1 && n > 0) {
        // Several sums at a time, each in its order: one alone waits for every addition.
        constexpr std::int64_t together = 8;
        in_pieces(outer * n, n * together, piece_of_sums, [&](std::int64_t first, std::int64_t last) {
          for (std::int64_t o = first / n; o < last / n; o += together) {
            const std::int64_t some = std::min(together, last / n - o);
            const T* x = as<T>(x_) + o * n;
            T sums[together] = {};
            if (some == together)
              for (std::int64_t j = 0; j < n; ++j)
                for (std::int64_t i = 0; i < together; ++i) sums[i] += x[i * n + j];
            else
              for (std::int64_t i = 0; i < some; ++i)
                for (std::int64_t j = 0; j < n; ++j) sums[i] += x[i * n + j];
            for (std::int64_t i = 0; i < some; ++i) as<T>(y_)[o + i] = sums[i] * s;
          }
        });
        return;
      }
      for (std::int64_t o = 0; o < outer; ++o) {
        const T* x = as<T>(x_) + o * n * inner;
        T* y = as<T>(y_) + o * inner;
        std::fill(y, y + inner, T{});
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t i = 0; i < inner; ++i) y[i] += x[j * inner + i];
        for (std::int64_t i = 0; i < inner; ++i) y[i] *= s;
      }
    });
  }
  void cumulative_sum(DType type, std::int64_t outer, std::int64_t n, std::int64_t inner, bool reverse, const void* x_, void* y_,
                      bool accumulate) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      std::vector<T> sum(static_cast<std::size_t>(inner));
      for (std::int64_t o = 0; o < outer; ++o) {
        std::fill(sum.begin(), sum.end(), T{});
        for (std::int64_t l = 0; l < n; ++l) {
          const std::int64_t j = reverse ? n - 1 - l : l;
          const T* x = as<T>(x_) + (o * n + j) * inner;
          T* y = as<T>(y_) + (o * n + j) * inner;
          for (std::int64_t i = 0; i < inner; ++i) {
            T& s = sum[static_cast<std::size_t>(i)];
            s += x[i];
            y[i] = accumulate ? y[i] + s : s;
          }
        }
      }
    });
  }
  void sum_adjoint(DType type, std::int64_t outer, std::int64_t n, std::int64_t inner, double scale, const void* gy_, void* gx_) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      const auto s = static_cast<real_t<T>>(scale);
      for (std::int64_t o = 0; o < outer; ++o) {
        const T* gy = as<T>(gy_) + o * inner;
        T* gx = as<T>(gx_) + o * n * inner;
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t i = 0; i < inner; ++i) gx[j * inner + i] += s * gy[i];
      }
    });
  }

  void matmul(DType type, const MatMul& shape, const void* a, const void* b, void* c, bool accumulate) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      const std::int64_t lda = shape.transpose_a ? shape.m : shape.k, ldb = shape.transpose_b ? shape.k : shape.n;
      /// Rows [row, row + rows) by columns [column, column + columns) of the products [first, last).
      const auto block = [&](std::int64_t first, std::int64_t last, std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
        for (std::int64_t i = first; i < last; ++i)
          cpu::gemm<T>(shape.transpose_a, shape.transpose_b, rows, columns, shape.k, as<T>(a) + i * shape.stride_a + row * (shape.transpose_a ? 1 : lda), lda,
                       as<T>(b) + i * shape.stride_b + column * (shape.transpose_b ? ldb : 1), ldb, as<T>(c) + i * shape.stride_c + row * shape.n + column, shape.n,
                       accumulate || (i > 0 && shape.stride_c == 0));
      };
      // Every entry is summed in the same order however the product is cut.
      constexpr std::int64_t worth_threads = std::int64_t{1} << 17, least = 64;
      const bool large = shape.batch * shape.m * shape.n * shape.k >= worth_threads;
      if (large && shape.batch == 1 && shape.m >= 16) {
        thread_local std::vector<T> packed, rows;
        packed.resize(static_cast<std::size_t>(cpu::packed_size(shape.k, shape.n)));
        cpu::pack(shape.transpose_b, shape.k, shape.n, as<T>(b), packed.data());
        if (shape.transpose_a) {
          rows.resize(static_cast<std::size_t>(shape.m * shape.k));
          cpu::turn(shape.k, shape.m, as<T>(a), rows.data());
        }
        cpu::gemm_packed(shape.m, shape.n, shape.k, shape.transpose_a ? rows.data() : as<T>(a), packed.data(), as<T>(c), accumulate);
        return;
      }
      if (large && shape.batch >= 16 && shape.stride_c) {
        cpu::parallel(16, [&](std::int64_t i) { block(shape.batch * i / 16, shape.batch * (i + 1) / 16, 0, shape.m, 0, shape.n); });
        return;
      }
      const bool by_columns = shape.n > shape.m;
      const std::int64_t along = by_columns ? shape.n : shape.m, blocks = std::min<std::int64_t>(along / least, 16);
      if (!large || blocks < 2) {
        block(0, shape.batch, 0, shape.m, 0, shape.n);
        return;
      }
      cpu::parallel(blocks, [&](std::int64_t i) {
        const std::int64_t from = along * i / blocks / 32 * 32, to = i + 1 == blocks ? along : along * (i + 1) / blocks / 32 * 32;
        if (by_columns)
          block(0, shape.batch, 0, shape.m, from, to - from);
        else
          block(0, shape.batch, from, to - from, 0, shape.n);
      });
    });
  }

  void pack(DType type, std::int64_t k, std::int64_t n, bool transpose, const void* b, void* packed) override {
    with_real(type, [&](auto zero) { cpu::pack(transpose, k, n, as<decltype(zero)>(b), as<decltype(zero)>(packed)); });
  }
  void matmul_packed(DType type, std::int64_t m, std::int64_t n, std::int64_t k, bool, const void* a, const void*, const void* packed, void* c,
                     bool accumulate) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      cpu::gemm_packed(m, n, k, as<T>(a), as<T>(packed), as<T>(c), accumulate);
    });
  }

  void join(DType complex, std::int64_t n, const void* real, const void* imag, void* z) override {
    with_real(real_of(complex), [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t i = 0; i < n; ++i) as<std::complex<T>>(z)[i] = {as<T>(real)[i], as<T>(imag)[i]};
    });
  }
  void join_adjoint(DType complex, std::int64_t n, const void* gz, void* greal, void* gimag) override {
    with_real(real_of(complex), [&](auto zero) {
      using T = decltype(zero);
      const auto* g = as<std::complex<T>>(gz);
      if (greal)
        for (std::int64_t i = 0; i < n; ++i) as<T>(greal)[i] += g[i].real();
      if (gimag)
        for (std::int64_t i = 0; i < n; ++i) as<T>(gimag)[i] += g[i].imag();
    });
  }
  void part(DType complex, int which, std::int64_t n, const void* z, void* y) override {
    with_real(real_of(complex), [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t i = 0; i < n; ++i) as<T>(y)[i] = which ? as<std::complex<T>>(z)[i].imag() : as<std::complex<T>>(z)[i].real();
    });
  }
  void part_adjoint(DType complex, int which, std::int64_t n, const void* gy, void* gz) override {
    with_real(real_of(complex), [&](auto zero) {
      using T = decltype(zero);
      T* g = as<T>(gz);
      for (std::int64_t i = 0; i < n; ++i) g[2 * i + which] += as<T>(gy)[i];
    });
  }

  void depthwise(DType type, const DepthwiseDims& d, const void* x_, const void* w_, void* y_) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t t = 0; t < d.steps; ++t)
        for (std::int64_t b = 0; b < d.batch; ++b) {
          check_stop();
          T* y = as<T>(y_) + (t * d.batch + b) * d.channels;
          std::fill(y, y + d.channels, T(0));
          for (std::int64_t j = 0; j < d.taps; ++j) {
            const T* x = as<T>(x_) + ((t + j) * d.batch + b) * d.channels;
            const T* w = as<T>(w_) + j;
            for (std::int64_t c = 0; c < d.channels; ++c) y[c] += w[c * d.taps] * x[c];
          }
        }
    });
  }
  void depthwise_adjoint(DType type, const DepthwiseDims& d, const void* x_, const void* w_, const void* gy_, void* gx_, void* gw_) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t t = 0; t < d.steps; ++t)
        for (std::int64_t b = 0; b < d.batch; ++b) {
          check_stop();
          const T* gy = as<T>(gy_) + (t * d.batch + b) * d.channels;
          for (std::int64_t j = 0; j < d.taps; ++j) {
            const std::int64_t row = ((t + j) * d.batch + b) * d.channels;
            if (gx_)
              for (std::int64_t c = 0; c < d.channels; ++c) as<T>(gx_)[row + c] += as<T>(w_)[c * d.taps + j] * gy[c];
            if (gw_)
              for (std::int64_t c = 0; c < d.channels; ++c) as<T>(gw_)[c * d.taps + j] += as<T>(x_)[row + c] * gy[c];
          }
        }
    });
  }

  void diagonal(DType type, const DiagonalDims& d, Pace pace, const void* a_, const void* b_, const void* initial_, void* s_,
                std::stop_token stop) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      const T* b = as<T>(b_);
      const T* initial = as<T>(initial_);
      T* s = as<T>(s_);
      if (pace != Pace::steps) {
        std::vector<T> products(static_cast<std::size_t>(d.steps * d.width));
        spread(d, as<T>(a_), 0, d.steps, products.data());
        std::copy(b, b + d.steps * d.width, s);
        if (initial)
          for (std::int64_t i = 0; i < d.width; ++i) s[i] += products[static_cast<std::size_t>(i)] * initial[i];
        parallel_scan(pace, d.steps, d.width, products.data(), s, stop);
        return;
      }
      const bool past_caches = static_cast<std::size_t>(d.steps * d.width) * sizeof(T) >= cpu::stream_from;
      // One processor's real sums fill the memory by themselves.
      for_slabs(d, past_caches && !complex_v<T> ? 1 : slab_count(d), [&](const Slab& slab) {
        // The running state stays in the caches, whatever is written where.
        std::vector<T> state(static_cast<std::size_t>(slab.copies * slab.size()));
        for (std::int64_t copy = 0; initial && copy < slab.copies; ++copy)
          std::copy_n(initial + slab.at(copy), slab.size(), state.data() + copy * slab.size());
        for (std::int64_t t = 0; t < d.steps; ++t) {
          if (t % 256 == 0 || slab.copies * slab.size() >= worth_a_look) poll(stop);
          for (std::int64_t copy = 0; copy < slab.copies; ++copy) {
            T* __restrict own = state.data() + copy * slab.size();
            const T* __restrict in = b + t * d.width + slab.at(copy);
            if (past_caches && slab.size() < d.width && t + 2 < d.steps) cpu::ask_for(in + 2 * d.width, static_cast<std::size_t>(slab.size()) * sizeof(T));
            const T* __restrict a = as<T>(a_) + (d.period ? slab.first : t * d.width + slab.at(copy));
            if (t == 0 && !initial)
              std::copy_n(in, slab.size(), own);
            else if constexpr (complex_v<T>)
              cpu::multiply_add(slab.size(), a, own, in, own);
            else
              for (std::int64_t i = 0; i < slab.size(); ++i) own[i] = a[i] * own[i] + in[i];
            T* now = s + t * d.width + slab.at(copy);
            if (past_caches)
              cpu::stream_copy(now, own, static_cast<std::size_t>(slab.size()) * sizeof(T));
            else
              std::copy_n(own, slab.size(), now);
          }
        }
        if (past_caches) cpu::stream_end();
      });
    });
  }

  void diagonal_adjoint(DType type, const DiagonalDims& d, Pace pace, const void* a_, const void* s_, const void* initial_, const void* g_,
                        const void* carried_, void* ga_, void* gb_, void* ginitial_, double* log2_norm, int* exponent,
                        std::stop_token stop) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      using R = real_t<T>;
      const std::int64_t width = d.width;
      const T* s = as<T>(s_);
      const T* g = as<T>(g_);
      const T* initial = as<T>(initial_);
      T* ga = as<T>(ga_);
      T* gb = as<T>(gb_);
      T* ginitial = as<T>(ginitial_);
      using Wide = std::conditional_t<complex_v<T>, std::complex<double>, double>;
      std::vector<Wide> whole(ga ? static_cast<std::size_t>(d.period) : 0);  // a time-invariant transition's adjoint is a sum over all of time
      /// lambda * 2^power is the adjoint of n entries of s_t from `from` on, all of them of one copy.
      const auto use = [&](std::int64_t t, std::int64_t from, std::int64_t n, const T* __restrict lambda, int power) {
        const bool in_range = std::abs(power) <= (sizeof(R) == 8 ? 1000 : 100);
        const R unit = in_range ? std::ldexp(R(1), power) : R(0);
        const auto add = [&](auto plain) {
          if (gb) {
            T* __restrict to = gb + t * width + from;
            for (std::int64_t i = 0; i < n; ++i) to[i] += plain(lambda[i]);
          }
          if (!ga || (t == 0 && !initial)) return;
          const T* __restrict before = (t ? s + (t - 1) * width : initial) + from;
          if (d.period) {
            Wide* __restrict to = whole.data() + from % d.period;
            for (std::int64_t i = 0; i < n; ++i) to[i] += Wide(plain(lambda[i] * conjugate(before[i])));
          } else {
            T* __restrict to = ga + t * width + from;
            for (std::int64_t i = 0; i < n; ++i) to[i] += plain(lambda[i] * conjugate(before[i]));
          }
        };
        if (power == 0)
          add([](T x) { return x; });
        else if (in_range)
          add([unit](T x) { return unit * x; });
        else
          add([power](T x) { return scaled(x, power); });
      };
      if (pace != Pace::steps) {
        // The adjoint is the same recurrence backwards in time with the transition of the next step.
        std::vector<T> products(static_cast<std::size_t>(d.steps * width)), lambda(static_cast<std::size_t>(d.steps * width));
        for (std::int64_t r = 0; r < d.steps; ++r) {
          const std::int64_t t = d.steps - 1 - r;
          std::copy(g + t * width, g + (t + 1) * width, lambda.begin() + r * width);
          if (r == 0) {
            std::fill(products.begin(), products.begin() + width, T(0));
          } else {
            for_transition(d, as<T>(a_), t + 1, [&](const T* a, std::int64_t from, std::int64_t n) {
              for (std::int64_t i = 0; i < n; ++i) products[static_cast<std::size_t>(r * width + from + i)] = conjugate(a[i]);
            });
          }
        }
        if (carried_)
          for (std::int64_t i = 0; i < width; ++i) lambda[static_cast<std::size_t>(i)] += scaled(as<T>(carried_)[i], exponent ? *exponent : 0);
        parallel_scan(pace, d.steps, width, products.data(), lambda.data(), stop);
        for (std::int64_t t = d.steps - 1; t >= 0; --t) {
          const T* row = lambda.data() + (d.steps - 1 - t) * width;
          for (std::int64_t from = 0, n = d.period ? d.period : width; from < width; from += n) use(t, from, n, row + from, 0);
          if (log2_norm) log2_norm[t] = log2_norm_of(width, row, 0);
        }
        if (ginitial)
          for_transition(d, as<T>(a_), 0, [&](const T* a, std::int64_t from, std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i)
              ginitial[from + i] += conjugate(a[i]) * lambda[static_cast<std::size_t>((d.steps - 1) * width + from + i)];
          });
        if (exponent) *exponent = 0;
        for (std::size_t i = 0; i < whole.size(); ++i) ga[i] += T(whole[i]);
        return;
      }
      const bool past_caches = static_cast<std::size_t>(d.steps * width) * sizeof(T) >= cpu::stream_from;
      const std::int64_t slabs = slab_count(d);
      std::vector<int> powers(static_cast<std::size_t>(slabs), 0);
      std::vector<std::vector<double>> norms(static_cast<std::size_t>(slabs));
      std::vector<std::vector<T>> ends(static_cast<std::size_t>(slabs));
      for_slabs(d, slabs, [&](const Slab& slab) {
        const std::int64_t n = slab.size(), all = slab.copies * n;
        std::vector<T> lambda(static_cast<std::size_t>(all), T{}), fresh(lambda);
        int power = 0;
        if (carried_) {
          for (std::int64_t copy = 0; copy < slab.copies; ++copy) std::copy_n(as<T>(carried_) + slab.at(copy), n, lambda.data() + copy * n);
          power = exponent ? *exponent : 0;
        }
        auto& own_norms = norms[static_cast<std::size_t>(slab.number)];
        if (log2_norm) own_norms.resize(static_cast<std::size_t>(d.steps));
        /// The step from t + 1 to t where lambda and the new term stay near their power of two, which is nearly always: one pass. False with
        /// lambda as it was otherwise.
        const auto near = [&](std::int64_t t) {
          if (std::abs(power) > (sizeof(R) == 8 ? 1000 : 100)) return false;
          Bits<R> own_bits = 0, added_bits = 0;
          for (std::int64_t copy = 0; copy < slab.copies; ++copy) {
            const T* a = as<T>(a_) + (d.period ? slab.first : (t + 1) * width + slab.at(copy));
            if (past_caches && n < width && t >= 3) {
              const std::size_t row = static_cast<std::size_t>(n) * sizeof(T);
              cpu::ask_for(g + (t - 2) * width + slab.at(copy), row);
              if (gb) cpu::ask_for(gb + (t - 2) * width + slab.at(copy), row);
              if (ga) cpu::ask_for(s + (t - 3) * width + slab.at(copy), row);
            }
            adjoint_step(n, t == d.steps - 1 ? nullptr : a, lambda.data() + copy * n, g + t * width + slab.at(copy), std::ldexp(R(1), -power), fresh.data() + copy * n,
                         own_bits, added_bits);
          }
          const int own = exponent_of_bits<R>(own_bits), added = exponent_of_bits<R>(added_bits);
          if (own == infinite_exponent || added == infinite_exponent || (own == no_exponent && power != 0)) return false;
          const int common = std::max(own == no_exponent ? own : own + power, added);
          if (common != no_exponent && std::abs(common - power) > 32) return false;
          std::swap(lambda, fresh);
          return true;
        };
        // Of a time-invariant transition the adjoints of some steps are added up first, so that the long sum in double is gone to seldom.
        std::vector<T> some(ga && d.period ? static_cast<std::size_t>(n) : 0);
        const auto settle = [&] {
          for (std::int64_t i = 0; i < static_cast<std::int64_t>(some.size()); ++i) whole[static_cast<std::size_t>(slab.first + i)] += Wide(some[static_cast<std::size_t>(i)]);
          std::fill(some.begin(), some.end(), T{});
        };
        for (std::int64_t t = d.steps - 1; t >= 0; --t) {
          if (t % 256 == 0 || slab.copies * slab.size() >= worth_a_look) poll(stop);
          if (t % 16 == 0) settle();
          if (near(t)) {
            const T* before = !ga || (t == 0 && !initial) ? nullptr : t ? s + (t - 1) * width : initial;
            for (std::int64_t copy = 0; copy < slab.copies; ++copy) {
              const std::int64_t at = slab.at(copy);
              adjoint_use(n, lambda.data() + copy * n, before ? before + at : nullptr, std::ldexp(R(1), power), gb ? gb + t * width + at : nullptr,
                          d.period ? some.data() : ga ? ga + t * width + at : nullptr);
            }
            if (log2_norm) own_norms[static_cast<std::size_t>(t)] = log2_norm_of(all, lambda.data(), power);
            continue;
          }
          for (std::int64_t copy = 0; copy < slab.copies; ++copy) {
            std::copy_n(g + t * width + slab.at(copy), n, fresh.data() + copy * n);
            if (t == d.steps - 1) continue;
            T* __restrict own = lambda.data() + copy * n;
            const T* __restrict a = as<T>(a_) + (d.period ? slab.first : (t + 1) * width + slab.at(copy));
            for (std::int64_t i = 0; i < n; ++i) own[i] *= conjugate(a[i]);
          }
          // Bring lambda and the new term to a common power of two, the larger one's.
          const int own = exponent_of(all, lambda.data()), added = exponent_of(all, fresh.data());
          if (own == no_exponent) power = 0;
          const int common = own == infinite_exponent || added == infinite_exponent ? power : std::max(own == no_exponent ? own : own + power, added);
          if (common != no_exponent && std::abs(common - power) > 32) {
            for (auto& x : lambda) x = scaled(x, power - common);
            power = common;
          }
          if (added != no_exponent) {
            if (power != 0)
              for (auto& x : fresh) x = scaled(x, -power);
            for (std::int64_t i = 0; i < all; ++i) lambda[static_cast<std::size_t>(i)] += fresh[static_cast<std::size_t>(i)];
          }
          for (std::int64_t copy = 0; copy < slab.copies; ++copy) use(t, slab.at(copy), n, lambda.data() + copy * n, power);
          if (log2_norm) own_norms[static_cast<std::size_t>(t)] = log2_norm_of(all, lambda.data(), power);
        }
        settle();
        powers[static_cast<std::size_t>(slab.number)] = power;
        ends[static_cast<std::size_t>(slab.number)] = std::move(lambda);
      });
      for (std::size_t i = 0; i < whole.size(); ++i) ga[i] += T(whole[i]);
      for (std::int64_t t = 0; log2_norm && t < d.steps; ++t) log2_norm[t] = cpu::joined_norm(norms, static_cast<std::size_t>(t));
      const int out_power = exponent ? *std::max_element(powers.begin(), powers.end()) : 0;
      if (ginitial)
        for_slabs(d, slabs, [&](const Slab& slab) {
          const T* lambda = ends[static_cast<std::size_t>(slab.number)].data();
          const int power = powers[static_cast<std::size_t>(slab.number)] - out_power;
          for (std::int64_t copy = 0; copy < slab.copies; ++copy) {
            const T* a = as<T>(a_) + (d.period ? slab.first : slab.at(copy));
            for (std::int64_t i = 0; i < slab.size(); ++i) ginitial[slab.at(copy) + i] += scaled(conjugate(a[i]) * lambda[copy * slab.size() + i], power);
          }
        });
      if (exponent) *exponent = out_power;
    });
  }

  void outer(DType type, const OuterDims& d, bool attention, const void* q_, const void* k_, const void* v_, const void* initial_, void* o_,
             void* states_, void* final_, std::stop_token stop) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      const std::int64_t size = d.key * d.value;
      // Sums over all of time are kept in double: a long memory in float would lose what its reads differ in.
      std::vector<double> memory(static_cast<std::size_t>(size)), read(static_cast<std::size_t>(d.value));
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
            for (std::int64_t u = 0; u <= t; ++u) {
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
              for (std::int64_t j = 0; j < d.value; ++j) row[j] += key * v[j];
              for (std::int64_t j = 0; j < d.value; ++j) o[j] += query * row[j];
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

  void outer_adjoint(DType type, const OuterDims& d, bool attention, const void* q_, const void* k_, const void* v_, const void* initial_,
                     const void* go_, const void* carried_, void* gq_, void* gk_, void* gv_, void* ginitial_, double* log2_norm,
                     std::stop_token stop) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      const std::int64_t size = d.key * d.value;
      std::vector<double> memory(static_cast<std::size_t>(size));
      std::vector<double> gv(static_cast<std::size_t>(d.value));
      std::vector<double> squares(log2_norm ? static_cast<std::size_t>(d.steps) : 0, 0.0);
      for (std::int64_t h = 0; h < d.heads; ++h) {
        const auto key_at = [&](auto* p, std::int64_t t) { return as<T>(p) + (t * d.heads + h) * d.key; };
        const auto value_at = [&](auto* p, std::int64_t t) { return as<T>(p) + (t * d.heads + h) * d.value; };
        if (attention) {
          // Keys' and values' adjoints are sums over later steps: kept in double until they are whole.
          std::vector<double> gk(static_cast<std::size_t>(d.steps * d.key)), gvs(static_cast<std::size_t>(d.steps * d.value)), gq(static_cast<std::size_t>(d.key));
          for (std::int64_t t = 0; t < d.steps; ++t) {
            poll(stop);
            const T* q = key_at(q_, t);
            const T* go = value_at(go_, t);
            std::fill(gq.begin(), gq.end(), 0.0);
            for (std::int64_t u = 0; u <= t; ++u) {
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
          // What flows through the initial and the final memory.
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
          add_outer(d, key_at(k_, t), value_at(v_, t), memory.data());
          const T* go = value_at(go_, t);
          for (std::int64_t i = 0; i < d.key; ++i) {
            double sum = 0;
            for (std::int64_t j = 0; j < d.value; ++j) sum += memory[static_cast<std::size_t>(i * d.value + j)] * go[j];
            key_at(gq_, t)[i] += static_cast<T>(sum);
          }
        }
        std::fill(memory.begin(), memory.end(), T(0));
        if (carried_) std::copy(as<T>(carried_) + h * size, as<T>(carried_) + (h + 1) * size, memory.begin());
        for (std::int64_t t = d.steps - 1; t >= 0; --t) {
          poll(stop);
          add_outer(d, key_at(q_, t), value_at(go_, t), memory.data());
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
        }
        if (ginitial_)
          for (std::int64_t i = 0; i < size; ++i) as<T>(ginitial_)[h * size + i] += static_cast<T>(memory[static_cast<std::size_t>(i)]);
      }
      for (std::size_t t = 0; t < squares.size(); ++t) log2_norm[t] = 0.5 * std::log2(squares[t]);
    });
  }

  void gated(DType type, const GatedDims& d, const void* q, const void* k, const void* v, const void* log_decay, const void* initial, void* o,
             void* final_state, std::stop_token stop) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      cpu::gated(d, as<T>(q), as<T>(k), as<T>(v), as<T>(log_decay), as<T>(initial), as<T>(o), as<T>(final_state), stop);
    });
  }
  void gated_adjoint(DType type, const GatedDims& d, const void* q, const void* k, const void* v, const void* log_decay, const void* initial,
                     const void* go, const void* gfinal, void* gq, void* gk, void* gv, void* glog_decay, void* ginitial, int* exponent,
                     std::stop_token stop) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      cpu::gated_adjoint(d, as<T>(q), as<T>(k), as<T>(v), as<T>(log_decay), as<T>(initial), as<T>(go), as<T>(gfinal), as<T>(gq), as<T>(gk),
                         as<T>(gv), as<T>(glog_decay), as<T>(ginitial), exponent, stop);
    });
  }

  void selective(DType type, const SelectiveDims& d, const void* dt, const void* a, const void* x, const void* b, const void* c, const void* initial, void* y,
                 void* states, void* final_state, std::stop_token stop) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      cpu::selective(d, as<T>(dt), as<T>(a), as<T>(x), as<T>(b), as<T>(c), as<T>(initial), as<T>(y), as<T>(states), as<T>(final_state), stop);
    });
  }
  void selective_adjoint(DType type, const SelectiveDims& d, const void* dt, const void* a, const void* x, const void* b, const void* c, const void* initial,
                         const void* gy, const void* gstates, const void* carried, void* gdt, void* ga, void* gx, void* gb, void* gc, void* ginitial,
                         double* log2_norm, int* exponent, std::stop_token stop) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      cpu::selective_adjoint(d, as<T>(dt), as<T>(a), as<T>(x), as<T>(b), as<T>(c), as<T>(initial), as<T>(gy), as<T>(gstates), as<T>(carried), as<T>(gdt), as<T>(ga),
                             as<T>(gx), as<T>(gb), as<T>(gc), as<T>(ginitial), log2_norm, exponent, stop);
    });
  }

  void invert_unit_lower(DType type, std::int64_t batch, std::int64_t n, const void* a_, void* x_) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t m = 0; m < batch; ++m) {
        const T* a = as<T>(a_) + m * n * n;
        T* x = as<T>(x_) + m * n * n;
        for (std::int64_t i = 0; i < n; ++i) {  // row i: e_i less the rows above it, as row i of a says
          T* row = x + i * n;
          std::fill(row, row + n, T(0));
          row[i] = T(1);
          for (std::int64_t l = 0; l < i; ++l)
            for (std::int64_t j = 0; j <= l; ++j) row[j] -= a[i * n + l] * x[l * n + j];
        }
      }
    });
  }
  void softmax(DType type, std::int64_t batch, std::int64_t rows, std::int64_t columns, std::int64_t first, const void* low, void* scores) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t r = 0; r < batch * rows; ++r) {
        T* s = as<T>(scores) + r * columns;
        const std::int64_t i = r % rows, from = std::max<std::int64_t>(0, low ? static_cast<std::int64_t>(as<T>(low)[i]) : 0), to = first + i + 1;
        const T largest = from < to ? *std::max_element(s + from, s + to) : T(0);
        double sum = 0;
        for (std::int64_t j = from; j < to; ++j) sum += double(s[j] = fn::exp(s[j] - largest));
        std::fill(s, s + std::min(from, columns), T(0));
        std::fill(s + std::min(to, columns), s + columns, T(0));
        const T scale = sum > 0 ? static_cast<T>(1.0 / sum) : T(0);
        for (std::int64_t j = from; j < to; ++j) s[j] *= scale;
      }
    });
  }
  void softmax_adjoint(DType type, std::int64_t rows, std::int64_t columns, const void* p_, void* g_) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t r = 0; r < rows; ++r) {
        const T* p = as<T>(p_) + r * columns;
        T* g = as<T>(g_) + r * columns;
        double mean = 0;
        for (std::int64_t j = 0; j < columns; ++j) mean += double(p[j]) * g[j];
        for (std::int64_t j = 0; j < columns; ++j) g[j] = p[j] * (g[j] - static_cast<T>(mean));
      }
    });
  }
  void by_distance(DType type, std::int64_t batch, std::int64_t rows, std::int64_t columns, std::int64_t distances, std::int64_t first, const void* far,
                   void* scores) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t r = 0; r < batch * rows; ++r) {
        const std::int64_t own = first + r % rows;
        for (std::int64_t j = std::max<std::int64_t>(0, own - distances + 1); j <= own; ++j) as<T>(scores)[r * columns + j] += as<T>(far)[r * distances + own - j];
      }
    });
  }
  void by_distance_adjoint(DType type, std::int64_t batch, std::int64_t rows, std::int64_t columns, std::int64_t distances, std::int64_t first,
                           const void* gscores, void* gfar) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t r = 0; r < batch * rows; ++r) {
        const std::int64_t own = first + r % rows;
        for (std::int64_t d = 0; d < distances; ++d) as<T>(gfar)[r * distances + d] = d <= own ? as<T>(gscores)[r * columns + own - d] : T(0);
      }
    });
  }
  void keep_columns(DType type, std::int64_t batch, std::int64_t rows, std::int64_t columns, const void* bound, bool from, void* scores) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t r = 0; r < batch * rows; ++r) {
        T* s = as<T>(scores) + r * columns;
        const std::int64_t at = std::clamp<std::int64_t>(static_cast<std::int64_t>(as<T>(bound)[r % rows]), 0, columns);
        if (from)
          std::fill(s, s + at, T(0));
        else
          std::fill(s + at, s + columns, T(0));
      }
    });
  }
  void weigh(DType type, std::int64_t batch, std::int64_t steps, std::int64_t first, std::int64_t rows, std::int64_t columns, const void* row,
             const void* column, const void* row_low, const void* column_low, void* scores) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t r = 0; r < batch * rows; ++r) {
        const std::int64_t b = r / rows, i = first + r % rows;
        T* s = as<T>(scores) + r * columns;
        for (std::int64_t j = 0; j <= i; ++j) s[j] *= fn::exp(as<T>(row)[b * steps + i] + as<T>(column)[b * steps + j] + (as<T>(row_low)[b * steps + i] + as<T>(column_low)[b * steps + j]));
        std::fill(s + i + 1, s + columns, T(0));
      }
    });
  }
  void weigh_adjoint(DType type, std::int64_t batch, std::int64_t steps, std::int64_t first, std::int64_t rows, std::int64_t columns, const void* row,
                     const void* column, const void* row_low, const void* column_low, const void* p, void* g, void* grow, void* gcolumn) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      for (std::int64_t r = 0; r < batch * rows; ++r) {
        const std::int64_t b = r / rows, i = first + r % rows;
        T* own = as<T>(g) + r * columns;
        double sum = 0;
        for (std::int64_t j = 0; j <= i; ++j) {
          const T both = as<T>(p)[r * columns + j] * own[j];
          sum += both;
          if (gcolumn) as<T>(gcolumn)[b * steps + j] += both;
          own[j] *= fn::exp(as<T>(row)[b * steps + i] + as<T>(column)[b * steps + j] + (as<T>(row_low)[b * steps + i] + as<T>(column_low)[b * steps + j]));
        }
        if (grow) as<T>(grow)[b * steps + i] += static_cast<T>(sum);
        std::fill(own + i + 1, own + columns, T(0));
      }
    });
  }

  void vandermonde(DType complex, std::int64_t channels, std::int64_t modes, std::int64_t steps, const void* w_, const void* a_,
                   void* kernel_) override {
    with_real(real_of(complex), [&](auto zero) {
      using T = std::complex<decltype(zero)>;
      using Wide = std::complex<double>;  // powers and sums over all of time
      std::vector<Wide> power, a;
      for (std::int64_t c = 0; c < channels; ++c) {
        T* kernel = as<T>(kernel_) + c * steps;
        power.assign(as<T>(w_) + c * modes, as<T>(w_) + (c + 1) * modes);
        a.assign(as<T>(a_) + c * modes, as<T>(a_) + (c + 1) * modes);
        for (std::int64_t t = 0; t < steps; ++t) {
          if (t % 256 == 0) check_stop();
          Wide sum{};
          for (std::int64_t n = 0; n < modes; ++n) {
            sum += power[static_cast<std::size_t>(n)];
            power[static_cast<std::size_t>(n)] *= a[static_cast<std::size_t>(n)];
          }
          kernel[t] = T(sum);
        }
      }
    });
  }
  void vandermonde_adjoint(DType complex, std::int64_t channels, std::int64_t modes, std::int64_t steps, const void* w_, const void* a_,
                           const void* gkernel_, void* gw_, void* ga_) override {
    with_real(real_of(complex), [&](auto zero) {
      using T = std::complex<decltype(zero)>;
      // Horner backwards in time: value = sum_k g_k conj(a)^k and its derivative sum_k k g_k conj(a)^(k-1).
      for (std::int64_t c = 0; c < channels; ++c) {
        const T* g = as<T>(gkernel_) + c * steps;
        for (std::int64_t n = 0; n < modes; ++n) {
          const std::complex<double> a(std::conj(as<T>(a_)[c * modes + n])), w(std::conj(as<T>(w_)[c * modes + n]));
          std::complex<double> value{}, slope{};
          check_stop();
          for (std::int64_t t = steps - 1; t >= 0; --t) {
            slope = slope * a + value;
            value = value * a + std::complex<double>(g[t]);
          }
          if (gw_) as<T>(gw_)[c * modes + n] += T(value);
          if (ga_) as<T>(ga_)[c * modes + n] += T(w * slope);
        }
      }
    });
  }

  std::size_t spectrum_size(DType type, std::int64_t steps, std::int64_t channels) override {
    if (is_complex(type)) return 0;
    return static_cast<std::size_t>(type == DType::f32 ? cpu::spectrum_size<float>(steps, channels) : cpu::spectrum_size<double>(steps, channels)) * bytes_of(type);
  }
  void spectrum(DType type, std::int64_t steps, std::int64_t channels, const void* kernel, void* spectrum) override {
    if (is_complex(type)) return;
    with_real(type, [&](auto zero) { cpu::spectrum(steps, channels, as<decltype(zero)>(kernel), as<decltype(zero)>(spectrum)); });
  }
  void convolve_with(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel, const void* spectrum, const void* u,
                     void* y) override {
    if (is_complex(type)) return convolve(type, steps, batch, channels, kernel, u, y);
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      cpu::convolve(steps, batch, channels, as<T>(kernel), as<T>(spectrum), as<T>(u), as<T>(y));
    });
  }
  void convolve_adjoint_with(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel, const void* spectrum,
                             const void* u, const void* gy, void* gkernel, void* gu) override {
    if (is_complex(type)) return convolve_adjoint(type, steps, batch, channels, kernel, u, gy, gkernel, gu);
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      cpu::convolve_adjoint(steps, batch, channels, as<T>(kernel), as<T>(spectrum), as<T>(u), as<T>(gy), as<T>(gkernel), as<T>(gu));
    });
  }
  void convolve(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel, const void* u,
                void* y) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!complex_v<T>) {
        cpu::convolve<T>(steps, batch, channels, as<T>(kernel), nullptr, as<T>(u), as<T>(y));
      } else {
        std::vector<std::complex<double>> k, x;
        const Fourier& fft = fourier(steps);
        for (std::int64_t c = 0; c < channels; ++c) {
          check_stop();
          load(as<T>(kernel) + c * steps, 1, steps, fft.size, k);
          fft.forward(k);
          for (std::int64_t b = 0; b < batch; ++b) {
            load(as<T>(u) + b * channels + c, batch * channels, steps, fft.size, x);
            fft.forward(x);
            for (std::size_t i = 0; i < x.size(); ++i) x[i] *= k[i];
            fft.backward(x);
            store(x, 1.0 / static_cast<double>(fft.size), as<T>(y) + b * channels + c, batch * channels, steps, false);
          }
        }
      }
    });
  }
  void convolve_adjoint(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel, const void* u,
                        const void* gy, void* gkernel, void* gu) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!complex_v<T>) {
        cpu::convolve_adjoint<T>(steps, batch, channels, as<T>(kernel), nullptr, as<T>(u), as<T>(gy), as<T>(gkernel), as<T>(gu));
      } else {
        std::vector<std::complex<double>> k, x, g, sum;
        const Fourier& fft = fourier(steps);
        const double unit = 1.0 / static_cast<double>(fft.size);
        for (std::int64_t c = 0; c < channels; ++c) {
          check_stop();
          load(as<T>(kernel) + c * steps, 1, steps, fft.size, k);
          fft.forward(k);
          sum.assign(static_cast<std::size_t>(fft.size), {});
          for (std::int64_t b = 0; b < batch; ++b) {
            load(as<T>(gy) + b * channels + c, batch * channels, steps, fft.size, g);
            fft.forward(g);
            if (gkernel) {
              load(as<T>(u) + b * channels + c, batch * channels, steps, fft.size, x);
              fft.forward(x);
              for (std::size_t i = 0; i < x.size(); ++i) sum[i] += g[i] * std::conj(x[i]);
            }
            if (gu) {
              for (std::size_t i = 0; i < g.size(); ++i) g[i] *= std::conj(k[i]);
              fft.backward(g);
              store(g, unit, as<T>(gu) + b * channels + c, batch * channels, steps, true);
            }
          }
          if (gkernel) {
            fft.backward(sum);
            store(sum, unit, as<T>(gkernel) + c * steps, 1, steps, true);
          }
        }
      }
    });
  }

 private:
  /// Complex transforms of one length.
  struct Fourier {
    std::int64_t size;
    fftw_plan there, back;
    static fftw_complex* raw(std::vector<std::complex<double>>& x) { return reinterpret_cast<fftw_complex*>(x.data()); }
    void forward(std::vector<std::complex<double>>& x) const { fftw_execute_dft(there, raw(x), raw(x)); }
    void backward(std::vector<std::complex<double>>& x) const { fftw_execute_dft(back, raw(x), raw(x)); }
  };
  std::map<std::int64_t, Fourier> plans_;

  const Fourier& fourier(std::int64_t steps) {
    std::int64_t size = 1;
    while (size < 2 * steps) size *= 2;
    const std::lock_guard lock(cpu::planner());
    const auto found = plans_.find(size);
    if (found != plans_.end()) return found->second;
    std::vector<std::complex<double>> scratch(static_cast<std::size_t>(size));
    const unsigned flags = FFTW_ESTIMATE | FFTW_UNALIGNED;
    const Fourier plan{size, fftw_plan_dft_1d(static_cast<int>(size), Fourier::raw(scratch), Fourier::raw(scratch), FFTW_FORWARD, flags),
                       fftw_plan_dft_1d(static_cast<int>(size), Fourier::raw(scratch), Fourier::raw(scratch), FFTW_BACKWARD, flags)};
    return plans_.emplace(size, plan).first->second;
  }

  template <class T>
  static void load(const T* from, std::int64_t stride, std::int64_t n, std::int64_t size, std::vector<std::complex<double>>& to) {
    to.assign(static_cast<std::size_t>(size), {});
    for (std::int64_t i = 0; i < n; ++i) to[static_cast<std::size_t>(i)] = std::complex<double>(from[i * stride]);
  }
  template <class T>
  static void store(const std::vector<std::complex<double>>& from, double unit, T* to, std::int64_t stride, std::int64_t n, bool add) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::complex<double> value = from[static_cast<std::size_t>(i)] * unit;
      const T result(static_cast<real_t<T>>(value.real()), static_cast<real_t<T>>(value.imag()));
      to[i * stride] = add ? to[i * stride] + result : result;
    }
  }

  template <class F>
  static void move(DType type, const Strided& shape, F&& row, void* strided, void* dense) {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      const std::int64_t inner = shape.rank ? shape.size[shape.rank - 1] : 1, stride = shape.rank ? shape.stride[shape.rank - 1] : 1;
      for_rows(shape, [&](std::int64_t at, std::int64_t to) { row(as<T>(strided) + at, as<T>(dense) + to, inner, stride); });
    });
  }

  /// Calls f(from, to) for pieces of about `piece` entries that are independent of each other, on all processors where there are more than
  /// two. Pieces begin at multiples of `unit`.
  template <class F>
  static void in_pieces(std::int64_t n, std::int64_t unit, std::int64_t piece, const F& f) {
    const std::int64_t size = (piece + unit - 1) / unit * unit;
    if (n <= 2 * size) {
      if (n) f(std::int64_t{0}, n);
      return;
    }
    cpu::parallel((n + size - 1) / size, [&](std::int64_t i) { f(i * size, std::min(n, (i + 1) * size)); });
  }
  /// So many entries of an operation take as long as several rendezvous of threads.
  static constexpr std::int64_t piece_of_sums = std::int64_t{1} << 13, piece_of_exponentials = std::int64_t{1} << 11;
  template <class Op>
  static constexpr std::int64_t piece_of = std::is_same_v<Op, fn::Affine> || std::is_same_v<Op, fn::Square> || std::is_same_v<Op, fn::Relu> || std::is_same_v<Op, fn::Abs> ||
                                                   std::is_same_v<Op, fn::Sign> || std::is_same_v<Op, fn::Floor>
                                               ? piece_of_sums
                                               : piece_of_exponentials;

  /// Columns of a diagonal recurrence that one thread goes through all of time with: the same [first, last) of each copy of a
  /// time-invariant transition. How many there are depends on the sizes alone, so the bits do not depend on the machine.
  struct Slab {
    std::int64_t number, first, last, copies, period;
    std::int64_t size() const { return last - first; }
    std::int64_t at(std::int64_t copy) const { return copy * period + first; }
  };
  static std::int64_t slab_count(const DiagonalDims& d) {
    const std::int64_t columns = d.period ? d.period : d.width;
    return d.steps * d.width < std::int64_t{1} << 17 ? 1 : std::clamp<std::int64_t>(columns / 256, 1, 8);
  }
  template <class F>
  static void for_slabs(const DiagonalDims& d, std::int64_t slabs, const F& f) {
    const std::int64_t columns = d.period ? d.period : d.width;
    if (columns == 0) return;
    cpu::parallel(slabs, [&](std::int64_t i) { f(Slab{i, i * columns / slabs, (i + 1) * columns / slabs, d.width / columns, columns}); });
  }
  template <class T, class F>
  static void for_transition(const DiagonalDims& d, const T* a, std::int64_t t, F&& f) {
    if (!d.period) {
      f(a + t * d.width, std::int64_t{0}, d.width);
    } else {
      for (std::int64_t from = 0; from < d.width; from += d.period) f(a, from, d.period);
    }
  }
  template <class T>
  static void spread(const DiagonalDims& d, const T* a, std::int64_t first, std::int64_t last, T* to) {
    for (std::int64_t t = first; t < last; ++t)
      for_transition(d, a, t, [&](const T* row, std::int64_t from, std::int64_t n) { std::copy(row, row + n, to + (t - first) * d.width + from); });
  }
  template <class T>
  static void add_outer(const OuterDims& d, const T* k, const T* v, double* memory) {
    for (std::int64_t i = 0; i < d.key; ++i) {
      const double key = k[i];
      for (std::int64_t j = 0; j < d.value; ++j) memory[i * d.value + j] += key * v[j];
    }
  }
  template <class T>
  static void narrow(const std::vector<double>& from, T* to) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<T>(from[i]);
  }
};

}  // namespace

Backend& cpu_backend() {
  static CpuBackend backend;
  return backend;
}

Broadcast broadcast(const Shape& x, const Shape& y, Shape& result) {
  const std::size_t rank = std::max(x.size(), y.size());
  result.assign(rank, 1);
  std::vector<std::int64_t> sx(rank, 0), sy(rank, 0);
  std::int64_t run_x = 1, run_y = 1;
  for (std::size_t i = rank; i-- > 0;) {
    const std::size_t back = rank - i;
    const std::int64_t nx = back <= x.size() ? x[x.size() - back] : 1, ny = back <= y.size() ? y[y.size() - back] : 1;
    assert(nx == ny || nx == 1 || ny == 1);
    result[i] = std::max(nx, ny);
    if (nx == 0 || ny == 0) result[i] = 0;
    sx[i] = nx == 1 ? 0 : run_x;
    sy[i] = ny == 1 ? 0 : run_y;
    run_x *= nx;
    run_y *= ny;
  }
  Broadcast merged;
  merged.elements = count(result);
  for (std::size_t i = 0; i < rank; ++i) {
    if (result[i] == 1) continue;
    const int last = merged.rank - 1;
    if (merged.rank && merged.stride_x[last] == sx[i] * result[i] && merged.stride_y[last] == sy[i] * result[i]) {
      merged.size[last] *= result[i];
      merged.stride_x[last] = sx[i];
      merged.stride_y[last] = sy[i];
    } else {
      assert(merged.rank < 6);
      merged.size[merged.rank] = result[i];
      merged.stride_x[merged.rank] = sx[i];
      merged.stride_y[merged.rank] = sy[i];
      ++merged.rank;
    }
  }
  return merged;
}

}  // namespace reclab
