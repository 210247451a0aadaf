// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/cpu/cpu_backend.h"
#include "array/demand.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "array/cpu/processor/pieces.h"
#include "array/functions.h"

namespace reclab::cpu {
namespace {

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
    case Unary::normal_cdf: f(fn::NormalCdf{}); break;
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

template <class Op>
constexpr std::int64_t piece_of = std::is_same_v<Op, fn::Affine> || std::is_same_v<Op, fn::Square> || std::is_same_v<Op, fn::Relu> ||
                                          std::is_same_v<Op, fn::Abs> || std::is_same_v<Op, fn::Sign> || std::is_same_v<Op, fn::Floor>
                                      ? piece_of_sums
                                      : piece_of_exponentials;

std::int64_t row_count(const Broadcast& shape) {
  const std::int64_t inner = shape.rank ? shape.size[shape.rank - 1] : 1;
  return inner ? shape.elements / inner : 0;
}
/// Visits the innermost rows [first, last) of a broadcast: f(z offset, x offset, y offset).
template <class F>
void for_rows(const Broadcast& shape, std::int64_t first, std::int64_t last, F&& f) {
  if (first >= last) return;  // an axis may have no entries, and nothing is divided by its size
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

}  // namespace

void CpuBackend::add_scaled(DType type, std::int64_t n, int power, const void* x_, void* y_, bool accumulate) {
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

void CpuBackend::unary(Unary op, DType type, std::int64_t n, const void* x_, void* y_, double p, double q) {
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
        RECLAB_DEMAND(!"not an operation of complex arrays");
      }
    });
  });
}

void CpuBackend::unary_adjoint(Unary op, DType type, std::int64_t n, const void* x_, const void* y_, const void* gy_, void* gx_, double p,
                               double q) {
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

void CpuBackend::binary(Binary op, DType type, const Broadcast& shape, const void* x_, const void* y_, void* z_) {
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
        in_pieces(shape.elements, std::max<std::int64_t>(inner, 1), piece_of_sums,
                  [&](std::int64_t from, std::int64_t to) { some_rows(from / inner, to / inner, size); });
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

void CpuBackend::binary_adjoint(Binary op, DType type, const Broadcast& shape, const void* x_, const void* y_, const void* gz_, void* gx_,
                                void* gy_) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    with_binary(op, [&](auto f) {
      using Op = decltype(f);
      const std::int64_t inner = shape.rank ? shape.size[shape.rank - 1] : 1;
      const std::int64_t sx = shape.rank ? shape.stride_x[shape.rank - 1] : 0, sy = shape.rank ? shape.stride_y[shape.rank - 1] : 0;
      /// Columns [from, to) of every row: sums over rows keep their order however the columns are cut.
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

void CpuBackend::join(DType complex, std::int64_t n, const void* real, const void* imag, void* z) {
  with_real(real_of(complex), [&](auto zero) {
    using T = decltype(zero);
    in_pieces(n, 64, piece_of_sums, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i) as<std::complex<T>>(z)[i] = {as<T>(real)[i], as<T>(imag)[i]};
    });
  });
}
void CpuBackend::join_adjoint(DType complex, std::int64_t n, const void* gz, void* greal, void* gimag) {
  with_real(real_of(complex), [&](auto zero) {
    using T = decltype(zero);
    const auto* g = as<std::complex<T>>(gz);
    in_pieces(n, 64, piece_of_sums, [&](std::int64_t from, std::int64_t to) {
      if (greal)
        for (std::int64_t i = from; i < to; ++i) as<T>(greal)[i] += g[i].real();
      if (gimag)
        for (std::int64_t i = from; i < to; ++i) as<T>(gimag)[i] += g[i].imag();
    });
  });
}
void CpuBackend::part(DType complex, int which, std::int64_t n, const void* z, void* y) {
  with_real(real_of(complex), [&](auto zero) {
    using T = decltype(zero);
    in_pieces(n, 64, piece_of_sums, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i) as<T>(y)[i] = which ? as<std::complex<T>>(z)[i].imag() : as<std::complex<T>>(z)[i].real();
    });
  });
}
void CpuBackend::part_adjoint(DType complex, int which, std::int64_t n, const void* gy, void* gz) {
  with_real(real_of(complex), [&](auto zero) {
    using T = decltype(zero);
    T* g = as<T>(gz);
    in_pieces(n, 64, piece_of_sums, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i) g[2 * i + which] += as<T>(gy)[i];
    });
  });
}

}  // namespace reclab::cpu
