// SPDX-License-Identifier: GPL-3.0-or-later
// The pictures of the credit panel, and what it says of them.
#include <algorithm>
#include <array>
#include <cmath>

#include "panels/credit/credit.h"
#include "panels/power_colours.h"
#include "plot/parts/curves.h"
#include "window_text.h"

namespace reclab {
namespace {

constexpr double lowest_noise = 6.0;     // decades below the largest that are drawn
constexpr double right_angle = 90.0;     // degrees
constexpr int room_for_two = 370;        // height of the panel
constexpr std::int64_t most_names = 14;  // of parameters beside their rows

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

bool alone(const CreditData::Values& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i]) && (i == 0 || !std::isfinite(values[i - 1])) && (i + 1 == values.size() || !std::isfinite(values[i + 1])))
      return true;
  return false;
}

}  // namespace

bool CreditPanel::isLow() const { return height() < room_for_two; }

void CreditPanel::arrange() {
  const View now = view();
  const bool times = now == View::steps || now == View::noise;
  std::vector<PictureCell> shown;
  if (times) shown.push_back({upper_, 0});
  if (times && !isLow()) shown.push_back({lower_, 1});
  if (now == View::parameters) shown.insert(shown.end(), {{weights_picture_.rect}, {weights_picture_.bar, 0, 1}});
  if (now == View::delays) shown.insert(shown.end(), {{delays_picture_.rect}, {delays_picture_.bar, 0, 1}});
  if (now == View::cost) shown.push_back({cost_});
  if (now == View::rules) shown.push_back({map_});
  const std::initializer_list<QCPLayoutElement*> all{
      upper_, lower_, weights_picture_.rect, weights_picture_.bar, delays_picture_.rect, delays_picture_.bar, cost_, map_};
  showCells(grid_, all, shown);
  for (QCPLayoutElement* one : all)
    if (!one->visible()) one->setOuterRect(QRect());
  const bool both = lower_->visible();
  upper_->axis(QCPAxis::atBottom)->setTickLabels(!both);
  if (both) upper_->axis(QCPAxis::atBottom)->setLabel(QString());
  plot_->setLeastPicture(both ? 220 : 150);
  if (trace_) plot_->setTimeNames(*trace_);
  weights_picture_.heatmap->setVisible(now == View::parameters);
  delays_picture_.heatmap->setVisible(now == View::delays);
  right_angle_->setVisible(now == View::steps);
  one_->setVisible(times && both);
  const QPen thin(plot_->theme().axis, 1, Qt::DashLine);
  right_angle_->setPen(thin);
  one_->setPen(thin);
}

/// A curve a rule; points where a step's loss stands alone.
void CreditPanel::drawTimes(QCPAxisRect* rect, const std::function<double(const CreditData::Rule&, std::size_t)>& value, bool legend) {
  for (std::size_t i = 0; i < data_.rules.size(); ++i) {
    const CreditData::Rule& rule = data_.rules[i];
    const QPen pen = penOf(i);
    QCPGraph* graph = plot_->addCurve(rect, pen.color(), pen.widthF(), pen.style());
    graph->setName(nameOf(rule.id));
    fillCurve(graph, data_.steps, std::ssize(data_.steps), [&](std::int64_t t) { return value(rule, static_cast<std::size_t>(t)); });
    if (alone(rule.angle)) graph->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, pen.color(), pen.color(), 5));
    if (!legend) continue;
    QList<QCPLayerable*> shows{graph};
    const RuleTable::Rule* facts = factsOf(rule.id);
    legend_->add(QStringLiteral("rule/") + rule.id, rule.exact ? tr("%1 (exact here)").arg(nameOf(rule.id)) : nameOf(rule.id), pen, shows,
                 facts ? QString::fromStdString(facts->title + ". " + facts->idea) : QString());
  }
}

void CreditPanel::showSteps() {
  const bool noise = view() == View::noise;
  upper_->axis(QCPAxis::atLeft)
      ->setTicker(noise ? QSharedPointer<QCPAxisTicker>(new PowerTicker) : QSharedPointer<QCPAxisTicker>(new NumberTicker));
  const auto log_of = [](double x) { return x > 0.0 ? std::log10(x) : no_value; };
  drawTimes(upper_, [&](const CreditData::Rule& rule, std::size_t t) { return noise ? log_of(rule.bias[t]) : rule.angle[t]; }, true);
  if (lower_->visible())
    drawTimes(
        lower_, [&](const CreditData::Rule& rule, std::size_t t) { return log_of(noise ? rule.deviation[t] : rule.ratio[t]); }, false);
  const auto fit = [&](QCPAxisRect* rect, ValueAxis* values) {
    std::optional<QCPRange> span = spanOf(rect);
    if (!span) return;
    if (noise) span->lower = std::max(span->lower, span->upper - lowest_noise);
    values->fit(padded(*span, 0.06, 0.1));
  };
  if (noise) {
    fit(upper_, upper_values_);
  } else {
    const std::optional<QCPRange> span = spanOf(upper_);
    upper_values_->fit({-3.0, std::max(right_angle, span ? span->upper : right_angle) + 6.0});
  }
  if (lower_->visible()) fit(lower_, lower_values_);
}

