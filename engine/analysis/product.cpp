// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/product.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

#include "algebra/columns.h"
#include "array/demand.h"
#include "array/stop.h"

namespace reclab {
namespace {

using namespace columns;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// Rows first.. of a times four columns x, a tile of chunks x 4 that stays in registers.
template <int chunks>
void multiply_tile(const Columns& a, std::int64_t first, std::int64_t depth, const double* const* x, double* const* y) {
  Lane tile[4][chunks] = {};
  for (std::int64_t k = 0; k < depth; ++k) {
    const double* column = a[k] + first;
    for (int c = 0; c < chunks; ++c) {
      const Lane value = lane(column + c * lanes);
      tile[0][c] += value * x[0][k];
      tile[1][c] += value * x[1][k];
      tile[2][c] += value * x[2][k];
      tile[3][c] += value * x[3][k];
    }
  }
  for (int j = 0; j < 4; ++j)
    for (int c = 0; c < chunks; ++c) lane(y[j] + first + c * lanes) = tile[j][c];
}

/// 2^k, 0 far below the range, the largest power far above it.
double power_of_two(std::int64_t k) {
  if (k < -1000) return 0.0;
  return std::bit_cast<double>(static_cast<std::uint64_t>(std::min<std::int64_t>(k, 1000) + 1023) << 52);
}

/// A positive number of any size. The exponent is apart because a logarithm would lose a digit with every digit of its own.
struct Scaled {
  double mantissa = 1.0;
  std::int64_t exponent = 0;

  Scaled& operator*=(double factor) {
    int shift = 0;
    mantissa = std::frexp(mantissa * factor, &shift);
    exponent += shift;
    return *this;
  }
  double log10() const { return std::log10(mantissa) + static_cast<double>(exponent) * 0.30102999566398119521; }
};

double ratio(const Scaled& a, const Scaled& b) { return a.mantissa / b.mantissa * power_of_two(a.exponent - b.exponent); }
bool less(const Scaled& a, const Scaled& b) { return ratio(a, b) < 1.0; }

}  // namespace

struct JacobianProduct::Factors {
  // Up to this many factors are multiplied before they are factorised, if the block's condition stays below `safe_condition`:
  // the digits that it costs the smallest singular values are those that the condition takes.
  static constexpr std::int64_t most_pending = 8;
  static constexpr double safe_condition = 1e4;
  // Singular values that lie so many binary orders apart do not see each other: the error is the square of the ratio.
  static constexpr std::int64_t far_apart = 34;
  static constexpr int zero_row = std::numeric_limits<int>::min();

  explicit Factors(std::int64_t size)
      : n(size),
        slots(std::clamp<std::int64_t>((std::int64_t{16} << 20) / (8 * size * size), 1, most_pending)),
        base(n, n),
        walk{Columns(n, n), Columns(n, n)},
        a(n, n),
        v(n, n),
        t(n, n),
        w(n, n),
        near(n, n),
        block(n, n),
        reflector(n, 1),
        d(count()),
        d_before(count()),
        d_rows(count()),
        values(count()),
        diagonal(count()),
        taus(count()),
        residual(count()),
        reference(count()),
        largest(count()),
        order(count()),
        extent(count()),
        row_exponent(count()),
        columns(count()),
        leading(count()) {
    for (std::int64_t i = 0; i < slots; ++i) factors[i] = Columns(n, n);
    reset();
  }

  std::size_t count() const { return static_cast<std::size_t>(n); }

  void reset() {
    base.clear();
    near.clear();
    for (std::int64_t i = 0; i < n; ++i) base[i][i] = near[i][i] = 1.0;
    std::fill(d.begin(), d.end(), Scaled{});
    rank = n;
    pending = 0;
    limit = 1;
    work = 0.0;
    finite = true;
    known = 0;
    smallest_known = false;
  }

  void multiply(std::span<const double> jacobian);
  void settle();
  void step(const Columns& factor, const Columns& from, Columns& to);
  double factorise(const Columns& c);
  double orthogonal_triangular(const Columns& c);
  bool is_rounding(const double* x, std::int64_t first) const;
  void near_diagonal();
  void jacobi(std::int64_t first, std::int64_t last);
  void find(std::int64_t first, std::int64_t last);
  void find_largest(std::int64_t k);
  void find_smallest();

