// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <functional>
#include <vector>

#include "gui/session/pins.h"

class QLabel;
class QLineEdit;
class QMenu;
class QToolButton;

namespace reclab {

/// A pinned run in the tool bar: its colour and name, to be renamed (double-click, F2), compared (Enter) or let go (Delete).
class PinChip : public QFrame {
  Q_OBJECT
 public:
  explicit PinChip(QWidget* parent = nullptr);
  void show(const Pin& pin);
  void setTip(std::function<QString()> tip) { tip_ = std::move(tip); }
  void startRename();
  QString text() const;
  QLineEdit* editor() const { return editor_; }
  QMenu* menu() const { return menu_; }
  /// Shows a dot where there is no room for names; its menu begins with the name, and a click opens that.
  void setCompact(bool compact);
  bool compact() const { return compact_; }
  int wholeWidth() const;  ///< with its name
  const QString& name() const { return whole_; }
  /// Shows the name without so many of its first letters, which all runs have.
  void leaveOut(qsizetype letters);

 signals:
  void renamed(QString name);  ///< empty: named by its differences again
  void compareWanted();
  void lookWanted();  ///< make it the run that is looked at
  void unpinWanted();

 protected:
  bool event(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  void endRename(bool keep);
  QLabel *dot_, *name_;
  QLineEdit* editor_;
  QToolButton* close_;
  QMenu* menu_;
  QAction *title_, *automatic_;
  QString whole_, said_;  ///< the name that is edited; the name, and how it stands
  qsizetype left_ = 0;    ///< letters that are left out in front
  bool compact_ = false;
  std::function<QString()> tip_;
};

/// The chips side by side, with names as long as there is room for, or as dots.
class PinRow : public QWidget {
  Q_OBJECT
 public:
  explicit PinRow(QWidget* parent = nullptr);
  const std::vector<PinChip*>& chips() const { return chips_; }
  void add(PinChip* chip);
  void removeLast();
  /// Fits the chips after their texts have changed.
  void fit();
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  int wanted() const;
  std::vector<PinChip*> chips_;
};

}  // namespace reclab
