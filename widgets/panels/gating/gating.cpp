// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/gating/gating.h"

#include <QSignalBlocker>
#include <algorithm>
#include <cmath>

#include "panels/panel_info.h"
#include "plain_text.h"
#include "plot/parts/pinned.h"
#include "plot/value_axis.h"

namespace reclab {

namespace {

constexpr int bins = 20;
constexpr int room_for_shares = 350, room_for_curve = 230, height_of_strip = 44;  // of the plot, and of the curve where there are no shares
constexpr std::int64_t entries_a_pass = 400'000;  // statistics are computed for so many entries of the visible range at most

}  // namespace

GatingPanel::GatingPanel(QWidget* parent) : Described(parent), map_(plot_, [this] { fitRows(); }) {
  gates_ = addChoice("gate", true);
  beside_ = addChoice("beside", true, tr("Pinned runs without a gate of this name are drawn by the gate that is chosen here."));
  beside_->hide();
  for (QComboBox* box : {gates_, beside_}) box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  controls_->addStretch();

  connect(plot_, &QCustomPlot::beforeReplot, this, &GatingPanel::fitHeight);
  plot_->setLeastPicture(252);  // the map, the curve under it and their axis
  said_ = new CursorText(plot_);
  QCPLayoutGrid* grid = closeGrid();
  legend_ = new Legend(plot_);
  stack(plot_, {grid, legend_, said_});
  mean_rect_ = plot_->makeRect();
  share_rect_ = plot_->makeRect();
  histogram_rect_ = plot_->makeRect([this] { histogram_rect_->axis(QCPAxis::atBottom)->setLabel(labelOfBars()); });
  grid->addElement(0, 0, map_.rect);
  grid->addElement(0, 1, map_.bar);
  grid->addElement(1, 0, share_rect_);
  grid->addElement(2, 0, mean_rect_);
  grid->addElement(2, 1, histogram_rect_);
  grid->setColumnStretchFactor(0, 3.6);
  grid->setColumnStretchFactor(1, 1);
  grid->setRowStretchFactor(0, 2.2);
  grid->setRowStretchFactor(1, 0.6);
  grid->setRowStretchFactor(2, 1.0);
  lineUp({map_.rect, mean_rect_, share_rect_}, QCP::msLeft | QCP::msRight);
  lineUp({mean_rect_, histogram_rect_}, QCP::msTop | QCP::msBottom);
  for (QCPAxisRect* rect : {map_.rect, share_rect_}) rect->axis(QCPAxis::atBottom)->setTickLabels(false);

  plot_->addTimeRect(map_.rect);
  plot_->addTimeRect(mean_rect_);
  plot_->addTimeRect(share_rect_, gatePercent);
  map_.rect->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new StepTicker));
  mean_rect_->axis(QCPAxis::atLeft)->setLabel(tr("value"));
  share_rect_->axis(QCPAxis::atLeft)->setLabel(tr("share"));
  share_rect_->axis(QCPAxis::atLeft)->setRange(-0.03, 1.03);
  auto percents = QSharedPointer<QCPAxisTickerText>(new QCPAxisTickerText);
  percents->addTick(0.0, QStringLiteral("0 %"));
  percents->addTick(1.0, QStringLiteral("100 %"));
  share_rect_->axis(QCPAxis::atLeft)->setTicker(percents);
  histogram_rect_->axis(QCPAxis::atLeft)->setTickLabels(false);
  histogram_rect_->axis(QCPAxis::atBottom)->setTicker(QSharedPointer<QCPAxisTicker>(new StepTicker));
  histogram_rect_->setRangeDrag({});
  histogram_rect_->setRangeZoom({});

  const Theme& theme = plot_->theme();
  q10_ = plot_->addCurve(mean_rect_, theme.shown(), 0.8);
  q90_ = plot_->addCurve(mean_rect_, theme.shown(), 0.8);
  mean_ = plot_->addCurve(mean_rect_, theme.shown(), 1.8);
  below_ = plot_->addCurve(share_rect_, theme.series(2), 1.0);
  above_ = plot_->addCurve(share_rect_, theme.series(1), 1.0);
  below_->setName(tr("closed"));
  above_->setName(tr("open"));
  Plot::setQuiet(q10_);
  Plot::setQuiet(q90_);
  q10_->setChannelFillGraph(q90_);
  histogram_ = new QCPBars(histogram_rect_->axis(QCPAxis::atLeft), histogram_rect_->axis(QCPAxis::atBottom));
  histogram_->setSelectable(QCP::stNone);
  histogram_->setLayer(QStringLiteral("now"));

  connect(gates_, &QComboBox::activated, this, [this](int index) {
    key_ = gates_->itemData(index).toString();
    if (trace_) chosen_[preset()] = key_;
    refresh();
  });
  connect(beside_, &QComboBox::activated, this, [this](int index) {
    if (gate_) stands_[gateName(*gate_)] = beside_->itemData(index).toString();
    refresh();
  });
  connect(plot_, &Plot::timeRangeChanged, this, [this] {
    if (emptyReason().isEmpty() && gate_) drawStatistics();
  });
  plot_->setHoverHandler([this](const QPointF& at) { return tipAt(at); });
  // Colours, curves and bars have one scale, so it is held as one.
  lock_ = new QAction(tr("Hold the value axis"), this);
  lock_->setObjectName(QStringLiteral("hold"));
  lock_->setCheckable(true);
  lock_->setToolTip(tr("A gate without fixed ends keeps the scale of its colours, curves and bars whatever is changed."));
  connect(lock_, &QAction::toggled, this, &GatingPanel::refresh);
  addAction(lock_);
  refresh();
}

