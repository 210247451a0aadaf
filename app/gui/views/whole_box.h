// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractSpinBox>
#include <QDoubleSpinBox>
#include <QLocale>
#include <QWheelEvent>
#include <cstdint>

namespace reclab {

/// An editor that leaves the wheel to what it lies in until it is clicked.
template <class Box>
class CalmBox : public Box {
 public:
  using Box::Box;

 protected:
  void wheelEvent(QWheelEvent* event) override {
    if (this->hasFocus())
      Box::wheelEvent(event);
    else
      event->ignore();
  }
};

/// The shortest text that reads back to the same number: what is shown may be taken for what is, and is when Enter reads it.
QString exact(double value);

/// An editor for any real number, shown in full.
class RealBox : public CalmBox<QDoubleSpinBox> {
 public:
  explicit RealBox(QWidget* parent = nullptr) : CalmBox<QDoubleSpinBox>(parent) { setDecimals(30); }  // it rounds to these
  QString textFromValue(double value) const override { return exact(value); }
  double valueFromText(const QString& text) const override { return QLocale::c().toDouble(text); }
  QValidator::State validate(QString& text, int&) const override {
    bool good = false;
    const double value = QLocale::c().toDouble(text, &good);
    if (!good) return QValidator::Intermediate;
    return value >= minimum() && value <= maximum() ? QValidator::Acceptable : QValidator::Intermediate;
  }
};

/// An editor for any whole number from 0 to 2^64 - 1, all of which seeds may be; QSpinBox ends at 2^31 - 1.
class WholeBox : public QAbstractSpinBox {
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
  void valueChanged(quint64 value);  ///< by whatever hand; typed numbers count when Enter is pressed or the field is left

 protected:
  StepEnabled stepEnabled() const override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  void take();
  quint64 value_ = 0;
};

}  // namespace reclab
