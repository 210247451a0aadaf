// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/gating/gating.h"

#include <QSignalBlocker>
#include <algorithm>
#include <cmath>

#include "panels/panel_info.h"
#include "plain_text.h"
#include "plot/pinned.h"
#include "plot/value_axis.h"

namespace reclab {

namespace {

constexpr int bins = 20;
constexpr int room_for_shares = 350, room_for_curve = 230, height_of_strip = 44;  // of the plot, and of the curve where there are no shares
constexpr std::int64_t entries_a_pass = 400'000;  // statistics are computed for so many entries of the visible range at most

QString percent(double share) {
  const double hundred = 100.0 * share;
  return QStringLiteral("%1 %").arg(hundred > 0 && hundred < 1 ? number(hundred, 1) : QString::number(std::lround(hundred)));
}

/// "unit", or what the engine calls the entries of a gate: "head".
bool isOfHeads(const TraceArray& gate) { return gate.axes.size() > 1 && gate.axes[1].name == "head" && gate.row_size() == gate.shape[1]; }
QString entryOf(const TraceArray& gate) { return isOfHeads(gate) ? GatingPanel::tr("head") : GatingPanel::tr("unit"); }
QString entriesOf(const TraceArray& gate) { return isOfHeads(gate) ? GatingPanel::tr("heads") : GatingPanel::tr("units"); }

QString gateName(const TraceArray& gate) { return QString::fromStdString(gate.key).section(u'/', 2); }

/// The names of the gates of a run that have the ends of another one, so that both go on one axis.
QStringList gatesLike(const Trace& trace, const TraceArray& other) {
  QStringList names;
  for (const TraceArray* one : trace.of(Kind::gate))
    if (one->has_rows() && one->low == other.low && one->high == other.high && !names.contains(gateName(*one))) names << gateName(*one);
  return names;
}

QString gateLabel(const Trace& trace, const std::string& key) {
  const QString name = QString::fromStdString(key);
  const QString gate = name.section(u'/', 2).replace(u'_', u' ');
  return trace.info.layers > 1 ? GatingPanel::tr("%1, %2").arg(gate, layerName(trace, name.section(u'/', 1, 1))) : gate;
}

}  // namespace

GatingPanel::GatingPanel(QWidget* parent) : PlotPanel(parent) {
  gates_ = new QComboBox;
  gates_->setProperty("choice", "gate");
  gates_->setObjectName(QStringLiteral("gate"));
  gates_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  controls_->addWidget(gates_);
  beside_ = new QComboBox;
  beside_->setProperty("choice", "beside");
  beside_->setObjectName(QStringLiteral("beside"));
  beside_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  beside_->setToolTip(tr("Pinned runs without a gate of this name are drawn by the gate that is chosen here."));
  beside_->hide();
  controls_->addWidget(beside_);
  controls_->addStretch();

  connect(plot_, &QCustomPlot::beforeReplot, this, &GatingPanel::fitHeight);
  plot_->setLeastPicture(252);  // the map, the curve under it and their axis
  said_ = new Paragraph(plot_);
  said_->setLayer(QStringLiteral("overlay"));  // it moves with the cursor
  grid_ = new QCPLayoutGrid;
  plot_->plotLayout()->addElement(0, 0, grid_);
  legend_ = new Legend(plot_);
  plot_->plotLayout()->addElement(1, 0, legend_);
  plot_->plotLayout()->addElement(2, 0, said_);
  grid_->setRowSpacing(2);
  grid_->setColumnSpacing(2);
  map_rect_ = plot_->makeRect([this] { fitRows(); });
  mean_rect_ = plot_->makeRect();
  share_rect_ = plot_->makeRect();
  histogram_rect_ = plot_->makeRect([this] { histogram_rect_->axis(QCPAxis::atBottom)->setLabel(labelOfBars()); });
  bar_ = new ColourBar(plot_);
  grid_->addElement(0, 0, map_rect_);
  grid_->addElement(0, 1, bar_);
  grid_->addElement(1, 0, share_rect_);
  grid_->addElement(2, 0, mean_rect_);
  grid_->addElement(2, 1, histogram_rect_);
  grid_->setColumnStretchFactor(0, 3.6);
  grid_->setColumnStretchFactor(1, 1);
  grid_->setRowStretchFactor(0, 2.2);
  grid_->setRowStretchFactor(1, 0.6);
  grid_->setRowStretchFactor(2, 1.0);
  auto* left = new QCPMarginGroup(plot_);
  for (QCPAxisRect* rect : {map_rect_, mean_rect_, share_rect_}) {
    rect->setMarginGroup(QCP::msLeft | QCP::msRight, left);
    if (rect != mean_rect_) rect->axis(QCPAxis::atBottom)->setTickLabels(false);
  }
  auto* across = new QCPMarginGroup(plot_);
  for (QCPAxisRect* rect : {mean_rect_, histogram_rect_}) rect->setMarginGroup(QCP::msTop | QCP::msBottom, across);
  bar_->setMarginGroup(QCP::msTop | QCP::msBottom, new QCPMarginGroup(plot_));
  map_rect_->setMarginGroup(QCP::msTop | QCP::msBottom, bar_->marginGroup(QCP::msTop));

  plot_->addTimeRect(map_rect_);
  plot_->addTimeRect(mean_rect_);
  plot_->addTimeRect(share_rect_, percent);
  map_rect_->axis(QCPAxis::atLeft)->setLabel(tr("unit"));
  map_rect_->axis(QCPAxis::atBottom)->grid()->setVisible(false);
  map_rect_->axis(QCPAxis::atLeft)->grid()->setVisible(false);
  map_rect_->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new StepTicker));
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

  heatmap_ = new Heatmap(map_rect_->axis(QCPAxis::atBottom), map_rect_->axis(QCPAxis::atLeft));
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
    if (trace_) chosen_[QString::fromStdString(trace_->info.preset)] = key_;
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
  lock_->setCheckable(true);
  lock_->setToolTip(tr("A gate without fixed ends keeps the scale of its colours, curves and bars whatever is changed."));
  connect(lock_, &QAction::toggled, this, &GatingPanel::refresh);
  addAction(lock_);
  refresh();
}

