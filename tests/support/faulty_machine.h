// SPDX-License-Identifier: GPL-3.0-or-later
// A device that fails when it is told to: the n-th array finds no memory, the n-th launch is refused, or it is the device's end. It counts
// its calls, so that a test sees leaks, replays, and calls to a device that is lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "array/cuda/health.h"
#include "host_machine.h"

namespace reclab::test {

class FaultyMachine {
 public:
  static constexpr const char* no_memory = "cudaErrorMemoryAllocation: out of memory";
  static constexpr const char* refused = "cudaErrorLaunchOutOfResources: too many resources requested for launch";
  static constexpr const char* gone = "cudaErrorIllegalAddress: an illegal memory access was encountered";
  enum class Fault { none, allocation, launch, end };

  /// Fails the n-th call of its kind from now on, counted from 1. If `lasting` is false, the next one works again.
  void fail(Fault fault, std::int64_t at, bool lasting = false) {
    fault_ = Fault::none;
    at_ = at;
    lasting_ = lasting;
    allocations_ = launches_ = 0;
    fault_ = fault;
  }
  std::int64_t allocations() const { return allocations_; }
  std::int64_t launches() const { return launches_; }  ///< that were asked for one by one, replays counted once
  std::int64_t recordings() const { return recordings_; }
  std::int64_t replays() const { return replays_; }
  /// Calls of threads that had been told that the device is lost. One that is told by its call asked in good faith: another lost it.
  std::int64_t asked_when_lost() const { return asked_when_lost_; }
  /// Arrays that are not given back.
  std::size_t alive() const {
    const std::lock_guard lock(mutex_);
    return alive_.size();
  }

  /// Sets a call before each download from the device.
  void at_download(std::function<void()> call) { at_download_ = std::move(call); }

  std::string name() const { return host_.name(); }
  const kernel::Health& health() const { return health_; }
  void* allocate(std::size_t bytes) {
    health_.require();
    const std::int64_t number = ++allocations_;
    if (fault_ == Fault::allocation && (lasting_ ? number >= at_ : number == at_)) health_.out_of_memory(bytes, no_memory);
    void* memory = host_.allocate(bytes);
    const std::lock_guard lock(mutex_);
    alive_.insert(memory);
    return memory;
  }
  void release(void* memory) noexcept {
    // Arrays of a lost device are not released on it; the host's memory beneath is given back all the same, to see that nothing is
    // forgotten.
    {
      const std::lock_guard lock(mutex_);
      alive_.erase(memory);
    }
    host_.release(memory);
  }
  void zero(void* memory, std::size_t bytes) {
    launch();
    host_.zero(memory, bytes);
  }
  void upload(void* to, const void* from, std::size_t bytes) {
    launch();
    host_.upload(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) {
    if (at_download_) at_download_();
    launch();
    host_.download(to, from, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) {
    launch();
    host_.copy(to, from, bytes);
  }
  void finish() { health_.require(); }
  template <class F>
  void each(std::int64_t n, const F& f) {
    launch();
    host_.each(n, f);
  }
  template <class F>
  void blocks(std::int64_t n, const F& f) {
    launch();
    host_.blocks(n, f);
  }

  using Recorded = HostMachine::Recorded;
  void begin_recording() {
    health_.require();
    ++recordings_;
    host_.begin_recording();
    recording_ = true;
  }
  Recorded end_recording() {
    recording_ = false;
    return host_.end_recording();
  }
  void abandon_recording() noexcept {
    recording_ = false;
    host_.abandon_recording();
  }
  void replay(const Recorded& recorded) {
    launch();
    ++replays_;
    host_.replay(recorded);
  }

 private:
  void launch() {
    if (health_.lost() && !tell()) ++asked_when_lost_;
    health_.require();
    const std::int64_t number = recording_ ? launches_.load() : ++launches_;
    if (fault_ != Fault::launch && fault_ != Fault::end) return;
    if (lasting_ ? number < at_ : number != at_) return;
    if (fault_ == Fault::end) {
      tell();
      health_.lose(gone);
    }
    health_.failed("start a kernel", refused);
  }
  /// True where this thread had not been told that the device is lost.
  bool tell() {
    const std::lock_guard lock(mutex_);
    return told_.insert(std::this_thread::get_id()).second;
  }
  static inline thread_local bool recording_ = false;
  HostMachine host_;
  kernel::Health health_;
  std::function<void()> at_download_;
  mutable std::mutex mutex_;  // of alive_ and told_: a window computes on several threads
  std::set<void*> alive_;
  std::set<std::thread::id> told_;
  std::atomic<Fault> fault_ = Fault::none;
  std::atomic<bool> lasting_ = false;
  std::atomic<std::int64_t> at_ = 0, allocations_ = 0, launches_ = 0, recordings_ = 0, replays_ = 0, asked_when_lost_ = 0;
};

using FaultyBackend = kernel::KernelBackend<FaultyMachine>;

}  // namespace reclab::test
