// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/steps/schedule_view.h"
#include "plain_text.h"

#include <algorithm>
#include <cmath>

namespace reclab {

ScheduleView::ScheduleView(Plot* plot) : QCPLayoutElement(plot) {
  setLayer(QStringLiteral("main"));
  setMinimumSize(60, 60);
}

void ScheduleView::setSchedule(std::optional<StepSchedule> schedule) {
  schedule_ = std::move(schedule);
  chosen_ = -1;
  cone_.clear();
  lane_.clear();
  halves_ = -1;
  if (!schedule_) return;
  int lanes = 0;
  for (const auto& kind : schedule_->kinds) lane_.push_back(kind.place == Place::lane ? lanes++ : -1);
  if (schedule_->drawing == Drawing::tree)
    for (const auto& node : schedule_->nodes)
      if (node.row < 0) halves_ = std::max(halves_, node.round);
}

void ScheduleView::setChosen(int node) {
  if (node == chosen_) return;
  chosen_ = node;
  cone_ = node < 0 ? std::vector<bool>() : schedule_->cone(node);
}

QColor ScheduleView::colourOf(int kind) const {
  // Given values are muted; the other kinds have colours in their order.
  int at = 0;
  for (int k = 0; k < kind; ++k) at += schedule_->kinds[static_cast<std::size_t>(k)].given ? 0 : 1;
  return schedule_->kinds[static_cast<std::size_t>(kind)].given ? theme().muted : theme().series(at);
}

int ScheduleView::legendHeight() const { return QFontMetrics(theme().small, mParentPlot).height() + 6; }

ScheduleView::Frame ScheduleView::frame() const {
  const QFontMetrics metrics(theme().small, mParentPlot);
  Frame made;
  const double left = metrics.horizontalAdvance(QStringLiteral("000")) + metrics.height() + 2.0 * gap,
               bottom = 2.0 * metrics.height() + legendHeight() + 6.0;
  const bool iterations = schedule_->drawing == Drawing::iterations, triangle = schedule_->drawing == Drawing::triangle;
  const double right = iterations
                           ? (static_cast<const Plot*>(mParentPlot)->drawsFigure() ? widthInFigure(QStringLiteral("10⁻¹⁶"), metrics)
                                                                                   : metrics.horizontalAdvance(QStringLiteral("10⁻¹⁶"))) +
                                 26.0
                           : gap;
  made.area = QRectF(rect()).adjusted(left, 4, -right, -bottom);
  if (triangle)
    for (const int lane : lane_) made.lanes = std::max(made.lanes, lane + 1);
  const double columns = schedule_->steps + (triangle ? 1.6 : 0.0);
  const double rows = iterations ? schedule_->iterations() + 1 : triangle ? made.lanes + 0.8 + schedule_->steps : schedule_->rounds + 1;
  made.column = std::max(1.0, made.area.width() / columns);
  made.row = std::max(0.5, made.area.height() / rows);
  return made;
}

double ScheduleView::radius(const Frame& frame) const { return std::clamp(0.32 * std::min(frame.column, frame.row), 1.5, 7.0); }

/// Where a node lies, in pixels.
QRectF ScheduleView::boxOf(const Frame& f, int index) const {
  const auto& node = schedule_->nodes[static_cast<std::size_t>(index)];
  const auto& kind = schedule_->kinds[static_cast<std::size_t>(node.kind)];
  const double r = radius(f);
  if (schedule_->drawing == Drawing::iterations) return {xOf(f, node.last) - f.column / 2, yOf(f, node.row) - f.row / 2, f.column, f.row};
  const auto around = [&](double x, double y) { return QRectF(x - r, y - r, 2 * r, 2 * r); };
  const double grid = f.area.top() + (f.lanes + 0.8) * f.row;  // of the triangle
  if (schedule_->drawing == Drawing::triangle) {
    const double inset = std::min(1.0, 0.1 * std::min(f.column, f.row));
    const auto cells = [&](double first, double last, double top, double share) {
      return QRectF(f.area.left() + first * f.column + inset, top + f.row * (1 - share) / 2 + inset,
                    (last - first + 1) * f.column - 2 * inset, f.row * share - 2 * inset);
    };
    switch (kind.place) {
      case Place::lane: {
        const double top = f.area.top() + lane_[static_cast<std::size_t>(node.kind)] * f.row;
        if (node.first == 0 && node.last > 0 && node.needs.size() <= 2)  // it is at the last step that it covers
          return {f.area.left() + (node.last + 1) * f.column - f.column, top + 0.15 * f.row, f.column, 0.7 * f.row};
        return cells(node.first, node.last, top, 0.8);
      }
      case Place::bar: return cells(node.first, node.last, grid + node.row * f.row, 0.45);
      case Place::cell: return cells(node.first, node.first, grid + node.last * f.row, 1.0);
      default: return around(f.area.left() + (schedule_->steps + 0.9) * f.column, grid + (node.row + 0.5) * f.row);
    }
  }
  const bool half = node.round <= halves_;
  const auto place = [&](double x) {
    return half ? f.area.left() + (x - f.area.left()) / 2 + (node.row < 0 ? f.area.width() / 2 : 0.0) : x;
  };
  if (kind.place == Place::box) {
    const double left = place(f.area.left() + node.first * f.column), right = place(f.area.left() + (node.last + 1) * f.column);
    return {QPointF(left + 2, f.area.top() + node.begin * f.row + 2), QPointF(right - 2, f.area.top() + (node.round + 1) * f.row - 2)};
  }
  return around(place(xOf(f, node.last)), yOf(f, node.round));
}

QPointF ScheduleView::placeOf(int node) const { return boxOf(frame(), node).center(); }

int ScheduleView::nodeAt(const QPointF& position) const {
  if (!schedule_ || !QRectF(rect()).contains(position)) return -1;
  const Frame f = frame();
  if (schedule_->drawing == Drawing::iterations) {
    const int step = static_cast<int>(std::floor((position.x() - f.area.left()) / f.column)),
              row = static_cast<int>(std::floor((position.y() - f.area.top()) / f.row));
    if (step < 0 || step >= schedule_->steps || row < 0 || row > position_) return -1;
    for (int i = static_cast<int>(schedule_->nodes.size()) - 1; i >= 0; --i)  // the last one of a step is its state
      if (const auto& node = schedule_->nodes[static_cast<std::size_t>(i)]; node.row == row && node.last == step) return i;
    return -1;
  }
  int found = -1;
  double nearest = 1e9;
  for (int i = 0; i < static_cast<int>(schedule_->nodes.size()); ++i) {
    const QRectF box = boxOf(f, i);
    const bool round = schedule_->kinds[static_cast<std::size_t>(schedule_->nodes[static_cast<std::size_t>(i)].kind)].place != Place::box;
    if (!box.adjusted(-3, -3, 3, 3).contains(position)) continue;
    const double away = round ? QLineF(box.center(), position).length() : 1e8;
    if (away < nearest) nearest = away, found = i;
  }
  return found;
}

QString ScheduleView::tipAt(const QPointF& position) const {
  const int node = nodeAt(position);
  if (node < 0) return {};
  if (schedule_->drawing != Drawing::iterations) return schedule_->tip(node);
  const auto& one = schedule_->nodes[static_cast<std::size_t>(node)];
  const double error = schedule_->error[static_cast<std::size_t>(one.row * schedule_->steps + one.last)];
  const QString off =
      error <= lowest_error ? tr("nothing is wrong with it any more") : tr("off by %1 of the largest state").arg(powerAsNumber(error));
  QString said = one.row == 0 ? tr("<b>guess</b> of step %1: %2").arg(one.last).arg(off)
                              : tr("<b>iteration %1</b>, step %2: %3").arg(one.row).arg(one.last).arg(off);
  if (!std::isnan(one.value.real())) said += tr("<br>value %1").arg(number(one.value.real()));
  if (one.row > 0) said += tr("<br>from the iteration before: %1").arg(stepsText(0, one.last));
  return htmlTip(QStringLiteral("<div style='max-width:320px'>%1</div>").arg(said));
}

}  // namespace reclab
