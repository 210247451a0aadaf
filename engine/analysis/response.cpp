// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/response.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "algebra/eigen.h"
#include "algebra/resolvent.h"
#include "array/host.h"
#include "array/stop.h"

namespace reclab {
namespace {

using Complex = std::complex<double>;

std::vector<Complex> complex_values(Backend& backend, Var x) {
  const auto n = count(x.shape());
  const void* data = x.graph->value(x);
  if (is_complex(x.dtype())) return to_complex(backend, x.dtype(), data, n);
  const std::vector<double> real = to_double(backend, x.dtype(), data, n);
  return {real.begin(), real.end()};
}
std::vector<double> real_values(Backend& backend, Var x) { return to_double(backend, x.dtype(), x.graph->value(x), count(x.shape())); }

double time_constant(double size) {
  return size >= 1.0 ? std::numeric_limits<double>::infinity() : size > 0.0 ? -1.0 / std::log(size) : 0.0;
}

/// x <- A x, row-major.
void take_step(const std::vector<double>& A, std::vector<double>& x) {
  const std::size_t n = x.size();
  std::vector<double> next(n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    const double* row = A.data() + i * n;
    double sum = 0.0;
    for (std::size_t j = 0; j < n; ++j) sum += row[j] * x[j];
    next[i] = sum;
  }
  x.swap(next);
}

}  // namespace

template <class... Rows>
void Response::leave_distinct(std::int64_t row, Rows&... rows) {
  const auto each = static_cast<std::size_t>(row);
  const std::size_t all = std::max({rows.size()...}) / each;
  std::map<std::vector<double>, std::size_t> seen;
  std::size_t kept = 0;
  const auto add = [](std::vector<double>& key, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>)
      key.push_back(value);
    else
      key.insert(key.end(), {value.real(), value.imag()});
  };
  for (std::size_t i = 0; i < all; ++i) {
    std::vector<double> key;
    (std::for_each(rows.begin() + static_cast<std::ptrdiff_t>(i * each), rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * each),
                   [&](const auto& x) { add(key, x); }),
     ...);
    const auto [found, is_new] = seen.try_emplace(std::move(key), kept);
    if (!is_new) {
      if (found->second < channels_.size()) ++channels_[found->second].alike;
      continue;
    }
    if (std::ssize(channels_) == most_) {
      seen.erase(found);
      ++left_out_;
      continue;
    }
    (std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(i * each), each, rows.begin() + static_cast<std::ptrdiff_t>(kept * each)), ...);
    channels_.push_back({static_cast<std::int64_t>(i), static_cast<std::int64_t>(i)});
    ++kept;
  }
  (rows.resize(kept * each), ...);
}

Response::Response(const LinearSystem& system, Backend& backend, std::int64_t most) : most_(most) {
  switch (system.structure) {
    case LinearSystem::Structure::modes: parts_ = read_modes(system, backend); break;
    case LinearSystem::Structure::low_rank: parts_ = read_low_rank(system, backend); break;
    case LinearSystem::Structure::matrix: parts_ = read_matrices(system, backend); break;
    case LinearSystem::Structure::taps: parts_ = read_taps(system, backend); break;
  }
}

Response::Modes Response::read_modes(const LinearSystem& s, Backend& backend) {
  const std::int64_t modes = s.b ? s.a.dim(-1) : 1;
  Modes own{modes, complex_values(backend, s.a), {}};
  own.w.assign(own.a.size(), 1.0);
  for (const Var part : {s.b, s.c}) {
    if (!part) continue;
    const std::vector<Complex> values = complex_values(backend, part);
    for (std::size_t i = 0; i < own.w.size(); ++i) own.w[i] *= values[i % values.size()];
  }
  leave_distinct(modes, own.a, own.w);
  return own;
}

Response::LowRank Response::read_low_rank(const LinearSystem& s, Backend& backend) {
  LowRank own{s.a.dim(-1),
              complex_values(backend, s.a),
              complex_values(backend, s.b),
              complex_values(backend, s.c),
              complex_values(backend, s.p),
              complex_values(backend, s.q)};
  for (auto* part : {&own.b, &own.c, &own.p, &own.q})  // one row for all channels
    for (std::size_t i = part->size(); i < own.a.size(); ++i) part->push_back((*part)[i - static_cast<std::size_t>(own.modes)]);
  leave_distinct(own.modes, own.a, own.b, own.c, own.p, own.q);
  return own;
}

