// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/palette/history.h"

#include <QDialogButtonBox>
#include <QUndoView>
#include <QVBoxLayout>

#include "gui/look/look.h"

namespace reclab {

HistoryDialog::HistoryDialog(QUndoStack* undo, QWidget* parent) : QDialog(parent) {
  setAttribute(Qt::WA_DeleteOnClose);
  setObjectName("history");
  setWindowTitle(tr("History"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(16, 12, 16, 12);
  column->setSpacing(8);
  auto* states = new QUndoView(undo, this);
  states->setObjectName("historyStates");
  states->setAccessibleName(tr("States of the window"));
  states->setEmptyLabel(tr("as it was opened"));
  states->setFont(numberFont());
  column->addWidget(states, 1);
  auto* words =
      label(tr("A click goes to that state; what comes after it stays in the list until something else is changed."), "muted", this);
  words->setWordWrap(true);
  column->addWidget(words);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  column->addWidget(buttons);
  resize(460, 420);
  states->setFocus();
}

}  // namespace reclab
