// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/learning/training_strip.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/look/look.h"
#include "plot/theme.h"
#include "spoken.h"

namespace reclab {
namespace {

constexpr double side = 8.0;  ///< pixels left and right of the first and the last step

}  // namespace

TrainingStrip::TrainingStrip(QWidget* parent) : QWidget(parent) {
  setObjectName("trainingStrip");
  setAccessibleName(tr("Time of training"));
  setFocusPolicy(Qt::StrongFocus);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setFixedHeight(40);
  setToolTip(
      tr("The loss over training. Drag to look at the weights of another step, in every panel; by keyboard: the arrows, Page Up and Down, "
         "Home and End."));
}

void TrainingStrip::setLearning(const LearningPtr& learning) {
  learning_ = learning;
  setSpokenValue(this, learning ? static_cast<double>(learning->line_step) : 0.0, 0.0, static_cast<double>(last()));
  update();
}

const LearningCurve* TrainingStrip::curve() const { return learning_ ? learning_->find(learning_->line) : nullptr; }

std::int64_t TrainingStrip::last() const {
  const LearningCurve* now = curve();
  if (now == nullptr) return 1;
  return std::max<std::int64_t>(1, std::ranges::count(learning_->together, now->training) > 0 ? now->scale() : now->done);
}

int TrainingStrip::pixelOf(std::int64_t step) const {
  return static_cast<int>(std::lround(side + static_cast<double>(step) / static_cast<double>(last()) * (width() - 2.0 * side)));
}

void TrainingStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const QColor base = palette().color(QPalette::Base), ink = palette().color(QPalette::Text), accent = palette().color(QPalette::Highlight);
  painter.fillRect(rect(), base);
  const LearningCurve* now = curve();
  if (now == nullptr) return;
  // The mean of the logarithms of all losses that fall on a pixel, from the best to the worst.
  const int columns = std::max(1, width());
  std::vector<double> sum(static_cast<std::size_t>(columns)), counted(static_cast<std::size_t>(columns));
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::size_t i = 0; i < now->loss.size(); ++i) {
    if (!(now->loss[i] > 0.0) || !std::isfinite(now->loss[i])) continue;
    const int x = std::clamp(pixelOf(now->first + static_cast<std::int64_t>(i) + 1), 0, columns - 1);
    sum[static_cast<std::size_t>(x)] += std::log10(now->loss[i]);
    counted[static_cast<std::size_t>(x)] += 1.0;
  }
  for (std::size_t x = 0; x < sum.size(); ++x)
    if (counted[x] > 0.0) {
      low = std::min(low, sum[x] / counted[x]);
      high = std::max(high, sum[x] / counted[x]);
    }
  const double top = 5.0, bottom = height() - 8.0, span = std::max(1e-9, high - low);
  QPolygonF line;
  for (std::size_t x = 0; x < sum.size(); ++x)
    if (counted[x] > 0.0) line << QPointF(static_cast<double>(x), top + (high - sum[x] / counted[x]) / span * (bottom - top));
  painter.setPen(QPen(mixed(ink, base, 0.6), 1.2));
  painter.drawPolyline(line);
  painter.setPen(QPen(mixed(ink, base, 0.35), 1.0));
  int drawn = -3;
  for (const std::int64_t step : now->kept)
    if (const int x = pixelOf(step); x - drawn >= 3) {
      painter.drawLine(QPointF(x, height() - 5.0), QPointF(x, height() - 1.0));
      drawn = x;
    }
  {
    // Hollow where the pictures are of something else.
    const double x = pixelOf(learning_->line_step);
    painter.setPen(QPen(accent, 1.6, learning_->line_shown ? Qt::SolidLine : Qt::DotLine));
    painter.drawLine(QPointF(x, 1.0), QPointF(x, height() - 1.0));
    painter.setPen(learning_->line_shown ? QPen(Qt::NoPen) : QPen(accent, 1.2));
    painter.setBrush(learning_->line_shown ? QBrush(accent) : QBrush(base));
    QPainterPath knob;
    knob.moveTo(x - 5.0, 1.0);
    knob.lineTo(x + 5.0, 1.0);
    knob.lineTo(x, 8.0);
    knob.closeSubpath();
    painter.drawPath(knob);
  }
  if (!hasFocus()) return;
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(mixed(accent, base, 0.6));
  painter.drawRect(rect().adjusted(1, 1, -2, -2));
}

void TrainingStrip::pick(double x, bool moving) {
  const LearningCurve* now = curve();
  if (now == nullptr) return;
  const double share = (x - side) / std::max(1.0, width() - 2.0 * side);
  emit stepPicked(now->training, std::clamp<std::int64_t>(std::llround(share * static_cast<double>(last())), now->first, now->done),
                  moving);
}

void TrainingStrip::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) pick(event->position().x(), true);
}

void TrainingStrip::mouseMoveEvent(QMouseEvent* event) {
  if (event->buttons() & Qt::LeftButton) pick(event->position().x(), true);
}

void TrainingStrip::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) pick(event->position().x(), false);
}

void TrainingStrip::keep(std::int64_t places) {
  const LearningCurve* now = curve();
  if (now == nullptr || now->kept.empty()) return;
  const std::int64_t at = learning_->line_step;
  const std::int64_t place = std::ranges::lower_bound(now->kept, at) - now->kept.begin();
  emit stepPicked(now->training,
                  now->kept[static_cast<std::size_t>(std::clamp<std::int64_t>(place + places, 0, std::ssize(now->kept) - 1))], false);
}

/// The arrows are those of the time line everywhere else.
bool TrainingStrip::event(QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key == Qt::Key_Left || key == Qt::Key_Right) event->accept();
  }
  return QWidget::event(event);
}

void TrainingStrip::keyPressEvent(QKeyEvent* event) {
  const LearningCurve* now = curve();
  if (now == nullptr) return QWidget::keyPressEvent(event);
  const std::int64_t page = std::max<std::int64_t>(1, std::ssize(now->kept) / 10);
  switch (event->key()) {
    case Qt::Key_Left: return keep(-1);
    case Qt::Key_Right: return keep(1);
    case Qt::Key_PageUp: return keep(-page);
    case Qt::Key_PageDown: return keep(page);
    case Qt::Key_Home: return keep(-std::ssize(now->kept));
    case Qt::Key_End: return keep(std::ssize(now->kept));
    default: QWidget::keyPressEvent(event);
  }
}

}  // namespace reclab
