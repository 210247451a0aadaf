// SPDX-License-Identifier: GPL-3.0-or-later
// The middle of the window: the panels, each in a dock, in arrangements that can be changed, named and restored.
#pragma once

#include <QMainWindow>
#include <vector>

#include "gui/files.h"
#include "gui/flat_dock.h"
#include "gui/time_link.h"
#include "panel.h"

namespace reclab {

/// One panel with its header and menu. A panel that is not visible is given nothing; it catches up when it is shown.
class PanelDock : public FlatDock {
  Q_OBJECT
 public:
  PanelDock(const PanelInfo& info, TimeLink* time, const FileChooser* chooser, QWidget* parent);
  Panel* panel() const { return panel_; }
  QMenu* menu() const { return menu_; }
  void setRuns(std::shared_ptr<const Trace> trace, const std::vector<Panel::Run>& pinned);
  void catchUp();  ///< gives the panel what it has missed while it was not visible

 signals:
  void shownChanged();
  void enlargeWanted();
  void said(QString sentence, bool bad);

 private:
  void save(Panel::Format format);
  void saveData();
  Panel* panel_;
  TimeLink* time_;
  const FileChooser* chooser_;
  QMenu* menu_;
  std::shared_ptr<const Trace> trace_;
  std::vector<Panel::Run> pinned_;
  bool behind_ = false, visible_ = false, pinsBehind_ = false;
};

struct PanelLayout {
  QString name;
  std::vector<QStringList> rows;  ///< panels from left to right; "a|b" is a with b behind it as a tab
};

class PanelArea : public QMainWindow {
  Q_OBJECT
 public:
  PanelArea(TimeLink* time, const FileChooser* chooser, QWidget* parent);
  const std::vector<PanelDock*>& docks() const { return docks_; }
  PanelDock* dock(const QString& id) const;
  QStringList visiblePanels() const;
  void setRuns(const std::shared_ptr<const Trace>& trace, const std::vector<Panel::Run>& pinned);
  const std::vector<PanelLayout>& layouts() const { return layouts_; }
  void arrange(const PanelLayout& layout);
  void enlarge(PanelDock* dock);  ///< alone in the area; again: as before

 signals:
  void visiblePanelsChanged();
  void said(QString sentence, bool bad);
  void detailWanted(QString what);

 private:
  std::vector<PanelDock*> docks_;
  std::vector<PanelLayout> layouts_;
  PanelDock* enlarged_ = nullptr;
  QByteArray before_;  ///< the arrangement before a panel was enlarged
};

}  // namespace reclab
