// SPDX-License-Identifier: GPL-3.0-or-later
#include "evaluation/interval.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <system_error>

namespace reclab {
namespace {

/// P(|T| <= t) for Student's distribution.
double within(double t, std::int64_t degrees) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees))), sine = std::sin(angle),
               square = std::cos(angle) * std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? std::cos(angle) : 1.0, sum = 0.0;
  for (std::int64_t k = odd ? 1 : 0; k <= degrees - 2; k += 2) {
    sum += term;
    term *= square * static_cast<double>(k + 1) / static_cast<double>(k + 2);
  }
  return odd ? 2.0 / std::numbers::pi * (angle + sine * sum) : sine * sum;
}

/// The point from 0 on at which a rising function has this value.
template <class F>
double inverse(double value, const F& f) {
  double low = 0.0, high = 1.0;
  while (f(high) < value && high < 1e300) high *= 2.0;
  for (int i = 0; i < 200 && high - low > 1e-15 * high; ++i) {
    const double middle = low + (high - low) / 2.0;
    (f(middle) < value ? low : high) = middle;
  }
  return low + (high - low) / 2.0;
}

}  // namespace

double student_t(double probability, std::int64_t degrees) {
  // The next term of the series in 1/n of t(n) - z is below 1e-9 from there on (Abramowitz and Stegun, 26.7.5).
  constexpr std::int64_t many = 2000;
  if (degrees > many) {
    const double z = normal_z(probability), n = static_cast<double>(degrees), z2 = z * z;
    return z + z * (z2 + 1.0) / (4.0 * n) + z * ((5.0 * z2 + 16.0) * z2 + 3.0) / (96.0 * n * n);
  }
  return inverse(probability, [&](double t) { return within(t, degrees); });
}

double normal_z(double probability) {
  return inverse(probability, [](double z) { return std::erf(z / std::numbers::sqrt2); });
}

void SequenceMean::add(double value) {
  ++count_;
  const double before = value - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (value - mean_);
  yes_or_no_ = yes_or_no_ && (value == 0.0 || value == 1.0);
}

Estimate SequenceMean::estimate(double confidence, bool share) const {
  Estimate found;
  if (count_ == 0) return found;
  const auto n = static_cast<double>(count_);
  found.mean = share ? std::clamp(mean_, 0.0, 1.0) : mean_;
  if (share && yes_or_no_) {
    const double z2 = std::pow(normal_z(confidence), 2), p = found.mean, middle = (p + z2 / (2.0 * n)) / (1.0 + z2 / n),
                 half = std::sqrt(z2 * (p * (1.0 - p) / n + z2 / (4.0 * n * n))) / (1.0 + z2 / n);
    found.low = p == 0.0 ? 0.0 : std::max(0.0, middle - half);
    found.high = p == 1.0 ? 1.0 : std::min(1.0, middle + half);
  } else if (count_ > 1) {
    const double half = student_t(confidence, count_ - 1) * std::sqrt(squares_ / (n - 1.0) / n);
    found.low = share ? std::max(0.0, mean_ - half) : mean_ - half;
    found.high = share ? std::min(1.0, mean_ + half) : mean_ + half;
  }
  return found;
}

std::string wanted_confidence(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0.0 && value < 1.0 ? "" : "a number between 0 and 1";
}

}  // namespace reclab
