// SPDX-License-Identifier: GPL-3.0-or-later
// w -= rate d, d = g, or with momentum d = m, m = momentum m + g (the first m is g), or by Nesterov d = g + momentum m.
// H. Robbins, S. Monro, 1951; momentum: B. T. Polyak, 1964, and Y. Nesterov, 1983; as torch.optim.SGD.
#include "array/error.h"
#include "learning/optimiser_rule.h"

namespace reclab::optimisers_by_name {
namespace {

void step(const WeightStep& s) {
  const DeviceArray* direction = &s.decayed_gradient();
  if (const double momentum = s.options->real("momentum"); momentum > 0.0) {
    s.average(s.kept[0], momentum, *direction, 1.0);
    if (s.options->flag("nesterov")) {
      s.scale(s.kept[0], momentum, s.scratch[1]);
      s.add_to(*direction, s.scratch[1]);
      direction = &s.scratch[1];
    } else {
      direction = &s.kept[0];
    }
  }
  s.descend(*direction, s.rate, s.scratch[2]);
}

void check(const OptimiserOptions& options) {
  if (options.flag("nesterov") && !(options.rule == "sgd" && options.real("momentum") > 0.0))
    throw Error("nesterov is a kind of momentum of sgd: choose the optimiser sgd and a momentum above 0.", {.parameter = "nesterov"});
}

}  // namespace

OptimiserRule sgd() {
  return {.title = "SGD",
          .year = 1951,
          .fields = {momentum_field(), {.row = hyper_flag("nesterov", false, "Nesterov's momentum"), .usual = "no"}, weight_decay_field()},
          .kept = [](const OptimiserOptions& options) -> std::vector<std::string> {
            if (options.real("momentum") > 0.0) return {"momentum"};
            return {};
          },
          .step = step,
          .check = check};
}

}  // namespace reclab::optimisers_by_name
