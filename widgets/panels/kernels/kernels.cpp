// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/kernels/kernels.h"

#include <QSignalBlocker>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "panels/panel_info.h"
#include "plain_text.h"
#include "plot/parts/curves.h"
#include "plot/parts/pinned.h"

namespace reclab {

namespace {

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
  return padded(spanOf(rect, rect->axis(QCPAxis::atBottom)->range()).value_or(QCPRange()), 0.06, least);
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

KernelsPanel::KernelsPanel(QWidget* parent) : Described(parent), map_(plot_) {
  makeControls();
  makeRects();
  plot_->setHoverHandler([this](const QPointF& at) { return tipAt(at); });
  plot_->setResetHandler([this] {
    for (ValueAxis* axis : {kernel_values_, gain_values_, phase_values_}) axis->reset();
    fit();
  });
  connect(plot_, &QCustomPlot::mousePress, this, [this](QMouseEvent* event) {
    if (memory_.channels == 0 || view_ != u"map") return;
    if (const auto entry = map_.heatmap->at(event->position())) pickChannel(entry->unit);
  });
  connect(plot_, &Plot::curvesToggled, this, &KernelsPanel::fit);
  refresh();
}

void KernelsPanel::makeControls() {
  views_ = addChoice("view", false,
                     tr("The kernel of a channel over lag, its gain and phase over frequency, or the kernels of all channels as a map."));
  views_->addItem(tr("Kernel"), QStringLiteral("kernel"));
  views_->addItem(tr("Frequency response"), QStringLiteral("response"));
  views_->addItem(tr("All channels"), QStringLiteral("map"));
  memories_ = addChoice("memory", true);
  memories_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  channels_ = addChoice("channel", true, tr("The channel that stands out; others are drawn faintly."));
  channels_->setMaxVisibleItems(16);
  controls_->addStretch();
  const auto chosen = [this] {
    left_.reset();
    if (trace_) by_hand_[preset()] = {view_, key_};
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
  stack(plot_, {legend_, pictures_, note_});
  pictures_->addElement(0, 0, kernel_rect_);
  kernel_values_ = plot_->addValueAxis(kernel_rect_);
  gain_values_ = plot_->addValueAxis(gain_rect_);
  phase_values_ = plot_->addValueAxis(phase_rect_);
  for (QCPAxisRect* rect : {kernel_rect_, gain_rect_, phase_rect_}) {
    rect->setRangeDrag(Qt::Horizontal);
    rect->setRangeZoom(Qt::Horizontal);
  }
  map_.rect->setRangeDrag({});
  map_.rect->setRangeZoom({});
  addActions({kernel_values_->lockAction(), kernel_values_->resetAction()});
  lineUp({gain_rect_, phase_rect_}, QCP::msLeft | QCP::msRight);
  for (QCPAxisRect* rect : {gain_rect_, phase_rect_})
    rect->axis(QCPAxis::atBottom)->setTicker(QSharedPointer<QCPAxisTicker>(new PowerTicker));
  gain_rect_->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new PowerTicker));
  gain_rect_->axis(QCPAxis::atBottom)->setTickLabels(false);
  phase_rect_->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new AngleTicker));
  gain_rect_->axis(QCPAxis::atLeft)->setLabel(tr("gain"));
  phase_rect_->axis(QCPAxis::atLeft)->setLabel(tr("phase, °"));
  kernel_rect_->axis(QCPAxis::atLeft)->setLabel(tr("kernel"));
  map_.rect->axis(QCPAxis::atLeft)->setLabel(tr("channel"));
  map_.rect->axis(QCPAxis::atLeft)->setTicker(QSharedPointer<QCPAxisTicker>(new StepTicker));
  connect(gain_rect_->axis(QCPAxis::atBottom), qOverload<const QCPRange&>(&QCPAxis::rangeChanged), phase_rect_->axis(QCPAxis::atBottom),
          qOverload<const QCPRange&>(&QCPAxis::setRange));
  connect(phase_rect_->axis(QCPAxis::atBottom), qOverload<const QCPRange&>(&QCPAxis::rangeChanged), gain_rect_->axis(QCPAxis::atBottom),
          qOverload<const QCPRange&>(&QCPAxis::setRange));
  constant_ = new StraightLine(kernel_rect_, QStringLiteral("grid"));
}

