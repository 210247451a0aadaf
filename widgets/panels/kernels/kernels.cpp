// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/kernels/kernels.h"

#include <QSignalBlocker>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "panels/panel_info.h"
#include "plain_text.h"
#include "plot/pinned.h"

namespace reclab {

namespace {

constexpr double missing_value = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t most_others = 32;                  // of other channels behind the one that is chosen
constexpr double faded_part = 1e-3, faded_on_map = 0.02;  // parts of a kernel's largest value that are no longer worth a part of the axis

/// Evenly over the channels, without one.
std::vector<std::int64_t> otherChannels(std::int64_t channels, std::int64_t without) {
  std::vector<std::int64_t> some;
  const std::int64_t drawn = std::min(channels, most_others);
  for (std::int64_t i = 0; i < drawn; ++i)
    if (const std::int64_t channel = drawn == 1 ? 0 : i * (channels - 1) / (drawn - 1); channel != without) some.push_back(channel);
  return some;
}

QCPRange drawnValues(const QCPAxisRect* rect, double least) {
  bool any = false;
  QCPRange all;
  for (const QCPGraph* graph : rect->graphs()) {
    bool found = false;
    if (!graph->realVisibility()) continue;
    const QCPRange range = graph->getValueRange(found, QCP::sdBoth, rect->axis(QCPAxis::atBottom)->range());
    if (!found) continue;
    all = any ? all.expanded(range) : range;
    any = true;
  }
  const double pad = std::max(0.06 * all.size(), least);
  return {all.lower - pad, all.upper + pad};
}

/// Degrees in parts of a turn, or in quarters of one where the axis spans several.
class AngleTicker : public QCPAxisTicker {
 protected:
  double getTickStep(const QCPRange& range) override {
    const double least = range.size() / tickCount();
    if (least > 90.0) return 90.0 * std::round(cleanMantissa(least / 90.0));
    for (const double step : {1.0, 2.0, 5.0, 15.0, 30.0, 45.0, 90.0})
      if (step >= least && least > 0.5) return step;
    return QCPAxisTicker::getTickStep(range);
  }
};

}  // namespace

KernelsPanel::KernelsPanel(QWidget* parent) : PlotPanel(parent) {
  makeControls();
  makeRects();
  plot_->setHoverHandler([this](const QPointF& at) { return tipAt(at); });
  plot_->setResetHandler([this] {
    for (ValueAxis* axis : {kernel_values_, gain_values_, phase_values_}) axis->reset();
    fit();
  });
  connect(plot_, &QCustomPlot::mousePress, this, [this](QMouseEvent* event) { pickOnMap(event->position()); });
  connect(plot_, &Plot::curvesToggled, this, &KernelsPanel::fit);
  refresh();
}

void KernelsPanel::makeControls() {
  views_ = new QComboBox;
  views_->setObjectName(QStringLiteral("view"));
  views_->addItem(tr("Kernel"), QStringLiteral("kernel"));
  views_->addItem(tr("Frequency response"), QStringLiteral("response"));
  views_->addItem(tr("All channels"), QStringLiteral("map"));
  views_->setToolTip(tr("The kernel of a channel over lag, its gain and phase over frequency, or the kernels of all channels as a map."));
  memories_ = new QComboBox;
  memories_->setProperty("choice", "memory");
  memories_->setObjectName(QStringLiteral("memory"));
  memories_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  channels_ = new QComboBox;
  channels_->setProperty("choice", "channel");
  channels_->setObjectName(QStringLiteral("channel"));
  channels_->setMaxVisibleItems(16);
  channels_->setToolTip(tr("The channel that stands out; others are drawn faintly."));
  for (QComboBox* box : {views_, memories_, channels_}) controls_->addWidget(box);
  controls_->addStretch();
  const auto chosen = [this] {
    left_.reset();
    if (trace_) by_hand_[QString::fromStdString(trace_->info.preset)] = {view_, key_};
    refresh();
  };
  connect(views_, &QComboBox::activated, this, [this, chosen](int index) {
    view_ = views_->itemData(index).toString();
    chosen();
  });
  connect(memories_, &QComboBox::activated, this, [this, chosen](int index) {
    key_ = memories_->itemData(index).toString();
    chosen();
  });
  connect(channels_, &QComboBox::activated, this, [this](int index) { pickChannel(index); });
}

void KernelsPanel::makeRects() {
  note_ = new Paragraph(plot_);
  legend_ = new Legend(plot_);
  pictures_ = new QCPLayoutGrid;
  pictures_->setRowSpacing(2);
  kernel_rect_ = plot_->makeRect();
  gain_rect_ = plot_->makeRect();
  phase_rect_ = plot_->makeRect();
  map_rect_ = plot_->makeRect();
  bar_ = new ColourBar(plot_);
  plot_->plotLayout()->addElement(0, 0, legend_);
  plot_->plotLayout()->addElement(1, 0, pictures_);
  plot_->plotLayout()->addElement(2, 0, note_);
  pictures_->addElement(0, 0, kernel_rect_);
  pictures_->addElement(1, 0, gain_rect_);
  pictures_->addElement(2, 0, phase_rect_);
  pictures_->addElement(3, 0, map_rect_);
  pictures_->addElement(3, 1, bar_);
  kernel_values_ = plot_->addValueAxis(kernel_rect_);
  gain_values_ = plot_->addValueAxis(gain_rect_);
  phase_values_ = plot_->addValueAxis(phase_rect_);
  for (QCPAxisRect* rect : {kernel_rect_, gain_rect_, phase_rect_}) {
    rect->setRangeDrag(Qt::Horizontal);
    rect->setRangeZoom(Qt::Horizontal);
  }
  map_rect_->setRangeDrag({});
  map_rect_->setRangeZoom({});
  addActions({kernel_values_->lockAction(), kernel_values_->resetAction()});
  auto* left = new QCPMarginGroup(plot_);
  for (QCPAxisRect* rect : {gain_rect_, phase_rect_}) {
    rect->setMarginGroup(QCP::msLeft | QCP::msRight, left);
    rect->axis(QCPAxis::atBottom)->setTicker(QSharedPointer<QCPAxisTicker>(new PowerTicker));
  }
  gain_rect_->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new PowerTicker));
  gain_rect_->axis(QCPAxis::atBottom)->setTickLabels(false);
  phase_rect_->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new AngleTicker));
  gain_rect_->axis(QCPAxis::atLeft)->setLabel(tr("gain"));
  phase_rect_->axis(QCPAxis::atLeft)->setLabel(tr("phase, °"));
  kernel_rect_->axis(QCPAxis::atLeft)->setLabel(tr("kernel"));
  map_rect_->axis(QCPAxis::atLeft)->setLabel(tr("channel"));
  map_rect_->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new StepTicker));
  for (const QCPAxis::AxisType side : {QCPAxis::atLeft, QCPAxis::atBottom}) map_rect_->axis(side)->grid()->setVisible(false);
  connect(gain_rect_->axis(QCPAxis::atBottom), qOverload<const QCPRange&>(&QCPAxis::rangeChanged), phase_rect_->axis(QCPAxis::atBottom),
          qOverload<const QCPRange&>(&QCPAxis::setRange));
  connect(phase_rect_->axis(QCPAxis::atBottom), qOverload<const QCPRange&>(&QCPAxis::rangeChanged), gain_rect_->axis(QCPAxis::atBottom),
          qOverload<const QCPRange&>(&QCPAxis::setRange));
  heatmap_ = new Heatmap(map_rect_->axis(QCPAxis::atBottom), map_rect_->axis(QCPAxis::atLeft));
  auto* across = new QCPMarginGroup(plot_);
  for (QCPLayoutElement* element : {static_cast<QCPLayoutElement*>(map_rect_), static_cast<QCPLayoutElement*>(bar_)})
    element->setMarginGroup(QCP::msTop | QCP::msBottom, across);
  constant_ = new QCPItemStraightLine(plot_);
  constant_->setLayer(QStringLiteral("grid"));
  constant_->setSelectable(false);
  constant_->setClipAxisRect(kernel_rect_);
  for (QCPItemPosition* point : {constant_->point1, constant_->point2})
    point->setAxes(kernel_rect_->axis(QCPAxis::atBottom), kernel_rect_->axis(QCPAxis::atLeft));
}

