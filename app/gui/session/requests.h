// SPDX-License-Identifier: GPL-3.0-or-later
// Requests to the engine for a setup, and the joining of their results.
#pragma once

#include <QStringList>
#include <cstdint>
#include <string>

#include "gui/session/setup.h"

namespace reclab {

/// The recording of a run that the visible panels need. `live`: while a slider moves, when a quick answer is worth more than a full one:
/// then the eigenvalues of `focus`, the step of the cursor, are all that is computed of Jacobians, but for `also`.
RecordingOptions recordingFor(const QStringList& visiblePanels, bool live, std::int64_t focus = -1, const Kinds& also = {});
/// A number for each pair of steps, which is recorded for a panel in front of others alone.
Kinds pairwiseKinds();
/// The request that a setup stands for.
RunRequest requestFor(const Setup& setup, const Preset& preset, const RecordingOptions& recording);
/// A trace with the arrays of another added.
TracePtr merged(const TracePtr& trace, const TracePtr& more);
/// The trace with the arrays of a timing added, and the run that was timed.
TracePtr withTiming(const TracePtr& trace, const TracePtr& timing);

/// The sizes of everything that is computed with, as text.
std::string shapesOf(const Card& card);

}  // namespace reclab
