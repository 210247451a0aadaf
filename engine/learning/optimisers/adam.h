// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "learning/optimiser_rule.h"

namespace reclab {

/// w -= rate m' / (sqrt(v') + epsilon), m' and v' the averages of g and g^2 over their total weight so far; keeps m and v.
void adam_step(const WeightStep& step, const DeviceArray& g);
std::vector<Field> adam_fields();
std::vector<std::string> adam_kept(const OptimiserOptions& options);

}  // namespace reclab
