// SPDX-License-Identifier: GPL-3.0-or-later
// The memory pool over a source of a fixed size.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "array/pool.h"
#include "array/rng.h"
#include "test.h"

namespace {

using reclab::MemoryPool;

/// Gives so many bytes at most, aligned as cudaMalloc does.
struct Source {
  std::size_t most = std::size_t{1} << 40, given = 0;
  int asked = 0, refused = 0;
  std::map<void*, std::size_t> pieces;
  MemoryPool pool{[this](std::size_t bytes) -> void* {
                    ++asked;
                    if (given + bytes > most) {
                      ++refused;
                      return nullptr;
                    }
                    void* memory = std::aligned_alloc(MemoryPool::alignment, bytes);
                    pieces[memory] = bytes;
                    given += bytes;
                    return memory;
                  },
                  [this](void* memory) {
                    given -= pieces.at(memory);
                    pieces.erase(memory);
                    std::free(memory);
                  }};
};
constexpr std::size_t MiB = std::size_t{1} << 20;

}  // namespace

TEST_CASE("what was released is handed out again, without asking the source") {
  Source source;
  void* first = source.pool.allocate(3 * MiB);
  const int asked = source.asked;
  source.pool.release(first);
  CHECK(source.pool.allocate(3 * MiB) == first);
  CHECK_EQUAL(source.asked, asked);
  source.pool.release(first);
  CHECK(source.pool.allocate(3 * MiB - 1000) == first);  // the same class
  CHECK(source.pool.allocate(3 * MiB) != first);
}

TEST_CASE("small blocks are cut from slabs, and none of them overlap") {
  Source source;
  std::vector<char*> blocks;
  for (int i = 0; i < 1000; ++i) {
    blocks.push_back(static_cast<char*>(source.pool.allocate(1000)));
    std::memset(blocks.back(), i % 251, 1000);
  }
  CHECK_EQUAL(source.asked, 1);
  for (int i = 0; i < 1000; ++i)
    for (int j = 0; j < 1000; ++j) CHECK(blocks[static_cast<std::size_t>(i)][j] == static_cast<char>(i % 251));
  for (int i = 0; i < 5000; ++i) blocks.push_back(static_cast<char*>(source.pool.allocate(1000)));
  CHECK_EQUAL(source.asked, 2);  // 6000 of 1 KiB: a second slab
  CHECK_EQUAL(source.pool.held(), source.given);
}

TEST_CASE("blocks are aligned to 256 and waste at most a quarter") {
  Source source;
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{255}, std::size_t{256}, std::size_t{257}, std::size_t{1025},
                            std::size_t{5000}, std::size_t{70001}, 3 * MiB + 1}) {
    CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(source.pool.allocate(bytes)) % MemoryPool::alignment, std::uintptr_t{0});
    CHECK(MemoryPool::size_of(bytes) >= bytes && MemoryPool::size_of(bytes) % MemoryPool::alignment == 0);
    if (bytes > 1024) CHECK(static_cast<double>(MemoryPool::size_of(bytes)) <= 1.25 * static_cast<double>(bytes));
  }
}

TEST_CASE("where the source has no more, what lies unused goes back and it is asked once more") {
  Source source;
  source.most = 10 * MiB;
  void* a = source.pool.allocate(4 * MiB);
  void* b = source.pool.allocate(4 * MiB);
  source.pool.release(a);
  CHECK(source.pool.allocate(6 * MiB) != nullptr);  // only without a
  CHECK_EQUAL(source.refused, 1);
  CHECK_EQUAL(source.given, 10 * MiB);
  CHECK(source.pool.allocate(1 * MiB) == nullptr);
  source.pool.release(b);
  CHECK(source.pool.allocate(100) != nullptr);  // b goes, a slab comes
  CHECK_EQUAL(source.pool.in_use(), 6 * MiB + 256);
}

TEST_CASE("where a slab does not fit, a small block has a piece of its own") {
  Source source;
  source.most = MiB;
  void* small = source.pool.allocate(1000);
  CHECK(small != nullptr);
  CHECK(source.given < 2048);
  source.pool.release(small);
  source.pool.trim();
  CHECK_EQUAL(source.given, std::size_t{0});
}

TEST_CASE("trimming keeps slabs in which something is in use, and what is in them") {
  Source source;
  char* kept = static_cast<char*>(source.pool.allocate(500));
  std::memset(kept, 7, 500);
  void* unused = source.pool.allocate(2000);
  void* large = source.pool.allocate(8 * MiB);
  source.pool.release(unused);
  source.pool.release(large);
  source.pool.trim();
  CHECK_EQUAL(source.given, MemoryPool::slab_bytes);
  CHECK(source.pool.allocate(2000) == unused);
  for (int i = 0; i < 500; ++i) CHECK(kept[i] == 7);
  source.pool.release(kept);
  source.pool.release(unused);
  source.pool.trim();
  CHECK_EQUAL(source.given, std::size_t{0});
  CHECK(source.pool.allocate(500) != nullptr);  // a new slab, not the one that went
}

TEST_CASE("random use neither leaks nor mixes blocks up") {
  Source source;
  source.most = 24 * MiB;
  reclab::Rng rng(5);
  {
    std::map<char*, std::pair<std::size_t, char>> live;
    std::size_t in_use = 0;
    int none = 0;
    for (int i = 0; i < 20000; ++i) {
      if (rng.uniform(0.0, 1.0) < 0.55) {
        const auto bytes = static_cast<std::size_t>(std::exp(rng.uniform(0.0, 14.0)));
        char* block = static_cast<char*>(source.pool.allocate(bytes));
        if (!block) {
          ++none;
          continue;
        }
        CHECK(!live.contains(block));
        live[block] = {bytes, static_cast<char>(i)};
        block[0] = block[bytes - 1] = static_cast<char>(i);
        in_use += MemoryPool::size_of(bytes);
      } else if (!live.empty()) {
        auto one = live.lower_bound(live.begin()->first + static_cast<std::ptrdiff_t>(rng.uniform(0.0, 1e7)));
        if (one == live.end()) one = live.begin();
        CHECK(one->first[0] == one->second.second && one->first[one->second.first - 1] == one->second.second);
        in_use -= MemoryPool::size_of(one->second.first);
        source.pool.release(one->first);
        live.erase(one);
      }
      CHECK_EQUAL(source.pool.in_use(), in_use);
      CHECK(source.pool.held() == source.given && in_use <= source.given);
    }
    CHECK(none > 0);
    for (const auto& [block, what] : live) source.pool.release(block);
  }
  source.pool.trim();
  CHECK_EQUAL(source.given, std::size_t{0});
}

TEST_CASE("a pool that ends gives everything back") {
  std::size_t pieces = 0;
  {
    MemoryPool pool(
        [&](std::size_t bytes) {
          ++pieces;
          return std::aligned_alloc(MemoryPool::alignment, bytes);
        },
        [&](void* memory) {
          --pieces;
          std::free(memory);
        });
    pool.allocate(10);
    pool.allocate(MiB);
    CHECK_EQUAL(pieces, std::size_t{2});
  }
  CHECK_EQUAL(pieces, std::size_t{0});
}
