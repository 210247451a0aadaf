// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFont>
#include <QPalette>
#include <QString>

#include "lessons/lesson.h"

class QLabel;
class QWidget;

namespace reclab {

/// Words of a lesson as HTML in the colours of the palette, formulas as on the cards. Spans of numbers have their text already.
QString htmlOf(const Prose& words, const QPalette& palette);
/// A label of several lines for such HTML, whose links are followed by who connects them. `scale`: of the font, 1 for reading.
QLabel* proseLabel(QWidget* parent, double scale = 1.0);
QFont lessonFont(double scale, QFont::Weight weight = QFont::Normal);  ///< 10.5 pt at 1

}  // namespace reclab
