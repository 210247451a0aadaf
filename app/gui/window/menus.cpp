// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/window/menus.h"

#include <QActionGroup>
#include <QApplication>
#include <QClipboard>
#include <QMenuBar>
#include <QSettings>
#include <QUndoStack>

#include "experiment/command/command.h"
#include "gui/dialogs/complexity_dialog.h"
#include "gui/dialogs/device_dialog.h"
#include "gui/dialogs/distil_dialog.h"
#include "gui/dialogs/help_dialogs.h"
#include "gui/docks/panel_area.h"
#include "gui/frame/window_frame.h"
#include "gui/look/look.h"
#include "gui/session/requests.h"
#include "gui/time/time_link.h"
#include "gui/views/first_hint.h"
#include "gui/views/scrubber.h"
#include "gui/window/arrangement.h"
#include "gui/window/keys.h"

namespace reclab {
namespace {

void copyCommand(WindowFrame* frame) {
  const SessionController* session = frame->session();
  const TracePtr& trace = session->trace();
  if (!trace || trace->info.command.empty()) return frame->say(QObject::tr("There is no run yet whose command could be copied."));
  // With all kinds of an export, not only those of the visible panels.
  const Setup shown = session->shownSetup();
  const RunRequest request = requestFor(shown, session->library()->presets.find(shown.preset), RecordingOptions{});
  QApplication::clipboard()->setText(QString::fromStdString(command_of(request, trace->info.device)));
  frame->say(QObject::tr("The command that repeats this run is in the clipboard."));
}

}  // namespace

void addEditMenu(WindowFrame* frame) {
  QMenu* edit = frame->window()->menuBar()->addMenu(QObject::tr("&Edit"));
  QAction* undo = frame->undo()->createUndoAction(frame->window(), QObject::tr("Undo"));
  QAction* redo = frame->undo()->createRedoAction(frame->window(), QObject::tr("Redo"));
  undo->setObjectName("action.undo");
  redo->setObjectName("action.redo");
  WindowFrame::setWhyNot(undo, QObject::tr("Nothing has been changed yet."));
  WindowFrame::setWhyNot(redo, QObject::tr("Nothing has been undone."));
  undo->setIcon(icon("undo"));
  redo->setIcon(icon("redo"));
  undo->setShortcut(QKeySequence(QObject::tr("Ctrl+Z")));
  redo->setShortcuts({QKeySequence(QObject::tr("Ctrl+Y")), QKeySequence(QObject::tr("Ctrl+Shift+Z"))});
  edit->addActions({undo, redo});
  edit->addSeparator();
  edit->addActions(frame->offered(ActionPlace::edit));
}

void addViewMenu(WindowFrame* frame, Arrangement* arrangement, Keys* keys) {
  QMenu* view = frame->window()->menuBar()->addMenu(QObject::tr("&View"));
  QMenu* theme = view->addMenu(icon("theme"), QObject::tr("Theme"));
  auto* themes = new QActionGroup(frame->window());
  for (const auto& [text, choice] : {std::pair{QObject::tr("As the system"), ThemeChoice::system},
                                     {QObject::tr("Light"), ThemeChoice::light},
                                     {QObject::tr("Dark"), ThemeChoice::dark}}) {
    QAction* one = frame->add("theme." + toString(choice), {}, text, {}, [frame, choice = choice] {
      frame->look()->apply(choice);
      QSettings().setValue("theme", toString(choice));
    });
    one->setCheckable(true);
    one->setChecked(frame->look()->choice() == choice);
    themes->addAction(one);
    theme->addAction(one);
  }
  QMenu* shown = view->addMenu(icon("layout"), QObject::tr("Panels"));
  for (const PanelDock* dock : frame->area()->docks()) shown->addAction(dock->toggleViewAction());
  shown->addSeparator();
  for (const FlatDock* dock : frame->docks()) shown->addAction(dock->toggleViewAction());
  view->addActions(frame->offered(ActionPlace::view));
  view->addAction(frame->add("complexities", "table", QObject::tr("Tables of complexities…"), {}, [frame] {
    if (!frame->session()->library()) return;
    auto* dialog = new ComplexityDialog(frame->session()->library(), *frame->chooser(), frame->window(), &frame->session()->scheduler());
    QObject::connect(dialog, &ComplexityDialog::picked, frame, &WindowFrame::pickModel);
    dialog->open();
  }));
  frame->action("complexities")
      ->setToolTip(QObject::tr("How time and memory grow with the length: what the survey states, and what is measured"));
  view->addAction(frame->add("resetLayout", "reset", QObject::tr("Reset layout"), {}, [arrangement] { arrangement->reset(); }));
  view->addSeparator();
  view->addAction(frame->add("nextPart", {}, QObject::tr("Keyboard to the next part"), {}, [keys] { keys->toNextPart(false); }));
  view->addAction(frame->add("lastPart", {}, QObject::tr("Keyboard to the part before"), {}, [keys] { keys->toNextPart(true); }));
  frame->action("nextPart")->setShortcuts({QKeySequence(Qt::Key_F6), QKeySequence(Qt::CTRL | Qt::Key_Tab)});
  frame->action("lastPart")->setShortcuts({QKeySequence(Qt::SHIFT | Qt::Key_F6), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Tab)});
  view->addAction(frame->add("allTime", {}, QObject::tr("Show all of the time"), QKeySequence(QObject::tr("Ctrl+0")),
                             [frame] { frame->time()->resetRange(); }));
  view->addAction(frame->add("zoomBack", {}, QObject::tr("Back to the zoom before"), QKeySequence(QObject::tr("Alt+Left")),
                             [frame] { frame->time()->zoomBack(); }));
}

