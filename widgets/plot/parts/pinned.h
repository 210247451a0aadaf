// SPDX-License-Identifier: GPL-3.0-or-later
// What the panels have in common in showing pinned runs: an entry of the legend each, also where a run has nothing of the kind to show.
#pragma once

#include "plot/plot.h"

namespace reclab {

/// What the legend remembers a pinned run by.
QString pinKey(const Panel::Run& run);
/// Adds it. `of` names what of the run is drawn where that is to be said ("h, c"), `how` says how they are told apart.
void addPin(Legend* legend, const Panel::Run& run, const QPen& pen, const QList<QCPLayerable*>& shows, const QStringList& of = {},
            const QString& how = {});
/// A run without anything to show here is said to be: `lacks` is "no gates".
void addPinWithout(Legend* legend, const Panel::Run& run, const Theme& theme, const QString& lacks, const QString& tip = {});
/// All of them as one entry, where none is in a picture: "5 pinned runs: not in this view".
void addPinsWithout(Legend* legend, const std::vector<Panel::Run>& runs, const Theme& theme, const QString& lacks, const QString& tip);
/// Where the run that is shown has nothing of these kinds and pinned runs have: which, and how theirs is seen. Empty where none has.
QString pinsThatHave(const std::vector<Panel::Run>& runs, Kinds kinds);

}  // namespace reclab
