// SPDX-License-Identifier: GPL-3.0-or-later
// The runs that are compared, side by side: of each the same panels, with one time cursor, one range of steps and one range of values.
#pragma once

#include <QMenu>
#include <QWidget>
#include <memory>
#include <vector>

#include "gui/docks/panel_area.h"
#include "gui/time/time_link.h"
#include "panel.h"

class QGridLayout;
class QLabel;
class QScrollArea;
class QToolButton;

namespace reclab {

class AlignedTimes;

class SideBySide : public QWidget {
  Q_OBJECT
 public:
  explicit SideBySide(TimeLink* time, QWidget* parent);
  /// The first is the one that is looked at.
  void setRuns(const std::vector<Panel::Run>& runs);
  void setQuestions(RunQuestions questions) { questions_ = std::move(questions); }
  void askAgain();  ///< the answers may be others now
  /// The panels that each run is shown in, one under the other; names that are of none are left out.
  void setKinds(const QStringList& ids);
  const QStringList& kinds() const { return kinds_; }
  std::size_t columns() const { return cards_.size(); }
  Panel* panel(const QString& id, std::size_t run) const;  ///< null where it is not shown
  QMenu* menu() const { return menu_; }

 signals:
  void kindsChanged();
  void closeWanted();

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  struct Cell {
    QString id;
    Panel* panel = nullptr;
    QLabel* head = nullptr;
    std::shared_ptr<const Trace> given;
  };
  struct Card {
    QWidget* frame = nullptr;
    QLabel *dot = nullptr, *name = nullptr;
    std::vector<Cell> cells;
  };
  void build();  ///< as many cards as there are runs
  void fill();   ///< gives each panel its run
  Card makeCard();

  TimeLink* time_;
  QStringList kinds_;
  std::vector<Panel::Run> runs_;
  RunQuestions questions_;
  std::vector<Card> cards_;
  QWidget* sheet_;
  QGridLayout* grid_;
  QMenu* menu_;
  std::vector<QObject*> links_;  ///< of the present cards
};

}  // namespace reclab
