// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/sensitivity/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "panels/panel_info.h"
#include "plot/pinned.h"

namespace reclab {

namespace {

constexpr double decades_shown = 12.0;  // below the largest
constexpr int room_for_row = 260;       // height of the plot
constexpr double a_hundredth = 2.0;     // decades
constexpr double no_sensitivity = std::numeric_limits<double>::quiet_NaN();

/// Powers of ten of values from which a whole number was taken, so that all of them are below 0 and have colours of one map.
class ShiftedPowers : public PowerTicker {
 public:
  explicit ShiftedPowers(double shift) : shift_(shift) {}

 protected:
  QString getTickLabel(double tick, const QLocale& locale, QChar format, int precision) override { return PowerTicker::getTickLabel(tick + shift_, locale, format, precision); }

 private:
  double shift_;
};

QString sensitivityText(double log10) { return std::isfinite(log10) ? powerAsNumber(log10, 3) : log10 < 0 ? QStringLiteral("0") : SensitivityPanel::tr("not finite"); }

}  // namespace

SensitivityPanel::SensitivityPanel(QWidget* parent) : PlotPanel(parent) {
  connect(plot_, &QCustomPlot::beforeReplot, this, &SensitivityPanel::fitHeight);
  plot_->setLeastPicture(240);
  said_ = new Paragraph(plot_);
  said_->setLayer(QStringLiteral("overlay"));  // it moves with the cursor
  legend_ = new Legend(plot_);
  grid_ = new QCPLayoutGrid;
  grid_->setRowSpacing(2);
  grid_->setColumnSpacing(2);
  plot_->plotLayout()->addElement(0, 0, grid_);
  plot_->plotLayout()->addElement(1, 0, legend_);
  plot_->plotLayout()->addElement(2, 0, said_);
  map_rect_ = plot_->makeRect();
  row_rect_ = plot_->makeRect();
  bar_ = new ColourBar(plot_);
  grid_->addElement(0, 0, map_rect_);
  grid_->addElement(0, 1, bar_);
  grid_->addElement(1, 0, row_rect_);
  grid_->setRowStretchFactor(0, 2.4);
  auto* left = new QCPMarginGroup(plot_);
  for (QCPAxisRect* rect : {map_rect_, row_rect_}) rect->setMarginGroup(QCP::msLeft | QCP::msRight, left);
  auto* across = new QCPMarginGroup(plot_);
  bar_->setMarginGroup(QCP::msTop | QCP::msBottom, across);
  map_rect_->setMarginGroup(QCP::msTop | QCP::msBottom, across);
  plot_->addTimeRect(map_rect_);
  plot_->addTimeRect(row_rect_, sensitivityText);
  map_rect_->axis(QCPAxis::atBottom)->setTickLabels(false);
  map_rect_->axis(QCPAxis::atLeft)->setLabel(tr("input of step s"));
  for (const QCPAxis::AxisType side : {QCPAxis::atLeft, QCPAxis::atBottom}) map_rect_->axis(side)->grid()->setVisible(false);
  row_rect_->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new PowerTicker));
  row_rect_->axis(QCPAxis::atLeft)->setLabel(tr("at the cursor"));
  values_ = plot_->addValueAxis(row_rect_);
  addActions({values_->lockAction(), values_->resetAction()});
  heatmap_ = new Heatmap(map_rect_->axis(QCPAxis::atBottom), map_rect_->axis(QCPAxis::atLeft));
  row_ = plot_->addCurve(row_rect_, plot_->theme().series(0), 1.6);
  row_->setLayer(QStringLiteral("now"));
  plot_->setHoverHandler([this](const QPointF& at) { return tipAt(at); });
  refresh();
}

QString SensitivityPanel::hint() const {
  return tr("How much the input of each step moves the output of each, |dy/du|: how far back a model looks, and what of the past it does not see.");
}

SensitivityPanel::Blocks SensitivityPanel::blocksOf(const Trace& trace) {
  Blocks blocks;
  const TraceArray* array = trace.find(key_of(Kind::sensitivity));
  if (!array || !array->real || array->shape.size() != 2 || array->size() == 0 || array->axes.size() != 2 || std::ssize(array->axes[1].labels) != array->shape[1]) return blocks;
  blocks.array = array;
  blocks.rows = array->steps.empty() ? trace.steps : array->steps;
  for (const std::string& label : array->axes[1].labels) blocks.columns.push_back(QString::fromStdString(label).toLongLong());
  return blocks;
}

std::int64_t SensitivityPanel::Blocks::columnNear(std::int64_t step) const {
  const auto after = std::ranges::lower_bound(columns, step);
  if (after == columns.end()) return std::ssize(columns) - 1;
  const std::int64_t column = after - columns.begin();
  return column > 0 && step - *(after - 1) < *after - step ? column - 1 : column;
}

