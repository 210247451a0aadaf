// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "trace/trace.h"

namespace reclab {

/// The number of the curve of a state's gradient (Theme::curve), so that it has one colour in every panel: where there are few states and
/// layers each has its own, else all layers share those of the states. -1: the trace has none of it.
int placeOfState(const Trace& trace, const std::string& key);
/// Whether each layer's states have places of their own.
bool layersApart(std::size_t states, std::size_t layers);

}  // namespace reclab
