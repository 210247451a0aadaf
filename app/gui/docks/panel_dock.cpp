// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/docks/panel_dock.h"

#include <QContextMenuEvent>
#include <QLabel>
#include <QMenu>
#include <QToolButton>
#include <QVBoxLayout>
#include <QWidgetAction>
#include <algorithm>

#include "gui/docks/panel_choices.h"
#include "gui/docks/veil.h"
#include "gui/look/look.h"
#include "plain_text.h"

namespace reclab {
namespace {

constexpr int soon = 250;  // ms; a picture that is renewed sooner is not dimmed, so that nothing flickers while a slider moves

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
    : FlatDock("panel." + info.id, info.title, parent),
      info_(info),
      paper_(new QWidget(this)),
      time_(time),
      chooser_(chooser),
      menu_(new QMenu(this)) {
  paper_->setObjectName("paper");
  paper_->setAttribute(Qt::WA_StyledBackground);
  auto* column = new QVBoxLayout(paper_);
  column->setContentsMargins(4, 2, 4, 4);
  paper_->setMinimumSize(220, 120);  // its own, so that the size hints of a panel's controls change no layout
  setWidget(paper_);
  dimSoon_.setSingleShot(true);
  dimSoon_.setInterval(soon);
  connect(&dimSoon_, &QTimer::timeout, this, [this] { veil_->cover(questions_.former(given_)); });
  header()->setToolTip(safeTip(info.hint));

  auto* larger = header()->addButton("enlarge", tr("Only this panel, or all again (double-click on the title does the same)"));
  connect(larger, &QToolButton::clicked, this, &PanelDock::enlargeWanted);
  connect(header(), &FlatHeader::doubleClicked, this, &PanelDock::enlargeWanted);
  auto* more = header()->addButton("menu", tr("Save, copy, data"));
  more->setObjectName("more");
  more->setFocusPolicy(Qt::TabFocus);
  more->setMenu(menu_);
  more->setPopupMode(QToolButton::InstantPopup);

  connect(time_, &TimeLink::stepChanged, this, [this](std::int64_t step) {
    if (visible_ && panel_ != nullptr) panel_->setTime(step);
  });
  connect(time_, &TimeLink::rangeChanged, this, [this](std::int64_t first, std::int64_t last) {
    if (visible_ && panel_ != nullptr) panel_->setTimeRange(first, last);
  });
  connect(this, &QDockWidget::visibilityChanged, this, [this](bool visible) {
    visible_ = visible && isVisible();  // a tab that comes to the front is told so even where the whole area is out of sight
    emit shownChanged();                // first, so that missing kinds are requested early
    follow();
  });
}

Panel* PanelDock::panel() {
  if (panel_ == nullptr) {
    make();
    if (visible_) catchUp();
  }
  return panel_;
}

void PanelDock::make() {
  panel_ = info_.make(paper_);
  paper_->layout()->addWidget(panel_);
  veil_ = new Veil(panel_);
  if (!withheld_.isEmpty()) veil_->withhold(withheld_);
  connect(panel_, &Panel::headlineChanged, this, [this] { header()->setHeadline(withheld_.isEmpty() ? panel_->headline() : QString()); });
  connect(panel_, &Panel::timePicked, time_, &TimeLink::setStep);
  connect(panel_, &Panel::timeRangePicked, time_, &TimeLink::setRange);
  fillMenu();
  orderKeyboard();
  emit panelMade();
  for (const auto& [topic, message] : std::exchange(told_, {})) message(*panel_);
  panel_->show();  // a layout shows it only in the next turn of the event loop
}

void PanelDock::fillMenu() {
  using Format = Panel::Format;
  menu_->addAction(icon("image"), tr("Save as PNG…"), this, [this] { save(Format::png); });
  menu_->addAction(icon("vector"), tr("Save as SVG…"), this, [this] { save(Format::svg); });
  menu_->addAction(icon("vector"), tr("Save as PDF…"), this, [this] { save(Format::pdf); });
  menu_->addAction(icon("copy"), tr("Copy as a picture"), this, [this] {
    const bool picture = panel_->emptyReason().isEmpty();
    panel_->copyFigure();
    emit said(picture ? tr("A picture of %1 is in the clipboard.").arg(info_.title)
                      : tr("%1 has no picture; why is in the clipboard, in words.").arg(info_.title),
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
  auto* hint = label(info_.hint, "muted");
  hint->setWordWrap(true);
  hint->setFixedWidth(280);
  hint->setContentsMargins(10, 6, 10, 8);
  hint->setFont(smallFont());
  hint->setFixedHeight(hint->heightForWidth(280));
  auto* hintAction = new QWidgetAction(menu_);
  hintAction->setDefaultWidget(hint);
  menu_->addAction(hintAction);
}

/// The keyboard goes from the header into the panel, whenever that was made.
void PanelDock::orderKeyboard() {
  std::vector<QWidget*> order{header()->findChild<QToolButton*>("more")};
  for (QWidget* one = panel_->nextInFocusChain(); one != panel_; one = one->nextInFocusChain())
    if (panel_->isAncestorOf(one) && (one->focusPolicy() & Qt::TabFocus) && one->focusProxy() == nullptr) order.push_back(one);
  for (std::size_t i = 1; i < order.size(); ++i) setTabOrder(order[i - 1], order[i]);
}

void PanelDock::tell(const QString& topic, std::function<void(Panel&)> message) {
  if (panel_ != nullptr) return message(*panel_);
  std::erase_if(told_, [&](const auto& one) { return one.first == topic; });
  told_.emplace_back(topic, std::move(message));
}

QVariantMap PanelDock::choices() const {
  if (panel_ == nullptr) return chosen_;
  return choicesIn(*panel_, visible_);
}

void PanelDock::setChoices(const QVariantMap& choices) {
  if (panel_ == nullptr) chosen_ = choices;
  tell("choices", [choices](Panel& panel) {
    if (choices != choicesIn(panel, true)) choose(panel, choices);
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
  follow();
}

bool PanelDock::hasPending() const {
  return std::ranges::any_of(kind_table(), [this](const KindInfo& row) {
    return info_.needs.has(row.kind) && !(trace_ && trace_->info.absent.contains(row.kind)) && questions_.isPending(row.kind);
  });
}

bool PanelDock::answered() const {
  if (panel_ == nullptr) return false;
  if (panel_->emptyReason().isEmpty() || !panel_->isOfRun()) return true;
  const Kinds needs = panel_->needs();
  return !needs.empty() && given_ && std::ranges::all_of(kind_table(), [&](const KindInfo& row) {
    return !needs.has(row.kind) || given_->info.absent.contains(row.kind);
  });
}

/// Only of a panel that is made.
bool PanelDock::keeps() const { return keepsPicture(*panel_, given_.get(), trace_.get(), questions_); }

void PanelDock::contextMenuEvent(QContextMenuEvent* event) {
  // The menu key anywhere in the panel, or a right click on its title.
  if (event->reason() == QContextMenuEvent::Mouse && !header()->geometry().contains(event->pos())) return FlatDock::contextMenuEvent(event);
  const auto* more = header()->findChild<QToolButton*>("more");
  menu_->popup(event->reason() == QContextMenuEvent::Mouse ? event->globalPos() : more->mapToGlobal(QPoint(0, more->height())));
  event->accept();
}

void PanelDock::catchUp() {
  if (panel_ == nullptr) make();
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
  header()->setHeadline(withheld_.isEmpty() ? panel_->headline() : QString());
}

void PanelDock::follow() {
  if (!visible_) return;
  if (panel_ != nullptr)
    catchUp();
  else
    emit panelWanted();
}

void PanelDock::askAgain() { follow(); }

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

QString PanelDock::formerName() const { return veil_ != nullptr ? veil_->name() : QString(); }

void PanelDock::withhold(const QString& words) {
  withheld_ = words;
  if (panel_ == nullptr) return;
  veil_->withhold(words);
  header()->setHeadline(withheld_.isEmpty() ? panel_->headline() : QString());
}

/// "lstm-gradients.pdf"
QString PanelDock::fileName(const QString& suffix) const {
  return stemOf(*panel_, given_ ? QString::fromStdString(given_->info.preset) : QString()) + '.' + suffix;
}

void PanelDock::save(Panel::Format format) {
  panel_->finish();
  if (const QString reason = panel_->emptyReason(); !reason.isEmpty())
    return emit said(tr("There is no figure of %1: %2").arg(info_.title, reason), true);
  const QString stem = stemOf(*panel_, given_ ? QString::fromStdString(given_->info.preset) : QString());
  const auto answer = chooser_->figure(this, {tr("Save %1").arg(info_.title), {stem}, format});
  if (!answer) return;
  const QString sentence = saveFigure(panel_, *answer);
  emit said(sentence.isEmpty() ? tr("%1 is in %2.").arg(info_.title, answer->file()) : sentence, !sentence.isEmpty());
}

void PanelDock::saveData() {
  panel_->finish();
  const QString text = panel_->dataAsCsv();
  if (text.isEmpty()) return emit said(tr("%1 has no data yet: %2").arg(info_.title, panel_->emptyReason()), true);
  QString file = chooser_->save(this, tr("Save the data of %1").arg(info_.title), fileName("csv"), tr("Comma separated values (*.csv)"));
  if (file.isEmpty()) return;
  if (!file.contains('.')) file += ".csv";
  const QString sentence = writeText(file, text);
  emit said(sentence.isEmpty() ? tr("The data of %1 are in %2.").arg(info_.title, file) : sentence, !sentence.isEmpty());
}

}  // namespace reclab
