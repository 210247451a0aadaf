// SPDX-License-Identifier: GPL-3.0-or-later
// Elementwise functions and arithmetic, and the parts of complex numbers.
#pragma once

#include "array/cuda/kernel_backend.h"
#include "array/cuda/reduce.h"

namespace reclab::kernel {

// ---- Kernels -----------------------------------------------------------------------------------------------------------------------

template <class T, class F>
RECLAB_HD inline T with_unary(Unary op, F f) {
  if constexpr (complex_v<T>) {
    switch (op) {
      case Unary::exp: return f(fn::Exp{});
      case Unary::square: return f(fn::Square{});
      case Unary::reciprocal: return f(fn::Reciprocal{});
      case Unary::mean_exp: return f(fn::MeanExp{});
      default: return f(fn::Affine{});
    }
  } else {
    switch (op) {
      case Unary::affine: return f(fn::Affine{});
      case Unary::exp: return f(fn::Exp{});
      case Unary::log: return f(fn::Log{});
      case Unary::sqrt: return f(fn::Sqrt{});
      case Unary::square: return f(fn::Square{});
      case Unary::reciprocal: return f(fn::Reciprocal{});
      case Unary::sigmoid: return f(fn::Sigmoid{});
      case Unary::tanh: return f(fn::Tanh{});
      case Unary::relu: return f(fn::Relu{});
      case Unary::softplus: return f(fn::Softplus{});
      case Unary::silu: return f(fn::Silu{});
      case Unary::gelu: return f(fn::Gelu{});
      case Unary::gelu_tanh: return f(fn::GeluTanh{});
      case Unary::normal_cdf: return f(fn::NormalCdf{});
      case Unary::elu: return f(fn::Elu{});
      case Unary::abs: return f(fn::Abs{});
      case Unary::sign: return f(fn::Sign{});
      case Unary::sin: return f(fn::Sin{});
      case Unary::cos: return f(fn::Cos{});
      case Unary::log_sigmoid: return f(fn::LogSigmoid{});
      case Unary::floor: return f(fn::Floor{});
      case Unary::mean_exp: return f(fn::MeanExp{});
    }
    return T{};
  }
}
template <class T, class F>
RECLAB_HD inline T with_binary(Binary op, F f) {
  switch (op) {
    case Binary::add: return f(fn::Add{});
    case Binary::subtract: return f(fn::Subtract{});
    case Binary::multiply: return f(fn::Multiply{});
    case Binary::divide: return f(fn::Divide{});
    case Binary::maximum: return f(fn::Maximum{});
  }
  return T{};
}

template <class R>
struct AddScaled {
  const R* x;
  R* y;
  R factor;
  int power;
  bool by_factor, accumulate;
  RECLAB_HD void operator()(Index i) const {
    const R value = by_factor ? factor * x[i] : scaled(x[i], power);
    y[i] = accumulate ? y[i] + value : value;
  }
};

template <class T>
struct UnaryValue {
  Unary op;
  const T* x;
  T* y;
  double p, q;
  RECLAB_HD void operator()(Index i) const {
    const T at = x[i];
    if constexpr (complex_v<T>) {
      if (op == Unary::exp) {
        const real_t<T> magnitude = fn::exp(at.re);
        y[i] = {magnitude * std::cos(at.im), magnitude * std::sin(at.im)};
        return;
      }
      y[i] = op == Unary::square       ? at * at
             : op == Unary::reciprocal ? fn::quotient(T(1), at)
             : op == Unary::mean_exp   ? fn::MeanExp::value(at, p, q)
                                       : fn::Affine::value(at, p, q);
    } else {
      y[i] = with_unary<T>(op, [=, this](auto f) { return decltype(f)::value(at, p, q); });
    }
  }
};
template <class T>
struct UnaryAdjoint {
  Unary op;
  const T *x, *y, *gy;
  T* gx;
  double p, q;
  RECLAB_HD void operator()(Index i) const {
    const T from = x[i], to = y[i];
    gx[i] += gy[i] * conjugate(with_unary<T>(op, [=, this](auto f) { return decltype(f)::slope(from, to, p, q); }));
  }
};

template <class T>
struct BinaryValue {
  Binary op;
  Broadcast shape;
  const T *x, *y;
  T* z;
  RECLAB_HD void operator()(Index i) const {
    Index rest = i, at_x = 0, at_y = 0;
    for (int d = shape.rank - 1; d >= 0; --d) {
      const Index digit = d ? rest % shape.size[d] : rest;
      if (d) rest /= shape.size[d];
      at_x += digit * shape.stride_x[d];
      at_y += digit * shape.stride_y[d];
    }
    const T u = x[at_x], v = y[at_y];
    z[i] = with_binary<T>(op, [=](auto f) { return decltype(f)::value(u, v); });
  }
};

template <class R>
struct Join {
  const R *real, *imag;
  Complex<R>* z;
  RECLAB_HD void operator()(Index i) const { z[i] = {real[i], imag[i]}; }
};
/// Every second number of an array of pairs, to or from a dense one.
template <class R>
struct TakePart {
  const R* pairs;
  R* dense;
  bool accumulate;
  RECLAB_HD void operator()(Index i) const { dense[i] = accumulate ? dense[i] + pairs[2 * i] : pairs[2 * i]; }
};
template <class R>
struct AddPart {
  const R* dense;
  R* pairs;
  RECLAB_HD void operator()(Index i) const { pairs[2 * i] += dense[i]; }
};

/// Some of a broadcast's dimensions, with the strides of both operands and of the result.
struct Axes {
  int rank = 0;
  Index size[6] = {}, stride_x[6] = {}, stride_y[6] = {}, stride_z[6] = {};
  Index elements = 1;
};
/// One operand's adjoint: o counts the operand's own elements, r those of the result that it was repeated to.
template <class T>
struct BinaryTerm {
  Binary op;
  bool of_y;
  Axes kept, repeated;
  const T *x, *y, *gz;
  RECLAB_HD T operator()(Index o, Index r) const {
    Index at_x = 0, at_y = 0, at_z = 0;
    for (int part = 0; part < 2; ++part) {
      const Axes& axes = part ? repeated : kept;
      Index rest = part ? r : o;
      for (int d = axes.rank - 1; d >= 0; --d) {
        const Index digit = d ? rest % axes.size[d] : rest;
        if (d) rest /= axes.size[d];
        at_x += digit * axes.stride_x[d];
        at_y += digit * axes.stride_y[d];
        at_z += digit * axes.stride_z[d];
      }
    }
    const T u = x[at_x], v = y[at_y];
    const bool second = of_y;
    const T slope = with_binary<T>(op, [=](auto f) { return second ? decltype(f)::slope_y(u, v) : decltype(f)::slope_x(u, v); });
    return gz[at_z] * conjugate(slope);
  }
};

// ---- Launches ----------------------------------------------------------------------------------------------------------------------

template <class Machine>
void KernelBackend<Machine>::add_scaled(DType type, Index n, int power, const void* x, void* y, bool accumulate) {
  with_real(real_of(type), [&](auto zero) {
    using T = decltype(zero);
    const bool by_factor = std::abs(power) <= (sizeof(T) == 8 ? 1000 : 100);
    machine_.each(is_complex(type) ? 2 * n : n,
                  AddScaled<T>{as<T>(x), as<T>(y), by_factor ? std::ldexp(T(1), power) : T(0), power, by_factor, accumulate});
  });
}

template <class Machine>
void KernelBackend<Machine>::unary(Unary op, DType type, Index n, const void* x, void* y, double p, double q) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    machine_.each(n, UnaryValue<T>{op, as<T>(x), as<T>(y), p, q});
  });
}

