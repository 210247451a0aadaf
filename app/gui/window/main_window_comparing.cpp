// SPDX-License-Identifier: GPL-3.0-or-later
// What the window does with runs that are compared: the chips in the tool bar, the menu of comparisons, the table of what differs, and all
// side by side.
#include <QMenu>
#include <QStackedWidget>
#include <algorithm>

#include "gui/comparing/compare_dialog.h"
#include "gui/comparing/ready.h"
#include "gui/comparing/side_by_side.h"
#include "gui/docks/panel_area.h"
#include "gui/session/words.h"
#include "gui/views/first_hint.h"
#include "gui/views/pin_chip.h"
#include "gui/views/scrubber.h"
#include "gui/views/status_line.h"
#include "gui/window/main_window.h"
#include "plain_text.h"

namespace reclab {

void MainWindow::pin() {
  const TracePtr& trace = session_->trace();
  if (!trace) return say(tr("There is no run to pin yet."), Tone::info);
  if (const QString why = pins_->add(session_->shownSetup(), trace, session_->shownProbe()); !why.isEmpty()) say(why, Tone::warning);
}

void MainWindow::showPins() {
  const std::vector<Pin>& pins = pins_->pins();
  // The keyboard stays with the runs, or goes to the time; left alone it would fall on whatever button comes next, which then looks picked.
  const bool on_chips = focusWidget() != nullptr && chips_->isAncestorOf(focusWidget());
  while (chips_->chips().size() > pins.size()) chips_->removeLast();
  if (on_chips && (focusWidget() == nullptr || !chips_->isAncestorOf(focusWidget()) || focusWidget()->isHidden()))
    (chips_->chips().empty() ? static_cast<QWidget*>(scrubber_->strip()) : chips_->chips().back())->setFocus(Qt::OtherFocusReason);
  while (chips_->chips().size() < pins.size()) chips_->add(makeChip(chips_->chips().size()));
  for (std::size_t i = 0; i < pins.size(); ++i) chips_->chips()[i]->show(pins[i]);
  fitToolBar();
  chips_->fit();
  tellCard();
  area_->setRuns(session_->trace(), pins_->runs());
  if (side_ != nullptr && side_->isVisible()) side_->setRuns(compared());
  tellLearning();
}

PinChip* MainWindow::makeChip(std::size_t index) {
  auto* chip = new PinChip;
  connect(chip, &PinChip::renamed, this, [this, index](const QString& name) { pins_->rename(index, name); });
  connect(chip, &PinChip::unpinWanted, this, [this, index] { pins_->remove(index); });
  connect(chip, &PinChip::compareWanted, this, &MainWindow::comparePins);
  connect(chip, &PinChip::lookWanted, this, [this, index] {
    Setup after = pins_->setupOf(index);
    after.sequence = session_->setup().sequence;
    change(after, tr("back to %1").arg(pins_->pins()[index].name));
  });
  chip->setTip([this, index]() -> QString {
    if (index >= pins_->pins().size()) return {};
    const Pin& pin = pins_->pins()[index];
    QString text;
    if (!pin.problem.isEmpty())
      text = tr("<p>It cannot be run on the input that is shown: %1</p>").arg(pin.problem.toHtmlEscaped());
    else if (!pin.comparable)
      text = tr("<p>It is run again on the input that is shown.</p>");
    return htmlTip(text + pins_->table(index) + tr("<p>Double-click or F2 renames it.</p>"));
  });
  return chip;
}

void MainWindow::comparePins() { (new CompareDialog(pins_, chooser_, this))->open(); }

/// The runs that are compared, as panels have them: the one that is looked at first.
std::vector<Panel::Run> MainWindow::compared() const {
  const std::vector<Pins::Column> columns = pins_->columns();
  std::vector<Panel::Run> all{{session_->trace(), columns.front().colour, columns.front().name, tr("The run that is looked at")}};
  for (Panel::Run& run : pins_->runs()) all.push_back(std::move(run));
  return all;
}

void MainWindow::showSideBySide(bool on) {
  if (on && side_ == nullptr) {
    side_ = new SideBySide(time_, middle_);
    middle_->addWidget(side_);
    side_->setQuestions(
        {[this](Kind kind) { return session_->awaits(kind); }, [this](const TracePtr& trace) { return session_->nameOfFormer(trace); }});
    connect(session_, &SessionController::awaitedChanged, side_, &SideBySide::askAgain);
    connect(side_, &SideBySide::closeWanted, action("sideBySide"), &QAction::trigger);
    connect(side_, &SideBySide::kindsChanged, this, &MainWindow::tellVisible);
  }
  if (on) {
    side_->setRuns(compared());
    middle_->setCurrentWidget(side_);
  } else {
    middle_->setCurrentWidget(area_);
  }
  tellVisible();
}

void MainWindow::tellVisible() {
  QStringList visible = area_->visiblePanels();
  if (side_ != nullptr && middle_->currentWidget() == side_) visible << side_->kinds();
  visible.removeDuplicates();
  session_->setVisiblePanels(visible);
  pins_->setProbe(probeFor(visible, false));
  session_->setTimingInSight(area_->inSight(Kind::timing));
}

void MainWindow::compareRuns(const ReadyComparison& which) {
  std::vector<Setup> runs = which.runs;
  if (runs.empty()) return;
  // What is looked at stays so where it is one of them.
  const auto own = std::ranges::find_if(runs, [this](const Setup& one) { return one.sameRun(session_->setup()); });
  const Setup first = own == runs.end() ? runs.front() : *own;
  runs.erase(own == runs.end() ? runs.begin() : own);
  std::erase_if(runs, [this](const Setup& one) { return pins_->has(one); });
  if (pins_->pins().size() + runs.size() > Pins::most) {
    say(tr("%1 are %2 runs beside the one that is looked at, and %3 of %4 are pinned already.")
            .arg(which.title)
            .arg(runs.size())
            .arg(pins_->pins().size())
            .arg(Pins::most),
        Tone::warning);
    return banner_->offer(tr("Unpin those"), [this, which] {
      banner_->hide();
      unpinAll();
      compareRuns(which);
    });
  }
  if (!first.sameRun(session_->setup())) change(first, tr("comparing %1").arg(which.title));
  for (const Setup& one : runs) pins_->add(one, nullptr, {});
  hint_->done(FirstHint::pin);
}

void MainWindow::unpinAll() {
  while (!pins_->pins().empty()) pins_->remove(pins_->pins().size() - 1);
}

void MainWindow::buildCompareMenu() {
  compare_ = new QMenu(tr("Compare"), this);
  compare_->setObjectName("compareMenu");
  compare_->setIcon(icon("compare"));
  compare_->setToolTipsVisible(true);
  QAction* side = add("sideBySide", "compare", tr("Side by side"), QKeySequence(tr("Ctrl+B")),
                      [this] { showSideBySide(action("sideBySide")->isChecked()); });
  side->setCheckable(true);
  side->setToolTip(tr("Each run in panels of its own, with the same axes, or all in one picture (Ctrl+B)"));
  QAction* table = add("differences", "table", tr("What differs…"), QKeySequence(tr("Ctrl+D")), [this] { comparePins(); });
  table->setToolTip(tr("A table of settings, weights and numbers, to be saved as CSV (Ctrl+D)"));
  add("unpinAll", "close", tr("Unpin all"), {}, [this] { unpinAll(); });
  connect(compare_, &QMenu::aboutToShow, this, &MainWindow::fillCompareMenu);
}

void MainWindow::fillCompareMenu() {
  compare_->clear();
  const Setup& now = session_->setup();
  if (!session_->library() || !now.sequence) return;
  const auto offer = [this](QMenu* menu, const ReadyComparison& one) {
    menu->addAction(buttonText(one.title), this, [this, one] { compareRuns(one); })->setToolTip(safeTip(one.why));
  };
  try {
    for (const ReadyComparison& one : readyComparisons(dataFile("comparisons.json"), *session_->library(), now)) offer(compare_, one);
  } catch (const Error& error) {
    say(inWindowWords(error), Tone::warning);
  }
  compare_->addSeparator();
  if (const ModelPtr& model = session_->model(); model && model->preset.id == now.preset)
    for (const ReadyComparison& one : comparisonsOf(*model, now)) offer(compare_, one);
  if (const ReadyComparison along = alongTraining(); along.runs.size() > 1) offer(compare_, along);
  QMenu* others = compare_->addMenu(tr("With another model"));
  QMenu* family = nullptr;
  std::string of;
  for (const Preset& preset : session_->library()->presets.presets()) {
    if (preset.id == now.preset) continue;
    if (family == nullptr || preset.family != of) family = others->addMenu(QString::fromStdString(of = preset.family).replace('-', ' '));
    Setup beside = now;
    beside.preset = preset.id;
    beside.form = "auto";
    const QString title = QString::fromStdString(preset.title);
    family->addAction(buttonText(title), this, [this, beside] {
      if (const QString why = pins_->add(beside, nullptr, {}); !why.isEmpty()) say(why, Tone::warning);
    });
  }
  compare_->addSeparator();
  compare_->addActions({action("sideBySide"), action("differences"), action("unpinAll")});
  action("unpinAll")->setEnabled(!pins_->pins().empty());
}

/// The weights that the training that is looked at, or else the newest, had on its way.
ReadyComparison MainWindow::alongTraining() const {
  ReadyComparison along{tr("Along its training"), tr("The weights after some of its steps, from the first to the last that are kept"), {}};
  const LearningPtr& learning = session_->learning();
  const LearningCurve* curve = learning ? learning->find(learning->shown != 0 ? learning->shown : learning->current) : nullptr;
  if (curve == nullptr || curve->kept.size() < 2) return along;
  const std::size_t count = std::min<std::size_t>(curve->kept.size(), 5);
  for (std::size_t i = 0; i < count; ++i)
    if (const auto setup = session_->setupAt(curve->training, curve->kept[(count - 1 - i) * (curve->kept.size() - 1) / (count - 1)]))
      along.runs.push_back(*setup);
  return along;
}

}  // namespace reclab
