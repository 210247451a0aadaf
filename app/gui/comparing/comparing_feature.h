// SPDX-License-Identifier: GPL-3.0-or-later
// Runs that are compared: the chips in the tool bar, the menu of comparisons, the table of differences, and all side by side.
#pragma once

#include <QObject>
#include <functional>
#include <vector>

#include "gui/comparing/ready.h"
#include "panel.h"

class QAction;
class QMenu;
class QToolButton;

namespace reclab {

class PinChip;
class PinRow;
class Pins;
class SessionController;
class SideBySide;
class WindowFrame;

class ComparingFeature : public QObject {
  Q_OBJECT
 public:
  explicit ComparingFeature(WindowFrame* frame);
  QMenu* menu() const { return menu_; }
  SideBySide* sideBySide() const { return side_; }  ///< null until it was asked for
  void showRuns();                                  ///< to the panels, all that there are now

 signals:
  void keyboardFree();  ///< the run that had it is gone, and there is no other

 private:
  void buildActions();
  void fillMenu();
  void pin();
  void add(const Setup& setup, const TracePtr& trace, const RecordingOptions& recording);
  void change(const QString& text, const std::function<void()>& does);  ///< of the pins, which undo takes back
  void showPins();
  PinChip* makeChip(std::size_t index);
  void showTable();
  void compare(const ReadyComparison& which);
  void unpinAll();
  ReadyComparison alongTraining() const;
  std::vector<Panel::Run> compared() const;
  void showSideBySide(bool on);
  void tellVisible();  ///< to the session, which panels are in sight
  void fit();          ///< names of runs have room before the words of buttons do

  WindowFrame* frame_;
  SessionController* session_;
  Pins* pins_;
  SideBySide* side_ = nullptr;
  QMenu* menu_;
  PinRow* chips_;
  QToolButton* button_;
  QAction* buttonPlace_ = nullptr;  ///< in the tool bar
  bool narrow_ = false;
};

}  // namespace reclab