template <class Machine>
void KernelBackend<Machine>::unary_adjoint(Unary op, DType type, Index n, const void* x, const void* y, const void* gy, void* gx, double p,
                                           double q) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    machine_.each(n, UnaryAdjoint<T>{op, as<T>(x), as<T>(y), as<T>(gy), as<T>(gx), p, q});
  });
}

template <class Machine>
void KernelBackend<Machine>::binary(Binary op, DType type, const Broadcast& shape, const void* x, const void* y, void* z) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    machine_.each(shape.elements, BinaryValue<T>{op, shape, as<T>(x), as<T>(y), as<T>(z)});
  });
}

template <class Machine>
void KernelBackend<Machine>::binary_adjoint(Binary op, DType type, const Broadcast& shape, const void* x, const void* y, const void* gz,
                                            void* gx, void* gy) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (const bool of_y : {false, true}) {
      void* g = of_y ? gy : gx;
      if (!g) continue;
      BinaryTerm<T> term{op, of_y, {}, {}, as<T>(x), as<T>(y), as<T>(gz)};
      Index run = shape.elements;
      for (int d = 0; d < shape.rank && run; ++d) {
        run /= shape.size[d];
        Axes& axes = (of_y ? shape.stride_y[d] : shape.stride_x[d]) ? term.kept : term.repeated;
        axes.size[axes.rank] = shape.size[d];
        axes.stride_x[axes.rank] = shape.stride_x[d];
        axes.stride_y[axes.rank] = shape.stride_y[d];
        axes.stride_z[axes.rank] = run;
        axes.elements *= shape.size[d];
        ++axes.rank;
      }
      if (shape.elements) reduce(term, term.kept.elements, term.repeated.elements, as<T>(g), 1.0, true);
    }
  });
}

template <class Machine>
void KernelBackend<Machine>::join(DType complex, Index n, const void* real, const void* imag, void* z) {
  with_real(real_of(complex), [&](auto zero) {
    using T = decltype(zero);
    machine_.each(n, Join<T>{as<T>(real), as<T>(imag), as<Complex<T>>(z)});
  });
}
template <class Machine>
void KernelBackend<Machine>::join_adjoint(DType complex, Index n, const void* gz, void* greal, void* gimag) {
  with_real(real_of(complex), [&](auto zero) {
    using T = decltype(zero);
    if (greal) machine_.each(n, TakePart<T>{as<T>(gz), as<T>(greal), true});
    if (gimag) machine_.each(n, TakePart<T>{as<T>(gz) + 1, as<T>(gimag), true});
  });
}
template <class Machine>
void KernelBackend<Machine>::part(DType complex, int which, Index n, const void* z, void* y) {
  with_real(real_of(complex), [&](auto zero) {
    using T = decltype(zero);
    machine_.each(n, TakePart<T>{as<T>(z) + which, as<T>(y), false});
  });
}
template <class Machine>
void KernelBackend<Machine>::part_adjoint(DType complex, int which, Index n, const void* gy, void* gz) {
  with_real(real_of(complex), [&](auto zero) {
    using T = decltype(zero);
    machine_.each(n, AddPart<T>{as<T>(gy), as<T>(gz) + which});
  });
}

}  // namespace reclab::kernel
