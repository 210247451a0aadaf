// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/comparing/side_by_side.h"

#include <QGridLayout>
#include <QLabel>
#include <QScrollArea>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "gui/comparing/linked_axes.h"
#include "gui/look/look.h"
#include "plain_text.h"
#include "plot/aligned_times.h"

namespace reclab {
namespace {

constexpr QSize leastBeside(212, 136);  // three of them beside each other in a window of 1000
constexpr std::size_t mostBeside = 3;

/// A panel of kinds that a run records, beyond its input.
bool isOffered(const PanelInfo& info) {
  return std::ranges::any_of(
      kind_table(), [&](const KindInfo& row) { return info.needs.has(row.kind) && row.kind != Kind::input && row.stage != Stage::asked; });
}

}  // namespace

SideBySide::SideBySide(TimeLink* time, QWidget* parent) : QWidget(parent), time_(time), menu_(new QMenu(this)) {
  setObjectName("sideBySide");
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  auto* bar = new QWidget(this);
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(8, 4, 8, 4);
  row->addWidget(label(tr("Side by side"), "title", bar));
  auto* shared = label(tr("one cursor, one range of steps, one range of values for curves and eigenvalues"), "muted", bar);
  shared->setToolTip(tr("Colours of maps, paths in three dimensions and gates without fixed ends have the range of each run."));
  row->addWidget(shared);
  row->addStretch();
  auto* which = new QToolButton(bar);
  which->setObjectName("field");
  which->setText(tr("Panels ▾"));
  which->setToolTip(tr("Which panels each run is shown in"));
  which->setPopupMode(QToolButton::InstantPopup);
  which->setMenu(menu_);
  row->addWidget(which);
  auto* shut = new QToolButton(bar);
  shut->setIcon(icon("close", QPalette::Dark));
  shut->setToolTip(tr("All runs in one picture again"));
  connect(shut, &QToolButton::clicked, this, &SideBySide::closeWanted);
  row->addWidget(shut);
  column->addWidget(bar);
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setAccessibleName(tr("Runs side by side"));
  scroll->setFrameShape(QFrame::NoFrame);
  sheet_ = new QWidget;
  grid_ = new QGridLayout(sheet_);
  grid_->setContentsMargins(4, 0, 4, 4);
  grid_->setSpacing(6);
  scroll->setWidget(sheet_);
  column->addWidget(scroll, 1);
  for (const PanelInfo& info : panels()) {
    if (!isOffered(info)) continue;
    QAction* one = menu_->addAction(info.title);
    one->setData(info.id);
    one->setCheckable(true);
    connect(one, &QAction::triggered, this, [this] {
      QStringList ids;
      for (const QAction* action : menu_->actions())
        if (action->isChecked()) ids << action->data().toString();
      setKinds(ids);
    });
  }
  QStringList usual;  // panels of kinds that most models have
  for (const Kind kind : {Kind::spectrum, Kind::gradient})
    if (const auto info = std::ranges::find_if(panels(), [kind](const PanelInfo& one) { return one.needs.has(kind); });
        info != panels().end())
      usual << info->id;
  setKinds(usual);
  connect(time_, &TimeLink::stepChanged, this, [this](std::int64_t step) {
    if (!isVisible()) return;
    for (const Card& card : cards_)
      for (const Cell& cell : card.cells) cell.panel->setTime(step);
  });
  connect(time_, &TimeLink::rangeChanged, this, [this](std::int64_t first, std::int64_t last) {
    if (!isVisible()) return;
    for (const Card& card : cards_)
      for (const Cell& cell : card.cells) cell.panel->setTimeRange(first, last);
  });
}

void SideBySide::setKinds(const QStringList& ids) {
  QStringList known;
  for (QAction* action : menu_->actions()) {
    const QString id = action->data().toString();
    action->setChecked(ids.contains(id));
    if (ids.contains(id)) known << id;
  }
  if (known.isEmpty()) {  // one at least
    for (QAction* action : menu_->actions()) action->setChecked(kinds_.contains(action->data().toString()));
    return;
  }
  if (std::exchange(kinds_, known) == known) return;
  for (const Card& card : cards_) delete card.frame;
  cards_.clear();
  if (isVisible()) build();
  emit kindsChanged();
}

void SideBySide::setRuns(const std::vector<Panel::Run>& runs) {
  runs_ = runs;
  if (isVisible()) build();
}

void SideBySide::askAgain() {
  if (isVisible() && cards_.size() == runs_.size()) fill();
}

void SideBySide::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  build();
}

