// SPDX-License-Identifier: GPL-3.0-or-later
#include "trace/stream_steps.h"

#include <cmath>

namespace reclab {

bool counts_stream(const Trace& trace) { return trace.time_name == stream_steps; }

std::int64_t number_of_step(const Trace& trace, std::int64_t step) {
  if (!counts_stream(trace) || trace.time.empty() || trace.steps.empty()) return step;
  return std::llround(trace.time.front()) - trace.steps.front() + step;
}

}  // namespace reclab
