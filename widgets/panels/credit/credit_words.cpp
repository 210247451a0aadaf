// SPDX-License-Identifier: GPL-3.0-or-later
// What the credit panel says of its pictures: the sentence under them, and the tips over them.
#include <array>
#include <cmath>

#include "panels/credit/credit.h"
#include "plot/parts/step_text.h"
#include "window_text.h"

namespace reclab {
namespace {

QString bytesText(double bytes) {
  const std::array<const char*, 4> units{"bytes", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024.0 && unit + 1 < units.size(); ++unit) bytes /= 1024.0;
  return number(bytes) + u' ' + QLatin1String(units[unit]);
}

QString secondsText(double seconds) {
  return seconds < 1e-3  ? number(1e6 * seconds) + QStringLiteral(" µs")
         : seconds < 1.0 ? number(1e3 * seconds) + QStringLiteral(" ms")
                         : number(seconds) + QStringLiteral(" s");
}

}  // namespace

QString CreditPanel::costByEquations(const RuleTable::Rule& rule) {
  return tr("By its equations: numbers kept, %1; operations a step, %2, for T steps, dₛ entries of the state and |θ| weights.")
      .arg(mathText(QString::fromStdString(rule.memory)), mathText(QString::fromStdString(rule.time)));
}

void CreditPanel::moveTime() {
  QString text;
  switch (view()) {
    case View::steps: text = saidOfSteps(); break;
    case View::noise: text = saidOfNoise(); break;
    case View::delays: text = saidOfDelays(); break;
    case View::parameters: text = saidOfParameters(); break;
    case View::cost: text = saidOfCost(); break;
    case View::training: text = saidOfTraining(); break;
    case View::rules:
      if (const RuleTable::Rule* rule = factsOf(chosenRule())) text = cardOf(*rule);
      break;
  }
  said_->say(text);
}

QString CreditPanel::saidOfSteps() const {
  const std::int64_t at = data_.nearestCounted(step_);
  if (at < 0) return tr("No step of this sequence has a loss with a gradient.");
  QStringList said;
  for (const CreditData::Rule& rule : data_.rules) {
    const auto t = static_cast<std::size_t>(at);
    if (std::isnan(rule.angle[t]))
      said << tr("%1 has no gradient").arg(nameOf(rule.id));
    else
      said << tr("%1 is %2° off, %3 times as long").arg(nameOf(rule.id), number(rule.angle[t]), number(rule.ratio[t]));
  }
  const QString where = at == step_ ? tr("At step %1").arg(stepText(trace_.get(), at))
                                    : tr("Step %1 has no loss; at step %2").arg(stepText(trace_.get(), step_), stepText(trace_.get(), at));
  return tr("%1 %2. At 90° a gradient has no part of the true one.").arg(where, said.join(tr("; ")));
}

QString CreditPanel::saidOfDelays() const {
  if (!showsRatios())
    return tr(
        "The angle between each rule's gradient and the true one, of weights that act so many steps before the loss and at no other: at "
        "90° "
        "there is no part of the true one in it. Without colour: the rule has no gradient there, or there is no true one.");
  const QString said =
      tr("The norm of each rule's gradient over that of the true one, of weights that act so many steps before the loss and at no other. "
         "Without colour: the rule has no gradient there, or there is no true one.");
  return (said + u' ' + clipped_).trimmed();
}

QString CreditPanel::saidOfNoise() const {
  const std::int64_t at = data_.nearestCounted(step_);
  if (at < 0) return tr("No step of this sequence has a loss with a gradient.");
  QStringList said;
  for (const CreditData::Rule& rule : data_.rules) {
    const auto t = static_cast<std::size_t>(at);
    said << (rule.repeats > 1 ? tr("%1 has bias %2 and deviation %3 over %4 repeats")
                                    .arg(nameOf(rule.id), number(rule.bias[t]), number(rule.deviation[t]), grouped(rule.repeats))
                              : tr("%1 has bias %2 and is the same each time").arg(nameOf(rule.id), number(rule.bias[t])));
  }
  return tr("At step %1 %2. The mean of N repeats of an unbiased rule is off by its deviation over √N.")
      .arg(stepText(trace_.get(), at), said.join(tr("; ")));
}

QString CreditPanel::saidOfParameters() const {
  const CreditData::Rule* rule = data_.find(chosenRule());
  const std::int64_t at = data_.nearestCounted(step_);
  if (!rule || at < 0) return tr("No step of this sequence has a loss with a gradient.");
  const CreditData::Rule::Weight *best = nullptr, *worst = nullptr;
  const auto t = static_cast<std::size_t>(at);
  for (const CreditData::Rule::Weight& one : rule->weights) {
    if (std::isnan(one.angle[t])) continue;
    if (!best || one.angle[t] < best->angle[t]) best = &one;
    if (!worst || one.angle[t] > worst->angle[t]) worst = &one;
  }
  if (!best) return tr("%1 has no gradient at step %2.").arg(nameOf(rule->id), stepText(trace_.get(), at));
  const QString last = (tr("Without colour: a gradient there is 0.") + u' ' + clipped_).trimmed();
  if (best == worst)
    return tr("At step %1 %2 is %3° off by %4. %5")
        .arg(stepText(trace_.get(), at), nameOf(rule->id), number(best->angle[t]), best->name, last);
  return tr("At step %1 %2 is nearest by %3, %4°, and farthest by %5, %6°. %7")
      .arg(stepText(trace_.get(), at), nameOf(rule->id), best->name, number(best->angle[t]), worst->name, number(worst->angle[t]), last);
}

QString CreditPanel::saidOfCost() const {
  const CreditData::Rule* rule = data_.find(chosenRule());
  if (!rule) return {};
  QString text = tr("%1 took %2 beside the model and its gradient, and %3 a step here.")
                     .arg(nameOf(rule->id), bytesText(rule->bytes), secondsText(rule->seconds));
  if (const RuleTable::Rule* facts = factsOf(rule->id)) text += u' ' + costByEquations(*facts);
  return text;
}

QString CreditPanel::cardOf(const RuleTable::Rule& rule) const {
  QStringList said{
      QStringLiteral("%1 (%2). %3").arg(QString::fromStdString(rule.title)).arg(rule.year).arg(QString::fromStdString(rule.idea))};
  said << costByEquations(rule);
  if (!rule.why_not.empty())
    said << windowText(rule.why_not);
  else if (rule.exact_here && rule.gradient != "exact")
    said << tr("For this model it is exact.");
  said << QString::fromStdString(rule.source) + u'.';
  return said.join(u' ');
}

QString CreditPanel::tipAt(const QPointF& position) const {
  if (view() == View::rules) {
    const RuleTable::Rule* rule = map_->ruleAt(position);
    return rule ? cardOf(*rule) : QString();
  }
  if (view() == View::training) return tipOfTraining(position);
  if (data_.rules.empty()) return {};
  const auto degrees = [](double angle) { return std::isnan(angle) ? tr("no gradient") : number(angle) + u'°'; };
  if (view() == View::delays)
    if (const auto entry = delays_picture_.heatmap->at(position)) {
      const CreditData::Rule& rule = data_.rules[static_cast<std::size_t>(entry->unit)];
      const auto d = static_cast<std::size_t>(entry->step);
      return tr("%1, weights that act %2 steps before the loss: %3, %4 times as long")
          .arg(nameOf(rule.id), stepText(trace_.get(), entry->step), degrees(rule.delay_angle[d]), number(rule.delay_ratio[d]));
    }
  if (view() == View::parameters)
    if (const auto entry = weights_picture_.heatmap->at(position))
      if (const CreditData::Rule* rule = data_.find(chosenRule())) {
        const CreditData::Rule::Weight& weight = rule->weights[static_cast<std::size_t>(entry->unit)];
        const auto t = static_cast<std::size_t>(entry->step);
        return tr("%1, step %2, by %3: %4, %5 times as long")
            .arg(nameOf(rule->id), stepText(trace_.get(), entry->step), weight.name, degrees(weight.angle[t]), number(weight.ratio[t]));
      }
  if (view() == View::cost)
    for (const CreditData::Rule& rule : data_.rules) {
      const QPointF at(cost_->axis(QCPAxis::atBottom)->coordToPixel(std::log10(rule.bytes)),
                       cost_->axis(QCPAxis::atLeft)->coordToPixel(std::log10(rule.seconds)));
      if ((at - position).manhattanLength() < 12.0)
        return tr("%1: %2, %3 a step").arg(nameOf(rule.id), bytesText(rule.bytes), secondsText(rule.seconds));
    }
  return {};
}

}  // namespace reclab
