// SPDX-License-Identifier: GPL-3.0-or-later
// The survey's tables of complexities beside exponents that were measured, as `reclab complexities`.
#pragma once

#include "gui/dialogs/table_dialog.h"
#include "gui/session/setup.h"
#include "timing/complexity.h"

namespace reclab {

class ComplexityDialog : public RowsDialog<ComplexityRow> {
  Q_OBJECT
 public:
  ComplexityDialog(LibraryPtr library, FileChooser chooser, QWidget* parent = nullptr, Scheduler* scheduler = nullptr);

  /// Sets the models and lengths that are measured; tests take a few short sequences of few models.
  void setMeasured(std::vector<std::string> presets, std::vector<std::int64_t> lengths);

 signals:
  void picked(QString preset);  ///< a row was asked for as a model

 private:
  void start() override;
  void write(const ComplexityRow& row) override;
  std::pair<QString, bool> outcome() const override;

  LibraryPtr library_;
  std::vector<std::string> presets_;
  std::vector<std::int64_t> lengths_ = complexity_lengths();
};

}  // namespace reclab
