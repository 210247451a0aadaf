// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/value_axis.h"

#include <QPainter>
#include <algorithm>
#include <utility>

#include "plot/plot.h"

namespace reclab {
namespace {

/// A padlock in the empty corner under the axis.
class LockButton : public QToolButton {
 public:
  explicit LockButton(Plot* plot, QAction* action) : QToolButton(plot), plot_(plot) {
    setDefaultAction(action);
    setObjectName(QStringLiteral("holdValues"));
    setFixedSize(18, 18);
    setAutoRaise(true);
    setFocusPolicy(Qt::TabFocus);
    setCursor(Qt::PointingHandCursor);
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const Theme& theme = plot_->theme();
    const QColor ink = isChecked() ? theme.accent : underMouse() || hasFocus() ? theme.text : theme.axis;
    if (hasFocus()) {
      painter.setPen(QPen(theme.accent, 1));
      painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
    }
    painter.setPen(QPen(ink, 1.4));
    painter.setBrush(Qt::NoBrush);
    QPainterPath shackle;  // open: turned up on one side
    shackle.moveTo(6.2, 8.5);
    shackle.lineTo(6.2, 6.5);
    shackle.arcTo(QRectF(6.2, 3.6, 5.6, 5.6), 180, -180);
    if (isChecked()) shackle.lineTo(11.8, 8.5);
    painter.drawPath(shackle);
    painter.setBrush(isChecked() ? QBrush(ink) : QBrush(Qt::NoBrush));
    painter.drawRoundedRect(QRectF(4.5, 8.5, 9, 6), 1, 1);
  }

 private:
  Plot* plot_;
};

}  // namespace

ValueAxis::ValueAxis(Plot* plot, QCPAxisRect* rect) : QObject(plot), plot_(plot), rect_(rect) {
  action_ = new QAction(tr("Hold the value axis"), this);
  action_->setObjectName(QStringLiteral("hold"));
  action_->setCheckable(true);
  action_->setToolTip(tr(
      "Hold the value axis: it keeps its range whatever is changed, so that pictures can be compared. The wheel over the axis zooms it, a "
      "drag moves it, a double click puts it back."));
  reset_ = new QAction(tr("Fit the value axis"), this);
  button_ = new LockButton(plot, action_);
  button_->setAccessibleName(tr("Hold the value axis"));
  connect(reset_, &QAction::triggered, this, &ValueAxis::reset);
  connect(action_, &QAction::toggled, this, [this](bool locked) {
    if (!locked && fitted_ && rect_) {
      if (!held_) wanted_ = fit_;
      rect_->axis(QCPAxis::atLeft)->setRange(wanted_);
      plot_->redraw();
    }
    emit movedByHand();
  });
  connect(plot_, &QCustomPlot::afterReplot, this, &ValueAxis::place);
  rect->setRangeDrag({});
  rect->setRangeZoom({});
}

void ValueAxis::fit(const QCPRange& wanted) {
  QCPAxis* axis = rect_->axis(QCPAxis::atLeft);
  wanted_ = fit_ = wanted;
  const bool before = std::exchange(fitted_, true);
  if (before && locked()) return;
  if (before && held_) wanted_ = kept(axis->range(), fit_);
  axis->setRange(wanted_);
  emit wantedChanged();
}

QCPRange ValueAxis::kept(const QCPRange& range, const QCPRange& wanted) {
  if (wanted.upper >= range.lower && wanted.lower <= range.upper) return range;
  QCPRange both = range;
  both.expand(wanted);
  if (wanted.lower > range.upper)
    both.upper += 0.5 * both.size();
  else
    both.lower -= 0.5 * both.size();
  return both;
}

void ValueAxis::hold(bool on) {
  if (!std::exchange(held_, on) || on || !fitted_ || locked() || !rect_ || wanted_ == fit_) return;
  wanted_ = fit_;
  rect_->axis(QCPAxis::atLeft)->setRange(wanted_);
  emit wantedChanged();
  plot_->redraw();
}

void ValueAxis::reset() {
  setLocked(false);
  if (!fitted_ || !rect_) return;
  rect_->axis(QCPAxis::atLeft)->setRange(wanted_);
  plot_->redraw();
  emit movedByHand();
}

bool ValueAxis::contains(const QPointF& position) const {
  if (!rect_ || !rect_->realVisibility()) return false;
  const QRect inner = rect_->rect(), outer = rect_->outerRect();
  return position.x() >= outer.left() && position.x() < inner.left() - 1 && position.y() >= inner.top() && position.y() <= inner.bottom();
}

void ValueAxis::zoom(double y, double factor) {
  QCPAxis* axis = rect_->axis(QCPAxis::atLeft);
  const double at = axis->pixelToCoord(y);
  const QCPRange now = axis->range(), next(at - (at - now.lower) * factor, at + (now.upper - at) * factor);
  if (!QCPRange::validRange(next)) return;
  setLocked(true);
  axis->setRange(next);
  plot_->redraw();
  emit movedByHand();
}

void ValueAxis::shift(double from_y, double to_y) {
  QCPAxis* axis = rect_->axis(QCPAxis::atLeft);
  setLocked(true);
  axis->setRange(axis->range() + (axis->pixelToCoord(from_y) - axis->pixelToCoord(to_y)));
  plot_->redraw();
  emit movedByHand();
}

void ValueAxis::place() {
  if (!rect_) return;
  const QRect outer = rect_->outerRect(), inner = rect_->rect();
  // In a picture that is too low for its tick labels there is no room for it; the panel's menu has it too.
  const bool fits = rect_->realVisibility() && inner.left() - outer.left() >= 20 && outer.bottom() - inner.bottom() >= 16;
  button_->setVisible(fits);
  if (fits) button_->move(outer.left() + 1, std::min(inner.bottom() + 4, outer.bottom() - button_->height() + 2));
}

}  // namespace reclab
