// SPDX-License-Identifier: GPL-3.0-or-later
// Adam, after w *= 1 - rate weight_decay.
// I. Loshchilov, F. Hutter, ICLR 2019; as torch.optim.AdamW.
#include "learning/optimisers/adam.h"

namespace reclab::optimisers_by_name {

OptimiserRule adamw() {
  return {.title = "AdamW", .year = 2019, .fields = adam_fields(), .kept = adam_kept, .step = [](const WeightStep& s) {
            if (const double decay = s.options->real("weight_decay"); decay > 0.0) s.descend(*s.weight, s.rate * decay, s.scratch[0]);
            adam_step(s, *s.gradient);
          }};
}

}  // namespace reclab::optimisers_by_name
