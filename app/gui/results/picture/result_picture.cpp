// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/results/picture/result_picture.h"

#include <QMouseEvent>
#include <QtMath>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "gui/look/look.h"
#include "gui/results/picture/cell_numbers.h"
#include "gui/results/picture/level_ticker.h"
#include "gui/results/picture/strands.h"
#include "plot/parts/curves.h"
#include "plot/parts/table.h"
#include "plot/value_axis.h"

namespace reclab {
namespace {

constexpr std::size_t colours = 7;  // of curves; twice as many have a dash too
constexpr std::size_t mostStrands = 20'000;
constexpr int rowOfRanking = 17;  // pixels
constexpr int clickReach = 12;    // pixels

QString text(const std::string& one) { return QString::fromStdString(one); }
QString level(const ResultAxis& axis, std::size_t i) { return axis.levels[i].empty() ? QObject::tr("none") : text(axis.levels[i]); }

/// The least of the gaps between neighbours as a share of the greatest.
double evenness(const std::vector<double>& places) {
  double least = std::numeric_limits<double>::infinity(), greatest = 0.0;
  for (std::size_t i = 1; i < places.size(); ++i) {
    least = std::min(least, places[i] - places[i - 1]);
    greatest = std::max(greatest, places[i] - places[i - 1]);
  }
  return greatest > 0.0 ? least / greatest : 1.0;
}

/// Where the levels of an axis stand: side by side, at their numbers, or at the logarithms of these where they are more even.
std::vector<double> positionsOf(const ResultAxis& axis, bool side_by_side) {
  std::vector<double> places, powers;
  const bool numbers = is_scale(axis) && !side_by_side;
  for (std::size_t i = 0; i < axis.levels.size(); ++i) places.push_back(numbers ? axis.numbers[i] : static_cast<double>(i));
  if (!numbers || !(places.front() > 0.0)) return places;
  for (const double place : places) powers.push_back(std::log10(place));
  return evenness(powers) > evenness(places) ? powers : places;
}

QSharedPointer<QCPAxisTicker> levelTicker(QCPAxis* of, const ResultAxis& axis, std::vector<double> places) {
  QStringList names;
  for (std::size_t i = 0; i < axis.levels.size(); ++i) names << level(axis, i);
  return QSharedPointer<QCPAxisTicker>(new LevelTicker(of, std::move(places), names));
}

}  // namespace

ResultPicture::ResultPicture(QWidget* parent)
    : Plot(parent),
      caption_(new Paragraph(this)),
      note_(new Paragraph(this)),
      legend_(new Legend(this)),
      outer_(closeGrid()),
      grid_(closeGrid()),
      bar_(new ColourBar(this)) {
  setObjectName("results.picture");
  setAccessibleName(tr("Results"));
  note_->setSmall(true);
  note_->setBrief(true);
  stack(this, {caption_, legend_, outer_, note_});
  outer_->addElement(0, 0, grid_);
  for (int i = 0; i < mostPictures; ++i) {
    auto* title = new QCPTextElement(this);
    title->setLayer(QStringLiteral("legend"));
    cells_.push_back({makeRect(), title});
    title->setVisible(false);
  }
  setHoverHandler([this](const QPointF& at) { return tipAt(at); });
  connect(this, &Plot::themeChanged, this, &ResultPicture::rebuild);
  connect(this, &QCustomPlot::mousePress, this, [this](QMouseEvent* event) { pressed_ = event->position(); });
  connect(this, &QCustomPlot::mouseRelease, this, [this](QMouseEvent* event) {
    if (event->button() != Qt::LeftButton || QLineF(pressed_, event->position()).length() > 4.0) return;
    const std::vector<std::int64_t> rows = rowsAt(event->position());
    if (!rows.empty()) emit rowsPicked(rows, event->globalPosition().toPoint());
  });
  clearResults();
}

void ResultPicture::setResults(const ResultTablePtr& table, const ResultChoice& choice, const QString& about,
                               const std::map<std::string, int>& runs) {
  table_ = table;
  about_ = about;
  runs_ = runs;
  choice_ = choice;
  plan_ = plan_of(choice, *table);
  summary_ = summary_of(*table, plan_);
  over_ = averages() ? meanOver() : QString();
  rebuild();
}

void ResultPicture::clearResults() {
  table_.reset();
  summary_ = {};
  rebuild();
}

QString ResultPicture::subject() const {
  if (!table_) return {};
  if (choice_.view == ResultView::points) return tr("%1 against %2").arg(text(summary_.measure), text(choice_.against));
  const bool over = choice_.view == ResultView::map || choice_.view == ResultView::curves;
  if (!over) return tr("%1 over all settings").arg(text(summary_.measure));
  QStringList parts{choice_.across.empty() ? text(summary_.measure) : tr("%1 over %2").arg(text(summary_.measure), text(choice_.across))};
  if (!choice_.upright.empty()) parts << (choice_.view == ResultView::map ? tr("and %1") : tr("by %1")).arg(text(choice_.upright));
  return parts.join(' ');
}

std::size_t ResultPicture::placeIn(const std::string& axis) const {
  return static_cast<std::size_t>(std::ranges::find(summary_.by, axis) - summary_.by.begin());
}

double ResultPicture::drawn(double value) const {
  if (!choice_.logarithmic) return std::isfinite(value) ? value : no_value;
  return value > 0.0 && std::isfinite(value) ? std::log10(value) : no_value;
}

QSharedPointer<QCPAxisTicker> ResultPicture::valueTicker(bool powers) {
  if (powers) return QSharedPointer<QCPAxisTicker>(new PowerTicker);
  return QSharedPointer<QCPAxisTicker>(new NumberTicker);
}

/// The settings over which means are taken: those of which a group has more than one level.
QString ResultPicture::meanOver() const {
  const std::vector<std::int64_t> rows = rows_of(*table_, plan_, {}, {});
  std::vector<const ResultAxis*> by;
  for (const std::string& name : summary_.by) by.push_back(&table_->axis(name));
  std::map<std::vector<std::uint32_t>, std::int64_t> first;  // a row of each group
  std::set<std::string> names;
  for (const std::int64_t row : rows) {
    std::vector<std::uint32_t> levels;
    for (const ResultAxis* axis : by) levels.push_back(axis->level[static_cast<std::size_t>(row)]);
    const auto [found, is_new] = first.try_emplace(std::move(levels), row);
    if (is_new) continue;
    for (const ResultAxis& axis : table_->axes)
      if (axis.level[static_cast<std::size_t>(row)] != axis.level[static_cast<std::size_t>(found->second)]) names.insert(axis.name);
  }
  QStringList words;
  for (const ResultAxis& axis : table_->axes)
    if (names.contains(axis.name)) words << text(axis.name);
  return words.join(QStringLiteral(", "));
}

bool ResultPicture::averages() const {
  return std::ranges::any_of(summary_.groups, [](const ResultGroup& group) { return group.values > 1; });
}

/// The words on the ends of intervals: those of means, and those that stand in the table beside a value alone.
QString ResultPicture::intervals(const QString& drawn_as) const {
  QStringList words;
  if (averages())
    words << tr("%1: the %2 % interval of the mean over %3 (Student’s t).")
                 .arg(drawn_as, number(100.0 * choice_.confidence), over_.isEmpty() ? tr("rows") : over_);
  if (std::ranges::any_of(summary_.groups, [](const ResultGroup& group) { return group.values == 1 && std::isfinite(group.mean.low); }))
    words << tr("%1: the interval that stands beside each value in the table.").arg(drawn_as);
  return words.join(' ');
}

/// The levels that have a picture each: at most so many; one picture of all where no axis is chosen.
std::vector<std::uint32_t> ResultPicture::apartLevels() const {
  if (choice_.apart.empty()) return {0};
  std::vector<std::uint32_t> levels;
  const std::size_t at = placeIn(choice_.apart);
  for (const ResultGroup& group : summary_.groups)
    if (levels.empty() || levels.back() != group.levels[at]) levels.push_back(group.levels[at]);  // the first of the summary's axes
  return levels;
}

QString ResultPicture::nameOf(const std::string& axis, std::size_t of) const {
  return tr("%1 = %2").arg(text(axis), level(table_->axis(axis), of));
}

QPen ResultPicture::penOf(std::size_t level, std::size_t levels) const {
  if (!runs_.empty() && choice_.upright == "model") {
    const auto run = runs_.find(table_->axis(choice_.upright).levels[level]);
    if (run == runs_.end()) return {theme().muted, 1.6, Qt::DashLine};
    return {run->second < 0 ? theme().shown() : pinColour(run->second), 1.8};
  }
  if (levels <= 2 * colours)
    return {theme().series(static_cast<int>(level % colours)), 1.8, level < colours ? Qt::SolidLine : Qt::DashLine};
  const double share = static_cast<double>(level) / static_cast<double>(levels - 1);  // the brightest of the map are too pale for lines
  return {QColor::fromRgb(viridis()[static_cast<std::size_t>(std::lround((theme().dark ? 40.0 : 0.0) + 215.0 * share))]), 1.6};
}

/// So many pictures of the pool in a grid as near to the plot's own shape as may be.
void ResultPicture::place(int pictures, bool with_bar, bool with_titles) {
  for (const Cell& cell : cells_)
    for (QCPLayoutElement* one : {static_cast<QCPLayoutElement*>(cell.rect), static_cast<QCPLayoutElement*>(cell.title)}) {
      if (one->layout() == grid_) grid_->take(one);
      one->setVisible(false);
      one->setOuterRect(QRect());
    }
  if (bar_->layout() == outer_) outer_->take(bar_);
  bar_->setVisible(with_bar);
  grid_->simplify();
  outer_->simplify();
  if (with_bar) outer_->addElement(0, 1, bar_);
  const double shape = static_cast<double>(std::max(1, width())) / std::max(1, height());
  const int columns = std::clamp(static_cast<int>(std::lround(std::sqrt(pictures * shape * 0.75))), 1, std::max(1, pictures));
  for (int i = 0; i < pictures; ++i) {
    const Cell& cell = cells_[static_cast<std::size_t>(i)];
    cell.rect->setVisible(true);
    for (QCPAxis* axis : cell.rect->axes({QCPAxis::atLeft, QCPAxis::atBottom})) {
      axis->setVisible(true);
      axis->setTickLabels(true);
      axis->setTicks(true);
      axis->setRangeReversed(false);
      axis->grid()->setVisible(true);
      axis->setBasePen(QPen(theme().axis, 1));
      axis->setLabel({});
    }
    const int row = (with_titles ? 2 : 1) * (i / columns);
    if (with_titles) {
      cell.title->setVisible(true);
      cell.title->setFont(theme().small);
      cell.title->setTextColor(theme().text);
      grid_->addElement(row, i % columns, cell.title);
    }
    grid_->addElement(row + (with_titles ? 1 : 0), i % columns, cell.rect);
  }
  for (const Cell& cell : cells_)
    if (!cell.rect->visible())
      for (QCPAxis* axis : cell.rect->axes()) axis->setVisible(false);
}

void ResultPicture::rebuild() {
  clearPlottables();
  clearItems();
  legend_->clear();
  marks_.clear();
  strands_ = nullptr;
  strandRows_.clear();
  caption_->setText(table_ ? about_ : QString(), true);
  note_->setText({});
  if (!table_) {
    place(0, false, false);
    redraw();
    return;
  }
  switch (choice_.view) {
    case ResultView::map: drawMap(); break;
    case ResultView::curves: drawCurves(); break;
    case ResultView::ranking: drawRanking(); break;
    case ResultView::points: drawPoints(); break;
    case ResultView::parallel: drawParallel(); break;
  }
  redraw();
}

void ResultPicture::drawMap() {
  const std::vector<std::uint32_t> apart = apartLevels();
  const auto pictures = std::min<std::size_t>(apart.size(), mostPictures);
  place(static_cast<int>(pictures), true, !choice_.apart.empty());
  const ResultAxis *across = choice_.across.empty() ? nullptr : &table_->axis(choice_.across),
                   *upright = choice_.upright.empty() ? nullptr : &table_->axis(choice_.upright);
  const std::size_t columns = across ? across->levels.size() : 1, rows = upright ? upright->levels.size() : 1;
  std::vector<Heatmap*> maps;
  std::vector<std::vector<CellNumbers::Number>> written(pictures);
  std::vector<std::vector<double>> shown(pictures);
  std::vector<std::int64_t> keys;
  for (std::size_t i = 0; i < columns; ++i) keys.push_back(static_cast<std::int64_t>(i));
  double low = std::numeric_limits<double>::infinity(), high = -low;
  bool diverged = false;
  for (std::size_t i = 0; i < pictures; ++i) {
    const Cell& cell = cells_[i];
    QCPAxis *bottom = cell.rect->axis(QCPAxis::atBottom), *left = cell.rect->axis(QCPAxis::atLeft);
    hideGrid(cell.rect);
    auto values = std::make_shared<std::vector<double>>(columns * rows, no_value);
    auto* crosses = addCurve(cell.rect, theme().muted);
    crosses->setLineStyle(QCPGraph::lsNone);
    crosses->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCross, theme().muted, 6));
    for (std::size_t g = 0; g < summary_.groups.size(); ++g) {
      const ResultGroup& group = summary_.groups[g];
      if (!choice_.apart.empty() && group.levels[placeIn(choice_.apart)] != apart[i]) continue;
      const std::size_t x = across ? group.levels[placeIn(choice_.across)] : 0, y = upright ? group.levels[placeIn(choice_.upright)] : 0;
      const double value = drawn(group.mean.mean);
      (*values)[x * rows + y] = value;
      if (std::isfinite(value)) {
        low = std::min(low, value);
        high = std::max(high, value);
        written[i].push_back({static_cast<int>(x), static_cast<int>(y), number(group.mean.mean, 3), {}});
        shown[i].push_back(value);
      }
      if (group.values == 0 && group.of(CellState::diverged) > 0) {
        crosses->addData(static_cast<double>(x), static_cast<double>(y));
        diverged = true;
      }
      marks_.push_back({cell.rect, static_cast<double>(x), static_cast<double>(y), g});
    }
    auto* map = new Heatmap(bottom, left);
    map->setData(std::move(values), static_cast<std::int64_t>(rows), keys);
    maps.push_back(map);
    bottom->setRange(-0.5, static_cast<double>(columns) - 0.5);
    left->setRange(-0.5, static_cast<double>(rows) - 0.5);
    if (across) bottom->setTicker(levelTicker(bottom, *across, positionsOf(*across, true)));
    if (upright) left->setTicker(levelTicker(left, *upright, positionsOf(*upright, true)));
    left->setTickLabels(upright != nullptr);
    left->setTicks(upright != nullptr);
    bottom->setTickLabels(across != nullptr);
    bottom->setTicks(across != nullptr);
    bottom->setLabel(text(choice_.across));
    left->setLabel(text(choice_.upright));
    if (!choice_.apart.empty()) cell.title->setText(nameOf(choice_.apart, apart[i]));
  }
  if (!(low <= high)) low = 0.0, high = 1.0;
  if (low == high) high = low + (low == 0.0 ? 1.0 : std::abs(low) * 0.01);
  for (Heatmap* map : maps) map->setScale(low, high);
  const ColourMap& colours = maps.front()->colours();
  for (std::size_t i = 0; i < pictures; ++i) {
    const double from = maps[i]->low(), to = maps[i]->high();
    for (std::size_t n = 0; n < written[i].size(); ++n)
      written[i][n].ground = QColor::fromRgb(colours[static_cast<std::size_t>(std::lround(255.0 * (shown[i][n] - from) / (to - from)))]);
    auto* numbers = new CellNumbers(maps[i]->keyAxis(), maps[i]->valueAxis());
    numbers->setNumbers(std::move(written[i]));
  }
  bar_->axis()->setTicker(valueTicker(choice_.logarithmic));
  bar_->show(*maps.front(), tr("mean of %1").arg(text(summary_.measure)));
  QStringList notes;
  if (diverged) notes << tr("× diverged.");
  if (apart.size() > pictures) notes << tr("The first %1 of %2 pictures.").arg(pictures).arg(apart.size());
  note_->setText(notes.join(' '), true);
}

