// SPDX-License-Identifier: GPL-3.0-or-later
// What the engine is asked for a setup, and how what it returns is put together.
#pragma once

#include <QStringList>
#include <cstdint>
#include <string>

#include "gui/session/setup.h"

namespace reclab {

/// What a run is to record, from what the visible panels show. `live`: while a slider moves, when a quick answer is worth more than a full
/// one: then the eigenvalues of `focus`, the step of the cursor, are all that is computed of Jacobians, but for `also`.
RecordingOptions recordingFor(const QStringList& visiblePanels, bool live, std::int64_t focus = -1, const Kinds& also = {});
/// A number for each pair of steps, which is recorded for a panel in front of others alone.
Kinds pairwiseKinds();
/// The request that a setup stands for.
RunRequest requestFor(const Setup& setup, const Preset& preset, const RecordingOptions& recording);
/// A trace with the arrays of another added.
TracePtr merged(const TracePtr& trace, const TracePtr& more);
/// Likewise those of a timing, with what was timed.
TracePtr withTiming(const TracePtr& trace, const TracePtr& timing);

/// The sizes of everything that is computed with, as text.
std::string shapesOf(const Card& card);

}  // namespace reclab
