// SPDX-License-Identifier: GPL-3.0-or-later
// The texts of a plot, paragraphs and legends, and the parts of them that a low plot leaves out.
#include <algorithm>
#include <cmath>

#include "plain_text.h"
#include "plot/plot.h"

namespace reclab {
namespace {

constexpr int legend_gap = 8;  // pixels at both sides

/// Texts above the pictures leave the corner to the dots that mark omitted parts.
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

void CursorText::say(const QString& text, bool muted) {
  auto* plot = static_cast<Plot*>(mParentPlot);
  const QSize before = minimumOuterSizeHint();
  setText(text, muted);
  if (minimumOuterSizeHint() != before) plot->redraw();
  plot->redrawNow();
}

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

// ------------------------------------------------------------------------------------------------------------------ room

Plot::Beside Plot::beside() const {
  constexpr int least_inside = 120, least_further = 70;  // of the first picture, and of one more under it
  Beside all;
  int pictures = 0, around = 0;
  QCPLayoutGrid* grid = plotLayout();
  for (int row = 0; row < grid->rowCount(); ++row) {
    bool picture = false;
    for (int column = 0; column < grid->columnCount(); ++column) {
      const QCPLayoutElement* element = grid->hasElement(row, column) ? grid->element(row, column) : nullptr;
      if (const auto* text = qobject_cast<const Paragraph*>(element)) {
        all.texts.push_back(text);
        all.wanted += text->wantedHeight();
      } else if (const auto* names = qobject_cast<const Legend*>(element)) {
        all.legends.push_back(names);
        all.wanted += names->wantedHeight();
      } else {
        picture = picture || (element && element->visible());
        const auto frame = [&](const QCPLayoutElement* one) {
          if (const auto* rect = qobject_cast<const QCPAxisRect*>(one); rect && rect->visible())
            around = std::max(around, rect->margins().top() + rect->margins().bottom());
        };
        frame(element);
        if (element)
          for (const QCPLayoutElement* one : element->elements(true)) frame(one);
      }
    }
    pictures += picture;
  }
  const int least = least_picture_ > 0 ? least_picture_ : least_inside + around;
  const int height = viewport().height(), spacing = grid->rowSpacing() * std::max(0, grid->rowCount() - 1);
  all.room = height - least - least_further * std::max(0, pictures - 1) - spacing;
  all.fair = share_ > 0.0 ? std::min(all.room, height - static_cast<int>(share_ * height) - spacing) : all.room;
  return all;
}

Plot::Room Plot::roomFor(const QCPLayoutElement* one) const {
  if (figure_) return figure_->caption || qobject_cast<const Paragraph*>(one) == nullptr ? Room::all : Room::none;
  auto [texts, legends, wanted, room, fair] = beside();
  Room its = Room::all;
  for (auto text = texts.rbegin(); text != texts.rend() && wanted > fair; ++text) {
    const bool brief = (*text)->brief();
    wanted -= (*text)->wantedHeight() - (brief ? (*text)->lineHeight() : 0);
    if (*text == one && !brief) return Room::none;
    if (*text == one && (*text)->wantedHeight() > (*text)->lineHeight()) its = Room::line;
  }
  for (auto names = legends.rbegin(); names != legends.rend() && wanted > fair; ++names) {
    wanted -= (*names)->wantedHeight() - (*names)->lineHeight();
    if (*names == one && (*names)->wantedHeight() > (*names)->lineHeight()) its = Room::line;
  }
  for (auto text = texts.rbegin(); text != texts.rend() && wanted > room; ++text) {
    if (!(*text)->brief()) continue;  // gone already
    wanted -= (*text)->lineHeight();
    if (*text == one) return Room::none;
  }
  for (auto names = legends.rbegin(); names != legends.rend() && wanted > room; ++names) {
    wanted -= (*names)->lineHeight();
    if (*names == one) its = Room::none;
  }
  return its;
}

QRect Plot::leftOutPlace() const { return {viewport().right() - 26, viewport().top(), 26, 16}; }

QString Plot::leftOut() const {
  QStringList parts;
  for (QCPLayoutElement* element : plotLayout()->elements(false)) {
    if (const auto* names = qobject_cast<const Legend*>(element)) {
      if (const Room room = roomFor(names); room != Room::all) parts << names->namesAsHtml(room == Room::line);
    } else if (const auto* text = qobject_cast<const Paragraph*>(element)) {
      if (!text->text().isEmpty() && roomFor(text) != Room::all) parts << text->text().toHtmlEscaped();
    }
  }
  parts.removeAll(QString());
  return parts.join(QStringLiteral("<br>"));
}

}  // namespace reclab