void ResultPicture::drawCurves() {
  const std::vector<std::uint32_t> apart = apartLevels();
  const auto pictures = std::min<std::size_t>(apart.size(), mostPictures);
  place(static_cast<int>(pictures), false, !choice_.apart.empty());
  const ResultAxis *across = choice_.across.empty() ? nullptr : &table_->axis(choice_.across),
                   *by = choice_.upright.empty() ? nullptr : &table_->axis(choice_.upright);
  const std::vector<double> places = across ? positionsOf(*across, false) : std::vector<double>{0.0};
  const std::size_t levels = by ? by->levels.size() : 1;
  std::map<std::size_t, QList<QCPLayerable*>> shows;
  std::optional<QCPRange> span;
  bool bands = false;
  for (std::size_t i = 0; i < pictures; ++i) {
    const Cell& cell = cells_[i];
    QCPAxis *bottom = cell.rect->axis(QCPAxis::atBottom), *left = cell.rect->axis(QCPAxis::atLeft);
    struct Curve {
      QCPGraph *low, *high, *mean;
    };
    std::map<std::size_t, Curve> curves;
    for (std::size_t g = 0; g < summary_.groups.size(); ++g) {
      const ResultGroup& group = summary_.groups[g];
      if (!choice_.apart.empty() && group.levels[placeIn(choice_.apart)] != apart[i]) continue;
      const std::size_t of = by ? group.levels[placeIn(choice_.upright)] : 0;
      if (!curves.contains(of)) {
        const QPen pen = penOf(of, levels);
        QColor shade = pen.color();
        shade.setAlphaF(theme().dark ? 0.28f : 0.20f);
        Curve one{addCurve(cell.rect, pen.color()), addCurve(cell.rect, pen.color()),
                  addCurve(cell.rect, pen.color(), pen.widthF(), pen.style())};
        one.low->setPen(Qt::NoPen);
        one.high->setPen(Qt::NoPen);
        one.low->setBrush(shade);
        one.low->setChannelFillGraph(one.high);
        one.mean->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, pen.color(), pen.color(), 6));
        curves.emplace(of, one);
        shows[of] << one.low << one.high << one.mean;
      }
      const Curve& curve = curves.at(of);
      const double x = places[across ? group.levels[placeIn(choice_.across)] : 0];
      const double mean = drawn(group.mean.mean), low = drawn(group.mean.low), high = drawn(group.mean.high);
      if (!std::isfinite(mean)) continue;
      curve.mean->addData(x, mean);
      // Where the interval reaches to 0 or below, a logarithmic axis has no place for its end.
      const bool ends = std::isfinite(low) && std::isfinite(high);
      curve.low->addData(x, ends ? low : mean);
      curve.high->addData(x, ends ? high : mean);
      bands = bands || ends;
      expandTo(span, mean);
      expandTo(span, low);
      expandTo(span, high);
      marks_.push_back({cell.rect, x, mean, g});
    }
    if (across) bottom->setTicker(levelTicker(bottom, *across, places));
    bottom->setTickLabels(across != nullptr);
    bottom->setLabel(text(choice_.across));
    left->setLabel(text(summary_.measure));
    left->setTicker(valueTicker(choice_.logarithmic));
    if (!choice_.apart.empty()) cell.title->setText(nameOf(choice_.apart, apart[i]));
  }
  const auto [least, greatest] = std::ranges::minmax(places);
  const QCPRange keys = across && is_scale(*across) ? widened({least, greatest}, 0.04) : padded({least, greatest}, 0.04, 0.3);
  for (std::size_t i = 0; i < pictures; ++i) {
    cells_[i].rect->axis(QCPAxis::atBottom)->setRange(keys);
    if (span) cells_[i].rect->axis(QCPAxis::atLeft)->setRange(widened(*span, 0.06));
  }
  if (by)
    for (const auto& [of, parts] : shows) legend_->add("level/" + level(*by, of), nameOf(by->name, of), penOf(of, levels), parts);
  QStringList notes;
  if (bands) notes << intervals(tr("Shaded"));
  if (apart.size() > pictures) notes << tr("The first %1 of %2 pictures.").arg(pictures).arg(apart.size());
  note_->setText(notes.join(' '), true);
}

