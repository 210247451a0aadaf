// SPDX-License-Identifier: GPL-3.0-or-later
// The drawing of a schedule: its axes, nodes and edges, or the errors of an iteration; and the legend of the colours.
#include <algorithm>
#include <cmath>

#include "panels/steps/schedule_view.h"

namespace reclab {

static QColor faded(QColor colour, double part) {
  colour.setAlphaF(static_cast<float>(part));
  return colour;
}

void ScheduleView::draw(QCPPainter* painter) {
  painter->setAntialiasing(true);
  if (!schedule_) {
    painter->setFont(theme().normal);
    painter->setPen(theme().muted);
    painter->drawText(rect().adjusted(gap, 0, -gap, 0), Qt::AlignCenter | Qt::TextWordWrap, note_);
    return;
  }
  const Frame f = frame();
  if (f.area.width() < 20 || f.area.height() < 20) return;
  if (schedule_->drawing == Drawing::iterations)
    drawErrors(painter, f);
  else
    drawNodes(painter, f);
  drawAxes(painter, f);
  drawLegend(painter);
}

void ScheduleView::drawAxes(QCPPainter* painter, const Frame& f) const {
  const QFontMetrics metrics(theme().small, mParentPlot);
  const bool triangle = schedule_->drawing == Drawing::triangle;
  painter->setFont(theme().small);
  painter->setPen(theme().muted);
  const auto every = [](double pixels, double wanted) {
    int step = 1;
    while (step * pixels < wanted) step *= 2;
    return step;
  };
  // Steps, below.
  const int each = every(f.column, metrics.horizontalAdvance(QStringLiteral("000")) + 2.0);
  const double below = f.area.bottom() + 2;
  for (int t = 0; t < schedule_->steps; t += each)
    painter->drawText(QRectF(xOf(f, t) - 30, below, 60, metrics.height()), Qt::AlignHCenter | Qt::AlignTop, QString::number(t));
  painter->setPen(theme().text);
  painter->drawText(QRectF(f.area.left(), below + metrics.height(), f.area.width(), metrics.height()), Qt::AlignHCenter | Qt::AlignTop,
                    triangle ? tr("step that is looked at (time)") : tr("step (time)"));
  // Rounds, iterations or steps, at the left.
  const double top = triangle ? f.area.top() + (f.lanes + 0.8) * f.row : f.area.top();
  const int rows = triangle ? schedule_->steps : schedule_->positions() + 1, skip = every(f.row, metrics.height() + 1.0);
  painter->setPen(theme().muted);
  for (int row = 0; row < rows; row += skip)
    painter->drawText(QRectF(rect().left() + metrics.height(), top + (row + 0.5) * f.row - metrics.height(),
                             f.area.left() - rect().left() - metrics.height() - 6, 2 * metrics.height()),
                      Qt::AlignRight | Qt::AlignVCenter, QString::number(row));
  for (std::size_t k = 0; triangle && k < lane_.size(); ++k) {
    const QString& name = schedule_->kinds[k].name;
    if (lane_[k] >= 0 && metrics.horizontalAdvance(name) <= 1.6 * f.column + gap - 6 && f.row >= 0.7 * metrics.height())
      painter->drawText(QRectF(f.area.left() + schedule_->steps * f.column + 6,
                               f.area.top() + (lane_[k] + 0.5) * f.row - metrics.height() / 2.0, 200, metrics.height()),
                        Qt::AlignLeft | Qt::AlignVCenter, name);
  }
  const QString label = triangle ? tr("step that looks") : schedule_->drawing == Drawing::iterations ? tr("iteration ↓") : tr("round ↓");
  painter->setPen(theme().text);
  painter->save();
  painter->translate(rect().left() + 2, (top + f.area.bottom()) / 2);
  painter->rotate(-90);
  if (metrics.horizontalAdvance(label) < f.area.bottom() - top + 20)
    painter->drawText(QRectF(-100, 0, 200, metrics.height()), Qt::AlignCenter, triangle ? label : label.chopped(2) + QStringLiteral(" ←"));
  painter->restore();
}

void ScheduleView::drawCursor(QCPPainter* painter, const Frame& f) const {
  if (step_ < 0 || step_ >= schedule_->steps || !static_cast<const Plot*>(mParentPlot)->drawsCursor()) return;
  painter->setAntialiasing(false);
  painter->setPen(QPen(theme().accent, 1));
  const double x = std::round(xOf(f, static_cast<double>(step_)));
  painter->drawLine(QPointF(x, f.area.top()), QPointF(x, f.area.bottom()));
  painter->setAntialiasing(true);
}

void ScheduleView::drawNode(QCPPainter* painter, const Frame& f, int index, const QColor& colour, bool now) const {
  const auto& node = schedule_->nodes[static_cast<std::size_t>(index)];
  const auto& kind = schedule_->kinds[static_cast<std::size_t>(node.kind)];
  const QRectF box = boxOf(f, index);
  const QPen ring = now ? QPen(theme().text, 1.4) : QPen(Qt::NoPen);
  painter->setPen(ring);
  painter->setBrush(colour);
  const bool round = kind.place == Place::end || (kind.place == Place::point && !kind.given);
  if (round) {
    painter->drawEllipse(box);
  } else if (kind.place == Place::box) {
    painter->drawRoundedRect(box, 3, 3);
    const QFontMetrics metrics(theme().small, mParentPlot);
    if (box.height() < metrics.height() || box.width() < metrics.horizontalAdvance(kind.name)) return;
    QColor ink = contrast(mixed(colour, theme().base, colour.alphaF()), theme().text) >= 4.5 ? theme().text : theme().base;
    painter->setPen(ink);
    painter->setFont(theme().small);
    painter->drawText(box, Qt::AlignCenter, kind.name);
  } else {
    painter->drawRect(box);
  }
}

void ScheduleView::drawNodes(QCPPainter* painter, const Frame& f) const {
  const bool triangle = schedule_->drawing == Drawing::triangle, chosen = !cone_.empty();
  const auto& nodes = schedule_->nodes;
  const auto done = [&](const StepSchedule::Node& node) { return node.round < position_ || node.round == 0; };
  const auto now = [&](const StepSchedule::Node& node) { return node.round > 0 && node.begin <= position_ && position_ <= node.round; };
  // The round under way.
  if (!triangle && position_ > 0) {
    painter->setPen(Qt::NoPen);
    painter->setBrush(faded(theme().text, theme().dark ? 0.10 : 0.06));
    painter->drawRect(QRectF(f.area.left() - 4, f.area.top() + position_ * f.row, f.area.width() + 8, f.row));
  }
  if (triangle) {
    painter->setPen(QPen(theme().grid, 1));
    for (std::size_t i = 0; i < nodes.size(); ++i) {  // the columns that a row reads
      if (schedule_->kinds[static_cast<std::size_t>(nodes[i].kind)].place != Place::end) continue;
      const QPointF end = boxOf(f, static_cast<int>(i)).center();
      painter->drawLine(QPointF(f.area.left() + nodes[i].first * f.column, end.y()), end);
    }
  } else {
    // The steps that each node covers, as a band; then the edges.
    const double thick = std::clamp(radius(f), 2.0, 5.0);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto& node = nodes[i];
      if (node.round == 0 || node.first == node.last || schedule_->kinds[static_cast<std::size_t>(node.kind)].place == Place::box) continue;
      const double strength = chosen ? (cone_[i] ? 0.30 : 0.05) : now(node) ? 0.35 : done(node) ? 0.20 : 0.06;
      painter->setPen(Qt::NoPen);
      painter->setBrush(mixed(colourOf(node.kind), theme().base, strength));  // not see-through: bands of one round lie in each other
      painter->drawRoundedRect(QRectF(QPointF(xOf(f, node.first) - 0.4 * f.column, yOf(f, node.round) - thick),
                                      QPointF(xOf(f, node.last), yOf(f, node.round) + thick)),
                               thick, thick);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const int from : nodes[i].needs) {
        const bool strong = chosen && cone_[i] && cone_[static_cast<std::size_t>(from)];
        const double strength = chosen ? (strong ? 0.9 : 0.06) : now(nodes[i]) ? 0.85 : done(nodes[i]) ? 0.38 : 0.12;
        painter->setPen(QPen(faded(theme().text, strength), strong || (!chosen && now(nodes[i])) ? 1.3 : 0.8));
        const QRectF a = boxOf(f, from), b = boxOf(f, static_cast<int>(i));
        const bool into = schedule_->kinds[static_cast<std::size_t>(nodes[i].kind)].place == Place::box;
        const bool out = schedule_->kinds[static_cast<std::size_t>(nodes[static_cast<std::size_t>(from)].kind)].place == Place::box;
        const double x = into && out ? (a.width() < b.width() ? a.center().x() : b.center().x()) : 0.0;
        const QPointF start = out ? QPointF(into ? x : std::clamp(b.center().x(), a.left(), a.right()), a.bottom()) : a.center();
        const QPointF end = into ? QPointF(out ? x : std::clamp(a.center().x(), b.left(), b.right()), b.top()) : b.center();
        painter->drawLine(start, end);
      }
  }
  drawCursor(painter, f);
  for (int pass = 0; pass < 2; ++pass)  // bars first, under the other nodes
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto& node = nodes[i];
      if ((schedule_->kinds[static_cast<std::size_t>(node.kind)].place == Place::bar) != (pass == 0)) continue;
      const double strength = chosen ? (cone_[i] ? 1.0 : 0.14) : now(node) || done(node) ? 1.0 : 0.18;
      const QColor full = mixed(colourOf(node.kind), theme().base, strength);
      drawNode(painter, f, static_cast<int>(i), full, static_cast<int>(i) == chosen_ || (!chosen && now(node) && radius(f) > 2.2));
    }
  // In a triangle only the chosen node's own lines are few enough to be seen.
  if (triangle && chosen) {
    painter->setPen(QPen(faded(theme().text, 0.7), 1));
    for (const int from : nodes[static_cast<std::size_t>(chosen_)].needs)
      painter->drawLine(boxOf(f, from).center(), boxOf(f, chosen_).center());
  }
  if (triangle && f.row > 6) {  // the memory goes from chunk to chunk
    painter->setPen(QPen(faded(theme().text, 0.7), 1.2));
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const int from : nodes[i].needs)
        if (nodes[static_cast<std::size_t>(from)].kind == nodes[i].kind && lane_[static_cast<std::size_t>(nodes[i].kind)] >= 0) {
          const QRectF a = boxOf(f, from), b = boxOf(f, static_cast<int>(i));
          painter->drawLine(QPointF(a.right(), a.center().y()), QPointF(b.left(), b.center().y()));
          painter->drawLine(QPointF(b.left(), b.center().y()), QPointF(b.left() - 4, b.center().y() - 3));
          painter->drawLine(QPointF(b.left(), b.center().y()), QPointF(b.left() - 4, b.center().y() + 3));
        }
  }
}

