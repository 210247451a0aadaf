// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/literature/map_view.h"

#include <QApplication>
#include <QKeyEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QPainterPath>
#include <QScrollBar>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/look/look.h"
#include "plain_text.h"

namespace reclab {
namespace {

constexpr double leastMapZoom = 0.08, mostMapZoom = 4.0;  ///< the least gives way where more models than that have room must be in sight
constexpr double mapReach = 12.0;                         ///< of the mouse, around a dot

}  // namespace

LiteratureMap::LiteratureMap(QWidget* parent) : QAbstractScrollArea(parent) {
  setObjectName("literature");
  setFrameShape(NoFrame);
  setFocusPolicy(Qt::StrongFocus);
  setFont(smallFont());
  viewport()->setMouseTracking(true);
  setAccessibleName(tr("Map of the literature"));
  setAccessibleDescription(
      tr("Models by year and family. Arrow keys go from one to the next, Enter picks one, Space marks one to be compared."));
}

void LiteratureMap::setLiterature(const LiteraturePtr& literature) {
  const QString current = idOf(current_), marked = idOf(marked_), cursor = idOf(cursor_);
  literature_ = literature;
  current_ = literature_->indexOf(current);
  marked_ = literature_->indexOf(marked);
  cursor_ = literature_->indexOf(cursor);
  hovered_ = hoveredLink_ = -1;
  arrange();
}

void LiteratureMap::setCurrent(const QString& id) {
  const int before = current_;
  current_ = cursor_ = literature_->indexOf(id);
  if (marked_ == current_) setMarked({});
  if (current_ != before) bringIntoSight(id);
  viewport()->update();
}

void LiteratureMap::setMarked(const QString& id) {
  const int now = literature_->indexOf(id);
  if (now == marked_) return;
  marked_ = now;
  viewport()->update();
  emit markedChanged();
}

void LiteratureMap::setQuery(const QString& text) {
  query_ = ModelQuery(text);
  viewport()->update();
}

double LiteratureMap::widthOf(const QString& text) const { return QFontMetricsF(font()).horizontalAdvance(text); }
QPointF LiteratureMap::scrolled() const {
  return {static_cast<double>(horizontalScrollBar()->value()), static_cast<double>(verticalScrollBar()->value())};
}

void LiteratureMap::arrange() {
  layout_ = layOut(*literature_, viewport()->size(), zoom_, [this](const QString& text) { return widthOf(text); });
  const QSize over = (layout_.size - QSizeF(viewport()->size())).toSize().expandedTo(QSize(0, 0));
  horizontalScrollBar()->setRange(0, over.width());
  verticalScrollBar()->setRange(0, over.height());
  horizontalScrollBar()->setPageStep(viewport()->width());
  verticalScrollBar()->setPageStep(viewport()->height());
  horizontalScrollBar()->setSingleStep(24);
  verticalScrollBar()->setSingleStep(24);
  viewport()->update();
}

void LiteratureMap::setZoom(double zoom, std::optional<QPointF> around) {
  const double whole = zoomThatFits(*literature_, viewport()->size(), [this](const QString& text) { return widthOf(text); });
  zoom = std::clamp(zoom, std::clamp(whole, 1e-3, leastMapZoom), mostMapZoom);
  if (zoom == zoom_) return;
  const QPointF at = around.value_or(QPointF(viewport()->width() / 2.0, viewport()->height() / 2.0));
  const QPointF before = at + scrolled();
  const MapLayout former = layout_;
  zoom_ = zoom;
  arrange();
  const bool chart = layout_.shape == MapLayout::Shape::chart;
  if (chart) horizontalScrollBar()->setValue(qRound(before.x() * layout_.column / std::max(1.0, former.column) - at.x()));
  verticalScrollBar()->setValue(qRound(layout_.axis + (before.y() - former.axis) * layout_.line / std::max(0.1, former.line) - at.y()));
}

void LiteratureMap::fit() {
  setZoom(zoomThatFits(*literature_, viewport()->size(), [this](const QString& text) { return widthOf(text); }));
  horizontalScrollBar()->setValue(0);
  verticalScrollBar()->setValue(0);
}

void LiteratureMap::bringIntoSight(const QString& id) {
  const int model = literature_->indexOf(id);
  if (model < 0 || layout_.dots.size() != literature_->models.size()) return;
  const QPointF dot = layout_.dots[static_cast<std::size_t>(model)];
  const auto bring = [](QScrollBar* bar, double from, double to, double top, int room) {
    // In the middle, where it is not in sight already.
    if (from < bar->value() + top || to > bar->value() + room) bar->setValue(qRound((from + to - room) / 2.0));
  };
  if (layout_.shape == MapLayout::Shape::chart) bring(horizontalScrollBar(), dot.x() - 16, dot.x() + 120, 0.0, viewport()->width());
  bring(verticalScrollBar(), dot.y() - 16, dot.y() + 16, layout_.axis, viewport()->height());
}

QPoint LiteratureMap::placeOf(const QString& id) const {
  const int model = literature_->indexOf(id);
  return model < 0 ? QPoint() : (layout_.dots[static_cast<std::size_t>(model)] - scrolled()).toPoint();
}

QPoint LiteratureMap::placeOf(const Literature::Link& link) const {
  const QPainterPath path = pathOf(layout_, link);
  const auto at = [&](double share) { return (path.pointAtPercent(share) - scrolled()).toPoint(); };
  for (const double share : {0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8})
    if (modelAt(at(share)) < 0) return at(share);
  return at(0.5);
}

int LiteratureMap::modelAt(QPointF where) const {
  if (where.y() < layout_.axis) return -1;
  for (const Name& name : drawn_)
    if (name.where.contains(where)) return literature_->indexOf(name.id);
  int best = -1;
  double nearest = std::min(mapReach, std::max(6.0, layout_.line * 0.6));
  for (std::size_t i = 0; i < layout_.dots.size(); ++i) {
    const QPointF off = layout_.dots[i] - scrolled() - where;
    if (const double distance = std::hypot(off.x(), off.y()); distance < nearest) {
      nearest = distance;
      best = static_cast<int>(i);
    }
  }
  return best;
}

int LiteratureMap::linkAt(QPointF where) const {
  if (where.y() < layout_.axis) return -1;
  const QPointF at = where + scrolled();
  const QRectF near(at - QPointF(4, 4), QSizeF(8, 8));
  for (std::size_t i = 0; i < literature_->links.size(); ++i) {
    const QPainterPath path = pathOf(layout_, literature_->links[i]);
    if (!path.controlPointRect().adjusted(-4, -4, 4, 4).contains(at)) continue;
    QPainterPathStroker wide;
    wide.setWidth(8.0);
    if (wide.createStroke(path).contains(at)) return static_cast<int>(i);
  }
  return -1;
}

void LiteratureMap::hover(QPointF where, QPoint global) {
  const int model = modelAt(where), link = model < 0 ? linkAt(where) : -1;
  if (model == hovered_ && link == hoveredLink_) return;
  hovered_ = model;
  hoveredLink_ = link;
  viewport()->setCursor(model >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
  tell(model >= 0  ? tellOf(*literature_, model, palette())
       : link >= 0 ? tellOf(*literature_, literature_->links[static_cast<std::size_t>(link)])
                   : QString(),
       global);
  viewport()->update();
}

void LiteratureMap::tell(const QString& text, QPoint global) {
  told_ = text;
  if (text.isEmpty())
    QToolTip::hideText();
  else
    QToolTip::showText(global, htmlTip(text), viewport(), {}, 60'000);
}

void LiteratureMap::toggleMark(int model) {
  if (model < 0) return;
  setMarked(model == marked_ || model == current_ ? QString() : idOf(model));
}

void LiteratureMap::moveCursor(int key) {
  if (layout_.dots.empty()) return;
  const int count = static_cast<int>(layout_.dots.size());
  int next = cursor_;
  if (cursor_ < 0 || key == Qt::Key_Home) {
    next = 0;
  } else if (key == Qt::Key_End) {
    next = count - 1;
  } else if (layout_.shape == MapLayout::Shape::list && (key == Qt::Key_Up || key == Qt::Key_Down)) {
    next = std::clamp(cursor_ + (key == Qt::Key_Up ? -1 : 1), 0, count - 1);
  } else if (layout_.shape == MapLayout::Shape::list) {
    // Along a link: to its predecessor, or to its first successor.
    for (const Literature::Link& link : literature_->links)
      if ((key == Qt::Key_Left ? link.child : link.parent) == cursor_ && (next == cursor_ || link.child < next))
        next = key == Qt::Key_Left ? link.parent : link.child;
  } else {
    // The nearest in that direction; distance across counts more.
    const QPointF from = layout_.dots[static_cast<std::size_t>(cursor_)];
    double nearest = 1e300;
    for (int i = 0; i < count; ++i) {
      const QPointF off = layout_.dots[static_cast<std::size_t>(i)] - from;
      const double along = key == Qt::Key_Left ? -off.x() : key == Qt::Key_Right ? off.x() : key == Qt::Key_Up ? -off.y() : off.y();
      const double aside = std::abs(key == Qt::Key_Left || key == Qt::Key_Right ? off.y() : off.x());
      if (along > 0.5 && along + 2.5 * aside < nearest) {
        nearest = along + 2.5 * aside;
        next = i;
      }
    }
  }
  cursor_ = next;
  bringIntoSight(idOf(cursor_));
  hovered_ = hoveredLink_ = -1;
  const QPoint at = placeOf(idOf(cursor_));
  tell(tellOf(*literature_, cursor_, palette()), viewport()->mapToGlobal(at + QPoint(0, 8)));
  viewport()->update();
}

bool LiteratureMap::event(QEvent* event) {
  // The arrows and Space mean something here, so they are not the time's.
  if (event->type() == QEvent::ShortcutOverride) {
    const auto* key = static_cast<QKeyEvent*>(event);
    const bool ours = key->modifiers() == Qt::NoModifier || key->modifiers() == Qt::KeypadModifier;
    for (const int one : {Qt::Key_Left, Qt::Key_Right, Qt::Key_Up, Qt::Key_Down, Qt::Key_Space, Qt::Key_Home, Qt::Key_End, Qt::Key_0})
      if (ours && key->key() == one) {
        event->accept();
        return true;
      }
  }
  return QAbstractScrollArea::event(event);
}

bool LiteratureMap::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::Leave && (hovered_ >= 0 || hoveredLink_ >= 0)) {
    hovered_ = hoveredLink_ = -1;
    told_.clear();
    viewport()->update();
  }
  if (event->type() == QEvent::ToolTip) return true;  // told as the mouse comes
  return QAbstractScrollArea::viewportEvent(event);
}

void LiteratureMap::resizeEvent(QResizeEvent*) {
  arrange();
  bringIntoSight(idOf(current_));
}

void LiteratureMap::scrollContentsBy(int, int) {
  hovered_ = hoveredLink_ = -1;
  viewport()->update();
}

void LiteratureMap::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  pressed_ = event->position().toPoint();
  scrolledFrom_ = scrolled().toPoint();
  panning_ = false;
}