  std::int64_t n, slots;
  std::int64_t rank = 0, live_columns = 0, pending = 0, limit = 1;
  bool finite = true;
  double work = 0.0;

  Columns base;                                     // U at the last factorisation, n x rank
  Columns walk[2];                                  // the pending factors times U
  Columns factors[most_pending];                    // the pending factors, transposed, each scaled by a power of two
  Columns a, v, t, w, near, block, reflector;       // near: the near-diagonal lower triangle of the last factorisation, unit columns
  std::vector<Scaled> d, d_before, d_rows, values;  // d: the scales of the columns of U, and of near
  std::vector<double> diagonal, taus, residual, reference, largest;
  std::vector<std::int64_t> order, extent;
  std::vector<int> row_exponent;
  struct Column {
    double* entries;
    Scaled scale;
  };
  std::vector<Column> columns;  // of block, while Jacobi turns them

  std::vector<double> leading;  // log10 of the largest, as many as known
  std::int64_t known = 0;
  double smallest = 0.0;
  bool smallest_known = false;
};

/// to = factor * from.
void JacobianProduct::Factors::step(const Columns& factor, const Columns& from, Columns& to) {
  work += 2.0 * static_cast<double>(n * n * rank);
  for (std::int64_t j = 0; j < rank; j += 4) {
    check_stop();
    const double* x[4];
    double* y[4];
    for (std::int64_t c = 0; c < 4; ++c) {  // past the last column the last is computed again
      x[c] = from[std::min(j + c, rank - 1)];
      y[c] = to[std::min(j + c, rank - 1)];
    }
    std::int64_t i = 0;
    for (; i + 4 * lanes <= factor.height(); i += 4 * lanes) multiply_tile<4>(factor, i, n, x, y);
    for (; i + 2 * lanes <= factor.height(); i += 2 * lanes) multiply_tile<2>(factor, i, n, x, y);
    for (; i < factor.height(); i += lanes) multiply_tile<1>(factor, i, n, x, y);
  }
}

void JacobianProduct::Factors::multiply(std::span<const double> jacobian) {
  RECLAB_DEMAND(jacobian.size() == count() * count());
  known = 0;
  smallest_known = false;
  double size = 0.0, least = infinity;
  for (std::int64_t i = 0; i < n; ++i) {
    double row_size = 0.0, poison = 0.0;
    for (const double x : jacobian.subspan(static_cast<std::size_t>(i * n), count())) {
      row_size = std::max(row_size, std::abs(x));
      poison += 0.0 * x;  // NaN as soon as one is not finite
    }
    if (std::isnan(poison)) finite = false;
    row_exponent[static_cast<std::size_t>(i)] = row_size == 0.0 ? zero_row : std::ilogb(row_size);
    size = std::max(size, row_size);
    least = std::min(least, row_size);
  }
  if (!finite || rank == 0) return;
  if (size == 0.0) {
    rank = pending = 0;
    return;
  }
  // J = S G with rows of very different size (saturated units): S U is factorised first, where small rows keep their digits beside
  // large ones, then G times that.
  const int exponent = std::ilogb(size);
  const bool graded = least < size * 0x1p-7;
  if (graded) {
    settle();
    for (std::int64_t j = 0; j < rank; ++j)
      for (std::int64_t i = 0; i < n; ++i) {
        if (i == 0) check_stop();
        const int row = row_exponent[static_cast<std::size_t>(i)];
        walk[0][j][i] = row == zero_row ? 0.0 : base[j][i] * power_of_two(row - exponent);
      }
    factorise(walk[0]);
    std::swap(base, w);
    if (rank == 0) return;
  }
  for (std::int64_t j = 0; j < rank; ++j) d[static_cast<std::size_t>(j)].exponent += exponent;
  Columns& factor = factors[pending];
  for (std::int64_t i = 0; i < n; ++i) {  // row i of J is column i of J^T
    if (i % 64 == 0) check_stop();
    const double* row = jacobian.data() + i * n;
    double* column = factor[i];
    const int shift = graded ? row_exponent[static_cast<std::size_t>(i)] : exponent;
    if (shift == zero_row) {
      std::fill_n(column, n, 0.0);
    } else if (std::abs(shift) < 900) {
      const double scale = power_of_two(-shift);
      for (std::int64_t j = 0; j < n; ++j) column[j] = row[j] * scale;
    } else {
      for (std::int64_t j = 0; j < n; ++j) column[j] = std::scalbn(row[j], -shift);
    }
  }
  step(factor, pending == 0 ? base : walk[(pending - 1) % 2], walk[pending % 2]);
  if (++pending >= limit) settle();
}

/// Factorises the pending factors, as one block if that is safe, else factor by factor.
void JacobianProduct::Factors::settle() {
  const std::int64_t steps = std::exchange(pending, 0);
  if (steps == 0 || rank == 0) return;
  d_before = d;
  const std::int64_t rank_before = rank;
  const double condition = factorise(walk[(steps - 1) % 2]);
  if (steps == 1 || condition <= safe_condition) {
    std::swap(base, w);
    const double per_step = std::log(condition) / static_cast<double>(steps), room = std::log(safe_condition / 10.0);
    limit = per_step * static_cast<double>(slots) <= room ? slots : std::max<std::int64_t>(1, static_cast<std::int64_t>(room / per_step));
    return;
  }
  d = d_before;
  rank = rank_before;
  limit = 1;
  for (std::int64_t i = 0; i < steps && rank > 0; ++i) {
    step(factors[i], base, walk[0]);
    factorise(walk[0]);
    std::swap(base, w);
  }
}

/// C D -> w D, both with the same singular values, where w has unit columns, not far from orthogonal. Returns an estimate of the condition
/// of C. C is left as it is, base too.
double JacobianProduct::Factors::factorise(const Columns& c) {
  const double condition = orthogonal_triangular(c);
  near_diagonal();
  // Q times the near-diagonal factor; then its rows back in their order.
  for (std::int64_t j = 0; j < rank; ++j) std::copy_n(near[j], near.height(), a[j]);
  for (std::int64_t k = rank - 1; k >= 0; --k) {
    check_stop();
    std::int64_t first = 0;  // columns that end above row k are not touched
    while (first < rank && extent[static_cast<std::size_t>(first)] < k) ++first;
    work += 4.0 * static_cast<double>((rank - first) * (n - k));
    reflect(v[k], taus[static_cast<std::size_t>(k)], a, first, rank, chunk_floor(k), a.height());
  }
  for (std::int64_t j = 0; j < rank; ++j)
    for (std::int64_t i = 0; i < n; ++i) w[j][order[static_cast<std::size_t>(i)]] = a[j][i];
  return condition;
}

/// A column that has nothing left but the rounding errors of the rows that it was computed from.
bool JacobianProduct::Factors::is_rounding(const double* x, std::int64_t first) const {
  const double bound = 2.0 * static_cast<double>(n) * epsilon;
  for (std::int64_t i = first; i < n; ++i)
    if (std::abs(x[i]) > bound * largest[static_cast<std::size_t>(i)]) return false;
  return true;
}

/// Householder QR of C D with column pivoting, rows sorted by size. R (unscaled) is left in a, its diagonal in diagonal, reflectors in v;
/// d is permuted and includes the columns' norms; rank falls by the columns that vanish.
double JacobianProduct::Factors::orthogonal_triangular(const Columns& c) {
  const std::int64_t m = rank;
  std::fill(largest.begin(), largest.end(), 0.0);
  for (std::int64_t j = 0; j < m; ++j) {
    const double length = norm(c[j], 0, n);
    residual[static_cast<std::size_t>(j)] = length;
    if (length == 0.0) continue;
    const double inverse = 1.0 / length;
    for (std::int64_t i = 0; i < n; ++i) {
      w[j][i] = std::isinf(inverse) ? c[j][i] / length : c[j][i] * inverse;
      largest[static_cast<std::size_t>(i)] = std::max(largest[static_cast<std::size_t>(i)], std::abs(w[j][i]));
    }
  }
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::sort(order.begin(), order.end(), [this](std::int64_t x, std::int64_t y) {
    const double a_size = largest[static_cast<std::size_t>(x)], b_size = largest[static_cast<std::size_t>(y)];
    return a_size != b_size ? a_size > b_size : x < y;
  });
  double longest = 0.0, shortest = infinity;
  std::int64_t live = 0;
  for (std::int64_t j = 0; j < m; ++j) {  // columns that are zero from the start are left out
    const double length = residual[static_cast<std::size_t>(j)];
    if (length == 0.0) continue;
    longest = std::max(longest, length);
    shortest = std::min(shortest, length);
    for (std::int64_t i = 0; i < n; ++i) a[live][i] = w[j][order[static_cast<std::size_t>(i)]];
    d[static_cast<std::size_t>(live)] = d[static_cast<std::size_t>(j)];
    d[static_cast<std::size_t>(live)] *= length;
    ++live;
  }
  std::sort(largest.begin(), largest.end(), std::greater<>());
  std::fill_n(residual.begin(), live, 1.0);
  std::fill_n(reference.begin(), live, 1.0);

  double low = infinity, high = 0.0;
  rank = live;
  for (std::int64_t k = 0; k < rank; ++k) {
    check_stop();
    const auto ks = static_cast<std::size_t>(k);
    std::int64_t pivot = -1;
    for (std::int64_t j = k; j < live; ++j) {
      const auto js = static_cast<std::size_t>(j);
      if (residual[js] == 0.0) continue;
      if (pivot < 0) {
        pivot = j;
        continue;
      }
      const auto ps = static_cast<std::size_t>(pivot);
      const double weight = d[js].mantissa * residual[js] * power_of_two(d[js].exponent - d[ps].exponent);
      if (weight > d[ps].mantissa * residual[ps]) pivot = j;
    }
    if (pivot < 0) {
      rank = k;
      break;
    }
    if (residual[static_cast<std::size_t>(pivot)] < 1e-8 && is_rounding(a[pivot], k)) {
      residual[static_cast<std::size_t>(pivot)] = 0.0;
      --k;
      continue;
    }
    if (pivot != k) {
      const auto ps = static_cast<std::size_t>(pivot);
      std::swap_ranges(a[k], a[k] + n, a[pivot]);
      std::swap(d[ks], d[ps]);
      std::swap(residual[ks], residual[ps]);
      std::swap(reference[ks], reference[ps]);
    }
    double* x = a[k];
    double* reflection = v[k];
    // The largest entry comes to the diagonal, as if the rows had been in that order from the start: small rows keep their digits.
    std::int64_t top = k;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (std::abs(x[i]) > std::abs(x[top])) top = i;
    if (std::abs(x[top]) > 4.0 * std::abs(x[k])) {
      for (std::int64_t j = 0; j < live; ++j) std::swap(a[j][k], a[j][top]);
      for (std::int64_t j = 0; j < k; ++j) std::swap(v[j][k], v[j][top]);
      std::swap(order[ks], order[static_cast<std::size_t>(top)]);
      std::swap(largest[ks], largest[static_cast<std::size_t>(top)]);
    }
    const double length = norm(x, k, n);
    const double head = x[k] < 0.0 ? -length : length;
    std::fill_n(reflection, a.height(), 0.0);
    reflection[k] = 1.0;
    const double inverse = 1.0 / (x[k] + head);
    for (std::int64_t i = k + 1; i < n; ++i) reflection[i] = std::isinf(inverse) ? x[i] / (x[k] + head) : x[i] * inverse;
    const double tau = (x[k] + head) / head;
    taus[ks] = tau;
    diagonal[ks] = -head;
    low = std::min(low, length);
    high = std::max(high, length);
    reflect(reflection, tau, a, k + 1, live, chunk_floor(k), a.height());
    work += 4.0 * static_cast<double>((live - k) * (n - k));
    for (std::int64_t j = k + 1; j < live; ++j) {
      const auto js = static_cast<std::size_t>(j);
      if (residual[js] == 0.0) continue;
      const double share = std::abs(a[j][k]) / residual[js];
      const double rest = std::max(0.0, (1.0 - share) * (1.0 + share));
      const double kept = residual[js] / reference[js];
      if (rest * kept * kept > 1e-8) {
        residual[js] *= std::sqrt(rest);
      } else {
        residual[js] = reference[js] = norm(a[j], k + 1, n);
      }
    }
  }
  live_columns = live;  // those without a reflector stand behind the others: R is rank x live
  if (rank < m || rank == 0) return infinity;
  return std::max(longest / shortest, 1.0) * (high / low);
}

/// R D -> near D, lower triangular with unit columns: an LQ sweep over the rows of R D, whose orthogonal factor is dropped.
void JacobianProduct::Factors::near_diagonal() {
  constexpr double negligible = 1e-18;       // beside a diagonal of one
  for (std::int64_t i = 0; i < rank; ++i) {  // t = (D_rows^-1 R D)^T, with a diagonal of +-1 and no larger entry
    const auto is = static_cast<std::size_t>(i);
    double* row = t[i];
    std::fill_n(row, t.height(), 0.0);
    row[i] = diagonal[is] < 0.0 ? -1.0 : 1.0;
    std::int64_t last = i > 0 ? extent[is - 1] : 0;
    last = std::max(last, i);
    const double inverse = 1.0 / (std::abs(diagonal[is]) * d[is].mantissa);
    for (std::int64_t j = i + 1; j < live_columns; ++j) {
      const auto& scale = d[static_cast<std::size_t>(j)];
      const double x = a[j][i] * inverse * scale.mantissa * power_of_two(scale.exponent - d[is].exponent);
      if (std::abs(x) < negligible) continue;
      row[j] = x;
      last = std::max(last, j);
    }
    extent[is] = last;
  }
  for (std::int64_t i = 0; i < rank; ++i) {
    d_rows[static_cast<std::size_t>(i)] = d[static_cast<std::size_t>(i)];
    d_rows[static_cast<std::size_t>(i)] *= std::abs(diagonal[static_cast<std::size_t>(i)]);
  }
  for (std::int64_t k = 0; k < rank; ++k) {
    check_stop();
    const std::int64_t last = extent[static_cast<std::size_t>(k)];
    if (last == k) continue;
    double* x = t[k];
    const double length = norm(x, k, last + 1);
    const double head = x[k] < 0.0 ? -length : length;
    const std::int64_t begin = chunk_floor(k), end = chunk_ceil(last + 1);
    double* reflection = reflector[0];
    std::fill(reflection + begin, reflection + k, 0.0);
    reflection[k] = 1.0;
    const double inverse = 1.0 / (x[k] + head);
    for (std::int64_t i = k + 1; i < end; ++i) reflection[i] = x[i] * inverse;
    reflect(reflection, (x[k] + head) / head, t, k + 1, std::min(last + 1, rank), begin, end);
    work += 4.0 * static_cast<double>((last - k) * (end - begin));
    x[k] = -head;
  }
  for (std::int64_t k = 0; k < rank; ++k) {
    const auto ks = static_cast<std::size_t>(k);
    double* column = near[k];
    std::fill_n(column, near.height(), 0.0);
    column[k] = 1.0;
    const double inverse = 1.0 / (t[k][k] * d_rows[ks].mantissa);
    std::int64_t last = k;
    for (std::int64_t i = k + 1; i <= std::min(extent[ks], rank - 1); ++i) {
      const auto& scale = d_rows[static_cast<std::size_t>(i)];
      const double x = t[i][k] * inverse * scale.mantissa * power_of_two(scale.exponent - d_rows[ks].exponent);
      if (std::abs(x) < negligible) continue;
      column[i] = x;
      last = i;
    }
    const double length = norm(column, k, last + 1);
    for (std::int64_t i = k; i <= last; ++i) column[i] /= length;
    d[ks] = d_rows[ks];
    d[ks] *= std::abs(t[k][k]) * length;
    extent[ks] = k > 0 ? std::max(last, extent[ks - 1]) : last;
  }
}

/// One-sided Jacobi on the diagonal block first..last-1 of near D; its singular values are left in values, descending.
/// Columns are unit vectors times scales; with g the cosine between two and r <= 1 the ratio of their scales, the rotation is
/// x <- x + tau r^2 y, y <- y - tau x up to lengths: nothing in it can overflow, whatever the scales are.
void JacobianProduct::Factors::jacobi(std::int64_t first, std::int64_t last) {
  constexpr int most_sweeps = 60;
  constexpr double small = 4e-15;      // relative change of a singular value that is not worth a rotation
  constexpr double converged = 1e-12;  // convergence is quadratic: after a sweep of changes no larger than this there is nothing left
  const std::int64_t size = last - first, end = chunk_ceil(size);
  for (std::int64_t j = 0; j < size; ++j) {
    double* column = block[j];
    std::copy_n(near[first + j] + first, size, column);
    std::fill(column + size, column + end, 0.0);
    columns[static_cast<std::size_t>(j)] = {column, d[static_cast<std::size_t>(first + j)]};
  }
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    for (std::int64_t j = 0; j < size; ++j) {
      auto& [entries, scale] = columns[static_cast<std::size_t>(j)];
      const double length = norm(entries, 0, size);
      for (std::int64_t i = 0; i < end; ++i) entries[i] /= length;
      scale *= length;
    }
    std::sort(columns.begin(), columns.begin() + size, [](const Column& x, const Column& y) {
      if (x.scale.exponent != y.scale.exponent) return x.scale.exponent > y.scale.exponent;
      if (x.scale.mantissa != y.scale.mantissa) return x.scale.mantissa > y.scale.mantissa;
      return x.entries < y.entries;
    });
    double worst = 0.0;
    for (std::int64_t i = 0; i + 1 < size; ++i) {
      check_stop();
      double* x = columns[static_cast<std::size_t>(i)].entries;
      Scaled& x_scale = columns[static_cast<std::size_t>(i)].scale;
      for (std::int64_t j = i + 1; j < size; ++j) {
        double* y = columns[static_cast<std::size_t>(j)].entries;
        Scaled& y_scale = columns[static_cast<std::size_t>(j)].scale;
        const double cosine = dot(x, y, 0, end);
        double r = y_scale.mantissa / x_scale.mantissa * power_of_two(y_scale.exponent - x_scale.exponent);
        const bool swapped = r > 1.0;
        if (swapped) r = x_scale.mantissa / y_scale.mantissa * power_of_two(x_scale.exponent - y_scale.exponent);
        const double gap = (1.0 - r) * (1.0 + r);
        const double divisor = gap + std::sqrt(gap * gap + 4.0 * cosine * cosine * r * r);
        const double tau = cosine == 0.0 ? 0.0 : 2.0 * cosine / divisor;
        const double change = std::abs(tau * cosine);
        worst = std::max(worst, change);
        work += 2.0 * static_cast<double>(end) + 32.0;
        if (change <= small) continue;
        work += 8.0 * static_cast<double>(end);
        const double tangent = tau * r;
        const double c = 1.0 / std::sqrt(1.0 + tangent * tangent);
        const double grown = std::sqrt(1.0 + tau * cosine * r * r);
        const double shrunk = std::sqrt(std::max(1.0 - tau * cosine, epsilon));
        const double same_large = c / grown, cross_large = c * tangent * r / grown;
        const double same_small = c / shrunk, cross_small = c * tau / shrunk;
        double* large = swapped ? y : x;
        double* little = swapped ? x : y;
        for (std::int64_t k = 0; k < end; k += lanes) {
          const Lane p = lane(large + k), q = lane(little + k);
          lane(large + k) = same_large * p + cross_large * q;
          lane(little + k) = same_small * q - cross_small * p;
        }
        (swapped ? y_scale : x_scale).mantissa *= grown;
        (swapped ? x_scale : y_scale).mantissa *= shrunk;
      }
    }
    if (worst <= converged) break;
  }
  for (std::int64_t j = 0; j < size; ++j) {
    auto& [entries, scale] = columns[static_cast<std::size_t>(j)];
    scale *= norm(entries, 0, size);
    values[static_cast<std::size_t>(j)] = scale;
  }
  std::sort(values.begin(), values.begin() + size,
            [](const Scaled& x, const Scaled& y) { return x.exponent != y.exponent ? x.exponent > y.exponent : x.mantissa > y.mantissa; });
}