QRgb ScheduleView::colourOfError(double error) const {
  const double part = std::clamp((error - lowest_error) / -lowest_error, 0.0, 1.0);
  return viridis()[static_cast<std::size_t>(std::lround(part * 255.0))];
}

void ScheduleView::drawErrors(QCPPainter* painter, const Frame& f) const {
  painter->setAntialiasing(false);
  painter->setPen(Qt::NoPen);
  const int steps = schedule_->steps;
  for (int row = 0; row <= schedule_->iterations(); ++row)
    for (int t = 0; t < steps; ++t) {
      const double error = schedule_->error[static_cast<std::size_t>(row * steps + t)];
      const QColor colour = std::isnan(error) ? theme().grid : QColor(colourOfError(error));
      painter->setBrush(row <= position_ ? colour : mixed(colour, theme().base, 0.10));
      // Whole pixels, so that no seams show.
      const double left = std::round(f.area.left() + t * f.column), right = std::round(f.area.left() + (t + 1) * f.column);
      const double top = std::round(f.area.top() + row * f.row), bottom = std::round(f.area.top() + (row + 1) * f.row);
      painter->drawRect(QRectF(left, top, right - left, bottom - top - (f.row > 6 ? 1 : 0)));
    }
  painter->setAntialiasing(true);
  // The end of the part that has converged.
  const QColor dark = Qt::black, light = Qt::white;
  for (int row = 0; row <= position_; ++row) {
    const double x = f.area.left() + schedule_->exactAfter(row) * f.column, top = f.area.top() + row * f.row;
    if (schedule_->exactAfter(row) == 0) continue;
    painter->setPen(QPen(dark, 4));
    painter->drawLine(QPointF(x, top + 1), QPointF(x, top + f.row - 1));
    painter->setPen(QPen(light, 2));
    painter->drawLine(QPointF(x, top + 1), QPointF(x, top + f.row - 1));
  }
  if (position_ > 0) {
    painter->setBrush(Qt::NoBrush);
    painter->setPen(QPen(theme().text, 1.4));
    painter->drawRect(QRectF(f.area.left() - 1, f.area.top() + position_ * f.row, f.area.width() + 2, f.row));
  }
  drawCursor(painter, f);
  // The legend of the colours.
  const QFontMetrics metrics(theme().small, mParentPlot);
  const QRectF bar(f.area.right() + 8, f.area.top(), 8, f.area.height());
  QLinearGradient shades(bar.bottomLeft(), bar.topLeft());
  for (int i = 0; i <= 16; ++i) shades.setColorAt(i / 16.0, QColor(colourOfError(lowest_error + i)));
  painter->setPen(Qt::NoPen);
  painter->setBrush(shades);
  painter->drawRect(bar);
  painter->setFont(theme().small);
  painter->setPen(theme().muted);
  const int ends = bar.height() > 5 * metrics.height() ? 4 : 1;
  for (int i = 0; i <= ends; ++i) {
    const double y = bar.bottom() - bar.height() * i / ends;
    const QRectF box(bar.right() + 4, std::clamp(y - metrics.height() / 2.0, bar.top(), bar.bottom() - metrics.height()), 60,
                     metrics.height());
    const QString value = i == ends ? QStringLiteral("1") : powerOfTen(lowest_error + 16.0 * i / ends);
    if (static_cast<const Plot*>(mParentPlot)->drawsFigure())
      drawInFigure(painter, box, value, metrics);
    else
      painter->drawText(box, Qt::AlignLeft | Qt::AlignVCenter, value);
  }
}