void ResultPicture::drawRanking() {
  place(1, false, false);
  QCPAxisRect* rect = cells_.front().rect;
  QCPAxis *bottom = rect->axis(QCPAxis::atBottom), *left = rect->axis(QCPAxis::atLeft);
  const auto room = static_cast<std::size_t>(std::max(4, (height() - 90) / rowOfRanking));
  const std::size_t rows = std::min(room, summary_.groups.size());
  auto* means = addCurve(rect, theme().shown());
  means->setLineStyle(QCPGraph::lsNone);
  means->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, theme().shown(), theme().shown(), 7));
  std::optional<QCPRange> span;
  std::vector<double> places;
  QStringList names;
  bool bars = false;
  for (std::size_t g = 0; g < rows; ++g) {
    const ResultGroup& group = summary_.groups[g];
    const auto y = static_cast<double>(g);
    places.push_back(y);
    QStringList words;
    for (std::size_t i = 0; i < summary_.by.size(); ++i) words << level(table_->axis(summary_.by[i]), group.levels[i]);
    names << words.join(QStringLiteral(", "));
    const double mean = drawn(group.mean.mean), low = drawn(group.mean.low), high = drawn(group.mean.high);
    marks_.push_back({rect, std::isfinite(mean) ? mean : no_value, y, g});
    if (!std::isfinite(mean)) continue;
    means->addData(mean, y);
    expandTo(span, mean);
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    auto* bar = new QCPItemLine(this);
    bar->setSelectable(false);
    bar->setClipAxisRect(rect);
    for (QCPItemPosition* end : {bar->start, bar->end}) end->setAxes(bottom, left);
    bar->start->setCoords(low, y);
    bar->end->setCoords(high, y);
    bar->setPen(QPen(theme().shown(), 1.4));
    bar->setHead({QCPLineEnding::esBar, 6, 0});
    bar->setTail({QCPLineEnding::esBar, 6, 0});
    expandTo(span, low);
    expandTo(span, high);
    bars = true;
  }
  left->setTicker(QSharedPointer<QCPAxisTicker>(new LevelTicker(left, places, names)));
  left->setRange(-0.6, static_cast<double>(rows) - 0.4);
  left->setRangeReversed(true);
  left->grid()->setVisible(false);
  bottom->setTicker(valueTicker(choice_.logarithmic));
  bottom->setLabel(tr("mean of %1").arg(text(summary_.measure)));
  if (span) bottom->setRange(widened(*span, 0.05));
  QStringList by, notes;
  for (const std::string& name : summary_.by) by << text(name);
  left->setLabel(by.join(QStringLiteral(", ")));
  if (bars) notes << intervals(tr("Bars"));
  if (rows < summary_.groups.size())
    notes << tr("The first %1 of %2.").arg(grouped(std::ssize(places)), grouped(std::ssize(summary_.groups)));
  note_->setText(notes.join(' '), true);
}