QString SensitivityPanel::whyEmpty() const {
  if (const QString said = noRunSentence(trace_.get(), tr("how its inputs move its outputs appears here")); !trace_) return said;
  if (blocksOf(*trace_).array) return {};
  if (trace_->info.outcome == Outcome::diverged || trace_->info.outcome == Outcome::cancelled)
    return tr("This run has no sensitivities, for it ended early: %1").arg(QString::fromStdString(trace_->info.sentence));
  return tr("This run has no sensitivities yet: they come after states and gradients. If they do not, press Run.");
}

void SensitivityPanel::setPinned(const std::vector<Run>& runs) {
  pinned_ = runs;
  refresh();
}

void SensitivityPanel::rebuild() {
  blocks_ = blocksOf(*trace_);
  const Theme& theme = plot_->theme();
  double high = -std::numeric_limits<double>::infinity(), low = -high;
  for (const double x : *blocks_.array->real)
    if (std::isfinite(x)) high = std::max(high, x), low = std::min(low, x);
  if (!std::isfinite(high)) high = low = 0.0;
  floor_ = std::max(low, high - decades_shown);
  const double shift = std::ceil(high);
  auto shown = std::make_shared<std::vector<double>>(*blocks_.array->real);
  for (double& x : *shown) x -= shift;  // −∞ and NaN have no colour
  heatmap_->setData(std::move(shown), std::ssize(blocks_.columns), blocks_.rows);
  heatmap_->setScale(std::min(floor_, high - 1.0) - shift, high - shift);
  bar_->axis()->setTicker(QSharedPointer<QCPAxisTicker>(new ShiftedPowers(shift)));
  bar_->show(*heatmap_, tr("|dy/du|"));
  QCPAxis* inputs = map_rect_->axis(QCPAxis::atLeft);
  const QSharedPointer<StepTicker> ticker(new StepTicker);
  if (blocks_.columns.size() > 1)
    ticker->setTime(static_cast<double>(blocks_.columns.front()), static_cast<double>(blocks_.columns.back() - blocks_.columns.front()) / static_cast<double>(blocks_.columns.size() - 1));
  inputs->setTicker(ticker);
  inputs->setRange(-0.5, static_cast<double>(blocks_.columns.size()) - 0.5);
  row_->setPen(QPen(theme.series(0), 1.6));
  makePins();
  const double pad = std::max(0.05 * (high - floor_), 0.2);
  values_->fit({floor_ - pad, high + pad});
}

/// Pinned runs have their curve at the cursor; the map has room for one run.
void SensitivityPanel::makePins() {
  for (const Pinned& pin : pins_) plot_->removePlottable(pin.curve);
  pins_.clear();
  legend_->clear();
  for (const Run& run : pinned_) {
    if (!run.trace) continue;
    Blocks blocks = blocksOf(*run.trace);
    if (!blocks.array) {
      addPinWithout(legend_, run, plot_->theme(), tr("no sensitivities"), notesOn(*run.trace, {Kind::sensitivity}));
      continue;
    }
    QCPGraph* curve = plot_->addCurve(row_rect_, run.colour, 1.2);
    curve->setLayer(QStringLiteral("now"));
    pins_.push_back({run.trace, std::move(blocks), curve});
    addPin(legend_, run, QPen(run.colour, 1.2), {curve}, {}, tr("How much its inputs move its output at the cursor."));
  }
}

void SensitivityPanel::drawRow(QCPGraph* curve, const Trace& trace, const Blocks& blocks) const {
  const std::int64_t row = trace.row_of_step(*blocks.array, step_);
  QVector<QCPGraphData> points;
  for (std::int64_t column = 0; column < std::ssize(blocks.columns); ++column) {
    const double x = blocks.at(row, column);
    points.append({static_cast<double>(blocks.columns[static_cast<std::size_t>(column)]), std::isfinite(x) ? x : no_sensitivity});
  }
  curve->data()->set(points, true);
}

SensitivityPanel::Reach SensitivityPanel::reachOf(std::int64_t row) const {
  Reach reach;
  const std::int64_t t = blocks_.rows[static_cast<std::size_t>(row)];
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t column = 0; column < std::ssize(blocks_.columns); ++column)
    if (const double x = blocks_.at(row, column); std::isfinite(x) && x > largest) largest = x, reach.strongest = blocks_.columns[static_cast<std::size_t>(column)];
  reach.largest = largest;
  for (std::int64_t column = 0; column < std::ssize(blocks_.columns); ++column) {
    const std::int64_t s = blocks_.columns[static_cast<std::size_t>(column)];
    if (blocks_.at(row, column) < largest - a_hundredth || std::isnan(blocks_.at(row, column))) continue;
    reach.back = std::max(reach.back, t - s);
    reach.ahead = std::max(reach.ahead, s - t);
  }
  return reach;
}

