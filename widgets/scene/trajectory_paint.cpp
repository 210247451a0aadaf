// SPDX-License-Identifier: GPL-3.0-or-later
// The painting of the scene: as vectors the whole, and over the geometry the marker, axes with their ticks, the bar of time and names.
#include <QCoreApplication>
#include <QFontMetricsF>
#include <QLinearGradient>
#include <QPolygonF>
#include <QRadialGradient>
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "scene/trajectory_projection.h"

namespace reclab {
namespace {

constexpr std::int64_t vectorPieces = 700;

double markerRadius(double scale) { return std::clamp(0.042 * scale, 4.0, 9.0); }

QString shown(double tick, double step) { return number(std::abs(tick) < 1e-9 * step ? 0.0 : tick, 6); }

}  // namespace

std::vector<double> TrajectoryScene::timeTicks() const { return roundTicks(trajectory_->time.front(), trajectory_->time.back(), 4); }

QRectF TrajectoryScene::bar() const {
  if (!trajectory_) return {};
  const std::vector<double> ticks = timeTicks();
  const QFontMetricsF metrics(theme_.small);
  double words = 28.0;
  for (double tick : ticks) words = std::max(words, metrics.horizontalAdvance(shown(tick, ticks.size() > 1 ? ticks[1] - ticks[0] : 1.0)));
  // Under the name of time, far enough that the first number does not touch it.
  return {size_.width() - words - 20.0, metrics.height() + 0.5 * metrics.capHeight() + 8.0, 8.0,
          std::clamp(0.5 * size_.height(), 40.0, 180.0)};
}

QRectF TrajectoryScene::barArea() const { return bar().adjusted(-16.0, -bar().top(), 80.0, 12.0); }

void TrajectoryScene::paintOver(QPainter& painter) const {
  if (!trajectory_) return;
  const QFontMetricsF metrics(theme_.small, painter.device());
  const View look = view();
  const std::array<double, 3> back = backWalls();
  const QPointF middle = look({0, 0, 0}).at;
  painter.save();
  painter.setFont(theme_.small);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(Qt::NoBrush);
  paintMarker(painter, look);
  paintLegend(painter);

  for (int axis = 0; axis < 3; ++axis) {
    const auto a = std::size_t(axis), b = std::size_t((axis + 1) % 3), c = std::size_t((axis + 2) % 3);
    // Labels stand on an edge of the outline: the lower one, for the upright axis the left one.
    const auto edge = [&](double sb, double sc) {
      Point3 from{}, to{};
      from[a] = -1.0, to[a] = 1.0;
      from[b] = to[b] = sb;
      from[c] = to[c] = sc;
      return std::pair(from, to);
    };
    auto chosen = edge(back[b], -back[c]);
    const auto other = edge(-back[b], back[c]);
    const auto score = [&](const std::pair<Point3, Point3>& e) {
      const QPointF mid = (look(e.first).at + look(e.second).at) / 2.0;
      return axis == 2 ? -mid.x() : mid.y();
    };
    if (score(other) > score(chosen)) chosen = other;
    const QPointF p = look(chosen.first).at, q = look(chosen.second).at;
    const double length = std::hypot(q.x() - p.x(), q.y() - p.y());
    if (length < 24.0) continue;  // seen end-on: nothing could be read
    QPointF out(-(q.y() - p.y()) / length, (q.x() - p.x()) / length);
    const QPointF away = (p + q) / 2.0 - middle;
    if (out.x() * away.x() + out.y() * away.y() < 0.0) out = -out;

    // As many ticks as there is room for: all, or every second, or third one.
    struct Tick {
      QPointF foot;
      QString words;
      double along, room;
    };
    const double step = ticks_[a].size() > 1 ? ticks_[a][1] - ticks_[a][0] : 1.0;
    std::vector<Tick> written;
    for (int every = 1; every <= 8; ++every) {
      written.clear();
      bool fits = true;
      for (double tick : ticks_[a]) {
        if (std::llround(tick / step) % every != 0) continue;
        Point3 at = chosen.first;
        at[a] = toCube(a, tick);
        Tick t{look(at).at, shown(tick, step), 0.0, 0.0};
        t.along = std::hypot(t.foot.x() - p.x(), t.foot.y() - p.y());
        if (t.along < 7.0 || t.along > length - 7.0) continue;
        t.room = std::abs(out.y()) * metrics.horizontalAdvance(t.words) + std::abs(out.x()) * metrics.height();
        if (!written.empty() && t.along - written.back().along < 0.5 * (t.room + written.back().room) + 4.0) fits = false;
        written.push_back(t);
      }
      if (fits) break;
    }
    double reach = 0.0;
    for (const Tick& tick : written) {
      const double depth = std::abs(out.x()) * metrics.horizontalAdvance(tick.words) / 2.0 + std::abs(out.y()) * metrics.capHeight() / 2.0;
      reach = std::max(reach, 2.0 * depth);
      painter.setPen(QPen(theme_.axis, 1.0));
      painter.drawLine(tick.foot, tick.foot + out * 4.0);
      const QPointF centre = tick.foot + out * (8.0 + depth);
      painter.setPen(theme_.muted);
      painter.drawText(QPointF(centre.x() - metrics.horizontalAdvance(tick.words) / 2.0, centre.y() + metrics.capHeight() / 2.0),
                       tick.words);
    }

    const QString name = trajectory_->names[a];
    QPointF centre = (p + q) / 2.0 + out * (14.0 + reach + metrics.capHeight() / 2.0);
    double angle = std::atan2(q.y() - p.y(), q.x() - p.x()) * 180.0 / std::numbers::pi;
    // Read from the left, and upright names from below.
    if (angle > 60.0) angle -= 180.0;
    if (angle < -120.0) angle += 180.0;
    // It stays inside the picture.
    const double turn = angle * std::numbers::pi / 180.0, wide = metrics.horizontalAdvance(name) + 6.0, tall = metrics.capHeight() + 8.0;
    const double halfX = 0.5 * (wide * std::abs(std::cos(turn)) + tall * std::abs(std::sin(turn)));
    const double halfY = 0.5 * (wide * std::abs(std::sin(turn)) + tall * std::abs(std::cos(turn)));
    centre.setX(std::clamp(centre.x(), halfX, std::max(halfX, size_.width() - halfX)));
    centre.setY(std::clamp(centre.y(), halfY, std::max(halfY, size_.height() - halfY)));
    painter.save();
    painter.translate(centre);
    painter.rotate(angle);
    painter.setPen(theme_.text);
    painter.drawText(QPointF(-metrics.horizontalAdvance(name) / 2.0, metrics.capHeight() / 2.0), name);
    painter.restore();
  }

  const QRectF strip = bar();
  QLinearGradient gradient(strip.topLeft(), strip.bottomLeft());
  for (int i = 0; i <= 16; ++i) gradient.setColorAt(i / 16.0, timeColour(i / 16.0));
  painter.fillRect(strip, gradient);
  painter.setPen(theme_.text);
  const QString name = metrics.elidedText(trajectory_->timeName, Qt::ElideRight, size_.width() - strip.left() + 10.0);
  painter.drawText(QPointF(std::min(strip.left(), size_.width() - metrics.horizontalAdvance(name) - 4.0),
                           strip.top() - 0.5 * metrics.capHeight() - metrics.descent() - 4.0),
                   name);
  const double first = trajectory_->time.front(), last = trajectory_->time.back();
  const std::vector<double> ticks = timeTicks();
  for (double tick : ticks) {
    const double f = last > first ? (tick - first) / (last - first) : 0.0;
    const double y = strip.top() + f * strip.height();
    painter.setPen(QPen(theme_.axis, 1.0));
    painter.drawLine(QPointF(strip.right(), y), QPointF(strip.right() + 3.0, y));
    painter.setPen(theme_.muted);
    const double apart = ticks.size() > 1 ? ticks[1] - ticks[0] : 1.0;
    const bool counted = trajectory_->timeName == u"step" && apart >= 1.0;  // written as they are everywhere else
    painter.drawText(QPointF(strip.right() + 6.0, y + metrics.capHeight() / 2.0),
                     counted ? grouped(std::llround(tick)) : shown(tick, apart));
  }
  if (hasCursor()) {
    const double y = strip.top() + fraction(cursor_) * strip.height();
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme_.text);
    painter.drawPolygon(QPolygonF({{strip.left() - 1.0, y}, {strip.left() - 7.0, y - 4.0}, {strip.left() - 7.0, y + 4.0}}));
  }
  painter.restore();
}