void ResultPicture::drawParallel() {
  place(1, true, false);
  QCPAxisRect* rect = cells_.front().rect;
  QCPAxis *bottom = rect->axis(QCPAxis::atBottom), *left = rect->axis(QCPAxis::atLeft);
  const std::vector<std::string> axes = varied_axes(*table_);
  const ResultMeasure& measure = table_->measure(summary_.measure);
  const std::vector<std::int64_t> all = rows_of(*table_, plan_, {}, {});
  double low = std::numeric_limits<double>::infinity(), high = -low;
  const auto value = [&](std::int64_t row) {
    const auto i = static_cast<std::size_t>(row);
    return table_->states[i] == CellState::done ? drawn(measure.values[i]) : no_value;
  };
  for (const std::int64_t row : all)
    if (const double one = value(row); std::isfinite(one)) low = std::min(low, one), high = std::max(high, one);
  const auto share = [&](double one) { return !std::isfinite(one) ? no_value : low == high ? 0.5 : (one - low) / (high - low); };
  const int columns = static_cast<int>(axes.size()) + 1;
  std::vector<double> heights, shades;
  std::vector<std::vector<double>> places;
  for (const std::string& name : axes) {
    std::vector<double> its = positionsOf(table_->axis(name), false);
    const auto [least, greatest] = std::ranges::minmax(its);
    for (double& one : its) one = least == greatest ? 0.5 : (one - least) / (greatest - least);
    places.push_back(std::move(its));
  }
  for (const std::int64_t row : all) {
    if (strandRows_.size() == mostStrands) break;
    strandRows_.push_back(row);
    for (std::size_t i = 0; i < axes.size(); ++i) heights.push_back(places[i][table_->axis(axes[i]).level[static_cast<std::size_t>(row)]]);
    heights.push_back(share(value(row)));
    shades.push_back(share(value(row)));
  }
  strands_ = new Strands(bottom, left);
  strands_->setData(std::move(heights), columns, std::move(shades));
  bottom->setRange(-0.3, columns - 0.6);
  left->setRange(-0.04, 1.04);
  left->setTickLabels(false);
  left->setTicks(false);
  left->setBasePen(Qt::NoPen);
  hideGrid(rect);
  QStringList names;
  std::vector<double> keys;
  for (int i = 0; i < columns; ++i) {
    names << (i + 1 < columns ? text(axes[static_cast<std::size_t>(i)]) : text(measure.name));
    keys.push_back(i);
    auto* line = new StraightLine(rect, QStringLiteral("axes"));
    line->setUpright(i);
    line->setPen(QPen(theme().axis, 1));
  }
  bottom->setTicker(QSharedPointer<QCPAxisTicker>(new LevelTicker(bottom, keys, names)));
  const auto name = [&](double x, double y, const QString& word) {
    auto* label = new QCPItemText(this);
    label->setSelectable(false);
    label->setClipAxisRect(rect);
    label->position->setAxes(bottom, left);
    label->position->setCoords(x, y);
    label->setPositionAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    label->setPadding(QMargins(4, 0, 2, 0));
    label->setFont(theme().small);
    label->setColor(theme().text);
    QColor ground = theme().base;
    ground.setAlphaF(0.75f);
    label->setBrush(ground);
    label->setPen(Qt::NoPen);
    label->setText(word);
  };
  const int fit = std::clamp(height() / 40, 2, 12);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const ResultAxis& axis = table_->axis(axes[i]);
    const auto levels = static_cast<int>(axis.levels.size());
    const int every = std::max(1, (levels + fit - 1) / fit);
    for (int l = 0; l < levels; l += every)
      name(static_cast<double>(i), places[i][static_cast<std::size_t>(l)], level(axis, static_cast<std::size_t>(l)));
  }
  if (low <= high) {
    const auto written = [&](double one) { return choice_.logarithmic ? powerAsNumber(one, 3) : number(one, 3); };
    name(columns - 1, 0.0, written(low));
    if (low < high) name(columns - 1, 1.0, written(high));
    auto* scale = new Heatmap(bottom, left);  // for the bar alone
    scale->setScale(low, low == high ? low + 1.0 : high);
    bar_->axis()->setTicker(valueTicker(choice_.logarithmic));
    bar_->show(*scale, text(measure.name));
    removePlottable(scale);
  }
  QStringList notes;
  if (strandRows_.size() < all.size())
    notes << tr("The first %1 of %2 rows.").arg(grouped(std::ssize(strandRows_)), grouped(std::ssize(all)));
  if (const auto without = std::ranges::count_if(strandRows_, [&](std::int64_t row) { return !std::isfinite(value(row)); }); without > 0)
    notes << tr("Grey: %1 rows without a value.").arg(grouped(without));
  note_->setText(notes.join(' '), true);
}

