// SPDX-License-Identifier: GPL-3.0-or-later
// MemoryPool: memory that is kept for the next array of its size, over a source that is slow to ask. Work on a device goes in one stream,
// so released memory may be handed out again at once: a write to it comes after all earlier uses.
//
// Sizes are rounded up to a class, four to each doubling, so at most a quarter is lost. Small blocks are cut from slabs. When the source
// has no more, everything that lies unused goes back to it, and it is asked once more.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "array/demand.h"

namespace reclab {

class MemoryPool {
 public:
  static constexpr std::size_t alignment = 256;                       ///< of every block, when it is the source's
  static constexpr std::size_t slab_bytes = std::size_t{4} << 20;     ///< from which blocks are cut
  static constexpr std::size_t small_bytes = std::size_t{512} << 10;  ///< the largest of these

  using Allocate = std::function<void*(std::size_t bytes)>;  ///< null when there is not enough
  using Free = std::function<void(void*)>;                   ///< does not throw

  MemoryPool(Allocate allocate, Free free) : source_(std::move(allocate)), free_(std::move(free)) {}
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;
  ~MemoryPool() {
    for (const auto& [base, slab] : slabs_) free_(base);
  }

  /// Null when the source has not enough, even after all that lay unused went back to it.
  void* allocate(std::size_t bytes) {
    const std::size_t size = size_of(bytes);
    const std::lock_guard lock(mutex_);
    Class& own = classes_[size];
    if (own.unused.empty() && !grow(size, own)) return nullptr;
    char* block = own.unused.back();
    own.unused.pop_back();
    Slab& slab = slab_of(block);
    ++slab.live;
    in_use_ += size;
    return block;
  }
  void release(void* memory) noexcept {
    if (!memory) return;
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(static_cast<char*>(memory));
    RECLAB_DEMAND(found != blocks_.end());
    --slab_of(found->first).live;
    in_use_ -= found->second;
    classes_.find(found->second)->second.unused.push_back(found->first);  // has room: grow() saw to it
  }
  /// Gives unused blocks back to the source.
  void trim() noexcept {
    const std::lock_guard lock(mutex_);
    trim_locked();
  }

  std::size_t held() const {  ///< bytes that the source gave
    const std::lock_guard lock(mutex_);
    return held_;
  }
  std::size_t in_use() const {  ///< bytes of the blocks that are handed out
    const std::lock_guard lock(mutex_);
    return in_use_;
  }

  /// The size of the block that stands for so many bytes.
  static std::size_t size_of(std::size_t bytes) {
    const std::size_t least = std::max<std::size_t>(bytes, 1);
    const std::size_t step = std::max(alignment, std::bit_ceil(least) / 8);
    return (least + step - 1) / step * step;
  }

 private:
  struct Slab {
    std::size_t bytes = 0, cut = 0;  // cut: from the start, in blocks
    std::int64_t live = 0;           // blocks that are handed out
  };
  struct Class {
    std::vector<char*> unused;
    std::size_t made = 0;
  };

  Slab& slab_of(char* block) { return std::prev(slabs_.upper_bound(block))->second; }

  /// One more unused block of the class.
  bool grow(std::size_t size, Class& own) {
    own.unused.reserve(own.made + 1);
    char* block = nullptr;
    if (size <= small_bytes && filling_ && slabs_.at(filling_).cut + size <= slabs_.at(filling_).bytes) {
      block = filling_ + slabs_.at(filling_).cut;
      slabs_.at(filling_).cut += size;
    } else {
      block = new_slab(size <= small_bytes ? slab_bytes : size, size);
      if (!block) {
        trim_locked();
        block = new_slab(size, size);  // a slab of its own, where there is no room for more
      }
      if (!block) return false;
    }
    blocks_.emplace(block, size);
    ++own.made;
    own.unused.push_back(block);
    return true;
  }
  char* new_slab(std::size_t bytes, std::size_t cut) {
    char* base = static_cast<char*>(source_(bytes));
    if (!base) return nullptr;
    try {
      slabs_[base] = {bytes, cut, 0};
    } catch (...) {
      free_(base);
      throw;
    }
    held_ += bytes;
    if (bytes > cut) filling_ = base;
    return base;
  }
  void trim_locked() noexcept {
    for (auto slab = slabs_.begin(); slab != slabs_.end();) {
      if (slab->second.live > 0) {
        ++slab;
        continue;
      }
      char* const from = slab->first;
      char* const to = from + slab->second.bytes;
      for (auto& [size, own] : classes_) own.made -= std::erase_if(own.unused, [&](char* block) { return block >= from && block < to; });
      std::erase_if(blocks_, [&](const auto& block) { return block.first >= from && block.first < to; });
      if (filling_ == from) filling_ = nullptr;
      held_ -= slab->second.bytes;
      free_(from);
      slab = slabs_.erase(slab);
    }
  }

  Allocate source_;
  Free free_;
  mutable std::mutex mutex_;
  std::map<char*, Slab> slabs_;                    // by their start
  std::map<std::size_t, Class> classes_;           // by the size of their blocks
  std::unordered_map<char*, std::size_t> blocks_;  // the size of each
  char* filling_ = nullptr;                        // the slab that is cut from
  std::size_t held_ = 0, in_use_ = 0;
};

}  // namespace reclab
