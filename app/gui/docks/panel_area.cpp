// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/docks/panel_area.h"

#include <QCoreApplication>
#include <QEvent>
#include <QLayout>
#include <QStyle>
#include <QTabBar>
#include <algorithm>

#include "gui/look/look.h"
#include "gui/session/requests.h"
#include "plot/aligned_times.h"

namespace reclab {
namespace {

constexpr int longest = 300;           // ms that panels wait at the start for the run to begin
constexpr QSize leastPanel(270, 290);  ///< with header, tabs, controls, axes and legend there are still 120 pixels for the picture

/// The number of panels that fit beside and under each other.
QSize fitOf(const QSize& room) { return QSize(room.width() / leastPanel.width(), room.height() / leastPanel.height()).expandedTo({1, 1}); }

/// Names of panels are whole: where there is no room for all of them they are smaller and stand closer, and where there is still none,
/// arrows bring the others.
class CloseTabs : public QObject {
 public:
  explicit CloseTabs(QTabBar* tabs) : QObject(tabs), tabs_(tabs) {
    tabs->setElideMode(Qt::ElideNone);
    tabs->setUsesScrollButtons(true);
    tabs->installEventFilter(this);
  }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    // Of a tab that comes or goes it is told by nothing but that it is painted anew.
    if (watched == tabs_ && (event->type() == QEvent::Resize || event->type() == QEvent::Paint) &&
        isClose() != tabs_->property("close").toBool())
      QMetaObject::invokeMethod(this, &CloseTabs::fit, Qt::QueuedConnection);
    return false;
  }

 private:
  bool isClose() const {
    int wanted = 0;
    const QFontMetrics metrics(uiFont());  // its own is smaller where they are close
    for (int i = 0; i < tabs_->count(); ++i) wanted += metrics.horizontalAdvance(tabs_->tabText(i)) + roomy;
    return wanted > tabs_->width();
  }
  void fit() {
    tabs_->setProperty("close", isClose());
    tabs_->style()->unpolish(tabs_);
    tabs_->style()->polish(tabs_);
    QEvent changed(QEvent::StyleChange);  // and lays its tabs out anew
    QCoreApplication::sendEvent(tabs_, &changed);
  }
  static constexpr int roomy = 22;  ///< beside a name, in lab.qss
  QTabBar* tabs_;
};

/// The length of the names of a cell's panels, in letters.
qsizetype namesIn(const QString& cell) {
  qsizetype letters = 0;
  for (const QString& id : cell.split('|'))
    if (const auto info = std::ranges::find(panels(), id, &PanelInfo::id); info != panels().end()) letters += info->title.size() + 1;
  return letters;
}

/// The layout with no more rows and columns than fit: the panels left over are tabs behind others, where names take the least room, so that
/// as many of them as can be are whole.
std::vector<QStringList> fitted(const PanelLayout& layout, const QSize& fit) {
  std::vector<QStringList> rows;
  for (const QStringList& row : layout.rows) {
    const bool own = static_cast<int>(rows.size()) < fit.height();
    if (own) rows.emplace_back();
    QStringList& into = rows.back();
    for (qsizetype i = 0; i < row.size(); ++i) {
      const qsizetype column = std::min<qsizetype>(i, fit.width() - 1);
      if (own && column >= into.size()) {
        into << row[i];
        continue;
      }
      for (const QString& id : row[i].split('|')) {
        QString* least = &into[std::min(column, into.size() - 1)];
        for (QStringList& line : rows)
          for (QString& cell : line)
            if (namesIn(cell) < namesIn(*least)) least = &cell;
        *least += '|' + id;
      }
    }
  }
  return rows;
}

}  // namespace

