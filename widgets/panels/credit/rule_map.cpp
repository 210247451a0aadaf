// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/credit/rule_map.h"

#include <algorithm>
#include <array>

namespace reclab {
namespace {

constexpr double gap = 4.0, side = 20.0;  // between tiles, and for the names of rows, in pixels
constexpr double highest_tile = 62.0;

}  // namespace

RuleMap::RuleMap(Plot* plot) : QCPLayoutElement(plot) {
  setMinimumMargins(QMargins(6, 4, 6, 4));
  setMinimumSize(160, 90);
}

RuleMap::Column RuleMap::columnOf(const RuleTable::Rule& rule) {
  return rule.gradient == "exact" ? exact : rule.gradient == "unbiased" ? stochastic : rule.local ? local : sparse;
}

QString RuleMap::columnName(Column column) {
  const std::array<QString, columns> names{tr("exact"), tr("stochastic"), tr("sparse"), tr("local")};
  return names[column];
}

QString RuleMap::costOf(const RuleTable::Rule& rule) {
  const auto power = [](double of) { return of == 1.0 ? QStringLiteral("d") : u'd' + superscript(number(of)); };
  return tr("%1 numbers, %2 a step").arg(power(rule.memory_power), power(rule.time_power));
}

int RuleMap::deepest(bool past) const {
  std::array<int, columns> counts{};
  for (const RuleTable::Rule& rule : table_->rules)
    if (rule.past_facing == past) ++counts[columnOf(rule)];
  return std::ranges::max(counts);
}

double RuleMap::headHeight() const { return QFontMetrics(theme().small, mParentPlot).height() + gap; }

std::vector<RuleMap::Tile> RuleMap::tiles() const {
  std::vector<Tile> all;
  if (!table_ || rect().isEmpty()) return all;
  const int past = deepest(true), future = deepest(false), rows = std::max(1, past + future);
  const QRectF area = QRectF(rect()).adjusted(side, headHeight(), 0, 0);
  const double width = area.width() / columns,
               height = std::min(highest_tile, (area.height() - (past > 0 && future > 0 ? 2 * gap : 0.0)) / rows);
  for (const bool facing : {true, false}) {
    std::array<int, columns> filled{};
    std::vector<const RuleTable::Rule*> sorted;
    for (const RuleTable::Rule& rule : table_->rules)
      if (rule.past_facing == facing) sorted.push_back(&rule);
    std::ranges::stable_sort(sorted, [](const RuleTable::Rule* a, const RuleTable::Rule* b) { return a->time_power < b->time_power; });
    const double top = area.top() + (facing ? 0.0 : past * height + (past > 0 ? 2 * gap : 0.0));
    for (const RuleTable::Rule* rule : sorted) {
      const int column = columnOf(*rule);
      int& above = filled[static_cast<std::size_t>(column)];
      all.push_back({rule, QRectF(area.left() + column * width, top + above++ * height, width - gap, height - gap)});
    }
  }
  return all;
}

const RuleTable::Rule* RuleMap::ruleAt(const QPointF& position) const {
  if (!visible()) return nullptr;
  for (const Tile& tile : tiles())
    if (tile.box.contains(position)) return tile.rule;
  return nullptr;
}

QRectF RuleMap::placeOf(const QString& id) const {
  for (const Tile& tile : tiles())
    if (QString::fromStdString(tile.rule->id) == id) return tile.box;
  return {};
}

void RuleMap::draw(QCPPainter* painter) {
  if (!table_) return;
  const Theme& look = theme();
  const QFontMetrics metrics(look.small, mParentPlot);
  const std::vector<Tile> all = tiles();
  painter->setAntialiasing(true);
  painter->setFont(look.small);
  painter->setPen(look.muted);
  const double width = (rect().width() - side) / columns;
  for (int i = 0; i < columns; ++i)
    painter->drawText(QRectF(rect().left() + side + i * width, rect().top(), width - gap, metrics.height()), Qt::AlignLeft,
                      metrics.elidedText(columnName(static_cast<Column>(i)), Qt::ElideRight, static_cast<int>(width - gap)));
  for (const bool past : {true, false}) {
    QRectF row;
    for (const Tile& tile : all)
      if (tile.rule->past_facing == past) row |= tile.box;
    if (row.isEmpty()) continue;
    painter->save();
    painter->translate(rect().left(), row.bottom());
    painter->rotate(-90);
    painter->drawText(QRectF(0, 0, row.height(), side - gap), Qt::AlignCenter,
                      metrics.elidedText(past ? tr("past-facing") : tr("future-facing"), Qt::ElideRight, static_cast<int>(row.height())));
    painter->restore();
  }
  QFont bold = look.normal;
  bold.setBold(true);
  const QFontMetrics bold_metrics(bold, mParentPlot);
  for (const Tile& tile : all) {
    const RuleTable::Rule& rule = *tile.rule;
    const bool takes = rule.why_not.empty(), chosen = QString::fromStdString(rule.id) == chosen_;
    const QColor ink = look.series(columnOf(rule));
    painter->setBrush(mixed(ink, look.base, takes ? 0.22 : 0.06));
    painter->setPen(QPen(chosen ? look.text : mixed(ink, look.base, takes ? 0.9 : 0.35), chosen ? 2.0 : 1.0));
    painter->drawRoundedRect(tile.box, 4, 4);
    const QRectF inner = tile.box.adjusted(6, 2, -4, -2);
    const int room = static_cast<int>(inner.width());
    const bool two = inner.height() >= bold_metrics.height() + metrics.height() - 3,
               three = inner.height() >= bold_metrics.height() + 2 * metrics.height() - 2;
    painter->setFont(bold);
    painter->setPen(takes ? look.text : look.muted);
    const QString name = QString::fromStdString(rule.name);
    painter->drawText(inner, (two ? Qt::AlignTop : Qt::AlignVCenter) | Qt::AlignLeft, bold_metrics.elidedText(name, Qt::ElideRight, room));
    painter->setFont(look.small);
    painter->setPen(look.muted);
    const QRectF second = inner.adjusted(0, bold_metrics.height() - 1, 0, 0);
    if (two) painter->drawText(second, Qt::AlignTop | Qt::AlignLeft, metrics.elidedText(costOf(rule), Qt::ElideRight, room));
    const QString here = !takes ? tr("not for this model") : rule.exact_here ? tr("exact for this model") : QString();
    if (three && !here.isEmpty())
      painter->drawText(second.adjusted(0, metrics.height() - 1, 0, 0), Qt::AlignTop | Qt::AlignLeft,
                        metrics.elidedText(here, Qt::ElideRight, room));
  }
}

}  // namespace reclab
