// SPDX-License-Identifier: GPL-3.0-or-later
// The value axis of a rect: fitted to its curves, held while a slider moves, locked or zoomed by hand.
#pragma once

#include <qcustomplot.h>

#include <QAction>
#include <QToolButton>

namespace reclab {

class Plot;

class ValueAxis : public QObject {
  Q_OBJECT
 public:
  ValueAxis(Plot* plot, QCPAxisRect* rect);
  /// The range that holds all curves. It is taken as it is; while it is held, only where nothing of it would be seen; when locked, not at
  /// all.
  void fit(const QCPRange& wanted);
  /// Holds the range while a slider moves. Let go, it is fitted to the range wanted last.
  void hold(bool on);
  /// The range that a held one becomes: itself, unless nothing of the wanted one lies in it; then so much larger that it need not grow
  /// again at once.
  static QCPRange kept(const QCPRange& range, const QCPRange& wanted);
  bool locked() const { return action_->isChecked(); }
  void setLocked(bool locked) { action_->setChecked(locked); }
  /// Unlocks the axis and fits it as if nothing had been held.
  void reset();
  QAction* lockAction() const { return action_; }  ///< "Hold the value axis", for menus
  QAction* resetAction() const { return reset_; }
  QToolButton* button() const { return button_; }
  QCPAxis* axis() const { return rect_ ? rect_->axis(QCPAxis::atLeft) : nullptr; }
  const QCPRange& wanted() const { return wanted_; }  ///< the range that it was fitted to last, or is held at
  bool fitted() const { return fitted_; }

  /// Whether a position is over the axis, where the wheel zooms it and a drag moves it.
  bool contains(const QPointF& position) const;
  void zoom(double y, double factor);
  void shift(double from_y, double to_y);

 signals:
  void wantedChanged();  ///< it was fitted once more
  void movedByHand();    ///< zoomed, moved, locked or put back

 private:
  void place();
  Plot* plot_;
  QPointer<QCPAxisRect> rect_;
  QAction *action_, *reset_;
  QToolButton* button_;
  QCPRange wanted_{0, 0};  ///< that all linked axes are to hold: the range asked for, or the one that is held
  QCPRange fit_{0, 0};     ///< the range that was asked for last
  bool held_ = false, fitted_ = false;
};

}  // namespace reclab
