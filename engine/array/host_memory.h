// SPDX-License-Identifier: GPL-3.0-or-later
// The base of backends whose arrays lie in the computer's own memory.
#pragma once

#include <cstdlib>
#include <cstring>
#include <stop_token>

#include "array/backend.h"
#include "array/error.h"
#include "array/stop.h"

namespace reclab {

class HostMemoryBackend : public Backend {
 public:
  Device device() const override { return Device::cpu; }
  /// allocate() is to take memory that std::free gives back.
  void release(void* memory) noexcept override { std::free(memory); }
  void zero(void* memory, std::size_t bytes) override {
    piece_by_piece(bytes, 1, [&](std::size_t from, std::size_t some) { std::memset(static_cast<char*>(memory) + from, 0, some); });
  }
  void upload(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    piece_by_piece(bytes, 1, [&](std::size_t at, std::size_t some) {
      std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, some);
    });
  }
  void finish() override {}
};

/// Throws Cancelled when a stop was asked for.
inline void poll(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled();
}

}  // namespace reclab
