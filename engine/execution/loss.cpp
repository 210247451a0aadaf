// SPDX-License-Identifier: GPL-3.0-or-later
#include "execution/loss.h"

#include <vector>

namespace reclab {

double Loss::segment(std::int64_t first, std::int64_t steps, std::int64_t width, std::span<const double> output,
                     std::span<double> adjoint) const {
  const LossForm own = form();
  std::vector<double> weights(static_cast<std::size_t>(steps)), targets(static_cast<std::size_t>(steps * own.target_width(width))),
      slope(output.size());
  rows(first, weights, targets);
  double value = 0.0;
  cpu_backend().loss(DType::f64, own.term, {steps, 1, width}, output.data(), own.has_target ? targets.data() : nullptr, weights.data(),
                     &value, slope.data());
  for (std::size_t i = 0; i < adjoint.size(); ++i) adjoint[i] += slope[i];
  return value;
}

}  // namespace reclab