PanelArea::PanelArea(TimeLink* time, const FileChooser* chooser, QWidget* parent) : QMainWindow(parent) {
  setWindowFlags(Qt::Widget);  // a main window makes itself a window; this one is a part
  setObjectName("panels");
  setDockNestingEnabled(true);
  setAnimated(false);  // an arrangement has its sizes at once
  setContextMenuPolicy(Qt::PreventContextMenu);
  for (const PanelInfo& info : panels()) {
    auto* made = new PanelDock(info, time, chooser, this);
    docks_.push_back(made);
    connect(made, &PanelDock::shownChanged, this, &PanelArea::visiblePanelsChanged);
    connect(made, &PanelDock::traceGiven, this, &PanelArea::traceGiven);
    connect(made, &PanelDock::said, this, &PanelArea::said);
    connect(made, &PanelDock::enlargeWanted, this, [this, made] { enlarge(made); });
    connect(made, &PanelDock::panelWanted, this, &PanelArea::makeWanted);
    connect(made, &PanelDock::panelMade, this, [this, made] {
      connect(made->made(), &Panel::requested, this, &PanelArea::requested);
      times_->add(made->made());
    });
    const auto byHand = [this] {
      if (!arranging_ && enlarged_ == nullptr) own_ = true;
    };
    connect(made, &QDockWidget::topLevelChanged, this, byHand);
    connect(made->toggleViewAction(), &QAction::triggered, this, [this, made, byHand](bool shown) {
      byHand();
      if (shown) open(made);
    });
    connect(made, &PanelDock::hiddenByHand, this, byHand);
    made->hide();  // until it is arranged
  }
  times_ = new AlignedTimes(this);
  makeSoon_.setSingleShot(true);
  makeSoon_.setInterval(longest);
  connect(&makeSoon_, &QTimer::timeout, this, &PanelArea::makeNext);
  soon_.setSingleShot(true);
  soon_.setInterval(120);
  connect(&soon_, &QTimer::timeout, this, &PanelArea::fitRoom);
}

void PanelArea::begin() {
  if (makeSoon_.interval() == 0) return;
  makeSoon_.setInterval(0);
  if (makeSoon_.isActive()) makeSoon_.start();
}

std::vector<PanelDock*> PanelArea::wanted() const {
  std::vector<PanelDock*> docks;
  std::ranges::copy_if(docks_, std::back_inserter(docks), [](const PanelDock* one) { return one->inSight() && one->made() == nullptr; });
  return docks;
}

/// While docks are arranged one may be in sight that is behind another in the end.
void PanelArea::makeWanted() {
  if (arranging_) return;
  if (makeSoon_.interval() != 0 || makeSoon_.isActive()) return makeSoon_.start();
  for (PanelDock* one : wanted()) one->panel();
}

/// At the start, one in each turn of the event loop: what the run tells is heard between them.
void PanelArea::makeNext() {
  makeSoon_.setInterval(0);
  const std::vector<PanelDock*> docks = wanted();
  if (docks.size() > 1) makeSoon_.start();
  if (!docks.empty()) docks.front()->panel();
}

void PanelArea::fitRoom() {
  if (own_ || enlarged_ != nullptr || fitOf(size()) == fit_) return;
  // Panels that were raised in front of others stay there.
  std::vector<PanelDock*> raised;
  for (PanelDock* one : docks_)
    if (one->inSight() && std::ranges::none_of(rows_, [one](const auto& row) { return row.contains(one); })) raised.push_back(one);
  arrange(PanelLayout(layout_));
  for (PanelDock* one : raised) one->raise();
}

void PanelArea::settle() {
  if (!soon_.isActive()) return;
  soon_.stop();
  fitRoom();
}

void PanelArea::setSettings(const std::vector<Panel::Setting>& settings) {
  const auto shared = std::make_shared<const std::vector<Panel::Setting>>(settings);  // they come with each move of a slider
  for (PanelDock* dock : docks_) dock->tell("settings", [shared](Panel& panel) { panel.setSettings(*shared); });
}

void PanelArea::setNoCuda(const QString& why) {
  for (PanelDock* dock : docks_) dock->tell("cuda", [why](Panel& panel) { panel.setNoCuda(why); });
}

void PanelArea::setStepMarks(const std::vector<StepMark>& marks) {
  for (PanelDock* dock : docks_) dock->tell("marks", [marks](Panel& panel) { reclab::setStepMarks(&panel, marks); });
}

