// SPDX-License-Identifier: GPL-3.0-or-later
// The fields of a study or a training in a form: an editor for each, by the kind of its row.
#pragma once

#include <QVariantMap>
#include <QWidget>
#include <functional>
#include <optional>

#include "parameters/field.h"

namespace reclab {

/// A box for a number or a choice, a line for a real number or a list of numbers. `changed` is called when a hand changed its value.
QWidget* fieldEditor(const Field& field, QWidget* parent, const std::function<void()>& changed);
/// The value in an editor; nothing where it is none that the field may have.
std::optional<HyperValue> valueIn(const Field& field, const QWidget* editor);
void showIn(QWidget* editor, const HyperValue& value);
/// The value as a settings file has it, and back; a file may hold anything.
QVariant savedOf(const HyperValue& value);
/// All values of a plan, by the keys of its fields.
template <class Fields, class Plan>
QVariantMap savedOf(const Fields& fields, const Plan& plan) {
  QVariantMap all;
  for (const auto& field : fields) all.insert(QString::fromStdString(field.row.key), savedOf(field.get(plan)));
  return all;
}
std::optional<HyperValue> valueFrom(const Field& field, const QVariant& saved);

}  // namespace reclab
