// SPDX-License-Identifier: GPL-3.0-or-later
// The steps of a stream's last ones: a run on them counts its own from 0, and people the stream's.
#pragma once

#include <cstdint>
#include <string_view>

#include "trace/trace.h"

namespace reclab {

/// The name of a time whose numbers are the steps of a stream (Sequence::time_name, Trace::time_name).
inline constexpr std::string_view stream_steps = "step of the stream";
/// Whether the time of a run is that.
bool counts_stream(const Trace& trace);
/// The number by which a step of a run, from 0 on, is called: that of the stream, or its own.
std::int64_t number_of_step(const Trace& trace, std::int64_t step);

}  // namespace reclab