void ScheduleView::drawLegend(QCPPainter* painter) const {
  const QFontMetrics metrics(theme().small, mParentPlot);
  const double y = rect().bottom() - legendHeight() / 2.0;
  painter->setFont(theme().small);
  if (schedule_->drawing == Drawing::iterations) {
    painter->setPen(theme().text);
    painter->drawText(QRectF(rect().left() + gap, y - metrics.height() / 2.0, rect().width() - 2 * gap, metrics.height()),
                      Qt::AlignLeft | Qt::AlignVCenter,
                      metrics.elidedText(tr("error, of the largest state; white line: right to 12 digits up to here"), Qt::ElideRight,
                                         rect().width() - 2 * gap));
    return;
  }
  double x = rect().left() + gap;
  for (std::size_t k = 0; k < schedule_->kinds.size(); ++k) {
    const auto& kind = schedule_->kinds[k];
    const double wide = 14 + metrics.horizontalAdvance(kind.name) + 12;
    if (x + wide > rect().right() + 12) break;
    painter->setPen(Qt::NoPen);
    painter->setBrush(colourOf(static_cast<int>(k)));
    const QRectF mark(x, y - 4, 8, 8);
    if (kind.place == Place::end || (kind.place == Place::point && !kind.given))
      painter->drawEllipse(mark);
    else
      painter->drawRect(kind.place == Place::bar ? mark.adjusted(0, 2, 4, -2) : mark);
    painter->setPen(theme().text);
    painter->drawText(QPointF(x + 14, y + metrics.ascent() / 2.0 - 1), kind.name);
    x += wide;
  }
}

}  // namespace reclab
