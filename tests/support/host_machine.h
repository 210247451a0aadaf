// SPDX-License-Identifier: GPL-3.0-or-later
// Runs the kernels of array/cuda in plain loops on the host: their arithmetic, indices and order of launches are tested without a device.
// Indices are visited in an order of its own, and the memory of a block starts as NaN, so that code that relies on either fails.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "array/cuda/families.h"
#include "test.h"

namespace reclab::test {

class HostMachine {
 public:
  static constexpr std::int64_t group_bytes = 1 << 18;  // so little that a convolution of a test takes its channels in groups
  std::string name() const { return "kernels on the host"; }
  void* allocate(std::size_t bytes) {
    void* memory = std::malloc(bytes);
    if (!memory) throw std::bad_alloc();
    std::memset(memory, 0xff, bytes);  // NaN
    return memory;
  }
  void release(void* memory) noexcept { std::free(memory); }
  void zero(void* memory, std::size_t bytes) {
    now_or_later([=] { std::memset(memory, 0, bytes); });
  }
  void upload(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) {
    now_or_later([=] { std::memcpy(to, from, bytes); });
  }
  void finish() {}

  using Recorded = std::vector<std::function<void()>>;
  void begin_recording() { recording_.emplace(); }
  Recorded end_recording() { return *std::exchange(recording_, std::nullopt); }
  void abandon_recording() noexcept { recording_.reset(); }
  void replay(const Recorded& recorded) {
    for (const auto& launch : recorded) launch();
  }

  template <class F>
  void each(std::int64_t n, const F& f) {
    now_or_later([=] {
      for (std::int64_t i = n; i-- > 0;) f(i);
    });
  }
  template <class F>
  void blocks(std::int64_t n, const F& f) {
    now_or_later([=] {
      const auto shared = std::make_unique<typename F::Shared>();
      for (std::int64_t i = n; i-- > 0;) {
        std::memset(static_cast<void*>(shared.get()), 0xff, sizeof(typename F::Shared));
        Block block;
        f(block, i, *shared);
      }
    });
  }

 private:
  static inline thread_local std::optional<Recorded> recording_;
  template <class F>
  void now_or_later(F&& launch) {
    if (recording_)
      recording_->emplace_back(std::forward<F>(launch));
    else
      launch();
  }
  struct Block {
    template <class L>
    struct Local {
      std::array<L, 256> value;
      L& operator[](int thread) { return value[static_cast<std::size_t>(thread)]; }
    };
    template <class F>
    void phase(const F& f) {
      for (int thread = 255; thread >= 0; --thread) f(thread);
    }
  };
};

/// A HostMachine with a library for products, in plain loops, and one for Fourier transforms: arrays lie and arguments are refused as
/// cuBLAS and cuFFT have it.
class LibraryMachine : public HostMachine {
 public:
  template <class T>
  bool product(const kernel::ColumnProduct<T>& p) {
    CHECK(p.m >= 1 && p.n >= 1 && p.k >= 1 && p.batch >= 1);
    CHECK(p.lda >= (p.transpose_a ? p.k : p.m) && p.ldb >= (p.transpose_b ? p.n : p.k) && p.ldc >= p.m);
    ++products_;
    for (std::int64_t matrix = 0; matrix < p.batch; ++matrix)
      for (std::int64_t column = 0; column < p.n; ++column)
        for (std::int64_t row = 0; row < p.m; ++row) {
          const T *a = p.a + matrix * p.stride_a, *b = p.b + matrix * p.stride_b;
          double sum = 0.0;
          for (std::int64_t l = 0; l < p.k; ++l) {
            const T left = p.transpose_a ? a[l + row * p.lda] : a[row + l * p.lda],
                    right = p.transpose_b ? b[column + l * p.ldb] : b[l + column * p.ldb];
            sum += static_cast<double>(left) * static_cast<double>(right);
          }
          T& c = p.c[matrix * p.stride_c + row + column * p.ldc];
          c = static_cast<T>(p.beta == T(0) ? sum : sum + static_cast<double>(p.beta) * static_cast<double>(c));  // with 0 it is not read
        }
    return true;
  }
  int products() const { return products_; }

  bool has_transforms() const { return true; }
  template <class T>
  void transforms(const kernel::RealTransforms<T>& t) {
    CHECK(t.size >= 2 && t.size % 2 == 0 && t.count >= 1 && t.row >= t.modes());
    CHECK(reinterpret_cast<std::uintptr_t>(t.data) % (2 * sizeof(T)) == 0);
    ++transforms_;
    const auto n = static_cast<std::size_t>(t.size);
    Numbers x(n), roots(n);
    for (std::size_t i = 0; i < n; ++i)
      roots[i] = std::polar(1.0, -6.28318530717958647692 * static_cast<double>(i) / static_cast<double>(n));
    for (std::int64_t s = 0; s < t.count; ++s) {
      T* own = t.data + s * 2 * t.row;
      for (std::size_t i = 0; i < n; ++i) {
        if (!t.back)
          x[i] = static_cast<double>(own[i]);
        else if (i == 0 || 2 * i == n)
          x[i] = static_cast<double>(own[2 * i]);
        else if (2 * i < n)
          x[i] = std::conj(std::complex<double>(static_cast<double>(own[2 * i]), static_cast<double>(own[2 * i + 1])));
        else  // back is there of the conjugate spectrum, for a real result
          x[i] = std::conj(x[n - i]);
      }
      const Numbers result = fourier(x, roots, 0, n);
      std::fill_n(own, 2 * t.row, std::numeric_limits<T>::quiet_NaN());  // numbers beyond the result have no meaning
      for (std::size_t i = 0; i < (t.back ? n : n / 2 + 1); ++i) {
        if (t.back) {
          own[i] = static_cast<T>(result[i].real());
        } else {
          own[2 * i] = static_cast<T>(result[i].real());
          own[2 * i + 1] = static_cast<T>(result[i].imag());
        }
      }
    }
  }
  int transforms_made() const { return transforms_; }

 private:
  int products_ = 0, transforms_ = 0;
  using Numbers = std::vector<std::complex<double>>;
  /// sum_j x_j exp(-2 pi i j k / n) for all k < n: those of every p-th number, p the least prime factor of n, put together. x_j is
  /// all[first + j * all.size() / n].
  static Numbers fourier(const Numbers& all, const Numbers& roots, std::size_t first, std::size_t n) {
    const std::size_t step = all.size() / n;
    if (n == 1) return {all[first]};
    std::size_t p = 2;
    while (n % p) ++p;
    Numbers sums(n);
    for (std::size_t part = 0; part < p; ++part) {
      const Numbers of_part = fourier(all, roots, first + part * step, n / p);
      for (std::size_t k = 0; k < n; ++k) sums[k] += roots[part * k % n * step] * of_part[k % (n / p)];
    }
    return sums;
  }
};

using HostBackend = kernel::KernelBackend<HostMachine>;
using LibraryBackend = kernel::KernelBackend<LibraryMachine>;

}  // namespace reclab::test
