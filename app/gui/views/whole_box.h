// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractSpinBox>
#include <cstdint>

namespace reclab {

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
