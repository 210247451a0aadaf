// SPDX-License-Identifier: GPL-3.0-or-later
// The survey's tables of complexities beside exponents that were measured, as `reclab complexities`.
#pragma once

#include <QDialog>
#include <vector>

#include "gui/jobs/job.h"
#include "gui/session/files.h"
#include "gui/session/setup.h"
#include "gui/session/words.h"
#include "timing/complexity.h"

class QLabel;
class QProgressBar;
class QPushButton;
class QTableWidget;

namespace reclab {

class ComplexityDialog : public QDialog {
  Q_OBJECT
 public:
  /// `desk`: with whose jobs the timing takes turns; null: with none.
  ComplexityDialog(LibraryPtr library, FileChooser chooser, QWidget* parent = nullptr, Desk* desk = nullptr);

  /// What is measured; tests take a few short sequences of few models.
  void setMeasured(std::vector<std::string> presets, std::vector<std::int64_t> lengths);
  const std::vector<ComplexityRow>& rows() const { return rows_; }
  bool running() const { return job_.running() || job_.waiting(); }
  QTableWidget* table() const { return table_; }
  QPushButton* measureButton() const { return measure_; }
  QPushButton* saveButton() const { return save_; }
  QString words() const;  ///< what is said under the table

 signals:
  void picked(QString preset);  ///< a row was asked for as a model

 private:
  void start();
  void show(const ComplexityRow& row);
  void clear();
  void ended(const QString& sentence);
  void save();
  void say(const QString& sentence, bool bad = false);

  LibraryPtr library_;
  FileChooser chooser_;
  std::vector<std::string> presets_;
  std::vector<std::int64_t> lengths_ = complexity_lengths();
  std::vector<ComplexityRow> rows_;
  QTableWidget* table_;
  QLabel* words_;
  QProgressBar* bar_;
  QPushButton *measure_, *save_;
  struct Nothing {};
  Desk own_{sentenceOf};
  Job<Nothing, std::vector<ComplexityRow>> job_;
};

}  // namespace reclab
