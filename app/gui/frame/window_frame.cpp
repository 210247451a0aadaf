// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/frame/window_frame.h"

#include <QAction>
#include <QApplication>
#include <QPointer>
#include <QStackedWidget>
#include <QToolBar>
#include <QToolButton>
#include <QVBoxLayout>
#include <utility>

#include "gui/docks/flat_dock.h"
#include "gui/docks/panel_area.h"
#include "gui/docks/side_widths.h"
#include "gui/frame/lab.h"
#include "gui/frame/refused_numbers.h"
#include "gui/look/look.h"
#include "gui/session/pins.h"
#include "gui/time/time_link.h"
#include "gui/views/first_hint.h"
#include "gui/views/status_line.h"
#include "spoken.h"

namespace reclab {

WindowFrame::WindowFrame(QMainWindow* window, Look* look)
    : QObject(window),
      window_(window),
      look_(look),
      session_(new SessionController(window)),
      time_(new TimeLink(window)),
      pins_(new Pins(session_, window)) {
  installSpokenRoles();
  auto* centre = new QWidget(window);
  auto* column = new QVBoxLayout(centre);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  middle_ = new QStackedWidget(centre);
  area_ = new PanelArea(time_, &chooser_, middle_);
  middle_->addWidget(area_);
  banner_ = new Banner(centre);
  hint_ = new FirstHint(centre);
  column->addWidget(middle_, 1);
  column->addWidget(banner_);
  column->addWidget(hint_);
  window->setCentralWidget(centre);
  status_ = new StatusLine(window);
  window->setStatusBar(status_);
  widths_ = new SideWidths(window);
  lab_ = new Lab(session_, pins_, area_, time_, window);
  setChooser(dialogChooser());
  new RefusedNumbers(this);
}

void WindowFrame::setChooser(FileChooser chooser) {
  // Restores the focus after a dialog.
  const auto keeping = [](auto ask) {
    return [ask = std::move(ask)](auto&&... arguments) {
      const QPointer<QWidget> before = QApplication::focusWidget();
      const auto answer = ask(std::forward<decltype(arguments)>(arguments)...);
      if (before) before->setFocus();
      return answer;
    };
  };
  chooser_ = {};
  if (chooser.open) chooser_.open = keeping(std::move(chooser.open));
  if (chooser.save) chooser_.save = keeping(std::move(chooser.save));
  if (chooser.folder) chooser_.folder = keeping(std::move(chooser.folder));
  if (chooser.figure) chooser_.figure = keeping(std::move(chooser.figure));
}

QAction* WindowFrame::add(const QString& name, const QString& iconName, const QString& text, const QKeySequence& keys,
                          std::function<void()> does) {
  auto* made = new QAction(text, window_);
  made->setObjectName("action." + name);
  if (!iconName.isEmpty()) made->setIcon(icon(iconName));
  made->setShortcut(keys);
  connect(made, &QAction::triggered, this, std::move(does));
  window_->addAction(made);
  return made;
}

QAction* WindowFrame::action(const QString& name) const {
  return window_->findChild<QAction*>("action." + name, Qt::FindDirectChildrenOnly);
}

QToolButton* WindowFrame::buttonOf(const QAction* action) {
  for (QObject* one : action->associatedObjects())
    if (const auto* bar = qobject_cast<QToolBar*>(one))
      return qobject_cast<QToolButton*>(bar->widgetForAction(const_cast<QAction*>(action)));
  return nullptr;
}

FlatDock* WindowFrame::addDock(const QString& id, const QString& title, QWidget* content, Qt::DockWidgetArea where, int least) {
  auto* made = new FlatDock(id, title, window_);
  content->setMinimumWidth(least);
  made->setWidget(content);
  auto* hide = made->header()->addButton("close", tr("Hide (View ▸ Panels shows it again)"));
  connect(hide, &QToolButton::clicked, made, &QDockWidget::hide);
  connect(hide, &QToolButton::clicked, this, &WindowFrame::docksMoved);
  connect(made, &QDockWidget::topLevelChanged, this, &WindowFrame::docksMoved);
  connect(made->toggleViewAction(), &QAction::triggered, this, &WindowFrame::docksMoved);
  window_->addDockWidget(where, made);
  widths_->add(made);
  docks_.push_back(made);
  return made;
}

QUndoStack* WindowFrame::undo() const { return lab_->undo(); }

void WindowFrame::change(const Setup& after, const QString& text, int gesture, bool live) {
  lab_->change(text, [&] { session_->apply(after, live); }, gesture);
}

void WindowFrame::pickModel(const QString& id) {
  if (id.toStdString() == session_->setup().preset) return;
  Setup after = session_->setup();
  after.preset = id.toStdString();
  after.form = "auto";  // another model may not have the form that this one was run in
  change(session_->asLearned(after), tr("model %1").arg(id));
  emit modelPicked(id);
}

void WindowFrame::say(const QString& sentence, Tone tone) {
  status_->say(sentence, tone);
  emit said(sentence, tone);
}

}  // namespace reclab