QString GatingPanel::hint() const {
  return tr("What each gate lets through, unit by unit: a gate that stays near 0 or 1 is saturated, and passes next to no gradient.");
}

QString GatingPanel::subject() const { return gate_ ? gateLabel(*trace_, gate_->key) : QString(); }

QString GatingPanel::whyEmpty() const {
  if (const QString said = noRunSentence(trace_.get(), tr("its gates appear here")); !trace_) return said;
  for (const TraceArray* array : trace_->of(Kind::gate))
    if (array->has_rows()) return {};
  if (trace_->info.outcome == Outcome::diverged || trace_->info.outcome == Outcome::cancelled)
    return tr("This run has no gates to show, for it ended early: %1").arg(QString::fromStdString(trace_->info.sentence));
  const QString model = trace_->info.title.empty() ? tr("This model") : QString::fromStdString(trace_->info.title);
  // The window knows what the model has; without one everything was recorded.
  if (property("modelHas").toStringList().contains(QStringLiteral("gates")))
    return tr("The gates of this run were not recorded. Press Run.");
  const QString others = pinsThatHave(pinned_, {Kind::gate});
  return tr("%1 has no gates.").arg(model) + u' ' + (others.isEmpty() ? tr("Choose a gated model, such as LSTM, GRU or Mamba.") : others);
}

void GatingPanel::setPinned(const std::vector<Run>& runs) {
  pinned_ = runs;
  refresh();
}

void GatingPanel::lookAt(const QString& preset, const QString& detail, bool asked) {
  if (detail.isEmpty()) return;
  wanted_[preset] = detail;
  if (asked) chosen_.remove(preset);
  refresh();
}

