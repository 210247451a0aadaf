// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/parts/layout.h"

#include <algorithm>

namespace reclab {
namespace {

constexpr std::initializer_list<QCPAxis::AxisType> both_axes{QCPAxis::atLeft, QCPAxis::atBottom};

void setShown(QCPLayoutElement* element, bool shown) {
  element->setVisible(shown);
  if (const auto* rect = qobject_cast<QCPAxisRect*>(element))
    for (const QCPAxis::AxisType side : both_axes) rect->axis(side)->setVisible(shown);
}

}  // namespace

void stack(Plot* plot, std::initializer_list<QCPLayoutElement*> rows) {
  int row = 0;
  for (QCPLayoutElement* one : rows) plot->plotLayout()->addElement(row++, 0, one);
}

QCPLayoutGrid* closeGrid() {
  auto* grid = new QCPLayoutGrid;
  grid->setRowSpacing(2);
  grid->setColumnSpacing(2);
  return grid;
}

void lineUp(std::initializer_list<QCPLayoutElement*> pictures, QCP::MarginSides sides) {
  auto* group = new QCPMarginGroup((*pictures.begin())->parentPlot());
  for (QCPLayoutElement* one : pictures) one->setMarginGroup(sides, group);
}

void fold(QCPAxisRect* rect, bool away, Qt::Orientation along) {
  const bool upright = along == Qt::Vertical;
  setShown(rect, !away);
  rect->setMinimumSize(away ? QSize(0, 0) : QSize(30, upright ? 22 : 20));
  rect->setMaximumSize(away && !upright ? 0 : QWIDGETSIZE_MAX, away && upright ? 0 : QWIDGETSIZE_MAX);
  rect->setAutoMargins(!away ? QCP::msAll : upright ? QCP::msLeft | QCP::msRight : QCP::MarginSides());
  if (away) rect->setMargins(QMargins());
}

void showCells(QCPLayoutGrid* grid, std::initializer_list<QCPLayoutElement*> all, const std::vector<PictureCell>& shown) {
  for (QCPLayoutElement* one : all) {
    if (one->layout() == grid) grid->take(one);
    setShown(one, std::ranges::find(shown, one, &PictureCell::element) != shown.end());
  }
  grid->simplify();
  for (const PictureCell& cell : shown) {
    grid->addElement(cell.row, cell.column, cell.element);
    grid->setRowStretchFactor(cell.row, cell.stretch);
  }
}

void nameValues(QCPAxisRect* rect, const QString& name, const QString& brief) {
  const QFontMetrics metrics(themeOf(rect->parentPlot()).normal, rect->parentPlot());
  rect->axis(QCPAxis::atLeft)->setLabel(metrics.horizontalAdvance(name) <= rect->height() ? name : brief);
}

void hideGrid(QCPAxisRect* rect) {
  for (const QCPAxis::AxisType side : both_axes) rect->axis(side)->grid()->setVisible(false);
}

StraightLine::StraightLine(QCPAxisRect* rect, const QString& layer) : QCPItemStraightLine(rect->parentPlot()) {
  setLayer(layer);
  setSelectable(false);
  setClipToAxisRect(true);
  setClipAxisRect(rect);
  for (QCPItemPosition* point : {point1, point2}) point->setAxes(rect->axis(QCPAxis::atBottom), rect->axis(QCPAxis::atLeft));
}

void StraightLine::setLevel(double value) {
  point1->setCoords(0, value);
  point2->setCoords(1, value);
}

void StraightLine::setUpright(double key) {
  point1->setCoords(key, 0);
  point2->setCoords(key, 1);
}

MapPicture::MapPicture(Plot* plot, std::function<void()> shape)
    : rect(plot->makeRect(std::move(shape))),
      bar(new ColourBar(plot)),
      heatmap(new Heatmap(rect->axis(QCPAxis::atBottom), rect->axis(QCPAxis::atLeft))) {
  hideGrid(rect);
  lineUp({rect, bar}, QCP::msTop | QCP::msBottom);
}

void MapPicture::setUnits(std::int64_t units) { rect->axis(QCPAxis::atLeft)->setRange(-0.5, static_cast<double>(units) - 0.5); }

void MapPicture::setUnits(const std::vector<std::int64_t>& steps) {
  const QSharedPointer<StepTicker> ticker(new StepTicker);
  if (!steps.empty()) {
    const auto first = static_cast<double>(static_cast<Plot*>(rect->parentPlot())->numberOf(steps.front()));
    if (steps.back() - steps.front() == std::ssize(steps) - 1)
      ticker->setFirst(first);
    else
      ticker->setTime(first, static_cast<double>(steps.back() - steps.front()) / static_cast<double>(steps.size() - 1));
  }
  rect->axis(QCPAxis::atLeft)->setTicker(ticker);
  setUnits(std::ssize(steps));
}

}  // namespace reclab
