// SPDX-License-Identifier: GPL-3.0-or-later
// The texts on kernels: under the picture, under the pointer, where there are none, and as a table.
#include <algorithm>
#include <cmath>

#include "panels/kernels/kernels.h"
#include "plot/parts/pinned.h"

namespace reclab {

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
  if (const QString said = endedEarly(*trace_, tr("This run has no kernels")); !said.isEmpty()) return said;
  const QString model = modelName(*trace_);
  if (const QString why = whyAbsent(*trace_, Kind::kernel); !why.isEmpty()) {
    const QString others = pinsThatHave(pinned_, {Kind::kernel});
    return tr("%1: %2").arg(model, why) + u' ' +
           (others.isEmpty() ? tr("Choose a model that is the same at every step, such as S4D, LRU or SGConv.") : others);
  }
  if (const QString said = notesOn(*trace_, {Kind::kernel}); !said.isEmpty())
    return (tr("%1: %2").arg(model, said) + u' ' + pinsThatHave(pinned_, {Kind::kernel})).trimmed();
  return tr("This run has no kernels yet: they come after states and gradients. If they do not, press Run.");
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

QString KernelsPanel::saidOf(std::int64_t lag, std::int64_t channel) const {
  return tr("channel %1 at a lag of %2: %3")
      .arg(memory_.labels[static_cast<qsizetype>(channel)], spanOf(static_cast<double>(lag)), number(memory_.at(lag, channel), 4));
}

QString KernelsPanel::tipAt(const QPointF& position) const {
  if (memory_.channels == 0) return {};
  const QPoint at = position.toPoint();
  if (view_ == u"map") {
    const auto entry = map_.heatmap->at(position);
    return entry ? saidOf(entry->step, entry->unit) : QString();
  }
  const QString channel = memory_.labels[static_cast<qsizetype>(channel_)];
  if (view_ == u"kernel" && kernel_rect_->rect().contains(at)) {
    const auto lag =
        std::clamp<std::int64_t>(std::llround(kernel_rect_->axis(QCPAxis::atBottom)->pixelToCoord(position.x())), 0, memory_.lags() - 1);
    return saidOf(lag, channel_);
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
    if (view_ == u"map") continue;
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

}  // namespace reclab
