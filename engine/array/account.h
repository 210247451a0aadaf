// SPDX-License-Identifier: GPL-3.0-or-later
// MemoryAccount: the bytes taken of a backend's memory, arrays and scratch alike.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace reclab {

/// Any thread may take and give. A backend has one, to which arrays (device_array.h) and the kernels' scratch are put down; memory whose
/// size does not depend on the model is not.
class MemoryAccount {
 public:
  void take(std::size_t bytes) noexcept {
    const std::int64_t now =
        live_.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed) + static_cast<std::int64_t>(bytes);
    for (std::int64_t most = peak_.load(std::memory_order_relaxed);
         now > most && !peak_.compare_exchange_weak(most, now, std::memory_order_relaxed);) {
    }
  }
  void give(std::size_t bytes) noexcept { live_.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed); }
  /// An array was asked for, and memory for it.
  void take_array(std::size_t bytes) noexcept {
    arrays_.fetch_add(1, std::memory_order_relaxed);
    take(bytes);
  }

  std::int64_t live() const { return live_.load(std::memory_order_relaxed); }  ///< bytes that are taken now
  std::int64_t peak() const { return peak_.load(std::memory_order_relaxed); }  ///< the most that were, since the last restart
  void restart() { peak_.store(live(), std::memory_order_relaxed); }
  std::int64_t arrays() const { return arrays_.load(std::memory_order_relaxed); }  ///< arrays that were allocated so far

 private:
  std::atomic<std::int64_t> live_{0}, peak_{0}, arrays_{0};
};

}  // namespace reclab
