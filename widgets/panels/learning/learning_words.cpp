// SPDX-License-Identifier: GPL-3.0-or-later
// The texts on trainings: above and under the curves, under the pointer, in a figure's file, and as a table.
#include <QRegularExpression>
#include <algorithm>

#include "panels/learning/learning.h"
#include "plain_text.h"

namespace reclab {

QString LearningPanel::subject() const { return showsMetric() ? tr("metric") : tr("loss"); }

QString LearningPanel::whyEmpty() const {
  const bool empty = !learning_ || learning_->trainings.empty();
  offer_->setVisible(empty);
  return empty ? tr("Nothing has learned yet. Train this model, and its loss appears here; all other panels follow it while it learns.")
               : QString();
}

QString LearningPanel::judged() const {
  const LearningCurve& line = ofTheLine();
  if (const LearningCurve* current = learning_->find(learning_->current); current != nullptr && current->waits)
    return tr("%1 waits: choose how it learns, then press Train.").arg(nameOf(*current));
  if (!line.problem.empty()) return QString::fromStdString(line.problem);
  const std::int64_t step = learning_->line != 0 ? learning_->line_step : line.done;
  QString text = tr("%1, step %2 of %3").arg(nameOf(line), grouped(step), grouped(std::max(line.done, line.wanted)));
  if (learning_->pace > 0.0 && learning_->running) text += tr(", %1 steps/s").arg(number(learning_->pace, 2));
  const auto judgement = line.judgement(step);
  if (!judgement) return text + u'.';
  const QString value = number(line.judged_metric[*judgement]), baseline = number(line.baseline_metric),
                what = QString::fromStdString(line.metric);
  const std::int64_t after = line.judged[*judgement];
  text += after == step ? tr(": on what is held out its %1 is %2").arg(what, value)
                        : tr(": on what is held out its %1 was %2 after step %3").arg(what, value, grouped(after));
  return text + tr("; the baseline, %1, has %2.").arg(QString::fromStdString(line.baseline), baseline);
}

QString LearningPanel::makeHeadline() const {
  const LearningCurve& line = ofTheLine();
  const auto judgement = line.judgement(learning_->line != 0 ? learning_->line_step : line.done);
  return judgement ? tr("held out: %1 %2, baseline %3")
                         .arg(QString::fromStdString(line.metric), number(line.judged_metric[*judgement]), number(line.baseline_metric))
                   : QString();
}

QString LearningPanel::noted() const {
  const LearningCurve* now = learning_->find(learning_->current);
  if (now == nullptr) return {};
  QStringList said;
  if (!now->from.empty()) said << tr("Learned from %1.").arg(QString::fromStdString(now->from));
  if (!showsMetric())
    said << tr("The loss is %1: thin, of each batch before its step; thick, of what is held out.")
                .arg(now->metric == "accuracy" ? tr("the cross-entropy") : tr("half the squared error"));
  if (!now->note.empty()) said << QString::fromStdString(now->note);
  if (below_->currentIndex() == static_cast<int>(Lower::changes) && now->weights.size() > most_named_weights)
    said << tr("Of %1 parameters the %2 that changed most last are drawn; all are in the data.")
                .arg(grouped(std::ssize(now->weights)), grouped(static_cast<std::int64_t>(most_named_weights)));
  return said.join(u' ');
}

QString LearningPanel::tipAt(const QPointF& position) const {
  if (!learning_ || !upper_->rect().united(lower_->rect()).contains(position.toPoint())) return {};
  const auto step = static_cast<std::int64_t>(std::llround(upper_->axis(QCPAxis::atBottom)->pixelToCoord(position.x())));
  QStringList lines;
  for (const LearningCurvePtr& one : learning_->trainings) {
    const auto at = one->at(step);
    if (!at) continue;
    const std::size_t i = *at;
    lines << tr("<b>%1</b>, step %2: loss of the batch %3, gradient %4, after clipping %5, rate %6")
                 .arg(nameOf(*one).toHtmlEscaped(), grouped(step), number(one->loss[i]), number(one->norm[i]), number(one->clipped[i]),
                      number(one->rate[i]));
  }
  return htmlTip(lines.join(QStringLiteral("<br>")));
}

/// Named after the present or last training, not the current model: "gru" for the training "GRU (2)".
QString LearningPanel::fileModel(const QString&) const {
  if (!learning_ || learning_->trainings.empty()) return {};
  const LearningCurve* current = learning_->find(learning_->current);
  static const QRegularExpression number(QStringLiteral("[(,].*")),
      other(QStringLiteral("[^\\w]+"), QRegularExpression::UseUnicodePropertiesOption);
  QString name = nameOf(current != nullptr ? *current : *learning_->trainings.back()).remove(number).trimmed().toLower();
  return name.replace(other, QStringLiteral("-"));
}

/// A figure of the curves says which trainings they are of, and not which run is looked at.
FigureDrawing LearningPanel::drawing(const FigureStyle& style) {
  QStringList names, commands;
  for (const LearningCurvePtr& one : learning_->trainings) {
    names << tr("%1 learned from %2, %3 of %4 steps")
                 .arg(nameOf(*one), QString::fromStdString(one->from), grouped(one->done), grouped(one->wanted));
    commands << QString::fromStdString(one->command);
  }
  FigureText text(QStringLiteral("%1: %2 – %3").arg(title(), subject(), nameOf(*learning_->trainings.back())));
  text.description = tr("%1. Made by Recurrence Lab. Again: %2").arg(names.join(QStringLiteral("; ")), commands.join(QStringLiteral("; ")));
  text.command = commands.join(QStringLiteral("; "));
  return plot_->drawing(text, style);
}

QString LearningPanel::dataAsCsv() const {
  if (!learning_ || learning_->trainings.empty()) return {};
  QByteArray text = "training,name,step,loss,rate,gradient_norm,clipped_norm,held_out_loss,held_out_metric";
  // The weights of all trainings, each named once.
  std::vector<std::string> names;
  for (const LearningCurvePtr& one : learning_->trainings)
    for (const std::string& name : one->weights)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  for (const std::string& name : names) text += ',' + csvCell(QStringLiteral("change/") + QString::fromStdString(name)).toUtf8();
  text += '\n';
  for (const LearningCurvePtr& one : learning_->trainings) {
    std::size_t judged = 0;
    for (std::int64_t step = one->first; step <= one->first + std::ssize(one->loss); ++step) {
      while (judged < one->judged.size() && one->judged[judged] < step) ++judged;
      const bool there = judged < one->judged.size() && one->judged[judged] == step;
      const auto at = one->at(step);
      if (!at && !there) continue;
      text += QByteArray::number(static_cast<qulonglong>(one->training)) + ',' + csvCell(nameOf(*one)).toUtf8() + ',' +
              QByteArray::number(static_cast<qlonglong>(step));
      for (const auto* values : {&one->loss, &one->rate, &one->norm, &one->clipped})
        text += ',' + (at ? csvNumber((*values)[*at]) : QByteArray());
      for (const auto* values : {&one->judged_loss, &one->judged_metric})
        text += ',' + (there ? csvNumber((*values)[judged]) : QByteArray());
      for (const std::string& name : names) {
        const auto found = std::ranges::find(one->weights, name);
        const bool changed = there && judged > 0 && judged - 1 < one->changes.size() && found != one->weights.end();
        text +=
            ',' + (changed ? csvNumber(one->changes[judged - 1][static_cast<std::size_t>(found - one->weights.begin())]) : QByteArray());
      }
      text += '\n';
    }
  }
  return QString::fromUtf8(text);
}

}  // namespace reclab