/// The names of pinned runs in rows that wrap; those that are not in the picture, and why, in one entry for each reason.
void TrajectoryScene::paintLegend(QPainter& painter) const {
  struct Entry {
    QString text;
    QPen pen;
    QColor words;
  };
  std::vector<Entry> entries;
  std::map<QString, std::vector<const CompanionWay*>> left_out;
  for (const CompanionWay& companion : trajectory_->companions) {
    if (companion.cube.size() > 1)
      entries.push_back({companion.label, QPen(companion.colour, 2.0), theme_.text});
    else
      left_out[companion.label.section(QStringLiteral(": "), -1)].push_back(&companion);
  }
  for (const auto& [why, of] : left_out) {
    const QString text =
        of.size() == 1 ? of.front()->label : QCoreApplication::translate("TrajectoryScene", "%1 pinned runs: %2").arg(of.size()).arg(why);
    entries.push_back(
        {text, QPen(mixed(of.size() == 1 ? of.front()->colour : theme_.muted, theme_.base, 0.5), 2.0, Qt::DotLine), theme_.muted});
  }
  const QFontMetricsF metrics(theme_.small, painter.device());
  const double line = metrics.height() + 3.0, most = std::max(60.0, bar().left() - 14.0), words = 26.0, gap = 14.0;
  const bool one_row = !figure_ && size_.height() < 14.0 * line;  // a low picture is not written over
  double x = 4.0, y = 6.0;
  std::size_t written = 0;
  for (const Entry& entry : entries) {
    const QString more = QCoreApplication::translate("TrajectoryScene", "and %1 more").arg(entries.size() - written);
    const double after = one_row && written + 1 < entries.size() ? gap + metrics.horizontalAdvance(more) : 0.0;
    const double wide = std::min(most - words, metrics.horizontalAdvance(entry.text));
    if (x > 4.0 && x + words + wide + after > most) {
      if (one_row) {
        painter.setPen(theme_.muted);
        painter.drawText(QPointF(x, y + line / 2.0 + metrics.capHeight() / 2.0), more);
        break;
      }
      x = 4.0;
      y += line;
    }
    ++written;
    QColor ground = theme_.base;
    ground.setAlphaF(0.8f);
    painter.fillRect(QRectF(x, y, words + wide, line), ground);
    painter.setPen(entry.pen);
    painter.drawLine(QPointF(x + 4.0, y + line / 2.0), QPointF(x + 20.0, y + line / 2.0));
    painter.setPen(entry.words);
    painter.drawText(QPointF(x + words, y + line / 2.0 + metrics.capHeight() / 2.0), metrics.elidedText(entry.text, Qt::ElideRight, wide));
    x += words + wide + gap;
  }
}