void JacobianProduct::Factors::find(std::int64_t first, std::int64_t last) {
  jacobi(first, last);
  if (first == 0) {
    known = last == rank ? n : known;
    for (std::int64_t j = 0; j < n; ++j)
      leading[static_cast<std::size_t>(j)] = j < last ? values[static_cast<std::size_t>(j)].log10() : -infinity;
  }
  if (last == rank) {
    smallest = rank < n ? -infinity : values[static_cast<std::size_t>(last - first - 1)].log10();
    smallest_known = true;
  }
}

void JacobianProduct::Factors::find_largest(std::int64_t k) {
  settle();
  if (k <= known) return;
  if (rank == 0) {
    std::fill(leading.begin(), leading.end(), -infinity);
    known = n;
    return;
  }
  std::copy_n(d.begin(), rank, values.begin());
  std::sort(values.begin(), values.begin() + rank, [](const Scaled& x, const Scaled& y) { return less(y, x); });
  Scaled cut = values[static_cast<std::size_t>(std::min(k, rank) - 1)];
  cut.exponent -= far_apart;
  std::int64_t last = rank;
  while (less(d[static_cast<std::size_t>(last - 1)], cut)) --last;
  known = k;
  find(0, last);
}

void JacobianProduct::Factors::find_smallest() {
  settle();
  if (smallest_known) return;
  if (rank < n) {
    smallest = -infinity;
    smallest_known = true;
    return;
  }
  Scaled cut = *std::min_element(d.begin(), d.end(), less);
  cut.exponent += far_apart;
  std::int64_t first = 0;
  while (less(cut, d[static_cast<std::size_t>(first)])) ++first;
  find(first, rank);
}