std::optional<std::size_t> ResultPicture::groupAt(const QPointF& position) const {
  std::optional<std::size_t> found;
  double away = clickReach;
  for (const Mark& mark : marks_) {
    if (!mark.rect->rect().contains(position.toPoint())) continue;
    const QCPAxis *bottom = mark.rect->axis(QCPAxis::atBottom), *left = mark.rect->axis(QCPAxis::atLeft);
    if (choice_.view == ResultView::map) {
      if (std::lround(bottom->pixelToCoord(position.x())) == std::lround(mark.x) &&
          std::lround(left->pixelToCoord(position.y())) == std::lround(mark.y))
        return mark.group;
    } else if (choice_.view == ResultView::ranking) {  // the whole row is its group's
      if (std::lround(left->pixelToCoord(position.y())) == std::lround(mark.y)) return mark.group;
    } else if (const double one = QLineF(position, {bottom->coordToPixel(mark.x), left->coordToPixel(mark.y)}).length(); one <= away) {
      away = one;
      found = mark.group;
    }
  }
  return found;
}

std::vector<std::int64_t> ResultPicture::rowsAt(const QPointF& position) const {
  if (!table_) return {};
  if (strands_ != nullptr) {
    const int strand = strands_->rowAt(position);
    return strand < 0 ? std::vector<std::int64_t>() : std::vector<std::int64_t>{strandRows_[static_cast<std::size_t>(strand)]};
  }
  const std::optional<std::size_t> group = groupAt(position);
  return group ? rows_of(*table_, plan_, summary_.by, summary_.groups[*group].levels) : std::vector<std::int64_t>();
}

