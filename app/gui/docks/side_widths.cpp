// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/docks/side_widths.h"

#include <QDockWidget>
#include <QEvent>

namespace reclab {

void SideWidths::add(QDockWidget* dock) {
  given_[dock] = 0;
  dock->installEventFilter(this);
}

bool SideWidths::eventFilter(QObject* of, QEvent* event) {
  if (event->type() != QEvent::Resize) return QObject::eventFilter(of, event);
  if (of == window_) {  // the docks have been laid out for it already
    laidOut_ = window_->width();
    giveBack();
  } else if (!giving_ && window_->width() == laidOut_) {
    auto* dock = static_cast<QDockWidget*>(of);
    if (!dock->isFloating()) given_[dock] = dock->width();
  }
  return QObject::eventFilter(of, event);
}

void SideWidths::giveBack() {
  QList<QDockWidget*> narrower;
  QList<int> widths;
  for (const auto& [dock, width] : given_)
    if (dock->isVisible() && !dock->isFloating() && dock->width() < width) {
      narrower << dock;
      widths << width;
    }
  if (narrower.isEmpty()) return;
  giving_ = true;
  window_->resizeDocks(narrower, widths, Qt::Horizontal);
  giving_ = false;
}

}  // namespace reclab