QString KernelsPanel::hint() const {
  return tr(
      "What a memory that is the same at every step returns after an impulse, how long it remembers, and which frequencies it passes.");
}

QString KernelsPanel::memoryLabel(const QString& key) const {
  const QString name = key.section(u'/', 1).replace(u'_', u' ');
  return trace_->info.layers > 1 ? tr("%1, %2").arg(name, layerName(*trace_, key.section(u'/', 0, 0))) : name;
}

QString KernelsPanel::subject() const {
  if (memory_.channels == 0) return {};
  return tr("%1, channel %2").arg(memoryLabel(memory_.key), memory_.labels.value(static_cast<qsizetype>(channel_)));
}

QString KernelsPanel::whyEmpty() const {
  if (const QString said = noRunSentence(trace_.get(), tr("the kernels of its memory appear here")); !trace_) return said;
  if (!kernelMemories(*trace_).empty()) return {};
  if (trace_->info.outcome == Outcome::diverged || trace_->info.outcome == Outcome::cancelled)
    return tr("This run has no kernels, for it ended early: %1").arg(QString::fromStdString(trace_->info.sentence));
  const QString model = trace_->info.title.empty() ? tr("This model") : QString::fromStdString(trace_->info.title);
  if (const auto why = trace_->info.absent.find(Kind::kernel); why != trace_->info.absent.end()) {
    const QString others = pinsThatHave(pinned_, {Kind::kernel});
    return tr("%1: %2").arg(model, QString::fromStdString(why->second)) + u' ' +
           (others.isEmpty() ? tr("Choose a model that is the same at every step, such as S4D, LRU or SGConv.") : others);
  }
  if (const QString said = notesOn(*trace_, {Kind::kernel}); !said.isEmpty())
    return (tr("%1: %2").arg(model, said) + u' ' + pinsThatHave(pinned_, {Kind::kernel})).trimmed();
  return tr("This run has no kernels yet: they come after states and gradients. If they do not, press Run.");
}

