// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

class QUndoStack;

namespace reclab {

/// The states that undo has, under each other, with the time of day of each change; a click on one, or the arrow keys, go to it.
class HistoryDialog : public QDialog {
  Q_OBJECT
 public:
  HistoryDialog(QUndoStack* undo, QWidget* parent);
};

}  // namespace reclab
