// SPDX-License-Identifier: GPL-3.0-or-later
// The window as its features see it: its parts, and the places for their additions. The window builds it first, then each feature with it,
// then the tool bar and the menus.
#pragma once

#include <QAction>
#include <QKeySequence>
#include <QMainWindow>
#include <QMap>
#include <functional>
#include <utility>
#include <vector>

#include "gui/frame/palette_source.h"
#include "gui/session/files.h"
#include "gui/session/session_controller.h"

class QStackedWidget;
class QToolButton;
class QUndoStack;

namespace reclab {

class Banner;
class FirstHint;
class FlatDock;
class Lab;
class Look;
class PanelArea;
class Pins;
class SideWidths;
class StatusLine;
class TimeLink;

/// The places of features' actions among those of the window.
enum class ActionPlace { barTrain, barCompare, fileSession, fileExport, edit, view, runTrain, runCompare };

class WindowFrame : public QObject {
  Q_OBJECT
 public:
  WindowFrame(QMainWindow* window, Look* look);

  QMainWindow* window() const { return window_; }
  Look* look() const { return look_; }
  SessionController* session() const { return session_; }
  Pins* pins() const { return pins_; }
  TimeLink* time() const { return time_; }
  Lab* lab() const { return lab_; }
  QUndoStack* undo() const;
  QStackedWidget* middle() const { return middle_; }  ///< the area, and the widgets that may take its place
  PanelArea* area() const { return area_; }
  StatusLine* status() const { return status_; }
  Banner* banner() const { return banner_; }
  FirstHint* hint() const { return hint_; }
  const FileChooser* chooser() const { return &chooser_; }
  void setChooser(FileChooser chooser);

  /// An action of the window that is called "action." and the name; the icon's may be empty.
  QAction* add(const QString& name, const QString& iconName, const QString& text, const QKeySequence& keys, std::function<void()> does);
  QAction* action(const QString& name) const;
  /// Says why an action is disabled, a sentence, for as long as it is.
  static void setWhyNot(QAction* action, const QString& sentence) { action->setProperty("whyNot", sentence); }
  void offer(ActionPlace place, QAction* action) { offered_[place] << action; }
  QList<QAction*> offered(ActionPlace place) const { return offered_.value(place); }
  /// Things that the palette finds, beside every action and control that there is.
  void offer(PaletteSource source) { sources_.push_back(std::move(source)); }
  const std::vector<PaletteSource>& sources() const { return sources_; }
  /// The button of an action in the tool bar; null where it has none.
  static QToolButton* buttonOf(const QAction* action);

  /// A dock at a side of the window; `least`: its width, which no text in it changes.
  FlatDock* addDock(const QString& id, const QString& title, QWidget* content, Qt::DockWidgetArea where, int least);
  const std::vector<FlatDock*>& docks() const { return docks_; }  ///< in the order in which they were added

  /// Changes the setup that is looked at, which undo takes back. Changes of one gesture are one.
  void change(const Setup& after, const QString& text, int gesture = 0, bool live = false);
  void pickModel(const QString& id);
  /// Shows a sentence in the status line, and above the time line where it is a warning.
  void say(const QString& sentence, Tone tone = Tone::info);
  void tell(const QString& sentence, bool bad) { say(sentence, bad ? Tone::warning : Tone::info); }

 signals:
  void modelPicked(QString id);  ///< by hand, so that the places that its preset names may come to the front
  void said(QString sentence, reclab::Tone tone);
  /// Another run is to be looked at, by hand: a setup, and its sequence, which is still to be loaded. Both are one change.
  void runWanted(const reclab::Setup& setup, const reclab::SequenceChoice& sequence, QString text);
  void docksMoved();  ///< by hand
  void calmChanged(bool calm);
  void roomChanged(bool narrow);  ///< in the tool bar
  void restored();                ///< the docks and bars are as they were kept

 private:
  QMainWindow* window_;
  Look* look_;
  FileChooser chooser_ = dialogChooser();
  SessionController* session_;
  TimeLink* time_;
  Lab* lab_;
  Pins* pins_;
  QStackedWidget* middle_;
  PanelArea* area_;
  Banner* banner_;
  FirstHint* hint_;
  StatusLine* status_;
  SideWidths* widths_;
  std::vector<FlatDock*> docks_;
  QMap<ActionPlace, QList<QAction*>> offered_;
  std::vector<PaletteSource> sources_;
};

}  // namespace reclab
