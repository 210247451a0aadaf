// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/cpu/fourier/fourier.h"

#include <fftw3.h>

#include <algorithm>
#include <complex>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "array/cpu/fourier/groups.h"
#include "array/cpu/processor/pairs.h"
#include "array/cpu/processor/scratch.h"

namespace reclab::cpu {
namespace {

template <class T>
struct Fftw;
template <>
struct Fftw<double> {
  using Plan = fftw_plan;
  using Complex = fftw_complex;
  static constexpr auto there = fftw_plan_dft_r2c_1d;
  static constexpr auto back = fftw_plan_dft_c2r_1d;
  static constexpr auto run_there = fftw_execute_dft_r2c;
  static constexpr auto run_back = fftw_execute_dft_c2r;
  static constexpr auto allocate = fftw_alloc_real;
  static constexpr auto release = fftw_free;
};
template <>
struct Fftw<float> {
  using Plan = fftwf_plan;
  using Complex = fftwf_complex;
  static constexpr auto there = fftwf_plan_dft_r2c_1d;
  static constexpr auto back = fftwf_plan_dft_c2r_1d;
  static constexpr auto run_there = fftwf_execute_dft_r2c;
  static constexpr auto run_back = fftwf_execute_dft_c2r;
  static constexpr auto allocate = fftwf_alloc_real;
  static constexpr auto release = fftwf_free;
};

/// Memory that FFTW can use its widest instructions on.
template <class T>
class Array {
 public:
  explicit Array(std::int64_t n)
      : counted_(static_cast<std::size_t>(n) * sizeof(T)), data_(Fftw<T>::allocate(static_cast<std::size_t>(n))), size_(n) {}
  T* data() const { return data_.get(); }
  std::complex<T>* complex() const { return reinterpret_cast<std::complex<T>*>(data_.get()); }
  typename Fftw<T>::Complex* raw() const { return reinterpret_cast<typename Fftw<T>::Complex*>(data_.get()); }
  void clear() { std::fill_n(data_.get(), size_, T(0)); }

 private:
  struct Release {
    void operator()(T* memory) const { Fftw<T>::release(memory); }
  };
  Counted counted_;
  std::unique_ptr<T[], Release> data_;
  std::int64_t size_;
};

/// Transforms of one length, in place: `size` numbers become size/2 + 1 complex ones, so a row is size + 2 long, and a multiple of 16.
template <class T>
struct Transform {
  std::int64_t size, row;
  typename Fftw<T>::Plan there, back;
  std::int64_t modes() const { return size / 2 + 1; }
};

std::int64_t row_of(std::int64_t size) { return (size + 2 + 15) / 16 * 16; }

/// Plans are made by rule and not by measuring, so that the bits are always the same.
template <class T>
const Transform<T>& transform(std::int64_t steps) {
  static auto& known = *new std::map<std::int64_t, Transform<T>>;  // to the end of the process, when other threads may still compute
  const std::int64_t size = transform_size(steps);
  const std::lock_guard lock(planner());
  const auto found = known.find(size);
  if (found != known.end()) return found->second;
  const std::int64_t row = row_of(size);
  const Array<T> scratch(row);
  const Transform<T> made{size, row, Fftw<T>::there(static_cast<int>(size), scratch.data(), scratch.raw(), FFTW_ESTIMATE),
                          Fftw<T>::back(static_cast<int>(size), scratch.raw(), scratch.data(), FFTW_ESTIMATE)};
  return known.emplace(size, made).first->second;
}

/// x *= y, or conj(y).
template <class T>
void multiply(std::int64_t n, std::complex<T>* x, const std::complex<T>* y, bool conjugate) {
  using P = Pairs<T>;
  T* to = reinterpret_cast<T*>(x);
  const T* by = reinterpret_cast<const T*>(y);
  std::int64_t i = 0;
  for (; i + P::lanes <= 2 * n; i += P::lanes) P::store(to + i, P::product(P::load(to + i), P::load(by + i), conjugate));
  for (i /= 2; i < n; ++i) x[i] *= conjugate ? std::conj(y[i]) : y[i];
}

/// As many neighbouring channels as a cache line holds go together, so that each line of a sequence is read once.
template <class T>
constexpr std::int64_t together = 64 / static_cast<std::int64_t>(sizeof(T));

template <class T>
class PairedRows {
 public:
  explicit PairedRows(const Transform<T>& t) : t_(t), data_(together<T> * t.row) {}
  std::complex<T>* row(std::int64_t w) const { return data_.complex() + w * t_.row / 2; }

