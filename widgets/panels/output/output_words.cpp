// SPDX-License-Identifier: GPL-3.0-or-later
// The texts on an output: its distance to the target, under the pointer, where there is none, and as a table.
#include <algorithm>
#include <cmath>
#include <functional>

#include "panels/output/output.h"
#include "plain_text.h"
#include "plot/parts/step_text.h"

namespace reclab {

namespace {

QString percent(double share) { return QStringLiteral("%1 %").arg(number(100.0 * share)); }

}  // namespace

QString OutputPanel::subject() const { return data_.classes() ? scale_->currentText() : QString(); }

QString OutputPanel::whyEmpty() const {
  if (const QString said = noRunSentence(trace_.get(), tr("what the model returns appears here")); !trace_) return said;
  const OutputData recorded(trace_);
  if (recorded.anyFinite()) return {};
  if (recorded.some())
    return tr("The output is not finite from its first step on, so there is nothing to draw: lower the weights or the input.");
  if (trace_->info.outcome != Outcome::finished)
    return tr("This run has no output, for it ended early: %1").arg(QString::fromStdString(trace_->info.sentence));
  return tr("The output of this run was not recorded. Press Run.");
}

/// The task, and the distance of the output to its target.
QString OutputPanel::judged() const {
  if (!score_) {
    if (data_.hasTarget()) return tr("The target counts at none of the recorded steps.");
    return data_.channels() == 1 ? tr("One output, and no target to compare it with.")
                                 : tr("%1 outputs, and no target to compare them with.").arg(grouped(data_.channels()));
  }
  const QString steps =
      score_->counted == 1 ? tr("At the one step that counts") : tr("Over the %1 steps that count").arg(grouped(score_->counted));
  // One target says nothing of how well a constant does.
  const bool compared = score_->counted > 1;
  if (data_.classes()) {
    QString text = score_->counted == 1
                       ? tr("At the one step that counts the output is %1").arg(score_->right > 0 ? tr("right") : tr("wrong"))
                       : tr("%1 the output is right at %2").arg(steps, percent(score_->right));
    text += tr(", its cross-entropy %1 nats").arg(number(score_->loss));
    if (compared)
      text += tr("; the best constant is right at %1, and has %2").arg(percent(score_->most_frequent), number(score_->constant));
    return text + u'.';
  }
  QString text = tr("%1 half the squared error is %2").arg(steps, number(score_->loss));
  if (compared) text += tr("; that of the best constant, the target's mean, is %1").arg(number(score_->constant));
  return text + u'.';
}

QString OutputPanel::noted() const {
  QStringList said;
  if (!unknown_.isEmpty())
    said << tr("There is no output %1: they are numbered from 0 to %2.")
                .arg(unknown_.join(QStringLiteral(", ")), grouped(data_.channels() - 1));
  if (chosen_.size() > most_in_colour) said << tr("Seven have a colour of their own, beyond them colours repeat.");
  if (data_.classes() && data_.hasTarget())
    said << (probabilities() ? tr("A ring at 1 is the class that the output should be.")
                             : tr("A ring is on the logit that should be the largest."));
  if (score_ && trace_->info.every > 1)
    said << tr("Of every %1 steps one was recorded, and counted here.").arg(grouped(trace_->info.every));
  said << notesOn(*trace_, {Kind::output, Kind::target});
  said.removeAll(QString());
  return said.join(u' ');
}

QString OutputPanel::makeHeadline() const {
  if (score_)
    return data_.classes() ? tr("%1 right").arg(percent(score_->right))
                           : tr("RMSE %1").arg(number(std::sqrt(2.0 * score_->loss / static_cast<double>(data_.channels()))));
  const std::int64_t row = std::min(data_.rowOf(step_), data_.rows() - 1);
  if (data_.channels() == 1) return QStringLiteral("%1 = %2").arg(data_.name(0), number(data_.value(row, 0)));
  double squares = 0.0;
  for (std::int64_t j = 0; j < data_.channels(); ++j) squares += data_.value(row, j) * data_.value(row, j);
  return tr("|y| = %1").arg(number(std::sqrt(squares)));
}

QString OutputPanel::tipAt(const QPointF& position) const {
  if (!data_.some() || !rect_->rect().contains(position.toPoint())) return {};
  const QCPAxis* values = rect_->axis(QCPAxis::atLeft);
  const std::int64_t row =
      std::min(data_.rowOf(std::llround(rect_->axis(QCPAxis::atBottom)->pixelToCoord(position.x()))), data_.rows() - 1);
  // The nearest curve, and of equally near ones that in colour.
  std::int64_t nearest = -1;
  double least = 12.0;
  for (std::int64_t j = 0; j < data_.channels(); ++j) {
    const bool coloured = std::ranges::find(chosen_, j) != chosen_.end();
    const double away = std::abs(values->coordToPixel(shown(data_, row, j)) - position.y()) + (coloured ? 0.0 : 1.0);
    if (away < least) least = away, nearest = j;
  }
  if (nearest < 0) return {};
  const std::int64_t step = data_.steps()[static_cast<std::size_t>(row)];
  QStringList said;
  const double value = data_.value(row, nearest);
  if (data_.classes())
    said << tr("%1 at step %2: probability %3, logit %4")
                .arg(data_.name(nearest).toHtmlEscaped(), stepText(trace_.get(), step), number(data_.probability(row, nearest), 4),
                     number(value, 4));
  else
    said << tr("%1 at step %2: %3").arg(data_.name(nearest).toHtmlEscaped(), stepText(trace_.get(), step), number(value, 4));
  if (const auto target = data_.target(row, nearest))
    said << (data_.classes() ? tr("target: %1").arg(data_.name(data_.targetClass(row)).toHtmlEscaped())
                             : tr("target %1, error %2").arg(number(*target, 4), number(value - *target, 3)));
  else if (data_.hasTarget())
    said << tr("No target counts here.");
  auto pin = pins_.begin();
  for (const Run& run : pinned_) {
    const OutputData& other = *pin++;
    if (!other.some() || nearest >= other.channels() || other.classes() != data_.classes()) continue;
    const std::int64_t its = other.rowOf(step);
    if (other.steps()[static_cast<std::size_t>(its)] == step)
      said << tr("%1: %2").arg(run.label.toHtmlEscaped(), number(shown(other, its, nearest), 4));
  }
  return htmlTip(said.join(QStringLiteral("<br>")));
}

QString OutputPanel::dataAsCsv() const {
  if (!trace_ || !data_.some()) return {};
  const QString key = probabilities() ? QStringLiteral("probability") : QString::fromStdString(key_of(Kind::output));
  StepTable table(*trace_);
  const auto add = [&](const OutputData& of, const QString& name, std::function<QByteArray(std::int64_t row)> cell) {
    table.add(name, of.steps(), [&of, cell](std::int64_t row) { return row < of.rows() ? cell(row) : QByteArray(); });
  };
  const auto values = [&](const OutputData& of, std::int64_t j, const QString& run) {
    add(of, QStringLiteral("%1/%2").arg(key).arg(j) + run, [this, &of, j](std::int64_t row) { return csvNumber(shown(of, row, j)); });
  };
  table.addSteps({data_.steps().begin(), data_.steps().begin() + data_.rows()});
  for (std::int64_t j = 0; j < data_.channels(); ++j) values(data_, j, {});
  const std::int64_t targets = !data_.hasTarget() ? 0 : data_.classes() ? 1 : data_.channels();
  for (std::int64_t j = 0; j < targets; ++j)
    add(data_, QStringLiteral("target/%1").arg(j), [this, j](std::int64_t row) {
      if (data_.weight(row) == 0.0) return QByteArray();
      return data_.classes() ? csvNumber(data_.targetClass(row)) : csvNumber(*data_.target(row, j));
    });
  if (targets > 0) add(data_, QStringLiteral("mask"), [this](std::int64_t row) { return csvNumber(data_.weight(row)); });
  auto pin = pins_.begin();
  for (const Run& run : pinned_) {
    const OutputData& other = *pin++;
    if (!other.some() || other.classes() != data_.classes()) continue;
    table.addSteps(other.steps());
    for (const std::int64_t j : chosen_)
      if (j < other.channels()) values(other, j, QStringLiteral(" [%1]").arg(run.label));
  }
  return table.csv();
}

}  // namespace reclab
