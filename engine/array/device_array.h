// SPDX-License-Identifier: GPL-3.0-or-later
// DeviceArray: the one owner of a backend's memory. An array that outlives a call is held by one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "array/backend.h"
#include "array/demand.h"

namespace reclab {

/// An array in the memory of a backend's device, released with it. Its entries are not set.
class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(Backend& backend, DType type, std::int64_t entries) { resize(backend, type, entries); }
  /// An array of single bytes, for contents of no DType (the spectrum of a kernel).
  DeviceArray(Backend& backend, std::size_t bytes) { resize_bytes(backend, bytes, 1); }
  /// A copy of an array in the host's memory.
  DeviceArray(Backend& backend, std::span<const char> host) : DeviceArray(backend, host.size()) {
    backend.upload(data_, host.data(), bytes_);
  }
  DeviceArray(DeviceArray&& other) noexcept { swap(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    DeviceArray old(std::move(other));
    swap(old);
    return *this;
  }
  ~DeviceArray() { release(); }

  /// Makes room for so many entries and keeps none of the old ones; memory that is large enough already is used again. Returns data().
  /// Where there is not enough memory it throws, and the array is empty.
  void* resize(Backend& backend, DType type, std::int64_t entries) {
    RECLAB_DEMAND(entries >= 0);
    return resize_bytes(backend, static_cast<std::size_t>(entries) * bytes_of(type), bytes_of(type));
  }
  void release() noexcept {
    if (data_) {
      backend_->account().give(capacity_);
      backend_->release(data_);
    }
    data_ = nullptr;
    bytes_ = capacity_ = 0;
  }

  void* data() const { return data_; }
  /// The address of an entry.
  void* at(std::int64_t entry) const { return static_cast<char*>(data_) + entry * static_cast<std::ptrdiff_t>(entry_bytes_); }
  std::int64_t entries() const { return static_cast<std::int64_t>(bytes_ / entry_bytes_); }
  std::size_t bytes() const { return bytes_; }        ///< of its entries
  std::size_t capacity() const { return capacity_; }  ///< bytes that it keeps from others: at least bytes()
  explicit operator bool() const { return data_ != nullptr; }

 private:
  void* resize_bytes(Backend& backend, std::size_t bytes, std::size_t entry_bytes) {
    if (!data_ || backend_ != &backend || bytes > capacity_) {
      release();  // before the larger one is asked for: both may not fit side by side
      data_ = backend.allocate(std::max<std::size_t>(bytes, 1));
      backend_ = &backend;
      capacity_ = bytes;
      backend.account().take_array(bytes);
    }
    bytes_ = bytes;
    entry_bytes_ = entry_bytes;
    return data_;
  }
  void swap(DeviceArray& other) noexcept {
    std::swap(backend_, other.backend_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(capacity_, other.capacity_);
    std::swap(entry_bytes_, other.entry_bytes_);
  }
  Backend* backend_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0, capacity_ = 0, entry_bytes_ = 1;
};

}  // namespace reclab