/// The gate picked by hand for this model, else the one that its preset names ("forget": the first gate of that name), else the former one.
QString GatingPanel::gateToShow() const {
  const QString by_hand = chosen_.value(preset()), named = wanted();
  QString found;
  for (const TraceArray* array : trace_->of(Kind::gate)) {
    const QString key = QString::fromStdString(array->key);
    if (!array->has_rows()) continue;
    if (key == by_hand) return key;
    if (found.isEmpty() && !named.isEmpty() && (key.section(u'/', 2) == named || key.section(u'/', 1) == named)) found = key;
  }
  return found.isEmpty() ? key_ : found;
}

const TraceArray* GatingPanel::gateOf(const Trace& pinned) const {
  if (const TraceArray* same = pinned.find(gate_->key); same != nullptr && same->has_rows()) return same;
  const QString name = stands_.value(gateName(*gate_)), layer = QString::fromStdString(gate_->key).section(u'/', 1, 1);
  const TraceArray* found = nullptr;
  if (name.isEmpty() || !gatesLike(pinned, *gate_).contains(name)) return found;
  for (const TraceArray* one : pinned.of(Kind::gate))
    if (one->has_rows() && gateName(*one) == name && (found == nullptr || QString::fromStdString(one->key).section(u'/', 1, 1) == layer))
      found = one;
  return found;
}

/// Lists the gates of pinned runs without a gate of the name that is shown.
void GatingPanel::fillBeside() {
  QStringList names;
  for (const Run& run : pinned_)
    if (const TraceArray* same = run.trace->find(gate_->key); same == nullptr || !same->has_rows())
      for (const QString& name : gatesLike(*run.trace, *gate_))
        if (!names.contains(name)) names << name;
  const QSignalBlocker quiet(beside_);
  beside_->clear();
  beside_->addItem(tr("pins: same"), QString());
  for (const QString& name : names) beside_->addItem(tr("pins: or %1").arg(QString(name).replace(u'_', u' ')), name);
  beside_->setCurrentIndex(std::max(0, beside_->findData(stands_.value(gateName(*gate_)))));
  beside_->setVisible(!names.isEmpty());
  control_row_->setVisible(gates_->count() > 1 || !names.isEmpty());
}

/// Pinned runs have the mean of the gate over time and its histogram at the cursor, as an outline; the map has room for one run.
void GatingPanel::makePins() {
  for (const PinnedGate& pin : pins_) {
    plot_->removePlottable(pin.mean);
    plot_->removePlottable(pin.outline);
  }
  pins_.clear();
  legend_->clear();
  for (const Run& run : pinned_) {
    const TraceArray* gate = gateOf(*run.trace);
    if (gate == nullptr) {
      const QString its = gatesLike(*run.trace, *gate_).join(QStringLiteral(", ")).replace(u'_', u' '),
                    lacks = tr("no %1").arg(gateLabel(*trace_, gate_->key));
      addPinWithout(
          legend_, run, plot_->theme(),
          its.isEmpty() ? run.trace->has(Kind::gate) ? lacks : tr("no gates") : tr("%1, but %2").arg(lacks, its),
          its.isEmpty() ? QString() : tr("Its gates have other names. Which of them stands for this one is chosen above the picture."));
      continue;
    }
    QCPGraph* mean = plot_->addCurve(mean_rect_, run.colour, 1.4);
    auto* outline = new QCPCurve(histogram_rect_->axis(QCPAxis::atBottom), histogram_rect_->axis(QCPAxis::atLeft));
    outline->setPen(QPen(run.colour, 1.4));
    outline->setSelectable(QCP::stNone);
    outline->setLayer(QStringLiteral("now"));
    pins_.push_back({run.trace, gate, realValues(*gate), mean, outline});
    if (!bounded()) {  // the value axis holds theirs too
      const std::vector<double>& values = *pins_.back().values;
      for (std::size_t i = 0, stride = 1 + values.size() / 1'000'000; i < values.size(); i += stride)
        if (std::isfinite(values[i])) low_ = std::min(low_, values[i]), high_ = std::max(high_, values[i]);
    }
    addPin(legend_, run, QPen(run.colour, 1.4), {mean, outline},
           gate->key == gate_->key ? QStringList() : QStringList(gateName(*gate).replace(u'_', u' ')),
           tr("Its mean over time, and how many of its units have which value at the cursor."));
  }
}

