// SPDX-License-Identifier: GPL-3.0-or-later
// One measure against another: a point for each group, and where both are bits the bound of one by the other.
#include <algorithm>
#include <cmath>
#include <set>

#include "gui/results/picture/named_points.h"
#include "gui/results/picture/result_picture.h"
#include "plot/parts/curves.h"

namespace reclab {
namespace {

constexpr double overDecades = 30.0;  // the share of the greatest in the least from which on an axis is logarithmic
constexpr int pointsOfBound = 300;

}  // namespace

void ResultPicture::drawPoints() {
  place(1, false, false);
  QCPAxisRect* rect = cells_.front().rect;
  QCPAxis *bottom = rect->axis(QCPAxis::atBottom), *left = rect->axis(QCPAxis::atLeft);
  SummaryPlan other = plan_;
  other.measure = choice_.against;
  against_ = summary_of(*table_, other);
  double least = std::numeric_limits<double>::infinity(), most = 0.0;
  for (const ResultGroup& group : against_.groups)
    if (std::isfinite(group.mean.mean)) {
      least = std::min(least, group.mean.mean);
      most = std::max(most, group.mean.mean);
    }
  const bool powers = least > 0.0 && most >= overDecades * least;
  const auto across = [&](double value) { return powers ? std::log10(value) : value; };
  const std::size_t by = placeIn(choice_.upright);  // the number of axes where there is none
  const bool coloured = by < summary_.by.size();
  const std::size_t levels = coloured ? table_->axis(choice_.upright).levels.size() : 1;
  std::vector<NamedPoints::Point> points;
  std::optional<QCPRange> x, y;
  std::set<std::size_t> seen;
  for (std::size_t g = 0; g < summary_.groups.size(); ++g) {
    const ResultGroup& group = summary_.groups[g];
    const double value = drawn(group.mean.mean), key = across(against_.groups[g].mean.mean);
    if (!std::isfinite(value) || !std::isfinite(key)) continue;
    QStringList words;
    for (std::size_t i = 0; i < summary_.by.size(); ++i)
      if (!(coloured && i == by)) words << QString::fromStdString(table_->axis(summary_.by[i]).levels[group.levels[i]]);
    const std::size_t level = coloured ? group.levels[by] : 0;
    seen.insert(level);
    points.push_back({key, value, words.join(QStringLiteral(", ")), coloured ? penOf(level, levels).color() : theme().shown()});
    marks_.push_back({rect, key, value, g});
    expandTo(x, key);
    expandTo(y, value);
  }
  if (coloured) {
    const ResultAxis& axis = table_->axis(choice_.upright);
    for (const std::size_t level : seen) {
      const QString name = axis.levels[level].empty() ? tr("none") : QString::fromStdString(axis.levels[level]);
      legend_->add("level/" + name, tr("%1 = %2").arg(QString::fromStdString(axis.name), name), penOf(level, levels), {});
    }
  }
  auto* drawn_points = new NamedPoints(bottom, left);
  drawn_points->setPoints(std::move(points));
  bottom->setTicker(valueTicker(powers));
  left->setTicker(valueTicker(choice_.logarithmic));
  bottom->setLabel(QString::fromStdString(choice_.against));
  left->setLabel(QString::fromStdString(summary_.measure));
  const bool bounded = x && y && choice_.measure == "bits" && choice_.against == "state_bits";
  if (bounded)
    x->expand(across(std::max(1.0, choice_.logarithmic ? std::pow(10.0, y->upper) : y->upper)));  // so that the bound is in sight
  if (x) bottom->setRange(widened(*x, 0.06));
  if (y) left->setRange(widened(*y, 0.08));
  QStringList notes;
  if (bounded) {
    auto* bound = addCurve(rect, theme().axis, 1.2, Qt::DashLine);
    setQuiet(bound);
    const QCPRange range = bottom->range();
    for (int i = 0; i <= pointsOfBound; ++i) {
      const double key = range.lower + range.size() * i / pointsOfBound, bits = powers ? std::pow(10.0, key) : key;
      bound->addData(key, drawn(bits));
    }
    notes << tr("Dashed: as many bits recalled as the state has, the bound of Jelassi and others (2024).");
  }
  if (!over_.isEmpty()) notes << tr("Means over %1.").arg(over_);
  note_->setText(notes.join(' '), true);
}

}  // namespace reclab
