// SPDX-License-Identifier: GPL-3.0-or-later
// The middle of the window: the panels, each in a dock, in arrangements that can be changed, named and restored.
#pragma once

#include <QMainWindow>
#include <QTimer>
#include <functional>
#include <optional>
#include <vector>

#include "gui/docks/layouts.h"
#include "gui/docks/panel_dock.h"
#include "plot/parts/step_marks.h"

namespace reclab {

class AlignedTimes;

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
  /// The first run has begun, or there will be none: panels may be made. At the start the run comes first, so that both are at once.
  void begin();
  void askAgain();  ///< the answers may be others now
  void holdAxes(bool hold);
  void setNoCuda(const QString& why);
  void setStepMarks(const std::vector<StepMark>& marks);  ///< in all plots
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
  std::vector<PanelDock*> wanted() const;  ///< in sight, without a panel
  void makeWanted();
  void makeNext();
  void fitRoom();  ///< as many columns and rows as the size has room for
  void spread();   ///< gives the rows and columns of the arrangement their proportions
  std::vector<PanelDock*> docks_;
  AlignedTimes* times_;
  PanelLayout layout_;
  QSize fit_;
  std::vector<QList<QDockWidget*>> rows_;  ///< as arranged
  bool own_ = false, arranging_ = false;
  QTimer soon_, makeSoon_;
  PanelDock* enlarged_ = nullptr;
  Places before_;  ///< before a panel was enlarged
};

}  // namespace reclab
