// SPDX-License-Identifier: GPL-3.0-or-later
// The composer of linear-complexity sequence models: the model of one code e-o-s-a, in words and equations, and a small run of it.
#pragma once

#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "trace/composition.h"

namespace reclab {

/// The model that the preset `lcsm` is with these settings (keys of its hyper-parameters; the others are as in the preset), run on the
/// preset's own task. Throws Error for an unknown setting or preset.
CompositionPtr compose(const Registry& registry, const PresetLibrary& presets,
                       const std::vector<std::pair<std::string, std::string>>& settings, std::stop_token stop);

}  // namespace reclab
