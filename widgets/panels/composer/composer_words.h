// SPDX-License-Identifier: GPL-3.0-or-later
// A composed model in rich text.
#pragma once

#include <QPalette>
#include <QString>

#include "plot/theme.h"
#include "trace/composition.h"

namespace reclab {

inline QString plain(const std::string& text) { return QString::fromStdString(text); }

/// "is GLA (GateLoop)". A model that has a preset is a link to it where a colour for links is given.
QString composedVerdict(const Composition& c, const QColor& link = {});
/// The text on the model. `links`: on the screen, where some of it can be clicked and the verdict stands above.
QString composedWords(const Composition& c, const QPalette& palette, const Theme& theme, bool links);

}  // namespace reclab
