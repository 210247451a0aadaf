// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QSpinBox>
#include <QVariantMap>

#include "training_choice.h"

namespace reclab {

/// How a model is to be trained, as a form.
class TrainingSettings : public QWidget {
  Q_OBJECT
 public:
  explicit TrainingSettings(QWidget* parent = nullptr);
  const TrainingChoice& choice() const { return choice_; }
  void setChoice(const TrainingChoice& choice);
  void setFile(bool isFile);  ///< what is learned from is one, and not a task
  QString summary() const;    ///< "Adam, rate 0.005, batch 32"
  QVariantMap saved() const;
  void restore(const QVariantMap& saved);

 signals:
  void changed();

 private:
  void take();
  void show(const TrainingChoice& choice);
  TrainingChoice choice_;
  QSpinBox *steps_, *batch_, *warm_up_, *truncate_, *window_, *ahead_;
  QComboBox *optimiser_, *schedule_;
  QLineEdit *rate_, *momentum_, *decay_, *clip_;
  QCheckBox* beside_;
  std::vector<QWidget*> ofFiles_;
  bool showing_ = false;
};

}  // namespace reclab