GatingPanel::Rows GatingPanel::visibleRows(const std::vector<std::int64_t>& at, const TraceArray& array) const {
  const auto first = std::max<std::int64_t>(0, std::lower_bound(at.begin(), at.end(), plot_->firstStep()) - at.begin() - 1);
  const auto last = std::min<std::int64_t>(array.shape[0] - 1, std::upper_bound(at.begin(), at.end(), plot_->lastStep()) - at.begin());
  const std::int64_t affordable = std::max<std::int64_t>(400, entries_a_pass / array.row_size());
  return {first, last, std::max<std::int64_t>(1, (last - first) / affordable)};
}

void GatingPanel::rebuild() {
  const QSignalBlocker quiet(gates_);
  gates_->clear();
  for (const TraceArray* array : trace_->of(Kind::gate)) {
    if (!array->has_rows()) continue;
    gates_->addItem(gateLabel(*trace_, array->key), QString::fromStdString(array->key));
    gates_->setItemData(gates_->count() - 1, safeTip(QString::fromStdString(array->text)), Qt::ToolTipRole);
  }
  const int index = std::max(0, gates_->findData(gateToShow()));
  gates_->setCurrentIndex(index);
  key_ = gates_->itemData(index).toString();
  gate_ = trace_->find(key_.toStdString());
  gates_->setToolTip(safeTip(QString::fromStdString(gate_->text)));
  fillBeside();

  values_ = realValues(*gate_);
  map_.heatmap->setData(values_, units(), steps());
  const QCPRange before(low_, high_);
  low_ = bounded() ? gate_->low : map_.heatmap->dataLow();
  high_ = bounded() ? gate_->high : map_.heatmap->dataHigh();
  if (!(high_ > low_)) low_ -= 0.5, high_ += 0.5;
  if (!bounded() && key_ == fitted_key_ && (held_ || lock_->isChecked())) {
    const QCPRange kept = lock_->isChecked() ? before : ValueAxis::kept(before, {low_, high_});
    low_ = kept.lower;
    high_ = kept.upper;
  }
  fitted_key_ = key_;
  map_.heatmap->setScale(low_, high_);
  map_.setUnits(units());
  map_.rect->axis(QCPAxis::atLeft)->setLabel(entryOf(*gate_));
  histogram_rect_->axis(QCPAxis::atBottom)->setLabel(entriesOf(*gate_));
  map_.bar->show(*map_.heatmap, gateLabel(*trace_, gate_->key) +
                                    (gate_->unit.empty() ? QString() : QStringLiteral(" (%1)").arg(QString::fromStdString(gate_->unit))));
  makePins();
  const double pad = 0.04 * (high_ - low_);
  for (QCPAxisRect* rect : {mean_rect_, histogram_rect_}) rect->axis(QCPAxis::atLeft)->setRange(low_ - pad, high_ + pad);

  // The bars keep one scale over the whole run, so that steps can be compared.
  int tallest = 1;
  const std::int64_t rows = gate_->shape[0], stride = std::max<std::int64_t>(1, rows * units() / 100'000);
  for (std::int64_t r = 0; r < rows; r += stride)
    for (const int count : gateHistogram(row(r), low_, high_, bins)) tallest = std::max(tallest, count);
  histogram_rect_->axis(QCPAxis::atBottom)->setRange(0, 1.05 * tallest);
  histogram_->setWidth(0.9 * (high_ - low_) / bins);

  const Theme& theme = plot_->theme();
  QColor band = theme.shown();
  band.setAlphaF(theme.dark ? 0.28f : 0.20f);
  mean_->setPen(QPen(theme.shown(), 1.8));
  q10_->setPen(QPen(mixed(theme.shown(), theme.base, 0.55), 0.8));
  q90_->setPen(q10_->pen());
  q10_->setBrush(band);
  below_->setPen(QPen(theme.series(2), 1.2));
  above_->setPen(QPen(theme.series(1), 1.2));
  histogram_->setPen(Qt::NoPen);
  histogram_->setBrush(mixed(theme.shown(), theme.base, 0.8));

  bar_label_ = map_.bar->axis()->label();
  foldShares();
  drawStatistics();
}

/// The map keeps its height: in a low panel the shares go and the curve below is a strip, in a lower one the map is alone.
void GatingPanel::fitHeight() {
  const bool low = plot_->height() < room_for_shares, lowest = plot_->height() < room_for_curve;
  if (gate_ == nullptr || (low == low_plot_ && lowest == lowest_plot_)) return;
  low_plot_ = low;
  lowest_plot_ = lowest;
  for (QCPAxisRect* rect : {mean_rect_, histogram_rect_}) {
    fold(rect, lowest);
    if (low && !lowest) rect->setMaximumSize(QWIDGETSIZE_MAX, height_of_strip);
  }
  map_.rect->axis(QCPAxis::atBottom)->setTickLabels(lowest);  // else those of the curve
  map_.rect->axis(QCPAxis::atBottom)->setLabel(QString());    // which names the time too
  foldShares();
}

/// Without a range there is no saturation, and in a low panel no room for it: its row goes.
void GatingPanel::foldShares() { fold(share_rect_, !bounded() || low_plot_); }

/// The label of the bar is written when it fits beside it.
void GatingPanel::fitRows() {
  const QFontMetrics metrics(plot_->theme().small, plot_);
  map_.bar->axis()->setLabel(metrics.horizontalAdvance(bar_label_) <= map_.rect->height() ? bar_label_ : QString());
}

void GatingPanel::drawStatistics() {
  const std::vector<std::int64_t>& at = steps();
  const auto [first, last, stride] = visibleRows(at, *gate_);
  QVector<QCPGraphData> mean, q10, q90, below, above;
  std::vector<double> scratch;
  for (std::int64_t r = first; r <= last; r += stride) {
    const GateStatistics found = gateStatistics(row(r), gate_->low, gate_->high, scratch);
    const auto x = static_cast<double>(at[static_cast<std::size_t>(r)]);
    mean.append({x, found.mean});
    q10.append({x, found.q10});
    q90.append({x, found.q90});
    below.append({x, found.below});
    above.append({x, found.above});
  }
  mean_->data()->set(mean, true);
  q10_->data()->set(q10, true);
  q90_->data()->set(q90, true);
  below_->data()->set(bounded() ? below : QVector<QCPGraphData>(), true);
  above_->data()->set(bounded() ? above : QVector<QCPGraphData>(), true);
  for (const PinnedGate& pin : pins_) {
    const Rows rows = visibleRows(pin.steps(), *pin.gate);
    QVector<QCPGraphData> means;
    for (std::int64_t r = rows.first; r <= rows.last; r += rows.stride)
      means.append({static_cast<double>(pin.steps()[static_cast<std::size_t>(r)]),
                    gateStatistics(rowOf(*pin.gate, *pin.values, r), pin.gate->low, pin.gate->high, scratch).mean});
    pin.mean->data()->set(means, true);
  }
  plot_->redraw();
}

void GatingPanel::moveTime() {
  const std::int64_t at = trace_->row_of_step(*gate_, step_);
  const std::vector<int> counts = gateHistogram(row(at), low_, high_, bins);
  QVector<QCPBarsData> bars;
  for (int i = 0; i < bins; ++i)
    bars.append({low_ + (i + 0.5) * (high_ - low_) / bins, static_cast<double>(counts[static_cast<std::size_t>(i)])});
  histogram_->data()->set(bars, true);
  for (const PinnedGate& pin : pins_) {
    const std::vector<int> its = gateHistogram(rowOf(*pin.gate, *pin.values, pin.trace->row_of_step(*pin.gate, step_)), low_, high_, bins);
    // Of another width the outline is as long as that of as many units would be.
    const double scale = static_cast<double>(units()) / static_cast<double>(pin.gate->row_size()), side = (high_ - low_) / bins;
    QVector<double> along{0.0}, up{low_};
    for (int i = 0; i < bins; ++i) {
      const double count = scale * its[static_cast<std::size_t>(i)];
      along << count << count;
      up << low_ + i * side << low_ + (i + 1) * side;
    }
    pin.outline->setData(along << 0.0, up << high_);
  }

  said_->say(saidAtCursor());
}

RECLAB_PANEL_IS(gating, GatingPanel)

}  // namespace reclab
