// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/dialogs/field_editor.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleValidator>
#include <QLineEdit>
#include <QLocale>
#include <QSpinBox>
#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "calm_editors.h"
#include "plain_text.h"

namespace reclab {
namespace {

QString textOf(double value) { return QLocale::c().toString(value, 'g', 6); }

/// Puts back the former number where another one is not in the range.
class Within : public QDoubleValidator {
 public:
  Within(double low, double high, QLineEdit* line) : QDoubleValidator(low, high, 12, line), line_(line) { setLocale(QLocale::c()); }
  void fixup(QString& text) const override { text = line_->property("stays").toString(); }

 private:
  QLineEdit* line_;
};

QWidget* madeFor(const Field& field, QWidget* parent, const std::function<void()>& changed) {
  if (field.row.kind == HyperKind::integer) {
    auto* box = new IntBox(parent);
    box->setRange(static_cast<int>(field.form.low), static_cast<int>(field.form.high));
    box->setKeyboardTracking(false);
    box->setGroupSeparatorShown(true);
    QObject::connect(box, &QSpinBox::valueChanged, parent, changed);
    return box;
  }
  if (field.row.kind == HyperKind::choice) {
    auto* box = new QComboBox(parent);
    for (std::size_t i = 0; i < field.row.choices.size(); ++i)
      box->addItem(QObject::tr(field.form.choices[i].c_str()), QString::fromStdString(field.row.choices[i]));
    QObject::connect(box, &QComboBox::activated, parent, changed);
    return box;
  }
  if (field.row.kind == HyperKind::flag) {
    auto* box = new QCheckBox(parent);
    QObject::connect(box, &QCheckBox::toggled, parent, changed);
    return box;
  }
  auto* line = new QLineEdit(parent);
  line->setValidator(new Within(field.form.low, field.form.high, line));
  QObject::connect(line, &QLineEdit::editingFinished, line, [line] { line->setProperty("stays", line->text()); });
  QObject::connect(line, &QLineEdit::editingFinished, parent, changed);
  return line;
}

}  // namespace

QWidget* fieldEditor(const Field& field, QWidget* parent, const std::function<void()>& changed) {
  QWidget* editor = madeFor(field, parent, changed);
  editor->setToolTip(safeTip(QObject::tr(field.form.tip.c_str())));
  return editor;
}

std::optional<HyperValue> valueIn(const Field& field, const QWidget* editor) {
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
  else if (auto* line = qobject_cast<QLineEdit*>(editor)) {
    line->setText(textOf(std::get<double>(value)));
    line->setProperty("stays", line->text());
  }
}

QVariant savedOf(const HyperValue& value) { return QString::fromStdString(as_text(value)); }

std::optional<HyperValue> valueFrom(const Field& field, const QVariant& saved) {
  try {
    const HyperValue value = value_of(field, saved.toString().toStdString());
    const auto within = [&](double number) { return number >= field.form.low && number <= field.form.high; };
    if (const auto* whole = std::get_if<std::int64_t>(&value); whole && !within(static_cast<double>(*whole))) return {};
    if (const auto* real = std::get_if<double>(&value); real && !within(*real)) return {};
    return value;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace reclab