void KernelsPanel::setPinned(const std::vector<Run>& runs) {
  pinned_ = runs;
  refresh();
}

void KernelsPanel::lookAt(const QString& preset, const QString& detail, bool asked) {
  if (detail.isEmpty()) return;
  wanted_[preset] = detail;
  if (asked) by_hand_.remove(preset);
  refresh();
  if (asked) left_.reset();  // a hand's wish, as what is picked here is
}

void KernelsPanel::setChoices(const QVariantMap& saved) {
  const QString view = saved.value(QStringLiteral("view")).toString();
  if (views_->findData(view) < 0) return;
  (left_ ? left_->view : view_) = view;
  refresh();
}

void KernelsPanel::holdAxes(bool hold) {
  for (ValueAxis* axis : {kernel_values_, gain_values_, phase_values_}) axis->hold(hold);
}

/// What was picked by hand for this model, else what its preset names, else what was looked at.
void KernelsPanel::findChoice() {
  const QString preset = QString::fromStdString(trace_->info.preset);
  const QStringList named = wanted_.value(preset).split(u':');
  QString state;
  if (by_hand_.contains(preset)) {
    view_ = by_hand_[preset][0];
    key_ = by_hand_[preset][1];
  } else if (!named[0].isEmpty()) {
    if (!left_) left_ = {view_, key_};
    view_ = named[0];
    state = named.value(1);
  } else if (left_) {  // what another preset names is not what this one is looked at with
    view_ = left_->view;
    key_ = left_->key;
    left_.reset();
  }
  channel_ = channels_by_hand_.value(preset, 0);
  const std::vector<KernelMemory> all = kernelMemories(*trace_);
  const QSignalBlocker quiet_memories(memories_), quiet_channels(channels_), quiet_views(views_);
  memories_->clear();
  int index = 0;
  for (const KernelMemory& memory : all) {
    memories_->addItem(memoryLabel(memory.key), memory.key);
    memories_->setItemData(memories_->count() - 1, safeTip(QString::fromStdString(memory.kernel->text)), Qt::ToolTipRole);
    if (memory.key == key_) index = memories_->count() - 1;
  }
  if (!state.isEmpty())
    for (int i = static_cast<int>(all.size()) - 1; i >= 0; --i)
      if (all[static_cast<std::size_t>(i)].key.section(u'/', 1) == state) index = i;
  memories_->setCurrentIndex(index);
  memories_->setVisible(memories_->count() > 1);
  memory_ = all[static_cast<std::size_t>(index)];
  key_ = memory_.key;
  memories_->setToolTip(safeTip(QString::fromStdString(memory_.kernel->text)));
  channels_->clear();
  for (const QString& label : memory_.labels) channels_->addItem(tr("channel %1").arg(label));
  channel_ = std::clamp<std::int64_t>(channel_, 0, memory_.channels - 1);
  channels_->setCurrentIndex(static_cast<int>(channel_));
  channels_->setVisible(memory_.channels > 1);
  control_row_->setVisible(true);
  views_->setCurrentIndex(std::max(0, views_->findData(view_)));
  view_ = views_->currentData().toString();
}

