// SPDX-License-Identifier: GPL-3.0-or-later
// A machine (kernel_backend.h) whose work can be recorded and done again, where it knows how to:
//   Recorded                       a recording; given up when it is destroyed
//   begin_recording()              from here on this thread's launches, zeros and copies are kept and not done
//   end_recording() -> Recorded
//   abandon_recording() noexcept
//   replay(Recorded&)
// Memory that is taken and given back while recording stays with the recording, since each replay writes to it again; so does memory that
// was taken before and is given back meanwhile. Memory that is taken and not given back is its taker's, as it is without a recording.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "array/backend.h"
#include "array/demand.h"

namespace reclab::kernel {

template <class Machine>
class Recorder {
 public:
  template <class... Arguments>
  explicit Recorder(Arguments&&... arguments) : machine_(std::forward<Arguments>(arguments)...) {}
  Machine& machine() { return machine_; }
  const Machine& machine() const { return machine_; }

  std::string name() const { return machine_.name(); }
  void* allocate(std::size_t bytes) {
    if (Kept* kept = recording()) return kept->take(bytes);
    return machine_.allocate(bytes);
  }
  void release(void* memory) noexcept {
    if (Kept* kept = recording())
      kept->give(memory);
    else
      machine_.release(memory);
  }
  void zero(void* memory, std::size_t bytes) { machine_.zero(memory, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) { machine_.copy(to, from, bytes); }
  void upload(void* to, const void* from, std::size_t bytes) {
    waits();
    machine_.upload(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) {
    waits();
    machine_.download(to, from, bytes);
  }
  void finish() {
    waits();
    machine_.finish();
  }
  template <class F>
  void each(std::int64_t n, const F& f) {
    machine_.each(n, f);
  }
  template <class F>
  void blocks(std::int64_t n, const F& f) {
    machine_.blocks(n, f);
  }

  /// Whether the machine's library, if it has one, makes this product (kernel::ColumnProduct). None does while recording: a library's
  /// workspace belongs to the one stream that runs, and a recording has a stream of its own.
  template <class Product>
  bool product(const Product& product) {
    if constexpr (requires { machine_.product(product); })
      return !recording() && machine_.product(product);
    else
      return false;
  }
  /// Whether the machine has a library for Fourier transforms of real sequences (kernel::RealTransforms). It takes no part in recordings
  /// either: to ask it for transforms ends one.
  bool has_transforms() const {
    if constexpr (requires { machine_.has_transforms(); })
      return machine_.has_transforms();
    else
      return false;
  }
  template <class Transforms>
  void transforms(const Transforms& transforms) {
    waits();
    if constexpr (requires { machine_.transforms(transforms); })
      machine_.transforms(transforms);
    else
      RECLAB_DEMAND(has_transforms());
  }
  bool is_recording() const noexcept { return recording() != nullptr; }

  std::unique_ptr<Recording> record(const std::function<void()>& work) {
    if constexpr (records) {
      if (recording()) return nullptr;
      auto kept = std::make_unique<Kept>(*this);
      machine_.begin_recording();
      current_ = kept.get();
      try {
        work();
      } catch (const Waits&) {
        current_ = nullptr;
        kept->leave_taken();
        machine_.abandon_recording();
        return nullptr;
      } catch (...) {
        current_ = nullptr;
        kept->leave_taken();
        machine_.abandon_recording();
        throw;
      }
      current_ = nullptr;
      kept->leave_taken();
      kept->work.emplace(machine_.end_recording());
      return kept;
    } else {
      return nullptr;
    }
  }

 private:
  static constexpr bool records = requires(Machine& machine) { machine.begin_recording(); };
  struct Waits {};  // for the device, or is a library's: cannot be recorded

  template <class M, bool>
  struct WorkOf {
    using Type = int;
  };
  template <class M>
  struct WorkOf<M, true> {
    using Type = typename M::Recorded;
  };

  struct Kept final : Recording {
    struct Block {
      void* memory;
      std::size_t bytes;
      bool taken;
    };
    Recorder& of;
    std::vector<Block> blocks;
    std::optional<typename WorkOf<Machine, records>::Type> work;

    explicit Kept(Recorder& recorder) : of(recorder) {}
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    ~Kept() override {
      work.reset();
      for (const Block& block : blocks) of.machine_.release(block.memory);
    }
    void replay() override {
      if constexpr (records) of.machine_.replay(*work);
    }
    void* take(std::size_t bytes) {
      for (Block& block : blocks)
        if (!block.taken && block.bytes >= bytes && block.bytes <= 2 * bytes) {
          block.taken = true;
          return block.memory;
        }
      blocks.reserve(blocks.size() + 1);
      blocks.push_back({of.machine_.allocate(bytes), bytes, true});
      return blocks.back().memory;
    }
    void give(void* memory) {
      for (Block& block : blocks)
        if (block.memory == memory) {
          block.taken = false;
          return;
        }
      blocks.push_back({memory, 0, false});  // from before, of unknown size
    }
    void leave_taken() noexcept {
      std::erase_if(blocks, [](const Block& block) { return block.taken; });
    }
  };

  Kept* recording() const noexcept { return current_ && &current_->of == this ? current_ : nullptr; }
  void waits() const {
    if (recording()) throw Waits();
  }

  static inline thread_local Kept* current_ = nullptr;
  Machine machine_;
};

}  // namespace reclab::kernel
