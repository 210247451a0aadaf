// SPDX-License-Identifier: GPL-3.0-or-later
// The Fourier transforms of real sequences that a library makes, and the kernels around them: sequences lie time-major, transforms want
// each of them contiguous and padded with zeros, so tiles are transposed in shared memory on the way there and back.
#pragma once

#include "array/cuda/kernels.h"

namespace reclab::kernel {

/// Transforms as cuFFT takes them, in place and not scaled: of `count` sequences of `size` numbers, each 2 * row numbers after the one
/// before, to modes() coefficients each, `row` apart; or back from there, which takes the imaginary parts of the first and the last for
/// zero. The numbers beyond them in a row have no meaning.
template <class T>
struct RealTransforms {
  T* data;
  Index size, row, count;
  bool back;
  Index modes() const { return size / 2 + 1; }
};
/// The layout of the spectra of a convolution's real sequences.
struct SpectrumLayout {
  Index size, row;
  RECLAB_HD Index modes() const { return size / 2 + 1; }
};
/// A length at which the circular convolution of so many steps does not wrap around (2 * steps - 1 at least, and even), and that cuFFT is
/// fast at: the shortest power of two times 1, 3, 5, 7 or 9, a fifth longer than it must be at most.
inline Index transform_length(Index steps) {
  Index best = 0;
  for (const Index odd : {1, 3, 5, 7, 9}) {
    Index size = 2 * odd;
    while (size < 2 * steps) size *= 2;
    if (!best || size < best) best = size;
  }
  return best;
}
/// Rows begin at multiples of 64 bytes.
inline SpectrumLayout spectra_of(Index steps) {
  const Index size = transform_length(steps);
  return {size, (size / 2 + 1 + 7) / 8 * 8};
}

/// A number of a spectrum; read and written as a whole.
template <class T>
struct alignas(2 * sizeof(T)) Coefficient {
  T re, im;
};
template <class T>
T* numbers_of(Coefficient<T>* spectra) {
  return reinterpret_cast<T*>(spectra);
}
/// The sequences of [steps, batch, channels] that are transformed together: number b * some + c is channel c of the `some` that begin where
/// the arrays are pointed to, so that neighbours are neighbours in memory.
struct Sequences {
  Index steps, batch, channels, some;
  RECLAB_HD Index count() const { return batch * some; }
  RECLAB_HD Index line() const { return batch * channels; }
  RECLAB_HD Index at(Index s) const { return s / some * channels + s % some; }
};
/// A block transposes a tile of so many sequences and steps, so that neighbouring threads read and write neighbouring numbers.
template <class T>
struct TransposedTile {
  static constexpr int across = 32, along = 64, each = across * along / 256;
  struct Shared {
    T value[across][along + 1];
  };
  static Index tiles(const Sequences& of, Index length) { return (of.count() + across - 1) / across * ((length + along - 1) / along); }
  RECLAB_HD static Index first_sequence(const Sequences& of, Index index) { return index % ((of.count() + across - 1) / across) * across; }
  RECLAB_HD static Index first_step(const Sequences& of, Index index) { return index / ((of.count() + across - 1) / across) * along; }
};
/// Sequences to padded rows.
template <class T>
struct LoadSequences {
  using Tile = TransposedTile<T>;
  using Shared = typename Tile::Shared;
  Sequences of;
  SpectrumLayout spectra;
  const T* from;
  T* to;
  Index tiles() const { return Tile::tiles(of, spectra.size); }
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared& shared) const {
    const Index sequence = Tile::first_sequence(of, index), step = Tile::first_step(of, index);
    block.phase([&](int thread) {
      const int s = thread % Tile::across, first = thread / Tile::across;
      const bool there = sequence + s < of.count();
      const T* own = from + (there ? of.at(sequence + s) : 0);
      T value[Tile::each];
      for (int j = 0; j < Tile::each; ++j) {
        const Index t = step + first + j * (256 / Tile::across);
        value[j] = there && t < of.steps ? own[t * of.line()] : T(0);
      }
      for (int j = 0; j < Tile::each; ++j) shared.value[s][first + j * (256 / Tile::across)] = value[j];
    });
    block.phase([&](int thread) {
      const int t = thread % Tile::along, first = thread / Tile::along;
      for (int j = 0; j < Tile::each; ++j) {
        const int s = first + j * (256 / Tile::along);
        if (sequence + s < of.count() && step + t < spectra.size) to[(sequence + s) * 2 * spectra.row + step + t] = shared.value[s][t];
      }
    });
  }
};
/// Rows, scaled, to sequences.
template <class T>
struct StoreSequences {
  using Tile = TransposedTile<T>;
  using Shared = typename Tile::Shared;
  Sequences of;
  SpectrumLayout spectra;
  const T* from;
  T* to;
  bool add;
  Index tiles() const { return Tile::tiles(of, of.steps); }
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared& shared) const {
    const Index sequence = Tile::first_sequence(of, index), step = Tile::first_step(of, index);
    block.phase([&](int thread) {
      const int t = thread % Tile::along, first = thread / Tile::along;
      const T unit = T(1) / static_cast<T>(spectra.size);
      T value[Tile::each];
      for (int j = 0; j < Tile::each; ++j) {
        const int s = first + j * (256 / Tile::along);
        const bool there = sequence + s < of.count() && step + t < of.steps;
        value[j] = there ? unit * from[(sequence + s) * 2 * spectra.row + step + t] : T(0);
      }
      for (int j = 0; j < Tile::each; ++j) shared.value[first + j * (256 / Tile::along)][t] = value[j];
    });
    block.phase([&](int thread) {
      const int s = thread % Tile::across, first = thread / Tile::across;
      if (sequence + s >= of.count()) return;
      T* own = to + of.at(sequence + s);
      T value[Tile::each];
      for (int j = 0; j < Tile::each; ++j) {
        const Index t = step + first + j * (256 / Tile::across);
        value[j] = add && t < of.steps ? own[t * of.line()] : T(0);
      }
      for (int j = 0; j < Tile::each; ++j) {
        const int t = first + j * (256 / Tile::across);
        if (step + t < of.steps) own[(step + t) * of.line()] = add ? value[j] + shared.value[s][t] : shared.value[s][t];
      }
    });
  }
};
/// Kernels [channels, steps] to padded rows, a block for 1024 numbers of one.
template <class T>
struct LoadKernels {
  static constexpr Index span = 1024;
  Index steps;
  SpectrumLayout spectra;
  const T* from;
  T* to;
  struct Shared {};
  RECLAB_HD Index spans() const { return (spectra.size + span - 1) / span; }
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared&) const {
    const Index channel = index / spans(), first = index % spans() * span, last = least(first + span, spectra.size);
    block.phase([&](int thread) {
      for (Index t = first + thread; t < last; t += 256) to[channel * 2 * spectra.row + t] = t < steps ? from[channel * steps + t] : T(0);
    });
  }
};
/// Rows, scaled, are added to the gradients of kernels.
template <class T>
struct AddToKernels {
  static constexpr Index span = 1024;
  Index steps;
  SpectrumLayout spectra;
  const T* from;
  T* to;
  struct Shared {};
  RECLAB_HD Index spans() const { return (steps + span - 1) / span; }
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared&) const {
    const Index channel = index / spans(), first = index % spans() * span, last = least(first + span, steps);
    const T unit = T(1) / static_cast<T>(spectra.size);
    block.phase([&](int thread) {
      for (Index t = first + thread; t < last; t += 256) to[channel * steps + t] += unit * from[channel * 2 * spectra.row + t];
    });
  }
};
/// x[b, c] *= k[c], or its conjugate: a block for 256 coefficients of a channel in some of the sequences of the batch.
template <class T>
struct MultiplySpectra {
  static constexpr int together = 8;
  Sequences of;
  SpectrumLayout spectra;
  Coefficient<T>* x;
  const Coefficient<T>* k;
  bool conjugated;
  struct Shared {};
  RECLAB_HD Index spans() const { return (spectra.modes() + 255) / 256; }
  Index blocks() const { return spans() * of.some * ((of.batch + together - 1) / together); }
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared&) const {
    const Index first = index % spans() * 256, c = index / spans() % of.some, b = index / (spans() * of.some) * together;
    block.phase([&](int thread) {
      const Index i = first + thread;
      if (i >= spectra.modes()) return;
      Coefficient<T> factor = k[c * spectra.row + i];
      if (conjugated) factor.im = -factor.im;
      Coefficient<T>* own = x + (b * of.some + c) * spectra.row + i;
      const Index next = of.some * spectra.row;
      Coefficient<T> value[together];
      for (int j = 0; j < together; ++j) value[j] = b + j < of.batch ? own[j * next] : Coefficient<T>{};
      for (int j = 0; j < together; ++j)
        if (b + j < of.batch)
          own[j * next] = {value[j].re * factor.re - value[j].im * factor.im, value[j].re * factor.im + value[j].im * factor.re};
    });
  }
};
/// sum[c] = sum_b g[b, c] conj(x[b, c]), summed in double.
template <class T>
struct CorrelateSpectra {
  Sequences of;
  SpectrumLayout spectra;
  const Coefficient<T>*g, *x;
  Coefficient<T>* sum;
  struct Shared {};
  RECLAB_HD Index spans() const { return (spectra.modes() + 255) / 256; }
  Index blocks() const { return spans() * of.some; }
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared&) const {
    const Index first = index % spans() * 256, c = index / spans();
    block.phase([&](int thread) {
      const Index i = first + thread;
      if (i >= spectra.modes()) return;
      Wave total(0.0);
      for (Index b = 0; b < of.batch; ++b) {
        const Index at = (b * of.some + c) * spectra.row + i;
        const Coefficient<T> left = g[at], right = x[at];
        total += Wave(left.re, left.im) * Wave(right.re, -right.im);
      }
      sum[c * spectra.row + i] = {static_cast<T>(total.re), static_cast<T>(total.im)};
    });
  }
};

}  // namespace reclab::kernel