  /// The first n rows from `from`: entry i of row w lies at from[i * step + w * apart].
  void load(const T* from, std::int64_t n, std::int64_t steps, std::int64_t step, std::int64_t apart) {
    for (std::int64_t w = 0; w < n; ++w) std::fill_n(data_.data() + w * t_.row + steps, t_.row - steps, T(0));
    if (step == 1) {
      for (std::int64_t w = 0; w < n; ++w) std::copy_n(from + w * apart, steps, data_.data() + w * t_.row);
    } else {
      for (std::int64_t i = 0; i < steps; ++i)
        for (std::int64_t w = 0; w < n; ++w) data_.data()[w * t_.row + i] = from[i * step + w * apart];
    }
    for (std::int64_t w = 0; w < n; ++w) {
      T* at = data_.data() + w * t_.row;
      Fftw<T>::run_there(t_.there, at, reinterpret_cast<typename Fftw<T>::Complex*>(at));
    }
  }
  void store(T* to, std::int64_t n, std::int64_t steps, std::int64_t step, std::int64_t apart, bool add) {
    const T unit = T(1) / static_cast<T>(t_.size);
    for (std::int64_t w = 0; w < n; ++w) {
      T* at = data_.data() + w * t_.row;
      Fftw<T>::run_back(t_.back, reinterpret_cast<typename Fftw<T>::Complex*>(at), at);
    }
    for (std::int64_t i = 0; i < steps; ++i)
      for (std::int64_t w = 0; w < n; ++w) {
        T& value = to[i * step + w * apart];
        value = unit * data_.data()[w * t_.row + i] + (add ? value : T(0));
      }
  }
  void clear() { data_.clear(); }

 private:
  const Transform<T>& t_;
  Array<T> data_;
};

/// The spectra of some channels: those that are there, or made here.
template <class T>
class Kernel {
 public:
  Kernel(const Transform<T>& t, const T* kernel, const T* spectrum, std::int64_t steps, std::int64_t channel, std::int64_t n)
      : t_(t), there_(spectrum) {
    if (there_) {
      there_ += channel * t.row;
    } else {
      made_.emplace(t);
      made_->load(kernel + channel * steps, n, steps, 1, steps);
    }
  }
  const std::complex<T>* row(std::int64_t w) const {
    return there_ ? reinterpret_cast<const std::complex<T>*>(there_ + w * t_.row) : made_->row(w);
  }

 private:
  const Transform<T>& t_;
  const T* there_;
  std::optional<PairedRows<T>> made_;
};

template <class T>
class ByRows final : public Convolution<T> {
 public:
  std::int64_t spectrum_size(std::int64_t steps, std::int64_t channels) const override { return channels * transform<T>(steps).row; }
  std::int64_t scratch(std::int64_t steps, bool adjoint) const override {
    return thread_count() * (adjoint ? 4 : 2) * together<T> * row_of(transform_size(steps));
  }
  void spectrum(std::int64_t steps, std::int64_t channels, const T* kernel, T* spectrum) const override {
    const Transform<T>& t = transform<T>(steps);
    each_group<together<T>>(channels, [&](std::int64_t c, auto n) {
      PairedRows<T> k(t);
      k.load(kernel + c * steps, n, steps, 1, steps);
      std::copy_n(reinterpret_cast<const T*>(k.row(0)), n * t.row, spectrum + c * t.row);
    });
  }
  void convolve(std::int64_t steps, std::int64_t batch, std::int64_t channels, const T* kernel, const T* spectrum, const T* u,
                T* y) const override {
    const Transform<T>& t = transform<T>(steps);
    each_group<together<T>>(channels, [&](std::int64_t c, auto n) {
      const Kernel<T> k(t, kernel, spectrum, steps, c, n);
      PairedRows<T> x(t);
      for (std::int64_t b = 0; b < batch; ++b) {
        x.load(u + b * channels + c, n, steps, batch * channels, 1);
        for (std::int64_t w = 0; w < n; ++w) multiply(t.modes(), x.row(w), k.row(w), false);
        x.store(y + b * channels + c, n, steps, batch * channels, 1, false);
      }
    });
  }
  void adjoint(std::int64_t steps, std::int64_t batch, std::int64_t channels, const T* kernel, const T* spectrum, const T* u, const T* gy,
               T* gkernel, T* gu) const override {
    const Transform<T>& t = transform<T>(steps);
    each_group<together<T>>(channels, [&](std::int64_t c, auto n) {
      const Kernel<T> k(t, kernel, spectrum, steps, c, n);
      PairedRows<T> x(t), g(t), sum(t);
      sum.clear();
      for (std::int64_t b = 0; b < batch; ++b) {
        g.load(gy + b * channels + c, n, steps, batch * channels, 1);
        if (gkernel) {
          x.load(u + b * channels + c, n, steps, batch * channels, 1);
          for (std::int64_t w = 0; w < n; ++w)
            for (std::int64_t i = 0; i < t.modes(); ++i) sum.row(w)[i] += g.row(w)[i] * std::conj(x.row(w)[i]);
        }
        if (gu) {
          for (std::int64_t w = 0; w < n; ++w) multiply(t.modes(), g.row(w), k.row(w), true);
          g.store(gu + b * channels + c, n, steps, batch * channels, 1, true);
        }
      }
      if (gkernel) sum.store(gkernel + c * steps, n, steps, 1, steps, true);
    });
  }
};

}  // namespace

std::mutex& planner() {
  static std::mutex mutex;
  return mutex;
}

template <class T>
const Convolution<T>& convolution_by_rows() {
  static const ByRows<T> only;
  return only;
}
template const Convolution<float>& convolution_by_rows();
template const Convolution<double>& convolution_by_rows();

}  // namespace reclab::cpu
