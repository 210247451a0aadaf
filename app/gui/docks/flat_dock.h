// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDockWidget>
#include <QFrame>

class QLabel;
class QHBoxLayout;
class QMenu;
class QToolButton;

namespace reclab {

/// The one line over a dock: title, the number that matters, buttons. A drag of it moves the dock.
class FlatHeader : public QFrame {
  Q_OBJECT
 public:
  FlatHeader(const QString& title, QWidget* parent);
  void setHeadline(const QString& text);
  QString headline() const { return full_; }
  QToolButton* addButton(const QString& iconName, const QString& tip);

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;

 signals:
  void doubleClicked();

 private:
  void elide();
  QLabel *title_, *headline_;
  QString full_;
  QHBoxLayout* row_;
};

/// A dock with a flat header, which is underlined while the keyboard is in the dock.
class FlatDock : public QDockWidget {
  Q_OBJECT
 public:
  FlatDock(const QString& id, const QString& title, QWidget* parent);
  FlatHeader* header() const { return header_; }

 private:
  FlatHeader* header_;
};

}  // namespace reclab
