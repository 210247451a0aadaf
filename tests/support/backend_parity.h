// SPDX-License-Identifier: GPL-3.0-or-later
// One suite of cases that holds a Backend to the CPU's: every operation, in every type and variant that the CPU has, on random data, with
// what is added to filled beforehand. Every call is made twice on the other backend and must give the same bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "array/backend.h"
#include "array/error.h"
#include "array/rng.h"
#include "test.h"

namespace reclab::test {

struct ParityCase {
  std::string name;
  std::function<void(Backend& other)> body;  ///< throws Failure
};

/// How far two backends may differ, relative to an array's largest entry.
inline double parity_tolerance(DType type) { return real_of(type) == DType::f32 ? 2e-5 : 1e-12; }

inline std::string name_of(DType type) {
  return type == DType::f32 ? "float32" : type == DType::f64 ? "float64" : type == DType::c64 ? "complex64" : "complex128";
}

/// Arrays that both backends have, and a call that is made on both.
class Parity {
 public:
  Parity(Backend& other, std::uint64_t seed) : other_(other), rng_(seed) {}

  /// Random numbers in [low, high) (both parts of complex ones); returns the number of the array.
  std::size_t array(DType type, std::int64_t n, double low = -1.0, double high = 1.0) {
    std::vector<double> values(static_cast<std::size_t>(is_complex(type) ? 2 * n : n));
    for (double& x : values) x = rng_.uniform(low, high);
    return array(type, values);
  }
  std::size_t array(DType type, const std::vector<double>& parts) {
    Array made{type, std::vector<char>(parts.size() * bytes_of(real_of(type)))};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (real_of(type) == DType::f64) {
        std::memcpy(made.bytes.data() + 8 * i, &parts[i], 8);
      } else {
        const auto narrow = static_cast<float>(parts[i]);
        std::memcpy(made.bytes.data() + 4 * i, &narrow, 4);
      }
    }
    arrays_.push_back(std::move(made));
    return arrays_.size() - 1;
  }
  /// Complex numbers of modulus below `largest`.
  std::size_t factors(DType type, std::int64_t n, double smallest, double largest) {
    std::vector<double> parts;
    for (std::int64_t i = 0; i < n; ++i) {
      const double modulus = rng_.uniform(smallest, largest), angle = rng_.uniform(-3.0, 3.0);
      if (is_complex(type)) {
        parts.push_back(modulus * std::cos(angle));
        parts.push_back(modulus * std::sin(angle));
      } else {
        parts.push_back(angle < 0 ? -modulus : modulus);
      }
    }
    return array(type, parts);
  }
  /// An array whose result comes in units of 2^power, the power that `call` returns for it.
  void in_units(std::size_t array) { in_units_ = static_cast<int>(array); }

  using Pointers = std::vector<void*>;
  /// Numbers on the host that a call fills, compared by difference.
  using Host = std::vector<double>;
  /// call(backend, pointers, host) returns a power of two (see in_units).
  void run(const std::function<int(Backend&, const Pointers&, Host&)>& call, std::size_t host_size = 0, double tolerance = 0.0) {
    const Outcome mine = on(cpu_backend(), call, host_size), theirs = on(other_, call, host_size), again = on(other_, call, host_size);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      CHECK_SAYS(theirs.arrays[i] == again.arrays[i], "array " + std::to_string(i) + " has other bits the second time");
      const DType real = real_of(arrays_[i].type);
      auto a = numbers(real, mine.arrays[i]), b = numbers(real, theirs.arrays[i]);
      double largest = 0.0, worst = 0.0;
      for (std::size_t j = 0; j < a.size(); ++j) {
        if (static_cast<int>(i) == in_units_) b[j] = std::ldexp(b[j], theirs.power - mine.power);
        CHECK_SAYS(std::isfinite(a[j]) && std::isfinite(b[j]), "array " + std::to_string(i) + " at " + std::to_string(j) + " is " + show(a[j]) + " and " + show(b[j]));
        largest = std::max(largest, std::abs(a[j]));
        worst = std::max(worst, std::abs(a[j] - b[j]));
      }
      const double allowed = (tolerance > 0.0 ? tolerance : parity_tolerance(real)) * (largest > 0.0 ? largest : 1.0);
      CHECK_SAYS(worst <= allowed, "array " + std::to_string(i) + " differs by " + show(worst) + " where its largest entry is " + show(largest));
    }
    for (std::size_t i = 0; i < mine.host.size(); ++i) {
      CHECK_SAYS(mine.host[i] == theirs.host[i] || std::abs(mine.host[i] - theirs.host[i]) <= 1e-4, "host number " + std::to_string(i) + " is " + show(theirs.host[i]) + ", not " + show(mine.host[i]));
      CHECK_SAYS(std::memcmp(&theirs.host[i], &again.host[i], sizeof(double)) == 0, "host number " + std::to_string(i) + " has other bits the second time");
    }
  }

 private:
  struct Array {
    DType type;
    std::vector<char> bytes;
  };
  struct Outcome {
    std::vector<std::vector<char>> arrays;
    Host host;
    int power = 0;
  };
  struct Held {
    Backend& backend;
    Pointers pointers;
    ~Held() {
      for (void* p : pointers) backend.release(p);
    }
  };
  Outcome on(Backend& backend, const std::function<int(Backend&, const Pointers&, Host&)>& call, std::size_t host_size) {
    Held held{backend, {}};
    for (const Array& array : arrays_) {
      held.pointers.push_back(backend.allocate(array.bytes.size()));
      backend.upload(held.pointers.back(), array.bytes.data(), array.bytes.size());
    }
    Outcome outcome;
    outcome.host.resize(host_size);
    outcome.power = call(backend, held.pointers, outcome.host);
    backend.finish();
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      outcome.arrays.emplace_back(arrays_[i].bytes.size());
      backend.download(outcome.arrays[i].data(), held.pointers[i], outcome.arrays[i].size());
    }
    return outcome;
  }
  static std::vector<double> numbers(DType real, const std::vector<char>& bytes) {
    std::vector<double> values(bytes.size() / bytes_of(real));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (real == DType::f64) {
        std::memcpy(&values[i], bytes.data() + 8 * i, 8);
      } else {
        float narrow;
        std::memcpy(&narrow, bytes.data() + 4 * i, 4);
        values[i] = static_cast<double>(narrow);
      }
    }
    return values;
  }

  Backend& other_;
  Rng rng_;
  std::vector<Array> arrays_;
  int in_units_ = -1;
};

