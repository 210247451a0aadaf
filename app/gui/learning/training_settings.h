// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCheckBox>
#include <QVariantMap>

#include "gui/dialogs/field_rows.h"
#include "gui/session/work/training_choice.h"

namespace reclab {

/// A form with the options of a training: a row for each of training_fields() that has a label.
class TrainingSettings : public QWidget {
  Q_OBJECT
 public:
  explicit TrainingSettings(QWidget* parent = nullptr);
  const TrainingChoice& choice() const { return choice_; }
  void setChoice(const TrainingChoice& choice);
  void setFile(bool isFile);  ///< the data are a file, and not a task
  QString summary() const;    ///< "Adam, rate 0.005, batch 32"
  QVariantMap saved() const;
  void restore(const QVariantMap& saved);

 signals:
  void changed();

 private:
  void take();
  void show(const TrainingChoice& choice);
  TrainingChoice choice_;
  FieldRows<TrainingPlan> rows_;
  QCheckBox* beside_;
  bool showing_ = false;
};

}  // namespace reclab