Response::Taps Response::read_taps(const LinearSystem& s, Backend& backend) {
  Taps own{s.a.dim(1), real_values(backend, s.a)};
  leave_distinct(own.taps, own.k);
  return own;
}

Response::Matrices Response::read_matrices(const LinearSystem& s, Backend& backend) {
  Matrices own;
  own.n = s.a.dim(-1);
  const auto n = static_cast<std::size_t>(own.n);
  const std::vector<double> A = real_values(backend, s.a), B = s.b ? real_values(backend, s.b) : std::vector<double>(),
                            C = s.c ? real_values(backend, s.c) : std::vector<double>();
  const std::size_t matrices = A.size() / (n * n), inputs = B.size() / n;
  const std::size_t groups = std::max({matrices, inputs, s.c ? static_cast<std::size_t>(s.c.dim(0)) : 1});
  own.columns = s.b ? 1 : own.n;
  own.rows = s.c ? s.c.dim(-2) : own.n;
  std::vector<double> unit(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) unit[i * n + i] = 1.0;
  const auto part = [](const std::vector<double>& whole, std::size_t i, std::size_t size) {
    const auto from = whole.begin() + static_cast<std::ptrdiff_t>(i * size % whole.size());
    return std::vector<double>(from, from + static_cast<std::ptrdiff_t>(size));
  };
  // The number of copies follows from the width of the input: the copies may share all parameters.
  std::int64_t width = 1;
  for (std::size_t i = 2; i < s.input.shape().size(); ++i) width *= s.input.shape()[i];
  const auto copies = static_cast<std::size_t>(width / own.columns);
  for (std::size_t g = 0; g < groups; ++g) {
    std::vector<double> matrix = part(A, g, n * n), b = s.b ? part(B, g, n) : unit,
                        c = s.c ? part(C, g, static_cast<std::size_t>(own.rows) * n) : unit;
    std::size_t same = 0;
    while (same < own.A.size() && !(own.A[same] == matrix && own.b[same] == b && own.c[same] == c)) ++same;
    if (same < own.A.size()) {
      for (std::size_t i = 0; i < own.pairs.size(); ++i) channels_[i].alike += own.pairs[i].group == same;
      continue;
    }
    const std::int64_t each = own.rows;  // each column to the row of its number, or one column to all rows
    if (std::ssize(channels_) + each > most_ && g) {
      left_out_ += each;
      continue;
    }
    for (std::int64_t r = 0; r < each; ++r) {
      if (std::ssize(channels_) == most_) {
        ++left_out_;
        continue;
      }
      const auto at = static_cast<std::int64_t>(g);
      channels_.push_back({at * own.columns + (s.b ? 0 : r), at * own.rows + r, groups == 1 ? static_cast<std::int64_t>(copies) : 1});
      own.pairs.push_back({own.A.size(), static_cast<std::size_t>(s.b ? 0 : r), static_cast<std::size_t>(r)});
    }
    own.A.push_back(std::move(matrix));
    own.b.push_back(std::move(b));
    own.c.push_back(std::move(c));
  }
  return own;
}