inline const DType every_type[] = {DType::f32, DType::f64, DType::c64, DType::c128};
inline const DType real_types[] = {DType::f32, DType::f64};

inline void unary_parity(Backend& other) {
  const std::map<std::string, Unary> operations{{"affine", Unary::affine}, {"exp", Unary::exp}, {"log", Unary::log}, {"sqrt", Unary::sqrt},
      {"square", Unary::square}, {"reciprocal", Unary::reciprocal}, {"sigmoid", Unary::sigmoid}, {"tanh", Unary::tanh}, {"relu", Unary::relu},
      {"softplus", Unary::softplus}, {"silu", Unary::silu}, {"gelu", Unary::gelu}, {"gelu_tanh", Unary::gelu_tanh}, {"elu", Unary::elu}, {"mean_exp", Unary::mean_exp}};
  for (const DType type : every_type)
    for (const auto& [name, op] : operations) {
      if (is_complex(type) && op != Unary::affine && op != Unary::exp && op != Unary::square && op != Unary::reciprocal && op != Unary::mean_exp) continue;
      const bool positive = op == Unary::log || op == Unary::sqrt || op == Unary::reciprocal;
      for (const std::int64_t n : {1, 31, 32, 33, 1023, 1024, 1025}) {
        Parity parity(other, 1);
        const std::size_t x = parity.array(type, n, positive ? 0.3 : -4.0, 4.0), y = parity.array(type, n), gy = parity.array(type, n), gx = parity.array(type, n);
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
  for (const Unary op : {Unary::exp, Unary::sigmoid, Unary::tanh, Unary::softplus, Unary::silu, Unary::gelu, Unary::elu, Unary::relu})
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
  const std::vector<std::pair<Shape, Shape>> pairs{{{7, 5}, {7, 5}}, {{7, 5}, {5}}, {{5}, {7, 5}}, {{7, 1}, {7, 5}}, {{1}, {9, 11}}, {{9, 11}, {}},
      {{6, 1, 4}, {1, 3, 4}}, {{3, 1, 5, 1}, {1, 4, 1, 6}}, {{5000, 3}, {3}}, {{20000}, {1}}, {{2, 3000}, {2, 1}}, {{0, 4}, {4}}, {{1}, {1}}};
  for (const DType type : every_type)
    for (const Binary op : {Binary::add, Binary::subtract, Binary::multiply, Binary::divide})
      for (const auto& [left, right] : pairs) {
        Shape result;
        const Broadcast shape = broadcast(left, right, result);
        Parity parity(other, 3);
        const std::size_t x = parity.array(type, count(left)), y = parity.array(type, count(right), 0.5, 2.0), z = parity.array(type, count(result)),
                          gz = parity.array(type, count(result)), gx = parity.array(type, count(left)), gy = parity.array(type, count(right));
        try {
          parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
            b.binary(op, type, shape, p[x], p[y], p[z]);
            b.binary_adjoint(op, type, shape, p[x], p[y], p[gz], p[gx], nullptr);
            b.binary_adjoint(op, type, shape, p[x], p[y], p[gz], p[gx], p[gy]);
            return 0;
          }, 0, type == DType::f32 || type == DType::c64 ? 1e-4 : 0.0);  // the CPU adds thousands of floats one after the other
        } catch (const Failure& failure) {
          throw Failure("operation " + std::to_string(static_cast<int>(op)) + ", " + name_of(type) + ", " + to_string(left) + " and " + to_string(right) + ": " + failure.what());
        }
      }
}

