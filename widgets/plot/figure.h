// SPDX-License-Identifier: GPL-3.0-or-later
// Figures as files: PNG, and SVG and PDF as vectors, that name their run inside.
#pragma once

#include <qcustomplot.h>

#include "drawing.h"
#include "panel.h"

namespace reclab {

constexpr double mm_of_an_inch = 25.4;

/// The words for a run, null for none.
FigureText figureText(const QString& title, const Trace* trace);

/// Unicode's raised digits are small in every font. In a figure, whose smallest text has a size, the exponents of an axis's tick labels are
/// written in ordinary digits of the label's own size, raised; on the screen the labels are as ever.
void raiseExponents(QCPAxis* axis);
/// The same for other texts of a figure, in one line: their width, and a drawing from the left of a box, in its middle.
int widthInFigure(const QString& text, const QFontMetrics& metrics);
void drawInFigure(QPainter* painter, const QRectF& box, const QString& text, const QFontMetrics& metrics);

/// Writes a drawing through a temporary file, as wide as the style says. Returns an empty string or one sentence. `opaque` is the colour
/// under the drawing; `dpi` that of the screen, so that fonts have the size they have there.
QString saveDrawing(const QString& file, Panel::Format format, const FigureDrawing& drawing, const FigureStyle& style, const QColor& opaque,
                    int dpi);
/// `scale`: pixels of the image for one of the screen.
QImage drawnImage(const FigureDrawing& drawing, double scale, const QColor& opaque);

}  // namespace reclab