void LiteratureMap::mouseMoveEvent(QMouseEvent* event) {
  if (pressed_ && (event->buttons() & Qt::LeftButton)) {
    const QPoint off = event->position().toPoint() - *pressed_;
    if (panning_ || off.manhattanLength() >= QApplication::startDragDistance()) {
      panning_ = true;
      viewport()->setCursor(Qt::ClosedHandCursor);
      horizontalScrollBar()->setValue(scrolledFrom_.x() - off.x());
      verticalScrollBar()->setValue(scrolledFrom_.y() - off.y());
    }
    return;
  }
  hover(event->position(), event->globalPosition().toPoint());
}

void LiteratureMap::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !pressed_) return;
  pressed_.reset();
  if (std::exchange(panning_, false)) {
    viewport()->setCursor(Qt::ArrowCursor);
    return;
  }
  const int model = modelAt(event->position());
  if (model < 0) return;
  cursor_ = model;
  if (event->modifiers() & (Qt::ControlModifier | Qt::ShiftModifier))
    toggleMark(model);
  else
    emit picked(idOf(model));
}

void LiteratureMap::wheelEvent(QWheelEvent* event) {
  if (!(event->modifiers() & Qt::ControlModifier)) return QAbstractScrollArea::wheelEvent(event);
  setZoom(zoom_ * std::pow(1.2, event->angleDelta().y() / 120.0), event->position());
  event->accept();
}