JacobianProduct::JacobianProduct(std::int64_t n) : factors_(std::make_unique<Factors>(n)) { RECLAB_DEMAND(n >= 1); }
JacobianProduct::~JacobianProduct() = default;
JacobianProduct::JacobianProduct(JacobianProduct&&) noexcept = default;
JacobianProduct& JacobianProduct::operator=(JacobianProduct&&) noexcept = default;

void JacobianProduct::multiply(std::span<const double> jacobian) { factors_->multiply(jacobian); }
void JacobianProduct::reset() { factors_->reset(); }
std::int64_t JacobianProduct::size() const { return factors_->n; }

double JacobianProduct::work() const { return factors_->work; }

std::int64_t JacobianProduct::rank() const {
  factors_->settle();
  return factors_->rank;
}

std::vector<double> JacobianProduct::log10_largest(int k) const {
  RECLAB_DEMAND(k >= 0);
  const auto count = static_cast<std::size_t>(std::min<std::int64_t>(k, factors_->n));
  if (!factors_->finite) return std::vector<double>(count, std::numeric_limits<double>::quiet_NaN());
  if (count == 0) return {};
  factors_->find_largest(static_cast<std::int64_t>(count));
  return {factors_->leading.begin(), factors_->leading.begin() + static_cast<std::ptrdiff_t>(count)};
}