void addRunMenu(WindowFrame* frame, const Scrubber* scrubber) {
  QMenu* run = frame->window()->menuBar()->addMenu(QObject::tr("&Run"));
  run->addActions({frame->action("run"), frame->action("stop")});
  run->addSeparator();
  run->addActions(frame->offered(ActionPlace::runTrain));
  run->addSeparator();
  run->addActions({scrubber->playAction(), scrubber->backAction(), scrubber->forwardAction()});
  run->addSeparator();
  run->addActions(frame->offered(ActionPlace::runCompare));
  run->addAction(frame->add("distill", {}, QObject::tr("Distill its long filters…"), {}, [frame] {
    if (!frame->session()->library()) return;
    auto* dialog = new DistilDialog(frame->session()->library(), frame->session()->setup(), *frame->chooser(), frame->window(),
                                    &frame->session()->scheduler());
    QObject::connect(dialog, &DistilDialog::opened, frame, [frame](const Setup& distilled, const QString& title) {
      frame->change(distilled, QObject::tr("model %1").arg(title));
    });
    dialog->open();
  }));
  frame->action("distill")->setToolTip(QObject::tr("The filters that the model convolves with, as a few modes that a recurrence runs"));
  run->addAction(frame->add("copyCommand", "copy", QObject::tr("Copy the command"), {}, [frame] { copyCommand(frame); }));
  frame->action("copyCommand")->setToolTip(QObject::tr("The line for a terminal that repeats this run, with all that an export has"));
}

void addHelpMenu(WindowFrame* frame) {
  QMenu* help = frame->window()->menuBar()->addMenu(QObject::tr("&Help"));
  help->addAction(frame->add("guide", {}, QObject::tr("Guide"), {}, [frame] { showGuide(frame->window()); }));
  help->addAction(frame->add("firstThings", {}, QObject::tr("First things to try"), {}, [frame] { frame->hint()->again(); }));
  help->addAction(
      frame->add("shortcuts", "keyboard", QObject::tr("Shortcuts"), QKeySequence(Qt::Key_F1), [frame] { showShortcuts(frame->window()); }));
  help->addAction(frame->add("checkDevice", "run", QObject::tr("Check the device…"), {}, [frame] {
    if (frame->session()->library())
      (new DeviceDialog(frame->session()->library(), *frame->chooser(), frame->window(), &frame->session()->scheduler()))->open();
  }));
  frame->action("checkDevice")
      ->setToolTip(QObject::tr("Does the CUDA device compute what the CPU does? Every primitive and every model, forward and gradients"));
  help->addAction(frame->add("about", "info", QObject::tr("About Recurrence Lab"), {}, [frame] { showAbout(frame->window()); }));
}

}  // namespace reclab
