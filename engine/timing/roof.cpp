// SPDX-License-Identifier: GPL-3.0-or-later
#include "timing/roof.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "array/error.h"
#include "files/files.h"
#include "timing/machine.h"
#ifdef __AVX__
#include <immintrin.h>
#endif

namespace reclab {
namespace {

// One register each: with two, the chains of most_flops() would not stay in registers.
#if defined(__AVX512F__)
constexpr std::size_t vector_bytes = 64;
#elif defined(__AVX__)
constexpr std::size_t vector_bytes = 32;
#else
constexpr std::size_t vector_bytes = 16;
#endif
using V = float __attribute__((vector_size(vector_bytes)));
using V64 = double __attribute__((vector_size(vector_bytes)));
constexpr std::size_t lanes = vector_bytes / sizeof(float);

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
void go_on(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled();
}

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

inline void stream(float* to, const V& x) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, reinterpret_cast<const __m512&>(x));
#elif defined(__AVX__)
  _mm256_stream_ps(to, reinterpret_cast<const __m256&>(x));
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

/// Fused multiply-adds of twelve independent chains, whose latency they hide.
template <class T, class W>
double most_flops(unsigned threads, const std::stop_token& stop) {
  constexpr std::int64_t rounds = 4'000'000;
  constexpr double width = sizeof(W) / sizeof(T);
  double most = 0.0;
  std::vector<T> kept(threads);
  for (int repeat = 0; repeat < 12; ++repeat) {
    go_on(stop);
    const double seconds = on_all([&](unsigned thread) {
      const W factor = W{} + (T(1) - T(1e-7) * static_cast<T>(thread + 1)), more = W{} + T(1e-9);
      W s0 = more, s1 = s0 + T(1), s2 = s0 + T(2), s3 = s0 + T(3), s4 = s0 + T(4), s5 = s0 + T(5), s6 = s0 + T(6), s7 = s0 + T(7),
        s8 = s0 + T(8), s9 = s0 + T(9), s10 = s0 + T(10), s11 = s0 + T(11);
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
    most = std::max(most, 2.0 * 12.0 * width * static_cast<double>(threads) * static_cast<double>(rounds) / seconds);
  }
  return most;
}

struct Kept {
  Roof roof;
  double pace = 0.0;  // least of those at which it was measured; 0 where that is not noted
};

/// The limits in a file; nothing where it is damaged or of another machine.
std::optional<Kept> kept_in(const std::filesystem::path& file) {
  try {
    const auto json = nlohmann::ordered_json::parse(read_file(file));
    if (json.at("machine") != machine()) return {};
    const Roof roof{json.at("triad_bytes_per_second"), json.at("cached_bytes_per_second"), json.at("flops_per_second"),
                    json.at("flops64_per_second")};
    for (const double rate : {roof.triad_bytes, roof.cached_bytes, roof.flops, roof.flops64})
      if (!(rate > 0.0) || !std::isfinite(rate)) return {};
    return Kept{roof, json.value("yardstick_seconds", 0.0)};
  } catch (const Error&) {
    return {};  // not there, or not to be read: it is a cache
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

bool older_than_a_day(const std::filesystem::path& file) {
  std::error_code none;
  const auto written = std::filesystem::last_write_time(file, none);
  return !none && std::filesystem::file_time_type::clock::now() - written > std::chrono::hours(24);
}

void keep(const Roof& roof, const std::filesystem::path& file, std::string* problem, double pace) {
  if (file.empty()) return;
  try {
    write_cache(file, {{"machine", machine()},
                       {"triad_bytes_per_second", roof.triad_bytes},
                       {"cached_bytes_per_second", roof.cached_bytes},
                       {"flops_per_second", roof.flops},
                       {"flops64_per_second", roof.flops64},
                       {"yardstick_seconds", pace}});
  } catch (const Error& error) {
    if (problem) *problem = error.what();
  }
}

}  // namespace

Roof measure_roof(std::stop_token stop) {
  Roof roof;
  const unsigned threads = std::max(1u, std::thread::hardware_concurrency());
  {
    const std::size_t n = std::size_t{32} << 20;  // 128 MiB each: far beyond the caches
    const Pages a(n), b(n), c(n);
    for (int repeat = 0; repeat < 8; ++repeat) {
      go_on(stop);
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
    for (int repeat = 0; repeat < 12; ++repeat) {
      go_on(stop);
      const double seconds = on_all([&](unsigned thread) {
        const float* own = all.data + thread * n;
        V sum[8] = {};
        for (int round = 0; round < rounds; ++round)
          for (std::size_t i = 0; i < n; i += 8 * lanes)
            for (std::size_t j = 0; j < 8; ++j) sum[j] += *reinterpret_cast<const V*>(own + i + j * lanes);
        for (const V& s : sum) kept[thread] += s[0];
      });
      roof.cached_bytes =
          std::max(roof.cached_bytes, static_cast<double>(rounds) * static_cast<double>(n * sizeof(float) * threads) / seconds);
    }
  }
  roof.flops = most_flops<float, V>(threads, stop);
  roof.flops64 = most_flops<double, V64>(threads, stop);
  return roof;
}

std::filesystem::path roof_file() { return cache_file("roof.json"); }

Roof roof_of_machine(const std::filesystem::path& file, std::stop_token stop, std::string* problem, double pace) {
  if (const auto kept = file.empty() ? std::nullopt : kept_in(file)) {
    const bool faster = pace > 0.0 && (kept->pace == 0.0 || pace < clearly * kept->pace);
    return faster || older_than_a_day(file) ? raised(kept->roof, file, std::move(stop), problem, pace) : kept->roof;
  }
  const Roof roof = measure_roof(std::move(stop));
  keep(roof, file, problem, pace);
  return roof;
}

Roof best_of(const Roof& x, const Roof& y) {
  return {std::max(x.triad_bytes, y.triad_bytes), std::max(x.cached_bytes, y.cached_bytes), std::max(x.flops, y.flops),
          std::max(x.flops64, y.flops64)};
}

Roof raised(const Roof& roof, const std::filesystem::path& file, std::stop_token stop, std::string* problem, double pace) {
  const Roof best = best_of(roof, measure_roof(std::move(stop)));
  if (const auto kept = file.empty() ? std::nullopt : kept_in(file); kept && kept->pace > 0.0 && (pace == 0.0 || kept->pace < pace))
    pace = kept->pace;
  keep(best, file, problem, pace);
  return best;
}

}  // namespace reclab
