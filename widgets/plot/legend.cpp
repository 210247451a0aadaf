// SPDX-License-Identifier: GPL-3.0-or-later
// The texts of a plot: paragraphs and legends.
#include <algorithm>
#include <cmath>

#include "plain_text.h"
#include "plot/plot.h"

namespace reclab {
namespace {

constexpr int legend_gap = 8;  // pixels at both sides

/// What stands above the pictures leaves the corner to the dots that say that something is left out.
int rightGap(const QCPLayoutElement* one) {
  QCPLayoutGrid* grid = one->parentPlot()->plotLayout();
  for (int row = 0; row < grid->rowCount(); ++row) {
    const QCPLayoutElement* element = grid->hasElement(row, 0) ? grid->element(row, 0) : nullptr;
    if (element == one) return static_cast<const Plot*>(one->parentPlot())->leftOutPlace().width() + 2;
    if (qobject_cast<const Paragraph*>(element) == nullptr && qobject_cast<const Legend*>(element) == nullptr) break;
  }
  return legend_gap;
}
int roomAcross(const QCPLayoutElement* one) { return std::max(60, one->parentPlot()->viewport().width() - legend_gap - rightGap(one)); }

}  // namespace

Paragraph::Paragraph(QCustomPlot* plot) : QCPLayoutElement(plot) { setLayer(QStringLiteral("legend")); }

void Paragraph::setText(const QString& text, bool muted, const QString& on_screen) {
  text_ = text;
  on_screen_ = on_screen;
  muted_ = muted;
  width_ = -1;
}

QString Paragraph::text() const {
  if (on_screen_.isEmpty() || static_cast<const Plot*>(mParentPlot)->drawsFigure()) return text_;
  return text_ + on_screen_;
}

int Paragraph::wantedHeight() const {
  const QString text = this->text();
  if (text.isEmpty()) return 0;
  const int width = roomAcross(this);
  const bool in_figure = static_cast<const Plot*>(mParentPlot)->drawsFigure();
  if (const bool same = in_figure == std::exchange(in_figure_, in_figure); width != std::exchange(width_, width) || !same) {
    const Theme& theme = themeOf(mParentPlot);
    const QFontMetrics metrics(small_ ? theme.small : theme.normal, mParentPlot);
    height_ = metrics.boundingRect(0, 0, width, 10000, Qt::TextWordWrap, text).height() + 4;
  }
  return height_;
}

int Paragraph::lineHeight() const {
  const Theme& theme = themeOf(mParentPlot);
  return text().isEmpty() ? 0 : std::min(wantedHeight(), QFontMetrics(small_ ? theme.small : theme.normal, mParentPlot).height() + 4);
}

QSize Paragraph::minimumOuterSizeHint() const {
  const Plot::Room room = static_cast<const Plot*>(mParentPlot)->roomFor(this);
  return {0, room == Plot::Room::all ? wantedHeight() : room == Plot::Room::line ? lineHeight() : 0};
}

QSize Paragraph::maximumOuterSizeHint() const { return {QWIDGETSIZE_MAX, minimumOuterSizeHint().height()}; }

void Paragraph::draw(QCPPainter* painter) {
  const QString text = this->text();
  if (text.isEmpty() || outerRect().height() < 5) return;  // it gave way; text that moves with the cursor may be a line longer than its row
  const Theme& theme = themeOf(mParentPlot);
  painter->setFont(small_ ? theme.small : theme.normal);
  painter->setPen(muted_ ? theme.muted : theme.text);
  if (static_cast<const Plot*>(mParentPlot)->roomFor(this) == Plot::Room::line) {
    const QString cut = QFontMetrics(painter->font(), mParentPlot).elidedText(text, Qt::ElideRight, roomAcross(this));
    painter->drawText(outerRect().adjusted(legend_gap, 2, -rightGap(this), 0), Qt::AlignLeft | Qt::AlignTop | Qt::TextSingleLine, cut);
    return;
  }
  painter->drawText(outerRect().adjusted(legend_gap, 2, -rightGap(this), 0), Qt::TextWordWrap | Qt::AlignLeft | Qt::AlignTop, text);
}

// ---------------------------------------------------------------------------------------------------------------- legend

Legend::Legend(QCustomPlot* plot) : QCPLayoutElement(plot) { setLayer(QStringLiteral("legend")); }

void Legend::clear() {
  entries_.clear();
  width_ = -1;
}

void Legend::add(const QString& key, const QString& text, const QPen& pen, const QList<QCPLayerable*>& shows, const QString& tip) {
  Entry entry{key, text, tip, pen, {}, {}};
  for (QCPLayerable* layerable : shows) {
    entry.shows.append(layerable);
    layerable->setVisible(!hidden_.contains(key));
  }
  entries_.push_back(std::move(entry));
  width_ = -1;
}

int Legend::arrange(int width, bool one_line) const {
  more_ = {};
  if (entries_.empty()) return 0;
  const QFontMetrics metrics(themeOf(mParentPlot).small, mParentPlot);
  const int line = metrics.height() + 4;
  int x = 0, y = 3;
  std::size_t placed = 0;
  for (Entry& entry : entries_) {
    const bool figure = static_cast<const Plot*>(mParentPlot)->drawsFigure();
    const int whole = figure ? widthInFigure(entry.text, metrics) : metrics.horizontalAdvance(entry.text);
    const int wanted = std::min(width, 22 + whole + 12);  // a longer name is cut at its end
    if (one_line && x + wanted > width) break;
    if (x > 0 && x + wanted > width) x = 0, y += line;
    entry.place = QRect(x, y, wanted, line);
    x += wanted;
    ++placed;
  }
  if (placed < entries_.size()) {  // the count of the others takes the room of the last ones
    const int wanted = metrics.horizontalAdvance(Plot::tr("and %1 more").arg(entries_.size()));
    while (placed > 0 && entries_[placed - 1].place.right() + wanted > width) --placed;
    more_ = QRect(placed > 0 ? entries_[placed - 1].place.right() + 1 : 0, y, wanted, line);
    for (std::size_t i = placed; i < entries_.size(); ++i) entries_[i].place = {};
  }
  return y + line + 2;
}

int Legend::wantedHeight() const {
  const int width = roomAcross(this),
            at = static_cast<const Plot*>(mParentPlot)->drawsFigure() ? -2 - width : width;  // entries are wider in a figure
  if (at != std::exchange(width_, at)) height_ = arrange(width, false);
  return height_;
}

int Legend::lineHeight() const {
  return entries_.empty() ? 0 : std::min(wantedHeight(), QFontMetrics(themeOf(mParentPlot).small, mParentPlot).height() + 9);
}

QString Legend::shownText(const Entry& entry) const {
  const QFontMetrics metrics(themeOf(mParentPlot).small, mParentPlot);
  return metrics.horizontalAdvance(entry.text) <= entry.place.width() - 22
             ? entry.text
             : metrics.elidedText(entry.text, Qt::ElideRight, entry.place.width() - 22);
}

QString Legend::namesAsHtml(bool left_out_alone) const {
  QStringList lines;
  for (const Entry& entry : entries_)
    if (!left_out_alone || entry.place.isNull())
      lines << QStringLiteral("<span style='color:%1'>━</span> %2").arg(entry.pen.color().name(), entry.text.toHtmlEscaped());
  return lines.join(QStringLiteral("<br>"));
}

QSize Legend::minimumOuterSizeHint() const {
  const Plot::Room room = static_cast<const Plot*>(mParentPlot)->roomFor(this);
  return {0, room == Plot::Room::all ? wantedHeight() : room == Plot::Room::line ? lineHeight() : 0};
}
QSize Legend::maximumOuterSizeHint() const { return {QWIDGETSIZE_MAX, minimumOuterSizeHint().height()}; }

bool Legend::contains(const QPointF& position) const {
  if (more_.translated(outerRect().topLeft() + QPoint(legend_gap, 0)).contains(position.toPoint())) return true;
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) {
    return e.place.translated(outerRect().topLeft() + QPoint(legend_gap, 0)).contains(position.toPoint());
  });
}