/// What was picked by hand for this model, else what its preset names ("forget": the first gate of that name), else what was looked at.
QString GatingPanel::gateToShow() const {
  const QString preset = QString::fromStdString(trace_->info.preset), by_hand = chosen_.value(preset), named = wanted_.value(preset);
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

/// What the gates of pinned runs are called that have none of the name that is shown.
void GatingPanel::fillBeside() {
  QStringList names;
  for (const Run& run : pinned_)
    if (const TraceArray* same = run.trace ? run.trace->find(gate_->key) : nullptr; run.trace && (same == nullptr || !same->has_rows()))
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
    if (!run.trace) continue;
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
  heatmap_->setData(values_, units(), steps());
  const QCPRange before(low_, high_);
  low_ = bounded() ? gate_->low : heatmap_->dataLow();
  high_ = bounded() ? gate_->high : heatmap_->dataHigh();
  if (!(high_ > low_)) low_ -= 0.5, high_ += 0.5;
  if (!bounded() && key_ == fitted_key_ && (held_ || lock_->isChecked())) {
    const QCPRange kept = lock_->isChecked() ? before : ValueAxis::kept(before, {low_, high_});
    low_ = kept.lower;
    high_ = kept.upper;
  }
  fitted_key_ = key_;
  heatmap_->setScale(low_, high_);
  map_rect_->axis(QCPAxis::atLeft)->setRange(-0.5, static_cast<double>(units()) - 0.5);
  map_rect_->axis(QCPAxis::atLeft)->setLabel(entryOf(*gate_));
  histogram_rect_->axis(QCPAxis::atBottom)->setLabel(entriesOf(*gate_));
  bar_->show(*heatmap_, gateLabel(*trace_, gate_->key) +
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

  bar_label_ = bar_->axis()->label();
  showShares(bounded() && !low_plot_);
  drawStatistics();
}

/// The map keeps its height: in a low panel the shares go and the curve below is a strip, in a lower one the map is alone.
void GatingPanel::fitHeight() {
  const bool low = plot_->height() < room_for_shares, lowest = plot_->height() < room_for_curve;
  if (gate_ == nullptr || (low == low_plot_ && lowest == lowest_plot_)) return;
  low_plot_ = low;
  lowest_plot_ = lowest;
  for (QCPAxisRect* rect : {mean_rect_, histogram_rect_}) {
    rect->setVisible(!lowest);
    rect->setMinimumSize(lowest ? QSize(0, 0) : QSize(30, 22));
    rect->setMaximumSize(QWIDGETSIZE_MAX, lowest ? 0 : low ? height_of_strip : QWIDGETSIZE_MAX);
    for (const QCPAxis::AxisType side : {QCPAxis::atLeft, QCPAxis::atBottom}) rect->axis(side)->setVisible(!lowest);
    rect->setAutoMargins(lowest ? QCP::msLeft | QCP::msRight : QCP::msAll);
    if (lowest) rect->setMargins(QMargins());
  }
  map_rect_->axis(QCPAxis::atBottom)->setTickLabels(lowest);  // else those of the curve
  map_rect_->axis(QCPAxis::atBottom)->setLabel(QString());    // which names the time too
  showShares(bounded() && !low_plot_);
}

/// Without a range there is no saturation, and in a low panel no room for it: its row goes.
void GatingPanel::showShares(bool shares) {
  share_rect_->setVisible(shares);
  share_rect_->setMinimumSize(shares ? QSize(30, 22) : QSize(0, 0));
  share_rect_->setMaximumSize(shares ? QSize(QWIDGETSIZE_MAX, QWIDGETSIZE_MAX) : QSize(QWIDGETSIZE_MAX, 0));
  for (const QCPAxis::AxisType side : {QCPAxis::atLeft, QCPAxis::atBottom}) share_rect_->axis(side)->setVisible(shares);
  share_rect_->setAutoMargins(shares ? QCP::msAll : QCP::msLeft | QCP::msRight);
  if (!shares) share_rect_->setMargins(QMargins());
}

/// In a figure without the cursor, which step it is, where there is room.
QString GatingPanel::labelOfBars() const {
  const QString at = tr("units, step %1").arg(grouped(step_));
  return !plot_->drawsCursor() && QFontMetrics(plot_->theme().normal, plot_).horizontalAdvance(at) <= histogram_rect_->width()
             ? at
             : tr("units");
}

/// The label of the bar is written when it fits beside it.
void GatingPanel::fitRows() {
  const QFontMetrics metrics(plot_->theme().small, plot_);
  bar_->axis()->setLabel(metrics.horizontalAdvance(bar_label_) <= map_rect_->height() ? bar_label_ : QString());
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

GateStatistics GatingPanel::statisticsAtCursor() const {
  std::vector<double> scratch;
  return gateStatistics(row(trace_->row_of_step(*gate_, step_)), gate_->low, gate_->high, scratch);
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

  const std::int64_t recorded = steps()[static_cast<std::size_t>(at)];
  QString text = recorded == step_ ? tr("At step %1,").arg(grouped(step_))
                                   : tr("At step %1, the nearest to step %2 that was recorded,").arg(grouped(recorded), grouped(step_));
  if (bounded()) {
    const GateStatistics found = statisticsAtCursor();
    const QString closed = tr("nearly closed (below %1)").arg(number(gate_->low + 0.1 * (gate_->high - gate_->low)));
    const QString open = tr("nearly open (above %1)").arg(number(gate_->low + 0.9 * (gate_->high - gate_->low)));
    if (units() == 1)
      text += tr(" the one %1 is %2.")
                  .arg(entryOf(*gate_), found.below > 0   ? closed
                                        : found.above > 0 ? open
                                                          : tr("neither %1 nor %2").arg(closed, open));
    else
      text += tr(" %1 of %2 %6 are %3, %4 %5. Band: 10 to 90 % of the %6.")
                  .arg(percent(found.below), grouped(units()), closed, percent(found.above), open, entriesOf(*gate_));
  } else {
    text += tr(" the mean is %1. This gate has no upper and lower end, so it cannot saturate.").arg(number(statisticsAtCursor().mean));
    if (units() > 1) text += tr(" Band: 10 to 90 % of the %1.").arg(entriesOf(*gate_));
  }
  const QSize before = said_->minimumOuterSizeHint();
  said_->setText(text, true);
  if (said_->minimumOuterSizeHint() != before) plot_->redraw();
  plot_->redrawNow();
}

QString GatingPanel::makeHeadline() const {
  const GateStatistics found = statisticsAtCursor();
  return bounded() ? tr("%1 saturated").arg(percent(found.below + found.above)) : tr("mean %1").arg(number(found.mean));
}

QString GatingPanel::tipAt(const QPointF& position) const {
  if (!gate_) return {};
  std::int64_t step = 0, unit = 0;
  double value = 0;
  if (heatmap_->at(position, &step, &unit, &value))
    return tr("%1 %2 at step %3: %4").arg(entryOf(*gate_), grouped(unit), grouped(step), number(value, 4));
  if (mean_rect_->rect().contains(position.toPoint()))
    return tr("The mean over all %1, and the band that holds 80 % of them.").arg(entriesOf(*gate_));
  if (share_rect_->visible() && share_rect_->rect().contains(position.toPoint()))
    return tr("The share of %1 above 0.9 and below 0.1 of the gate's range.").arg(entriesOf(*gate_));
  if (histogram_rect_->rect().contains(position.toPoint())) return tr("How many %1 have which value at the cursor.").arg(entriesOf(*gate_));
  return {};
}

QString GatingPanel::dataAsCsv() const {
  if (!trace_ || !emptyReason().isEmpty()) return {};
  const std::int64_t n = units();
  QByteArray text = "step,time,mean,quantile_10,quantile_90";
  if (bounded()) text += ",share_below,share_above";
  for (std::int64_t j = 0; j < n; ++j)
    text += ',' + csvCell(QString::fromStdString(gate_->key)).toUtf8() + '/' + QByteArray::number(static_cast<qlonglong>(j));
  std::vector<std::pair<const PinnedGate*, std::size_t>> others;  // and how far their rows were read
  for (const Run& run : pinned_)
    for (const PinnedGate& pin : pins_)
      if (pin.trace == run.trace) {
        text +=
            ',' + csvCell((pin.gate->key == gate_->key ? QStringLiteral("mean [%1]")
                                                       : QStringLiteral("mean of %2 [%1]").arg(QStringLiteral("%1"), gateName(*pin.gate)))
                              .arg(run.label))
                      .toUtf8();
        others.emplace_back(&pin, 0);
      }
  text += '\n';
  std::vector<double> scratch;
  const std::vector<std::int64_t>& at = steps();
  for (std::int64_t r = 0; r < gate_->shape[0]; ++r) {
    const std::int64_t step = at[static_cast<std::size_t>(r)], in_trace = trace_->row_of_step(step);
    const bool has_time = in_trace >= 0 && trace_->steps[static_cast<std::size_t>(in_trace)] == step;
    const GateStatistics found = gateStatistics(row(r), gate_->low, gate_->high, scratch);
    text += QByteArray::number(static_cast<qlonglong>(step)) + ',' +
            (has_time ? csvNumber(trace_->time[static_cast<std::size_t>(in_trace)]) : QByteArray());
    text += ',' + csvNumber(found.mean) + ',' + csvNumber(found.q10) + ',' + csvNumber(found.q90);
    if (bounded()) text += ',' + csvNumber(found.below) + ',' + csvNumber(found.above);
    for (const double v : row(r)) text += ',' + csvNumber(v);
    for (auto& [pin, at_row] : others) {
      const std::vector<std::int64_t>& its = pin->steps();
      while (at_row < its.size() && its[at_row] < step) ++at_row;
      text += ',';
      if (at_row < its.size() && its[at_row] == step)
        text += csvNumber(
            gateStatistics(rowOf(*pin->gate, *pin->values, static_cast<std::int64_t>(at_row)), pin->gate->low, pin->gate->high, scratch)
                .mean);
    }
    text += '\n';
  }
  return QString::fromUtf8(text);
}

RECLAB_PANEL_IS(gating, GatingPanel)

}  // namespace reclab
