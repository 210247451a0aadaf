// SPDX-License-Identifier: GPL-3.0-or-later
// Fourier transforms of as many real sequences at once as a register has lanes: neighbouring channels, which lie side by side in memory, so
// nothing is transposed and every instruction works for all of them. A sequence x of up to `size / 2` steps, zeros after it, is taken as
// size / 2 complex numbers z[j] = x[2j] + i x[2j+1]; their transform is left in bit-reversed order, in which the frequencies k and
// size / 2 - k lie in mirrored places of one block, and the way back begins there (decimation in frequency and in time, by four; see
// H. V. Sorensen and others, Real-valued fast Fourier transform algorithms, 1987).
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "array/cpu/processor/scratch.h"
#include "array/cpu/processor/vectors.h"

namespace reclab::cpu {

template <class T>
struct LaneTransform {
  using Index = std::int64_t;
  typedef T V __attribute__((vector_size(vector_bytes)));
  static constexpr Index lanes = vector_bytes / sizeof(T);
  /// A complex number of each lane.
  struct Point {
    V re, im;
  };
  struct Turn {
    T re, im;
  };

  /// The number of complex points, a power of four or twice one, at least 16.
  Index points;

  /// Of sequences of up to `count` steps, so that none runs into another: a convolution of two of them has 2 count - 1.
  explicit LaneTransform(Index count) : points(count) {
    for (Index n = points; n >= 4; n /= 4) {
      first_.push_back(std::ssize(turns_));
      for (Index j = 0; j < n / 4; ++j)
        for (const Index times : {1, 2, 3}) turns_.push_back(turn(j * times, n));
    }
    const auto reversed = [&](Index place) {
      Index k = 0;
      for (Index bit = 1; bit < points; bit *= 2, place /= 2) k = 2 * k + place % 2;
      return k;
    };
    each_pair([&](Index, Index place, Index) { mirrored_.push_back(turn(reversed(place), 2 * points)); });
  }

  Index pairs() const { return points / 2 + 1; }
  /// Numbers of the spectrum of all lanes: two complex ones for each pair.
  Index spectrum_size() const { return 4 * pairs() * lanes; }

  /// Scratch for the points of a transform, from a line of the cache on.
  class Points {
   public:
    explicit Points(Index count) : memory_(entries(count)) {
      const auto at = reinterpret_cast<std::uintptr_t>(memory_.data());
      first_ = reinterpret_cast<Point*>((at + vector_bytes - 1) / vector_bytes * vector_bytes);
    }
    static Index entries(Index count) { return (2 * count + 1) * lanes; }
    Point* data() const { return first_; }

   private:
    UnsetScratch<T> memory_;
    Point* first_;
  };

  /// z = the transform of the sequences that read(t) gives, a V, for 0 <= t < steps.
  template <class Read>
  void there(Index steps, const Read& read, Point* z) const {
    const Index quarter = points / 4;
    const auto at = [&](Index j) -> Point { return {2 * j < steps ? read(2 * j) : V{}, 2 * j + 1 < steps ? read(2 * j + 1) : V{}}; };
    const Turn* w = turns_.data() + first_[0];
    for (Index j = 0; j < quarter; ++j, w += 3) {  // the later half of the points is 0
      const Point a = at(j), b = at(j + quarter);
      z[j] = add(a, b);
      z[j + quarter] = times(subtract(a, b), w[1]);
      z[j + 2 * quarter] = times({a.re + b.im, a.im - b.re}, w[0]);
      z[j + 3 * quarter] = times({a.re - b.im, a.im + b.re}, w[2]);
    }
    for (Index block = 0; block < 4; ++block) forward(z + block * quarter, quarter, 1);
  }

  /// write(t, value) for 0 <= t < steps: `points` times the sequences whose transform z is, which is overwritten.
  template <class Write>
  void back(Index steps, Point* z, const Write& write) const {
    const Index quarter = points / 4;
    for (Index block = 0; block < 4; ++block) backward(z + block * quarter, quarter, 1);
    const auto put = [&](Index j, V re, V im) {
      if (2 * j < steps) write(2 * j, re);
      if (2 * j + 1 < steps) write(2 * j + 1, im);
    };
    const Turn* w = turns_.data() + first_[0];
    for (Index j = 0; j < quarter; ++j, w += 3) {
      const Point y0 = z[j], y2 = times_conjugate(z[j + quarter], w[1]), y1 = times_conjugate(z[j + 2 * quarter], w[0]),
                  y3 = times_conjugate(z[j + 3 * quarter], w[2]);
      const Point even = add(y0, y2), odd = add(y1, y3), low = subtract(y0, y2), high = subtract(y1, y3);
      put(j, even.re + odd.re, even.im + odd.im);
      put(j + quarter, low.re - high.im, low.im + high.re);
    }
  }