QRectF TrajectoryScene::markerArea() const {
  if (!hasCursor()) return {};
  const View look = view();
  const Point3& p = trajectory_->cube[std::size_t(cursor_)];
  const View::Seen seen = look(p), foot = look({p[0], p[1], backWalls()[2]});
  const double r = markerRadius(look.scale(seen.depth)) + 3.0;
  return QRectF(seen.at, foot.at).normalized().adjusted(-r, -r, r, r);
}

/// A ball at the cursor, and a plumb line to the wall under it (or over it), which tells how deep it stands.
void TrajectoryScene::paintMarker(QPainter& painter, const View& look) const {
  if (!hasCursor()) return;
  const Point3& p = trajectory_->cube[std::size_t(cursor_)];
  const View::Seen seen = look(p), foot = look({p[0], p[1], backWalls()[2]});
  const double r = markerRadius(look.scale(seen.depth));
  painter.setPen(QPen(theme_.muted, 1.0));
  painter.drawLine(seen.at, foot.at);
  painter.setBrush(theme_.muted);
  painter.setPen(Qt::NoPen);
  painter.drawEllipse(foot.at, 0.45 * r, 0.25 * r);
  QRadialGradient ball(seen.at, r, seen.at + QPointF(-0.35 * r, -0.4 * r));
  ball.setColorAt(0.0, mixed(theme_.text, theme_.base, 0.45));
  ball.setColorAt(0.6, theme_.text);
  painter.setPen(QPen(theme_.base, 1.2));
  painter.setBrush(ball);
  painter.drawEllipse(seen.at, r, r);
  painter.setBrush(Qt::NoBrush);
}