void PanelArea::setStudyState(const std::string& study, const StudyState& state) {
  for (PanelDock* dock : docks_)
    dock->tell("state of " + QString::fromStdString(study), [study, state](Panel& panel) { panel.setStudyState(study, state); });
}

void PanelArea::setResult(const std::string& study, const StudyResult& result, const QString& problem) {
  for (PanelDock* dock : docks_)
    dock->tell("result of " + QString::fromStdString(study),
               [study, result, problem](Panel& panel) { panel.setResult(study, result, problem); });
}

bool PanelArea::inSight(Kind kind) const {
  return std::ranges::any_of(docks_, [kind](const PanelDock* dock) { return dock->inSight() && dock->info().needs.has(kind); });
}

PanelDock* PanelArea::dock(const QString& id) const {
  const auto found = std::find_if(docks_.begin(), docks_.end(), [&](PanelDock* one) { return one->info().id == id; });
  return found == docks_.end() ? nullptr : *found;
}

QStringList PanelArea::visiblePanels() const {
  QStringList ids;
  for (PanelDock* one : docks_)
    if (!one->isHidden() && (one->inSight() || !one->info().needs.has_any(pairwiseKinds()))) ids << one->info().id;
  return ids;
}

Kinds PanelArea::waitedFor() const {
  Kinds all;
  for (const PanelDock* one : docks_)
    if (one->inSight() && one->made() != nullptr) all.add(one->made()->waitsFor());
  return all;
}

bool PanelArea::isEmpty() const { return std::ranges::all_of(docks_, &PanelDock::isHidden); }

void PanelArea::setRuns(const std::shared_ptr<const Trace>& trace, const std::vector<Panel::Run>& pinned) {
  for (PanelDock* one : docks_) one->setRuns(trace, pinned);
}

void PanelArea::setQuestions(const RunQuestions& questions) {
  for (PanelDock* one : docks_) one->setQuestions(questions);
}

void PanelArea::holdAxes(bool hold) {
  for (PanelDock* one : docks_) one->tell("axes", [hold](Panel& panel) { panel.holdAxes(hold); });
}

void PanelArea::askAgain() {
  for (PanelDock* one : docks_) one->askAgain();
}

void PanelArea::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  if (!layout_.rows.empty() && !own_ && fitOf(size()) != fit_) soon_.start();
}

void PanelArea::childEvent(QChildEvent* event) {
  QMainWindow::childEvent(event);
  if (auto* tabs = event->polished() ? qobject_cast<QTabBar*>(event->child()) : nullptr) new CloseTabs(tabs);
}

void PanelArea::takeOver(const PanelLayout& layout, QSize fit, bool own) {
  layout_ = layout;
  if (PanelDock* learns = dock(layout.learns); learns != nullptr && isArranged(learns)) layout_.rows.back() << layout.learns;
  fit_ = fit;
  own_ = own;
  if (!own_ && fitOf(size()) != fit_) soon_.start();
}

void PanelArea::arrange(const PanelLayout& layout) {
  arranging_ = true;
  soon_.stop();
  enlarged_ = nullptr;
  own_ = false;
  layout_ = layout;
  fit_ = fitOf(size());
  const std::vector<QStringList> cells = fitted(layout, fit_);
  for (PanelDock* one : docks_) {
    one->setFloating(false);
    removeDockWidget(one);
  }
  // First the rows under each other, then each row from left to right: splitting is of the cell that is there.
  rows_.clear();
  QDockWidget* above = nullptr;
  for (const QStringList& row : cells) {
    QList<QDockWidget*> present;
    for (const QString& cell : row)
      if (PanelDock* one = dock(cell.section('|', 0, 0))) present << one;
    if (present.isEmpty()) continue;
    if (above == nullptr)
      addDockWidget(Qt::LeftDockWidgetArea, present.front());
    else
      splitDockWidget(above, present.front(), Qt::Vertical);
    above = present.front();
    rows_.push_back(present);
  }
  for (const auto& row : rows_) {
    for (qsizetype i = 0; i < row.size(); ++i) {
      if (i > 0) splitDockWidget(row[i - 1], row[i], Qt::Horizontal);
      row[i]->show();
    }
  }
  for (const QStringList& row : cells)
    for (const QString& cell : row) {
      PanelDock* front = dock(cell.section('|', 0, 0));
      for (const QString& id : cell.split('|').mid(1))
        if (PanelDock* behind = dock(id); behind && front) {
          tabifyDockWidget(front, behind);
          behind->show();
        }
      if (front) front->raise();
    }
  spread();
  arranging_ = false;
  makeWanted();
  emit visiblePanelsChanged();
}