QString ResultPicture::tipOf(std::size_t group) const {
  const ResultGroup& of = summary_.groups[group];
  QStringList lines;
  for (std::size_t i = 0; i < summary_.by.size(); ++i) lines << nameOf(summary_.by[i], of.levels[i]);
  if (of.values > 0) {
    lines << tr("%1: mean %2").arg(text(summary_.measure), number(of.mean.mean, 4));
    if (std::isfinite(of.mean.low))
      lines << (of.values > 1 ? tr("%1 % interval %2 to %3").arg(number(100.0 * choice_.confidence)) : tr("interval in the table %1 to %2"))
                   .arg(number(of.mean.low, 4), number(of.mean.high, 4));
    if (choice_.view == ResultView::points)
      lines << tr("%1: mean %2").arg(text(choice_.against), number(against_.groups[group].mean.mean, 4));
    if (of.values > 1) lines << tr("of %1 rows, %2 to %3").arg(grouped(of.values), number(of.least, 4), number(of.greatest, 4));
  }
  for (std::size_t i = 0; i < cell_states.size(); ++i)
    if (of.count[i] > 0 && static_cast<CellState>(i) != CellState::done)
      lines << tr("%1 %2").arg(grouped(of.count[i]),
                               QString::fromUtf8(cell_states[i].data(), static_cast<qsizetype>(cell_states[i].size())));
  return lines.join('\n');
}

