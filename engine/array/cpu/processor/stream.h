// SPDX-License-Identifier: GPL-3.0-or-later
// Writing past the caches: an array that is too large to be read again from them is not read into them first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#ifdef __AVX__
#include <immintrin.h>
#endif

#include "array/cpu/processor/vectors.h"

namespace reclab::cpu {

/// The bytes from which on an array is written past the caches: the capacity of the larger ones.
constexpr std::size_t stream_from = std::size_t{24} << 20;

/// Prefetches memory that will be read soon: the processor foresees contiguous reads by itself, but not the start of the next piece of a
/// row. Into the second cache, whose queue of loads that wait for memory is several times that of the first.
inline void ask_for(const void* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(static_cast<const char*>(from) + i, 0, 2);
}

/// memcpy; stream_end() before anybody else reads.
inline void stream_copy(void* to, const void* from, std::size_t bytes) {
#ifdef __AVX__
  auto* out = static_cast<char*>(to);
  const auto* in = static_cast<const char*>(from);
  const std::size_t head = std::min(bytes, (64 - reinterpret_cast<std::uintptr_t>(out) % 64) % 64);
  std::memcpy(out, in, head);
  std::size_t i = head;
  for (; i + 64 <= bytes; i += 64) {
#ifdef __AVX512F__
    _mm512_stream_si512(reinterpret_cast<__m512i*>(out + i), _mm512_loadu_si512(in + i));
#else
    _mm256_stream_si256(reinterpret_cast<__m256i*>(out + i), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i)));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(out + i + 32), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i + 32)));
#endif
  }
  std::memcpy(out + i, in + i, bytes - i);
#else
  std::memcpy(to, from, bytes);
#endif
}
/// state = a state + in, n real entries, and the same past the caches to `out`; stream_end() before anybody else reads.
template <class R>
void stream_multiply_add(std::int64_t n, const R* __restrict a, R* __restrict state, const R* __restrict in, R* __restrict out) {
  std::int64_t i = 0;
#ifdef __AVX__
  using V [[gnu::vector_size(vector_bytes)]] = R;
  constexpr std::int64_t lanes = vector_bytes / sizeof(R);
  const auto load = [](const R* from) {
    V x;
    std::memcpy(&x, from, sizeof(x));
    return x;
  };
  if (reinterpret_cast<std::uintptr_t>(out) % vector_bytes == 0)
    for (; i + lanes <= n; i += lanes) {
      const V now = load(a + i) * load(state + i) + load(in + i);
      std::memcpy(state + i, &now, sizeof(now));
#ifdef __AVX512F__
      _mm512_stream_si512(reinterpret_cast<__m512i*>(out + i), reinterpret_cast<const __m512i&>(now));
#else
      _mm256_stream_si256(reinterpret_cast<__m256i*>(out + i), reinterpret_cast<const __m256i&>(now));
#endif
    }
#endif
  for (; i < n; ++i) out[i] = state[i] = a[i] * state[i] + in[i];
}
inline void stream_end() {
#ifdef __AVX__
  _mm_sfence();
#endif
}

}  // namespace reclab::cpu
