// SPDX-License-Identifier: GPL-3.0-or-later
// Parity of a Backend with the reference: an operation is called on both, on random data, with filled arrays to add to. Every call is made
// twice on the other backend and must give the same bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "array/backend.h"
#include "array/reference/reference_backend.h"
#include "array/rng.h"
#include "test.h"

namespace reclab::test {

struct ParityCase {
  std::string name;
  std::function<void(Backend& other)> body;  ///< throws Failure
};

/// The largest error that a backend may have against the reference, relative to an array's largest entry.
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
    const Outcome mine = on(reference_backend(), call, host_size), theirs = on(other_, call, host_size),
                  again = on(other_, call, host_size);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      CHECK_SAYS(theirs.arrays[i] == again.arrays[i], "array " + std::to_string(i) + " has other bits the second time");
      const DType real = real_of(arrays_[i].type);
      auto a = numbers(real, mine.arrays[i]), b = numbers(real, theirs.arrays[i]);
      double largest = 0.0, worst = 0.0;
      for (std::size_t j = 0; j < a.size(); ++j) {
        if (static_cast<int>(i) == in_units_) b[j] = std::ldexp(b[j], theirs.power - mine.power);
        CHECK_SAYS(std::isfinite(a[j]) && std::isfinite(b[j]),
                   "array " + std::to_string(i) + " at " + std::to_string(j) + " is " + show(a[j]) + " and " + show(b[j]));
        largest = std::max(largest, std::abs(a[j]));
        worst = std::max(worst, std::abs(a[j] - b[j]));
      }
      const double allowed = (tolerance > 0.0 ? tolerance : parity_tolerance(real)) * (largest > 0.0 ? largest : 1.0);
      CHECK_SAYS(worst <= allowed,
                 "array " + std::to_string(i) + " differs by " + show(worst) + " where its largest entry is " + show(largest));
    }
    for (std::size_t i = 0; i < mine.host.size(); ++i) {
      CHECK_SAYS(mine.host[i] == theirs.host[i] || std::abs(mine.host[i] - theirs.host[i]) <= 1e-4,
                 "host number " + std::to_string(i) + " is " + show(theirs.host[i]) + ", not " + show(mine.host[i]));
      CHECK_SAYS(std::memcmp(&theirs.host[i], &again.host[i], sizeof(double)) == 0,
                 "host number " + std::to_string(i) + " has other bits the second time");
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

}  // namespace reclab::test
