// SPDX-License-Identifier: GPL-3.0-or-later
// Whether a device can still be used. A fault inside a kernel is final: every later call in the process fails, and calling on would only
// repeat it. So once a device is lost nothing is asked of it any more, not even to give memory back.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "array/error.h"

namespace reclab::kernel {

class Health {
 public:
  bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }
  /// The device's words when it was lost.
  std::string words() const {
    const std::lock_guard lock(mutex_);
    return words_;
  }
  /// Checked before every call: throws when the device is lost.
  void require() const {
    if (lost()) fail_lost();
  }

  [[noreturn]] void out_of_memory(std::size_t bytes, const std::string& words) const {
    throw DeviceError(DeviceError::Kind::memory, words,
                      "The CUDA device has not enough free memory for an array of " + std::to_string((bytes >> 20) + 1) + " MiB (" + words +
                          "): shorten the sequence, make the model smaller or choose device cpu.");
  }
  [[noreturn]] void failed(const std::string& doing, const std::string& words) const {
    throw DeviceError(DeviceError::Kind::failed, words, "The CUDA device could not " + doing + " (" + words + "): choose device cpu.");
  }
  [[noreturn]] void lose(const std::string& words) {
    {
      const std::lock_guard lock(mutex_);
      if (words_.empty()) words_ = words;
    }
    lost_.store(true, std::memory_order_release);
    fail_lost();
  }

 private:
  [[noreturn]] void fail_lost() const {
    const std::string said = words();
    throw DeviceError(DeviceError::Kind::lost, said,
                      "The CUDA device was lost (" + said + "): choose device cpu, or start the program again.");
  }
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  std::string words_;
};

}  // namespace reclab::kernel
