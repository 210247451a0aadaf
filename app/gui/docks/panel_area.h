// SPDX-License-Identifier: GPL-3.0-or-later
// The middle of the window: the panels, each in a dock, in arrangements that can be changed, named and restored.
#pragma once

#include <QMainWindow>
#include <QTimer>
#include <functional>
#include <optional>
#include <vector>

#include "gui/docks/flat_dock.h"
#include "gui/docks/layouts.h"
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

/// One panel with its header and menu. A panel that is not visible is given nothing; it catches up when it is shown.
class PanelDock : public FlatDock {
  Q_OBJECT
 public:
  PanelDock(const PanelInfo& info, TimeLink* time, const FileChooser* chooser, QWidget* parent);
  Panel* panel() const { return panel_; }
  QMenu* menu() const { return menu_; }
  bool inSight() const { return visible_; }  ///< shown, and not behind another
  void setRuns(std::shared_ptr<const Trace> trace, const std::vector<Panel::Run>& pinned);
  /// Whether it has a picture, or the run says that its model has no arrays for it.
  bool answered() const;
  void catchUp();  ///< gives the panel the calls that it has missed while it was not visible
  void setQuestions(RunQuestions questions) { questions_ = std::move(questions); }
  void askAgain();
  void name();  ///< dims and names the picture when it is no longer of the present setup
  /// The name of the former setup, on a dimmed picture; empty when the picture is of the present one.
  QString formerName() const;
  /// Its picture is hidden behind these words; empty: it is seen.
  void withhold(const QString& words);

 signals:
  void shownChanged();
  void traceGiven();  ///< to the panel, which has its choices now
  void hiddenByHand();
  void enlargeWanted();
  void said(QString sentence, bool bad);

 protected:
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  void save(Panel::Format format);
  void saveData();
  QString fileName(const QString& suffix) const;
  bool hasPending() const;
  bool keeps() const;
  Panel* panel_;
  Veil* veil_;
  bool withheld_ = false;
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

class PanelArea : public QMainWindow {
  Q_OBJECT
 public:
  PanelArea(TimeLink* time, const FileChooser* chooser, QWidget* parent);
  const std::vector<PanelDock*>& docks() const { return docks_; }
  PanelDock* dock(const QString& id) const;
  QStringList visiblePanels() const;  ///< for which is recorded
  Kinds waitedFor() const;            ///< kinds that the pictures in sight need to be whole
  bool isEmpty() const;               ///< all are hidden
  void setRuns(const std::shared_ptr<const Trace>& trace, const std::vector<Panel::Run>& pinned);
  void setQuestions(const RunQuestions& questions);
  void askAgain();  ///< the answers may be others now
  void holdAxes(bool hold);
  void setNoCuda(const QString& why);
  void setSettings(const std::vector<Panel::Setting>& settings);
  /// Passes the progress of a study, computed beside the run, to all panels: each knows those that it shows.
  void setStudyState(const std::string& study, const StudyState& state);
  void setResult(const std::string& study, const StudyResult& result, const QString& problem = {});
  bool inSight(Kind kind) const;  ///< a panel that needs this
  const std::vector<PanelLayout>& layouts() const { return panelLayouts(); }
  /// Arranges panels by a layout, with the same proportions for the same room, independent of the arrangement before. Where there is no
  /// room for a row or a column of panels they stand behind others as tabs, and that follows the size of the window until a hand moves or
  /// hides a panel.
  void arrange(const PanelLayout& layout);
  /// Sets the arrays that the model has, "gates" and "states", so that an empty panel knows missing arrays from those that there never are.
  void setModelHas(const QStringList& what);
  void enlarge(PanelDock* dock);  ///< alone in the area; again: as before
  void open(PanelDock* dock);     ///< shown and in front; one that the arrangement does not have comes behind others, as a tab
  /// Training begins: a layout that has a panel for it gets it beside the others.
  void showLearning();
  QSize fit() const { return fit_; }   ///< columns and rows that the arrangement was made for
  bool isOwn() const { return own_; }  ///< a hand moved or hid a panel
  /// The places of the panels, as saveState() has them, and the ids of those that have no place.
  struct Places {
    QByteArray state;
    QStringList without;
  };
  Places places(int version = 0) const;
  bool restorePlaces(const Places& places, int version = 0);  ///< false: they are none that Qt takes
  /// Fits the panels now to a size that they are to be fitted to soon.
  void settle();
  /// Sets the layout that the restored places are of, after restorePlaces().
  void takeOver(const PanelLayout& layout, QSize fit, bool own);

 signals:
  void visiblePanelsChanged();
  void traceGiven();  ///< to a panel
  void said(QString sentence, bool bad);
  void requested(reclab::Request request);

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void childEvent(QChildEvent* event) override;

 private:
  bool isArranged(PanelDock* dock) const;  ///< has a place, shown or hidden
  void fitRoom();                          ///< as many columns and rows as the size has room for
  void spread();                           ///< gives the rows and columns of the arrangement their proportions
  std::vector<PanelDock*> docks_;
  PanelLayout layout_;
  QSize fit_;
  std::vector<QList<QDockWidget*>> rows_;  ///< as arranged
  bool own_ = false, arranging_ = false;
  QTimer soon_;
  PanelDock* enlarged_ = nullptr;
  Places before_;  ///< before a panel was enlarged
};

}  // namespace reclab
