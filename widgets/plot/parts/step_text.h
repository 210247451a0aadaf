// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <cstdint>

namespace reclab {

class Trace;

/// "12,340": the number by which a step of a run is called, which of a stream's last steps is that of the stream. `trace` may be null.
QString stepText(const Trace* trace, std::int64_t step);

}  // namespace reclab
