// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/composer/tiles.h"
#include "plain_text.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

namespace reclab {
namespace {

constexpr int gap = 6, pad = 5;  // pixels between tiles, and inside one
constexpr QSize picture_size(38, 24);
constexpr int small_gap = 3, small_pad = 3;  // of small ones
constexpr QSize small_picture_size(20, 16);
constexpr double rounding = 4.0;

/// A name with minus signs in at most two lines of about the same length: "key-gates-" and "by-values".
QStringList inTwoLines(const QString& name) {
  constexpr qsizetype long_enough = 13;
  if (name.size() < long_enough) return {name};
  qsizetype best = -1;
  for (qsizetype at = name.indexOf(u'-'); at >= 0; at = name.indexOf(u'-', at + 1))
    if (best < 0 || std::abs(2 * (at + 1) - name.size()) < std::abs(2 * (best + 1) - name.size())) best = at;
  return best < 0 ? QStringList{name} : QStringList{name.left(best + 1), name.mid(best + 1)};
}

bool isMove(int key) {
  return key == Qt::Key_Left || key == Qt::Key_Right || key == Qt::Key_Up || key == Qt::Key_Down || key == Qt::Key_Home ||
         key == Qt::Key_End;
}

}  // namespace

TileRow::TileRow(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
  dress();
}

void TileRow::setRow(const Composition::Row& row) {
  row_ = row;
  setObjectName(QString::fromStdString(row.key));
  dress();
}

void TileRow::setCompact(bool compact) {
  if (std::exchange(compact_, compact) != compact) dress();
}

/// Sizes and faces that depend on the choices, the fonts and the palette.
void TileRow::dress() {
  theme_ = Theme::of(this);
  QFont bold = theme_.small;
  bold.setBold(true);
  const QFontMetrics small(theme_.small, this), heavy(bold, this), normal(theme_.normal, this);
  title_ = small.height() + 4;
  faces_.clear();
  int width = 72, lines = 1, sign_height = 0;
  for (const Composition::Choice& choice : row_.choices) {
    Face face;
    face.name = inTwoLines(QString::fromStdString(choice.value));
    face.sign = mathText(QString::fromStdString(choice.sign));
    if (!face.sign.isEmpty()) sign_height = normal.height();
    width = std::max(width, normal.horizontalAdvance(face.sign));
    for (const QString& line : face.name) width = std::max(width, heavy.horizontalAdvance(line));
    lines = std::max(lines, static_cast<int>(face.name.size()));
    faces_.push_back(std::move(face));
  }
  const int head = std::max(picture_size.height(), small.height());
  gap_ = compact_ ? small_gap : gap;
  if (compact_)
    tile_ = {std::max(small_picture_size.width(), heavy.horizontalAdvance(QStringLiteral("00"))) + 2 * small_pad,
             small_picture_size.height() + small.height() + 2 * small_pad};
  else
    tile_ = {width + 2 * pad, 2 * pad + head + 3 + sign_height + lines * small.height()};
  const QString title = QString::fromStdString(row_.title);
  setAccessibleName(title);
  if (!row_.choices.empty())
    setAccessibleDescription(QString::fromStdString(row_.choices[row_.chosen].value + ": " + row_.choices[row_.chosen].text));
  updateGeometry();
  update();
}

int TileRow::columns(int width) const {
  const int most = std::max(1, static_cast<int>(row_.choices.size()));
  return std::clamp((width + gap_) / (tile_.width() + gap_), 1, most);
}

int TileRow::heightForWidth(int width) const {
  const int lines = (static_cast<int>(row_.choices.size()) + columns(width) - 1) / columns(width);
  return title_ + lines * (tile_.height() + gap_);
}
QSize TileRow::sizeHint() const {
  const int count = static_cast<int>(row_.choices.size()), wide = count * (tile_.width() + gap_) - gap_;
  return {wide, heightForWidth(wide)};
}
QSize TileRow::minimumSizeHint() const { return {tile_.width() + gap_, title_ + tile_.height()}; }

QRect TileRow::placeOf(int tile) const {
  const int across = columns(width());
  return {QPoint(tile % across * (tile_.width() + gap_), title_ + tile / across * (tile_.height() + gap_)), tile_};
}

int TileRow::tileAt(const QPointF& position) const {
  for (int tile = 0; tile < std::ssize(row_.choices); ++tile)
    if (placeOf(tile).contains(position.toPoint())) return tile;
  return -1;
}

QString TileRow::tipOf(int tile) const {
  const Composition::Choice& choice = row_.choices[static_cast<std::size_t>(tile)];
  const auto html = [](const std::string& text) { return QString::fromStdString(text).toHtmlEscaped(); };
  return htmlTip(QStringLiteral("<p><b>%1 %2: %3</b></p><p>%4</p><p>%5</p><p>%6</p>")
                     .arg(html(row_.title))
                     .arg(tile)
                     .arg(html(choice.value), mathHtml(choice.equation), html(choice.text),
                          choice.dependent ? tr("It depends on the data (x<sub>t</sub>).") : tr("It does not depend on the data.")));
}

void TileRow::pick(int tile) {
  if (tile < 0 || tile == chosen()) return;
  row_.chosen = static_cast<std::size_t>(tile);
  dress();
  emit picked(tile);
}

int TileRow::neighbour(int key) const {
  const int last = static_cast<int>(row_.choices.size()) - 1, across = columns(width());
  switch (key) {
    case Qt::Key_Left: return std::max(0, chosen() - 1);
    case Qt::Key_Right: return std::min(last, chosen() + 1);
    case Qt::Key_Up: return chosen() - across >= 0 ? chosen() - across : chosen();
    case Qt::Key_Down: return chosen() + across <= last ? chosen() + across : chosen();
    case Qt::Key_Home: return 0;
    default: return last;
  }
}

bool TileRow::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const int tile = tileAt(help->pos());
    if (tile >= 0)
      QToolTip::showText(help->globalPos(), safeTip(tipOf(tile)), this, placeOf(tile));
    else if (help->pos().y() < title_)
      QToolTip::showText(help->globalPos(), safeTip(QString::fromStdString(row_.text)), this);
    else
      QToolTip::hideText();
    return true;
  }
  // Before the window's own step keys.
  if (event->type() == QEvent::ShortcutOverride) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if ((isMove(key->key()) || key->key() == Qt::Key_Space) && (key->modifiers() & ~Qt::KeypadModifier) == Qt::NoModifier) event->accept();
    if (event->isAccepted()) return true;
  }
  return QWidget::event(event);
}