std::vector<double> Response::kernels(std::int64_t lags) const {
  const std::size_t channels = channels_.size(), all = static_cast<std::size_t>(lags);
  std::vector<double> k(all * channels, 0.0);
  if (const auto* own = std::get_if<Modes>(&parts_)) {
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t m = c * static_cast<std::size_t>(own->modes); m < (c + 1) * static_cast<std::size_t>(own->modes); ++m) {
        check_stop();
        Complex x = own->w[m];
        for (std::size_t t = 0; t < all; ++t, x *= own->a[m]) k[t * channels + c] += x.real();
      }
  } else if (const auto* low = std::get_if<LowRank>(&parts_)) {
    const auto modes = static_cast<std::size_t>(low->modes);
    for (std::size_t c = 0; c < channels; ++c) {
      check_stop();
      std::vector<Complex> h(low->b.begin() + static_cast<std::ptrdiff_t>(c * modes),
                             low->b.begin() + static_cast<std::ptrdiff_t>((c + 1) * modes));
      for (std::size_t t = 0; t < all; ++t) {
        double y = 0.0, s = 0.0;
        for (std::size_t m = 0; m < modes; ++m) {
          y += 2.0 * (low->c[c * modes + m] * h[m]).real();
          s += 2.0 * (low->q[c * modes + m] * h[m]).real();
        }
        k[t * channels + c] = y;
        for (std::size_t m = 0; m < modes; ++m) h[m] = low->a[c * modes + m] * h[m] - low->p[c * modes + m] * s;
      }
    }
  } else if (const auto* dense = std::get_if<Matrices>(&parts_)) {
    const auto n = static_cast<std::size_t>(dense->n);
    for (std::size_t i = 0; i < channels;) {  // those from one column lie beside each other
      const auto from = dense->pairs[i];
      std::size_t end = i;
      while (end < channels && dense->pairs[end].group == from.group && dense->pairs[end].column == from.column) ++end;
      std::vector<double> x(dense->b[from.group].begin() + static_cast<std::ptrdiff_t>(from.column * n),
                            dense->b[from.group].begin() + static_cast<std::ptrdiff_t>((from.column + 1) * n));
      for (std::size_t t = 0; t < all; ++t) {
        check_stop();
        for (std::size_t j = i; j < end; ++j) {
          const double* row = dense->c[from.group].data() + dense->pairs[j].row * n;
          for (std::size_t m = 0; m < n; ++m) k[t * channels + j] += row[m] * x[m];
        }
        take_step(dense->A[from.group], x);
      }
      i = end;
    }
  } else {
    const auto& taps = std::get<Taps>(parts_);
    for (std::size_t c = 0; c < channels; ++c)
      for (std::size_t t = 0; t < std::min(all, static_cast<std::size_t>(taps.taps)); ++t)
        k[t * channels + c] = taps.k[c * static_cast<std::size_t>(taps.taps) + t];
  }
  return k;
}

std::vector<std::complex<double>> Response::responses(std::span<const double> angles) const {
  const std::size_t channels = channels_.size();
  std::vector<Complex> all(angles.size() * channels, 0.0);
  if (const auto* own = std::get_if<Modes>(&parts_)) {
    const auto modes = static_cast<std::size_t>(own->modes);
    const bool real = std::ranges::all_of(own->a, [](Complex x) { return x.imag() == 0.0; }) &&
                      std::ranges::all_of(own->w, [](Complex x) { return x.imag() == 0.0; });
    for (std::size_t f = 0; f < angles.size(); ++f) {
      const Complex z = std::polar(1.0, -angles[f]);
      for (std::size_t c = 0; c < channels; ++c) {
        check_stop();
        Complex sum = 0.0, mirrored = 0.0;
        for (std::size_t m = c * modes; m < (c + 1) * modes; ++m) {
          if (own->w[m] == 0.0) continue;
          sum += own->w[m] / (1.0 - own->a[m] * z);
          if (!real) mirrored += std::conj(own->w[m]) / (1.0 - std::conj(own->a[m]) * z);
        }
        all[f * channels + c] = real ? sum : 0.5 * (sum + mirrored);
      }
    }
  } else if (const auto* low = std::get_if<LowRank>(&parts_)) {
    const auto modes = static_cast<std::size_t>(low->modes);
    for (std::size_t f = 0; f < angles.size(); ++f) {
      const Complex z = std::polar(1.0, -angles[f]);
      for (std::size_t c = 0; c < channels; ++c) {
        check_stop();
        Complex qb = 0.0, qp = 0.0, cb = 0.0, cp = 0.0;  // of both halves of the pairs, through (1 - a z)^-1
        for (std::size_t m = c * modes; m < (c + 1) * modes; ++m) {
          const Complex d = 1.0 / (1.0 - low->a[m] * z), mirrored = 1.0 / (1.0 - std::conj(low->a[m]) * z);
          const auto both = [&](Complex x) { return x * d + std::conj(x) * mirrored; };
          qb += both(low->q[m] * low->b[m]);
          qp += both(low->q[m] * low->p[m]);
          cb += both(low->c[m] * low->b[m]);
          cp += both(low->c[m] * low->p[m]);
        }
        all[f * channels + c] = cb - z * cp * qb / (1.0 + z * qp);
      }
    }
  } else if (const auto* dense = std::get_if<Matrices>(&parts_)) {
    const auto n = static_cast<std::size_t>(dense->n);
    for (std::size_t g = 0; g < dense->A.size(); ++g) {
      Resolvent resolvent(dense->A[g], dense->n);
      const auto turned = [&](const std::vector<double>& rows) {
        std::vector<std::vector<double>> made;
        for (std::size_t i = 0; i < rows.size(); i += n) made.push_back(resolvent.turned(std::span(rows).subspan(i, n)));
        return made;
      };
      const auto b = turned(dense->b[g]), c = turned(dense->c[g]);
      for (std::size_t column = 0; column < b.size(); ++column)
        for (std::size_t f = 0; f < angles.size(); ++f) {
          std::vector<Complex> x(b[column].begin(), b[column].end());
          resolvent.solve(std::polar(1.0, -angles[f]), x);
          for (std::size_t i = 0; i < channels; ++i) {
            if (dense->pairs[i].group != g || dense->pairs[i].column != column) continue;
            Complex sum = 0.0;
            for (std::size_t m = 0; m < n; ++m) sum += c[dense->pairs[i].row][m] * x[m];
            all[f * channels + i] = sum;
          }
        }
    }
  } else {
    const auto& taps = std::get<Taps>(parts_);
    const auto many = static_cast<std::size_t>(taps.taps);
    for (std::size_t f = 0; f < angles.size(); ++f) {
      check_stop();
      std::vector<Complex> waves(many);
      for (std::size_t t = 0; t < many; ++t) waves[t] = std::polar(1.0, -angles[f] * static_cast<double>(t));
      for (std::size_t c = 0; c < channels; ++c) {
        Complex sum = 0.0;
        for (std::size_t t = 0; t < many; ++t) sum += taps.k[c * many + t] * waves[t];
        all[f * channels + c] = sum;
      }
    }
  }
  return all;
}

