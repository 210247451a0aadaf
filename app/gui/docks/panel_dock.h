// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gui/docks/flat_dock.h"
#include "gui/session/files.h"
#include "gui/time/time_link.h"
#include "panel.h"

namespace reclab {

class Veil;

/// Questions of the docks to the window about the run that they are given and those that they were given before.
struct RunQuestions {
  /// Whether arrays of this kind, which the newest trace does not have, may still come.
  std::function<bool(Kind kind)> isPending = [](Kind) { return false; };
  /// Names the setup of a trace, when that is not the present one; else empty.
  std::function<QString(const std::shared_ptr<const Trace>&)> former = [](const auto&) { return QString(); };
};

/// The rule of every panel: a picture stays until the new one is there, or until it is known that there will be none. Whether `panel` keeps
/// that of `given`, as `now` has not got all that the new one takes.
bool keepsPicture(const Panel& panel, const Trace* given, const Trace* now, const RunQuestions& questions);
/// Whether a run beside it has the arrays that `panel` shows, or never will: one that has them not yet is not said to have nothing.
bool hasPicture(const Panel& panel, const Panel::Run& run);

/// One panel with its header and menu. The panel is made when it is asked for, as the area does where it is in sight. One that is not
/// visible is given no run; it catches up when it is shown.
class PanelDock : public FlatDock {
  Q_OBJECT
 public:
  PanelDock(const PanelInfo& info, TimeLink* time, const FileChooser* chooser, QWidget* parent);
  const PanelInfo& info() const { return info_; }
  Panel* panel();                         ///< made now where there was none; in sight it has the run then
  Panel* made() const { return panel_; }  ///< null before
  /// Passes something on to the panel: now, or, the last on each topic, in the order in which they came, once there is one.
  void tell(const QString& topic, std::function<void(Panel&)> message);
  /// The choices in the panel, in sight or behind others, or those that it is to have once it is made.
  QVariantMap choices() const;
  void setChoices(const QVariantMap& choices);
  QMenu* menu() const { return menu_; }
  bool inSight() const { return visible_; }  ///< shown, and not behind another
  void setRuns(std::shared_ptr<const Trace> trace, const std::vector<Panel::Run>& pinned);
  /// Whether it has a picture, or the run says that its model has no arrays for it.
  bool answered() const;
  void catchUp();  ///< makes the panel, if there is none, and gives it the calls that it has missed while it was not visible
  void setQuestions(RunQuestions questions) { questions_ = std::move(questions); }
  void askAgain();
  void name();  ///< dims and names the picture when it is no longer of the present setup
  /// The name of the former setup, on a dimmed picture; empty when the picture is of the present one.
  QString formerName() const;
  /// Its picture is hidden behind these words; empty: it is seen.
  void withhold(const QString& words);

 signals:
  void panelWanted();  ///< it is in sight, and there is none yet
  void panelMade();
  void shownChanged();
  void traceGiven();  ///< to the panel, which has its choices now
  void hiddenByHand();
  void enlargeWanted();
  void said(QString sentence, bool bad);

 protected:
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  void make();
  void follow();
  void fillMenu();
  void orderKeyboard();
  void save(Panel::Format format);
  void saveData();
  QString fileName(const QString& suffix) const;
  bool hasPending() const;
  bool keeps() const;
  const PanelInfo& info_;
  Panel* panel_ = nullptr;
  Veil* veil_ = nullptr;
  QWidget* paper_;
  std::vector<std::pair<QString, std::function<void(Panel&)>>> told_;  ///< by topic, for the panel that is not made yet
  QVariantMap chosen_;                                                 ///< for the panel that is not made yet
  QString withheld_;
  RunQuestions questions_;
  std::shared_ptr<const Trace> given_;   ///< the trace that the panel shows
  std::shared_ptr<const Trace> former_;  ///< the last that it was given with all that it would get
  QTimer dimSoon_;
  TimeLink* time_;
  const FileChooser* chooser_;
  QMenu* menu_;
  std::shared_ptr<const Trace> trace_;
  std::vector<Panel::Run> pinned_, pinsGiven_;  ///< as they are to be, and as they were given
  bool behind_ = false, visible_ = false, pinsBehind_ = false;
  bool pinsMayWait_ = false;  ///< they are the same ones, with other traces
};

}  // namespace reclab
