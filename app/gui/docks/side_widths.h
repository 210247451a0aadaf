// SPDX-License-Identifier: GPL-3.0-or-later
// Docks at the sides of a window that was too small for them have the widths again that they were given, once there is room.
#pragma once

#include <QMainWindow>
#include <map>

class QDockWidget;

namespace reclab {

class SideWidths : public QObject {
  Q_OBJECT
 public:
  explicit SideWidths(QMainWindow* window) : QObject(window), window_(window) { window->installEventFilter(this); }
  void add(QDockWidget* dock);

 protected:
  bool eventFilter(QObject* of, QEvent* event) override;

 private:
  void giveBack();

  QMainWindow* window_;
  std::map<QDockWidget*, int> given_;  ///< by hand or by an arrangement, which is any change while the window stays as wide as it is
  int laidOut_ = -1;                   ///< the width of the window for which the docks stand as they do
  bool giving_ = false;
};

}  // namespace reclab
