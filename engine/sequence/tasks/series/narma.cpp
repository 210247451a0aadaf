// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  set_width(sequence, {"input"});
  add_target(sequence, TargetKind::regress, 1);
  const auto order = static_cast<std::size_t>(parameters.integer("order"));
  Rng draw = rng.split("input");
  for (double& u : sequence.input) u = draw.uniform(0.0, 0.5);
  const auto& u = sequence.input;
  auto& y = sequence.target;
  const auto length = static_cast<std::size_t>(sequence.length);
  // 0.05 is for order 10: as large a sum of as many values elsewhere.
  const double share = 0.5 / static_cast<double>(order);
  for (std::size_t t = 1; t < length; ++t) {
    double sum = 0.0;
    for (std::size_t i = 1; i <= std::min(order, t); ++i) sum += y[t - i];
    const double earlier = t >= order ? u[t - order] : 0.0;
    y[t] = std::min(1.0, 0.3 * y[t - 1] + share * y[t - 1] * sum + 1.5 * earlier * u[t - 1] + 0.1);
  }
  for (std::size_t t = order; t < length; ++t) sequence.mask[t] = 1.0;
}

}  // namespace

Task narma() {
  return {
      .info =
          {.name = {},
           .title = "NARMA of order ten",
           .text =
               "The input is drawn uniformly from [0, 0.5); the target is y_t = 0.3 y_{t−1} + 0.05 y_{t−1} Σ_{i=1}^{10} y_{t−i} + 1.5 "
               "u_{t−10} u_{t−1} + 0.1, held at 1 where it would run away, and counts from step 10 on. The last ten inputs must be held, "
               "and two of them multiplied.",
           .default_length = 500,
           .source = "Atiya and Parlos 2000, New results on recurrent network training; as a test of reservoirs in Jaeger 2003, Adaptive "
                     "nonlinear system identification with echo state networks",
           .parameters = {hyper_integer("order", "n", 10, 1, 100, "How far back the target looks", "steps")}},
      .least =
          [](const Hyper& parameters) {
            const std::int64_t order = parameters.integer("order");
            return std::pair(order + 1, std::to_string(order) + (order == 1 ? " step" : " steps") + " before the first that counts");
          },
      .make = make};
}

}  // namespace reclab::tasks_by_name