double JacobianProduct::log10_smallest() const {
  if (!factors_->finite) return std::numeric_limits<double>::quiet_NaN();
  factors_->find_smallest();
  return factors_->smallest;
}

DiagonalProduct::DiagonalProduct(std::int64_t n) : sum_(static_cast<std::size_t>(n)), carry_(sum_.size()) { RECLAB_DEMAND(n >= 1); }

void DiagonalProduct::multiply(std::span<const double> log_abs) {
  RECLAB_DEMAND(log_abs.size() == sum_.size());
  for (std::size_t i = 0; i < sum_.size(); ++i) {  // Neumaier's sum, in the branch-free form of Knuth
    const double x = log_abs[i], before = sum_[i], after = before + x, back = after - before;
    carry_[i] += (before - (after - back)) + (x - back);
    sum_[i] = after;
  }
}

void DiagonalProduct::reset() {
  std::fill(sum_.begin(), sum_.end(), 0.0);
  std::fill(carry_.begin(), carry_.end(), 0.0);
}

double DiagonalProduct::total(std::size_t i) const { return std::isfinite(sum_[i]) ? sum_[i] + carry_[i] : sum_[i]; }

std::vector<double> DiagonalProduct::log10_largest(int k) const {
  RECLAB_DEMAND(k >= 0);
  std::vector<double> all(sum_.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = total(i) / std::numbers::ln10;
  const auto count = std::min(static_cast<std::size_t>(k), all.size());
  // NaN first, so that it shows.
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                    [](double x, double y) { return std::isnan(y) ? false : std::isnan(x) || x > y; });
  all.resize(count);
  return all;
}

double DiagonalProduct::log10_smallest() const {
  double least = infinity;
  for (std::size_t i = 0; i < sum_.size(); ++i) {
    const double x = total(i);
    if (std::isnan(x)) return x;
    least = std::min(least, x);
  }
  return least / std::numbers::ln10;
}

}  // namespace reclab
