// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/parts/step_text.h"

#include "plot/theme.h"
#include "trace/stream_steps.h"

namespace reclab {

QString stepText(const Trace* trace, std::int64_t step) { return grouped(trace != nullptr ? number_of_step(*trace, step) : step); }

}  // namespace reclab
