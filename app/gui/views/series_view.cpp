// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/series_view.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "plain_text.h"
#include "plot/parts/step_marks.h"
#include "spoken.h"

namespace reclab {
namespace {

QColor blend(const QColor& over, const QColor& under, double share) {
  const auto mix = [share](int a, int b) { return static_cast<int>(std::lround(share * a + (1.0 - share) * b)); };
  return QColor(mix(over.red(), under.red()), mix(over.green(), under.green()), mix(over.blue(), under.blue()));
}

}  // namespace

void SeriesView::setSequence(LoadedSequencePtr sequence) {
  sequence_ = std::move(sequence);
  lines_ = {};
  update();
}

double SeriesView::xOfStep(double step) const {
  const QRectF area = plotArea();
  const auto length = sequence_ ? sequence_->sequence.length : 1;
  return length < 2 ? area.center().x() : area.left() + step / static_cast<double>(length - 1) * area.width();
}

std::int64_t SeriesView::stepOfX(double x) const {
  const QRectF area = plotArea();
  const auto length = sequence_ ? sequence_->sequence.length : 1;
  const double share = area.width() > 0 ? (x - area.left()) / area.width() : 0.0;
  return std::clamp<std::int64_t>(std::llround(share * static_cast<double>(length - 1)), 0, length - 1);
}

void SeriesView::paintLines(QPainter& painter) {
  if (!sequence_) return;
  const QColor ink = palette().color(QPalette::Text), base = palette().color(QPalette::Base);
  const qreal ratio = devicePixelRatioF();
  // Kept as a picture: while time runs, only the cursor moves over it.
  if (lines_.size() != size() * ratio || lineInk_ != ink) {
    lines_ = QPixmap(size() * ratio);
    lines_.setDevicePixelRatio(ratio);
    lines_.fill(Qt::transparent);
    lineInk_ = ink;
    QPainter drawer(&lines_);
    drawer.setRenderHint(QPainter::Antialiasing);
    if (sequence_->overview.symbols > 0)
      drawSymbols(drawer, ink);
    else
      drawLines(drawer, ink, base);
  }
  painter.drawPixmap(0, 0, lines_);
}

/// A row a symbol, the first at the bottom, a mark at each step that has it.
void SeriesView::drawSymbols(QPainter& painter, const QColor& ink) const {
  const QRectF area = plotArea();
  const Overview& overview = sequence_->overview;
  const auto symbols = static_cast<std::size_t>(overview.symbols), bins = overview.raster.size() / symbols;
  const std::size_t columns = std::min(bins, static_cast<std::size_t>(std::max(1.0, area.width())));
  const double height = area.height() / static_cast<double>(symbols), length = static_cast<double>(sequence_->sequence.length);
  painter.setRenderHint(QPainter::Antialiasing, false);
  for (std::size_t column = 0; column < columns; ++column) {
    const std::size_t first = column * bins / columns, end = std::max(first + 1, (column + 1) * bins / columns);
    // A mark stands around its step, which has its place on the time line as a point has.
    const double left = xOfStep(static_cast<double>(first) / static_cast<double>(bins) * length - 0.5);
    const double right = xOfStep(static_cast<double>(end) / static_cast<double>(bins) * length - 0.5);
    for (std::size_t symbol = 0; symbol < symbols; ++symbol) {
      float on = 0.0f, all = 0.0f;
      for (std::size_t bin = first; bin < end; ++bin) {
        on += overview.raster[bin * symbols + symbol];
        for (std::size_t other = 0; other < symbols; ++other) all += overview.raster[bin * symbols + other];
      }
      if (!(on > 0.0f)) continue;
      QColor shade = ink;
      shade.setAlphaF(0.25f + 0.45f * on / all);
      const double bottom = area.bottom() - static_cast<double>(symbol) * height;
      painter.fillRect(QRectF(QPointF(std::max(left, area.left()), bottom - height),
                              QPointF(std::min(std::max(right, left + 1.0), area.right() + 1.0), bottom - std::min(1.0, 0.2 * height))),
                       shade);
    }
  }
}

void SeriesView::drawLines(QPainter& painter, const QColor& ink, const QColor& base) const {
  const QRectF area = plotArea();
  const Overview& overview = sequence_->overview;
  const auto y = [&](double value) { return area.bottom() - (value - overview.low) / (overview.high - overview.low) * area.height(); };
  for (std::size_t channel = overview.channels.size(); channel-- > 0;) {
    const auto& [low, high] = overview.channels[channel];
    const std::size_t bins = low.size();
    const auto columns = static_cast<std::size_t>(std::max(1.0, area.width()));
    const bool exact = static_cast<std::int64_t>(bins) == sequence_->sequence.length && bins <= 3 * columns;
    const std::size_t points = exact ? bins : std::min(bins, columns);
    QPolygonF line;
    line.reserve(static_cast<qsizetype>(exact ? points : 2 * points));
    for (std::size_t point = 0; point < points; ++point) {
      const double x =
          points < 2 ? area.center().x() : area.left() + static_cast<double>(point) / static_cast<double>(points - 1) * area.width();
      const auto first = static_cast<std::ptrdiff_t>(point * bins / points),
                 last = static_cast<std::ptrdiff_t>((point + 1) * bins / points);
      line << QPointF(x, y(*std::min_element(low.begin() + first, low.begin() + last)));
      if (!exact) line << QPointF(x, y(*std::max_element(high.begin() + first, high.begin() + last)));
    }
    painter.setPen(QPen(blend(ink, base, 0.64 - 0.13 * static_cast<double>(channel)), 1.0));
    painter.drawPolyline(line);
  }
}

void SeriesView::setInputScale(const QString& scale) {
  if (scale == inputScale_) return;
  inputScale_ = scale;
  update();
}

void SeriesView::paintScale(QPainter& painter) const {
  if (inputScale_.isEmpty()) return;
  painter.setPen(palette().color(QPalette::PlaceholderText));
  painter.drawText(rect().adjusted(4, 2, -4, -2), Qt::AlignTop | Qt::AlignRight, tr("× %1, as the model reads it").arg(inputScale_));
}

void SeriesView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), palette().color(QPalette::Base));
  if (sequence_) {
    paintLines(painter);
    return paintScale(painter);
  }
  painter.setPen(palette().color(QPalette::PlaceholderText));
  painter.drawText(rect(), Qt::AlignCenter | Qt::TextWordWrap, tr("Open a file or choose a task"));
}

