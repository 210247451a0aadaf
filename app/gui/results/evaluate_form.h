// SPDX-License-Identifier: GPL-3.0-or-later
// The question how models do on many sequences that no training saw, at lengths of their own: that which is looked at, and pinned ones.
#pragma once

#include <QDialog>
#include <memory>
#include <optional>
#include <vector>

#include "evaluation/evaluation.h"
#include "gui/jobs/job.h"
#include "gui/session/setup.h"

class QCheckBox;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QSpinBox;

namespace reclab {

using EvaluationPtr = std::shared_ptr<const EvaluationTable>;

class EvaluateForm : public QDialog {
  Q_OBJECT
 public:
  /// `models`: the one that is looked at, with its sequence, and those beside it.
  EvaluateForm(LibraryPtr library, std::vector<JudgedRequest> models, Scheduler& scheduler, QWidget* parent);
  QPushButton* startButton() const { return start_; }
  QString sentence() const;

 signals:
  void evaluated(const reclab::EvaluationPtr& table);

 private:
  struct Nothing {};
  std::optional<EvaluationPlan> plan();
  void tell();
  void startOrStop();
  LibraryPtr library_;
  std::vector<JudgedRequest> models_;
  QLineEdit *lengths_, *seeds_;
  QSpinBox* sequences_;
  QCheckBox* pinned_;
  QLabel* sentence_;
  QProgressBar* bar_;
  QPushButton* start_;
  Job<Nothing, EvaluationPtr> job_;  // last: what it tells goes into the others
};

}  // namespace reclab
