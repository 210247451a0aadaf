// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QVariantMap>

#include "panel.h"

namespace reclab {

/// The choices in a panel: its own choices, its actions that are on, and the entries of the boxes that are a choice by their property. A
/// hidden box has the entries of another model or view; behind another panel there is nothing in them to choose from.
QVariantMap choicesIn(const Panel& panel, bool inSight);
/// The same again, as by hand; an entry that another model does not have is left out.
void choose(Panel& panel, const QVariantMap& all);

}  // namespace reclab
