// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/docks/panel_area.h"

#include <QContextMenuEvent>
#include <QCoreApplication>
#include <QEvent>
#include <QLabel>
#include <QLayout>
#include <QMenu>
#include <QStyle>
#include <QTabBar>
#include <QToolButton>
#include <QVBoxLayout>
#include <QWidgetAction>
#include <algorithm>

#include "gui/docks/veil.h"
#include "gui/look/look.h"
#include "gui/session/requests.h"
#include "plain_text.h"
#include "plot/aligned_times.h"

namespace reclab {
namespace {

constexpr int soon = 250;              // ms; a picture that is renewed sooner is not dimmed, so that nothing flickers while a slider moves
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

bool keepsPicture(const Panel& panel, const Trace* given, const Trace* now, const RunQuestions& questions) {
  if (!given || !now || !panel.emptyReason().isEmpty()) return false;
  bool lacks = false, has = false, pending = false;
  const Kinds needs = panel.needs(), waits = panel.waitsFor();
  for (const KindInfo& row : kind_table()) {
    const bool there = now->has(row.kind), comes = !there && !now->info.absent.contains(row.kind) && questions.isPending(row.kind);
    if (waits.has(row.kind)) lacks = lacks || comes;
    if (needs.has(row.kind)) has = has || there, pending = pending || comes;
  }
  return lacks || (!needs.empty() && !has && pending);
}

bool hasPicture(const Panel& panel, const Panel::Run& run) {
  if (run.whole || !run.trace) return true;
  bool lacks = false, has = false;
  const Kinds needs = panel.needs(), waits = panel.waitsFor();
  for (const KindInfo& row : kind_table()) {
    const bool there = run.trace->has(row.kind);
    lacks = lacks || (waits.has(row.kind) && !there && row.stage == Stage::late && !run.trace->info.absent.contains(row.kind));
    has = has || (needs.has(row.kind) && there);
  }
  return !lacks && has;
}

PanelDock::PanelDock(const PanelInfo& info, TimeLink* time, const FileChooser* chooser, QWidget* parent)
    : FlatDock("panel." + info.id, info.title, parent), panel_(info.make(this)), time_(time), chooser_(chooser), menu_(new QMenu(this)) {
  auto* paper = new QWidget(this);
  paper->setObjectName("paper");
  paper->setAttribute(Qt::WA_StyledBackground);
  auto* column = new QVBoxLayout(paper);
  column->setContentsMargins(4, 2, 4, 4);
  column->addWidget(panel_);
  paper->setMinimumSize(220, 120);  // its own, so that the size hints of a panel's controls change no layout
  setWidget(paper);
  veil_ = new Veil(panel_);
  dimSoon_.setSingleShot(true);
  dimSoon_.setInterval(soon);
  connect(&dimSoon_, &QTimer::timeout, this, [this] { veil_->cover(questions_.former(given_)); });
  header()->setToolTip(safeTip(info.hint));

  using Format = Panel::Format;
  menu_->addAction(icon("image"), tr("Save as PNG…"), this, [this] { save(Format::png); });
  menu_->addAction(icon("vector"), tr("Save as SVG…"), this, [this] { save(Format::svg); });
  menu_->addAction(icon("vector"), tr("Save as PDF…"), this, [this] { save(Format::pdf); });
  menu_->addAction(icon("copy"), tr("Copy as a picture"), this, [this] {
    const bool picture = panel_->emptyReason().isEmpty();
    panel_->copyFigure();
    emit said(picture ? tr("A picture of %1 is in the clipboard.").arg(panel_->title())
                      : tr("%1 has no picture; why is in the clipboard, in words.").arg(panel_->title()),
              false);
  });
  menu_->addAction(icon("table"), tr("Save the data as CSV…"), this, [this] { saveData(); });
  for (QAction* own : panel_->actions()) menu_->addAction(own);
  menu_->addSeparator();
  menu_->addAction(icon("enlarge"), tr("Only this panel, or all again"), this, &PanelDock::enlargeWanted);
  menu_->addAction(icon("float"), tr("Float, or put back"), this, [this] { setFloating(!isFloating()); });
  menu_->addAction(icon("close"), tr("Hide (View ▸ Panels shows it again)"), this, [this] {
    hide();
    emit hiddenByHand();
  });
  menu_->addSeparator();
  auto* hint = label(info.hint, "muted");
  hint->setWordWrap(true);
  hint->setFixedWidth(280);
  hint->setContentsMargins(10, 6, 10, 8);
  hint->setFont(smallFont());
  hint->setFixedHeight(hint->heightForWidth(280));
  auto* hintAction = new QWidgetAction(menu_);
  hintAction->setDefaultWidget(hint);
  menu_->addAction(hintAction);

  auto* larger = header()->addButton("enlarge", tr("Only this panel, or all again (double-click on the title does the same)"));
  connect(larger, &QToolButton::clicked, this, &PanelDock::enlargeWanted);
  connect(header(), &FlatHeader::doubleClicked, this, &PanelDock::enlargeWanted);
  auto* more = header()->addButton("menu", tr("Save, copy, data"));
  more->setObjectName("more");
  more->setFocusPolicy(Qt::TabFocus);
  more->setMenu(menu_);
  more->setPopupMode(QToolButton::InstantPopup);

  connect(panel_, &Panel::headlineChanged, this, [this] { header()->setHeadline(withheld_ ? QString() : panel_->headline()); });
  connect(panel_, &Panel::timePicked, time_, &TimeLink::setStep);
  connect(panel_, &Panel::timeRangePicked, time_, &TimeLink::setRange);
  connect(time_, &TimeLink::stepChanged, this, [this](std::int64_t step) {
    if (visible_) panel_->setTime(step);
  });
  connect(time_, &TimeLink::rangeChanged, this, [this](std::int64_t first, std::int64_t last) {
    if (visible_) panel_->setTimeRange(first, last);
  });
  connect(this, &QDockWidget::visibilityChanged, this, [this](bool visible) {
    visible_ = visible && isVisible();  // a tab that comes to the front is told so even where the whole area is out of sight
    emit shownChanged();                // first, so that missing kinds are requested early
    if (visible_) catchUp();
  });
}

void PanelDock::setRuns(std::shared_ptr<const Trace> trace, const std::vector<Panel::Run>& pinned) {
  const auto same = [](const Panel::Run& a, const Panel::Run& b) {
    return a.trace == b.trace && a.colour == b.colour && a.label == b.label && a.whole == b.whole;
  };
  const auto alike = [](const Panel::Run& a, const Panel::Run& b) { return a.colour == b.colour && a.label == b.label; };
  pinsMayWait_ = std::equal(pinned.begin(), pinned.end(), pinsGiven_.begin(), pinsGiven_.end(), alike);
  if (!std::equal(pinned.begin(), pinned.end(), pinned_.begin(), pinned_.end(), same)) pinsBehind_ = true;
  behind_ = behind_ || trace != trace_;
  trace_ = std::move(trace);
  pinned_ = pinned;
  if (visible_) catchUp();
}

bool PanelDock::hasPending() const {
  return std::ranges::any_of(kind_table(), [this](const KindInfo& row) {
    return panel_->needs().has(row.kind) && !(trace_ && trace_->info.absent.contains(row.kind)) && questions_.isPending(row.kind);
  });
}

bool PanelDock::answered() const {
  if (panel_->emptyReason().isEmpty() || !panel_->isOfRun()) return true;
  const Kinds needs = panel_->needs();
  return !needs.empty() && given_ && std::ranges::all_of(kind_table(), [&](const KindInfo& row) {
    return !needs.has(row.kind) || given_->info.absent.contains(row.kind);
  });
}

bool PanelDock::keeps() const { return keepsPicture(*panel_, given_.get(), trace_.get(), questions_); }

void PanelDock::contextMenuEvent(QContextMenuEvent* event) {
  // The menu key anywhere in the panel, or a right click on its title.
  if (event->reason() == QContextMenuEvent::Mouse && !header()->geometry().contains(event->pos())) return FlatDock::contextMenuEvent(event);
  const auto* more = header()->findChild<QToolButton*>("more");
  menu_->popup(event->reason() == QContextMenuEvent::Mouse ? event->globalPos() : more->mapToGlobal(QPoint(0, more->height())));
  event->accept();
}

void PanelDock::catchUp() {
  // Where the picture of the run stays, dimmed, so do those of the runs beside it.
  if (pinsBehind_ && !(pinsMayWait_ && behind_ && keeps())) {
    pinsBehind_ = false;
    pinsGiven_ = pinned_;
    std::vector<Panel::Run> drawn = pinned_;
    std::erase_if(drawn, [this](const Panel::Run& run) { return !hasPicture(*panel_, run); });
    panel_->setPinned(drawn);
  }
  const bool pending = hasPending();
  if (behind_ && !keeps()) {
    behind_ = false;
    panel_->setFormer(pending ? former_ : nullptr);
    panel_->setTrace(trace_);
    given_ = trace_;
    veil_->cover({});
    dimSoon_.stop();
    emit traceGiven();
  }
  if (!pending && given_ == trace_) {
    panel_->setFormer(nullptr);
    former_ = given_;
  }
  name();
  panel_->setTimeRange(time_->first(), time_->last());
  panel_->setTime(time_->step());
  header()->setHeadline(withheld_ ? QString() : panel_->headline());
}

void PanelDock::askAgain() {
  if (visible_) catchUp();
}

void PanelDock::name() {
  if (!given_ || !panel_->isOfRun() || !panel_->emptyReason().isEmpty() || questions_.former(given_).isEmpty()) {
    dimSoon_.stop();
    veil_->cover({});
  } else if (!veil_->name().isEmpty()) {
    veil_->cover(questions_.former(given_));
  } else if (!dimSoon_.isActive()) {
    dimSoon_.start();
  }
}

QString PanelDock::formerName() const { return veil_->name(); }

void PanelDock::withhold(const QString& words) {
  veil_->withhold(words);
  withheld_ = !words.isEmpty();
  header()->setHeadline(withheld_ ? QString() : panel_->headline());
}

/// "lstm-gradients.pdf"
QString PanelDock::fileName(const QString& suffix) const {
  return stemOf(*panel_, given_ ? QString::fromStdString(given_->info.preset) : QString()) + '.' + suffix;
}

void PanelDock::save(Panel::Format format) {
  panel_->finish();
  if (const QString reason = panel_->emptyReason(); !reason.isEmpty())
    return emit said(tr("There is no figure of %1: %2").arg(panel_->title(), reason), true);
  const QString stem = stemOf(*panel_, given_ ? QString::fromStdString(given_->info.preset) : QString());
  const auto answer = chooser_->figure(this, {tr("Save %1").arg(panel_->title()), {stem}, format});
  if (!answer) return;
  const QString sentence = saveFigure(panel_, *answer);
  emit said(sentence.isEmpty() ? tr("%1 is in %2.").arg(panel_->title(), answer->file()) : sentence, !sentence.isEmpty());
}

void PanelDock::saveData() {
  panel_->finish();
  const QString text = panel_->dataAsCsv();
  if (text.isEmpty()) return emit said(tr("%1 has no data yet: %2").arg(panel_->title(), panel_->emptyReason()), true);
  QString file =
      chooser_->save(this, tr("Save the data of %1").arg(panel_->title()), fileName("csv"), tr("Comma separated values (*.csv)"));
  if (file.isEmpty()) return;
  if (!file.contains('.')) file += ".csv";
  const QString sentence = writeText(file, text);
  emit said(sentence.isEmpty() ? tr("The data of %1 are in %2.").arg(panel_->title(), file) : sentence, !sentence.isEmpty());
}

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
    connect(made->panel(), &Panel::requested, this, &PanelArea::requested);
    const auto byHand = [this] {
      if (!arranging_ && enlarged_ == nullptr) own_ = true;
    };
    connect(made, &QDockWidget::topLevelChanged, this, byHand);
    connect(made->toggleViewAction(), &QAction::triggered, this, [this, made, byHand](bool shown) {
      byHand();
      if (shown) open(made);
    });
    connect(made, &PanelDock::hiddenByHand, this, byHand);
  }
  new AlignedTimes(this);
  soon_.setSingleShot(true);
  soon_.setInterval(120);
  connect(&soon_, &QTimer::timeout, this, &PanelArea::fitRoom);
  arrange(layouts().front());
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
  for (const PanelDock* dock : docks_) dock->panel()->setSettings(settings);
}