inline void movement_parity(Backend& other) {
  Strided box;  // [4, 3, 5] out of something larger, the last two transposed
  box.rank = 3;
  box.elements = 60;
  box.offset = 7;
  const std::int64_t size[] = {4, 3, 5}, stride[] = {40, 1, 6};
  std::copy(size, size + 3, box.size);
  std::copy(stride, stride + 3, box.stride);
  for (const DType type : every_type)
    for (const bool accumulate : {false, true}) {
      Parity parity(other, 4);
      const std::size_t wide = parity.array(type, 200), dense = parity.array(type, 60), other_wide = parity.array(type, 200), single = parity.array(type, 1);
      parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
        b.gather(type, box, p[wide], p[dense], accumulate);
        b.scatter(type, box, p[dense], p[other_wide], accumulate);
        Strided one;
        one.offset = 3;
        b.gather(type, one, p[wide], p[single], accumulate);
        b.copy(p[wide], static_cast<char*>(p[other_wide]) + bytes_of(type), 9 * bytes_of(type));
        b.zero(static_cast<char*>(p[wide]) + 20 * bytes_of(type), 5 * bytes_of(type));
        return 0;
      });
    }
}

inline void sum_parity(Backend& other) {
  struct Size {
    std::int64_t outer, n, inner;
  };
  for (const DType type : every_type)
    for (const Size s : {Size{1, 1, 1}, Size{3, 7, 5}, Size{1, 20000, 1}, Size{2, 3000, 3}, Size{400, 70, 1}, Size{4, 1, 6}, Size{31, 32, 33}, Size{1, 1023, 7}, Size{7, 1024, 1}, Size{3, 1025, 5}, Size{1025, 31, 1}, Size{61, 1, 1023}}) {
      Parity parity(other, 5);
      const std::size_t x = parity.array(type, s.outer * s.n * s.inner, 0.0, 1.0), y = parity.array(type, s.outer * s.inner), gx = parity.array(type, s.outer * s.n * s.inner);
      parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
        b.sum(type, s.outer, s.n, s.inner, 0.25, p[x], p[y]);
        b.sum_adjoint(type, s.outer, s.n, s.inner, -2.0, p[y], p[gx]);
        return 0;
      }, 0, real_of(type) == DType::f32 ? 1e-4 : 0.0);
    }
}

inline void matmul_parity(Backend& other) {
  struct Size {
    std::int64_t batch, m, n, k;
  };
  for (const DType type : real_types)
    for (const Size s : {Size{1, 1, 1, 1}, Size{1, 5, 7, 3}, Size{3, 65, 130, 17}, Size{1, 6, 70, 3000}, Size{70, 8, 9, 20}, Size{2, 64, 64, 64}, Size{1, 4, 4, 0}, Size{1, 31, 33, 32}, Size{3, 33, 31, 61}, Size{1, 1023, 3, 7}, Size{1, 5, 1025, 3}, Size{1, 3, 5, 1024}})
      for (const bool ta : {false, true})
        for (const bool tb : {false, true})
          for (const bool accumulate : {false, true})
            for (int sharing = 0; sharing < 3; ++sharing) {  // nothing, B, the result
              const MatMul shape{s.batch, s.m, s.n, s.k, ta, tb, s.m * s.k, sharing == 1 ? 0 : s.k * s.n, sharing == 2 ? 0 : s.m * s.n};
              Parity parity(other, 6);
              const std::size_t a = parity.array(type, s.batch * s.m * s.k), b = parity.array(type, s.batch * s.k * s.n), c = parity.array(type, s.batch * s.m * s.n);
              try {
                parity.run([&](Backend& backend, const Parity::Pointers& p, Parity::Host&) {
                  backend.matmul(type, shape, p[a], p[b], p[c], accumulate);
                  if (s.batch == 1 && !ta) {
                    void* packed = backend.allocate(static_cast<std::size_t>(s.k * ((s.n + 31) / 32 * 32)) * bytes_of(type));
                    backend.pack(type, s.k, s.n, tb, p[b], packed);
                    backend.matmul_packed(type, s.m, s.n, s.k, tb, p[a], p[b], packed, p[c], true);
                    backend.finish();
                    backend.release(packed);
                  }
                  return 0;
                });
              } catch (const Failure& failure) {
                throw Failure(name_of(type) + ", " + std::to_string(s.batch) + " of " + std::to_string(s.m) + " x " + std::to_string(s.n) + " over " + std::to_string(s.k) + (ta ? ", A^T" : "") +
                              (tb ? ", B^T" : "") + (sharing == 1 ? ", one B" : sharing == 2 ? ", one C" : "") + ": " + failure.what());
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

inline void scale_parity(Backend& other) {
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
  for (const DType type : every_type)
    for (const std::int64_t n : {1, 3, 4096, 10001})
      for (const double size : {1.0, 1e-30, 1e30, 1e-300, 1e290, 0.0}) {
        if (real_of(type) == DType::f32 && (size > 1e100 || (size < 1e-100 && size > 0.0))) continue;
        Parity parity(other, 9);
        const std::size_t x = parity.array(type, n, -size, size);
        parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host& host) {
          host[0] = b.log2_norm(type, n, p[x], -17);
          host[1] = b.exponent(type, n, p[x]);
          return 0;
        }, 2);
      }
  for (const double bad : {INFINITY, -INFINITY, NAN}) {
    std::vector<double> values(5000, 1.0);
    values[4500] = bad;
    char host[40000];
    std::memcpy(host, values.data(), sizeof host);
    void* memory = other.allocate(sizeof host);
    other.upload(memory, host, sizeof host);
    const int exponent = other.exponent(DType::f64, 5000, memory);
    const double norm = other.log2_norm(DType::f64, 5000, memory, 0);
    other.release(memory);
    CHECK_EQUAL(exponent, infinite_exponent);
    CHECK(std::isnan(bad) ? std::isnan(norm) : norm == INFINITY);
  }
}

inline void depthwise_parity(Backend& other) {
  for (const DType type : real_types)
    for (const DepthwiseDims d : {DepthwiseDims{1, 1, 1, 1}, DepthwiseDims{50, 3, 7, 4}, DepthwiseDims{3000, 2, 3, 4}, DepthwiseDims{2, 2, 5, 6}, DepthwiseDims{31, 1, 33, 3}, DepthwiseDims{32, 3, 31, 2}, DepthwiseDims{1023, 1, 1, 5}, DepthwiseDims{1025, 1, 3, 4}}) {
      Parity parity(other, 10);
      const std::int64_t in = (d.steps + d.taps - 1) * d.batch * d.channels, out = d.steps * d.batch * d.channels;
      const std::size_t x = parity.array(type, in), w = parity.array(type, d.channels * d.taps), y = parity.array(type, out), gx = parity.array(type, in), gw = parity.array(type, d.channels * d.taps);
      parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
        b.depthwise(type, d, p[x], p[w], p[y]);
        b.depthwise_adjoint(type, d, p[x], p[w], p[y], p[gx], nullptr);
        b.depthwise_adjoint(type, d, p[x], p[w], p[y], nullptr, p[gw]);
        b.depthwise_adjoint(type, d, p[x], p[w], p[y], p[gx], p[gw]);
        return 0;
      }, 0, type == DType::f32 ? 1e-4 : 0.0);
    }
}

