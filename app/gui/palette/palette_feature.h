// SPDX-License-Identifier: GPL-3.0-or-later
// Anything by its name, and any state that was.
#pragma once

#include <QObject>
#include <QPointer>
#include <vector>

#include "gui/frame/palette_source.h"

namespace reclab {

class HistoryDialog;
class Palette;
class WindowFrame;

class PaletteFeature : public QObject {
  Q_OBJECT
 public:
  explicit PaletteFeature(WindowFrame* frame);
  Palette* palette() const { return palette_; }
  /// All entries of the moment: those of features, then settings, panels, and every action and control of the window.
  std::vector<PaletteEntry> entries() const;

 private:
  void showHistory();
  WindowFrame* frame_;
  Palette* palette_;
  QPointer<HistoryDialog> history_;
};

}  // namespace reclab
