// SPDX-License-Identifier: GPL-3.0-or-later
// Runs the kernels of array/cuda in plain loops on the host: their arithmetic, indices and order of launches are tested without a device.
// Indices are visited in an order of its own, and the memory of a block starts as NaN, so that what counts on either shows.
#pragma once

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
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

/// The same with a library for products, in plain loops: matrices lie and arguments are refused as cuBLAS has it.
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

 private:
  int products_ = 0;
};

using HostBackend = kernel::KernelBackend<HostMachine>;
using LibraryBackend = kernel::KernelBackend<LibraryMachine>;

}  // namespace reclab::test
