// SPDX-License-Identifier: GPL-3.0-or-later
// The states as figures and as a table.
#include <algorithm>
#include <cmath>

#include "panels/trajectories/past_view.h"
#include "panels/trajectories/trajectories.h"
#include "plot/heatmap.h"
#include "plot/pinned.h"
#include "plot/plot.h"
#include "plot/plot_panel.h"
#include "plot/value_axis.h"
#include "scene/trajectory_view.h"
#include "trace/input_scale.h"

namespace reclab {

QString TrajectoriesPanel::figureTitle() const {
  QString text = title();
  if (!trace_) return text;
  if (view_ == View::past && !past_->stateName().isEmpty())
    text += tr(": the past in %1").arg(past_->stateName());
  else if (array_->count() > 0)
    text += ": " + array_->currentText();
  QStringList run;
  if (!trace_->info.title.empty()) run << QString::fromStdString(trace_->info.title);
  if (!trace_->info.input_name.empty()) run << QString::fromStdString(input_words(trace_->info));
  run << tr("seed %1").arg(trace_->info.seed);
  return text + QStringLiteral(" – ") + run.join(", ");
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
  // The row of a pinned run at the same step, -1 when it has none.
  const auto rowOf = [this](const std::vector<PinnedState>& pinned, std::size_t which, std::int64_t row,
                            std::int64_t rows) -> std::int64_t {
    const std::int64_t step = columns_.steps()[std::size_t(row)], its = pinned[which].columns.rowOfStep(step);
    return its >= 0 && its < rows && pinned[which].columns.steps()[std::size_t(its)] == step ? its : -1;
  };
  const bool timed = trace_->time_name != "step";
  QByteArray csv = "step";
  if (timed) csv += ',' + csvCell(QString::fromStdString(trace_->time_name)).toUtf8();
  const auto start = [&](std::int64_t row) {
    csv += '\n' + QByteArray::number(static_cast<qlonglong>(columns_.steps()[std::size_t(row)]));
    if (timed) csv += ',' + csvNumber(columns_.time()[std::size_t(row)]);
  };
  if (view_ == View::scene) {
    for (const QString& name : picture_.trajectory->names) csv += ',' + csvCell(name).toUtf8();
    const std::vector<PinnedState> pinned = pinnedStates();
    const std::vector<CompanionWay>& ways = picture_.trajectory->companions;
    for (const CompanionWay& way : ways)
      if (!way.points.empty())
        for (const QString& name : picture_.trajectory->names)
          csv += ',' + csvCell(QStringLiteral("%1 [%2]").arg(name, way.label)).toUtf8();
    for (std::int64_t row = 0; row < picture_.rows; ++row) {
      start(row);
      for (double x : picture_.trajectory->points[std::size_t(row)]) csv += ',' + csvNumber(x);
      for (std::size_t w = 0; w < ways.size(); ++w) {
        if (ways[w].points.empty()) continue;
        const std::int64_t its = rowOf(pinned, w, row, static_cast<std::int64_t>(ways[w].points.size()));
        for (std::size_t k = 0; k < 3; ++k) csv += ',' + (its < 0 ? QByteArray() : csvNumber(ways[w].points[std::size_t(its)][k]));
      }
    }
  } else {
    std::vector<std::int64_t> shown = chosen_;
    if (view_ == View::map) {
      shown.resize(static_cast<std::size_t>(columns_.width()));
      std::iota(shown.begin(), shown.end(), 0);
    }
    for (std::int64_t column : shown) csv += ',' + csvCell(columns_.columnName(column)).toUtf8();
    const std::vector<PinnedState> pinned = view_ == View::lines ? pinnedStates() : std::vector<PinnedState>();
    for (const PinnedState& state : pinned)
      if (state.columns.width() > 0)
        for (std::int64_t column : shown)
          csv += ',' + csvCell(QStringLiteral("%1 [%2]").arg(columns_.columnName(column), state.label)).toUtf8();
    for (std::int64_t row = 0; row < picture_.rows; ++row) {
      start(row);
      for (std::int64_t column : shown) csv += ',' + csvNumber(columns_.value(row, column));
      for (std::size_t p = 0; p < pinned.size(); ++p) {
        if (pinned[p].columns.width() == 0) continue;
        const std::int64_t its = rowOf(pinned, p, row, pinned[p].columns.rows());
        for (std::int64_t column : shown) csv += ',' + (its < 0 ? QByteArray() : csvNumber(pinned[p].columns.value(its, column)));
      }
    }
  }
  return QString::fromUtf8(csv + '\n');
}

}  // namespace reclab
