// SPDX-License-Identifier: GPL-3.0-or-later
// What the machine's microphone, or the monitor of what it plays, hears, through ALSA. Inside the floor only.
#pragma once

#include <memory>
#include <string>

#include "streams/source.h"

namespace reclab {

/// Opens a capture device of ALSA, "default" or one of `arecord -L`, with so many samples a second and channels; a sample is a step, a
/// channel a column, of values from -1 to 1. Throws Error for one that cannot be opened, and in a build without ALSA.
std::unique_ptr<StreamSource> microphone(const std::string& device, std::int64_t rate, std::int64_t channels, std::int64_t standardise);

}  // namespace reclab