SideBySide::Card SideBySide::makeCard() {
  Card card;
  card.frame = new QWidget(sheet_);
  card.frame->setObjectName("paper");
  card.frame->setAttribute(Qt::WA_StyledBackground);
  auto* column = new QVBoxLayout(card.frame);
  column->setContentsMargins(6, 4, 6, 4);
  column->setSpacing(2);
  auto* row = new QHBoxLayout;
  row->setSpacing(6);
  card.dot = plainLabel({}, card.frame);
  card.dot->setFixedSize(9, 9);
  row->addWidget(card.dot);
  card.name = new ElidedLabel;
  card.name->setTextFormat(Qt::PlainText);
  row->addWidget(card.name, 1);
  column->addLayout(row);
  for (const QString& id : kinds_) {
    const auto info = std::ranges::find(panels(), id, &PanelInfo::id);
    Cell cell;
    cell.id = id;
    cell.head = new ElidedLabel;
    cell.head->setProperty("role", "muted");
    cell.head->setFont(smallFont());
    cell.panel = info->make(card.frame);
    cell.panel->setMinimumSize(leastBeside);
    column->addWidget(cell.head);
    column->addWidget(cell.panel, 1);
    const auto tell = [title = info->title, head = cell.head, panel = cell.panel] {
      head->setText(panel->headline().isEmpty() ? title : title + QStringLiteral("   ") + panel->headline());
    };
    connect(cell.panel, &Panel::headlineChanged, cell.head, tell);
    tell();
    connect(cell.panel, &Panel::timePicked, time_, &TimeLink::setStep);
    connect(cell.panel, &Panel::timeRangePicked, time_, &TimeLink::setRange);
    card.cells.push_back(std::move(cell));
  }
  return card;
}

void SideBySide::build() {
  if (cards_.size() == runs_.size()) return fill();
  while (cards_.size() > runs_.size()) {
    delete cards_.back().frame;
    cards_.pop_back();
  }
  while (cards_.size() < runs_.size()) cards_.push_back(makeCard());
  const std::size_t beside = cards_.size() == 4 ? 2 : std::min(mostBeside, std::max<std::size_t>(1, cards_.size()));
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    const int line = static_cast<int>(i / beside), column = static_cast<int>(i % beside);
    grid_->addWidget(cards_[i].frame, line, column);
    cards_[i].frame->show();
  }
  for (int i = 0; i < static_cast<int>(mostBeside); ++i) {
    grid_->setColumnStretch(i, i < static_cast<int>(beside) ? 1 : 0);
    grid_->setRowStretch(i, static_cast<std::size_t>(i) * beside < cards_.size() ? 1 : 0);
  }
  fill();
  for (QObject* link : std::exchange(links_, {})) delete link;
  links_.push_back(new AlignedTimes(sheet_));
  for (const QString& id : kinds_) {
    std::vector<Panel*> alike;
    for (std::size_t i = 0; i < cards_.size(); ++i) alike.push_back(panel(id, i));
    links_.push_back(new LinkedAxes(alike, this));
  }
}

void SideBySide::fill() {
  for (std::size_t i = 0; i < cards_.size(); ++i) {
    Card& card = cards_[i];
    const Panel::Run& run = runs_[i];
    card.dot->setStyleSheet(QStringLiteral("background:%1; border-radius:4px").arg(run.colour.name()));
    card.name->setText(run.label);
    card.name->setToolTip(safeTip(run.tip));
    for (Cell& cell : card.cells) {
      cell.panel->setOwnColour(run.colour);
      if (cell.given == run.trace && run.trace) continue;
      if (i == 0 && keepsPicture(*cell.panel, cell.given.get(), run.trace.get(), questions_)) continue;
      if (i > 0 && cell.given && run.trace && !hasPicture(*cell.panel, run)) continue;
      cell.given = run.trace;
      cell.panel->setTrace(run.trace);
      cell.panel->setTimeRange(time_->first(), time_->last());
      cell.panel->setTime(time_->step());
    }
  }
}

Panel* SideBySide::panel(const QString& id, std::size_t run) const {
  if (run >= cards_.size()) return nullptr;
  const auto cell = std::ranges::find(cards_[run].cells, id, &Cell::id);
  return cell == cards_[run].cells.end() ? nullptr : cell->panel;
}

}  // namespace reclab
