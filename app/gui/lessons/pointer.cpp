// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/pointer.h"

#include <qcustomplot.h>

#include <QAbstractButton>
#include <QAbstractSlider>
#include <QAbstractSpinBox>
#include <QComboBox>
#include <QEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPainter>
#include <QPainterPath>
#include <QPolygonF>
#include <QScrollArea>
#include <QTabBar>
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "gui/lessons/lesson_text.h"
#include "plot/type_scale.h"

namespace reclab {
namespace {

constexpr double arrowLength = 46.0;  ///< pixels
constexpr int lettersOfALine = 22;

}  // namespace

Pointer::Pointer(QWidget* window) : QWidget(window) {
  setObjectName("pointer");
  setAttribute(Qt::WA_TransparentForMouseEvents);
  setFocusPolicy(Qt::NoFocus);
  hide();
  soon_.setSingleShot(true);
  soon_.setInterval(0);
  connect(&soon_, &QTimer::timeout, this, &Pointer::place);
  blinks_.setInterval(150);
  connect(&blinks_, &QTimer::timeout, this, [this] {
    if (--turns_ <= 0) blinks_.stop();
    update();
  });
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
  const int most = std::max(metrics.horizontalAdvance(QStringLiteral("m")) * lettersOfALine, 120);
  const QSizeF words =
      words_.isEmpty()
          ? QSizeF(0, 0)
          : QSizeF(metrics.boundingRect(QRect(0, 0, most, window->height()), Qt::TextWordWrap, words_).size()) + QSizeF(18, 10);
  // It comes from the side where it covers least, and of such from the one with most room.
  const QRect all = window->rect();
  std::vector<std::pair<int, Qt::Edge>> sides{{seen.left() - all.left(), Qt::LeftEdge},
                                              {all.right() - seen.right(), Qt::RightEdge},
                                              {seen.top() - all.top(), Qt::TopEdge},
                                              {all.bottom() - seen.bottom(), Qt::BottomEdge}};
  std::ranges::stable_sort(sides, std::greater(), [](const auto& side) { return side.first; });
  double least = std::numeric_limits<double>::infinity();
  const std::vector<Covered> coverable = this->coverable();
  for (const double length : {arrowLength, 2.0 * arrowLength})
    for (const double slide : {0.0, -1.0, 1.0})
      for (const auto& [room, side] : sides) {
        const Way way = wayFrom(side, slide, length, seen, words);
        const double covered = covers(way, seen, coverable);
        if (covered >= least) continue;
        least = covered;
        tip_ = way.tip;
        tail_ = way.tail;
        box_ = way.box;
      }
  const QRectF whole = QRectF(tip_, tail_).normalized().adjusted(-12, -12, 12, 12) | box_.adjusted(-2, -2, 2, 2);
  setGeometry(whole.toAlignedRect());
  show();
  raise();
  update();
}

Pointer::Way Pointer::wayFrom(Qt::Edge side, double slide, double length, const QRect& seen, const QSizeF& words) const {
  const QRect all = parentWidget()->rect();
  const QPointF centre = QRectF(seen).center();
  Way way;
  switch (side) {
    case Qt::LeftEdge:
      way.tip = {seen.left() - 2.0, centre.y()};
      way.tail = way.tip - QPointF(length, 0);
      way.box = {QPointF(way.tail.x() - words.width(), way.tail.y() - (1.0 - slide) * words.height() / 2), words};
      break;
    case Qt::RightEdge:
      way.tip = {seen.right() + 3.0, centre.y()};
      way.tail = way.tip + QPointF(length, 0);
      way.box = {QPointF(way.tail.x(), way.tail.y() - (1.0 - slide) * words.height() / 2), words};
      break;
    case Qt::TopEdge:
      way.tip = {std::min(centre.x(), seen.left() + 200.0), seen.top() - 2.0};
      way.tail = way.tip - QPointF(0, length);
      way.box = {QPointF(way.tail.x() - (1.0 - slide) * words.width() / 2, way.tail.y() - words.height()), words};
      break;
    case Qt::BottomEdge:
      way.tip = {std::min(centre.x(), seen.left() + 200.0), seen.bottom() + 3.0};
      way.tail = way.tip + QPointF(0, length);
      way.box = {QPointF(way.tail.x() - (1.0 - slide) * words.width() / 2, way.tail.y()), words};
      break;
  }
  if (!words.isEmpty()) {
    way.box.moveLeft(std::clamp(way.box.left(), 4.0, std::max(4.0, all.width() - way.box.width() - 4.0)));
    way.box.moveTop(std::clamp(way.box.top(), 4.0, std::max(4.0, all.height() - way.box.height() - 4.0)));
  }
  return way;
}

/// Words and controls, and of a picture a part, since there is much paper in it.
std::vector<Pointer::Covered> Pointer::coverable() const {
  constexpr double ofPicture = 0.1;
  const QWidget* window = parentWidget();
  std::vector<Covered> all;
  for (const QWidget* one : window->findChildren<QWidget*>()) {
    if (!one->isVisible() || one == target_ || one == this || (target_ && target_->isAncestorOf(one))) continue;
    const auto* label = qobject_cast<const QLabel*>(one);
    const bool controls = (label != nullptr && !label->text().isEmpty()) || qobject_cast<const QAbstractButton*>(one) != nullptr ||
                          qobject_cast<const QAbstractSlider*>(one) != nullptr || qobject_cast<const QAbstractSpinBox*>(one) != nullptr ||
                          qobject_cast<const QComboBox*>(one) != nullptr || qobject_cast<const QLineEdit*>(one) != nullptr ||
                          qobject_cast<const QTabBar*>(one) != nullptr;
    const bool picture = !controls && qobject_cast<const QCustomPlot*>(one) != nullptr;
    if (!controls && !picture) continue;
    QRect part(one->mapTo(window, QPoint()), one->size());
    for (const QWidget* in = one->parentWidget(); in != nullptr && in != window; in = in->parentWidget())
      part &= QRect(in->mapTo(window, QPoint()), in->size());
    if (!part.isEmpty()) all.push_back({part, picture ? ofPicture : 1.0});
  }
  return all;
}

/// So many pixels of them, and of the target most of all.
double Pointer::covers(const Way& way, const QRect& seen, const std::vector<Covered>& all) const {
  const QRectF arrow = QRectF(way.tip, way.tail).normalized().adjusted(-6, -6, 6, 6);
  const auto area = [&](const QRectF& what) {
    const QRectF box = way.box & what, line = arrow & what;
    return box.width() * box.height() + line.width() * line.height();
  };
  constexpr double ofTarget = 20.0, outside = 20.0;
  double sum = ofTarget * area(seen);
  const QRectF inside = QRectF(parentWidget()->rect()) & arrow;
  sum += outside * (arrow.width() * arrow.height() - inside.width() * inside.height());
  for (const Covered& one : all) sum += one.weight * area(one.part);
  return sum;
}

void Pointer::blink() {
  turns_ = 6;
  blinks_.start();
}

void Pointer::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.translate(-geometry().topLeft());
  const QColor ink = palette().color(turns_ % 2 != 0 ? QPalette::Text : QPalette::Highlight);
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
  painter.setPen(palette().color(turns_ % 2 != 0 ? QPalette::Base : QPalette::HighlightedText));
  painter.setFont(lessonFont(typeScale()));
  painter.drawText(box_.adjusted(8, 0, -8, 0), static_cast<int>(Qt::AlignCenter) | Qt::TextWordWrap, words_);
}

}  // namespace reclab