void PanelArea::setNoCuda(const QString& why) {
  for (const PanelDock* dock : docks_) dock->panel()->setNoCuda(why);
}

void PanelArea::setStudyState(const std::string& study, const StudyState& state) {
  for (const PanelDock* dock : docks_) dock->panel()->setStudyState(study, state);
}

void PanelArea::setResult(const std::string& study, const StudyResult& result, const QString& problem) {
  for (const PanelDock* dock : docks_) dock->panel()->setResult(study, result, problem);
}

bool PanelArea::inSight(Kind kind) const {
  return std::ranges::any_of(docks_, [kind](const PanelDock* dock) { return dock->inSight() && dock->panel()->needs().has(kind); });
}

PanelDock* PanelArea::dock(const QString& id) const {
  const auto found = std::find_if(docks_.begin(), docks_.end(), [&](PanelDock* one) { return one->panel()->id() == id; });
  return found == docks_.end() ? nullptr : *found;
}

QStringList PanelArea::visiblePanels() const {
  QStringList ids;
  for (PanelDock* one : docks_)
    if (!one->isHidden() && (one->inSight() || !one->panel()->needs().has_any(pairwiseKinds()))) ids << one->panel()->id();
  return ids;
}

Kinds PanelArea::waitedFor() const {
  Kinds all;
  for (const PanelDock* one : docks_)
    if (one->inSight()) all.add(one->panel()->waitsFor());
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
  for (PanelDock* one : docks_) one->panel()->holdAxes(hold);
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
  for (PanelDock* one : docks_) one->panel()->setProperty("modelHas", what);
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
    if (!isArranged(one)) now.without << one->panel()->id();
  return now;
}

bool PanelArea::restorePlaces(const Places& places, int version) {
  // restoreState() takes every dock of the area that a state does not have into it, and shows it: those stand aside.
  QWidget aside(this);
  std::vector<PanelDock*> away;
  for (PanelDock* one : docks_)
    if (places.without.contains(one->panel()->id())) {
      removeDockWidget(one);
      one->setParent(&aside);
      away.push_back(one);
    }
  const bool whole = restoreState(places.state, version);
  for (PanelDock* one : away) {
    one->setParent(this);
    one->hide();
  }
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
