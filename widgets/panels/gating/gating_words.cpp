// SPDX-License-Identifier: GPL-3.0-or-later
// The texts on a gate: at the cursor, under the pointer, where there is none, and as a table.
#include <cmath>
#include <utility>

#include "panels/gating/gating.h"
#include "plot/parts/pinned.h"
#include "plot/parts/step_text.h"

namespace reclab {

QString gatePercent(double share) {
  const double hundred = 100.0 * share;
  return QStringLiteral("%1 %").arg(hundred > 0 && hundred < 1 ? number(hundred, 1) : QString::number(std::lround(hundred)));
}

static bool isOfHeads(const TraceArray& gate) {
  return gate.axes.size() > 1 && gate.axes[1].name == "head" && gate.row_size() == gate.shape[1];
}
QString entryOf(const TraceArray& gate) { return isOfHeads(gate) ? Panel::tr("head") : Panel::tr("unit"); }
QString entriesOf(const TraceArray& gate) { return isOfHeads(gate) ? Panel::tr("heads") : Panel::tr("units"); }

QString gateName(const TraceArray& gate) { return QString::fromStdString(gate.key).section(u'/', 2); }

QStringList gatesLike(const Trace& trace, const TraceArray& other) {
  QStringList names;
  for (const TraceArray* one : trace.of(Kind::gate))
    if (one->has_rows() && one->low == other.low && one->high == other.high && !names.contains(gateName(*one))) names << gateName(*one);
  return names;
}

QString gateLabel(const Trace& trace, const std::string& key) {
  const QString name = QString::fromStdString(key);
  const QString gate = name.section(u'/', 2).replace(u'_', u' ');
  return trace.info.layers > 1 ? Panel::tr("%1, %2").arg(gate, layerName(trace, name.section(u'/', 1, 1))) : gate;
}

QString GatingPanel::subject() const { return gate_ ? gateLabel(*trace_, gate_->key) : QString(); }

QString GatingPanel::whyEmpty() const {
  if (const QString said = noRunSentence(trace_.get(), tr("its gates appear here")); !trace_) return said;
  for (const TraceArray* array : trace_->of(Kind::gate))
    if (array->has_rows()) return {};
  if (const QString said = endedEarly(*trace_, tr("This run has no gates to show")); !said.isEmpty()) return said;
  // The window knows the model's gates; without a window all were recorded.
  if (property("modelHas").toStringList().contains(QStringLiteral("gates")))
    return tr("The gates of this run were not recorded. Press Run.");
  const QString others = pinsThatHave(pinned_, {Kind::gate});
  return tr("%1 has no gates.").arg(modelName(*trace_)) + u' ' +
         (others.isEmpty() ? tr("Choose a gated model, such as LSTM, GRU or Mamba.") : others);
}

/// In a figure without the cursor, which step it is, where there is room.
QString GatingPanel::labelOfBars() const {
  const QString at = tr("units, step %1").arg(stepText(trace_.get(), step_));
  return !plot_->drawsCursor() && QFontMetrics(plot_->theme().normal, plot_).horizontalAdvance(at) <= histogram_rect_->width()
             ? at
             : tr("units");
}

GateStatistics GatingPanel::statisticsAtCursor() const {
  std::vector<double> scratch;
  return gateStatistics(row(trace_->row_of_step(*gate_, step_)), gate_->low, gate_->high, scratch);
}

QString GatingPanel::saidAtCursor() const {
  const std::int64_t recorded = steps()[static_cast<std::size_t>(trace_->row_of_step(*gate_, step_))];
  QString text = recorded == step_ ? tr("At step %1,").arg(stepText(trace_.get(), step_))
                                   : tr("At step %1, the nearest to step %2 that was recorded,")
                                         .arg(stepText(trace_.get(), recorded), stepText(trace_.get(), step_));
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
                  .arg(gatePercent(found.below), grouped(units()), closed, gatePercent(found.above), open, entriesOf(*gate_));
  } else {
    text += tr(" the mean is %1. This gate has no upper and lower end, so it cannot saturate.").arg(number(statisticsAtCursor().mean));
    if (units() > 1) text += tr(" Band: 10 to 90 % of the %1.").arg(entriesOf(*gate_));
  }
  return text;
}

QString GatingPanel::makeHeadline() const {
  const GateStatistics found = statisticsAtCursor();
  return bounded() ? tr("%1 saturated").arg(gatePercent(found.below + found.above)) : tr("mean %1").arg(number(found.mean));
}

QString GatingPanel::tipAt(const QPointF& position) const {
  if (!gate_) return {};
  if (const auto entry = map_.heatmap->at(position))
    return tr("%1 %2 at step %3: %4")
        .arg(entryOf(*gate_), grouped(entry->unit), stepText(trace_.get(), entry->step), number(entry->value, 4));
  if (mean_rect_->rect().contains(position.toPoint()))
    return tr("The mean over all %1, and the band that holds 80 % of them.").arg(entriesOf(*gate_));
  if (share_rect_->visible() && share_rect_->rect().contains(position.toPoint()))
    return tr("The share of %1 above 0.9 and below 0.1 of the gate's range.").arg(entriesOf(*gate_));
  if (histogram_rect_->rect().contains(position.toPoint())) return tr("How many %1 have which value at the cursor.").arg(entriesOf(*gate_));
  return {};
}

QString GatingPanel::dataAsCsv() const {
  if (!trace_ || !emptyReason().isEmpty()) return {};
  StepTable table(*trace_);
  table.addSteps(steps());
  std::vector<double> scratch;
  // The statistics of a row are made once for all of its columns.
  std::int64_t made = -1;
  GateStatistics found;
  const auto add = [&](const char* name, double GateStatistics::* which) {
    table.add(QLatin1String(name), steps(), [&, which](std::int64_t r) {
      if (std::exchange(made, r) != r) found = gateStatistics(row(r), gate_->low, gate_->high, scratch);
      return csvNumber(found.*which);
    });
  };
  add("mean", &GateStatistics::mean);
  add("quantile_10", &GateStatistics::q10);
  add("quantile_90", &GateStatistics::q90);
  if (bounded()) add("share_below", &GateStatistics::below), add("share_above", &GateStatistics::above);
  for (std::int64_t j = 0; j < units(); ++j)
    table.add(QStringLiteral("%1/%2").arg(QString::fromStdString(gate_->key)).arg(j), steps(),
              [this, j](std::int64_t r) { return csvNumber(row(r)[static_cast<std::size_t>(j)]); });
  for (const Run& run : pinned_)
    for (const PinnedGate& pin : pins_)
      if (pin.trace == run.trace)
        table.add((pin.gate->key == gate_->key ? QStringLiteral("mean [%1]")
                                               : QStringLiteral("mean of %2 [%1]").arg(QStringLiteral("%1"), gateName(*pin.gate)))
                      .arg(run.label),
                  pin.steps(), [&pin, &scratch](std::int64_t r) {
                    return csvNumber(gateStatistics(rowOf(*pin.gate, *pin.values, r), pin.gate->low, pin.gate->high, scratch).mean);
                  });
  return table.csv();
}

}  // namespace reclab
