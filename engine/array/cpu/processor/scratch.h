// SPDX-License-Identifier: GPL-3.0-or-later
// Memory that a function of the CPU's backend needs while it runs, counted in the backend's account. Nothing is kept for the next call: the
// allocator of the C library hands the same memory out again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "array/backend.h"
#include "array/elements.h"

namespace reclab::cpu {

/// A number of bytes in the account, for as long as it lives.
class Counted {
 public:
  explicit Counted(std::size_t bytes) : bytes_(bytes) { cpu_backend().account().take(bytes_); }
  Counted(Counted&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  Counted& operator=(Counted&&) = delete;
  ~Counted() { cpu_backend().account().give(bytes_); }

 private:
  std::size_t bytes_;
};

template <class T>
struct CountingAllocator {
  using value_type = T;
  CountingAllocator() = default;
  template <class U>
  CountingAllocator(const CountingAllocator<U>&) {}
  T* allocate(std::size_t n) {
    T* memory = static_cast<T*>(begins_a_line(n) ? ::operator new(n * sizeof(T), line) : ::operator new(n * sizeof(T)));
    cpu_backend().account().take(n * sizeof(T));
    return memory;
  }
  void deallocate(T* memory, std::size_t n) {
    cpu_backend().account().give(n * sizeof(T));
    if (begins_a_line(n))
      ::operator delete(memory, line);
    else
      ::operator delete(memory);
  }
  bool operator==(const CountingAllocator&) const = default;

 private:
  static constexpr std::align_val_t line{std::max<std::size_t>(64, alignof(T))};
  /// Whether memory begins at a cache line, as large arrays do: a vector across two lines costs a scan a tenth of its time.
  static bool begins_a_line(std::size_t n) { return alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__ || n * sizeof(T) >= 1024; }
};
/// A vector: entries begin as zeros.
template <class T>
using Scratch = std::vector<T, CountingAllocator<T>>;

/// Entries that are not set: complex numbers as their parts, since std::complex sets itself to 0.
template <class T>
class UnsetScratch {
 public:
  explicit UnsetScratch(std::int64_t n)
      : counted_(static_cast<std::size_t>(n) * sizeof(T)),
        parts_(std::make_unique_for_overwrite<real_t<T>[]>(static_cast<std::size_t>(n) * (sizeof(T) / sizeof(real_t<T>)))) {}
  T* data() const { return reinterpret_cast<T*>(parts_.get()); }

 private:
  Counted counted_;
  std::unique_ptr<real_t<T>[]> parts_;
};

}  // namespace reclab::cpu
