// SPDX-License-Identifier: GPL-3.0-or-later
// PlanningBackend: stands for another backend, computes nothing, and counts the memory that would be taken of that one.
#pragma once

#include <stop_token>

#include "array/backend.h"

namespace reclab {

/// A graph makes the same calls on it as on a device, so account().peak() is the memory that the graph takes: its arrays, those that its
/// operations keep, and the scratch of the kernels at its largest. Arrays are of zeros that nobody writes to, which costs no memory;
/// downloads are small positive numbers, with which no iteration converges, so that all its branches run.
class PlanningBackend final : public Backend {
 public:
  explicit PlanningBackend(Backend& of) : of_(of) {}

  Device device() const override { return of_.device(); }
  std::string name() const override { return of_.name(); }
  void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void zero(void*, std::size_t) override {}
  void upload(void*, const void*, std::size_t) override {}
  void download(void* to, const void* from, std::size_t bytes) override;
  void copy(void*, const void*, std::size_t) override {}
  void finish() override {}

#include "array/operations.inc"

  void matmul_packed(DType, std::int64_t, std::int64_t, std::int64_t, bool, const void*, const void*, const void*, const void*, bool, void*,
                     bool) override {}
  void row_times_packed(DType, std::int64_t, std::int64_t, const void*, const void*, const void*, const void*, void*,
                        const EntryRanges&) override {}
  std::size_t spectrum_size(DType type, std::int64_t steps, std::int64_t channels) override {
    return of_.spectrum_size(type, steps, channels);
  }
  void spectrum(DType type, std::int64_t steps, std::int64_t, const void*, void*) override {
    count(of_.convolve_scratch(type, steps, false));
  }

 private:
  Backend& of_;
  /// Taken and given back again.
  void count(std::size_t bytes) {
    account().take(bytes);
    account().give(bytes);
  }
};

}  // namespace reclab