void TileRow::changeEvent(QEvent* event) {
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange) dress();
  QWidget::changeEvent(event);
}

void TileRow::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) pick(tileAt(event->position()));
}
void TileRow::mouseMoveEvent(QMouseEvent* event) {
  const int tile = tileAt(event->position());
  setCursor(tile >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
  if (std::exchange(hovered_, tile) != tile) update();
}
void TileRow::leaveEvent(QEvent* event) {
  hovered_ = -1;
  update();
  QWidget::leaveEvent(event);
}

void TileRow::keyPressEvent(QKeyEvent* event) {
  if (isMove(event->key()) && !row_.choices.empty())
    pick(neighbour(event->key()));
  else if (event->key() != Qt::Key_Space)  // the focused tile is chosen already
    QWidget::keyPressEvent(event);
}

void TileRow::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  QFont bold = theme_.small;
  bold.setBold(true);
  const QString title = QString::fromStdString(row_.title);
  painter.setFont(bold);
  painter.setPen(theme_.text);
  painter.drawText(QRect(0, 0, width(), title_), Qt::AlignLeft | Qt::AlignTop, title);
  const int after = QFontMetrics(bold, this).horizontalAdvance(title) + 10;
  QString said = QString::fromStdString(row_.text);
  if (compact_ && !row_.choices.empty()) {
    const Face& face = faces_[row_.chosen];
    said = face.sign + QStringLiteral("  ") + face.name.join(QString());
  }
  painter.setFont(theme_.small);
  painter.setPen(theme_.muted);
  painter.drawText(QRect(after, 0, width() - after, title_), Qt::AlignLeft | Qt::AlignTop,
                   QFontMetrics(theme_.small, this).elidedText(said, Qt::ElideRight, width() - after));
  for (int tile = 0; tile < std::ssize(row_.choices); ++tile) paintTile(painter, tile);
}

void TileRow::paintFrame(QPainter& painter, int tile) const {
  const bool is_chosen = tile == chosen();
  const QRectF place = QRectF(placeOf(tile)).adjusted(1, 1, -1, -1);
  const QColor mark = palette().color(QPalette::Highlight);
  painter.setPen(is_chosen ? QPen(mark, 2) : QPen(mixed(theme_.text, theme_.base, 0.22), 1));
  painter.setBrush(is_chosen          ? mixed(mark, theme_.base, theme_.dark ? 0.3 : 0.16)
                   : tile == hovered_ ? mixed(theme_.text, theme_.base, 0.07)
                                      : theme_.base);
  painter.drawRoundedRect(place, rounding, rounding);
  if (is_chosen && hasFocus()) {
    painter.setPen(QPen(theme_.text, 1, Qt::DotLine));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(place.adjusted(3, 3, -3, -3), rounding - 2, rounding - 2);
  }
}

