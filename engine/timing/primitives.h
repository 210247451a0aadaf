// SPDX-License-Identifier: GPL-3.0-or-later
// The primitives of recurrence/ by themselves, as architectures that are nothing else, for timing the parts of every model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiment/experiment.h"
#include "models/registry.h"

namespace reclab {

/// The primitives of recurrence/primitive.h. Their operands come in as their input, its channels cut into parts; time-invariant arrays are
/// parameters. No preset names them, and they are in no list of models.
const Registry& primitives();
bool is_primitive(std::string_view id);
std::vector<std::string> primitive_names();

/// A preset of a primitive, on a sequence made for it: as wide as all that it reads, factors in (0, 1), the rest normal, from the seed.
Preset primitive_preset(std::string_view id);
Sequence primitive_input(std::string_view id, const Hyper& hyper, std::int64_t length, std::uint64_t seed);

}  // namespace reclab
