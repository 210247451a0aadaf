// SPDX-License-Identifier: GPL-3.0-or-later
// The values of a run beside its sequence, as data, one row each: from the tables come the options of a command line with their help, the
// words that repeat a run, and its values in a file.
#pragma once

#include <vector>

#include "experiment/experiment.h"
#include "parameters/field.h"

namespace reclab {

/// Seed, device, precision, form and loss.
const std::vector<PlanField<RunSettings>>& run_settings_fields();
/// The fields of RunSettings, the preset's settings, weights and state, and the recording, in the order of the command line.
const std::vector<PlanField<RunRequest>>& run_fields();

}  // namespace reclab