TimeStrip::TimeStrip(QWidget* parent) : SeriesView(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setToolTip(
      tr("Drag to move the time cursor. Drag the handles, or Shift-drag, to zoom every time axis; the wheel zooms at the cursor; "
         "double-click shows all. By keyboard: the arrows, Page Up and Down, Home and End."));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void TimeStrip::setStep(std::int64_t step) {
  step_ = step;
  setSpokenValue(this, static_cast<double>(step), 0.0, static_cast<double>(length() - 1));
  update();
}

void TimeStrip::setRange(std::int64_t first, std::int64_t last) {
  first_ = first;
  last_ = last;
  update();
}

int TimeStrip::pixelOf(std::int64_t step) const { return static_cast<int>(std::lround(xOfStep(static_cast<double>(step)))); }

void TimeStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const QColor base = palette().color(QPalette::Base), accent = palette().color(QPalette::Highlight);
  painter.fillRect(rect(), base);
  if (!sequence()) {
    painter.setPen(palette().color(QPalette::PlaceholderText));
    painter.drawText(rect(), Qt::AlignVCenter | Qt::AlignLeft,
                     tr("The input is drawn here. Open a file (Ctrl+O), drop one on the window, or choose a task."));
    return;
  }
  const double left = xOfStep(static_cast<double>(first_)), right = xOfStep(static_cast<double>(last_));
  const QRectF full = QRectF(rect()).adjusted(0, 1, 0, -1);
  const bool brushed = first_ > 0 || last_ < length() - 1;
  if (brushed) painter.fillRect(QRectF(QPointF(left, full.top()), QPointF(right, full.bottom())), blend(accent, base, 0.12));
  paintLines(painter);
  if (brushed) {  // dims the parts outside the brush
    QColor veil = base;
    veil.setAlphaF(0.6F);
    painter.fillRect(QRectF(full.topLeft(), QPointF(left, full.bottom())), veil);
    painter.fillRect(QRectF(QPointF(right, full.top()), full.bottomRight()), veil);
  }
  paintScale(painter);
  painter.setPen(stepMarkPen(palette().color(QPalette::Text)));
  for (const StepMark& mark : sequence()->marks) {
    const double x = std::round(xOfStep(static_cast<double>(mark.step))) + 0.5;
    painter.drawLine(QPointF(x, full.top()), QPointF(x, full.bottom()));
  }
  painter.setPen(Qt::NoPen);
  painter.setBrush(blend(accent, base, brushed ? 0.9 : 0.45));
  for (const double x : {left, right}) painter.drawRoundedRect(QRectF(x - 2.0, full.center().y() - 9.0, 4.0, 18.0), 2.0, 2.0);
  const double x = xOfStep(static_cast<double>(step_));
  painter.setPen(QPen(accent, 1.6));
  painter.drawLine(QPointF(x, full.top()), QPointF(x, full.bottom()));
  painter.setPen(Qt::NoPen);
  painter.setBrush(accent);
  QPainterPath knob;
  knob.moveTo(x - 5.0, full.top());
  knob.lineTo(x + 5.0, full.top());
  knob.lineTo(x, full.top() + 7.0);
  knob.closeSubpath();
  painter.drawPath(knob);
  if (!hasFocus()) return;
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(blend(accent, base, 0.6));
  painter.drawRect(rect().adjusted(1, 1, -2, -2));
}

