// SPDX-License-Identifier: GPL-3.0-or-later
// D. P. Kingma, J. Ba, ICLR 2015; as torch.optim.Adam.
#include "learning/optimisers/adam.h"

#include <cmath>

namespace reclab {

void adam_step(const WeightStep& s, const DeviceArray& g) {
  const double beta1 = s.options->real("beta1"), beta2 = s.options->real("beta2");
  const auto t = static_cast<double>(s.number);
  DeviceArray &m = s.kept[0], &v = s.kept[1], &a = s.scratch[0], &b = s.scratch[1];
  s.average(m, beta1, g, 1.0 - beta1);
  s.map(Unary::square, g, a);
  s.average(v, beta2, a, 1.0 - beta2);
  s.map(Unary::sqrt, v, a);
  s.scale(a, 1.0 / std::sqrt(1.0 - std::pow(beta2, t)), b, s.options->real("epsilon"));
  s.combine(Binary::divide, m, b, a);
  s.descend(a, s.rate / (1.0 - std::pow(beta1, t)), b);
}

std::vector<Field> adam_fields() {
  return {{.row = hyper_real("beta1", {}, 0.9, 0.0, 1.0, "Of adam's average of gradients")},
          {.row = hyper_real("beta2", {}, 0.999, 0.0, 1.0, "Of adam's average of their squares")},
          epsilon_field(),
          weight_decay_field()};
}

std::vector<std::string> adam_kept(const OptimiserOptions&) { return {"m", "v"}; }

namespace optimisers_by_name {

OptimiserRule adam() {
  return {.title = "Adam", .year = 2015, .fields = adam_fields(), .kept = adam_kept, .step = [](const WeightStep& s) {
            adam_step(s, s.decayed_gradient());
          }};
}

}  // namespace optimisers_by_name
}  // namespace reclab
