// SPDX-License-Identifier: GPL-3.0-or-later
#include "roof.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#ifdef __AVX__
#include <immintrin.h>
#endif

namespace reclab::bench {
namespace {

using V = float __attribute__((vector_size(64)));
constexpr std::size_t lanes = 16;

struct Pages {
  float* data;
  std::size_t count;
  explicit Pages(std::size_t n) : count(n) {
    constexpr std::size_t page = std::size_t{2} << 20;
    data = static_cast<float*>(std::aligned_alloc(page, (n * sizeof(float) + page - 1) / page * page));
    madvise(data, n * sizeof(float), MADV_HUGEPAGE);
    std::fill(data, data + n, 1.0f);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { std::free(data); }
};

inline void stream(float* to, V x) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, reinterpret_cast<__m512&>(x));
#elif defined(__AVX__)
  _mm256_stream_ps(to, reinterpret_cast<__m256*>(&x)[0]);
  _mm256_stream_ps(to + 8, reinterpret_cast<__m256*>(&x)[1]);
#else
  *reinterpret_cast<V*>(to) = x;
#endif
}

/// Runs work(thread) on all processors and returns the seconds of the slowest.
double on_all(const std::function<void(unsigned)>& work) {
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  const double start = now();
  std::vector<std::jthread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  others.clear();
  return now() - start;
}

}  // namespace

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Timing summary(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size();
  return {seconds[n / 2], seconds[n / 4], seconds[n - 1 - n / 4], static_cast<int>(n)};
}

Roof measure_roof() {
  Roof roof;
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  {
    const std::size_t n = std::size_t{32} << 20;  // 128 MiB each: far beyond the caches
    const Pages a(n), b(n), c(n);
    for (int repeat = 0; repeat < 8; ++repeat) {
      const double seconds = on_all([&](unsigned thread) {
        const std::size_t from = n / lanes * thread / threads * lanes, to = n / lanes * (thread + 1) / threads * lanes;
        for (std::size_t i = from; i < to; i += lanes)
          stream(a.data + i, *reinterpret_cast<const V*>(b.data + i) + 3.0f * *reinterpret_cast<const V*>(c.data + i));
      });
      roof.triad_bytes = std::max(roof.triad_bytes, 3.0 * static_cast<double>(n * sizeof(float)) / seconds);
    }
  }
  {
    constexpr std::size_t n = std::size_t{128} << 10;  // 512 KiB
    constexpr int rounds = 2000;
    const Pages all(n * threads);
    std::vector<float> kept(threads);
    for (int repeat = 0; repeat < 5; ++repeat) {
      const double seconds = on_all([&](unsigned thread) {
        const float* own = all.data + thread * n;
        V sum[8] = {};
        for (int round = 0; round < rounds; ++round)
          for (std::size_t i = 0; i < n; i += 8 * lanes)
            for (std::size_t j = 0; j < 8; ++j) sum[j] += *reinterpret_cast<const V*>(own + i + j * lanes);
        for (const V& s : sum) kept[thread] += s[0];
      });
      roof.cached_bytes = std::max(roof.cached_bytes, static_cast<double>(rounds) * static_cast<double>(n * sizeof(float) * threads) / seconds);
    }
  }
  {
    constexpr std::int64_t rounds = 4'000'000;
    std::vector<float> kept(threads);
    for (int repeat = 0; repeat < 5; ++repeat) {
      const double seconds = on_all([&](unsigned thread) {
        const V factor = V{} + (1.0f - 1e-7f * static_cast<float>(thread + 1)), more = V{} + 1e-9f;
        V s0 = more, s1 = s0 + 1.0f, s2 = s0 + 2.0f, s3 = s0 + 3.0f, s4 = s0 + 4.0f, s5 = s0 + 5.0f, s6 = s0 + 6.0f, s7 = s0 + 7.0f, s8 = s0 + 8.0f, s9 = s0 + 9.0f, s10 = s0 + 10.0f,
          s11 = s0 + 11.0f;
        for (std::int64_t round = 0; round < rounds; ++round) {
          s0 = s0 * factor + more;
          s1 = s1 * factor + more;
          s2 = s2 * factor + more;
          s3 = s3 * factor + more;
          s4 = s4 * factor + more;
          s5 = s5 * factor + more;
          s6 = s6 * factor + more;
          s7 = s7 * factor + more;
          s8 = s8 * factor + more;
          s9 = s9 * factor + more;
          s10 = s10 * factor + more;
          s11 = s11 * factor + more;
        }
        kept[thread] = (s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + s10 + s11)[0];
      });
      roof.flops = std::max(roof.flops, 2.0 * 12.0 * static_cast<double>(lanes * threads) * static_cast<double>(rounds) / seconds);
    }
  }
  return roof;
}

}  // namespace reclab::bench