inline void diagonal_parity(Backend& other) {
  struct Size {
    std::int64_t steps, width, period;
  };
  for (const DType type : every_type)
    for (const Size s : {Size{1, 4, 0}, Size{2, 4, 2}, Size{70, 6, 0}, Size{70, 6, 3}, Size{5000, 3, 0}, Size{5000, 4, 2}, Size{300, 300, 300},
                         // around the widths of warps and blocks, and numbers that nothing divides
                         Size{1, 1, 0}, Size{31, 31, 0}, Size{32, 33, 11}, Size{33, 32, 0}, Size{61, 7, 7}, Size{1023, 3, 0}, Size{1024, 5, 5}, Size{1025, 1, 0}, Size{3, 1023, 0}, Size{2, 1024, 512},
                         Size{3, 1025, 205}})
      for (const Pace pace : {Pace::steps, Pace::tree, Pace::chunks})
        for (const bool started : {false, true}) {
          const DiagonalDims d{s.steps, s.width, s.period};
          const std::int64_t n = s.steps * s.width, na = s.period ? s.period : n;
          Parity parity(other, 11);
          const std::size_t a = parity.factors(type, na, 0.5, 0.99), b = parity.array(type, n), initial = parity.array(type, s.width), out = parity.array(type, n), g = parity.array(type, n),
                            carried = parity.array(type, s.width), ga = parity.array(type, na), gb = parity.array(type, n), ginitial = parity.array(type, s.width);
          try {
            parity.run([&](Backend& backend, const Parity::Pointers& p, Parity::Host& norms) {
              void* start = started ? p[initial] : nullptr;
              backend.diagonal(type, d, pace, p[a], p[b], start, p[out], {});
              int exponent = pace != Pace::steps ? -3 : 0;
              backend.diagonal_adjoint(type, d, pace, p[a], p[out], start, p[g], started ? p[carried] : nullptr, p[ga], p[gb], p[ginitial], norms.data(), &exponent, {});
              CHECK_EQUAL(exponent, 0);
              backend.diagonal_adjoint(type, d, pace, p[a], p[out], start, p[g], nullptr, nullptr, p[gb], nullptr, nullptr, nullptr, {});
              backend.diagonal_adjoint(type, d, pace, p[a], p[out], start, p[g], p[carried], p[ga], nullptr, p[ginitial], nullptr, nullptr, {});
              return 0;
            }, static_cast<std::size_t>(s.steps), real_of(type) == DType::f32 ? 1e-4 : 1e-11);
          } catch (const Failure& failure) {
            throw Failure(name_of(type) + ", " + std::to_string(s.steps) + " steps of " + std::to_string(s.width) + ", period " + std::to_string(s.period) + (pace != Pace::steps ? ", scan" : "") + (started ? ", from a state" : "") +
                          ": " + failure.what());
          }
        }
}