void TileRow::paintTile(QPainter& painter, int tile) const {
  const Composition::Choice& choice = row_.choices[static_cast<std::size_t>(tile)];
  const Face& face = faces_[static_cast<std::size_t>(tile)];
  const bool is_chosen = tile == chosen();
  paintFrame(painter, tile);
  const QFontMetrics small(theme_.small, this);
  QFont bold = theme_.small;
  bold.setBold(true);
  if (compact_) {
    const QRect within = placeOf(tile).adjusted(small_pad, small_pad, -small_pad, -small_pad);
    paintPicture(painter, QRectF(QPointF(within.center().x() + 0.5 - small_picture_size.width() / 2.0, within.top()), small_picture_size),
                 choice);
    painter.setFont(is_chosen ? bold : theme_.small);
    painter.setPen(is_chosen ? theme_.text : theme_.muted);
    painter.drawText(QRect(within.left(), within.bottom() + 1 - small.height(), within.width(), small.height()), Qt::AlignCenter,
                     QString::number(tile));
    return;
  }
  const QRect inside = placeOf(tile).adjusted(pad, pad, -pad, -pad);
  const int head = std::max(picture_size.height(), small.height());
  const QRect top(inside.left(), inside.top(), inside.width(), head);
  painter.setFont(is_chosen ? bold : theme_.small);
  painter.setPen(is_chosen ? theme_.text : theme_.muted);
  painter.drawText(top, Qt::AlignLeft | Qt::AlignTop, QString::number(tile));
  if (choice.dependent) {
    painter.setPen(theme_.series(0));
    painter.drawText(top, Qt::AlignRight | Qt::AlignTop, mathText(QStringLiteral("x_t")));
  }
  paintPicture(painter, QRectF(QPointF(top.center().x() - picture_size.width() / 2.0, top.top()), picture_size), choice);

  double y = inside.top() + head + 3;
  painter.setPen(theme_.text);
  if (!face.sign.isEmpty()) {
    painter.setFont(theme_.normal);
    painter.drawText(QRectF(inside.left() - pad, y, inside.width() + 2 * pad, QFontMetrics(theme_.normal, this).height()), Qt::AlignCenter,
                     face.sign);
    y = inside.bottom() + 1 - small.height() * static_cast<int>(face.name.size());
    if (face.name.size() == 1 && inside.height() - head > 3 * small.height()) y -= small.height() / 2.0;
  }
  painter.setFont(is_chosen ? bold : theme_.small);
  painter.setPen(is_chosen ? theme_.text : theme_.muted);
  for (const QString& line : face.name) {
    painter.drawText(QRectF(inside.left() - pad, y, inside.width() + 2 * pad, small.height()), Qt::AlignCenter, line);
    y += small.height();
  }
}

void TileRow::paintPicture(QPainter& painter, const QRectF& place, const Composition::Choice& choice) const {
  const Composition::Picture& picture = choice.picture;
  if (picture.values.empty()) return;
  const QColor ink = choice.dependent ? theme_.series(0) : mixed(theme_.text, theme_.base, 0.75);
  if (picture.rows > 1) {
    const double cell = std::min(place.width() / static_cast<double>(picture.columns), place.height() / static_cast<double>(picture.rows));
    const QPointF corner = place.center() - 0.5 * cell * QPointF(static_cast<double>(picture.columns), static_cast<double>(picture.rows));
    painter.setPen(Qt::NoPen);
    for (std::int64_t i = 0; i < std::ssize(picture.values); ++i) {
      painter.setBrush(mixed(ink, theme_.base, picture.values[static_cast<std::size_t>(i)]));
      painter.drawRect(QRectF(corner + cell * QPointF(static_cast<double>(i % picture.columns), static_cast<double>(i / picture.columns)),
                              QSizeF(cell - 1, cell - 1)));
    }
    return;
  }
  const auto [low, high] = std::ranges::minmax(picture.values);
  QPolygonF line;
  for (std::size_t i = 0; i < picture.values.size(); ++i)
    line << QPointF(place.left() + place.width() * static_cast<double>(i) / static_cast<double>(picture.values.size() - 1),
                    place.bottom() - 2 - (place.height() - 4) * (picture.values[i] - low) / std::max(high - low, 1e-9));
  painter.setBrush(Qt::NoBrush);
  const double zero = place.bottom() - 2 - (place.height() - 4) * (0.0 - low) / std::max(high - low, 1e-9);
  painter.setPen(QPen(theme_.grid, 1));
  if (place.adjusted(0, -1, 0, 1).contains(QPointF(place.center().x(), zero)))
    painter.drawLine(QPointF(place.left(), zero), QPointF(place.right(), zero));
  painter.setPen(QPen(ink, 1.5, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  painter.drawPolyline(line);
}

}  // namespace reclab
