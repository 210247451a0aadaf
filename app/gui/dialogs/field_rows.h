// SPDX-License-Identifier: GPL-3.0-or-later
// The fields of a plan as rows of a form: a name and an editor for each that has a label.
#pragma once

#include <QGridLayout>
#include <QLabel>
#include <QString>
#include <QVariantMap>
#include <functional>
#include <utility>
#include <vector>

#include "gui/dialogs/field_editor.h"
#include "gui/look/look.h"
#include "plain_text.h"

namespace reclab {

template <class Plan>
class FieldRows {
 public:
  using One = PlanField<Plan>;

  /// Adds them to a grid of two columns. `names`: before the keys in the names of the editors, "training."; `changed` is called when a hand
  /// changed a value.
  void add(QGridLayout* grid, const std::vector<const One*>& fields, const QString& names, const std::function<void()>& changed) {
    for (const One* field : fields) {
      if (field->form.label.empty()) continue;
      QWidget* form = grid->parentWidget();
      QWidget* editor = fieldEditor(*field, form, [this, changed] {
        if (!showing_) changed();
      });
      editor->setObjectName(names + QString::fromStdString(field->row.key));
      editor->setMinimumWidth(least_);
      auto* name = label(QObject::tr(field->form.label.c_str()), "muted", form);
      name->setBuddy(editor);
      name->setToolTip(safeTip(editor->toolTip()));
      const int row = grid->rowCount();
      grid->addWidget(name, row, 0);
      grid->addWidget(editor, row, 1);
      rows_.push_back({field, name, editor});
    }
  }
  void setLeastWidth(int width) { least_ = width; }  ///< of the editors that are added after it

  void setVisible(Field::Of of, bool visible) {
    for (const Row& row : rows_)
      if (row.field->of == of)
        for (QWidget* one : {row.name, row.editor}) one->setVisible(visible);
  }

  void show(const Plan& plan) {
    showing_ = true;
    for (const Row& row : rows_) {
      showIn(row.editor, row.field->get(plan));
      row.editor->setEnabled(!row.field->applies || row.field->applies(plan));
    }
    showing_ = false;
  }
  /// Puts the values of the editors into a plan; one that is none the field may have is left as it is.
  void take(Plan& plan) const {
    for (const Row& row : rows_)
      if (const auto value = valueIn(*row.field, row.editor)) row.field->set(plan, *value);
  }

  QVariantMap saved(const Plan& plan) const {
    QVariantMap all;
    for (const Row& row : rows_) all.insert(QString::fromStdString(row.field->row.key), savedOf(row.field->get(plan)));
    return all;
  }
  void restore(const QVariantMap& saved, Plan& plan) const {
    for (const Row& row : rows_)
      if (const auto value = valueFrom(*row.field, saved.value(QString::fromStdString(row.field->row.key)))) row.field->set(plan, *value);
  }

 private:
  struct Row {
    const One* field;
    QWidget *name, *editor;
  };
  std::vector<Row> rows_;
  int least_ = 120;
  bool showing_ = false;
};

}  // namespace reclab