std::vector<double> Response::time_constants() const {
  std::vector<double> found(channels_.size(), 0.0);
  if (const auto* own = std::get_if<Modes>(&parts_)) {
    const auto modes = static_cast<std::size_t>(own->modes);
    for (std::size_t c = 0; c < found.size(); ++c) {
      double slowest = 0.0;
      for (std::size_t m = c * modes; m < (c + 1) * modes; ++m)
        if (own->w[m] != 0.0) slowest = std::max(slowest, std::abs(own->a[m]));
      found[c] = time_constant(slowest);
    }
  } else if (const auto* low = std::get_if<LowRank>(&parts_)) {
    const auto modes = static_cast<std::size_t>(low->modes), n = 2 * modes;
    for (std::size_t c = 0; c < found.size(); ++c) {
      std::vector<double> real(n * n, 0.0);  // of (Re h, Im h)
      for (std::size_t i = 0; i < modes; ++i) {
        const Complex p = low->p[c * modes + i], a = low->a[c * modes + i];
        for (std::size_t j = 0; j < modes; ++j) {
          const Complex q = 2.0 * low->q[c * modes + j];
          real[i * n + j] = -p.real() * q.real();
          real[i * n + modes + j] = p.real() * q.imag();
          real[(modes + i) * n + j] = -p.imag() * q.real();
          real[(modes + i) * n + modes + j] = p.imag() * q.imag();
        }
        real[i * n + i] += a.real();
        real[i * n + modes + i] -= a.imag();
        real[(modes + i) * n + i] += a.imag();
        real[(modes + i) * n + modes + i] += a.real();
      }
      found[c] = time_constant(spectral_radius(real, static_cast<std::int64_t>(n)));
    }
  } else if (const auto* dense = std::get_if<Matrices>(&parts_)) {
    std::vector<double> radii;
    for (const auto& A : dense->A) radii.push_back(time_constant(spectral_radius(A, dense->n)));
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = radii[dense->pairs[i].group];
  } else {
    const auto& taps = std::get<Taps>(parts_);
    const auto many = static_cast<std::size_t>(taps.taps);
    for (std::size_t c = 0; c < found.size(); ++c) {
      const auto row = std::span(taps.k).subspan(c * many, many);
      double all = 0.0, sum = 0.0;
      for (const double k : row) all += std::abs(k);
      const double part = all * (1.0 - std::exp(-1.0));
      for (std::size_t t = 0; t < many && all > 0.0; ++t) {
        const double next = sum + std::abs(row[t]);
        if (next >= part) {
          found[c] = static_cast<double>(t) + (part - sum) / (next - sum);
          break;
        }
        sum = next;
      }
    }
  }
  return found;
}