/// Adjoints far below and far above what the type can hold, with one term at the last step.
inline void renormalised_parity(Backend& other) {
  for (const DType type : every_type)
    for (const bool explode : {false, true})
      for (const std::int64_t period : {0, 5}) {
        const DiagonalDims d{600, 10, period};
        const std::int64_t n = d.steps * d.width, na = period ? period : n;
        Parity parity(other, 12);
        const std::size_t a = explode ? parity.factors(type, na, 4.0, 4.5) : parity.factors(type, na, 0.1, 0.11);
        const std::size_t s = parity.array(type, n), initial = parity.array(type, d.width), carried = parity.array(type, d.width), ginitial = parity.array(type, std::vector<double>(is_complex(type) ? 20 : 10, 0.0));
        std::vector<double> terms(static_cast<std::size_t>(is_complex(type) ? 2 * n : n), 0.0);
        std::fill(terms.end() - d.width, terms.end(), 0.75);
        const std::size_t g = parity.array(type, terms);
        parity.in_units(ginitial);
        parity.run([&](Backend& backend, const Parity::Pointers& p, Parity::Host& norms) {
          int exponent = explode ? 300 : -300;
          backend.diagonal_adjoint(type, d, Pace::steps, p[a], p[s], p[initial], p[g], p[carried], nullptr, nullptr, p[ginitial], norms.data(), &exponent, {});
          CHECK_SAYS(std::abs(exponent) > 1000, std::to_string(exponent));
          return exponent;
        }, static_cast<std::size_t>(d.steps), real_of(type) == DType::f32 ? 2e-4 : 1e-11);
      }
}

inline void outer_parity(Backend& other) {
  struct Size {
    std::int64_t steps, heads, key, value;
  };
  for (const DType type : real_types)
    for (const Size s : {Size{1, 1, 1, 1}, Size{40, 3, 5, 7}, Size{300, 2, 8, 4}, Size{4200, 1, 2, 3}, Size{31, 3, 31, 1}, Size{32, 1, 1, 33}, Size{33, 2, 32, 7}, Size{61, 5, 3, 13}, Size{1023, 1, 3, 1}, Size{1024, 1, 1, 3}, Size{1025, 1, 2, 2}})
      for (const bool attention : {false, true})
        for (const bool started : {false, true}) {
          if (attention && s.steps > 1000) continue;
          const OuterDims d{s.steps, s.heads, s.key, s.value};
          const std::int64_t keys = s.steps * s.heads * s.key, values = s.steps * s.heads * s.value, size = s.heads * s.key * s.value;
          Parity parity(other, 13);
          const std::size_t q = parity.array(type, keys), k = parity.array(type, keys), v = parity.array(type, values), initial = parity.array(type, size), o = parity.array(type, values),
                            states = parity.array(type, s.steps * size), last = parity.array(type, size), go = parity.array(type, values), carried = parity.array(type, size), gq = parity.array(type, keys),
                            gk = parity.array(type, keys), gv = parity.array(type, values), ginitial = parity.array(type, size);
          try {
            parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host& norms) {
              void* start = started ? p[initial] : nullptr;
              b.outer(type, d, attention, p[q], p[k], p[v], start, p[o], nullptr, nullptr, {});
              b.outer(type, d, attention, p[q], p[k], p[v], start, p[o], attention ? nullptr : p[states], p[last], {});
              b.outer_adjoint(type, d, attention, p[q], p[k], p[v], start, p[go], started ? p[carried] : nullptr, p[gq], p[gk], p[gv], p[ginitial], norms.data(), {});
              b.outer_adjoint(type, d, attention, p[q], p[k], p[v], start, p[go], nullptr, p[gq], p[gk], p[gv], nullptr, nullptr, {});
              return 0;
            }, static_cast<std::size_t>(s.steps), type == DType::f32 ? 2e-4 : 1e-11);
          } catch (const Failure& failure) {
            throw Failure(name_of(type) + ", " + std::to_string(s.steps) + " steps, " + std::to_string(s.heads) + " heads" + (attention ? ", attention" : "") + (started ? ", from a state" : "") + ": " + failure.what());
          }
        }
}