/// Only the pictures of the view that is chosen have a place.
void KernelsPanel::arrange() {
  const bool kernel = view_ == u"kernel", response = view_ == u"response", map = view_ == u"map";
  const auto place = [&](QCPLayoutElement* element, bool on, int row, int column) {
    if (element->layout()) pictures_->take(element);
    element->setVisible(on);
    if (on) pictures_->addElement(row, column, element);
  };
  place(kernel_rect_, false, 0, 0);
  for (QCPLayoutElement* element :
       {static_cast<QCPLayoutElement*>(kernel_rect_), static_cast<QCPLayoutElement*>(gain_rect_),
        static_cast<QCPLayoutElement*>(phase_rect_), static_cast<QCPLayoutElement*>(map_rect_), static_cast<QCPLayoutElement*>(bar_)})
    place(element, false, 0, 0);
  pictures_->simplify();
  if (kernel) place(kernel_rect_, true, 0, 0);
  if (response) {
    place(gain_rect_, true, 0, 0);
    place(phase_rect_, true, 1, 0);
  }
  if (map) {
    place(map_rect_, true, 0, 0);
    place(bar_, true, 0, 1);
  }
  plot_->setLeastPicture(response ? 200 : 150);
  for (QCPAxisRect* rect : {kernel_rect_, gain_rect_, phase_rect_, map_rect_}) {
    for (const QCPAxis::AxisType side : {QCPAxis::atLeft, QCPAxis::atBottom}) rect->axis(side)->setVisible(rect->visible());
  }
  bar_->axis()->setVisible(map);
  constant_->setVisible(kernel);
  heatmap_->setVisible(map);
}

void KernelsPanel::rebuild() {
  time_ = stepTime(*trace_);
  findChoice();
  frequencies_ = responseFrequencies(*trace_);
  arrange();
  draw();
}

