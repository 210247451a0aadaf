// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/learning/training_settings.h"

#include <QComboBox>
#include <QGridLayout>
#include <QLocale>

#include "gui/dialogs/field_editor.h"
#include "gui/look/look.h"
#include "plain_text.h"

namespace reclab {
TrainingSettings::TrainingSettings(QWidget* parent) : QWidget(parent) {
  auto* grid = new QGridLayout(this);
  grid->setContentsMargins(12, 10, 12, 10);
  grid->setHorizontalSpacing(12);
  grid->setVerticalSpacing(6);
  // Fields of files come last, since a task has none of them.
  std::vector<const TrainingField*> fields;
  for (const bool ofFile : {false, true})
    for (const TrainingField& field : training_fields())
      if ((field.of == Field::Of::file) == ofFile) fields.push_back(&field);
  rows_.add(grid, fields, QStringLiteral("training."), [this] { take(); });
  beside_ = new QCheckBox(tr("train pinned runs beside it"), this);
  beside_->setObjectName("training.beside");
  beside_->setToolTip(tr("On the same batches, in turn; their curves are in the Learning panel"));
  grid->addWidget(beside_, grid->rowCount(), 0, 1, 2);
  connect(beside_, &QCheckBox::toggled, this, &TrainingSettings::take);
  setFile(false);
  show(choice_);
}

void TrainingSettings::setFile(bool isFile) { rows_.setVisible(Field::Of::file, isFile); }

void TrainingSettings::show(const TrainingChoice& choice) {
  showing_ = true;
  rows_.show(choice);
  beside_->setChecked(choice.beside);
  showing_ = false;
}

void TrainingSettings::take() {
  if (showing_) return;
  TrainingChoice next = choice_;
  rows_.take(next);
  next.beside = beside_->isChecked();
  setChoice(next);
}

void TrainingSettings::setChoice(const TrainingChoice& choice) {
  const bool same = choice == choice_;
  choice_ = choice;
  show(choice_);
  if (!same) emit changed();
}

QString TrainingSettings::summary() const {
  const auto chosen = [this](const char* name) { return findChild<QComboBox*>(name)->currentText(); };
  const QString how =
      choice_.options.rule == TrainingOptions().rule ? QString() : tr("%1, ").arg(chosen("training.rule"));  // backpropagation is usual
  return how + tr("%1, rate %2, batch %3")
                   .arg(chosen("training.optimiser"), QLocale::c().toString(choice_.options.rate.rate, 'g', 6))
                   .arg(choice_.options.batch);
}

QVariantMap TrainingSettings::saved() const {
  QVariantMap all = rows_.saved(choice_);
  all["beside"] = choice_.beside;
  return all;
}

void TrainingSettings::restore(const QVariantMap& saved) {
  TrainingChoice next;
  rows_.restore(saved, next);
  next.beside = saved.value("beside", true).toBool();
  setChoice(next);
}

}  // namespace reclab