void LiteratureMap::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right:
    case Qt::Key_Up:
    case Qt::Key_Down:
    case Qt::Key_Home:
    case Qt::Key_End: return moveCursor(event->key());
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (cursor_ >= 0) emit picked(idOf(cursor_));
      return;
    case Qt::Key_Space: return toggleMark(cursor_);
    case Qt::Key_Plus:
    case Qt::Key_Equal: return setZoom(zoom_ * 1.2);
    case Qt::Key_Minus: return setZoom(zoom_ / 1.2);
    case Qt::Key_0: return fit();
    default: QAbstractScrollArea::keyPressEvent(event);
  }
}

void LiteratureMap::focusInEvent(QFocusEvent* event) {
  if (cursor_ < 0) cursor_ = current_;
  QAbstractScrollArea::focusInEvent(event);
  viewport()->update();
}

void LiteratureMap::focusOutEvent(QFocusEvent* event) {
  QAbstractScrollArea::focusOutEvent(event);
  viewport()->update();
}

void LiteratureMap::contextMenuEvent(QContextMenuEvent* event) {
  int model = event->reason() == QContextMenuEvent::Keyboard ? cursor_ : modelAt(event->pos());
  QMenu menu;
  if (model >= 0) {
    const QString title = literature_->models[static_cast<std::size_t>(model)].title;
    menu.addAction(tr("Load %1").arg(buttonText(title)), this, [this, model] { emit picked(idOf(model)); });
    if (model == marked_)
      menu.addAction(tr("No comparison"), this, [this] { setMarked({}); });
    else if (current_ >= 0 && model != current_)
      menu.addAction(tr("Compare with %1").arg(buttonText(literature_->models[static_cast<std::size_t>(current_)].title)), this,
                     [this, model] { setMarked(idOf(model)); });
    menu.addSeparator();
  }
  menu.addAction(tr("Show all"), this, &LiteratureMap::fit);
  menu.addAction(tr("Readable size"), this, [this] { setZoom(1.0); });
  menu.exec(event->globalPos());
}

}  // namespace reclab
