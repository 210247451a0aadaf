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
  for (const bool ofFile : {false, true})
    for (const TrainingField& field : training_fields()) {
      if (field.form.label.empty() || (field.of == Field::Of::file) != ofFile) continue;
      QWidget* editor = fieldEditor(field, this, [this] { take(); });
      editor->setObjectName("training." + QString::fromStdString(field.row.key));
      editor->setMinimumWidth(120);
      auto* name = label(tr(field.form.label.c_str()), "muted", this);
      name->setBuddy(editor);
      name->setToolTip(safeTip(editor->toolTip()));
      const int row = static_cast<int>(rows_.size());
      grid->addWidget(name, row, 0);
      grid->addWidget(editor, row, 1);
      rows_.push_back({&field, name, editor});
    }
  beside_ = new QCheckBox(tr("train pinned runs beside it"), this);
  beside_->setObjectName("training.beside");
  beside_->setToolTip(tr("On the same batches, in turn; their curves are in the Learning panel"));
  grid->addWidget(beside_, static_cast<int>(rows_.size()), 0, 1, 2);
  connect(beside_, &QCheckBox::toggled, this, &TrainingSettings::take);
  setFile(false);
  show(choice_);
}

void TrainingSettings::setFile(bool isFile) {
  for (const Row& row : rows_)
    if (row.field->of == Field::Of::file)
      for (QWidget* one : {row.name, row.editor}) one->setVisible(isFile);
}

void TrainingSettings::show(const TrainingChoice& choice) {
  showing_ = true;
  for (const Row& row : rows_) {
    showIn(row.editor, row.field->get(choice));
    row.editor->setEnabled(!row.field->applies || row.field->applies(choice));
  }
  beside_->setChecked(choice.beside);
  showing_ = false;
}

void TrainingSettings::take() {
  if (showing_) return;
  TrainingChoice next = choice_;
  for (const Row& row : rows_)
    if (const auto value = valueIn(*row.field, row.editor)) row.field->set(next, *value);
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
  QVariantMap all{{"beside", choice_.beside}};
  for (const Row& row : rows_) all.insert(QString::fromStdString(row.field->row.key), savedOf(row.field->get(choice_)));
  return all;
}

void TrainingSettings::restore(const QVariantMap& saved) {
  TrainingChoice next;
  for (const Row& row : rows_)
    if (const auto value = valueFrom(*row.field, saved.value(QString::fromStdString(row.field->row.key)))) row.field->set(next, *value);
  next.beside = saved.value("beside", true).toBool();
  setChoice(next);
}

}  // namespace reclab