void KernelsPanel::draw() {
  const Theme& theme = plot_->theme();
  plot_->clearGraphs();
  legend_->clear();
  const QString in_time = time_ ? tr(" (1 step = %1 %2)").arg(number(time_->spacing, 4), time_->unit) : QString();
  for (const QCPAxisRect* rect : {kernel_rect_, map_rect_}) rect->axis(QCPAxis::atBottom)->setLabel(tr("lag, steps") + in_time);
  phase_rect_->axis(QCPAxis::atBottom)->setLabel(tr("frequency, cycles a step") + in_time);
  if (view_ == u"map") {
    drawMap();
  } else {
    QList<QCPLayerable*> behind, front;
    const std::vector<std::int64_t> some = otherChannels(memory_.channels, channel_);
    const QColor faint = mixed(theme.muted, theme.base, 0.4);
    for (const std::int64_t channel : some) {
      if (view_ == u"kernel")
        drawKernels(memory_, channel, faint, 0.8, behind);
      else
        drawResponses(memory_, frequencies_, channel, faint, 0.8, true, behind);
    }
    if (view_ == u"kernel")
      drawKernels(memory_, channel_, theme.shown(), 1.8, front);
    else
      drawResponses(memory_, frequencies_, channel_, theme.shown(), 1.8, false, front);
    if (memory_.channels > 1)
      legend_->add(QStringLiteral("channel"), tr("channel %1").arg(memory_.labels[static_cast<qsizetype>(channel_)]),
                   QPen(theme.shown(), 1.8), front);
    if (!behind.isEmpty())
      legend_->add(QStringLiteral("others"),
                   std::ssize(some) + 1 == memory_.channels ? tr("other channels") : tr("%1 of the others").arg(grouped(std::ssize(some))),
                   QPen(faint, 0.8), behind);
  }
  drawPins();
  const double constant = memory_.timeConstant(channel_);
  constant_->setPen(QPen(theme.axis, 1, Qt::DashLine));
  constant_->setVisible(view_ == u"kernel" && std::isfinite(constant));
  if (std::isfinite(constant)) {
    constant_->point1->setCoords(constant, 0.0);
    constant_->point2->setCoords(constant, 1.0);
  }
  writeNote();
  fit();
}

void KernelsPanel::drawKernels(const KernelMemory& memory, std::int64_t channel, const QColor& ink, double width,
                               QList<QCPLayerable*>& shown) {
  QCPGraph* graph = plot_->addCurve(kernel_rect_, ink, width);
  QVector<QCPGraphData> points;
  for (std::int64_t lag = 0; lag < memory.lags(); ++lag) {
    const double value = memory.at(lag, channel);
    points.append({static_cast<double>(lag), std::isfinite(value) ? value : missing_value});
  }
  graph->data()->set(points, true);
  shown << graph;
}

void KernelsPanel::drawResponses(const KernelMemory& memory, std::span<const double> frequencies, std::int64_t channel, const QColor& ink,
                                 double width, bool quiet, QList<QCPLayerable*>& shown) {
  if (!memory.response) return;
  QVector<QCPGraphData> gains, phases;
  const std::vector<double> turned = quiet ? std::vector<double>() : unwrappedPhases(memory, channel);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double gain = std::abs(memory.gain(static_cast<std::int64_t>(i), channel)), x = std::log10(frequencies[i]);
    gains.append({x, gain > 0.0 && std::isfinite(gain) ? std::log10(gain) : missing_value});
    if (!quiet) phases.append({x, turned[i]});
  }
  QCPGraph* graph = plot_->addCurve(gain_rect_, ink, width);
  graph->data()->set(gains, true);
  shown << graph;
  if (quiet) return;
  QCPGraph* phase = plot_->addCurve(phase_rect_, ink, width);
  phase->data()->set(phases, true);
  shown << phase;
}

/// Each channel by its own largest value: kernels of very different sizes are compared by their shape.
void KernelsPanel::drawMap() {
  std::vector<double> largest(static_cast<std::size_t>(memory_.channels), 0.0);
  for (std::int64_t lag = 0; lag < memory_.lags(); ++lag)
    for (std::int64_t c = 0; c < memory_.channels; ++c)
      largest[static_cast<std::size_t>(c)] = std::max(largest[static_cast<std::size_t>(c)], std::abs(memory_.at(lag, c)));
  auto values = std::make_shared<std::vector<double>>();
  for (std::int64_t lag = 0; lag < memory_.lags(); ++lag)
    for (std::int64_t c = 0; c < memory_.channels; ++c)
      values->push_back(largest[static_cast<std::size_t>(c)] > 0.0 ? memory_.at(lag, c) / largest[static_cast<std::size_t>(c)] : 0.0);
  std::vector<std::int64_t> lags(static_cast<std::size_t>(memory_.lags()));
  std::iota(lags.begin(), lags.end(), 0);
  const double low = *std::ranges::min_element(*values);
  heatmap_->setData(std::move(values), memory_.channels, lags);
  heatmap_->setScale(low < 0.0 ? -1.0 : 0.0, 1.0);
  bar_->show(*heatmap_, tr("part of the largest"));
  map_rect_->axis(QCPAxis::atLeft)->setRange(-0.5, static_cast<double>(memory_.channels) - 0.5);
}

