// SPDX-License-Identifier: GPL-3.0-or-later
// The pictures of the credit panel.
#include <algorithm>
#include <cmath>

#include "panels/credit/credit.h"
#include "panels/power_colours.h"
#include "plot/parts/curves.h"

namespace reclab {
namespace {

constexpr double lowest_noise = 6.0;     // decades below the largest that are drawn
constexpr double lowest_ratio = 4.0;     // the same, in maps
constexpr double right_angle = 90.0;     // degrees
constexpr int room_for_two = 370;        // height of the panel
constexpr std::int64_t most_names = 14;  // of parameters beside their rows

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
  if (now == View::training) shown.push_back({training_});
  if (now == View::rules) shown.push_back({map_});
  const std::initializer_list<QCPLayoutElement*> all{
      upper_, lower_, weights_picture_.rect, weights_picture_.bar, delays_picture_.rect, delays_picture_.bar, cost_, training_, map_};
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

void CreditPanel::fillMap(const MapPicture& picture, std::vector<double> values, std::int64_t rows,
                          const std::vector<std::int64_t>& columns) {
  if (showsRatios()) {
    for (double& x : values) x = x > 0.0 ? std::log10(x) : no_value;
    clipped_ = clippedText(showPowers(*picture.heatmap, *picture.bar, values, rows, columns, lowest_ratio, tr("|estimate| / |truth|")));
    return;
  }
  clipped_.clear();
  picture.heatmap->setData(std::make_shared<std::vector<double>>(std::move(values)), rows, columns);
  picture.heatmap->setScale(0.0, std::max(right_angle, picture.heatmap->dataHigh()));
  picture.bar->axis()->setTicker(QSharedPointer<QCPAxisTicker>(new NumberTicker));
  picture.bar->show(*picture.heatmap, tr("angle, °"));
}

void CreditPanel::showDelays() {
  const std::size_t delays = data_.rules.front().delay_angle.size();
  std::vector<double> values;
  std::vector<std::int64_t> columns;
  const QSharedPointer<QCPAxisTickerText> names(new QCPAxisTickerText);
  for (std::size_t d = 0; d < delays; ++d) {
    columns.push_back(static_cast<std::int64_t>(d));
    for (const CreditData::Rule& rule : data_.rules) values.push_back(showsRatios() ? rule.delay_ratio[d] : rule.delay_angle[d]);
  }
  for (std::size_t i = 0; i < data_.rules.size(); ++i) names->addTick(static_cast<double>(i), nameOf(data_.rules[i].id));
  const auto& picture = delays_picture_;
  fillMap(picture, std::move(values), std::ssize(data_.rules), columns);
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
  std::vector<double> values;
  for (std::size_t t = 0; t < data_.steps.size(); ++t)
    for (const CreditData::Rule::Weight& weight : rule->weights) values.push_back(showsRatios() ? weight.ratio[t] : weight.angle[t]);
  const auto& picture = weights_picture_;
  fillMap(picture, std::move(values), count, data_.steps);
  QCPAxis* left = picture.rect->axis(QCPAxis::atLeft);
  if (count <= most_names) {
    const QSharedPointer<QCPAxisTickerText> names(new QCPAxisTickerText);
    for (std::int64_t w = 0; w < count; ++w) names->addTick(static_cast<double>(w), rule->weights[static_cast<std::size_t>(w)].name);
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
  for (std::size_t i = 0; i < data_.rules.size(); ++i) {
    const CreditData::Rule& rule = data_.rules[i];
    if (!(rule.bytes > 0.0 && rule.seconds > 0.0)) continue;
    const double key = std::log10(rule.bytes), value = std::log10(rule.seconds);
    const QColor ink = penOf(i).color();
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
    name->setPadding(QMargins(7, 5, 7, 5));
    name->setText(nameOf(rule.id));
    name->setFont(plot_->theme().small);
    name->setProperty("rule", static_cast<uint>(i));
    names_.push_back(name);
    if (const RuleTable::Rule* facts = factsOf(rule.id))
      legend_->add(QStringLiteral("cost/") + rule.id, tr("%1: %2").arg(nameOf(rule.id), RuleMap::costOf(*facts)), QPen(ink, 1.6),
                   {point, name}, costByEquations(*facts));
    expandTo(x, key);
    expandTo(y, value);
  }
  cost_->axis(QCPAxis::atBottom)->setLabel(tr("memory beside model and gradient, bytes"));
  cost_->axis(QCPAxis::atLeft)->setLabel(tr("time a step, s"));
  if (x) cost_->axis(QCPAxis::atBottom)->setRange(padded(*x, 0.15, 0.5));
  if (y) cost_->axis(QCPAxis::atLeft)->setRange(padded(*y, 0.25, 0.5));
}

/// Each name above, below or beside its point, where it covers neither another name nor a point and is whole; else the legend alone has it.
void CreditPanel::placeNames() {
  const auto pixels = [&](const QCPItemText* name) {
    return QPointF(cost_->axis(QCPAxis::atBottom)->coordToPixel(name->position->key()),
                   cost_->axis(QCPAxis::atLeft)->coordToPixel(name->position->value()));
  };
  QList<QRectF> taken;
  for (const QCPItemText* name : names_) taken << QRectF(pixels(name) - QPointF(5, 5), QSizeF(10, 10));
  for (QCPItemText* name : names_) {
    const QFontMetrics metrics(name->font(), plot_);
    const QSizeF size(metrics.horizontalAdvance(name->text()), metrics.height());
    const QPointF at = pixels(name);
    const double beside = name->padding().left(), above = name->padding().top();
    const std::initializer_list<std::pair<Qt::Alignment, QPointF>> places{
        {Qt::AlignBottom | Qt::AlignHCenter, {-size.width() / 2, -above - size.height()}},
        {Qt::AlignTop | Qt::AlignHCenter, {-size.width() / 2, above}},
        {Qt::AlignLeft | Qt::AlignVCenter, {beside, -size.height() / 2}},
        {Qt::AlignRight | Qt::AlignVCenter, {-beside - size.width(), -size.height() / 2}}};
    bool found = false;
    for (const auto& [alignment, corner] : places) {
      const QRectF box(at + corner, size);
      if (!QRectF(cost_->rect()).contains(box) || std::ranges::any_of(taken, [&](const QRectF& one) { return one.intersects(box); }))
        continue;
      name->setPositionAlignment(alignment);
      taken << box;
      found = true;
      break;
    }
    name->setColor(found ? legible(penOf(name->property("rule").toUInt()).color(), plot_->theme()) : QColor(Qt::transparent));
  }
}

void CreditPanel::showMap() {
  map_->setTable(table_);
  map_->setChosen(chosenRule());
}

}  // namespace reclab
