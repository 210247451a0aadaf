// SPDX-License-Identifier: GPL-3.0-or-later
// Means over sequences, with confidence intervals.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace reclab {

/// A mean and the ends of its confidence interval; NaN where there is none.
struct Estimate {
  double mean = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
};

/// The mean of values that come one after another, each of a sequence of its own (B. P. Welford, Technometrics 4(3), 1962).
class SequenceMean {
 public:
  void add(double value);
  std::int64_t count() const { return count_; }
  /// With Student's t interval of mean ± t s / √n ("Student", Biometrika 6(1), 1908), of two values at least. `share`: the values are
  /// shares of right answers; where each of them is 0 or 1 it is the score interval of a binomial proportion (E. B. Wilson, Journal of the
  /// American Statistical Association 22(158), 1927), which has a width where all are equal too.
  Estimate estimate(double confidence, bool share = false) const;

 private:
  std::int64_t count_ = 0;
  double mean_ = 0.0, squares_ = 0.0;
  bool yes_or_no_ = true;
};

/// The t with P(|T| <= t) = `probability` for Student's distribution with so many degrees of freedom (M. Abramowitz, I. A. Stegun, Handbook
/// of mathematical functions, 26.7.3 and 26.7.4), and the z of the normal one.
double student_t(double probability, std::int64_t degrees);
double normal_z(double probability);

/// Empty where a text is a number between 0 and 1 that an interval may have as its confidence, else what is wanted, in words.
std::string wanted_confidence(std::string_view text);

}  // namespace reclab
