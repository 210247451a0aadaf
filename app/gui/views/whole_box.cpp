// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/whole_box.h"

#include <QLineEdit>
#include <QLocale>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace reclab {

double onGrid(double value, double step, double low) {
  const double whole = low + std::round((value - low) / step) * step;
  // Decimals enough for the step and for where it is counted from.
  int decimals = 0;
  const auto needs = [](double one, int digits) {
    const double x = one * std::pow(10.0, digits);
    return std::abs(x - std::round(x)) > 1e-6 * std::abs(x);
  };
  while (decimals < 30 && (needs(step, decimals) || needs(low, decimals))) ++decimals;
  return QString::number(whole, 'f', decimals).toDouble();
}

QString exact(double value) {
  const double size = std::abs(value);
  const bool plain = size == 0.0 || (size >= 1e-5 && size < 1e15);
  return QLocale::c().toString(value, plain ? 'f' : 'g', QLocale::FloatingPointShortest).remove('+').remove(QLocale::c().groupSeparator());
}

WholeBox::WholeBox(QWidget* parent) : CalmBox<QAbstractSpinBox>(parent) {
  lineEdit()->setText("0");
  connect(this, &QAbstractSpinBox::editingFinished, this, &WholeBox::take);
}

void WholeBox::setValue(quint64 value) {
  const bool other = value != value_;
  value_ = value;
  lineEdit()->setText(QString::number(value));
  if (other) emit valueChanged(value);
}

void WholeBox::take() {
  bool good = false;
  const quint64 typed = lineEdit()->text().trimmed().toULongLong(&good);
  setValue(good ? typed : value_);
}

void WholeBox::stepBy(int steps) {
  take();
  const auto size = static_cast<quint64>(std::abs(static_cast<qint64>(steps)));
  if (steps < 0)
    setValue(value_ - std::min(value_, size));
  else
    setValue(value_ + std::min(std::numeric_limits<quint64>::max() - value_, size));
}

QValidator::State WholeBox::validate(QString& text, int&) const {
  bool good = false;
  text.trimmed().toULongLong(&good);
  if (good) return QValidator::Acceptable;
  return text.trimmed().isEmpty() ? QValidator::Intermediate : QValidator::Invalid;
}

void WholeBox::fixup(QString& text) const { text = QString::number(value_); }

QSize WholeBox::sizeHint() const {
  const QSize base = QAbstractSpinBox::sizeHint();
  return {fontMetrics().horizontalAdvance("0000000000") + 36, base.height()};
}

QAbstractSpinBox::StepEnabled WholeBox::stepEnabled() const {
  StepEnabled both = StepNone;
  if (value_ > 0) both |= StepDownEnabled;
  if (value_ < std::numeric_limits<quint64>::max()) both |= StepUpEnabled;
  return both;
}

}  // namespace reclab