double Response::kernel_work() const {
  if (const auto* dense = std::get_if<Matrices>(&parts_)) {
    const double n = static_cast<double>(dense->n);
    return static_cast<double>(dense->A.size()) * static_cast<double>(dense->columns) * 2.0 * n * n +
           2.0 * n * static_cast<double>(channels_.size());
  }
  if (const auto* own = std::get_if<Modes>(&parts_)) return 8.0 * static_cast<double>(own->a.size());
  if (const auto* low = std::get_if<LowRank>(&parts_)) return 30.0 * static_cast<double>(low->a.size());
  return static_cast<double>(channels_.size());
}

double Response::response_work() const {
  if (const auto* dense = std::get_if<Matrices>(&parts_)) {
    const double n = static_cast<double>(dense->n);
    return static_cast<double>(dense->A.size()) * static_cast<double>(dense->columns) * 12.0 * n * n +
           8.0 * n * static_cast<double>(channels_.size());
  }
  if (const auto* own = std::get_if<Modes>(&parts_)) return 40.0 * static_cast<double>(own->a.size());
  if (const auto* low = std::get_if<LowRank>(&parts_)) return 120.0 * static_cast<double>(low->a.size());
  return static_cast<double>(std::get<Taps>(parts_).taps) * (8.0 * static_cast<double>(channels_.size()) + 60.0);
}

Response Response::after(std::int64_t steps) const {
  Response later = *this;
  if (auto* own = std::get_if<Modes>(&later.parts_)) {
    for (std::size_t i = 0; i < own->w.size(); ++i)
      for (std::int64_t t = 0; t < steps; ++t) own->w[i] *= own->a[i];
  } else if (auto* low = std::get_if<LowRank>(&later.parts_)) {
    const auto modes = static_cast<std::size_t>(low->modes);
    for (std::size_t at = 0; at < low->b.size(); at += modes)
      for (std::int64_t t = 0; t < steps; ++t) {
        double s = 0.0;
        for (std::size_t m = at; m < at + modes; ++m) s += 2.0 * (low->q[m] * low->b[m]).real();
        for (std::size_t m = at; m < at + modes; ++m) low->b[m] = low->a[m] * low->b[m] - low->p[m] * s;
      }
  } else if (auto* dense = std::get_if<Matrices>(&later.parts_)) {
    const auto n = static_cast<std::size_t>(dense->n);
    for (std::size_t g = 0; g < dense->A.size(); ++g)
      for (std::size_t column = 0; column < dense->b[g].size(); column += n) {
        std::vector<double> x(dense->b[g].begin() + static_cast<std::ptrdiff_t>(column),
                              dense->b[g].begin() + static_cast<std::ptrdiff_t>(column + n));
        for (std::int64_t t = 0; t < steps; ++t) take_step(dense->A[g], x);
        std::copy(x.begin(), x.end(), dense->b[g].begin() + static_cast<std::ptrdiff_t>(column));
      }
  } else {
    auto& taps = std::get<Taps>(later.parts_);
    const std::int64_t left = std::max<std::int64_t>(0, taps.taps - steps);
    std::vector<double> rest;
    for (std::size_t c = 0; c < channels_.size(); ++c)
      rest.insert(rest.end(), taps.k.begin() + static_cast<std::ptrdiff_t>(c) * taps.taps + (taps.taps - left),
                  taps.k.begin() + static_cast<std::ptrdiff_t>(c + 1) * taps.taps);
    taps.taps = left;
    taps.k = std::move(rest);
  }
  return later;
}

std::vector<double> response_frequencies() {
  constexpr int a_decade = 256, decades = 4;
  std::vector<double> all;
  for (int i = 0; i <= a_decade * decades; ++i) all.push_back(0.5 * std::pow(10.0, static_cast<double>(i - a_decade * decades) / a_decade));
  return all;
}

}  // namespace reclab
