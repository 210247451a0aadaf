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
  const std::vector<std::uint32_t> apart = apartLevels();
  const auto pictures = std::min<std::size_t>(apart.size(), mostPictures);
  place(static_cast<int>(pictures), false, !choice_.apart.empty());
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
  const std::size_t by = placeIn(choice_.upright), its_picture = placeIn(choice_.apart);  // the number of axes where there is none
  const bool coloured = by < summary_.by.size();
  const std::size_t levels = coloured ? table_->axis(choice_.upright).levels.size() : 1;
  std::vector<std::vector<NamedPoints::Point>> points(pictures);
  std::optional<QCPRange> x, y;
  std::set<std::size_t> seen;
  for (std::size_t g = 0; g < summary_.groups.size(); ++g) {
    const ResultGroup& group = summary_.groups[g];
    const double value = drawn(group.mean.mean), key = across(against_.groups[g].mean.mean);
    const auto picture =
        choice_.apart.empty() ? 0 : static_cast<std::size_t>(std::ranges::find(apart, group.levels[its_picture]) - apart.begin());
    if (picture >= pictures || !std::isfinite(value) || !std::isfinite(key)) continue;
    QStringList words;
    for (std::size_t i = 0; i < summary_.by.size(); ++i)
      if (i != by && i != its_picture) words << QString::fromStdString(table_->axis(summary_.by[i]).levels[group.levels[i]]);
    const std::size_t level = coloured ? group.levels[by] : 0;
    seen.insert(level);
    points[picture].push_back({key, value, words.join(QStringLiteral(", ")), coloured ? penOf(level, levels).color() : theme().shown()});
    marks_.push_back({cells_[picture].rect, key, value, g});
    expandTo(x, key);
    expandTo(y, value);
  }
  if (coloured)
    for (const std::size_t level : seen) {
      const QString name = nameOf(choice_.upright, level);
      legend_->add("level/" + name, name, penOf(level, levels), {});
    }
  const bool bounded = x && y && choice_.measure == "bits" && choice_.against == "state_bits";
  if (bounded)
    x->expand(across(std::max(1.0, choice_.logarithmic ? std::pow(10.0, y->upper) : y->upper)));  // so that the bound is in sight
  for (std::size_t i = 0; i < pictures; ++i) {
    QCPAxisRect* rect = cells_[i].rect;
    QCPAxis *bottom = rect->axis(QCPAxis::atBottom), *left = rect->axis(QCPAxis::atLeft);
    auto* drawn_points = new NamedPoints(bottom, left);
    drawn_points->setPoints(std::move(points[i]));
    bottom->setTicker(valueTicker(powers));
    left->setTicker(valueTicker(choice_.logarithmic));
    bottom->setLabel(QString::fromStdString(choice_.against));
    left->setLabel(QString::fromStdString(summary_.measure));
    if (x) bottom->setRange(widened(*x, 0.06));
    if (y) left->setRange(widened(*y, 0.08));
    if (!choice_.apart.empty()) cells_[i].title->setText(nameOf(choice_.apart, apart[i]));
    if (!bounded) continue;
    auto* bound = addCurve(rect, theme().axis, 1.2, Qt::DashLine);
    setQuiet(bound);
    const QCPRange range = bottom->range();
    for (int j = 0; j <= pointsOfBound; ++j) {
      const double key = range.lower + range.size() * j / pointsOfBound, bits = powers ? std::pow(10.0, key) : key;
      bound->addData(key, drawn(bits));
    }
  }
  QStringList notes;
  if (bounded) notes << tr("Dashed: as many bits recalled as the state has, the bound of Jelassi and others (2024).");
  if (!over_.isEmpty()) notes << tr("Means over %1.").arg(over_);
  if (apart.size() > pictures) notes << tr("The first %1 of %2 pictures.").arg(pictures).arg(apart.size());
  note_->setText(notes.join(' '), true);
}

}  // namespace reclab
