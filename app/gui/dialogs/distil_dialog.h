// SPDX-License-Identifier: GPL-3.0-or-later
// The long filters of the model that is looked at as a few modes, as `reclab distill`: errors against the number of modes, Hankel singular
// values beside them, and the model that is made of them.
#pragma once

#include <QSpinBox>
#include <memory>

#include "distillation/distil.h"
#include "gui/dialogs/table_dialog.h"
#include "gui/session/setup.h"

class QCPGraph;
class QStackedWidget;

namespace reclab {

class Legend;
class Plot;

class DistilDialog : public RowsDialog<ModesRow> {
  Q_OBJECT
 public:
  /// `setup`: the model, its weights and the sequence whose columns it reads.
  DistilDialog(LibraryPtr library, Setup setup, FileChooser chooser, QWidget* parent = nullptr, Scheduler* scheduler = nullptr);

  QSpinBox* modes() const { return modes_; }
  QSpinBox* taps() const { return taps_; }
  QPushButton* openButton() const { return open_; }
  Plot* plot() const { return plot_; }

 signals:
  /// The setup with the distilled model, whose files are in a folder of the user's.
  void opened(Setup distilled, QString title);

 private:
  struct Found {
    std::shared_ptr<const Distillation> distillation;
  };
  void start() override;
  void write(const ModesRow& row) override;
  std::pair<QString, bool> outcome() const override;
  void draw() const;
  void colour();
  void openModel();

  LibraryPtr library_;
  Setup setup_;
  FileChooser chooser_;
  std::shared_ptr<Found> found_;  ///< written by the job, read after its end
  QSpinBox *modes_, *taps_;
  QPushButton* open_;
  QStackedWidget* picture_;  ///< a sentence until there is something to draw, then the plot
  Plot* plot_;
  Legend* legend_;
  QCPGraph *l2_, *hankel_, *values_, *bound_;
};

}  // namespace reclab