/// The same channel of the same memory, or its first one where there are fewer.
void KernelsPanel::drawPins() {
  const Theme& theme = plot_->theme();
  if (view_ == u"map")
    return addPinsWithout(legend_, pinned_, theme, tr("not in this view"), tr("Pinned runs are in the views of one channel."));
  for (const Run& run : pinned_) {
    if (!run.trace) continue;
    const std::vector<KernelMemory> all = kernelMemories(*run.trace);
    if (all.empty()) {
      addPinWithout(legend_, run, theme, tr("no kernels"), notesOn(*run.trace, {Kind::kernel}));
      continue;
    }
    // Another model calls its memory otherwise: that of the same layer, or its first.
    auto same = std::ranges::find(all, memory_.key, &KernelMemory::key);
    const bool named = same != all.end();
    if (!named)
      same = std::ranges::find(all, memory_.key.section(u'/', 0, 0), [](const KernelMemory& one) { return one.key.section(u'/', 0, 0); });
    if (same == all.end()) same = all.begin();
    const std::int64_t channel = channel_ < same->channels ? channel_ : 0;
    QList<QCPLayerable*> shown;
    if (view_ == u"kernel")
      drawKernels(*same, channel, run.colour, 1.2, shown);
    else
      drawResponses(*same, responseFrequencies(*run.trace), channel, run.colour, 1.2, false, shown);
    const double constant = same->timeConstant(channel);
    QStringList of;
    if (!named) of << same->key.section(u'/', 1);
    if (channel != channel_) of << tr("channel %1").arg(same->labels[static_cast<qsizetype>(channel)]);
    addPin(legend_, run, QPen(run.colour, 1.2), shown, of,
           std::isfinite(constant) ? tr("Its time constant is %1 steps.").arg(number(constant)) : QString());
  }
}

void KernelsPanel::fit() {
  if (memory_.channels == 0) return;
  if (view_ == u"map") {
    std::int64_t reach = 15;
    for (std::int64_t c = 0; c < memory_.channels; ++c) reach = std::max(reach, reachOf(memory_, c, faded_on_map));
    map_rect_->axis(QCPAxis::atBottom)->setRange(-0.5, static_cast<double>(std::min(reach, memory_.lags() - 1)) + 0.5);
  } else if (view_ == u"kernel") {
    const std::int64_t reach =
        std::min(std::max<std::int64_t>(15, reachOf(memory_, channel_, faded_part)), std::max<std::int64_t>(1, memory_.lags() - 1));
    kernel_rect_->axis(QCPAxis::atBottom)->setRange(0.0, static_cast<double>(reach));
    kernel_values_->fit(drawnValues(kernel_rect_, 1e-12));
  } else if (!frequencies_.empty()) {
    gain_rect_->axis(QCPAxis::atBottom)->setRange(std::log10(frequencies_.front()), std::log10(frequencies_.back()));
    phase_rect_->axis(QCPAxis::atBottom)->setRange(gain_rect_->axis(QCPAxis::atBottom)->range());
    gain_values_->fit(drawnValues(gain_rect_, 0.1));
    phase_values_->fit(drawnValues(phase_rect_, 10.0));
  }
  plot_->redraw();
}