/// Decays a head, a key dimension and none; from near 1 to far below the range, where the initial memory's adjoint comes in units of its own;
/// with the final memory's adjoint in plain units, in others, and without it.
inline void gated_parity(Backend& other, Pace pace) {
  struct Size {
    std::int64_t steps, heads, key, value;
  };
  for (const DType type : real_types)
    for (const Size s : {Size{1, 1, 1, 1}, Size{15, 3, 5, 7}, Size{31, 2, 31, 1}, Size{32, 1, 1, 33}, Size{33, 2, 32, 31}, Size{61, 5, 3, 13}, Size{97, 1, 64, 67}, Size{300, 1, 17, 130}, Size{1023, 2, 3, 1}, Size{1024, 1, 1, 5}, Size{1025, 1, 2, 2}})
      for (const std::int64_t decays : {std::int64_t{0}, std::int64_t{1}, s.key})
        for (const double strength : {1e-6, 0.2, 5.0, 300.0}) {
          if (decays == 0 && (strength != 0.2 || pace == Pace::steps)) continue;
          const bool started = strength != 1e-6, far = strength >= 5.0;
          const int unit = strength == 5.0 || decays == 0 ? 90 : 0;
          const GatedDims d{s.steps, s.heads, s.key, s.value, decays == 0 ? 1 : decays, pace};
          const std::int64_t keys = s.steps * s.heads * s.key, values = s.steps * s.heads * s.value, size = s.heads * s.key * s.value;
          Parity parity(other, 31);
          std::vector<double> logs, late(static_cast<std::size_t>(values), 0.0);
          Rng rng(32);
          for (std::int64_t i = 0; i < s.steps * s.heads * d.decays; ++i) logs.push_back(i % 7 == 3 ? 0.0 : -strength * rng.uniform(0.0, 1.0));
          // The loss at the last step alone: on the way back nothing fresh hides how far the adjoint falls.
          for (std::int64_t i = far ? values - s.heads * s.value : 0; i < values; ++i) late[static_cast<std::size_t>(i)] = rng.uniform(-1.0, 1.0);
          const std::size_t q = parity.array(type, keys), k = parity.array(type, keys), v = parity.array(type, values), a = parity.array(type, logs), initial = parity.array(type, size),
                            o = parity.array(type, values), last = parity.array(type, size), go = parity.array(type, late), gfinal = parity.array(type, size), gq = parity.array(type, keys),
                            gk = parity.array(type, keys), gv = parity.array(type, values), ga = parity.array(type, s.steps * s.heads * d.decays), ginitial = parity.array(type, std::vector<double>(static_cast<std::size_t>(size), 0.0));
          parity.in_units(ginitial);
          try {
            parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
              const void *log_decay = decays ? p[a] : nullptr, *start = started ? p[initial] : nullptr;
              int power = unit;
              b.gated(type, d, p[q], p[k], p[v], log_decay, start, p[o], nullptr, {});
              b.gated(type, d, p[q], p[k], p[v], log_decay, start, p[o], p[last], {});
              b.gated_adjoint(type, d, p[q], p[k], p[v], log_decay, start, p[go], strength == 300.0 ? nullptr : p[gfinal], p[gq], p[gk], p[gv], decays ? p[ga] : nullptr, p[ginitial], &power, {});
              b.gated_adjoint(type, d, p[q], p[k], p[v], log_decay, start, p[go], nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, {});
              return power;
            }, 0, type == DType::f32 ? 5e-5 : 1e-11);
          } catch (const Failure& failure) {
            throw Failure(name_of(type) + ", " + std::to_string(s.steps) + " steps, " + std::to_string(s.heads) + " heads of " + std::to_string(s.key) + " x " + std::to_string(s.value) + ", " + std::to_string(decays) +
                          " decays to " + show(strength) + ": " + failure.what());
          }
        }
}
inline void gated_chunks_parity(Backend& other) { gated_parity(other, Pace::chunks); }
inline void gated_steps_parity(Backend& other) { gated_parity(other, Pace::steps); }

