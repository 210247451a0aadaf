// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/credit/rule_map.h"

#include <QRegularExpression>
#include <algorithm>
#include <array>

#include "plot/figure.h"

namespace reclab {
namespace {

/// A line at the left of a box, in its middle, cut where the box is too narrow. Powers in a figure are raised digits of the text's size.
void drawLine(QCPPainter* painter, const QRectF& box, const QString& text, const QFontMetrics& metrics, bool figure) {
  const int room = static_cast<int>(box.width());
  if (!figure) {
    painter->drawText(box, Qt::AlignVCenter | Qt::AlignLeft, metrics.elidedText(text, Qt::ElideRight, room));
    return;
  }
  QString shown = text;
  for (qsizetype left = text.size(); left > 0 && widthInFigure(shown, metrics) > room; --left) shown = text.first(left - 1) + u'…';
  drawInFigure(painter, box, shown, metrics);
}

constexpr double gap = 4.0, side = 20.0;  // between tiles, and for the names of rows, in pixels
constexpr double highest_tile = 62.0;
constexpr double low_row = 22.0, low_gap = 2.0;  // rows of tiles that hold a name alone stand closer
constexpr int smallest_name = 8;                 // in pixels

}  // namespace

RuleMap::RuleMap(Plot* plot) : QCPLayoutElement(plot) {
  setMinimumMargins(QMargins(6, 4, 6, 4));
  setMinimumSize(160, 90);
}

RuleMap::Column RuleMap::columnOf(const RuleTable::Rule& rule) {
  if (rule.gradient == "exact") return exact;
  return rule.gradient == "unbiased" ? stochastic : rule.local ? local : rule.sparse ? sparse : biased;
}

QString RuleMap::columnName(Column column) {
  const std::array<QString, columns> names{tr("exact"), tr("stochastic"), tr("sparse"), tr("local"), tr("other bias")};
  return names[column];
}

QString RuleMap::costOf(const RuleTable::Rule& rule, bool brief) {
  // Of T steps or K iterations that a formula begins with, where the term after them is the leading one.
  const auto term = [](double power, const std::string& formula) {
    const QString of = power == 1.0 ? QString() : superscript(number(power)), text = QString::fromStdString(formula);
    static const QRegularExpression factor(QStringLiteral("^([TK]) \\(?d_s([⁰¹²³⁴⁵⁶⁷⁸⁹·]*)"));
    const QRegularExpressionMatch found = factor.match(text);
    const QString times = found.hasMatch() && found.captured(2) == of ? found.captured(1) + u' ' : QString();
    return times + QStringLiteral("dₛ") + of;
  };
  return (brief ? QStringLiteral("%1, %2") : tr("%1 numbers, %2 a step"))
      .arg(term(rule.memory_power, rule.memory), term(rule.time_power, rule.time));
}

int RuleMap::deepest(bool past) const {
  std::array<int, columns> counts{};
  for (const RuleTable::Rule& rule : table_->rules)
    if (rule.past_facing == past) ++counts[columnOf(rule)];
  return std::ranges::max(counts);
}

QFont RuleMap::nameFont(const QRectF& tile) const {
  QFont font = theme().normal;
  font.setBold(true);
  for (int size = QFontInfo(font).pixelSize(); size > smallest_name && QFontMetrics(font).height() > tile.height(); --size)
    font.setPixelSize(size - 1);
  return font;
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
    const double top = area.top() + (facing ? 0.0 : past * height + (past > 0 ? 2 * gap : 0.0)), between = height < low_row ? low_gap : gap;
    for (const RuleTable::Rule* rule : sorted) {
      const int column = columnOf(*rule);
      int& above = filled[static_cast<std::size_t>(column)];
      all.push_back({rule, QRectF(area.left() + column * width, top + above++ * height, width - gap, height - between)});
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
  QFont small_bold = look.small;
  small_bold.setBold(true);
  const bool figure = static_cast<const Plot*>(mParentPlot)->drawsFigure();
  for (const Tile& tile : all) {
    const RuleTable::Rule& rule = *tile.rule;
    const bool takes = rule.why_not.empty(), chosen = QString::fromStdString(rule.id) == chosen_;
    const QColor ink = look.series(columnOf(rule));
    painter->setBrush(mixed(ink, look.base, takes ? 0.22 : 0.06));
    painter->setPen(QPen(chosen ? look.text : mixed(ink, look.base, takes ? 0.9 : 0.35), chosen ? 2.0 : 1.0));
    painter->drawRoundedRect(tile.box, 4, 4);
    const QFont bold = nameFont(tile.box);
    const QFontMetrics bold_metrics(bold, mParentPlot), small_bold_metrics(small_bold, mParentPlot);
    const QRectF inner = tile.box.adjusted(5, 2, -2, -2);
    const bool two = inner.height() >= bold_metrics.height() + metrics.height() - 3,
               three = inner.height() >= bold_metrics.height() + 2 * metrics.height() - 2;
    painter->setFont(bold);
    painter->setPen(takes ? look.text : look.muted);
    QRectF line = two ? QRectF(inner.topLeft(), QSizeF(inner.width(), bold_metrics.height())) : inner.adjusted(0, -2, 0, 2);
    const QString name = QString::fromStdString(rule.name);
    const bool fits = bold_metrics.horizontalAdvance(name) <= line.width() || bold_metrics.height() <= small_bold_metrics.height();
    if (!fits) painter->setFont(small_bold);
    drawLine(painter, line, name, fits ? bold_metrics : small_bold_metrics, figure);
    painter->setFont(look.small);
    painter->setPen(look.muted);
    line = QRectF(line.left(), line.bottom() - 1, line.width(), metrics.height());
    const bool brief = widthInFigure(costOf(rule), metrics) > line.width();
    if (two) drawLine(painter, line, costOf(rule, brief), metrics, figure);
    const QString here = !takes ? tr("not for this model") : rule.exact_here ? tr("exact for this model") : QString();
    if (three && !here.isEmpty()) drawLine(painter, line.translated(0, metrics.height() - 1), here, metrics, figure);
  }
}

}  // namespace reclab
