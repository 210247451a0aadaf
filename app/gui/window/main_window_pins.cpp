// SPDX-License-Identifier: GPL-3.0-or-later
// What the window does with pinned runs: the chips in the tool bar and the table of what differs.
#include <QDialog>
#include <QDialogButtonBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "gui/views/pin_chip.h"
#include "gui/window/main_window.h"
#include "gui/window/panel_area.h"

namespace reclab {

void MainWindow::pin() {
  const TracePtr& trace = session_->trace();
  if (!trace) return say(tr("There is no run to pin yet."), Tone::info);
  if (const QString why = pins_->add(session_->shownSetup(), trace, session_->shownProbe()); !why.isEmpty()) say(why, Tone::warning);
}

void MainWindow::showPins() {
  const std::vector<Pin>& pins = pins_->pins();
  while (chips_->chips().size() > pins.size()) chips_->removeLast();
  while (chips_->chips().size() < pins.size()) chips_->add(makeChip(chips_->chips().size()));
  for (std::size_t i = 0; i < pins.size(); ++i) chips_->chips()[i]->show(pins[i]);
  chips_->fit();
  area_->setRuns(session_->trace(), pins_->runs());
}

PinChip* MainWindow::makeChip(std::size_t index) {
  auto* chip = new PinChip;
  connect(chip, &PinChip::renamed, this, [this, index](const QString& name) { pins_->rename(index, name); });
  connect(chip, &PinChip::unpinWanted, this, [this, index] { pins_->remove(index); });
  connect(chip, &PinChip::compareWanted, this, &MainWindow::comparePins);
  connect(chip, &PinChip::lookWanted, this, [this, index] {
    Setup after = pins_->pins()[index].setup;
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
    return text + pins_->table(index) + tr("<p>Double-click or F2 renames it.</p>");
  });
  return chip;
}

void MainWindow::comparePins() {
  auto* dialog = new QDialog(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setObjectName("compare");
  dialog->setWindowTitle(tr("What differs"));
  auto* column = new QVBoxLayout(dialog);
  column->setContentsMargins(24, 24, 24, 16);
  column->setSpacing(16);
  auto* table = new QLabel(pins_->table());
  table->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  column->addWidget(table);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, dialog);
  connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
  column->addWidget(buttons);
  dialog->open();
}

}  // namespace reclab