/// Rates from near 0 to far beyond what a step leaves over, slabs of channels that are full, over-full and not full.
inline void selective_parity(Backend& other) {
  struct Size {
    std::int64_t steps, batch, channels, states;
  };
  for (const DType type : real_types)
    for (const Size s : {Size{1, 1, 1, 1}, Size{2, 3, 5, 7}, Size{31, 2, 31, 1}, Size{32, 1, 64, 16}, Size{33, 2, 65, 17}, Size{61, 1, 130, 3}, Size{300, 1, 7, 40}, Size{1023, 1, 3, 5}, Size{1024, 1, 2, 16}, Size{1025, 2, 3, 2}})
      for (const double strength : {1e-6, 0.2, 5.0, 300.0}) {
        const bool started = strength != 1e-6, far = strength >= 5.0, watched = strength != 0.2;
        const SelectiveDims d{s.steps, s.batch, s.channels, s.states};
        const std::int64_t rows = s.steps * s.batch, wide = rows * s.channels, few = rows * s.states, width = s.batch * s.channels * s.states;
        Parity parity(other, 33);
        std::vector<double> rates, steps, late(static_cast<std::size_t>(wide), 0.0);
        Rng rng(34);
        for (std::int64_t i = 0; i < s.channels * s.states; ++i) rates.push_back(i % 7 == 3 ? 0.0 : -strength * rng.uniform(0.1, 1.0));
        for (std::int64_t i = 0; i < wide; ++i) steps.push_back(rng.uniform(0.1, 1.0));
        // The loss at the last step alone: on the way back nothing fresh hides how far the adjoint falls.
        for (std::int64_t i = far ? wide - s.batch * s.channels : 0; i < wide; ++i) late[static_cast<std::size_t>(i)] = rng.uniform(-1.0, 1.0);
        const std::size_t dt = parity.array(type, steps), a = parity.array(type, rates), x = parity.array(type, wide), b = parity.array(type, few), c = parity.array(type, few),
                          initial = parity.array(type, width), y = parity.array(type, wide), states = parity.array(type, wide * s.states), last = parity.array(type, width),
                          gy = parity.array(type, late), gstates = parity.array(type, wide * s.states), carried = parity.array(type, width), gdt = parity.array(type, wide),
                          ga = parity.array(type, s.channels * s.states), gx = parity.array(type, wide), gb = parity.array(type, few), gc = parity.array(type, few),
                          ginitial = parity.array(type, std::vector<double>(static_cast<std::size_t>(width), 0.0));
        parity.in_units(ginitial);
        try {
          parity.run([&](Backend& backend, const Parity::Pointers& p, Parity::Host& norms) {
            const void* start = started ? p[initial] : nullptr;
            int power = far ? 0 : -3;
            backend.selective(type, d, p[dt], p[a], p[x], p[b], p[c], start, p[y], nullptr, nullptr, {});
            backend.selective(type, d, p[dt], p[a], p[x], p[b], p[c], start, p[y], p[states], p[last], {});
            backend.selective_adjoint(type, d, p[dt], p[a], p[x], p[b], p[c], start, p[gy], nullptr, nullptr, nullptr, nullptr, p[gx], nullptr, p[gc], nullptr, nullptr, nullptr, {});
            backend.selective_adjoint(type, d, p[dt], p[a], p[x], p[b], p[c], start, p[gy], watched && !far ? p[gstates] : nullptr, far ? nullptr : p[carried], p[gdt], p[ga], p[gx], p[gb], p[gc],
                                      p[ginitial], norms.data(), &power, {});
            return power;
          }, static_cast<std::size_t>(s.steps), type == DType::f32 ? 5e-5 : 1e-11);
        } catch (const Failure& failure) {
          throw Failure(name_of(type) + ", " + std::to_string(s.steps) + " steps of " + std::to_string(s.batch) + " x " + std::to_string(s.channels) + " x " + std::to_string(s.states) + ", rates to " + show(strength) + ": " + failure.what());
        }
      }
}

inline void kernel_parity(Backend& other) {
  for (const DType type : {DType::c64, DType::c128})
    for (const std::int64_t steps : {1, 9, 31, 32, 33, 700, 1023, 1024, 1025}) {
      const std::int64_t channels = 3, modes = 5;
      Parity parity(other, 14);
      const std::size_t w = parity.array(type, channels * modes), a = parity.factors(type, channels * modes, 0.7, 0.999), kernel = parity.array(type, channels * steps), gw = parity.array(type, channels * modes),
                        ga = parity.array(type, channels * modes);
      parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
        b.vandermonde(type, channels, modes, steps, p[w], p[a], p[kernel]);
        b.vandermonde_adjoint(type, channels, modes, steps, p[w], p[a], p[kernel], p[gw], nullptr);
        b.vandermonde_adjoint(type, channels, modes, steps, p[w], p[a], p[kernel], nullptr, p[ga]);
        b.vandermonde_adjoint(type, channels, modes, steps, p[w], p[a], p[kernel], p[gw], p[ga]);
        return 0;
      }, 0, type == DType::c64 ? 2e-4 : 1e-11);
    }
}

inline void convolution_parity(Backend& other) {
  for (const DType type : every_type)
    for (const std::int64_t steps : {1, 2, 31, 32, 33, 37, 512, 1023, 1024, 1025, 3000}) {
      const std::int64_t batch = 3, channels = 4;
      Parity parity(other, 15);
      const std::size_t kernel = parity.array(type, channels * steps), u = parity.array(type, steps * batch * channels), y = parity.array(type, steps * batch * channels), gy = parity.array(type, steps * batch * channels),
                        gkernel = parity.array(type, channels * steps), gu = parity.array(type, steps * batch * channels);
      parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
        b.convolve(type, steps, batch, channels, p[kernel], p[u], p[y]);
        b.convolve_adjoint(type, steps, batch, channels, p[kernel], p[u], p[gy], p[gkernel], nullptr);
        b.convolve_adjoint(type, steps, batch, channels, p[kernel], p[u], p[gy], nullptr, p[gu]);
        b.convolve_adjoint(type, steps, batch, channels, p[kernel], p[u], p[gy], p[gkernel], p[gu]);
        return 0;
      });
      parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
        void* spectrum = b.allocate(b.spectrum_size(type, steps, channels));
        b.spectrum(type, steps, channels, p[kernel], spectrum);
        b.convolve_with(type, steps, batch, channels, p[kernel], spectrum, p[u], p[y]);
        b.convolve_adjoint_with(type, steps, batch, channels, p[kernel], spectrum, p[u], p[gy], p[gkernel], p[gu]);
        b.finish();
        b.release(spectrum);
        return 0;
      });
    }
}

