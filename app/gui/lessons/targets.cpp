// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/targets.h"

#include <QAction>
#include <QMenuBar>
#include <QPushButton>
#include <QScrollArea>
#include <QToolButton>

#include "gui/docks/flat_dock.h"
#include "gui/docks/panel_area.h"
#include "gui/frame/window_frame.h"
#include "gui/session/sentences.h"
#include "gui/views/scrubber.h"
#include "spoken.h"

namespace reclab {

QWidget* targetOf(const WindowFrame* frame, const QString& name) {
  const QString place = name.section('/', 0, 0), what = name.section('/', 1);
  const QMainWindow* window = frame->window();
  const auto named = [&](const QWidget* in, const QString& object) { return in ? in->findChild<QWidget*>(object) : nullptr; };
  const auto dock = [&](const QString& id) -> FlatDock* {
    for (FlatDock* one : frame->docks())
      if (one->objectName() == "dock." + id) return one;
    return nullptr;
  };
  if (place == u"panel") return frame->area()->dock(what);
  if (place == u"dock") return dock(what);
  if (place == u"time") return window->findChild<TimeStrip*>();
  if (place == u"action") {
    const QAction* action = frame->action(what);
    if (action == nullptr) return nullptr;
    if (QWidget* button = WindowFrame::buttonOf(action); button && button->isVisible()) return button;
    return window->menuBar();  // it is in a menu
  }
  if (place == u"inspector") {
    const QWidget* inspector = dock("inspector");
    for (const QString& object : {"slider." + what, "setting." + what, what})
      if (QWidget* found = named(inspector, object)) return found;
  }
  if (place == u"sequence") {
    const QWidget* sequence = dock("sequence");
    for (const QString& object : {"parameter." + what, what == u"seed" ? QStringLiteral("taskSeed") : what})
      if (QWidget* found = named(sequence, object)) return found;
  }
  if (place == u"training") return named(window, "training." + what);
  return nullptr;
}

bool bringToSight(WindowFrame* frame, QWidget* target) {
  for (QWidget* one = target; one != nullptr; one = one->parentWidget()) {
    if (auto* panel = qobject_cast<PanelDock*>(one)) {
      if (!panel->inSight()) frame->area()->open(panel);
      break;
    }
    if (auto* dock = qobject_cast<FlatDock*>(one)) {
      dock->show();
      dock->raise();
    }
  }
  if (!target->isVisible())  // one of the settings that a calm layout leaves out
    for (const FlatDock* dock : frame->docks())
      if (auto* all = dock->isAncestorOf(target) ? dock->findChild<QPushButton*>("allSettings") : nullptr; all && all->isVisible())
        all->click();
  for (QWidget* one = target->parentWidget(); one != nullptr; one = one->parentWidget())
    if (auto* area = qobject_cast<QScrollArea*>(one)) area->ensureWidgetVisible(target, 8, 40);
  return target->isVisible();
}

QString nameOfTarget(const WindowFrame* frame, const QString& name, const QWidget* target) {
  if (name.startsWith(QLatin1String("action/")))
    if (const QAction* action = frame->action(name.section('/', 1))) {
      const bool inBar = WindowFrame::buttonOf(action) == target;
      const QString text = QString(action->text()).remove('&').remove(QString::fromUtf8("…"));
      return inBar ? text : QObject::tr("%1, in a menu").arg(text);
    }
  if (const auto* dock = qobject_cast<const QDockWidget*>(target)) return dock->windowTitle();
  if (name.startsWith(QLatin1String("inspector/")) && target->objectName().startsWith("setting."))
    return inWords(name.section('/', 1).toStdString());
  return spokenName(target);
}

QString wordsOfTarget(const QString& name) {
  const QString place = name.section('/', 0, 0), what = name.section('/', 1).replace('_', ' ');
  if (place == u"inspector") return QObject::tr("%1 in the Inspector").arg(what);
  if (place == u"sequence") return QObject::tr("%1 of the sequence").arg(what);
  if (place == u"training") return QObject::tr("%1 of the training").arg(what);
  if (place == u"panel") return QObject::tr("the panel %1").arg(what);
  if (place == u"dock") return QObject::tr("the part %1").arg(what);
  if (place == u"time") return QObject::tr("the time line");
  return QObject::tr("the action %1").arg(what);
}

}  // namespace reclab
