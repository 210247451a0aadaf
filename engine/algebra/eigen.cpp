// SPDX-License-Identifier: GPL-3.0-or-later
#include "algebra/eigen.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "algebra/columns.h"
#include "array/cpu/processor/threads.h"
#include "array/demand.h"
#include "array/stop.h"

namespace reclab {
namespace {

/// The order that eigenvalues are given in.
bool by_size(const std::complex<double>& x, const std::complex<double>& y) {
  const double a = std::abs(x), b = std::abs(y);
  return a != b ? a > b : std::arg(x) < std::arg(y);
}

using namespace columns;

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr double tiny = std::numeric_limits<double>::min() / epsilon;

/// I - tau (1, v1, v2)^T (1, v1, v2), with t = tau v.
struct Reflection {
  double tau = 0.0, v1 = 0.0, v2 = 0.0, t1 = 0.0, t2 = 0.0;

  template <class Value>
  void apply(Value& x, Value& y, Value& z) const {
    const Value s = x + v1 * y + v2 * z;
    x -= s * tau;
    y -= s * t1;
    z -= s * t2;
  }
};

typedef double LooseLane __attribute__((vector_size(sizeof(Lane)), aligned(alignof(double)), may_alias));

[[gnu::always_inline]] inline void transpose(Lane (&x)[lanes]) {
  Lane y[lanes];
  for (int i = 0; i < lanes; i += 2) {
    y[i] = __builtin_shufflevector(x[i], x[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    y[i + 1] = __builtin_shufflevector(x[i], x[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  for (int i = 0; i < lanes; i += i % 4 == 1 ? 3 : 1) {
    x[i] = __builtin_shufflevector(y[i], y[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    x[i + 2] = __builtin_shufflevector(y[i], y[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (int i = 0; i < lanes / 2; ++i) {
    y[i] = __builtin_shufflevector(x[i], x[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    y[i + 4] = __builtin_shufflevector(x[i], x[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
  for (int i = 0; i < lanes; ++i) x[i] = y[i];
}

class Spectrum {
 public:
  explicit Spectrum(std::int64_t n) : n_(n), a_(n, n), h_(n, n), v_(n, 1), values_(static_cast<std::size_t>(n)), moduli_(values_.size()) {}

  /// Throws Cancelled (StopScope).
  void compute(std::span<const double> matrix);
  const std::vector<std::complex<double>>& values() const { return values_; }
  /// Of the last compute(), in floating-point operations.
  double work() const { return work_; }

 private:
  void fail();
  void isolate();
  void scale();
  void reduce();
  void iterate();
  void sweep(std::int64_t low, std::int64_t high, int iteration);
  void pair(double a, double b, double c, double d);
  void add(std::complex<double> value) { values_[static_cast<std::size_t>(found_++)] = value; }

  std::int64_t n_;
  Columns a_;  // the matrix; first..last-1 is the block whose eigenvalues are not isolated yet
  Columns h_;  // that part on its own, then its Hessenberg form, of order m_
  Columns v_;
  std::int64_t first_ = 0, last_ = 0, m_ = 0, found_ = 0;
  double work_ = 0.0;
  std::vector<std::complex<double>> values_;
  std::vector<double> moduli_;
};

void Spectrum::fail() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  std::fill(values_.begin(), values_.end(), std::complex<double>(nan, nan));
}

void Spectrum::compute(std::span<const double> matrix) {
  RECLAB_DEMAND(matrix.size() == static_cast<std::size_t>(n_ * n_));
  work_ = 16.0 * static_cast<double>(n_ * n_);
  double size = 0.0;
  for (const double x : matrix) {
    if (!std::isfinite(x)) {
      fail();
      return;
    }
    size = std::max(size, std::abs(x));
  }
  if (size == 0.0) {
    std::fill(values_.begin(), values_.end(), 0.0);
    return;
  }
  const int exponent = std::ilogb(size);
  constexpr std::int64_t band = 64;  // rows at a time, so that both are read and written in whole lines
  for (std::int64_t i0 = 0; i0 < n_; i0 += band, check_stop())
    for (std::int64_t j = 0; j < n_; ++j)
      for (std::int64_t i = i0; i < std::min(i0 + band, n_); ++i)
        a_[j][i] = std::scalbn(matrix[static_cast<std::size_t>(i * n_ + j)], -exponent);
  found_ = 0;
  isolate();
  scale();
  reduce();
  iterate();
  if (found_ < n_) return fail();  // no convergence
  for (auto& value : values_) value = {std::scalbn(value.real(), exponent), std::scalbn(value.imag(), exponent)};
  std::sort(values_.begin(), values_.end(), by_size);
}

/// Rows, then columns, that are zero beside the diagonal go to the end, or the start: their diagonal entry is an eigenvalue, exactly.
void Spectrum::isolate() {
  first_ = 0;
  last_ = n_;
  const auto exchange = [this](std::int64_t i, std::int64_t j) {
    if (i == j) return;
    std::swap_ranges(a_[i], a_[i] + n_, a_[j]);
    for (std::int64_t k = 0; k < n_; ++k) std::swap(a_[k][i], a_[k][j]);
  };
  const auto alone = [this](std::int64_t i, bool row) {
    check_stop();
    for (std::int64_t j = first_; j < last_; ++j)
      if (j != i && (row ? a_[j][i] : a_[i][j]) != 0.0) return false;
    return true;
  };
  for (std::int64_t i = last_ - 1; i >= first_; --i) {
    if (!alone(i, true)) continue;
    exchange(i, --last_);
    add(a_[last_][last_]);
    i = last_;
  }
  for (std::int64_t i = first_; i < last_; ++i) {
    if (!alone(i, false)) continue;
    exchange(i, first_);
    add(a_[first_][first_]);
    i = first_++;
  }
}

/// Rows and columns of about equal length, by powers of two; the part that is left goes to h_.
void Spectrum::scale() {
  m_ = last_ - first_;
  h_.clear();
  for (std::int64_t j = 0; j < m_; ++j) std::copy_n(a_[first_ + j] + first_, m_, h_[j]);
  for (bool again = true; again;) {
    again = false;
    work_ += 16.0 * static_cast<double>(m_ * m_);  // every other entry lies in a line of its own
    for (std::int64_t i = 0; i < m_; ++i) {
      check_stop();
      double squares = 0.0;
      for (std::int64_t j = 0; j < m_; ++j) squares += h_[j][i] * h_[j][i];
      double row = std::sqrt(squares), column = norm(h_[i], 0, m_);
      if (row < 1e-140 || column < 1e-140) continue;
      const double before = row + column;
      int shift = 0;
      for (; column < 0.5 * row; ++shift) column *= 2.0, row *= 0.5;
      for (; row < 0.5 * column; --shift) column *= 0.5, row *= 2.0;
      if (shift == 0 || row + column >= 0.95 * before) continue;
      again = true;
      const double factor = std::scalbn(1.0, shift), inverse = std::scalbn(1.0, -shift);
      for (std::int64_t j = 0; j < m_; ++j) h_[i][j] *= factor;
      for (std::int64_t j = 0; j < m_; ++j) h_[j][i] *= inverse;
    }
  }
}

/// Householder reduction to Hessenberg form.
void Spectrum::reduce() {
  double* v = v_[0];
  double* w = a_[0];  // free by now
  const std::int64_t end = chunk_ceil(m_);
  for (std::int64_t k = 0; k + 2 < m_; ++k) {
    check_stop();
    double* x = h_[k];
    const double below = norm(x, k + 2, m_);
    if (below == 0.0) continue;
    const double length = norm(x, k + 1, m_), head = x[k + 1] < 0.0 ? -length : length;
    std::fill_n(v, end, 0.0);
    v[k + 1] = 1.0;
    for (std::int64_t i = k + 2; i < m_; ++i) v[i] = x[i] / (x[k + 1] + head);
    const double tau = (x[k + 1] + head) / head;
    x[k + 1] = -head;
    std::fill(x + k + 2, x + m_, 0.0);
    reflect(v, tau, h_, k + 1, m_, chunk_floor(k + 1), end);
    work_ += 4.0 * static_cast<double>((m_ - k) * (2 * end - k));
    std::fill_n(w, end, 0.0);
    for (std::int64_t j = k + 1; j < m_; ++j) {
      const double* column = h_[j];
      for (std::int64_t i = 0; i < end; i += lanes) lane(w + i) += v[j] * lane(column + i);
    }
    for (std::int64_t j = k + 1; j < m_; ++j) {
      double* column = h_[j];
      const double s = tau * v[j];
      for (std::int64_t i = 0; i < end; i += lanes) lane(column + i) -= s * lane(w + i);
    }
  }
}

/// The eigenvalues of [a b; c d].
void Spectrum::pair(double a, double b, double c, double d) {
  if (b == 0.0 || c == 0.0) {
    add(a);
    add(d);
    return;
  }
  const double p = 0.5 * (a - d), large = std::max(std::abs(b), std::abs(c));
  const double little = std::copysign(std::min(std::abs(b), std::abs(c)), b) * std::copysign(1.0, c);
  const double size = std::max(std::abs(p), large);
  const double discriminant = p / size * p + large / size * little;
  if (discriminant > 0.0) {
    const double z = p + std::copysign(std::sqrt(size) * std::sqrt(discriminant), p);
    add(d + z);
    add(d - large / z * little);
  } else {
    const double imaginary = std::sqrt(size) * std::sqrt(-discriminant);
    add({d + p, imaginary});
    add({d + p, -imaginary});
  }
}

/// Deflates from the bottom. Without convergence it ends with eigenvalues missing.
void Spectrum::iterate() {
  constexpr int most_sweeps = 100;  // for one eigenvalue; three are usual
  int iteration = 0;
  for (std::int64_t high = m_ - 1; high >= 0;) {
    std::int64_t low = high;
    for (; low > 0; --low) {
      const double below = std::abs(h_[low - 1][low]);
      if (below <= tiny) break;
      const double corner = std::abs(h_[low][low]), before = std::abs(h_[low - 1][low - 1]);
      double around = corner + before;
      if (around == 0.0) {
        if (low >= 2) around += std::abs(h_[low - 2][low - 1]);
        if (low < high) around += std::abs(h_[low][low + 1]);
      }
      if (below > epsilon * around) continue;
      const double above = std::abs(h_[low][low - 1]), apart = std::abs(h_[low - 1][low - 1] - h_[low][low]);
      const double most = std::max(below, above), least = std::min(below, above);
      const double far = std::max(corner, apart), near = std::min(corner, apart), total = far + most;
      if (least * (most / total) <= std::max(tiny, epsilon * (near * (far / total)))) break;
    }
    if (low > 0) h_[low - 1][low] = 0.0;
    if (low == high) {
      add(h_[high][high]);
      high -= 1;
      iteration = 0;
    } else if (low == high - 1) {
      pair(h_[low][low], h_[high][low], h_[low][high], h_[high][high]);
      high -= 2;
      iteration = 0;
    } else {
      if (++iteration > most_sweeps) return;
      sweep(low, high, iteration);
    }
  }
}

/// One implicit double-shift QR sweep on rows and columns low..high, at least three of them.
void Spectrum::sweep(std::int64_t low, std::int64_t high, int iteration) {
  double a = h_[high - 1][high - 1], b = h_[high][high - 1], c = h_[high - 1][high], d = h_[high][high];
  if (iteration % 10 == 0) {  // exceptional shifts break cycles
    const double size = std::abs(c) + std::abs(h_[high - 2][high - 1]);
    a = d = 0.75 * size + d;
    b = -0.4375 * size;
    c = size;
  }
  // The shifts are the eigenvalues of [a b; c d]; of two real ones the nearer to d is taken twice.
  double first_real = 0.0, first_imaginary = 0.0, second_real = 0.0, second_imaginary = 0.0;
  if (const double size = std::abs(a) + std::abs(b) + std::abs(c) + std::abs(d); size > 0.0) {
    const double middle = 0.5 * (a / size + d / size);
    const double determinant = (a / size - middle) * (d / size - middle) - b / size * (c / size);
    const double root = std::sqrt(std::abs(determinant));
    if (determinant >= 0.0) {
      first_real = second_real = middle * size;
      first_imaginary = root * size;
      second_imaginary = -first_imaginary;
    } else {
      const double one = (middle + root) * size, other = (middle - root) * size;
      first_real = second_real = std::abs(one - d) <= std::abs(other - d) ? one : other;
    }
  }
  // The sweep may start at two consecutive small subdiagonal entries.
  double v[3];
  std::int64_t start = high - 2;
  for (;; --start) {
    const double here = h_[start][start];
    const double size = std::abs(here - second_real) + std::abs(second_imaginary) + std::abs(h_[start][start + 1]);
    const double below = h_[start][start + 1] / size;
    v[0] = below * h_[start + 1][start] + (here - first_real) * ((here - second_real) / size) - first_imaginary * (second_imaginary / size);
    v[1] = below * (here + h_[start + 1][start + 1] - first_real - second_real);
    v[2] = below * h_[start + 1][start + 2];
    const double length = std::abs(v[0]) + std::abs(v[1]) + std::abs(v[2]);
    for (double& x : v) x /= length;
    if (start == low) break;
    const double around = std::abs(h_[start - 1][start - 1]) + std::abs(here) + std::abs(h_[start + 1][start + 1]);
    if (std::abs(h_[start - 1][start]) * (std::abs(v[1]) + std::abs(v[2])) <= epsilon * std::abs(v[0]) * around) break;
  }
  work_ += 10.0 * static_cast<double>((high - start) * (high - low + 2 * lanes));
  // Rows k, k+1, k+2 lie apart in memory, column by column: reflections are applied from the left at once only to the columns that the next
  // ones need, and later, a batch together on eight columns turned into rows, to the others.
  constexpr std::int64_t batch = lanes - 2;
  Reflection reflections[batch];
  for (std::int64_t begin = start; begin < high; begin += batch) {
    check_stop();
    const std::int64_t end = std::min(begin + batch, high), edge = high - begin < 2 * lanes ? high : begin + lanes - 1;
    for (std::int64_t k = begin; k < end; ++k) {
      Reflection& reflection = reflections[k - begin];
      reflection = {};
      const bool three = k + 2 <= high;
      if (k > start) {
        v[0] = h_[k - 1][k];
        v[1] = h_[k - 1][k + 1];
        v[2] = three ? h_[k - 1][k + 2] : 0.0;
      }
      const double size = std::max({std::abs(v[0]), std::abs(v[1]), std::abs(v[2])});
      const double up = size < 0x1p-400 ? 0x1p+500 : 1.0;  // so that squares do not underflow
      const double x = v[0] * up, y = v[1] * up, z = v[2] * up;
      if (y == 0.0 && z == 0.0) continue;
      const double head = std::copysign(std::sqrt(x * x + y * y + z * z), x);
      const double tau = (x + head) / head, inverse = 1.0 / (x + head), v1 = y * inverse, v2 = z * inverse;
      reflection = {tau, v1, v2, tau * v1, tau * v2};
      if (k > start) {
        h_[k - 1][k] = -head / up;
        h_[k - 1][k + 1] = 0.0;
        if (three) h_[k - 1][k + 2] = 0.0;
      } else if (start > low) {
        h_[k - 1][k] *= 1.0 - tau;
      }
      double* __restrict p = h_[k];
      double* __restrict q = h_[k + 1];
      const std::int64_t bottom = std::min(k + 3, high);
      if (three) {
        for (std::int64_t j = k; j <= edge; ++j) reflection.apply(h_[j][k], h_[j][k + 1], h_[j][k + 2]);
        double* __restrict r = h_[k + 2];
        for (std::int64_t i = low; i <= bottom; ++i) reflection.apply(p[i], q[i], r[i]);
      } else {
        double none = 0.0;
        for (std::int64_t j = k; j <= edge; ++j) reflection.apply(h_[j][k], h_[j][k + 1], none = 0.0);
        for (std::int64_t i = low; i <= bottom; ++i) reflection.apply(p[i], q[i], none = 0.0);
      }
    }
    std::int64_t j = edge + 1;
    for (; j + lanes <= high + 1; j += lanes) {
      Lane rows[lanes];
      for (std::int64_t i = 0; i < lanes; ++i) rows[i] = *reinterpret_cast<const LooseLane*>(h_[j + i] + begin);
      transpose(rows);
      for (std::int64_t i = 0; i < batch; ++i) reflections[i].apply(rows[i], rows[i + 1], rows[i + 2]);
      transpose(rows);
      for (std::int64_t i = 0; i < lanes; ++i) *reinterpret_cast<LooseLane*>(h_[j + i] + begin) = rows[i];
    }
    for (; j <= high; ++j)
      for (std::int64_t i = 0; i < batch; ++i) reflections[i].apply(h_[j][begin + i], h_[j][begin + i + 1], h_[j][begin + i + 2]);
  }
}

}  // namespace

std::vector<std::complex<double>> eigenvalues(std::span<const double> matrix, std::int64_t n) {
  Spectrum spectrum(n);
  spectrum.compute(matrix);
  return spectrum.values();
}

std::vector<std::complex<double>> low_rank_eigenvalues(double scale, std::span<const double> u, std::span<const double> v, std::int64_t n,
                                                       std::int64_t rank) {
  RECLAB_DEMAND(rank >= 1 && rank <= n && std::ssize(u) == n * rank && std::ssize(v) == n * rank);
  std::vector<double> inner(static_cast<std::size_t>(rank * rank), 0.0);  // v^T u
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t r = 0; r < rank; ++r)
      for (std::int64_t c = 0; c < rank; ++c)
        inner[static_cast<std::size_t>(r * rank + c)] +=
            v[static_cast<std::size_t>(i * rank + r)] * u[static_cast<std::size_t>(i * rank + c)];
  std::vector<std::complex<double>> values = rank == 1 ? std::vector<std::complex<double>>{inner[0]} : eigenvalues(inner, rank);
  for (auto& value : values) value += scale;
  values.resize(static_cast<std::size_t>(n), scale);
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (std::ranges::all_of(values, [](const auto& value) { return std::isfinite(value.real()) && std::isfinite(value.imag()); }))
    std::sort(values.begin(), values.end(), by_size);
  else
    std::ranges::fill(values, std::complex<double>(nan, nan));
  return values;
}

double eigenvalue_work(std::span<const double> matrix, std::int64_t n) {
  Spectrum spectrum(n);
  spectrum.compute(matrix);
  return spectrum.work();
}

double spectral_radius(std::span<const double> matrix, std::int64_t n) { return std::abs(eigenvalues(matrix, n).front()); }

void eigenvalues_of_many(std::int64_t count, std::int64_t n, const std::function<void(std::int64_t, std::span<double>)>& fill,
                         const std::function<void(std::int64_t, const std::vector<std::complex<double>>&)>& consume, std::stop_token stop) {
  std::atomic<std::int64_t> next{0};
  std::exception_ptr thrown;
  std::mutex guard;
  const auto work = [&] {
    try {
      const StopScope scope(stop);
      Spectrum spectrum(n);
      std::vector<double> matrix(static_cast<std::size_t>(n * n));
      for (std::int64_t i = next++; i < count && !stop.stop_requested(); i = next++) {
        fill(i, matrix);
        spectrum.compute(matrix);
        consume(i, spectrum.values());
      }
    } catch (const Cancelled&) {
      next = count;  // the caller sees the stop
    } catch (...) {
      next = count;
      const std::lock_guard lock(guard);
      if (!thrown) thrown = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    const std::int64_t cores = cpu::thread_count();
    try {
      for (std::int64_t i = 1; i < std::min(cores, count); ++i) others.emplace_back(work);
    } catch (const std::system_error&) {  // a limit on threads or memory: fewer do
    }
    work();
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace reclab