void CreditPanel::showDelays() {
  const std::size_t delays = data_.rules.front().delay_angle.size();
  auto angles = std::make_shared<std::vector<double>>();
  std::vector<std::int64_t> columns;
  const QSharedPointer<QCPAxisTickerText> names(new QCPAxisTickerText);
  for (std::size_t d = 0; d < delays; ++d) {
    columns.push_back(static_cast<std::int64_t>(d));
    for (const CreditData::Rule& rule : data_.rules) angles->push_back(rule.delay_angle[d]);
  }
  for (std::size_t i = 0; i < data_.rules.size(); ++i) names->addTick(static_cast<double>(i), nameOf(data_.rules[i].id));
  const auto& picture = delays_picture_;
  picture.heatmap->setData(std::move(angles), std::ssize(data_.rules), columns);
  picture.heatmap->setScale(0.0, std::max(right_angle, picture.heatmap->dataHigh()));
  picture.bar->show(*picture.heatmap, tr("angle, °"));
  QCPAxis* bottom = picture.rect->axis(QCPAxis::atBottom);
  bottom->setTicker(QSharedPointer<QCPAxisTicker>(new StepTicker));
  bottom->setRange(-0.5, static_cast<double>(delays) - 0.5);
  bottom->setLabel(tr("steps from the weights to the loss"));
  picture.rect->axis(QCPAxis::atLeft)->setTicker(names);
  picture.rect->axis(QCPAxis::atLeft)->setLabel(QString());
  delays_picture_.setUnits(std::ssize(data_.rules));
}

void CreditPanel::showParameters() {
  const CreditData::Rule* rule = data_.find(chosenRule());
  if (!rule) return weights_picture_.heatmap->clear();
  const std::int64_t count = std::ssize(rule->weights);
  auto angles = std::make_shared<std::vector<double>>();
  for (std::size_t t = 0; t < data_.steps.size(); ++t)
    for (const auto& [weight, values] : rule->weights) angles->push_back(values[t]);
  const auto& picture = weights_picture_;
  picture.heatmap->setData(std::move(angles), count, data_.steps);
  picture.heatmap->setScale(0.0, std::max(right_angle, picture.heatmap->dataHigh()));
  picture.bar->show(*picture.heatmap, tr("angle, °"));
  QCPAxis* left = picture.rect->axis(QCPAxis::atLeft);
  if (count <= most_names) {
    const QSharedPointer<QCPAxisTickerText> names(new QCPAxisTickerText);
    for (std::int64_t w = 0; w < count; ++w) names->addTick(static_cast<double>(w), rule->weights[static_cast<std::size_t>(w)].first);
    left->setTicker(names);
    left->setLabel(QString());
  } else {
    left->setTicker(QSharedPointer<QCPAxisTicker>(new StepTicker));
    left->setLabel(tr("parameter"));
  }
  weights_picture_.setUnits(count);
}

void CreditPanel::showCost() {
  std::optional<QCPRange> x, y;
  const auto reach = [](std::optional<QCPRange>& range, double value) {
    if (!range)
      range = QCPRange(value, value);
    else
      range->expand(value);
  };
  for (std::size_t i = 0; i < data_.rules.size(); ++i) {
    const CreditData::Rule& rule = data_.rules[i];
    if (!(rule.bytes > 0.0 && rule.seconds > 0.0)) continue;
    const double key = std::log10(rule.bytes), value = std::log10(rule.seconds);
    const QColor ink = plot_->theme().series(static_cast<int>(i));
    QCPGraph* point = plot_->addCurve(cost_, ink);
    Plot::setQuiet(point);
    point->setLineStyle(QCPGraph::lsNone);
    point->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, ink, ink, rule.id == chosenRule() ? 11 : 8));
    point->addData(key, value);
    auto* name = new QCPItemText(plot_);
    name->position->setAxes(cost_->axis(QCPAxis::atBottom), cost_->axis(QCPAxis::atLeft));
    name->position->setCoords(key, value);
    name->setClipAxisRect(cost_);
    name->setSelectable(false);
    name->setPositionAlignment((i % 2 == 0 ? Qt::AlignBottom : Qt::AlignTop) | Qt::AlignHCenter);
    name->setPadding(QMargins(4, 6, 4, 6));
    name->setText(nameOf(rule.id));
    name->setFont(plot_->theme().small);
    name->setColor(legible(ink, plot_->theme()));
    names_.push_back(name);
    reach(x, key);
    reach(y, value);
  }
  cost_->axis(QCPAxis::atBottom)->setLabel(tr("memory beside the model's, bytes"));
  cost_->axis(QCPAxis::atLeft)->setLabel(tr("time a step, s"));
  if (x) cost_->axis(QCPAxis::atBottom)->setRange(padded(*x, 0.15, 0.5));
  if (y) cost_->axis(QCPAxis::atLeft)->setRange(padded(*y, 0.25, 0.5));
}

