// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/comparing/comparing_feature.h"

#include <QMainWindow>
#include <QMenu>
#include <QStackedWidget>
#include <QToolButton>
#include <QUndoStack>
#include <QWidgetAction>
#include <algorithm>
#include <utility>

#include "gui/comparing/compare_dialog.h"
#include "gui/comparing/side_by_side.h"
#include "gui/docks/panel_area.h"
#include "gui/frame/lab.h"
#include "gui/frame/window_frame.h"
#include "gui/look/look.h"
#include "gui/session/pins.h"
#include "gui/session/sentences.h"
#include "gui/session/session_controller.h"
#include "gui/views/pin_chip.h"
#include "gui/views/status_line.h"
#include "plain_text.h"
#include "window_text.h"

namespace reclab {

ComparingFeature::ComparingFeature(WindowFrame* frame)
    : QObject(frame), frame_(frame), session_(frame->session()), pins_(frame->pins()), chips_(new PinRow), button_(new QToolButton) {
  buildActions();
  connect(pins_, &Pins::changed, this, &ComparingFeature::showPins);
  connect(frame_->look(), &Look::changed, this, &ComparingFeature::showPins);  // their colours are those of the ground
  connect(frame_->area(), &PanelArea::visiblePanelsChanged, this, &ComparingFeature::tellVisible);
  connect(frame_, &WindowFrame::roomChanged, this, [this](bool narrow) {
    narrow_ = narrow;
    fit();
  });
  tellVisible();
  frame_->lab()->add({"sideBySide", tr("side by side"),
                      [this]() -> QVariantMap {
                        if (!frame_->action("sideBySide")->isChecked()) return {};
                        return {{"panels", side_->kinds()}};
                      },
                      [this](const QVariantMap& saved) {
                        if (saved.isEmpty() == frame_->action("sideBySide")->isChecked()) frame_->action("sideBySide")->trigger();
                        if (!saved.isEmpty()) side_->setKinds(saved["panels"].toStringList());
                      },
                      true});
}

void ComparingFeature::buildActions() {
  QAction* pinned = frame_->add("pin", "pin", tr("Pin for comparison"), QKeySequence(tr("Ctrl+P")), [this] { pin(); });
  pinned->setToolTip(tr("Keep this run in the plots beside those that follow (Ctrl+P)"));
  QAction* side = frame_->add("sideBySide", "compare", tr("Side by side"), QKeySequence(tr("Ctrl+B")),
                              [this] { showSideBySide(frame_->action("sideBySide")->isChecked()); });
  side->setCheckable(true);
  side->setToolTip(tr("Each run in panels of its own, with the same axes, or all in one picture (Ctrl+B)"));
  QAction* table = frame_->add("differences", "table", tr("What differs…"), QKeySequence(tr("Ctrl+D")), [this] { showTable(); });
  table->setToolTip(tr("A table of settings, weights and numbers, to be saved as CSV (Ctrl+D)"));
  WindowFrame::setWhyNot(frame_->add("unpinAll", "close", tr("Unpin all"), {}, [this] { unpinAll(); }), tr("No run is pinned."));

  menu_ = new QMenu(tr("Compare"), frame_->window());
  menu_->setObjectName("compareMenu");
  menu_->setIcon(icon("compare"));
  menu_->setToolTipsVisible(true);
  connect(menu_, &QMenu::aboutToShow, this, &ComparingFeature::fillMenu);
  button_->setObjectName("compareButton");
  button_->setIcon(icon("compare"));
  button_->setText(tr("Compare"));
  button_->setToolTip(tr("Runs beside this one, on the same input: other models, settings, seeds, steps of training"));
  button_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  button_->setPopupMode(QToolButton::InstantPopup);
  button_->setMenu(menu_);
  frame_->offer(ActionPlace::barCompare, pinned);
  const auto place = [this](QWidget* widget) {
    auto* inBar = new QWidgetAction(frame_->window());
    inBar->setDefaultWidget(widget);
    frame_->offer(ActionPlace::barCompare, inBar);
    return inBar;
  };
  buttonPlace_ = place(button_);
  place(chips_);
  frame_->offer(ActionPlace::runCompare, pinned);
  frame_->offer(ActionPlace::runCompare, menu_->menuAction());
}

void ComparingFeature::fit() {
  const int width = frame_->window()->width();
  const bool words = !narrow_ && width >= 1400 && chips_->chips().size() < 3;
  for (QToolButton* button : {WindowFrame::buttonOf(frame_->action("pin")), button_})
    button->setToolButtonStyle(words ? Qt::ToolButtonTextBesideIcon : Qt::ToolButtonIconOnly);
  // Where there is hardly room for them as dots, comparisons are in the menu alone (Run ▸ Compare).
  buttonPlace_->setVisible(width >= 900);
}

void ComparingFeature::pin() {
  if (session_->streams()) {  // what is pinned is kept
    session_->holdStream();
    return add(session_->setup(), {}, {});
  }
  const TracePtr& trace = session_->trace();
  if (!trace) return frame_->say(tr("There is no run to pin yet."));
  add(session_->shownSetup(), trace, session_->shownRecording());
}

void ComparingFeature::add(const Setup& setup, const TracePtr& trace, const RecordingOptions& recording) {
  QString why;
  change(tr("pin"), [&] { why = pins_->add(setup, trace, recording); });
  if (!why.isEmpty()) frame_->say(why, Tone::warning);
}

void ComparingFeature::change(const QString& text, const std::function<void()>& does) { frame_->lab()->change(text, does); }

void ComparingFeature::showPins() {
  const std::vector<Pin>& pins = pins_->pins();
  // The keyboard stays with the runs, or goes to the time; left alone it would fall on the next button, which then looks picked.
  const auto holder = [this] {
    const QWidget* focus = frame_->window()->focusWidget();
    return focus != nullptr && chips_->isAncestorOf(focus) ? focus : nullptr;
  };
  const bool held = holder() != nullptr;
  while (chips_->chips().size() > pins.size()) chips_->removeLast();
  if (const QWidget* now = holder(); held && (now == nullptr || now->isHidden())) {
    if (chips_->chips().empty())
      emit keyboardFree();
    else
      chips_->chips().back()->setFocus(Qt::OtherFocusReason);
  }
  while (chips_->chips().size() < pins.size()) chips_->add(makeChip(chips_->chips().size()));
  for (std::size_t i = 0; i < pins.size(); ++i) chips_->chips()[i]->show(pins[i]);
  fit();
  chips_->fit();
  showRuns();
}

void ComparingFeature::showRuns() {
  frame_->area()->setRuns(session_->trace(), pins_->runs());
  if (side_ != nullptr && side_->isVisible()) side_->setRuns(compared());
}

PinChip* ComparingFeature::makeChip(std::size_t index) {
  auto* chip = new PinChip;
  connect(chip, &PinChip::renamed, this,
          [this, index](const QString& name) { change(tr("name of a pin"), [&] { pins_->rename(index, name); }); });
  connect(chip, &PinChip::unpinWanted, this, [this, index] { change(tr("unpin"), [&] { pins_->remove(index); }); });
  connect(chip, &PinChip::compareWanted, this, &ComparingFeature::showTable);
  connect(chip, &PinChip::lookWanted, this, [this, index] {
    Setup after = pins_->setupOf(index);
    after.sequence = session_->setup().sequence;
    frame_->change(after, tr("back to %1").arg(pins_->pins()[index].name));
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

void ComparingFeature::showTable() { (new CompareDialog(pins_, *frame_->chooser(), frame_->window()))->open(); }

/// The runs that are compared, as panels have them: the one that is looked at first.
std::vector<Panel::Run> ComparingFeature::compared() const {
  const std::vector<Pins::Column> columns = pins_->columns();
  std::vector<Panel::Run> all{{session_->trace(), columns.front().colour, columns.front().name, tr("The run that is looked at")}};
  for (Panel::Run& run : pins_->runs()) all.push_back(std::move(run));
  return all;
}

void ComparingFeature::showSideBySide(bool on) {
  if (on && side_ == nullptr) {
    side_ = new SideBySide(frame_->time(), frame_->middle());
    frame_->middle()->addWidget(side_);
    side_->setQuestions(
        {[this](Kind kind) { return session_->isPending(kind); }, [this](const TracePtr& trace) { return session_->nameOfFormer(trace); }});
    connect(session_, &SessionController::pendingChanged, side_, &SideBySide::askAgain);
    connect(side_, &SideBySide::closeWanted, frame_->action("sideBySide"), &QAction::trigger);
    connect(side_, &SideBySide::kindsChanged, this, &ComparingFeature::tellVisible);
  }
  if (on) {
    side_->setRuns(compared());
    frame_->middle()->setCurrentWidget(side_);
  } else {
    frame_->middle()->setCurrentWidget(frame_->area());
  }
  tellVisible();
}

void ComparingFeature::tellVisible() {
  QStringList visible = frame_->area()->visiblePanels();
  if (side_ != nullptr && frame_->middle()->currentWidget() == side_) visible << side_->kinds();
  visible.removeDuplicates();
  session_->setVisiblePanels(visible);
  pins_->setRecording(recordingFor(visible, false));
  session_->setTimingInSight(frame_->area()->inSight(Kind::timing));
}

void ComparingFeature::compare(const ReadyComparison& which) {
  std::vector<Setup> runs = which.runs;
  if (runs.empty()) return;
  // The current run stays current where it is one of them.
  const auto own = std::ranges::find_if(runs, [this](const Setup& one) { return one.sameRun(session_->setup()); });
  const Setup first = own == runs.end() ? runs.front() : *own;
  runs.erase(own == runs.end() ? runs.begin() : own);
  std::erase_if(runs, [this](const Setup& one) { return pins_->has(one); });
  if (pins_->pins().size() + runs.size() > Pins::most) {
    frame_->say(tr("%1 are %2 runs beside the one that is looked at, and %3 of %4 are pinned already.")
                    .arg(which.title)
                    .arg(runs.size())
                    .arg(pins_->pins().size())
                    .arg(Pins::most),
                Tone::warning);
    return frame_->banner()->offer(tr("Unpin those"), [this, which] {
      frame_->banner()->hide();
      unpinAll();
      compare(which);
    });
  }
  const bool goes = !first.sameRun(session_->setup());
  if (goes || !runs.empty()) {
    change(tr("comparing %1").arg(which.title), [&] {
      if (goes) session_->apply(first, false);
      for (const Setup& one : runs) pins_->add(one, nullptr, {});
    });
  }
}

void ComparingFeature::unpinAll() {
  change(tr("unpin of all"), [this] {
    while (!pins_->pins().empty()) pins_->remove(pins_->pins().size() - 1);
  });
}

void ComparingFeature::fillMenu() {
  menu_->clear();
  const Setup& now = session_->setup();
  if (!session_->library() || !now.sequence) return;
  const auto offer = [this](QMenu* menu, const ReadyComparison& one) {
    menu->addAction(buttonText(one.title), this, [this, one] { compare(one); })->setToolTip(safeTip(one.why));
  };
  try {
    for (const ReadyComparison& one : readyComparisons(dataFile("comparisons.json"), *session_->library(), now)) offer(menu_, one);
  } catch (const Error& error) {
    frame_->say(windowText(error), Tone::warning);
  }
  menu_->addSeparator();
  if (const ModelPtr& model = session_->model(); model && model->preset.id == now.preset)
    for (const ReadyComparison& one : comparisonsOf(*model, now)) offer(menu_, one);
  if (const ReadyComparison along = alongTraining(); along.runs.size() > 1) offer(menu_, along);
  QMenu* others = menu_->addMenu(tr("With another model"));
  QMenu* family = nullptr;
  std::string of;
  for (const Preset& preset : session_->library()->presets.presets()) {
    if (preset.id == now.preset) continue;
    if (family == nullptr || preset.family != of) family = others->addMenu(QString::fromStdString(of = preset.family).replace('-', ' '));
    Setup beside = now;
    beside.preset = preset.id;
    beside.form = "auto";
    const QString title = QString::fromStdString(preset.title);
    family->addAction(buttonText(title), this, [this, beside] { add(beside, nullptr, {}); });
  }
  menu_->addSeparator();
  menu_->addActions({frame_->action("sideBySide"), frame_->action("differences"), frame_->action("unpinAll")});
  frame_->action("unpinAll")->setEnabled(!pins_->pins().empty());
}

/// The weights that the training that is looked at, or else the newest, had on its way.
ReadyComparison ComparingFeature::alongTraining() const {
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
