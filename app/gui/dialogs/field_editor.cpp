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
#include <string>
#include <utility>
#include <vector>

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

/// A list of numbers between commas, semicolons or blanks as its field has it: "0.1,0.01".
std::string listIn(QString text) {
  text.replace(';', ',').replace(' ', ',');
  std::vector<std::string> names;
  for (const QString& one : text.split(',', Qt::SkipEmptyParts)) names.push_back(one.toStdString());
  return list_of_names(names);
}

/// The same as a person reads it: "0.1, 0.01".
QString listText(const std::string& list) {
  QStringList names;
  for (const std::string& name : names_of_list(list)) names << QString::fromStdString(name);
  return names.join(QStringLiteral(", "));
}

/// Puts back the former list where another one has what the field does not take.
class ListOf : public QValidator {
 public:
  ListOf(Field field, QLineEdit* line) : QValidator(line), field_(std::move(field)), line_(line) {}
  State validate(QString& text, int&) const override {
    const std::vector<std::string> names = names_of_list(listIn(text));
    const bool fine = std::ranges::all_of(names, [this](const std::string& one) { return !field_.wanted || field_.wanted(one).empty(); });
    return fine ? Acceptable : Intermediate;
  }
  void fixup(QString& text) const override { text = line_->property("stays").toString(); }

 private:
  Field field_;
  QLineEdit* line_;
};

QWidget* listEditor(const Field& field, QWidget* parent, const std::function<void()>& changed) {
  auto* line = new QLineEdit(parent);
  line->setValidator(new ListOf(field, line));
  line->setPlaceholderText(QObject::tr("one"));
  line->setProperty("takes", QObject::tr("takes numbers with commas between them, each %1")
                                 .arg(QString::fromStdString(field.wanted ? field.wanted({}) : std::string())));
  QObject::connect(line, &QLineEdit::editingFinished, line, [line] {
    line->setText(listText(listIn(line->text())));
    line->setProperty("stays", line->text());
  });
  QObject::connect(line, &QLineEdit::editingFinished, parent, changed);
  return line;
}

QWidget* madeFor(const Field& field, QWidget* parent, const std::function<void()>& changed) {
  if (field.says == Field::Says::list) return listEditor(field, parent, changed);
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
  if (field.says == Field::Says::list) {
    const std::string list = listIn(qobject_cast<const QLineEdit*>(editor)->text());
    const std::vector<std::string> names = names_of_list(list);
    if (!std::ranges::all_of(names, [&](const std::string& one) { return !field.wanted || field.wanted(one).empty(); })) return {};
    return HyperValue(list);
  }
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
    const auto* list = std::get_if<std::string>(&value);
    line->setText(list != nullptr ? listText(*list) : textOf(std::get<double>(value)));
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
