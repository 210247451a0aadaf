// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/window/keys.h"

#include <QAbstractButton>
#include <QAbstractSpinBox>
#include <QApplication>
#include <QComboBox>
#include <QKeyEvent>
#include <QLineEdit>
#include <QPointer>
#include <QTabBar>

#include "gui/docks/panel_area.h"
#include "gui/frame/window_frame.h"
#include "gui/views/scrubber.h"
#include "plot/plot.h"
#include "spoken.h"

namespace reclab {
namespace {

/// The line edit of a widget: a field, or that of a spin box; null for any other widget.
QLineEdit* lineOf(QObject* widget) {
  if (auto* line = qobject_cast<QLineEdit*>(widget)) return line;
  const auto* spin = qobject_cast<QAbstractSpinBox*>(widget);
  return spin != nullptr ? spin->findChild<QLineEdit*>() : nullptr;
}

enum class Owner { widget, window, qt };

/// Space and the arrows are the time's, undo and export the window's, unless the focused widget uses them.
Owner ownerOf(QObject* watched, const QKeyEvent& key) {
  QLineEdit* line = lineOf(watched);
  const Qt::KeyboardModifiers modifiers = key.modifiers() & ~Qt::KeypadModifier;
  if (modifiers == Qt::NoModifier) {
    // A button has the focus only when it was reached by Tab, and then Space is to press it.
    if (key.key() == Qt::Key_Space)
      return line != nullptr || qobject_cast<QAbstractButton*>(watched) != nullptr ? Owner::widget : Owner::qt;
    if (key.key() == Qt::Key_Left || key.key() == Qt::Key_Right)
      return line != nullptr || watched->inherits("QAbstractSlider") || qobject_cast<QTabBar*>(watched) != nullptr ? Owner::widget
                                                                                                                   : Owner::qt;
    return Owner::qt;
  }
  if (line == nullptr || !(modifiers & Qt::ControlModifier)) return Owner::qt;
  // In a field undo takes back typing; once it is entered, it is a change of the window's.
  if (key.key() == Qt::Key_Z && modifiers == Qt::ControlModifier)
    return line->isModified() && line->isUndoAvailable() ? Owner::widget : Owner::window;
  if (key.key() == Qt::Key_Y || key.key() == Qt::Key_Z)
    return line->isModified() && line->isRedoAvailable() ? Owner::widget : Owner::window;
  return key.key() == Qt::Key_E || key.key() == Qt::Key_K ? Owner::window : Owner::qt;
}

/// The first widget of a part that takes the keyboard: its plot, if it has one on the screen.
QWidget* firstOf(QWidget* part) {
  QWidget* found = nullptr;
  for (QWidget* one : part->findChildren<QWidget*>()) {
    if (!(one->focusPolicy() & Qt::TabFocus) || !one->isVisible() || !one->isEnabled()) continue;
    if (qobject_cast<Plot*>(one) != nullptr || qobject_cast<TimeStrip*>(one) != nullptr) return one;
    if (found == nullptr) found = one;
  }
  return found;
}

}  // namespace

Keys::Keys(WindowFrame* frame, Scrubber* scrubber) : frame_(frame), scrubber_(scrubber) { qApp->installEventFilter(this); }

bool Keys::eventFilter(QObject* watched, QEvent* event) {
  switch (event->type()) {
    case QEvent::KeyPress:
    case QEvent::MouseButtonPress:
    case QEvent::MouseMove:
    case QEvent::Wheel:
    case QEvent::Drop: frame_->session()->touched(); break;
    default: break;
  }
  switch (event->type()) {
    case QEvent::ShortcutOverride:
      if (frame_->window()->isActiveWindow()) {
        const Owner owner = ownerOf(watched, *static_cast<QKeyEvent*>(event));
        if (owner == Owner::qt) break;
        event->setAccepted(owner == Owner::widget);
        return true;
      }
      break;
    case QEvent::KeyPress:
      if (const int key = static_cast<QKeyEvent*>(event)->key(); key == Qt::Key_Return || key == Qt::Key_Enter)
        if (QLineEdit* line = lineOf(watched)) line->setModified(false);  // entered
      break;
    case QEvent::Show:
      // A picture alone says nothing to a screen reader.
      if (auto* button = qobject_cast<QAbstractButton*>(watched); button != nullptr && button->text().isEmpty())
        button->setAccessibleName(spokenName(button));
      break;
    case QEvent::Polish:
      // A click on a button leaves the keyboard where it was.
      if (auto* button = qobject_cast<QAbstractButton*>(watched);
          button != nullptr && button->focusPolicy() == Qt::StrongFocus && button->window() == frame_->window())
        button->setFocusPolicy(Qt::TabFocus);
      break;
    default: break;
  }
  return QObject::eventFilter(watched, event);
}

void Keys::toNextPart(bool back) {
  std::vector<QWidget*> parts{frame_->docks()[0], frame_->docks()[1]};
  parts.insert(parts.end(), frame_->area()->docks().begin(), frame_->area()->docks().end());
  parts.insert(parts.end(), {frame_->docks()[2], frame_->docks()[3], scrubber_});
  std::erase_if(parts, [](const QWidget* part) {
    return !part->isVisible() || part->visibleRegion().isEmpty() || firstOf(const_cast<QWidget*>(part)) == nullptr;
  });
  if (parts.empty()) return;
  const QWidget* now = frame_->window()->focusWidget();
  const auto here =
      std::find_if(parts.begin(), parts.end(), [&](const QWidget* part) { return now != nullptr && part->isAncestorOf(now); });
  const auto count = std::ssize(parts);
  const auto at = here == parts.end() ? (back ? 0 : count - 1) : here - parts.begin();
  firstOf(parts[static_cast<std::size_t>((at + (back ? count - 1 : 1)) % count)])
      ->setFocus(back ? Qt::BacktabFocusReason : Qt::TabFocusReason);
}

}  // namespace reclab
