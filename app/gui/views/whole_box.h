// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractSpinBox>
#include <QDoubleSpinBox>
#include <QLocale>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>

#include "calm_editors.h"

namespace reclab {

/// The shortest text that reads back to the same number: a person may take the shown text for the value, and Enter does.
QString exact(double value);

/// The nearest multiple of `step`, counted from `low`, as the number that its few decimals read as: 2.4 and not 2.4000000000000004.
double onGrid(double value, double step, double low = 0.0);

/// An editor for any real number, shown in full.
class RealBox : public CalmBox<QDoubleSpinBox> {
 public:
  /// Sets the value that the arrows go to from a value; else by singleStep().
  void setStepped(std::function<double(double value, int steps)> stepped) { stepped_ = std::move(stepped); }
  void stepBy(int steps) override {
    if (stepped_)
      setValue(stepped_(value(), steps));
    else if (stepType() == DefaultStepType)
      setValue(onGrid(value() + steps * singleStep(), std::pow(10.0, std::floor(std::log10(singleStep())))));
    else
      CalmBox<QDoubleSpinBox>::stepBy(steps);
  }
  explicit RealBox(QWidget* parent = nullptr) : CalmBox<QDoubleSpinBox>(parent) { setDecimals(30); }  // it rounds to these
  QString textFromValue(double value) const override { return exact(value); }
  double valueFromText(const QString& text) const override { return QLocale::c().toDouble(text); }
  QValidator::State validate(QString& text, int&) const override {
    bool good = false;
    const double value = QLocale::c().toDouble(text, &good);
    if (!good) return QValidator::Intermediate;
    return value >= minimum() && value <= maximum() ? QValidator::Acceptable : QValidator::Intermediate;
  }

 private:
  std::function<double(double value, int steps)> stepped_;
};

/// An editor for any whole number from 0 to 2^64 - 1, all of which seeds may be; QSpinBox ends at 2^31 - 1.
class WholeBox : public CalmBox<QAbstractSpinBox> {
  Q_OBJECT
 public:
  explicit WholeBox(QWidget* parent = nullptr);
  quint64 value() const { return value_; }
  void setValue(quint64 value);

  void stepBy(int steps) override;
  QValidator::State validate(QString& text, int& position) const override;
  void fixup(QString& text) const override;
  QSize sizeHint() const override;

 signals:
  void valueChanged(quint64 value);  ///< by any means; typed numbers count when Enter is pressed or the field is left

 protected:
  StepEnabled stepEnabled() const override;

 private:
  void take();
  quint64 value_ = 0;
};

}  // namespace reclab
