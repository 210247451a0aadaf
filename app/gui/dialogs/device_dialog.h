// SPDX-License-Identifier: GPL-3.0-or-later
// Does the CUDA device compute what the CPU does? Every primitive and every preset on both, line by line, as `reclab check-device`.
#pragma once

#include <QDialog>
#include <QElapsedTimer>
#include <vector>

#include "checks/check_device.h"
#include "gui/jobs/job.h"
#include "gui/session/files.h"
#include "gui/session/setup.h"
#include "gui/session/words.h"

class QLabel;
class QProgressBar;
class QPushButton;
class QTableWidget;

namespace reclab {

class DeviceDialog : public QDialog {
  Q_OBJECT
 public:
  /// `desk`: with whose jobs the comparison takes turns; null: with none.
  DeviceDialog(LibraryPtr library, FileChooser chooser, QWidget* parent = nullptr, Desk* desk = nullptr);

  /// What is compared; tests take a few short models.
  void setCheck(const DeviceCheck& check) { check_ = check; }
  const std::vector<DeviceReport>& reports() const { return reports_; }
  bool running() const { return job_.running(); }
  QTableWidget* table() const { return table_; }
  QPushButton* runButton() const { return run_; }
  QPushButton* saveButton() const { return save_; }
  QString words() const;  ///< what is said under the table

 private:
  void start();
  void add(const DeviceReport& report);
  void ended(const QString& sentence);
  void save();
  void say(const QString& sentence, bool bad = false);

  LibraryPtr library_;
  FileChooser chooser_;
  DeviceCheck check_;
  std::vector<DeviceReport> reports_;
  QTableWidget* table_;
  QLabel* words_;
  QProgressBar* bar_;
  QPushButton *run_, *save_;
  struct Nothing {};
  Desk own_{sentenceOf};
  Job<Nothing, std::vector<DeviceReport>> job_;
};

}  // namespace reclab
