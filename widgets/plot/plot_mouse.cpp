// SPDX-License-Identifier: GPL-3.0-or-later
// The mouse in a plot.
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "plain_text.h"
#include "plot/parts/step_marks.h"
#include "plot/plot.h"
#include "plot/value_axis.h"

namespace reclab {

QCPAxisRect* Plot::timeRectAt(const QPointF& position) const {
  for (const TimeRect& time : time_rects_)
    if (time.rect && time.rect->realVisibility() &&
        time.rect->rect().adjusted(0, 0, 1, time.rect->margins().bottom()).contains(position.toPoint()))
      return time.rect;
  return nullptr;
}

Legend* Plot::legendAt(const QPointF& position) const {
  for (QCPLayoutElement* element : plotLayout()->elements(true))
    if (auto* found = qobject_cast<Legend*>(element); found && found->contains(position)) return found;
  return nullptr;
}

ValueAxis* Plot::addValueAxis(QCPAxisRect* rect) {
  value_axes_.append(new ValueAxis(this, rect));
  return value_axes_.back();
}

void Plot::holdValues(bool hold) {
  for (ValueAxis* axis : value_axes_) axis->hold(hold);
}

ValueAxis* Plot::valueAxisAt(const QPointF& position) const {
  for (ValueAxis* axis : value_axes_)
    if (axis->contains(position)) return axis;
  return nullptr;
}

QString Plot::lagLink() const { return lag_ ? tr("count from the start") : tr("count from the end"); }

QRect Plot::lagLinkPlace() const {
  if (!lag_offered_ || figure_ || time_rects_.isEmpty() || !time_rects_.first().rect) return {};
  const QCPAxisRect* rect = time_rects_.first().rect;
  const QCPAxis* axis = rect->axis(QCPAxis::atBottom);
  const QRect inner = rect->rect(), outer = rect->outerRect();
  const QFontMetrics small(theme_.small, this);
  const int wide = small.horizontalAdvance(lagLink()), name = QFontMetrics(theme_.normal, this).horizontalAdvance(axis->label());
  if (!axis->tickLabels() || name / 2 + wide + 16 > inner.width() / 2) return {};
  return {inner.right() - wide, outer.bottom() - small.height() - 2, wide, small.height() + 2};
}

/// On the name under a time axis, below its numbers.
bool Plot::onTimeName(const QPointF& position) const {
  if (!lag_offered_ || time_rects_.isEmpty() || !time_rects_.first().rect) return false;
  if (lagLinkPlace().adjusted(-4, -2, 4, 4).contains(position.toPoint())) return true;
  const QCPAxisRect* rect = time_rects_.first().rect;
  const QRect inner = rect->rect(), outer = rect->outerRect();
  const int half = QFontMetrics(theme_.normal, this).horizontalAdvance(tr("steps before the end")) / 2 + 8;
  return position.y() > inner.bottom() + 8 + QFontMetrics(theme_.small, this).height() && position.y() <= outer.bottom() &&
         std::abs(position.x() - inner.center().x()) <= half;
}

double Plot::coordAt(double x) const { return time_rects_.first().rect->axis(QCPAxis::atBottom)->pixelToCoord(x); }

std::int64_t Plot::stepAt(double x) const { return std::clamp(static_cast<std::int64_t>(std::llround(coordAt(x))), first_, last_); }

void Plot::pickRange(double first, double last) {
  if (extent_last_ <= extent_first_) return;
  constexpr double least = 4.0;  // steps
  const double low = static_cast<double>(extent_first_), high = static_cast<double>(extent_last_);
  double span = std::clamp(last - first, std::min(least, high - low), high - low);
  first = std::clamp(0.5 * (first + last) - 0.5 * span, low, high - span);
  const auto a = static_cast<std::int64_t>(std::llround(first));
  const auto b = std::min(extent_last_, static_cast<std::int64_t>(std::llround(first + span)));
  if (a == first_ && b == last_) return;
  setTimeRange(a, b);
  emit timeRangePicked(a, b);
}

void Plot::toggle(Legend* legend_hit) {
  if (!legend_hit->toggleAt(press_)) return;
  emit curvesToggled();
  redraw();
}

void Plot::mousePressEvent(QMouseEvent* event) {
  handled_press_ = true;
  press_ = event->position();
  if (Legend* legend_hit = legendAt(press_)) {
    if (event->button() == Qt::LeftButton) toggle(legend_hit);
    return;
  }
  if (event->button() == Qt::LeftButton && onTimeName(press_)) return setLag(!lag_);
  if ((moved_ = valueAxisAt(press_)) != nullptr) {
    if (event->button() == Qt::LeftButton) drag_ = Drag::values;
    return;
  }
  if (timeRectAt(press_)) {
    const bool wants_pan =
        event->button() == Qt::MiddleButton || (event->button() == Qt::LeftButton && event->modifiers() & Qt::ShiftModifier);
    if (wants_pan) {
      drag_ = Drag::pan;
      pan_first_ = static_cast<double>(first_);
      pan_last_ = static_cast<double>(last_);
    } else if (event->button() == Qt::LeftButton) {
      const double line = time_rects_.first().rect->axis(QCPAxis::atBottom)->coordToPixel(static_cast<double>(cursor_));
      drag_ = cursor_ >= 0 && std::abs(press_.x() - line) <= 5.0 ? Drag::scrub : Drag::pending;
    }
    return;
  }
  handled_press_ = false;
  QCustomPlot::mousePressEvent(event);
}

void Plot::mouseMoveEvent(QMouseEvent* event) {
  const QPointF at = event->position();
  if (event->buttons() == Qt::NoButton) {
    const double line =
        time_rects_.isEmpty() ? -100 : time_rects_.first().rect->axis(QCPAxis::atBottom)->coordToPixel(static_cast<double>(cursor_));
    const bool on_time = timeRectAt(at) != nullptr;
    const Legend* legend_hit = legendAt(at);
    const bool names_time = onTimeName(at);
    setCursor(legend_hit || names_time                                    ? Qt::PointingHandCursor
              : valueAxisAt(at)                                           ? Qt::SizeVerCursor
              : on_time && cursor_ >= 0 && std::abs(at.x() - line) <= 5.0 ? Qt::SizeHorCursor
                                                                          : Qt::ArrowCursor);
    const bool on_mark = leftOutPlace().contains(at.toPoint());
    const QString left_out = on_mark ? leftOut() : QString();
    const QString mark = stepMarkAt(this, at);
    const QString tip = !left_out.isEmpty() ? htmlTip(left_out)
                        : !mark.isEmpty()   ? mark
                        : legend_hit        ? legend_hit->tipAt(at)
                        : names_time ? (lag_ ? tr("Click to count steps from the start.") : tr("Click to count steps back from the end."))
                        : hover_     ? hover_(at)
                                     : QString();
    if (tip.isEmpty())
      QToolTip::hideText();
    else
      QToolTip::showText(event->globalPosition().toPoint(), safeTip(tip), this);
    return;
  }
  if (!handled_press_) {
    QCustomPlot::mouseMoveEvent(event);
    return;
  }
  switch (drag_) {
    case Drag::none: return;
    case Drag::pending:
      if (std::abs(at.x() - press_.x()) < 5.0) return;
      drag_ = Drag::zoom;
      band_from_ = coordAt(press_.x());
      [[fallthrough]];
    case Drag::zoom:
      band_to_ = coordAt(at.x());
      redrawNow();
      return;
    case Drag::scrub: emit timePicked(stepAt(at.x())); return;
    case Drag::values:
      moved_->shift(press_.y(), at.y());
      press_ = at;
      return;
    case Drag::pan: {
      const double moved = coordAt(at.x()) - coordAt(press_.x()), low = static_cast<double>(extent_first_),
                   high = static_cast<double>(extent_last_);
      const double shift = std::clamp(-moved, low - pan_first_, high - pan_last_);
      pickRange(pan_first_ + shift, pan_last_ + shift);
      return;
    }
  }
}

void Plot::mouseReleaseEvent(QMouseEvent* event) {
  if (!handled_press_) {
    QCustomPlot::mouseReleaseEvent(event);
    return;
  }
  const Drag was = std::exchange(drag_, Drag::none);
  if (was == Drag::pending || was == Drag::scrub) emit timePicked(stepAt(event->position().x()));
  if (was == Drag::zoom) {
    pickRange(std::min(band_from_, band_to_), std::max(band_from_, band_to_));
    redrawNow();
  }
  handled_press_ = false;
}

void Plot::mouseDoubleClickEvent(QMouseEvent* event) {
  if (Legend* legend_hit = legendAt(event->position())) {
    press_ = event->position();
    toggle(legend_hit);
  } else if (onTimeName(event->position())) {
    setLag(!lag_);
  } else if (ValueAxis* axis = valueAxisAt(event->position())) {
    axis->reset();
  } else if (timeRectAt(event->position())) {
    pickRange(static_cast<double>(extent_first_), static_cast<double>(extent_last_));
  } else if (reset_) {
    reset_();
  }
}

void Plot::wheelEvent(QWheelEvent* event) {
  if (ValueAxis* axis = valueAxisAt(event->position())) {
    axis->zoom(event->position().y(), std::pow(0.8, event->angleDelta().y() / 120.0));
    event->accept();
    return;
  }
  if (!timeRectAt(event->position())) {
    QCustomPlot::wheelEvent(event);
    return;
  }
  const QPoint turn = event->angleDelta();
  const double span = static_cast<double>(last_ - first_);
  if (std::abs(turn.x()) > std::abs(turn.y()) || event->modifiers() & Qt::ShiftModifier) {
    const double steps = (turn.x() != 0 ? turn.x() : turn.y()) / 120.0 * span * 0.1;
    const double low = static_cast<double>(extent_first_ - first_), high = static_cast<double>(extent_last_ - last_);
    const double shift = std::clamp(-steps, low, high);
    pickRange(static_cast<double>(first_) + shift, static_cast<double>(last_) + shift);
  } else if (turn.y() != 0) {
    const double at = coordAt(event->position().x()), scale = std::pow(0.8, turn.y() / 120.0);
    const double low = std::max(static_cast<double>(extent_first_), at - (at - static_cast<double>(first_)) * scale);
    const double high = std::min(static_cast<double>(extent_last_), at + (static_cast<double>(last_) - at) * scale);
    pickRange(low, high);
  }
  event->accept();
}

void Plot::leaveEvent(QEvent* event) {
  QToolTip::hideText();
  QCustomPlot::leaveEvent(event);
}

}  // namespace reclab
