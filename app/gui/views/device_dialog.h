// SPDX-License-Identifier: GPL-3.0-or-later
// Does the CUDA device compute what the CPU does? Every primitive and every preset on both, line by line, as `reclab check-device`.
#pragma once

#include <QDialog>
#include <QElapsedTimer>
#include <vector>

#include "checks/check_device.h"
#include "gui/session/files.h"
#include "gui/session/setup.h"
#include "gui/session/worker.h"

class QLabel;
class QProgressBar;
class QPushButton;
class QTableWidget;

namespace reclab {

class DeviceDialog : public QDialog {
  Q_OBJECT
 public:
  DeviceDialog(LibraryPtr library, FileChooser chooser, QWidget* parent = nullptr);

  /// What is compared; tests take a few short models.
  void setCheck(const DeviceCheck& check) { check_ = check; }
  const std::vector<DeviceReport>& reports() const { return reports_; }
  bool running() const { return running_; }
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
  template <class Function>
  void later(Function&& function) {
    QMetaObject::invokeMethod(this, std::forward<Function>(function), Qt::QueuedConnection);
  }

  LibraryPtr library_;
  FileChooser chooser_;
  DeviceCheck check_;
  std::vector<DeviceReport> reports_;
  QTableWidget* table_;
  QLabel* words_;
  QProgressBar* bar_;
  QPushButton *run_, *save_;
  bool running_ = false;
  Worker worker_;  // last: joined before what it reports to is gone
};

}  // namespace reclab
