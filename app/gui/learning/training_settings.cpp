// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/learning/training_settings.h"

#include <QComboBox>
#include <QDoubleValidator>
#include <QGridLayout>
#include <QLineEdit>
#include <QLocale>
#include <QSpinBox>
#include <algorithm>
#include <cmath>
#include <optional>

#include "gui/look/look.h"
#include "plain_text.h"

namespace reclab {
namespace {

QString textOf(double value) { return QLocale::c().toString(value, 'g', 6); }

/// What the editor of a field says; nothing where it is no value that the field may have.
std::optional<HyperValue> valueIn(const TrainingField& field, const QWidget* editor) {
  if (const auto* box = qobject_cast<const QSpinBox*>(editor)) return HyperValue(std::int64_t{box->value()});
  if (const auto* box = qobject_cast<const QComboBox*>(editor)) return HyperValue(box->currentData().toString().toStdString());
  if (const auto* box = qobject_cast<const QCheckBox*>(editor)) return HyperValue(box->isChecked());
  bool fine = false;
  const double value = QLocale::c().toDouble(qobject_cast<const QLineEdit*>(editor)->text(), &fine);
  if (!fine || !std::isfinite(value) || value < field.form.low) return {};
  return HyperValue(std::min(value, field.form.high));
}

void showIn(QWidget* editor, const HyperValue& value) {
  if (auto* box = qobject_cast<QSpinBox*>(editor))
    box->setValue(static_cast<int>(std::get<std::int64_t>(value)));
  else if (auto* names = qobject_cast<QComboBox*>(editor))
    names->setCurrentIndex(std::max(0, names->findData(QString::fromStdString(std::get<std::string>(value)))));
  else if (auto* tick = qobject_cast<QCheckBox*>(editor))
    tick->setChecked(std::get<bool>(value));
  else
    qobject_cast<QLineEdit*>(editor)->setText(textOf(std::get<double>(value)));
}

/// A settings file may hold anything.
std::optional<HyperValue> valueFrom(const TrainingField& field, const QVariant& saved) {
  const auto within = [&](auto value, bool fine) -> std::optional<HyperValue> {
    if (!fine || !(value >= field.form.low && value <= field.form.high)) return {};
    return HyperValue(value);
  };
  bool fine = false;
  switch (field.row.kind) {
    case HyperKind::integer: {
      const std::int64_t value = saved.toLongLong(&fine);
      return within(value, fine);
    }
    case HyperKind::real: {
      const double value = saved.toDouble(&fine);
      return within(value, fine);
    }
    case HyperKind::choice:
      if (const std::string name = saved.toString().toStdString(); std::ranges::find(field.row.choices, name) != field.row.choices.end())
        return HyperValue(name);
      return {};
    case HyperKind::flag: break;
  }
  return saved.canConvert<bool>() ? std::optional(HyperValue(saved.toBool())) : std::nullopt;
}

QVariant savedOf(const HyperValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return QVariant(static_cast<qlonglong>(*integer));
  if (const auto* text = std::get_if<std::string>(&value)) return QString::fromStdString(*text);
  return std::holds_alternative<bool>(value) ? QVariant(std::get<bool>(value)) : QVariant(std::get<double>(value));
}

}  // namespace

TrainingSettings::TrainingSettings(QWidget* parent) : QWidget(parent) {
  auto* grid = new QGridLayout(this);
  grid->setContentsMargins(12, 10, 12, 10);
  grid->setHorizontalSpacing(12);
  grid->setVerticalSpacing(6);
  // What is asked of a file comes last, since a task has none of it.
  for (const bool ofFile : {false, true})
    for (const TrainingField& field : training_fields()) {
      if (field.form.label.empty() || field.of_file != ofFile) continue;
      QWidget* editor = editorOf(field);
      editor->setObjectName("training." + QString::fromStdString(field.row.key));
      editor->setToolTip(safeTip(tr(field.form.tip.c_str())));
      editor->setMinimumWidth(120);
      auto* name = label(tr(field.form.label.c_str()), "muted", this);
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

QWidget* TrainingSettings::editorOf(const TrainingField& field) {
  if (field.row.kind == HyperKind::integer) {
    auto* box = new QSpinBox(this);
    box->setRange(static_cast<int>(field.form.low), static_cast<int>(field.form.high));
    box->setKeyboardTracking(false);
    box->setGroupSeparatorShown(true);
    connect(box, &QSpinBox::valueChanged, this, &TrainingSettings::take);
    return box;
  }
  if (field.row.kind == HyperKind::choice) {
    auto* box = new QComboBox(this);
    for (std::size_t i = 0; i < field.row.choices.size(); ++i)
      box->addItem(tr(field.form.choices[i].c_str()), QString::fromStdString(field.row.choices[i]));
    connect(box, &QComboBox::activated, this, &TrainingSettings::take);
    return box;
  }
  if (field.row.kind == HyperKind::flag) {
    auto* box = new QCheckBox(this);
    connect(box, &QCheckBox::toggled, this, &TrainingSettings::take);
    return box;
  }
  auto* line = new QLineEdit(this);
  auto* valid = new QDoubleValidator(field.form.low, field.form.high, 12, line);
  valid->setLocale(QLocale::c());
  line->setValidator(valid);
  connect(line, &QLineEdit::editingFinished, this, &TrainingSettings::take);
  return line;
}

void TrainingSettings::setFile(bool isFile) {
  for (const Row& row : rows_)
    if (row.field->of_file)
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
  return how + tr("%1, rate %2, batch %3").arg(chosen("training.optimiser"), textOf(choice_.options.rate.rate)).arg(choice_.options.batch);
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
