// SPDX-License-Identifier: GPL-3.0-or-later
// Does the CUDA device compute the same as the CPU? Every primitive and every preset on both, line by line, as `reclab check-device`.
#pragma once

#include "checks/check_device.h"
#include "gui/dialogs/table_dialog.h"
#include "gui/session/setup.h"

namespace reclab {

class DeviceDialog : public RowsDialog<DeviceReport> {
  Q_OBJECT
 public:
  DeviceDialog(LibraryPtr library, FileChooser chooser, QWidget* parent = nullptr, Scheduler* scheduler = nullptr);

  /// Sets the models and the length that are compared; tests take a few short ones.
  void setCheck(const DeviceCheck& check) { check_ = check; }

 private:
  static Face face();
  void start() override;
  void write(const DeviceReport& report) override;
  std::pair<QString, bool> outcome() const override;

  LibraryPtr library_;
  DeviceCheck check_;
};

}  // namespace reclab