void TrajectoryScene::paint(QPainter& painter) const {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.fillRect(QRectF({0, 0}, size_), theme_.base);
  if (!trajectory_) {
    painter.restore();
    return;
  }
  painter.setClipRect(QRectF({0, 0}, size_));
  const View look = view();
  for (bool edges : {false, true}) {
    painter.setPen(QPen(edges ? wallEdge(theme_) : theme_.grid, 0.8, Qt::SolidLine, Qt::RoundCap));
    eachWallLine([&](const Point3& from, const Point3& to, bool edge) {
      if (edge == edges) painter.drawLine(look(from).at, look(to).at);
    });
  }

  // Pieces of the curve from the farthest to the nearest; each has a rim of the background, which shows the order in depth.
  struct Piece {
    std::size_t first, last;
    double depth;
    const CompanionWay* companion = nullptr;  // of a pinned run
  };
  std::vector<View::Seen> seen;
  seen.reserve(trajectory_->kept.size());
  for (std::int64_t row : trajectory_->kept) seen.push_back(look(trajectory_->cube[std::size_t(row)]));
  std::vector<Piece> pieces;
  const std::size_t stride = std::max<std::size_t>(1, trajectory_->kept.size() / std::size_t(vectorPieces));
  for (std::size_t i = 0; i + 1 < trajectory_->kept.size(); i += stride) {
    Piece piece{i, std::min(i + stride, trajectory_->kept.size() - 1), 0.0};
    for (std::size_t j = piece.first; j <= piece.last; ++j) piece.depth += seen[j].depth / double(piece.last - piece.first + 1);
    pieces.push_back(piece);
  }
  for (const CompanionWay& companion : trajectory_->companions) {
    const std::size_t few = std::max<std::size_t>(1, companion.cube.size() / std::size_t(vectorPieces / 2));
    for (std::size_t i = 0; i + 1 < companion.cube.size(); i += few) {
      Piece piece{i, std::min(i + few, companion.cube.size() - 1), 0.0, &companion};
      for (std::size_t j = piece.first; j <= piece.last; ++j)
        piece.depth += look(companion.cube[j]).depth / double(piece.last - piece.first + 1);
      pieces.push_back(piece);
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.depth > b.depth; });

  for (const Piece& piece : pieces) {
    QPolygonF strand;
    for (std::size_t j = piece.first; j <= piece.last; ++j) strand << (piece.companion ? look(piece.companion->cube[j]).at : seen[j].at);
    const double width = std::max(0.9, 2.0 * radius_ * (piece.companion ? companionRadius : 1.0) * look.scale(piece.depth));
    const std::size_t middle = (piece.first + piece.last) / 2;
    painter.setPen(QPen(theme_.base, width + 1.6, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin));
    painter.drawPolyline(strand);
    const QColor ink = piece.companion ? colourOf(*piece.companion, piece.companion->kept[middle]) : colourAt(trajectory_->kept[middle]);
    painter.setPen(QPen(ink, width, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter.drawPolyline(strand);
  }
  painter.restore();
  paintOver(painter);
}

}  // namespace reclab
