// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <vector>

#include "gui/session/files.h"
#include "gui/session/pins.h"

class QCheckBox;
class QLabel;
class QTableWidget;

namespace reclab {

/// The differences between the run that is looked at and those that are pinned: settings, weights, seed, form, and the numbers of each. It
/// follows them while it is open, and is saved as CSV.
class CompareDialog : public QDialog {
  Q_OBJECT
 public:
  CompareDialog(const Pins* pins, FileChooser chooser, QWidget* parent);
  QTableWidget* table() const { return table_; }
  QString csv() const;

 private:
  void refresh();
  void save();

  const Pins* pins_;
  FileChooser chooser_;
  QTableWidget* table_;
  QLabel *input_, *words_;
  QCheckBox* all_;  ///< settings that are alike too
};

}  // namespace reclab
