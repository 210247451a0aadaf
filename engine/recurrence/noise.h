// SPDX-License-Identifier: GPL-3.0-or-later
// Noise that a model adds to its arrays.
#pragma once

#include <string>

#include "recurrence/layer.h"

namespace reclab {

/// Independent normal numbers of mean 0 and the given deviation, [steps, batch, n], without gradient. The numbers of a step follow from the
/// seed, the layer, the name and the step's number from the start of the sequence, so cutting a sequence changes nothing; all sequences of
/// a batch have the same. They are the n first numbers of Rng(seed).split("LAYER/NAME").split("STEP").
Var noise(Layer& layer, const std::string& name, std::int64_t n, double deviation, std::int64_t seed);
/// The same of numbers that are uniform in [low, high).
Var uniform_noise(Layer& layer, const std::string& name, std::int64_t n, double low, double high, std::int64_t seed);

}  // namespace reclab
