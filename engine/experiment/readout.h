// SPDX-License-Identifier: GPL-3.0-or-later
// Read-outs that are fitted to a run's own target before it, where the architecture says so (Architecture::fit).
#pragma once

#include <string>

#include "models/network.h"
#include "sequence/sequence.h"

namespace reclab {

/// Runs the layers over the sequence, from rest and in float64, regresses the target on their outputs, and puts the result into
/// `parameters`, those of a network with a head of `outputs` outputs. Returns a note for the user; empty where nothing is fitted. Throws
/// Error where the settings do not go together with the target, or the regression has no solution in float64.
std::string fit_readout(const Architecture& architecture, const Hyper& hyper, const Sequence& sequence, std::int64_t outputs,
                        Parameters& parameters);

}  // namespace reclab
