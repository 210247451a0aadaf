// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/window/arrangement.h"

#include <QComboBox>
#include <QLayout>
#include <QScreen>
#include <QSettings>
#include <QTabBar>
#include <algorithm>

#include "gui/docks/flat_dock.h"
#include "gui/docks/panel_area.h"
#include "gui/frame/lab.h"
#include "gui/frame/window_frame.h"
#include "gui/window/run_bar.h"

namespace reclab {
namespace {

constexpr int layoutVersion = 1;

/// Not behind another one, whether or not the panels are in sight at all. Tab bars that Qt keeps for later are hidden, with their old tabs.
bool isInFront(const QMainWindow* of, const QDockWidget* dock) {
  for (const QTabBar* tabs : of->findChildren<QTabBar*>(Qt::FindDirectChildrenOnly))
    for (int i = 0; i < tabs->count() && !tabs->isHidden(); ++i)
      if (tabs->tabData(i).value<quintptr>() == reinterpret_cast<quintptr>(dock)) return tabs->currentIndex() == i;
  return true;
}

}  // namespace

Arrangement::Arrangement(WindowFrame* frame, RunBar* bar) : QObject(frame), frame_(frame), window_(frame->window()), bar_(bar) {
  connect(bar_->layouts(), &QComboBox::activated, this, &Arrangement::pick);
  connect(frame_, &WindowFrame::docksMoved, this, [this] {
    if (!arranging_) own_ = true;
  });
  frame_->lab()->setArranging([this] { return value(); }, [this](const Arranged& value) { setValue(value); });
  soon_.setSingleShot(true);
  soon_.setInterval(0);
  connect(&soon_, &QTimer::timeout, this, [this] {
    if (!own_ && isNarrow() != narrow_ && !frame_->lab()->holdsArrangement()) arrangeSides();
  });
}

void Arrangement::fitWindow() {
  tellRoom();
  if (!own_ && isNarrow() != narrow_) soon_.start();
}

/// The calm bar has room for its words in any window.
void Arrangement::tellRoom() { emit frame_->roomChanged(narrow_ && !calm_); }

bool Arrangement::isNarrow() const { return window_->width() < 1100; }

void Arrangement::keepOnScreen() {
  if (window_->isMaximized() || window_->isFullScreen()) return;
  const QRect room = window_->screen()->availableGeometry(), frame = window_->frameGeometry();
  if (room.contains(frame)) return;
  const QSize border = frame.size() - window_->size();
  window_->resize(window_->size().boundedTo(room.size() - border));
  window_->move(std::clamp(frame.left(), room.left(), std::max(room.left(), room.right() + 1 - window_->width() - border.width())),
                std::clamp(frame.top(), room.top(), std::max(room.top(), room.bottom() + 1 - window_->height() - border.height())));
}

void Arrangement::arrangeSides() {
  std::vector<FlatDock*> docks = frame_->docks();
  const auto guests = std::ranges::partition(docks, [](const FlatDock* dock) { return !dock->property("guest").toBool(); });
  const bool visited = std::ranges::any_of(guests, [](const FlatDock* dock) { return !dock->isHidden(); });
  docks.erase(guests.begin(), docks.end());
  const auto apart = std::ranges::stable_partition(docks, [](const FlatDock* dock) { return !dock->property("apart").toBool(); });
  const std::vector<FlatDock*> tabs(apart.begin(), apart.end());  // shown when they are asked for, behind the Inspector
  docks.erase(apart.begin(), docks.end());
  arranging_ = true;
  own_ = false;
  narrow_ = isNarrow();
  for (FlatDock* dock : docks) {
    dock->setFloating(false);
    window_->removeDockWidget(dock);
  }
  bar_->fit(calm_, narrow_);
  tellRoom();
  for (std::size_t i = 0; i < docks.size(); ++i) {
    window_->addDockWidget((i < 2 && !calm_) || narrow_ ? Qt::LeftDockWidgetArea : Qt::RightDockWidgetArea, docks[i]);
    if (narrow_ && i > 0) window_->tabifyDockWidget(docks[0], docks[i]);  // while it is hidden: all four in a column make the window higher
    docks[i]->setVisible((!calm_ || i == 0 || i == 2) && !(visited && i < 2));
  }
  if (narrow_) {  // one column of tabs beside the panels
    docks[calm_ ? 2 : 0]->raise();
    window_->resizeDocks({docks[0]}, {280}, Qt::Horizontal);
  } else if (calm_) {
    window_->resizeDocks({docks[2]}, {300}, Qt::Horizontal);
    window_->resizeDocks({docks[0], docks[2]}, {90, 800}, Qt::Vertical);
  } else {
    const int side = qBound(230, window_->width() / 6, 300);
    window_->resizeDocks({docks[0], docks[2]}, {side, side + 20}, Qt::Horizontal);
    window_->resizeDocks({docks[0], docks[1], docks[2], docks[3]}, {500, 340, 430, 440}, Qt::Vertical);
  }
  for (FlatDock* dock : tabs) {
    dock->setFloating(false);
    window_->tabifyDockWidget(docks[2], dock);
    if (!dock->isHidden()) dock->raise();
  }
  window_->layout()->activate();
  arranging_ = false;
}

void Arrangement::begin(int index) {
  const PanelLayout& layout = frame_->area()->layouts()[static_cast<std::size_t>(index)];
  bar_->layouts()->setCurrentIndex(index);
  setCalm(layout.calm);
  frame_->area()->arrange(layout);
}

void Arrangement::reset() { begin(0); }

void Arrangement::setCalm(bool calm) {
  calm_ = calm;
  emit frame_->calmChanged(calm_);
  arrangeSides();
}

void Arrangement::pick(int index) {
  const PanelLayout& layout = frame_->area()->layouts()[static_cast<std::size_t>(index)];
  bar_->layouts()->setCurrentIndex(index);
  if (layout.calm || calm_) setCalm(layout.calm);
  frame_->area()->arrange(layout);
}

/// The visible arrangement: the docks that are open, in front and floating, their sides, and the layout.
QString Arrangement::shape() const {
  QStringList parts{QString::number(bar_->layouts()->currentIndex()), calm_ ? "calm" : "", own_ ? "own" : ""};
  const auto add = [&](const QMainWindow* of, const QDockWidget* dock) {
    if (dock->isHidden()) return;
    QStringList behind;
    for (const QDockWidget* one : of->tabifiedDockWidgets(const_cast<QDockWidget*>(dock))) behind << one->objectName();
    parts << QStringList{dock->objectName(),
                         dock->isFloating() ? "floats" : QString::number(of->dockWidgetArea(const_cast<QDockWidget*>(dock))),
                         behind.isEmpty() || isInFront(of, dock) ? "front" : "", behind.join('+')}
                 .join(':');
  };
  for (const FlatDock* dock : frame_->docks()) add(window_, dock);
  for (const PanelDock* dock : frame_->area()->docks()) add(frame_->area(), dock);
  return parts.join(' ');
}

Arranged Arrangement::value() const {
  const PanelArea* area = frame_->area();
  const PanelArea::Places places = area->places(layoutVersion);
  return {shape(),
          bar_->layouts()->currentIndex(),
          calm_,
          own_      ? "own"
          : narrow_ ? "narrow"
                    : "wide",
          area->isOwn(),
          area->fit(),
          window_->saveGeometry(),
          window_->saveState(layoutVersion),
          places.state,
          places.without};
}

bool Arrangement::setValue(const Arranged& value) {
  arranging_ = true;
  calm_ = value.calm;
  own_ = value.sides == u"own";
  narrow_ = value.sides == u"narrow";
  emit frame_->calmChanged(calm_);
  bar_->fit(calm_, narrow_);
  tellRoom();
  bar_->layouts()->setCurrentIndex(value.layout);
  const bool whole =
      window_->restoreState(value.docks, layoutVersion) && frame_->area()->restorePlaces({value.panels, value.without}, layoutVersion);
  emit frame_->restored();
  frame_->area()->takeOver(frame_->area()->layouts()[static_cast<std::size_t>(value.layout)], value.fit, value.own);
  window_->layout()->activate();
  arranging_ = false;
  return whole;
}

void Arrangement::restore(const QString& layout, const std::optional<Arranged>& kept) {
  // Where the note is still there the window ended while it restored, for Qt does not survive every state; it is not tried again.
  QSettings settings;
  if (settings.contains("window/restoring")) {
    settings.remove("window");
    reset();
    return frame_->say(tr("The layout that was kept could not be restored; this is the standard one."));
  }
  const auto calm = std::ranges::find_if(frame_->area()->layouts(), &PanelLayout::calm);
  const int asked = bar_->layouts()->findText(layout, Qt::MatchFixedString);
  if (!kept) return begin(asked >= 0 ? asked : static_cast<int>(calm - frame_->area()->layouts().begin()));
  settings.setValue("window/restoring", true);
  settings.sync();
  window_->restoreGeometry(kept->window);
  if (!setValue(*kept) || frame_->area()->isEmpty()) return reset();
  if (asked >= 0) return pick(asked);
  if (!own_ && kept->sides != (isNarrow() ? "narrow" : "wide")) arrangeSides();
}

}  // namespace reclab