void SensitivityPanel::moveTime() {
  drawRow(row_, *trace_, blocks_);
  for (const Pinned& pin : pins_) drawRow(pin.curve, *pin.trace, pin.blocks);
  const std::int64_t row = trace_->row_of_step(*blocks_.array, step_), t = blocks_.rows[static_cast<std::size_t>(row)];
  const Reach reach = reachOf(row);
  QStringList said;
  if (reach.strongest < 0) {
    said << tr("No input moves the output of step %1.").arg(grouped(t));
  } else {
    said << tr("The output of step %1 is moved most by the input of step %2, |dy/du| = %3; those that move it by a hundredth of that or more are up to %4 steps back")
                .arg(grouped(t), grouped(reach.strongest), sensitivityText(reach.largest), grouped(reach.back)) +
                (reach.ahead > 0 ? tr(" and up to %1 ahead.").arg(grouped(reach.ahead)) : QStringLiteral("."));
  }
  said << tr("Without colour: the output does not depend on the input.");
  said << notesOn(*trace_, {Kind::sensitivity});
  said.removeAll(QString());
  const QSize before = said_->minimumOuterSizeHint();
  said_->setText(said.join(u' '), true);
  if (said_->minimumOuterSizeHint() != before) plot_->redraw();
  plot_->redrawNow();
}

QString SensitivityPanel::makeHeadline() const {
  const Reach reach = reachOf(trace_->row_of_step(*blocks_.array, step_));
  return reach.strongest < 0 ? QString() : tr("1 % within %1 steps").arg(grouped(std::max(reach.back, reach.ahead)));
}

/// In a low panel the map is alone.
void SensitivityPanel::fitHeight() {
  const bool low = plot_->height() < room_for_row;
  if (low == low_plot_) return;
  low_plot_ = low;
  row_rect_->setVisible(!low);
  row_rect_->setMinimumSize(low ? QSize(0, 0) : QSize(30, 22));
  row_rect_->setMaximumSize(QWIDGETSIZE_MAX, low ? 0 : QWIDGETSIZE_MAX);
  for (const QCPAxis::AxisType side : {QCPAxis::atLeft, QCPAxis::atBottom}) row_rect_->axis(side)->setVisible(!low);
  row_rect_->setAutoMargins(low ? QCP::msLeft | QCP::msRight : QCP::msAll);
  if (low) row_rect_->setMargins(QMargins());
  map_rect_->axis(QCPAxis::atBottom)->setTickLabels(low);  // else those of the curve
}

QString SensitivityPanel::tipAt(const QPointF& position) const {
  if (!blocks_.array) return {};
  std::int64_t t = 0, column = 0;
  double value = 0.0;
  const auto text = [&](std::int64_t s, double x) { return tr("output of step %1, input of step %2: |dy/du| = %3").arg(grouped(t), grouped(s), sensitivityText(x)); };
  if (heatmap_->at(position, &t, &column, &value)) {
    const std::int64_t row = trace_->row_of_step(*blocks_.array, t);
    return text(blocks_.columns[static_cast<std::size_t>(column)], blocks_.at(row, column));
  }
  if (row_rect_->visible() && row_rect_->rect().contains(position.toPoint())) {
    const std::int64_t row = trace_->row_of_step(*blocks_.array, step_);
    column = blocks_.columnNear(std::llround(row_rect_->axis(QCPAxis::atBottom)->pixelToCoord(position.x())));
    t = blocks_.rows[static_cast<std::size_t>(row)];
    return text(blocks_.columns[static_cast<std::size_t>(column)], blocks_.at(row, column));
  }
  return {};
}

QString SensitivityPanel::dataAsCsv() const {
  if (!trace_ || !emptyReason().isEmpty()) return {};
  // Pinned runs have the rows of the same steps.
  QByteArray text = "step,time";
  const auto header = [&](const Blocks& blocks, const QString& run) {
    for (const std::int64_t s : blocks.columns) text += ',' + csvCell(QStringLiteral("log10 |dy/du| of step %1%2").arg(s).arg(run)).toUtf8();
  };
  header(blocks_, {});
  std::vector<Blocks> others;
  for (const Run& run : pinned_)
    if (run.trace && blocksOf(*run.trace).array) {
      others.push_back(blocksOf(*run.trace));
      header(others.back(), QStringLiteral(" [%1]").arg(run.label));
    }
  text += '\n';
  for (std::int64_t row = 0; row < std::ssize(blocks_.rows); ++row) {
    const std::int64_t step = blocks_.rows[static_cast<std::size_t>(row)], in_trace = trace_->row_of_step(step);
    const bool timed = in_trace >= 0 && trace_->steps[static_cast<std::size_t>(in_trace)] == step;
    text += QByteArray::number(static_cast<qlonglong>(step)) + ',' + (timed ? csvNumber(trace_->time[static_cast<std::size_t>(in_trace)]) : QByteArray());
    for (std::int64_t column = 0; column < std::ssize(blocks_.columns); ++column) text += ',' + csvNumber(blocks_.at(row, column));
    for (const Blocks& other : others) {
      const auto same = std::ranges::lower_bound(other.rows, step);
      const bool there = same != other.rows.end() && *same == step;
      for (std::int64_t column = 0; column < std::ssize(other.columns); ++column) text += ',' + (there ? csvNumber(other.at(same - other.rows.begin(), column)) : QByteArray());
    }
    text += '\n';
  }
  return QString::fromUtf8(text);
}

RECLAB_PANEL_IS(sensitivity, SensitivityPanel)

}  // namespace reclab