void TimeStrip::keyPressEvent(QKeyEvent* event) {
  const std::int64_t page = std::max<std::int64_t>(1, (last_ - first_) / 20);
  const auto go = [&](std::int64_t step) { emit stepPicked(std::clamp<std::int64_t>(step, 0, length() - 1)); };
  if (!sequence()) return SeriesView::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_Home: return go(first_);
    case Qt::Key_End: return go(last_);
    case Qt::Key_PageUp: return go(step_ - page);
    case Qt::Key_PageDown: return go(step_ + page);
    default: SeriesView::keyPressEvent(event);
  }
}

TimeStrip::Drag TimeStrip::grip(const QPointF& at) const {
  // At the ends of an unbrushed strip the cursor comes first, so that step 0 can be reached.
  const double cursor = std::abs(at.x() - xOfStep(static_cast<double>(step_)));
  const double left = std::abs(at.x() - xOfStep(static_cast<double>(first_))),
               right = std::abs(at.x() - xOfStep(static_cast<double>(last_)));
  const bool middle = std::abs(at.y() - height() / 2.0) <= 11.0;
  if (middle && std::min(left, right) <= 4.0 && cursor > 4.0) return left < right ? Drag::first : Drag::last;
  return Drag::cursor;
}

void TimeStrip::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !sequence()) return;
  const std::int64_t step = stepOfX(event->position().x());
  drag_ = event->modifiers() & Qt::ShiftModifier ? Drag::brush : grip(event->position());
  anchor_ = step;
  if (drag_ == Drag::cursor) emit stepPicked(step);
}

void TimeStrip::mouseMoveEvent(QMouseEvent* event) {
  if (!sequence()) return;
  const std::int64_t step = stepOfX(event->position().x());
  switch (drag_) {
    case Drag::none:
      setCursor(grip(event->position()) == Drag::cursor ? Qt::ArrowCursor : Qt::SizeHorCursor);
      for (const StepMark& mark : sequence()->marks)
        if (std::abs(xOfStep(static_cast<double>(mark.step)) - event->position().x()) <= stepMarkReach)
          QToolTip::showText(event->globalPosition().toPoint(), safeTip(mark.text), this);
      break;
    case Drag::cursor: emit stepPicked(step); break;
    case Drag::brush: emit rangePicked(std::min(anchor_, step), std::max(anchor_, step)); break;
    case Drag::first: emit rangePicked(std::min(step, last_ - 1), last_); break;
    case Drag::last: emit rangePicked(first_, std::max(step, first_ + 1)); break;
  }
}

void TimeStrip::mouseReleaseEvent(QMouseEvent*) { drag_ = Drag::none; }

void TimeStrip::mouseDoubleClickEvent(QMouseEvent*) {
  if (sequence()) emit rangePicked(0, length() - 1);
}

void TimeStrip::wheelEvent(QWheelEvent* event) {
  if (!sequence() || event->angleDelta().y() == 0) return;
  const double factor = std::pow(0.85, event->angleDelta().y() / 120.0);
  const auto centre = static_cast<double>(stepOfX(event->position().x()));
  const double first = centre - (centre - static_cast<double>(first_)) * factor,
               last = centre + (static_cast<double>(last_) - centre) * factor;
  emit rangePicked(std::max<std::int64_t>(0, std::llround(first)),
                   std::min<std::int64_t>(length() - 1, std::llround(std::max(last, first + 2.0))));
  event->accept();
}

}  // namespace reclab
