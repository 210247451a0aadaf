// SPDX-License-Identifier: GPL-3.0-or-later
// Figures: a drawing of a size, its style for print, and the text in its file.
#pragma once

#include <QSize>
#include <QString>
#include <functional>

class QCPPainter;

namespace reclab {

/// The text in a figure's file, beside the picture.
struct FigureText {
  FigureText(const QString& named = {}) : title(named) {}
  FigureText(const char* named) : title(QString::fromUtf8(named)) {}
  QString title;
  QString description{};  ///< model, hyper-parameters, input, seed, in words
  QString command{};      ///< the line that makes the run again; the keywords of a PDF
};

/// The style of a figure. As constructed: for print, with nothing but the picture.
struct FigureStyle {
  static constexpr double column = 85.0, page = 174.0;  ///< mm, of a journal
  double width = page;                                  ///< mm; 0: as wide as on the screen, in the sizes of the screen
  double fontSize = 7.0;  ///< points, of the smallest text: tick labels and legends. Lines and markers become smaller and larger with it
  bool title = false, caption = false, cursor = false;  ///< caption: the sentences over and under the picture

  static FigureStyle asShown() { return {0.0, 9.0, true, true, true}; }
  bool forPrint() const { return width > 0.0; }
  /// Points of the figure for a point of the screen.
  double scale() const;
  /// Pixels of the screen that it is laid out in, with `dpi` of them an inch.
  int pixels(int dpi) const;
  /// Why there is no figure of this size, a sentence; empty where there is.
  QString problem() const;
};

struct FigureDrawing {
  FigureText text;
  QSize size;  ///< in pixels of the screen
  std::function<void(QCPPainter*)> draw;
};

}  // namespace reclab
