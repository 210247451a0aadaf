// SPDX-License-Identifier: GPL-3.0-or-later
// The states as figures and as a table.
#include <QApplication>
#include <QClipboard>
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

/// The title over the picture, or over the sentence that says why there is none.
void TrajectoriesPanel::drawScene(QPainter* painter, QSize size, bool vectors) const {
  const Theme theme = Theme::of(this);
  const int top = QFontMetrics(theme.large, this).height() + 16;
  const QSize below(size.width(), size.height() - top);
  painter->fillRect(QRect(QPoint(0, 0), size), theme.base);
  if (const QString reason = emptyReason(); !reason.isEmpty()) {
    painter->setFont(theme.normal);
    painter->setPen(theme.text);
    painter->drawText(QRect(64, top, size.width() - 128, below.height()), Qt::AlignCenter | Qt::TextWordWrap, reason);
  } else {
    painter->save();
    painter->translate(0, top);
    if (vectors)
      scene_->paintVectors(*painter, below);
    else
      painter->drawImage(QPointF(0, 0), scene_->image(below, 2.0));
    painter->restore();
  }
  // The title last: a curve that was zoomed out of the picture ends under it.
  painter->fillRect(QRect(0, 0, size.width(), top), theme.base);
  painter->setFont(theme.large);
  painter->setPen(theme.text);
  painter->drawText(QRect(8, 0, size.width() - 16, top), Qt::AlignVCenter | Qt::AlignLeft,
                    QFontMetrics(theme.large, this).elidedText(figureTitle(), Qt::ElideRight, size.width() - 16));
}

QString TrajectoriesPanel::saveFigure(const QString& file, Format format) {
  finish();
  const FigureText text = figureText(figureTitle(), trace_.get());
  if (emptyReason().isEmpty() && view_ == View::map) return map_->saveFigure(file, format, text);
  if (emptyReason().isEmpty() && view_ == View::lines) return lines_->saveFigure(file, format, text);
  if (emptyReason().isEmpty() && view_ == View::past) return past_->saveFigure(file, format, text);
  const Theme theme = Theme::of(this);
  const QSize whole = figureSize() + QSize(0, QFontMetrics(theme.large, this).height() + 16);
  return saveDrawing(file, format, whole, theme.base, logicalDpiX(), text,
                     [&](QCPPainter* painter) { drawScene(painter, whole, format != Format::png); });
}

void TrajectoriesPanel::copyFigure() {
  finish();
  if (!emptyReason().isEmpty()) return QGuiApplication::clipboard()->setText(emptyReason());
  if (view_ == View::map) return map_->copyFigure(figureTitle());
  if (view_ == View::lines) return lines_->copyFigure(figureTitle());
  if (view_ == View::past) return past_->copyFigure(figureTitle());
  const QSize whole = figureSize() + QSize(0, QFontMetrics(Theme::of(this).large, this).height() + 16);
  QGuiApplication::clipboard()->setImage(
      drawnImage(whole, 2.0, Theme::of(this).base, [&](QCPPainter* painter) { drawScene(painter, whole, false); }));
}

QString TrajectoriesPanel::dataAsCsv() const {
  const_cast<TrajectoriesPanel*>(this)->finish();
  if (!emptyReason().isEmpty()) return {};
  if (view_ == View::past) return past_->dataAsCsv();
  // The row of a pinned run at the same step, -1 when it has none.
  const auto rowOf = [this](const std::vector<PinnedState>& pinned, std::size_t which, std::int64_t row, std::int64_t rows) -> std::int64_t {
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
        for (const QString& name : picture_.trajectory->names) csv += ',' + csvCell(QStringLiteral("%1 [%2]").arg(name, way.label)).toUtf8();
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
        for (std::int64_t column : shown) csv += ',' + csvCell(QStringLiteral("%1 [%2]").arg(columns_.columnName(column), state.label)).toUtf8();
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