/// Exponents of a million and more whose differences are what counts.
inline void weigh_parity(Backend& other) {
  for (const DType type : real_types)
    for (const double decay : {0.01, 3.0, 1e4}) {
      const std::int64_t batch = 2, steps = 70, first = 20, rows = 30, columns = first + rows;
      Parity parity(other, 21);
      std::vector<double> row, column, row_low, column_low;
      Rng rng(22);
      for (std::int64_t b = 0; b < batch; ++b) {
        double sum = -1e6;
        for (std::int64_t t = 0; t < steps; ++t) {
          const double next = sum - std::floor(decay * rng.uniform(0.0, 2.0) * 64.0) / 64.0, low = rng.uniform(-0.01, 0.01);
          row.push_back(sum = type == DType::f32 ? static_cast<double>(static_cast<float>(next)) : next);
          column.push_back(-sum);
          row_low.push_back(low);
          column_low.push_back(-low);
        }
      }
      const std::size_t r = parity.array(type, row), c = parity.array(type, column), rl = parity.array(type, row_low), cl = parity.array(type, column_low),
                        scores = parity.array(type, batch * rows * columns), g = parity.array(type, batch * rows * columns), gr = parity.array(type, batch * steps),
                        gc = parity.array(type, batch * steps);
      parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
        b.weigh(type, batch, steps, first, rows, columns, p[r], p[c], p[rl], p[cl], p[scores]);
        b.weigh_adjoint(type, batch, steps, first, rows, columns, p[r], p[c], p[rl], p[cl], p[scores], p[g], p[gr], p[gc]);
        return 0;
      });
    }
}

/// A stop that was asked for ends every long operation before it does anything.
inline void stop_parity(Backend& other) {
  std::stop_source source;
  source.request_stop();
  void* memory = other.allocate(4096);
  other.zero(memory, 4096);
  int heard = 0;
  const auto call = [&](auto&& f) {
    try {
      f();
    } catch (const Cancelled&) {
      ++heard;
    }
  };
  const DiagonalDims d{4, 2, 0};
  const OuterDims o{4, 1, 2, 2};
  for (const bool tree : {false, true}) {
    call([&] { other.diagonal(DType::f64, d, tree ? Pace::tree : Pace::steps, memory, memory, nullptr, memory, source.get_token()); });
    call([&] { other.diagonal_adjoint(DType::f64, d, tree ? Pace::tree : Pace::steps, memory, memory, nullptr, memory, nullptr, nullptr, memory, nullptr, nullptr, nullptr, source.get_token()); });
    call([&] { other.outer(DType::f64, o, tree, memory, memory, memory, nullptr, memory, nullptr, memory, source.get_token()); });
    call([&] { other.outer_adjoint(DType::f64, o, tree, memory, memory, memory, nullptr, memory, nullptr, memory, memory, memory, nullptr, nullptr, source.get_token()); });
  }
  for (const Pace pace : {Pace::chunks, Pace::steps}) {
    const GatedDims gated{4, 1, 2, 2, 1, pace};
    call([&] { other.gated(DType::f64, gated, memory, memory, memory, memory, nullptr, memory, nullptr, source.get_token()); });
    call([&] { other.gated_adjoint(DType::f64, gated, memory, memory, memory, memory, nullptr, memory, nullptr, memory, memory, memory, nullptr, nullptr, nullptr, source.get_token()); });
  }
  const SelectiveDims selective{4, 1, 2, 2};
  call([&] { other.selective(DType::f64, selective, memory, memory, memory, memory, memory, nullptr, memory, nullptr, nullptr, source.get_token()); });
  call([&] {
    other.selective_adjoint(DType::f64, selective, memory, memory, memory, memory, memory, nullptr, memory, nullptr, nullptr, memory, memory, memory, memory, memory, nullptr, nullptr, nullptr,
                            source.get_token());
  });
  other.release(memory);
  CHECK_EQUAL(heard, 14);
}

inline std::vector<ParityCase> parity_cases() {
  return {{"elementwise functions and their adjoints", unary_parity},
          {"elementwise functions far out", extreme_parity},
          {"broadcast arithmetic and its adjoints", binary_parity},
          {"boxes of strided arrays, copies and clearing", movement_parity},
          {"sums over an axis and their adjoint", sum_parity},
          {"matrix products, transposed, batched and shared", matmul_parity},
          {"complex arrays from parts and their adjoints", part_parity},
          {"scaled sums, norms and exponents", scale_parity},
          {"depth-wise convolution and its adjoints", depthwise_parity},
          {"the diagonal recurrence, stepped and scanned, and its adjoints", diagonal_parity},
          {"adjoints beyond the range of the type", renormalised_parity},
          {"the outer-product memory, stepped and as attention, and its adjoints", outer_parity},
          {"the outer-product memory with decays, in chunks, and its adjoints", gated_chunks_parity},
          {"the outer-product memory with decays, step by step, and its adjoints", gated_steps_parity},
          {"the selective recurrence and its adjoints", selective_parity},
          {"Vandermonde kernels and their adjoints", kernel_parity},
          {"long convolutions and their adjoints", convolution_parity},
          {"scores weighted by decays and their adjoints", weigh_parity},
          {"a stop is heard", stop_parity}};
}

}  // namespace reclab::test
