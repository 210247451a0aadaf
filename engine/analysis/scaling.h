// SPDX-License-Identifier: GPL-3.0-or-later
// Statistics of repeated timings: medians with bands, and the growth of a cost with the length.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace reclab {

/// A value with the band that holds it, or another measurement of it, nine times out of ten.
struct Banded {
  double value, low, high;
};

/// The q-quantile of values, linearly between the two nearest; NaN of none.
double quantile(std::vector<double> values, double q);
inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

/// Repeats of one measurement, taken in visits between which other things were done.
using Visits = std::vector<std::vector<double>>;

/// The median of all repeats, and where the median of another such measurement is expected. Its distance has two parts on each side: the
/// bootstrap's spread of the median of this one (visits are drawn, then repeats of each, since repeats of one visit are alike), and
/// `noise`, the half width of the band that no repeat of this one shows, relative to the median: hypot of the drift of an unchanging
/// computation meanwhile and of its variation from run to run (between_runs). Both parts count twice, for the other measurement has them
/// too: sqrt(2 (bootstrap^2 + noise^2)), in logarithms. Positive values. The same values give the same band. B. Efron, R. Tibshirani, An
/// Introduction to the Bootstrap, 1993.
Banded median_band(const Visits& visits, double noise);

/// The variation of a machine's pace, the time of a computation that does not change, from one run to another: half the width of its 90 %
/// band, in logarithms, from the paces of some runs. Few runs tell little: `usual_spread` counts as the standard deviation of
/// `usual_counts` runs more, and the width is that of Student's distribution. A run that lies far off (beyond three deviations, by the
/// upper quartile of all), as beside a long compilation, counts as one that lies there.
double between_runs(std::span<const double> paces);
inline constexpr double usual_spread = 0.05, usual_counts = 4.0;

/// The power by which times follow the pace of the machine, the time of a computation that does not change, from visit to visit: the common
/// slope of logarithms within measurements (analysis of covariance), from 0 (they do not) to 1.
class PaceFit {
 public:
  void add(const Visits& times, std::span<const double> pace);  ///< of one measurement, a pace each visit
  double power() const;

 private:
  double together_ = 0.0, spread_ = 0.0;
};

/// The exponent of a cost: the p of a T^p, by least squares in logarithms over the given points. The band is made of the bands of the
/// points, each drawn from its own, and of the residuals of the fit, which are drawn anew (wild bootstrap: C. F. J. Wu, Annals of
/// Statistics 14, 1986). NaN from fewer than two different lengths.
Banded exponent(std::span<const double> lengths, std::span<const Banded> costs);

/// The first of the points that count for an exponent: the longer half of the lengths, at least three where there are.
std::size_t longer_half(std::size_t lengths);

}  // namespace reclab