QString KernelsPanel::spanOf(double steps) const {
  const QString text = tr("%1 steps").arg(number(steps));
  return time_ ? text + tr(" (%1 %2)").arg(number(steps * time_->spacing), time_->unit) : text;
}

QString KernelsPanel::describedFrequency(double cycles) const {
  QString text = tr("%1 cycles a step").arg(number(cycles));
  if (time_) text += tr(" (%1 a %2)").arg(number(cycles / time_->spacing), time_->unit);
  return text + tr(", a period of %1").arg(spanOf(1.0 / cycles));
}

void KernelsPanel::writeNote() {
  QStringList said, on_screen;
  const double constant = memory_.timeConstant(channel_);
  const QString which = memory_.channels > 1 ? tr("Channel %1").arg(memory_.labels[static_cast<qsizetype>(channel_)]) : tr("The memory");
  if (std::isfinite(constant))
    said << tr("%1 has a time constant of %2.").arg(which, spanOf(constant));
  else if (std::isinf(constant))
    said << tr("%1 does not fall off.").arg(which);
  if (memory_.constants && memory_.channels > 1) {
    const auto [least, most] = std::ranges::minmax(*memory_.constants->real);
    if (most > least)
      said << (std::isfinite(most) ? tr("Over all channels %1 to %2.").arg(number(least), spanOf(most))
                                   : tr("Over all channels from %1 on; some do not fall off.").arg(spanOf(least)));
  }
  if (view_ == u"response" && memory_.response) {
    std::size_t at = 0;
    double largest = 0.0;
    for (std::size_t i = 0; i < frequencies_.size(); ++i)
      if (const double gain = std::abs(memory_.gain(static_cast<std::int64_t>(i), channel_)); std::isfinite(gain) && gain > largest)
        largest = gain, at = i;
    if (largest > 0.0)
      said << (at == 0 ? tr("It passes slow signals most, with gain %1.").arg(number(largest))
                       : tr("Its gain is largest, %1, at %2.").arg(number(largest), describedFrequency(frequencies_[at])));
  } else if (view_ == u"response") {
    said << tr("Its frequency response was not recorded.");
    on_screen << tr("Press Run.");
  }
  if (view_ == u"map") said << tr("Each channel is divided by its largest value."), on_screen << tr("A click picks one.");
  said << notesOn(*trace_, {Kind::kernel});
  said.removeAll(QString());
  note_->setText(said.join(u' '), true, on_screen.isEmpty() ? QString() : u' ' + on_screen.join(u' '));
}

QString KernelsPanel::makeHeadline() const {
  const double constant = memory_.timeConstant(channel_);
  return std::isfinite(constant) ? tr("τ %1 steps").arg(number(constant)) : std::isinf(constant) ? tr("τ ∞") : QString();
}

void KernelsPanel::pickOnMap(const QPointF& position) {
  std::int64_t lag = 0, channel = 0;
  double value = 0.0;
  if (memory_.channels == 0 || view_ != u"map" || !heatmap_->at(position, &lag, &channel, &value)) return;
  pickChannel(channel);
}

/// Of the model that is looked at; another has channels of its own.
void KernelsPanel::pickChannel(std::int64_t channel) {
  if (trace_) channels_by_hand_[QString::fromStdString(trace_->info.preset)] = channel;
  refresh();
}

