// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/pointer.h"

#include <QEvent>
#include <QPainter>
#include <QPainterPath>
#include <QPolygonF>
#include <QScrollArea>
#include <cmath>
#include <utility>

#include "gui/lessons/lesson_text.h"
#include "plot/type_scale.h"

namespace reclab {

Pointer::Pointer(QWidget* window) : QWidget(window) {
  setObjectName("pointer");
  setAttribute(Qt::WA_TransparentForMouseEvents);
  setFocusPolicy(Qt::NoFocus);
  hide();
  soon_.setSingleShot(true);
  soon_.setInterval(0);
  connect(&soon_, &QTimer::timeout, this, &Pointer::place);
}

void Pointer::pointAt(QWidget* target, const QString& words) {
  for (const auto& one : watched_)
    if (one) one->removeEventFilter(this);
  watched_.clear();
  scrolls_ = false;
  target_ = target;
  words_ = words;
  setAccessibleName(words);
  for (QWidget* one = target; one != nullptr; one = one->parentWidget()) {
    one->installEventFilter(this);
    watched_ << one;
  }
  place();
}

bool Pointer::eventFilter(QObject* watched, QEvent* event) {
  // What it lies in has another size: then the target is to be in sight again, and not where a hand scrolls.
  if (event->type() == QEvent::Resize && watched != target_) scrolls_ = true;
  switch (event->type()) {
    case QEvent::Move:
    case QEvent::Resize:
    case QEvent::Show:
    case QEvent::Hide:
    case QEvent::ParentChange: soon_.start(); break;
    default: break;
  }
  return false;
}

void Pointer::place() {
  QWidget* window = parentWidget();
  if (std::exchange(scrolls_, false) && target_)
    for (QWidget* one = target_->parentWidget(); one != nullptr; one = one->parentWidget())
      if (auto* area = qobject_cast<QScrollArea*>(one)) area->ensureWidgetVisible(target_, 8, 40);
  QRect seen;
  if (target_ && target_->isVisible()) {  // the part of it that nothing cuts off
    seen = QRect(target_->mapTo(window, QPoint()), target_->size());
    for (const QWidget* one = target_->parentWidget(); one != nullptr && one != window; one = one->parentWidget())
      seen &= QRect(one->mapTo(window, QPoint()), one->size());
  }
  if (seen.isEmpty()) return hide();
  const QFontMetrics metrics(lessonFont(typeScale()));
  const QSizeF words = words_.isEmpty() ? QSizeF(0, 0) : QSizeF(metrics.size(0, words_)) + QSizeF(16, 10);
  // It comes from the side with the most room, at the middle of that edge.
  const QRect all = window->rect();
  const int left = seen.left() - all.left(), right = all.right() - seen.right(), above = seen.top() - all.top(),
            below = all.bottom() - seen.bottom(), most = std::max({left, right, above, below});
  const QPointF centre = QRectF(seen).center();
  const double length = 46;
  QPointF towards;
  if (most == left || most == right) {
    towards = {most == left ? 1.0 : -1.0, 0.0};
    tip_ = {most == left ? seen.left() - 2.0 : seen.right() + 3.0, centre.y()};
    tail_ = tip_ - towards * length;
    box_ = QRectF(QPointF(most == left ? tail_.x() - words.width() : tail_.x(), tail_.y() - words.height() / 2), words);
  } else {
    towards = {0.0, most == above ? 1.0 : -1.0};
    tip_ = {std::min(centre.x(), seen.left() + 200.0), most == above ? seen.top() - 2.0 : seen.bottom() + 3.0};
    tail_ = tip_ - towards * length;
    box_ = QRectF(QPointF(tail_.x() - words.width() / 2, most == above ? tail_.y() - words.height() : tail_.y()), words);
  }
  if (!words_.isEmpty()) {  // the words stay in the window
    box_.moveLeft(std::clamp(box_.left(), 4.0, std::max(4.0, all.width() - box_.width() - 4.0)));
    box_.moveTop(std::clamp(box_.top(), 4.0, std::max(4.0, all.height() - box_.height() - 4.0)));
  }
  const QRectF whole = QRectF(tip_, tail_).normalized().adjusted(-12, -12, 12, 12) | box_.adjusted(-2, -2, 2, 2);
  setGeometry(whole.toAlignedRect());
  show();
  raise();
  update();
}

void Pointer::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.translate(-geometry().topLeft());
  const QColor ink = palette().color(QPalette::Highlight);
  const QPointF along = (tip_ - tail_) / std::hypot(tip_.x() - tail_.x(), tip_.y() - tail_.y()), across(-along.y(), along.x());
  QPainterPath arrow;
  arrow.moveTo(tip_);
  arrow.lineTo(tip_ - along * 16 + across * 9);
  arrow.lineTo(tip_ - along * 16 + across * 3);
  arrow.lineTo(tail_ + across * 3);
  arrow.lineTo(tail_ - across * 3);
  arrow.lineTo(tip_ - along * 16 - across * 3);
  arrow.lineTo(tip_ - along * 16 - across * 9);
  arrow.closeSubpath();
  painter.setPen(QPen(palette().color(QPalette::Base), 1.5));
  painter.setBrush(ink);
  painter.drawPath(arrow);
  if (words_.isEmpty()) return;
  painter.drawRoundedRect(box_, 4, 4);
  painter.setPen(palette().color(QPalette::HighlightedText));
  painter.setFont(lessonFont(typeScale()));
  painter.drawText(box_, Qt::AlignCenter, words_);
}

}  // namespace reclab
