// SPDX-License-Identifier: GPL-3.0-or-later
// v = smoothing v + (1 - smoothing) g^2, d = g / (sqrt(v) + epsilon), with momentum m = momentum m + d; w -= rate d, or rate m.
// T. Tieleman, G. Hinton, Lecture 6.5, 2012; as torch.optim.RMSprop, whose alpha is the smoothing.
#include "learning/optimiser_rule.h"

namespace reclab::optimisers_by_name {
namespace {

void step(const WeightStep& s) {
  const double smoothing = s.options->real("smoothing"), momentum = s.options->real("momentum");
  const DeviceArray& g = s.decayed_gradient();
  DeviceArray &a = s.scratch[0], &b = s.scratch[1];
  s.map(Unary::square, g, a);
  s.average(s.kept[0], smoothing, a, 1.0 - smoothing);
  s.map(Unary::sqrt, s.kept[0], a);
  s.scale(a, 1.0, b, s.options->real("epsilon"));
  s.combine(Binary::divide, g, b, a);
  if (momentum > 0.0) s.average(s.kept[1], momentum, a, 1.0);
  s.descend(momentum > 0.0 ? s.kept[1] : a, s.rate, s.scratch[2]);
}

}  // namespace

OptimiserRule rmsprop() {
  return {.title = "RMSProp",
          .year = 2012,
          .fields = {{.row = hyper_real("smoothing", {}, 0.99, 0.0, 1.0, "Of rmsprop's average")},
                     epsilon_field(),
                     momentum_field(),
                     weight_decay_field()},
          .kept = [](const OptimiserOptions& options) -> std::vector<std::string> {
            if (options.real("momentum") > 0.0) return {"v", "momentum"};
            return {"v"};
          },
          .step = step};
}

}  // namespace reclab::optimisers_by_name