QString KernelsPanel::tipAt(const QPointF& position) const {
  if (memory_.channels == 0) return {};
  const QPoint at = position.toPoint();
  if (view_ == u"map") {
    std::int64_t lag = 0, channel = 0;
    double value = 0.0;
    if (!heatmap_->at(position, &lag, &channel, &value)) return {};
    return tr("channel %1 at a lag of %2: %3")
        .arg(memory_.labels[static_cast<qsizetype>(channel)], spanOf(static_cast<double>(lag)), number(memory_.at(lag, channel), 4));
  }
  const QString channel = memory_.labels[static_cast<qsizetype>(channel_)];
  if (view_ == u"kernel" && kernel_rect_->rect().contains(at)) {
    const auto lag =
        std::clamp<std::int64_t>(std::llround(kernel_rect_->axis(QCPAxis::atBottom)->pixelToCoord(position.x())), 0, memory_.lags() - 1);
    return tr("channel %1 at a lag of %2: %3").arg(channel, spanOf(static_cast<double>(lag)), number(memory_.at(lag, channel_), 4));
  }
  if (view_ == u"response" && memory_.response && (gain_rect_->rect().contains(at) || phase_rect_->rect().contains(at))) {
    const double wanted = std::pow(10.0, gain_rect_->axis(QCPAxis::atBottom)->pixelToCoord(position.x()));
    auto found =
        std::clamp<std::ptrdiff_t>(std::ranges::lower_bound(frequencies_, wanted) - frequencies_.begin(), 1, std::ssize(frequencies_) - 1);
    if (wanted * wanted < frequencies_[static_cast<std::size_t>(found)] * frequencies_[static_cast<std::size_t>(found - 1)])
      --found;  // the nearer one on the axis
    const double gain = std::abs(memory_.gain(found, channel_));
    return tr("channel %1 at %2:\ngain %3 (%4 dB), phase %5°")
        .arg(channel, describedFrequency(frequencies_[static_cast<std::size_t>(found)]), number(gain, 4),
             number(20.0 * std::log10(gain), 3), number(unwrappedPhases(memory_, channel_)[static_cast<std::size_t>(found)], 4));
  }
  return {};
}

QString KernelsPanel::dataAsCsv() const {
  if (!trace_ || memory_.channels == 0) return {};
  const bool response = view_ == u"response";
  if (response && !memory_.response) return {};
  QStringList header{response ? QStringLiteral("frequency") : QStringLiteral("lag")};
  if (time_) header << csvCell(response ? QStringLiteral("cycles a %1").arg(time_->unit) : time_->unit);
  struct Column {
    KernelMemory memory;
    std::int64_t channel;
    std::vector<double> phases{};
  };
  std::vector<Column> columns;
  const auto add = [&](const KernelMemory& memory, std::int64_t channel, const QString& run) {
    const QString name = QStringLiteral("channel ") + memory.labels[static_cast<qsizetype>(channel)];
    if (response)
      header << csvCell(name + QStringLiteral(" gain") + run) << csvCell(name + QStringLiteral(" phase") + run);
    else
      header << csvCell(name + run);
    columns.push_back({memory, channel});
    if (response) columns.back().phases = unwrappedPhases(memory, channel);
  };
  for (std::int64_t c = 0; c < memory_.channels; ++c) add(memory_, c, {});
  for (const Run& run : pinned_) {
    if (!run.trace || view_ == u"map") continue;
    for (const KernelMemory& memory : kernelMemories(*run.trace))
      if (memory.key == memory_.key && (!response || memory.response))
        add(memory, channel_ < memory.channels ? channel_ : 0, QStringLiteral(" [%1]").arg(run.label));
  }
  std::int64_t rows = response ? std::ssize(frequencies_) : 0;
  for (const Column& column : columns) rows = std::max(rows, response ? rows : column.memory.lags());
  QByteArray text = header.join(u',').toUtf8() + '\n';
  for (std::int64_t row = 0; row < rows; ++row) {
    const double at = response ? frequencies_[static_cast<std::size_t>(row)] : static_cast<double>(row);
    text += csvNumber(at);
    if (time_) text += ',' + csvNumber(response ? at / time_->spacing : at * time_->spacing);
    for (const Column& column : columns) {
      if (response)
        text += ',' + csvNumber(std::abs(column.memory.gain(row, column.channel))) + ',' +
                csvNumber(column.phases[static_cast<std::size_t>(row)]);
      else
        text += ',' + (row < column.memory.lags() ? csvNumber(column.memory.at(row, column.channel)) : QByteArray());
    }
    text += '\n';
  }
  return QString::fromUtf8(text);
}

RECLAB_PANEL_IS(kernels, KernelsPanel)

}  // namespace reclab
