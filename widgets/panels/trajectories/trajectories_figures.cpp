// SPDX-License-Identifier: GPL-3.0-or-later
// The states as figures and as a table.
#include <algorithm>
#include <cmath>

#include "panels/trajectories/past_view.h"
#include "panels/trajectories/trajectories.h"
#include "plot/parts/heatmap.h"
#include "plot/parts/pinned.h"
#include "plot/plot.h"
#include "plot/plot_panel.h"
#include "plot/value_axis.h"
#include "scene/trajectory_view.h"

namespace reclab {

QString TrajectoriesPanel::figureTitle() const {
  QString text = title();
  if (!trace_) return text;
  if (view_ == View::past && !past_->stateName().isEmpty())
    text += tr(": the past in %1").arg(past_->stateName());
  else if (array_->count() > 0)
    text += ": " + array_->currentText();
  return text + titleOfRun(*trace_);
}

QSize TrajectoriesPanel::figureSize() const { return scene_->width() < 200 || scene_->height() < 140 ? QSize(640, 420) : scene_->size(); }

/// The title over the picture.
void TrajectoriesPanel::drawScene(QCPPainter* painter, QSize size, const FigureStyle& style) const {
  const Theme theme = Theme::of(this);
  const int top = style.title ? QFontMetrics(theme.large, this).height() + 16 : 0;
  const QSize below(size.width(), size.height() - top);
  painter->save();
  painter->translate(0, top);
  if (painter->modes().testFlag(QCPPainter::pmVectorized))
    scene_->paintVectors(*painter, below, style.cursor);
  else
    painter->drawImage(QPointF(0, 0), scene_->image(below, painter->device()->devicePixelRatioF(), style.cursor));
  painter->restore();
  if (!style.title) return;
  // The title last: a curve that was zoomed out of the picture ends under it.
  painter->fillRect(QRect(0, 0, size.width(), top), theme.base);
  painter->setFont(theme.large);
  painter->setPen(theme.text);
  painter->drawText(QRect(8, 0, size.width() - 16, top), Qt::AlignVCenter | Qt::AlignLeft,
                    QFontMetrics(theme.large, this).elidedText(figureTitle(), Qt::ElideRight, size.width() - 16));
}

FigureDrawing TrajectoriesPanel::drawing(const FigureStyle& style) {
  const FigureText text = figureText(figureTitle(), trace_.get());
  if (view_ == View::map) return map_->drawing(text, style);
  if (view_ == View::lines) return lines_->drawing(text, style);
  if (view_ == View::past) return past_->drawing(text, style);
  constexpr double shape = 0.75;
  const int width = style.pixels(logicalDpiX());
  QSize size = style.forPrint() ? QSize(width, static_cast<int>(std::lround(shape * std::min(width, 560)))) : figureSize();
  if (style.title) size.rheight() += QFontMetrics(Theme::of(this).large, this).height() + 16;
  return {text, size, [this, size, style](QCPPainter* painter) { drawScene(painter, size, style); }};
}

QString TrajectoriesPanel::dataAsCsv() const {
  if (!emptyReason().isEmpty()) return {};
  if (view_ == View::past) return past_->dataAsCsv();
  StepTable table(*trace_, true);
  const std::vector<std::int64_t>& steps = columns_.steps();
  table.addSteps({steps.begin(), steps.begin() + picture_.rows});
  const std::vector<PinnedState> pinned = view_ == View::map ? std::vector<PinnedState>() : pinnedStates();
  const auto named = [](const QString& name, const QString& run) { return QStringLiteral("%1 [%2]").arg(name, run); };
  if (view_ == View::scene) {
    const Trajectory& way = *picture_.trajectory;
    const auto add = [&](const QString& name, const std::vector<std::int64_t>& its, const std::vector<Point3>& points, std::size_t k) {
      table.add(name, its, [&points, k](std::int64_t row) {
        return row < std::ssize(points) ? csvNumber(points[std::size_t(row)][k]) : QByteArray();
      });
    };
    for (std::size_t k = 0; k < 3; ++k) add(way.names[k], steps, way.points, k);
    for (std::size_t w = 0; w < way.companions.size(); ++w)
      for (std::size_t k = 0; k < 3 && !way.companions[w].points.empty(); ++k)
        add(named(way.names[k], way.companions[w].label), pinned[w].columns.steps(), way.companions[w].points, k);
    return table.csv();
  }
  std::vector<std::int64_t> shown = chosen_;
  if (view_ == View::map) {
    shown.resize(static_cast<std::size_t>(columns_.width()));
    std::iota(shown.begin(), shown.end(), 0);
  }
  const auto add = [&](const StateColumns& of, std::int64_t column, const QString& name) {
    table.add(name, of.steps(), [&of, column](std::int64_t row) { return csvNumber(of.value(row, column)); });
  };
  for (const std::int64_t column : shown) add(columns_, column, columns_.columnName(column));
  for (const PinnedState& state : pinned)
    for (const std::int64_t column : state.columns.width() > 0 ? shown : std::vector<std::int64_t>())
      add(state.columns, column, named(columns_.columnName(column), state.label));
  return table.csv();
}

}  // namespace reclab
