// SPDX-License-Identifier: GPL-3.0-or-later
// The rule of the same bits: a row of a matrix product is summed in order with one rounding a term, whatever is computed with it and
// however.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "array/backend.h"
#include "array/rng.h"
#include "test.h"

using namespace reclab;

namespace {

template <class T>
std::vector<T> random(Rng& rng, std::int64_t n) {
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& x : values) x = static_cast<T>(rng.normal());
  return values;
}

/// A term of a sum has one rounding, and two under a sanitiser, whose checks part products from sums (CMakePresets.json).
template <class T>
T fused(T x, T y, T sum) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return x * y + sum;
#else
  return std::fma(x, y, sum);
#endif
}

template <class T>
void same_bits(DType type) {
  struct Size {
    std::int64_t m, n, k;
  };
  Backend& cpu = cpu_backend();
  // From one entry to what all processors share, beside the widths of tiles and panels.
  for (const Size s : {Size{1, 1, 1}, Size{1, 1024, 256}, Size{1, 330, 700}, Size{1, 480, 700}, Size{2, 257, 31}, Size{3, 33, 1000},
                       Size{7, 95, 17}, Size{8, 128, 129}, Size{17, 300, 64}, Size{33, 1025, 40}, Size{100, 64, 513}, Size{390, 96, 70},
                       Size{200, 7, 900}, Size{77, 12, 40}, Size{130, 16, 500}, Size{5, 7, 0}})
    for (const bool transpose : {false, true})
      for (const bool accumulate : {false, true}) {
        Rng rng(5);
        const auto a = random<T>(rng, s.m * s.k), b = random<T>(rng, s.k * s.n), before = random<T>(rng, s.m * s.n);
        auto exact = before;
        for (std::int64_t i = 0; i < s.m; ++i)
          for (std::int64_t j = 0; j < s.n; ++j) {
            T& sum = exact[static_cast<std::size_t>(i * s.n + j)];
            if (!accumulate) sum = T(0);
            for (std::int64_t p = 0; p < s.k; ++p)
              sum =
                  fused(a[static_cast<std::size_t>(i * s.k + p)], b[static_cast<std::size_t>(transpose ? j * s.k + p : p * s.n + j)], sum);
          }
        const auto expect = [&](const std::vector<T>& c, const char* how) {
          if (std::memcmp(c.data(), exact.data(), c.size() * sizeof(T)) != 0)
            throw test::Failure(std::to_string(s.m) + " x " + std::to_string(s.n) + " over " + std::to_string(s.k) +
                                (transpose ? ", transposed" : "") + (accumulate ? ", added" : "") + ": other bits " + how);
        };
        auto c = before;
        cpu.matmul(type, {1, s.m, s.n, s.k, false, transpose}, a.data(), b.data(), c.data(), accumulate);
        expect(c, "at once");
        c = before;
        for (std::int64_t i = 0; i < s.m; ++i)
          cpu.matmul(type, {1, 1, s.n, s.k, false, transpose}, a.data() + i * s.k, b.data(), c.data() + i * s.n, accumulate);
        expect(c, "row by row");
        std::vector<T> packed(static_cast<std::size_t>(s.k * ((s.n + 31) / 32 * 32)));
        cpu.pack(type, s.k, s.n, transpose, b.data(), packed.data());
        c = before;
        cpu.matmul_packed(type, s.m, s.n, s.k, transpose, a.data(), nullptr, packed.data(), nullptr, false, c.data(), accumulate);
        expect(c, "packed");
        if (transpose && s.m == 1 && !accumulate)
          for (const std::int64_t piece : {32, 64, 96, 160}) {
            const auto in_pieces = [&](const char* how, bool backwards, const auto& make) {
              c = before;
              for (std::int64_t from = 0; from < s.n; from += piece)
                make(EntryRanges{.from = from, .to = std::min(s.n, from + piece), .backwards = backwards});
              expect(c, how);
            };
            const auto own = [&](const EntryRanges& entries) {
              cpu.row_times_packed(type, s.n, s.k, a.data(), b.data(), packed.data(), nullptr, c.data(), entries);
            };
            in_pieces("in pieces of a row", false, own);
            in_pieces("in pieces of a row, the last entries first", true, own);
            in_pieces("in pieces of a row, as any backend does that packs nothing", false, [&](const EntryRanges& entries) {
              cpu.Backend::row_times_packed(type, s.n, s.k, a.data(), b.data(), nullptr, nullptr, c.data(), entries);
            });
          }
        // As the gates of a cell lie side by side, a part of each at once.
        if (transpose && s.m == 1 && !accumulate)
          for (const std::int64_t parts : {2, 3, 4, 5})
            for (std::int64_t of_part = s.n / parts, piece = 32; s.n % (parts * 32) == 0 && piece <= of_part; piece += 32) {
              for (const bool backwards : {false, true}) {
                c = before;
                for (std::int64_t from = 0; from < of_part; from += piece) {
                  const EntryRanges entries{from, std::min(of_part, from + piece), parts, of_part, backwards};
                  cpu.row_times_packed(type, s.n, s.k, a.data(), b.data(), packed.data(), nullptr, c.data(), entries);
                }
                expect(c, backwards ? "in pieces of parts, the last entries first" : "in pieces of parts");
              }
              cpu.Backend::row_times_packed(type, s.n, s.k, a.data(), b.data(), nullptr, nullptr, c.data(), {0, of_part, parts, of_part});
              expect(c, "in parts that are not packed");
              const auto plain = exact;
              const std::vector<T> more = random<T>(rng, s.n);
              for (std::size_t e = 0; e < exact.size(); ++e) exact[e] += more[e];
              c = before;
              for (std::int64_t from = 0; from < of_part; from += piece)
                cpu.row_times_packed(type, s.n, s.k, a.data(), b.data(), packed.data(), more.data(), c.data(),
                                     {from, std::min(of_part, from + piece), parts, of_part});
              expect(c, "in pieces of parts, with something added");
              exact = plain;
            }
        // What is added comes after the sum, as an addition of its own.
        const auto bias = random<T>(rng, s.n), rows = random<T>(rng, s.m * s.n);
        for (const bool by_rows : {false, true}) {
          const auto plain = exact;
          for (std::int64_t i = 0; i < s.m * s.n; ++i)
            exact[static_cast<std::size_t>(i)] += by_rows ? rows[static_cast<std::size_t>(i)] : bias[static_cast<std::size_t>(i % s.n)];
          c = before;
          cpu.matmul_packed(type, s.m, s.n, s.k, transpose, a.data(), nullptr, packed.data(), by_rows ? rows.data() : bias.data(), by_rows,
                            c.data(), accumulate);
          expect(c, "packed, with something added");
          if (!accumulate && !by_rows) {
            cpu.matmul_biased(type, {1, s.m, s.n, s.k, false, transpose}, a.data(), b.data(), bias.data(), c.data());
            expect(c, "with a bias");
          }
          exact = plain;
        }
        std::vector<T> turned(a.size());
        for (std::int64_t i = 0; i < s.m; ++i)
          for (std::int64_t p = 0; p < s.k; ++p) turned[static_cast<std::size_t>(p * s.m + i)] = a[static_cast<std::size_t>(i * s.k + p)];
        c = before;
        cpu.matmul(type, {1, s.m, s.n, s.k, true, transpose}, turned.data(), b.data(), c.data(), accumulate);
        expect(c, "with A transposed");
      }
}

}  // namespace

TEST_CASE("products of float32 have the same bits however they are made") { same_bits<float>(DType::f32); }
TEST_CASE("products of float64 have the same bits however they are made") { same_bits<double>(DType::f64); }
