// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "array/demand.h"
#include "array/rng.h"

namespace reclab {
namespace {

constexpr int draws = 500;
constexpr double low_end = 0.05, high_end = 0.95, deviations = 1.6448536269514722;  // of a normal distribution, at its ends

/// The upper end of the 90 % band of Student's distribution (R. A. Fisher, E. A. Cornish, Technometrics 2, 1960), to 1 % from 4 degrees on.
double student(double degrees) {
  const double z = deviations, cube = z * z * z;
  return z + (cube + z) / (4.0 * degrees) + (5.0 * cube * z * z + 16.0 * cube + 3.0 * z) / (96.0 * degrees * degrees);
}

/// Slope of y against x, and with it the residuals.
double slope(std::span<const double> x, std::span<const double> y, std::vector<double>* residuals = nullptr) {
  const auto n = static_cast<double>(x.size());
  double mx = 0.0, my = 0.0, sxx = 0.0, sxy = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    mx += x[i] / n;
    my += y[i] / n;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    sxx += (x[i] - mx) * (x[i] - mx);
    sxy += (x[i] - mx) * (y[i] - my);
  }
  if (!(sxx > 0.0)) return std::numeric_limits<double>::quiet_NaN();
  const double p = sxy / sxx;
  for (std::size_t i = 0; residuals && i < x.size(); ++i) residuals->push_back(y[i] - my - p * (x[i] - mx));
  return p;
}

}  // namespace

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(below), values.end());
  const double low = values[below];
  if (below + 1 == values.size()) return low;
  const double high = *std::min_element(values.begin() + static_cast<std::ptrdiff_t>(below) + 1, values.end());
  return low + (at - static_cast<double>(below)) * (high - low);
}

Banded median_band(const Visits& visits, double noise) {
  std::vector<double> all;
  for (const auto& visit : visits) all.insert(all.end(), visit.begin(), visit.end());
  const double middle = median(all);
  Rng rng(all.size());
  std::vector<double> medians, drawn;
  for (int draw = 0; draw < draws; ++draw) {
    drawn.clear();
    for (std::size_t v = 0; v < visits.size(); ++v) {
      const auto& visit = visits[static_cast<std::size_t>(rng.integer(std::ssize(visits)))];
      for (std::size_t i = 0; i < visit.size(); ++i) drawn.push_back(visit[static_cast<std::size_t>(rng.integer(std::ssize(visit)))]);
    }
    medians.push_back(median(drawn));
  }
  const auto wide = [&](double own) { return std::exp(std::sqrt(2.0 * (own * own + noise * noise))); };
  // Over samples of n visits, medians have (n - 1)/n of the variance that they have over visits drawn anew.
  const double n = static_cast<double>(visits.size()), few = n > 1.0 ? std::sqrt(n / (n - 1.0)) : 1.0;
  return {middle, middle / wide(few * std::log(middle / quantile(medians, low_end))),
          middle * wide(few * std::log(quantile(medians, high_end) / middle))};
}

double between_runs(std::span<const double> paces) {
  std::vector<double> off;
  if (!paces.empty()) {
    const double middle = median({paces.begin(), paces.end()});
    for (const double pace : paces) off.push_back(std::abs(std::log(pace / middle)));
  }
  double squares = usual_counts * usual_spread * usual_spread;
  const double far = off.empty() ? 0.0 : 3.0 * std::max(usual_spread, quantile(off, 0.75) / 1.1503);  // where a normal distribution has it
  for (const double x : off) squares += std::min(x, far) * std::min(x, far);
  const double degrees = usual_counts + (off.empty() ? 0.0 : static_cast<double>(off.size()) - 1.0);
  return student(degrees) * std::sqrt(squares / degrees);
}

void PaceFit::add(const Visits& times, std::span<const double> pace) {
  RECLAB_DEMAND(times.size() == pace.size());
  std::vector<double> x, y;
  for (std::size_t v = 0; v < times.size(); ++v) {
    x.push_back(std::log(pace[v]));
    y.push_back(std::log(median(times[v])));
  }
  const auto n = static_cast<double>(x.size());
  const double mx = std::accumulate(x.begin(), x.end(), 0.0) / n, my = std::accumulate(y.begin(), y.end(), 0.0) / n;
  for (std::size_t v = 0; v < x.size(); ++v) {
    together_ += (x[v] - mx) * (y[v] - my);
    spread_ += (x[v] - mx) * (x[v] - mx);
  }
}

double PaceFit::power() const { return spread_ > 0.0 ? std::clamp(together_ / spread_, 0.0, 1.0) : 0.0; }

Banded exponent(std::span<const double> lengths, std::span<const Banded> costs) {
  RECLAB_DEMAND(lengths.size() == costs.size());
  std::vector<double> x, y, residuals;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    x.push_back(std::log(lengths[i]));
    y.push_back(std::log(costs[i].value));
  }
  const double p = slope(x, y, &residuals);
  if (std::isnan(p)) return {p, p, p};
  Rng rng(costs.size());
  std::vector<double> slopes, drawn(y.size());
  const double degrees = static_cast<double>(x.size()) - 2.0,
               few = degrees > 0.0 ? std::sqrt(static_cast<double>(x.size()) / degrees) : 0.0;
  for (int draw = 0; draw < draws; ++draw) {
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double z = rng.normal(), below = std::log(costs[i].value / costs[i].low) / deviations,
                   above = std::log(costs[i].high / costs[i].value) / deviations;
      drawn[i] = y[i] + z * (z < 0.0 ? below : above) + few * residuals[i] * rng.normal();
    }
    slopes.push_back(slope(x, drawn));
  }
  return {p, std::min(p, quantile(slopes, low_end)), std::max(p, quantile(slopes, high_end))};
}

std::size_t longer_half(std::size_t lengths) { return lengths > 3 ? (lengths - 1) / 2 : 0; }

}  // namespace reclab