  /// Twice the spectra of the real sequences at two frequencies: X(k), and the conjugate of X(points - k).
  struct Pair {
    Point at, mirrored;
  };
  /// The pair that begins at a place of z; `number` is that of the pair.
  Pair unpacked(Index number, const Point& z, const Point& other) const {
    const Point even{z.re + other.re, z.im - other.im}, odd{z.im + other.im, other.re - z.re};
    const Point turned = times(odd, mirrored_[static_cast<std::size_t>(number)]);
    return {add(even, turned), subtract(even, turned)};
  }
  /// The inverse of unpacked(), times 2: sets the two places of z, or adds to them.
  template <bool onto>
  void pack(Index number, const Pair& y, Point& z, Point& other) const {
    const Point even = add(y.at, y.mirrored),
                odd = times_conjugate(subtract(y.at, y.mirrored), mirrored_[static_cast<std::size_t>(number)]);
    const Point first{even.re - odd.im, even.im + odd.re}, second{even.re + odd.im, odd.re - even.im};
    const bool alone = &z == &other;
    z = onto ? add(z, first) : first;
    if (!alone) other = onto ? add(other, second) : second;
  }

  /// Calls f(number, place, mirrored place) for every pair of frequencies k and points - k; places 0 and 1 are their own mirrors.
  template <class F>
  void each_pair(const F& f) const {
    f(Index{0}, Index{0}, Index{0});
    f(Index{1}, Index{1}, Index{1});
    Index number = 2;
    for (Index block = 2; block < points; block *= 2)
      for (Index place = block; place < block + block / 2; ++place) f(number++, place, 3 * block - 1 - place);
  }

  static Point add(const Point& x, const Point& y) { return {x.re + y.re, x.im + y.im}; }
  static Point subtract(const Point& x, const Point& y) { return {x.re - y.re, x.im - y.im}; }
  static Point times(const Point& x, const Turn& w) { return {x.re * w.re - x.im * w.im, x.re * w.im + x.im * w.re}; }
  static Point times_conjugate(const Point& x, const Turn& w) { return {x.re * w.re + x.im * w.im, x.im * w.re - x.re * w.im}; }
  static Point times(const Point& x, const Point& y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
  static Point times_conjugate(const Point& x, const Point& y) { return {x.re * y.re + x.im * y.im, x.im * y.re - x.re * y.im}; }
  static Point scaled(const Point& x, T by) { return {x.re * by, x.im * by}; }

 private:
  std::vector<Turn> turns_;     // e^(-2 pi i j / n) and its square and cube, for each j < n / 4, for n = points, points / 4, ...
  std::vector<Index> first_;    // of these, for each n
  std::vector<Turn> mirrored_;  // e^(-2 pi i k / (2 points)) of each pair

  static Turn turn(Index j, Index n) {
    const double angle = -2.0 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n);
    return {static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle))};
  }

  /// The transform of one or two points, there and back.
  static void small(Point* z, Index n) {
    if (n == 1) return;
    const Point a = z[0], b = z[1];
    z[0] = add(a, b);
    z[1] = subtract(a, b);
  }
  void forward(Point* z, Index n, std::size_t level) const {
    if (n <= 2) return small(z, n);
    const Index quarter = n / 4;
    const Turn* w = turns_.data() + first_[level];
    for (Index j = 0; j < quarter; ++j, w += 3) {
      const Point a = z[j], b = z[j + quarter], c = z[j + 2 * quarter], d = z[j + 3 * quarter];
      const Point even = add(a, c), low = subtract(a, c), odd = add(b, d), high = subtract(b, d);
      z[j] = add(even, odd);
      const Point second = subtract(even, odd), first{low.re + high.im, low.im - high.re}, third{low.re - high.im, low.im + high.re};
      if (n == 4) {
        z[1] = second;
        z[2] = first;
        z[3] = third;
        return;
      }
      z[j + quarter] = times(second, w[1]);
      z[j + 2 * quarter] = times(first, w[0]);
      z[j + 3 * quarter] = times(third, w[2]);
    }
    for (Index block = 0; block < 4; ++block) forward(z + block * quarter, quarter, level + 1);
  }
  void backward(Point* z, Index n, std::size_t level) const {
    if (n <= 2) return small(z, n);
    const Index quarter = n / 4;
    for (Index block = 0; n > 4 && block < 4; ++block) backward(z + block * quarter, quarter, level + 1);
    const Turn* w = turns_.data() + first_[level];
    for (Index j = 0; j < quarter; ++j, w += 3) {
      const bool plain = n == 4;
      const Point y0 = z[j], y2 = plain ? z[1] : times_conjugate(z[j + quarter], w[1]),
                  y1 = plain ? z[2] : times_conjugate(z[j + 2 * quarter], w[0]),
                  y3 = plain ? z[3] : times_conjugate(z[j + 3 * quarter], w[2]);
      const Point even = add(y0, y2), odd = add(y1, y3), low = subtract(y0, y2), high = subtract(y1, y3);
      z[j] = add(even, odd);
      z[j + 2 * quarter] = subtract(even, odd);
      z[j + quarter] = {low.re - high.im, low.im + high.re};
      z[j + 3 * quarter] = {low.re + high.im, low.im - high.re};
    }
  }
};

}  // namespace reclab::cpu