QString ResultPicture::tipAt(const QPointF& position) const {
  if (!table_) return {};
  if (strands_ != nullptr) {
    const std::vector<std::int64_t> rows = rowsAt(position);
    if (rows.empty()) return {};
    return text(words_of_row(*table_, rows.front())) + '\n' +
           tr("%1: %2").arg(text(summary_.measure),
                            number(table_->measure(summary_.measure).values[static_cast<std::size_t>(rows.front())], 4));
  }
  const std::optional<std::size_t> group = groupAt(position);
  return group ? tipOf(*group) : QString();
}

QString ResultPicture::csv() const {
  if (!table_) return {};
  const QString of = QString::fromStdString(summary_csv(*table_, summary_));
  if (choice_.view != ResultView::points) return of;
  const QStringList ours = of.split('\n', Qt::SkipEmptyParts);
  QString both;
  for (qsizetype i = 0; i < ours.size(); ++i)
    both += ours[i] + ',' +
            (i == 0 ? csvCell(text(choice_.against))
                    : QString::fromUtf8(csvNumber(against_.groups[static_cast<std::size_t>(i - 1)].mean.mean))) +
            '\n';
  return both;
}

QPointF ResultPicture::placeOf(std::size_t group) const {
  const auto found = std::ranges::find(marks_, group, &Mark::group);
  if (found == marks_.end()) return {};
  return {found->rect->axis(QCPAxis::atBottom)->coordToPixel(found->x), found->rect->axis(QCPAxis::atLeft)->coordToPixel(found->y)};
}

void ResultPicture::resizeEvent(QResizeEvent* event) {
  Plot::resizeEvent(event);
  if (table_ && event->size() != event->oldSize()) rebuild();  // the grid and the rows of a ranking follow the shape
}

}  // namespace reclab
