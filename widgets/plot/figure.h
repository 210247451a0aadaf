// SPDX-License-Identifier: GPL-3.0-or-later
// Figures as files: PNG, and SVG and PDF as vectors, that say inside what they are of.
#pragma once

#include <qcustomplot.h>

#include <functional>

#include "panel.h"

namespace reclab {

/// What stands in a figure's file beside the picture.
struct FigureText {
  FigureText(const QString& named) : title(named) {}
  FigureText(const char* named) : title(QString::fromUtf8(named)) {}
  QString title;
  QString description{};  ///< model, hyper-parameters, input, seed, in words
  QString command{};      ///< the line that makes the run again; the keywords of a PDF
};
/// The words for a run, null for none.
FigureText figureText(const QString& title, const Trace* trace);

/// Writes a drawing of the given size (logical pixels) through a temporary file. Returns an empty string or one sentence.
/// `opaque` is what the drawing stands on; `dpi` that of the screen, so that fonts have the size they have there.
QString saveDrawing(const QString& file, Panel::Format format, QSize size, const QColor& opaque, int dpi, const FigureText& text,
                    const std::function<void(QCPPainter*)>& draw);
QImage drawnImage(QSize size, double scale, const QColor& opaque, const std::function<void(QCPPainter*)>& draw);

}  // namespace reclab
