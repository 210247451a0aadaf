// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <QPointer>
#include <functional>
#include <vector>

#include "gui/palette/matching.h"

class QLineEdit;
class QListView;

namespace reclab {

class PaletteModel;

/// A line over the window in which one types the name of anything, with a list below it of all that is found. The keyboard stays in the
/// line, and goes back to where it was when the palette closes.
class Palette : public QFrame {
  Q_OBJECT
 public:
  /// `entries`: all that there are at the moment; `act`: does one as a change by hand.
  Palette(QWidget* window, std::function<std::vector<PaletteEntry>()> entries, std::function<void(const std::function<void()>& does)> act);
  void open();
  void refill();  ///< there may be other entries now
  QLineEdit* line() const { return line_; }
  QListView* list() const { return list_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void search();
  void doCurrent();
  void shut(bool giveFocusBack);
  void place();
  void tellCurrent();  ///< to screen readers, which follow the line
  std::function<std::vector<PaletteEntry>()> entries_;
  std::function<void(const std::function<void()>& does)> act_;
  QLineEdit* line_;
  QListView* list_;
  PaletteModel* model_;
  QPointer<QWidget> before_;  ///< had the keyboard
};

}  // namespace reclab