void KernelsPanel::lookAt(const QString& preset, const QString& detail, bool asked) {
  PlotPanel::lookAt(preset, detail, asked);
  if (asked && !detail.isEmpty()) left_.reset();  // a choice by hand, as one in the panel is
}

void KernelsPanel::setChoices(const QVariantMap& saved) {
  const QString view = saved.value(QStringLiteral("view")).toString();
  if (views_->findData(view) < 0) return;
  (left_ ? left_->view : view_) = view;
  refresh();
}

/// The view picked by hand for this model, else the one that its preset names, else the former one.
void KernelsPanel::findChoice() {
  const QString of = preset();
  const QStringList named = wanted().split(u':');
  QString state;
  if (by_hand_.contains(of)) {
    view_ = by_hand_[of][0];
    key_ = by_hand_[of][1];
  } else if (!named[0].isEmpty()) {
    if (!left_) left_ = {view_, key_};
    view_ = named[0];
    state = named.value(1);
  } else if (left_) {  // the place of another preset does not hold for this one
    view_ = left_->view;
    key_ = left_->key;
    left_.reset();
  }
  channel_ = channels_by_hand_.value(of, 0);
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
  const bool response = view_ == u"response", map = view_ == u"map";
  using Cells = std::vector<PictureCell>;
  showCells(pictures_, {kernel_rect_, gain_rect_, phase_rect_, map_.rect, map_.bar},
            map        ? Cells{{map_.rect}, {map_.bar, 0, 1}}
            : response ? Cells{{gain_rect_}, {phase_rect_, 1}}
                       : Cells{{kernel_rect_}});
  plot_->setLeastPicture(response ? 200 : 150);
  map_.bar->axis()->setVisible(map);
  map_.heatmap->setVisible(map);
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
  for (const QCPAxisRect* rect : {kernel_rect_, map_.rect}) rect->axis(QCPAxis::atBottom)->setLabel(tr("lag, steps") + in_time);
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
  if (std::isfinite(constant)) constant_->setUpright(constant);
  writeNote();
  fit();
}

void KernelsPanel::drawKernels(const KernelMemory& memory, std::int64_t channel, const QColor& ink, double width,
                               QList<QCPLayerable*>& shown) {
  QCPGraph* graph = plot_->addCurve(kernel_rect_, ink, width);
  fillCurve(graph, std::identity(), memory.lags(), [&](std::int64_t lag) { return memory.at(lag, channel); });
  shown << graph;
}

void KernelsPanel::drawResponses(const KernelMemory& memory, std::span<const double> frequencies, std::int64_t channel, const QColor& ink,
                                 double width, bool quiet, QList<QCPLayerable*>& shown) {
  if (!memory.response) return;
  const auto decade = [&](std::int64_t i) { return std::log10(frequencies[static_cast<std::size_t>(i)]); };
  const auto add = [&](QCPAxisRect* rect, const auto& value) {
    QCPGraph* graph = plot_->addCurve(rect, ink, width);
    fillCurve(graph, decade, std::ssize(frequencies), value);
    shown << graph;
  };
  add(gain_rect_, [&](std::int64_t i) { return std::log10(std::abs(memory.gain(i, channel))); });
  if (quiet) return;
  const std::vector<double> turned = unwrappedPhases(memory, channel);
  add(phase_rect_, [&](std::int64_t i) { return turned[static_cast<std::size_t>(i)]; });
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
  map_.heatmap->setData(std::move(values), memory_.channels, lags);
  map_.heatmap->setScale(low < 0.0 ? -1.0 : 0.0, 1.0);
  map_.bar->show(*map_.heatmap, tr("part of the largest"));
  map_.setUnits(memory_.channels);
}

/// The same channel of the same memory, or its first one where there are fewer.
void KernelsPanel::drawPins() {
  const Theme& theme = plot_->theme();
  if (view_ == u"map")
    return addPinsWithout(legend_, pinned_, theme, tr("not in this view"), tr("Pinned runs are in the views of one channel."));
  for (const Run& run : pinned_) {
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
    map_.rect->axis(QCPAxis::atBottom)->setRange(-0.5, static_cast<double>(std::min(reach, memory_.lags() - 1)) + 0.5);
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

/// Of the model that is looked at; another has channels of its own.
void KernelsPanel::pickChannel(std::int64_t channel) {
  if (trace_) channels_by_hand_[preset()] = channel;
  refresh();
}

RECLAB_PANEL_IS(kernels, KernelsPanel)

}  // namespace reclab
