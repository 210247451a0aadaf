// SPDX-License-Identifier: GPL-3.0-or-later
// The flat views of the states: the map of all units, and some of them as lines.
#include <algorithm>
#include <cmath>

#include "panels/trajectories/past_view.h"
#include "panels/trajectories/trajectories.h"
#include "plot/parts/curves.h"
#include "plot/parts/layout.h"
#include "plot/parts/pinned.h"
#include "plot/plot.h"
#include "plot/plot_panel.h"
#include "plot/value_axis.h"
#include "scene/trajectory_view.h"

namespace reclab {
namespace {

constexpr std::int64_t mostPoints = 200'000;  // of a line; of more rows the extremes of neighbouring ones

/// One column as a curve.
void fillLine(QCPGraph* graph, const StateColumns& columns, std::int64_t rows, std::int64_t column, std::optional<QCPRange>& all) {
  fillCurve(graph, columns.steps(), rows, [&](std::int64_t row) { return columns.value(row, column); }, mostPoints);
  bool found = false;
  if (const QCPRange its = graph->getValueRange(found); found) all = all ? all->expanded(its) : its;
}

}  // namespace

void TrajectoriesPanel::showMap() {
  if (!picture_.matrix) return;
  mapFresh_ = true;
  heat_->setData(picture_.matrix, columns_.width(), picture_.matrixSteps);
  const double scale = picture_.matrixScale > 0.0 ? picture_.matrixScale : 1.0;
  heat_->setScale(-scale, scale);
  bar_->show(*heat_, picture_.matrixBeyond ? tr("state (0.5 % lie beyond)") : tr("state"));
  QCPAxis* units = map_->axisRect()->axis(QCPAxis::atLeft);
  units->setRange(-0.5, static_cast<double>(columns_.width()) - 0.5);
  map_->clearItems();
  if (columns_.parts().size() > 1) {
    // Units are counted within their array, so the axis names the arrays.
    const QSharedPointer<QCPAxisTickerText> names(new QCPAxisTickerText);
    for (const StateColumns::Part& part : columns_.parts()) {
      names->addTick(static_cast<double>(part.first) + 0.5 * static_cast<double>(part.width - 1), part.name);
      if (part.first == 0) continue;
      auto* border = new StraightLine(map_->axisRect(), QStringLiteral("main"));
      border->setPen(QPen(map_->theme().axis, 1));
      border->setLevel(static_cast<double>(part.first) - 0.5);
    }
    units->setTicker(names);
    units->setTickLength(0, 0);
    units->setLabel({});
  } else {
    const QSharedPointer<QCPAxisTickerFixed> whole(new QCPAxisTickerFixed);
    whole->setTickStep(1.0);
    whole->setScaleStrategy(QCPAxisTickerFixed::ssMultiples);
    whole->setTickCount(4);
    units->setTicker(whole);
    units->setTickLength(0, 4);
    units->setLabel(columns_.parts().empty() ? QString() : tr("unit of %1").arg(columns_.parts().front().name));
  }
  map_->setCursorStep(step_);
  applyRange();
  map_->redraw();
}

/// The same units of pinned runs, thin, in the run's colour; the units by their dashes.
void TrajectoriesPanel::drawPinnedLines(std::optional<QCPRange>& all) {
  const std::vector<PinnedState> states = pinnedStates();
  std::size_t at = 0;
  for (const Run& run : pinned_) {
    const PinnedState& state = states[at++];
    if (state.columns.width() == 0) {
      addPinWithout(legend_, run, lines_->theme(), state.label.mid(run.label.size() + 2));
      continue;
    }
    QList<QCPLayerable*> shown;
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      QCPGraph* graph = lines_->addCurve(lines_->axisRect(), run.colour, 1.0, curveStyle(static_cast<int>(i)));
      Plot::setQuiet(graph);
      fillLine(graph, state.columns, state.columns.finiteRows(), chosen_[i], all);
      shown << graph;
    }
    addPin(legend_, run, QPen(run.colour, 1.0), shown, {}, tr("The same units, in the order of their names: solid, dashed, dash and dot."));
  }
}

void TrajectoriesPanel::showLines() {
  linesFresh_ = true;
  if (chosen_.empty() && !chosenByHand_) {
    std::vector<std::int64_t> order(picture_.spread.size());
    std::iota(order.begin(), order.end(), 0);
    const auto most = order.begin() + std::ptrdiff_t(std::min<std::size_t>(pinned_.size() > 1 ? 1 : 5, order.size()));
    std::partial_sort(order.begin(), most, order.end(), [&](std::int64_t a, std::int64_t b) {
      const double va = picture_.spread[std::size_t(a)], vb = picture_.spread[std::size_t(b)];
      return va != vb ? va > vb : a < b;
    });
    chosen_.assign(order.begin(), most);
  }
  lines_->clearGraphs();
  legend_->clear();
  const std::int64_t rows = picture_.rows;
  std::optional<QCPRange> all;
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    const QPen pen = lines_->theme().curve(static_cast<int>(i), 1.5);
    QCPGraph* graph = lines_->addCurve(lines_->axisRect(), pen.color(), pen.widthF(), pen.style());
    fillLine(graph, columns_, rows, chosen_[i], all);
    const QString name = columns_.columnName(chosen_[i]);
    legend_->add(name, name, graph->pen(), {graph});
  }
  drawPinnedLines(all);
  QCPAxis* values = lines_->axisRect()->axis(QCPAxis::atLeft);
  values_->fit(widened(all.value_or(QCPRange()), 0.05));
  values->setLabel(columns_.parts().size() == 1 ? columns_.parts().front().name : tr("state"));
  lines_->setCursorStep(step_);
  applyRange();
  lines_->redraw();
}

void TrajectoriesPanel::showPast() {
  const QString key = array_->currentData().toString();
  if (!pastFresh_) past_->setState(trace_, key.section('/', 0, 0), key.section('/', 1));
  pastFresh_ = true;
  past_->setStep(step_);
}

}  // namespace reclab