QString Legend::tipAt(const QPointF& position) const {
  for (const Entry& entry : entries_)
    if (entry.place.translated(outerRect().topLeft() + QPoint(legend_gap, 0)).contains(position.toPoint()))
      return joinedTips({shownText(entry) == entry.text ? QString() : entry.text, entry.tip, tr("Click to hide or show it.")});
  if (more_.translated(outerRect().topLeft() + QPoint(legend_gap, 0)).contains(position.toPoint())) return htmlTip(namesAsHtml(true));
  return {};
}

bool Legend::toggleAt(const QPointF& position) {
  for (const Entry& entry : entries_) {
    if (!entry.place.translated(outerRect().topLeft() + QPoint(legend_gap, 0)).contains(position.toPoint())) continue;
    const bool hide = !hidden_.remove(entry.key);
    if (hide) hidden_.insert(entry.key);
    for (const auto& layerable : entry.shows)
      if (layerable) layerable->setVisible(!hide);
    return true;
  }
  return false;
}

QRect Legend::placeOf(const QString& key) const {
  for (const Entry& entry : entries_)
    if (entry.key == key) return entry.place.translated(outerRect().topLeft() + QPoint(legend_gap, 0));
  return {};
}

void Legend::draw(QCPPainter* painter) {
  const Plot::Room room = static_cast<const Plot*>(mParentPlot)->roomFor(this);
  arrange(roomAcross(this), room != Plot::Room::all);
  if (room == Plot::Room::none) {
    more_ = {};
    for (Entry& entry : entries_) entry.place = {};
    return;
  }
  const Theme& theme = themeOf(mParentPlot);
  painter->setFont(theme.small);
  if (!more_.isNull()) {
    const auto left_out = std::count_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.place.isNull(); });
    painter->setPen(theme.muted);
    painter->drawText(more_.translated(outerRect().topLeft() + QPoint(legend_gap, 0)), Qt::AlignVCenter | Qt::AlignLeft | Qt::TextDontClip,
                      Plot::tr("and %1 more").arg(left_out));
  }
  for (const Entry& entry : entries_) {
    if (entry.place.isNull()) continue;
    const bool hidden = hidden_.contains(entry.key);
    const QRect place = entry.place.translated(outerRect().topLeft() + QPoint(legend_gap, 0));
    QPen pen = entry.pen;
    pen.setWidthF(std::max(2.0, pen.widthF()));
    if (hidden) pen.setColor(mixed(pen.color(), theme.base, 0.3));
    painter->setPen(pen);
    painter->setAntialiasing(false);
    const int y = place.center().y();
    painter->drawLine(QLineF(place.left(), y, place.left() + 16, y));
    painter->setPen(hidden ? mixed(theme.muted, theme.base, 0.6) : theme.text);
    QFont font = theme.small;
    font.setStrikeOut(hidden);
    painter->setFont(font);
    if (static_cast<const Plot*>(mParentPlot)->drawsFigure())
      drawInFigure(painter, place.adjusted(22, 0, 0, 0), shownText(entry), QFontMetrics(font, mParentPlot));
    else
      painter->drawText(place.adjusted(22, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft | Qt::TextDontClip, shownText(entry));
  }
}

}  // namespace reclab
