// SPDX-License-Identifier: GPL-3.0-or-later
// Pinned runs in the legend, for all panels: an entry of the legend each, also where a run has nothing of the kind to show.
#pragma once

#include "plot/plot.h"

namespace reclab {

/// The key of a pinned run in the legend.
QString pinKey(const Panel::Run& run);
/// Adds an entry for a run. `of` names the parts of the run that are drawn, where they are to be named ("h, c"), `how` says how they are
/// told apart.
void addPin(Legend* legend, const Panel::Run& run, const QPen& pen, const QList<QCPLayerable*>& shows, const QStringList& of = {},
            const QString& how = {});
/// A run without anything to show here is said to be: `lacks` is "no gates".
void addPinWithout(Legend* legend, const Panel::Run& run, const Theme& theme, const QString& lacks, const QString& tip = {});
/// Adds all runs as one entry, where none is in a picture: "5 pinned runs: not in this view".
void addPinsWithout(Legend* legend, const std::vector<Panel::Run>& runs, const Theme& theme, const QString& lacks, const QString& tip);
/// A sentence on the pinned runs that have arrays of these kinds where the run that is shown has none, and how to see theirs. Empty where
/// none has.
QString pinsThatHave(const std::vector<Panel::Run>& runs, Kinds kinds);

}  // namespace reclab
