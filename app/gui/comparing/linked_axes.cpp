// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/comparing/linked_axes.h"

#include <QMouseEvent>
#include <algorithm>
#include <cmath>
#include <utility>

namespace reclab {
namespace {

constexpr QCPAxis::AxisType sides[] = {QCPAxis::atBottom, QCPAxis::atLeft};

/// The range that the panel wants, or else the present one.
QCPRange wantedBy(const QCPAxisRect* rect, int side) {
  const QRectF plane = rect->property("wanted").toRectF();
  if (plane.isEmpty()) return rect->axis(sides[side])->range();
  return side == 0 ? QCPRange(plane.left(), plane.right()) : QCPRange(plane.top(), plane.bottom());
}

}  // namespace

LinkedAxes::LinkedAxes(const std::vector<Panel*>& panels, QObject* parent) : QObject(parent) {
  soon_.setSingleShot(true);
  soon_.setInterval(0);
  connect(&soon_, &QTimer::timeout, this, [this] {
    for (auto& group : free_) joinFree(group);
    hand_ = nullptr;
  });
  for (const Panel* panel : panels) {
    std::size_t axes = 0, rects = 0;
    for (Plot* plot : panel->findChildren<Plot*>()) {
      plots_.emplace_back(plot);
      plot->installEventFilter(this);
      QSet<QCPAxisRect*> own;
      for (ValueAxis* axis : plot->findChildren<ValueAxis*>(QString(), Qt::FindDirectChildrenOnly)) {
        if (axis->axis() == nullptr) continue;
        own.insert(axis->axis()->axisRect());
        if (values_.size() <= axes) values_.emplace_back();
        values_[axes++].emplace_back(axis);
      }
      for (QCPAxisRect* rect : plot->axisRects()) {
        // Where both axes can be zoomed, neither is of time.
        if (own.contains(rect) || rect->rangeZoom() != (Qt::Horizontal | Qt::Vertical)) continue;
        if (free_.size() <= rects) free_.emplace_back();
        Free one;
        one.plot = plot;
        one.rect = rect;
        if (panel->emptyReason().isEmpty())
          for (const int side : {0, 1}) one.wanted[side] = wantedBy(rect, side);
        free_[rects++].push_back(one);
      }
    }
  }
  for (std::size_t g = 0; g < values_.size(); ++g)
    for (const auto& axis : values_[g]) {
      connect(axis, &ValueAxis::wantedChanged, this, [this, g] { join(values_[g]); });
      connect(axis, &ValueAxis::movedByHand, this, [this, g, axis = axis.data()] { follow(values_[g], axis); });
    }
  for (std::size_t g = 0; g < free_.size(); ++g)
    for (std::size_t i = 0; i < free_[g].size(); ++i)
      for (const int side : {0, 1})
        connect(free_[g][i].rect->axis(sides[side]), qOverload<const QCPRange&>(&QCPAxis::rangeChanged), this,
                [this, g, i, side](const QCPRange& range) {
                  Free& one = free_[g][i];
                  if (busy_ || near(range, one.given[side])) return;
                  const QCPRange wanted = hand_ == one.plot ? range : wantedBy(one.rect, side);
                  if (std::exchange(one.wanted[side], wanted) != wanted) soon_.start();
                });
  for (const Group& group : values_) join(group);
  soon_.start();
}

/// Nothing is held or zoomed: all get the union of the wanted ranges.
void LinkedAxes::join(const Group& group) {
  if (busy_) return;
  QCPRange all;
  bool any = false;
  for (const auto& one : group) {
    if (!one || !one->fitted() || !one->axis()) continue;
    if (one->locked()) return;
    if (std::exchange(any, true))
      all.expand(one->wanted());
    else
      all = one->wanted();
  }
  if (!any) return;
  busy_ = true;
  for (const auto& one : group)
    if (one && one->fitted() && one->axis() && one->axis()->range() != all) {
      one->axis()->setRange(all);
      static_cast<Plot*>(one->axis()->parentPlot())->redraw();
    }
  busy_ = false;
}

void LinkedAxes::follow(const Group& group, const ValueAxis* hand) {
  if (busy_ || hand->axis() == nullptr) return;
  busy_ = true;
  for (const auto& one : group) {
    if (!one || one == hand || !one->axis()) continue;
    one->setLocked(hand->locked());
    one->axis()->setRange(hand->axis()->range());
    static_cast<Plot*>(one->axis()->parentPlot())->redraw();
  }
  busy_ = false;
  if (!hand->locked()) join(group);
}

bool LinkedAxes::near(const QCPRange& a, const QCPRange& b) {
  const double slack = 0.02 * std::max(a.size(), b.size());
  return std::abs(a.lower - b.lower) <= slack && std::abs(a.upper - b.upper) <= slack;
}

void LinkedAxes::joinFree(std::vector<Free>& group) {
  const auto by_hand = std::ranges::find_if(group, [this](const Free& one) { return hand_ && one.plot == hand_; });
  if (hand_ && by_hand == group.end()) return;
  busy_ = true;
  for (const int side : {0, 1}) {
    QCPRange all;
    bool any = false;
    for (const Free& one : group) {
      if (!one.rect || !one.rect->realVisibility() || !one.wanted[side]) continue;
      if (hand_ ? one.plot == hand_ : !any) {
        all = *one.wanted[side];
        any = true;
      } else if (!hand_) {
        all.expand(*one.wanted[side]);
      }
    }
    if (!any) continue;
    for (Free& one : group)
      if (one.given[side] = all; one.rect && one.plot && one.rect->axis(sides[side])->range() != all) {
        one.rect->axis(sides[side])->setRange(all);
        one.plot->redraw();
      }
  }
  busy_ = false;
}

bool LinkedAxes::eventFilter(QObject* of, QEvent* event) {
  const bool moves = event->type() == QEvent::MouseMove && static_cast<QMouseEvent*>(event)->buttons() != Qt::NoButton;
  if (moves || event->type() == QEvent::Wheel || event->type() == QEvent::MouseButtonDblClick) {
    hand_ = static_cast<Plot*>(of);
    soon_.start();
  }
  return QObject::eventFilter(of, event);
}

}  // namespace reclab
