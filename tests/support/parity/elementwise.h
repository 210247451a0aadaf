// SPDX-License-Identifier: GPL-3.0-or-later
// Functions and arithmetic of entries, and the parts of complex numbers.
#pragma once

#include <map>
#include <utility>

#include "parity/parity.h"

namespace reclab::test {

inline void unary_parity(Backend& other) {
  const std::map<std::string, Unary> operations{{"affine", Unary::affine},
                                                {"exp", Unary::exp},
                                                {"log", Unary::log},
                                                {"sqrt", Unary::sqrt},
                                                {"square", Unary::square},
                                                {"reciprocal", Unary::reciprocal},
                                                {"sigmoid", Unary::sigmoid},
                                                {"tanh", Unary::tanh},
                                                {"relu", Unary::relu},
                                                {"softplus", Unary::softplus},
                                                {"silu", Unary::silu},
                                                {"gelu", Unary::gelu},
                                                {"gelu_tanh", Unary::gelu_tanh},
                                                {"normal_cdf", Unary::normal_cdf},
                                                {"elu", Unary::elu},
                                                {"mean_exp", Unary::mean_exp},
                                                {"abs", Unary::abs},
                                                {"sign", Unary::sign},
                                                {"sin", Unary::sin},
                                                {"cos", Unary::cos},
                                                {"log_sigmoid", Unary::log_sigmoid},
                                                {"floor", Unary::floor}};
  for (const DType type : every_type)
    for (const auto& [name, op] : operations) {
      if (is_complex(type) && op != Unary::affine && op != Unary::exp && op != Unary::square && op != Unary::reciprocal &&
          op != Unary::mean_exp)
        continue;
      const bool positive = op == Unary::log || op == Unary::sqrt || op == Unary::reciprocal;
      for (const std::int64_t n : {1, 31, 32, 33, 1023, 1024, 1025}) {
        Parity parity(other, 1);
        const std::size_t x = parity.array(type, n, positive ? 0.3 : -4.0, 4.0), y = parity.array(type, n), gy = parity.array(type, n),
                          gx = parity.array(type, n);
        try {
          parity.run([&, operation = op, kind = type](Backend& b, const Parity::Pointers& p, Parity::Host&) {
            b.unary(operation, kind, n, p[x], p[y], 1.5, -0.25);
            b.unary_adjoint(operation, kind, n, p[x], p[y], p[gy], p[gx], 1.5, -0.25);
            return 0;
          });
        } catch (const Failure& failure) {
          throw Failure(name + " " + name_of(type) + ", " + std::to_string(n) + " of them: " + failure.what());
        }
      }
    }
}

/// exp, tanh and the like far out, where they end at 0, at 1 or at infinity.
inline void extreme_parity(Backend& other) {
  const std::vector<double> far{-1000.0, -720.0, -100.0, -88.5, -40.0, 0.0, -0.0, 1e-30, 40.0, 87.0, 700.0};
  for (const Unary op :
       {Unary::exp, Unary::sigmoid, Unary::tanh, Unary::softplus, Unary::silu, Unary::gelu, Unary::normal_cdf, Unary::elu, Unary::relu})
    for (const DType type : real_types) {
      std::vector<double> at;
      for (const double x : far)
        if (op != Unary::exp || type == DType::f64 || x < 88.0) at.push_back(x);
      Parity parity(other, 2);
      const std::size_t x = parity.array(type, at), y = parity.array(type, static_cast<std::int64_t>(at.size()));
      parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
        b.unary(op, type, static_cast<std::int64_t>(at.size()), p[x], p[y], 0.0, 0.0);
        return 0;
      });
    }
}

inline void binary_parity(Backend& other) {
  const std::vector<std::pair<Shape, Shape>> pairs{{{7, 5}, {7, 5}}, {{7, 5}, {5}},  {{5}, {7, 5}},          {{7, 1}, {7, 5}},
                                                   {{1}, {9, 11}},   {{9, 11}, {}},  {{6, 1, 4}, {1, 3, 4}}, {{3, 1, 5, 1}, {1, 4, 1, 6}},
                                                   {{5000, 3}, {3}}, {{20000}, {1}}, {{2, 3000}, {2, 1}},    {{0, 4}, {4}},
                                                   {{1}, {1}}};
  for (const DType type : every_type)
    for (const Binary op : {Binary::add, Binary::subtract, Binary::multiply, Binary::divide, Binary::maximum})
      for (const auto& [left, right] : pairs) {
        if (is_complex(type) && op == Binary::maximum) continue;
        Shape result;
        const Broadcast shape = broadcast(left, right, result);
        Parity parity(other, 3);
        const std::size_t x = parity.array(type, count(left)), y = parity.array(type, count(right), 0.5, 2.0),
                          z = parity.array(type, count(result)), gz = parity.array(type, count(result)),
                          gx = parity.array(type, count(left)), gy = parity.array(type, count(right));
        try {
          parity.run(
              [&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
                b.binary(op, type, shape, p[x], p[y], p[z]);
                b.binary_adjoint(op, type, shape, p[x], p[y], p[gz], p[gx], nullptr);
                b.binary_adjoint(op, type, shape, p[x], p[y], p[gz], p[gx], p[gy]);
                return 0;
              },
              0, type == DType::f32 || type == DType::c64 ? 1e-4 : 0.0);  // the CPU adds thousands of floats one after the other
        } catch (const Failure& failure) {
          throw Failure("operation " + std::to_string(static_cast<int>(op)) + ", " + name_of(type) + ", " + to_string(left) + " and " +
                        to_string(right) + ": " + failure.what());
        }
      }
}

inline void part_parity(Backend& other) {
  for (const DType type : {DType::c64, DType::c128}) {
    const DType real = real_of(type);
    const std::int64_t n = 333;
    Parity parity(other, 7);
    const std::size_t re = parity.array(real, n), im = parity.array(real, n), z = parity.array(type, n), gz = parity.array(type, n);
    parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
      b.join(type, n, p[re], p[im], p[z]);
      b.join_adjoint(type, n, p[gz], p[re], nullptr);
      b.join_adjoint(type, n, p[gz], p[re], p[im]);
      b.part(type, 0, n, p[gz], p[im]);
      b.part_adjoint(type, 0, n, p[re], p[z]);
      b.part_adjoint(type, 1, n, p[im], p[z]);
      b.part(type, 1, n, p[z], p[re]);
      return 0;
    });
  }
}

inline void add_scaled_parity(Backend& other) {
  for (const DType type : every_type)
    for (const int power : {0, 3, -40, 120, -130, 1050, -1060})
      for (const bool accumulate : {false, true}) {
        if (real_of(type) == DType::f32 && power > 240) continue;
        const int largest = real_of(type) == DType::f32 ? 120 : 1000;
        const double unit = std::ldexp(1.0, std::clamp(-power, -largest, largest));
        Parity parity(other, 8);
        const std::size_t x = parity.array(type, 500, -unit, unit), y = parity.array(type, 500);
        parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
          b.add_scaled(type, 500, power, p[x], p[y], accumulate);
          return 0;
        });
      }
}

inline std::vector<ParityCase> elementwise_parity_cases() {
  return {{"elementwise: functions and their adjoints", unary_parity},
          {"elementwise: functions far out", extreme_parity},
          {"elementwise: broadcast arithmetic and its adjoints", binary_parity},
          {"elementwise: complex arrays from parts and their adjoints", part_parity},
          {"elementwise: scaled sums", add_scaled_parity}};
}

}  // namespace reclab::test
