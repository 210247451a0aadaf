// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string_view>

namespace reclab {

/// The rate of learning at each step, counted from 0.
struct RateSchedule {
  enum class Shape : std::uint8_t { constant, cosine, inverse_sqrt };
  double rate = 1e-3;  ///< the largest
  Shape shape = Shape::constant;
  /// The rate rises in so many equal parts to the largest: rate (step + 1) / warm_up. inverse_sqrt: from there on it is
  /// rate sqrt(max(warm_up, 1) / (step + 1)) (A. Vaswani and others, NeurIPS 2017, section 5.3).
  std::int64_t warm_up = 0;
  std::int64_t steps =
      0;  ///< cosine: where the rate has become `least`: least + (rate - least) (1 + cos(pi (step - warm_up) / (steps - warm_up))) / 2
  double least = 0.0;

  double at(std::int64_t step) const;
  bool operator==(const RateSchedule&) const = default;
};
const char* to_string(RateSchedule::Shape shape);
/// Throws Error naming those that there are.
RateSchedule::Shape schedule_shape(std::string_view name);

}  // namespace reclab