void CreditPanel::showMap() {
  map_->setTable(table_);
  map_->setChosen(chosenRule());
}

void CreditPanel::moveTime() {
  QString text;
  switch (view()) {
    case View::steps: text = saidOfSteps(); break;
    case View::noise: text = saidOfNoise(); break;
    case View::delays:
      text =
          tr("The angle between each rule's gradient and the true one, of weights that act so many steps before the loss and at no other: "
             "90° is no credit at all. Without colour: there is no such gradient.");
      break;
    case View::parameters: text = saidOfParameters(); break;
    case View::cost: text = saidOfCost(); break;
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
  const QString where =
      at == step_ ? tr("At step %1").arg(grouped(at)) : tr("Step %1 has no loss; at step %2").arg(grouped(step_), grouped(at));
  return tr("%1 %2. At 90° a gradient has no part of the true one.").arg(where, said.join(tr("; ")));
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
      .arg(grouped(at), said.join(tr("; ")));
}

QString CreditPanel::saidOfParameters() const {
  const CreditData::Rule* rule = data_.find(chosenRule());
  const std::int64_t at = data_.nearestCounted(step_);
  if (!rule || at < 0) return tr("No step of this sequence has a loss with a gradient.");
  const std::pair<QString, CreditData::Values>*best = nullptr, *worst = nullptr;
  const auto t = static_cast<std::size_t>(at);
  for (const auto& one : rule->weights) {
    if (std::isnan(one.second[t])) continue;
    if (!best || one.second[t] < best->second[t]) best = &one;
    if (!worst || one.second[t] > worst->second[t]) worst = &one;
  }
  if (!best) return tr("%1 has no gradient at step %2.").arg(nameOf(rule->id), grouped(at));
  const QString last = tr("Without colour: the true gradient is 0.");
  if (best == worst)
    return tr("At step %1 %2 is %3° off by %4. %5").arg(grouped(at), nameOf(rule->id), number(best->second[t]), best->first, last);
  return tr("At step %1 %2 is nearest by %3, %4°, and farthest by %5, %6°. %7")
      .arg(grouped(at), nameOf(rule->id), best->first, number(best->second[t]), worst->first, number(worst->second[t]), last);
}

QString CreditPanel::saidOfCost() const {
  const CreditData::Rule* rule = data_.find(chosenRule());
  if (!rule) return {};
  QString text = tr("%1 took %2 beside the model's memory and %3 a step here.")
                     .arg(nameOf(rule->id), bytesText(rule->bytes), secondsText(rule->seconds));
  if (const RuleTable::Rule* facts = factsOf(rule->id))
    text += u' ' + tr("By its equations it keeps %1 numbers and takes %2 operations a step, d_s entries of the state and |θ| weights.")
                       .arg(QString::fromStdString(facts->memory), QString::fromStdString(facts->time));
  return text;
}

QString CreditPanel::cardOf(const RuleTable::Rule& rule) const {
  QStringList said{
      QStringLiteral("%1 (%2). %3").arg(QString::fromStdString(rule.title)).arg(rule.year).arg(QString::fromStdString(rule.idea))};
  said << tr("Numbers kept: %1; operations a step: %2.").arg(QString::fromStdString(rule.memory), QString::fromStdString(rule.time));
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
  if (data_.rules.empty()) return {};
  const auto degrees = [](double angle) { return std::isnan(angle) ? tr("no gradient") : number(angle) + u'°'; };
  if (view() == View::delays)
    if (const auto entry = delays_picture_.heatmap->at(position)) {
      const CreditData::Rule& rule = data_.rules[static_cast<std::size_t>(entry->unit)];
      const auto d = static_cast<std::size_t>(entry->step);
      return tr("%1, weights that act %2 steps before the loss: %3, %4 times as long")
          .arg(nameOf(rule.id), grouped(entry->step), degrees(rule.delay_angle[d]), number(rule.delay_ratio[d]));
    }
  if (view() == View::parameters)
    if (const auto entry = weights_picture_.heatmap->at(position))
      if (const CreditData::Rule* rule = data_.find(chosenRule()))
        return tr("%1, step %2, by %3: %4")
            .arg(nameOf(rule->id), grouped(entry->step), rule->weights[static_cast<std::size_t>(entry->unit)].first, degrees(entry->value));
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