void PanelArea::spread() {
  // Explicit sizes: left alone, the first dock takes all space beyond the others' minimum sizes.
  const auto share = [this](int whole, qsizetype count) {
    const int between = style()->pixelMetric(QStyle::PM_DockWidgetSeparatorExtent, nullptr, this);
    return QList<int>(count, static_cast<int>((whole - (count - 1) * between) / std::max<qsizetype>(1, count)));
  };
  QList<QDockWidget*> heads;
  for (const auto& row : rows_) {
    resizeDocks(row, share(width(), row.size()), Qt::Horizontal);
    heads << row.front();
  }
  resizeDocks(heads, share(height(), heads.size()), Qt::Vertical);
  layout()->activate();  // at once: Qt notes the sizes and does not always ask itself to lay out
}

void PanelArea::setModelHas(const QStringList& what) {
  for (PanelDock* one : docks_) one->tell("model", [what](Panel& panel) { panel.setProperty("modelHas", what); });
}

void PanelArea::enlarge(PanelDock* dock) {
  if (enlarged_ == dock) {
    enlarged_ = nullptr;
    restorePlaces(before_);
    layout()->activate();
    return;
  }
  if (enlarged_ == nullptr) before_ = places();
  enlarged_ = dock;
  for (PanelDock* one : docks_)
    if (one == dock || isArranged(one)) one->setVisible(one == dock);
}

PanelArea::Places PanelArea::places(int version) const {
  Places now{saveState(version), {}};
  for (PanelDock* one : docks_)
    if (!isArranged(one)) now.without << one->info().id;
  return now;
}

bool PanelArea::restorePlaces(const Places& places, int version) {
  // restoreState() takes every dock of the area that a state does not have into it, and shows it: those stand aside.
  QWidget aside(this);
  std::vector<PanelDock*> away;
  arranging_ = true;
  for (PanelDock* one : docks_)
    if (places.without.contains(one->info().id)) {
      removeDockWidget(one);
      one->setParent(&aside);
      away.push_back(one);
    }
  const bool whole = restoreState(places.state, version);
  for (PanelDock* one : away) {
    one->setParent(this);
    one->hide();
  }
  arranging_ = false;
  makeWanted();
  return whole;
}

bool PanelArea::isArranged(PanelDock* dock) const { return dock->isFloating() || dockWidgetArea(dock) != Qt::NoDockWidgetArea; }

void PanelArea::showLearning() {
  PanelDock* learns = dock(layout_.learns);
  if (learns == nullptr || isArranged(learns)) return;
  PanelLayout with = layout_;
  with.rows.back() << layout_.learns;
  arrange(with);
  learns->raise();
}

void PanelArea::open(PanelDock* dock) {
  if (!isArranged(dock)) {
    // Behind the panels that have the fewest behind them, so that as much of the names as can be is read.
    PanelDock* beside = nullptr;
    for (PanelDock* one : docks_)
      if (one != dock && one->inSight() && !one->isFloating() &&
          (beside == nullptr || tabifiedDockWidgets(one).size() < tabifiedDockWidgets(beside).size()))
        beside = one;
    if (beside != nullptr)
      tabifyDockWidget(beside, dock);
    else
      addDockWidget(Qt::LeftDockWidgetArea, dock);
  }
  dock->show();
  dock->raise();
}

}  // namespace reclab
