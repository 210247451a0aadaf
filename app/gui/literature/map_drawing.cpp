// SPDX-License-Identifier: GPL-3.0-or-later
// The painting of the map of the literature: links under dots under names, and the headings that stay at the top while it is scrolled.
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "gui/literature/map_view.h"
#include "plot/figure.h"

namespace reclab {
namespace {

QColor withAlpha(QColor colour, double alpha) {
  colour.setAlphaF(static_cast<float>(alpha));
  return colour;
}

/// The room that is taken already.
class Taken {
 public:
  bool meets(const QRectF& room) const {
    return std::any_of(rooms_.begin(), rooms_.end(), [&](const QRectF& one) { return one.intersects(room); });
  }
  void add(const QRectF& room) { rooms_.push_back(room); }

 private:
  std::vector<QRectF> rooms_;
};

}  // namespace

QPainterPath LiteratureMap::pathOf(const MapLayout& places, const Literature::Link& link) const {
  const QPointF from = places.dots[static_cast<std::size_t>(link.parent)], to = places.dots[static_cast<std::size_t>(link.child)];
  QPainterPath path;
  if (places.shape == MapLayout::Shape::list) {
    const double bend = std::clamp(std::abs(to.y() - from.y()) * 0.4, 4.0, 60.0);
    path.moveTo(from + QPointF(0, mapDot));
    path.cubicTo(from + QPointF(0, bend), to - QPointF(0, bend), to - QPointF(0, mapDot));
    return path;
  }
  const double across = to.x() - from.x();
  if (across < 2 * mapDot) {  // of one year: round by the left, where no name is
    const double bend = std::clamp(std::abs(to.y() - from.y()) * 0.3, 10.0, 26.0);
    path.moveTo(from - QPointF(mapDot, 0));
    path.cubicTo(from - QPointF(bend, 0), to - QPointF(bend, 0), to - QPointF(mapDot, 0));
    return path;
  }
  const auto between = [&](const QPointF& dot) {
    return std::abs(dot.y() - from.y()) < 1.0 && dot.x() > from.x() + 1.0 && dot.x() < to.x() - 1.0;
  };
  if (std::abs(to.y() - from.y()) < 1.0 && std::any_of(places.dots.begin(), places.dots.end(), between)) {  // below the names on its way
    const double below = from.y() + 0.5 * places.line, turn = std::min(across * 0.25, 24.0);
    path.moveTo(from + QPointF(mapDot, 0));
    path.cubicTo({from.x() + turn * 0.6, from.y()}, {from.x() + turn * 0.4, below}, {from.x() + turn, below});
    path.lineTo(to.x() - turn, below);
    path.cubicTo({to.x() - turn * 0.4, below}, {to.x() - turn * 0.6, to.y()}, to - QPointF(mapDot, 0));
    return path;
  }
  // The height is left behind soon after the start, so that links from one model run together and then part, and names are crossed steeply.
  const double bend = std::min(across * 0.5, 70.0);
  path.moveTo(from + QPointF(mapDot, 0));
  path.cubicTo(from + QPointF(bend, 0), to - QPointF(bend, 0), to - QPointF(mapDot, 0));
  return path;
}

void LiteratureMap::drawLinks(QPainter& painter, const MapLayout& places, const Picture& picture) const {
  std::map<int, int> before, after;
  if (picture.focus >= 0) {
    before = literature_->ancestors(picture.focus);
    after = literature_->descendants(picture.focus);
  }
  const auto nearness = [&](const Literature::Link& link) {  // 0: no kin of the current model
    for (const auto* kin : {&before, &after}) {
      const auto parent = kin->find(link.parent), child = kin->find(link.child);
      if (parent != kin->end() && child != kin->end()) return 1.0 / (1.0 + 0.5 * std::min(parent->second, child->second));
    }
    return 0.0;
  };
  const QColor faint = withAlpha(palette().color(QPalette::PlaceholderText), picture.focus >= 0 || picture.link >= 0 ? 0.22 : 0.4),
               strong = palette().color(QPalette::Highlight);
  painter.setBrush(Qt::NoBrush);
  for (const bool kin : {false, true})
    for (std::size_t i = 0; i < literature_->links.size(); ++i) {
      const Literature::Link& link = literature_->links[i];
      const double near = static_cast<int>(i) == picture.link ? 1.0 : nearness(link);
      if ((near > 0.0) != kin) continue;
      const bool pale = isPale(link.parent) || isPale(link.child);
      painter.setPen(kin ? QPen(withAlpha(strong, 0.35 + 0.65 * near), near == 1.0 ? 2.0 : 1.4)
                         : QPen(pale ? withAlpha(faint, 0.1) : faint, 1.0));
      painter.drawPath(pathOf(places, link));
    }
}

void LiteratureMap::drawAxis(QPainter& painter, const MapLayout& places, const Picture& picture) const {
  const QColor base = palette().color(QPalette::Base), muted = palette().color(QPalette::PlaceholderText);
  const QFontMetricsF metrics(painter.font());
  painter.fillRect(QRectF(0, 0, picture.view.width(), places.axis), base);
  painter.setPen(QPen(palette().color(QPalette::Mid), 1.0));
  painter.drawLine(QPointF(0, places.axis - 0.5), QPointF(picture.view.width(), places.axis - 0.5));
  painter.setPen(muted);
  double end = -1e300;
  if (places.shape == MapLayout::Shape::chart) {
    for (const MapLayout::Year& year : places.years) {
      const QString text = QString::number(year.year);
      const double at = year.at - picture.scrolled.x();
      if (at < end + 8.0) continue;
      painter.drawText(QRectF(at, 0, 60, places.axis), Qt::AlignLeft | Qt::AlignVCenter, text);
      end = at + metrics.horizontalAdvance(text);
    }
    return;
  }
  const auto turns = std::max(1, static_cast<int>(std::lround((places.axis - 4.0) / 14.0)));
  for (std::size_t i = 0; i < places.lanes.size(); ++i) {
    const auto& lane = places.lanes[i];
    const QString& section = literature_->families[static_cast<std::size_t>(lane.family)].section;
    const double middle = (lane.from + lane.to) / 2.0, top = 14.0 * static_cast<double>(static_cast<int>(i) % turns);
    const double width = metrics.horizontalAdvance(section);
    painter.setPen(muted);
    painter.drawText(QRectF(std::max(1.0, middle - width / 2.0), top, width + 2.0, 14.0), Qt::AlignLeft | Qt::AlignVCenter, section);
    painter.setPen(QPen(palette().color(QPalette::Midlight), 1.0));
    painter.drawLine(QPointF(middle, top + 14.0), QPointF(middle, places.axis - 1.0));
  }
}

void LiteratureMap::draw(QPainter& painter, const MapLayout& places, const Picture& picture, std::vector<Name>* names) const {
  const bool chart = places.shape == MapLayout::Shape::chart;
  const QColor text = palette().color(QPalette::Text), muted = palette().color(QPalette::PlaceholderText),
               base = palette().color(QPalette::Base), accent = palette().color(QPalette::Highlight);
  const QPointF off = -picture.scrolled;
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setFont(font());
  const QFontMetricsF metrics(font());
  const double height = std::ceil(metrics.height());
  Taken taken;

  painter.save();
  painter.setClipRect(QRectF(0, places.axis, picture.view.width(), std::max(0.0, picture.view.height() - places.axis)));
  // The lanes of the families; their titles stay in sight while the years are scrolled.
  for (const MapLayout::Lane& lane : places.lanes) {
    if (!chart) {
      const double middle = (lane.from + lane.to) / 2.0 + off.x();
      painter.setPen(QPen(palette().color(QPalette::Midlight), 1.0));
      painter.drawLine(QPointF(middle, places.axis), QPointF(middle, picture.view.height()));
      continue;
    }
    const double top = lane.from + off.y();
    if (lane.family % 2 == 0)
      painter.fillRect(QRectF(0, top, picture.view.width(), lane.to - lane.from), palette().color(QPalette::AlternateBase));
  }
  if (chart)
    for (const MapLayout::Year& year : places.years) {
      painter.setPen(QPen(palette().color(QPalette::Midlight), 1.0));
      const double at = std::round(year.at + mapDot + off.x()) + 0.5;
      painter.drawLine(QPointF(at, places.axis), QPointF(at, picture.view.height()));
    }

  painter.translate(off);
  drawLinks(painter, places, picture);
  painter.translate(-off);

  for (const QPointF& dot : places.dots) taken.add(QRectF(dot + off - QPointF(mapDot, mapDot), QSizeF(2 * mapDot, 2 * mapDot)));
  if (chart)
    for (const MapLayout::Lane& lane : places.lanes) {
      const Literature::Family& family = literature_->families[static_cast<std::size_t>(lane.family)];
      QFont heavy = font();
      heavy.setWeight(QFont::DemiBold);
      const QString title = family.section.isEmpty() ? family.title : family.section + "  " + family.title;
      const QRectF room(8.0, lane.from + off.y() + 1.0, QFontMetricsF(heavy).horizontalAdvance(title) + 8.0, height);
      if (taken.meets(room.adjusted(0, 3, 0, -4))) continue;
      taken.add(room);
      painter.fillRect(room, withAlpha(lane.family % 2 == 0 ? palette().color(QPalette::AlternateBase) : base, 0.8));
      painter.setFont(heavy);
      painter.setPen(muted);
      painter.drawText(room, Qt::AlignLeft | Qt::AlignVCenter, title);
      painter.setFont(font());
    }

  for (std::size_t i = 0; i < places.dots.size(); ++i) {
    const int model = static_cast<int>(i);
    const bool current = model == current_, marked = model == marked_;
    QColor fill = current || marked ? accent : model == picture.focus ? text : muted;
    if (isPale(model) && !current && !marked) fill = withAlpha(fill, 0.3);
    painter.setPen(QPen(base, 1.0));
    painter.setBrush(fill);
    painter.drawEllipse(places.dots[i] + off, mapDot, mapDot);
    painter.setBrush(Qt::NoBrush);
    if (current || marked) {
      painter.setPen(QPen(accent, 1.5, marked ? Qt::DashLine : Qt::SolidLine));
      painter.drawEllipse(places.dots[i] + off, mapDot + 3.0, mapDot + 3.0);
    }
  }

  // Names, first those that matter most; one that would meet another, or a dot, is left out.
  std::vector<int> order;
  for (const int one : {picture.focus, picture.cursor, current_, marked_})
    if (one >= 0 && std::find(order.begin(), order.end(), one) == order.end()) order.push_back(one);
  const auto matters = order.size();
  if (picture.focus >= 0)
    for (const auto& kin : {literature_->ancestors(picture.focus), literature_->descendants(picture.focus)})
      for (const auto& [model, distance] : kin)
        if (distance == 1 && std::find(order.begin(), order.end(), model) == order.end()) order.push_back(model);
  for (const bool pale : {false, true})
    for (int i = 0; i < static_cast<int>(places.dots.size()); ++i)
      if (isPale(i) == pale &&
          std::find(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(matters), i) ==
              order.begin() + static_cast<std::ptrdiff_t>(matters) &&
          std::find(order.begin(), order.end(), i) == order.end())
        order.push_back(i);
  const QRectF sight(0, places.axis, picture.view.width(), picture.view.height() - places.axis);
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const int model = order[rank];
    const auto index = static_cast<std::size_t>(model);
    const QPointF dot = places.dots[index] + off;
    const double left = chart ? dot.x() + mapNameGap : places.names + off.x();
    const double most = std::max(0.0, chart ? std::max(places.room[index], rank < matters ? 80.0 : 0.0) : places.room[index]);
    const QString& title = literature_->models[index].title;
    const QString shown = metrics.elidedText(title, Qt::ElideRight, most);
    if (shown.size() < 3 && shown != title) continue;  // dots alone say nothing
    const QRectF room(left, dot.y() - height / 2.0, metrics.horizontalAdvance(shown), height);
    if (!sight.intersects(room)) continue;
    // A name may overlap marks beside its own line of dots by less than a pixel.
    if (taken.meets(room.adjusted(0.5, 1.5, -0.5, -1.5))) continue;
    taken.add(room);
    const QRectF pill = room.adjusted(-3, 0, 3, 0);
    const bool chosen = model == current_ || model == marked_;
    painter.setPen(Qt::NoPen);
    if (chosen || model == picture.focus) {
      painter.setBrush(palette().color(QPalette::Light));
      painter.drawRoundedRect(pill, 3, 3);
    } else if (chart) {
      painter.setBrush(withAlpha(literature_->models[index].family % 2 == 0 ? palette().color(QPalette::AlternateBase) : base, 0.72));
      painter.drawRect(pill);
    }
    painter.setBrush(Qt::NoBrush);
    if (model == picture.cursor) {
      painter.setPen(QPen(accent, 1.5));
      painter.drawRoundedRect(pill.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
    }
    painter.setPen(isPale(model) && !chosen ? withAlpha(muted, 0.55) : text);
    painter.drawText(room.topLeft() + QPointF(0, metrics.ascent()), shown);
    if (names != nullptr) names->push_back({literature_->models[index].id, room, shown == title});
  }
  if (!chart) {
    double end = -1e300;
    painter.setPen(muted);
    for (const MapLayout::Year& year : places.years) {
      const QRectF room(picture.view.width() - 34.0, year.at + off.y() - height / 2.0, 32.0, height);
      if (room.top() < end) continue;
      painter.drawText(room, Qt::AlignRight | Qt::AlignVCenter, QString::number(year.year));
      end = room.bottom();
    }
  }
  painter.restore();
  drawAxis(painter, places, picture);
}

void LiteratureMap::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  painter.fillRect(viewport()->rect(), palette().color(QPalette::Base));
  Picture picture;
  picture.cursor = hasFocus() ? cursor_ : -1;
  picture.link = hoveredLink_;
  picture.focus = hovered_ >= 0 ? hovered_ : hoveredLink_ >= 0 ? -1 : picture.cursor >= 0 ? picture.cursor : current_;
  picture.scrolled = scrolled();
  picture.view = viewport()->size();
  drawn_.clear();
  draw(painter, layout_, picture, &drawn_);
}

QString LiteratureMap::saveFigure(const QString& file, Panel::Format format) {
  const auto measure = [this](const QString& text) { return widthOf(text); };
  const MapLayout places = layOut(*literature_, QSizeF(std::max(1600.0, layout_.size.width()), 100.0), 1.0, measure);
  Picture picture;
  picture.screen = false;
  picture.view = places.size;
  picture.focus = current_;
  const FigureDrawing drawing{"Map of the literature", places.size.toSize(),
                              [&](QCPPainter* painter) { draw(*painter, places, picture, nullptr); }};
  return saveDrawing(file, format, drawing, FigureStyle::asShown(), palette().color(QPalette::Base), logicalDpiX());
}

}  // namespace reclab
