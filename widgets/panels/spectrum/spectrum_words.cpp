// SPDX-License-Identifier: GPL-3.0-or-later
// The texts on eigenvalues: of those at the cursor, under the pointer, where there are none, and as a table.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "panels/spectrum/spectrum.h"
#include "plot/parts/curves.h"
#include "plot/parts/learned_text.h"
#include "plot/parts/pinned.h"
#include "plot/parts/step_text.h"

namespace reclab {
namespace {

/// As many digits, up to seven, as show on which side of 1 it is.
QString besideOne(double modulus) {
  int digits = 3;
  while (digits < 7 && std::abs(modulus - 1.0) > 1e-12 && number(modulus, digits) == number(1.0, digits)) ++digits;
  return number(modulus, digits);
}

}  // namespace

QString SpectrumPanel::subject() const { return layers_->count() > 1 ? layerName(*trace_, layer_) : QString(); }

QString SpectrumPanel::whyEmpty() const {
  if (const QString said = noRunSentence(trace_.get(), tr("its eigenvalues appear here")); !trace_) return said;
  for (const TraceArray* array : trace_->of(Kind::spectrum))
    if (array->complex && array->size() > 0) return {};
  if (const QString said = endedEarly(*trace_, tr("This run has no spectrum")); !said.isEmpty()) return said;
  // A model without a transition says so in place of its spectrum.
  for (const SpectrumInfo& info : trace_->info.spectra)
    if (info.of.starts_with("none"))
      return (tr("%1 has no spectrum: %2.")
                  .arg(QString::fromStdString(trace_->info.title),
                       mathText(QString::fromStdString(info.of).section(QStringLiteral(": "), 1))) +
              u' ' + pinsThatHave(pinned_, {Kind::spectrum}))
          .trimmed();
  return tr("This run has no spectrum yet: it comes after states and gradients. If it does not, press Run.");
}

void SpectrumPanel::writeNote() {
  std::int64_t at = 0;
  const auto values = rowAt(*trace_, step_, &at);
  QString text = info_.of.empty() ? tr("Eigenvalues") : mathText(QString::fromStdString(info_.of));
  if (!text.isEmpty()) text[0] = text[0].toUpper();
  if (info_.per_step) text += tr(" at step %1").arg(stepText(trace_.get(), at));
  if (info_.per_step && at != step_) text += tr(", the nearest to step %1 that was computed").arg(stepText(trace_.get(), step_));
  if (!info_.per_step && !text.contains(u"every step")) text += tr(", the same at every step");
  const auto unstable =
      std::count_if(values.begin(), values.end(), [&](const std::complex<double>& z) { return std::abs(z) > 1.0 + 1e-12; });
  if (unstable > 0)
    text += tr("; %1 of %2 outside the unit circle").arg(grouped(unstable), grouped(static_cast<std::int64_t>(values.size())));
  text += u'.';
  if (far_rows_ > 0)
    text += tr(" At %1 of %2 steps some are far outside the picture, up to |λ| = %3.")
                .arg(grouped(far_rows_), grouped(array_->shape[0]), number(far_reach_, 3));
  if (trail_.past().size() > 1)
    text += (trace_->info.learned && trace_->info.learned->from == from_stream
                 ? tr(" Small dots: where they were at %1 steps of the stream, from %2 (dark) to %3 (bright).")
                 : tr(" Small dots: where they were at %1 steps of training, from %2 (dark) to %3 (bright)."))
                .arg(grouped(std::ssize(trail_.past())), grouped(trail_.past().front().steps), grouped(trail_.past().back().steps));
  if (fromContinuous()) text = flow_->note();
  if (const QString said = notesOn(*trace_, {Kind::spectrum}); !said.isEmpty()) text += u' ' + said;
  if (text != note_->text()) note_->say(text);
}

QString SpectrumPanel::makeHeadline() const {
  if (fromContinuous()) return flow_->headline();
  double largest = -std::numeric_limits<double>::infinity();
  for (const std::complex<double>& z : rowAt(*trace_, step_)) {
    const double size = std::abs(z);
    if (!std::isnan(size)) largest = std::max(largest, size);
  }
  if (std::isinf(largest) && largest < 0) return {};
  return tr("|λ|max %1").arg(besideOne(largest));
}

QString SpectrumPanel::tipAt(const QPointF& position) const {
  if (array_ && fromContinuous()) return flow_->tipAt(position);
  if (!array_ || !rect_->rect().contains(position.toPoint())) return {};
  const auto values = rowAt(*trace_, step_);
  double nearest = 9.0 * 9.0;
  const std::complex<double>* hit = nullptr;
  for (const std::complex<double>& z : values) {
    const QPointF away = pixelOf(z) - position;
    const double distance = QPointF::dotProduct(away, away);
    if (distance < nearest) nearest = distance, hit = &z;
  }
  if (!hit) return {};
  const double modulus = std::abs(*hit), angle = std::arg(*hit), full = 2.0 * std::numbers::pi;
  QString text =
      tr("λ = %1 %2 %3 i")
          .arg(number(hit->real(), 4), hit->imag() < 0 ? QStringLiteral("−") : QStringLiteral("+"), number(std::abs(hit->imag()), 4));
  text += QStringLiteral("\n") + tr("|λ| = %1").arg(number(modulus, 5));
  const double log_modulus = std::log(modulus), spacing = plot_->timeSpacing();
  // In the sequence's own time too, where it has one.
  const bool timed = !plot_->timeIsSteps();
  const QString unit = QString::fromStdString(trace_->time_unit.empty() ? trace_->time_name : trace_->time_unit);
  if (modulus == 0.0)
    text += QStringLiteral("\n") + tr("forgets at once");
  else if (std::abs(log_modulus) < 1e-12)
    text += QStringLiteral("\n") + tr("neither fades nor grows");
  else
    text += QStringLiteral("\n") +
            (log_modulus < 0 ? tr("time constant %1 steps") : tr("grows e-fold in %1 steps")).arg(number(1.0 / std::abs(log_modulus), 4)) +
            (timed ? tr(", %1 %2").arg(number(spacing / std::abs(log_modulus), 4), unit) : QString());
  text += QStringLiteral("\n") + tr("frequency %1 cycles per step").arg(number(std::abs(angle) / full, 4));
  if (timed) text += tr(", %1 per %2").arg(number(std::abs(angle) / full / spacing, 4), unit);
  return text;
}

QString SpectrumPanel::dataAsCsv() const {
  if (!trace_) return {};
  if (array_ && fromContinuous()) return flow_->csv();
  // With pinned runs, whose each line is stands in a column after the others.
  const bool several = !pinned_.empty();
  QByteArray text = "layer,step,eigenvalue,real,imaginary,modulus";
  text += several ? ",run\n" : "\n";
  const auto add = [&](const Trace& trace, const QByteArray& run) {
    for (const TraceArray* array : trace.of(Kind::spectrum)) {
      if (!array->complex) continue;
      const QByteArray layer = csvCell(QString::fromStdString(array->key).section(u'/', 1)).toUtf8();
      const std::vector<std::int64_t>& steps = stepsOf(trace, *array);
      const std::int64_t rows = array->shape[0], n = array->row_size();
      for (std::int64_t row = 0; row < rows; ++row) {
        // One row for the whole run belongs to no step.
        const bool all = rows == 1 && array->steps.empty();
        const QByteArray step = all ? QByteArray("all") : QByteArray::number(static_cast<qlonglong>(steps[static_cast<std::size_t>(row)]));
        for (std::int64_t j = 0; j < n; ++j) {
          const std::complex<double> z = (*array->complex)[static_cast<std::size_t>(row * n + j)];
          text += layer + ',' + step + ',' + QByteArray::number(static_cast<qlonglong>(j)) + ',' + csvNumber(z.real()) + ',' +
                  csvNumber(z.imag()) + ',' + csvNumber(std::abs(z)) + run + '\n';
        }
      }
    }
  };
  const auto named = [&](const QString& run) { return several ? ',' + csvCell(run).toUtf8() : QByteArray(); };
  add(*trace_, named(tr("shown")));
  for (const Run& run : pinned_) add(*run.trace, named(run.label));
  return QString::fromUtf8(text);
}

}  // namespace reclab
