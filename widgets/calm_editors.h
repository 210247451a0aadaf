// SPDX-License-Identifier: GPL-3.0-or-later
// Editors that lie in something that scrolls: the wheel scrolls that, and changes no value on its way; and one of whole numbers.
#pragma once

#include <QKeyEvent>
#include <QSlider>
#include <QSpinBox>
#include <QWheelEvent>
#include <functional>

namespace reclab {

/// A box that leaves the wheel to its parent until it is clicked.
template <class Box>
class CalmBox : public Box {
 public:
  /// The wheel gives it no focus, as it would by the policy that boxes have.
  explicit CalmBox(QWidget* parent = nullptr) : Box(parent) { this->setFocusPolicy(Qt::StrongFocus); }

 protected:
  void wheelEvent(QWheelEvent* event) override {
    if (this->hasFocus())
      Box::wheelEvent(event);
    else
      event->ignore();
  }
};

/// A whole number of which any may be typed: one out of the range is refused as a whole, when Enter is pressed or the field is left, and is
/// not cut to the digits that fit.
class IntBox : public CalmBox<QSpinBox> {
 public:
  using CalmBox<QSpinBox>::CalmBox;

 protected:
  QValidator::State validate(QString& text, int& position) const override {
    const QValidator::State state = QSpinBox::validate(text, position);
    if (state != QValidator::Invalid) return state;
    QString digits = text;
    digits.remove(locale().groupSeparator());
    if (!prefix().isEmpty() && digits.startsWith(prefix())) digits.remove(0, prefix().size());
    if (!suffix().isEmpty() && digits.endsWith(suffix())) digits.chop(suffix().size());
    bool whole = false;
    digits.trimmed().toLongLong(&whole);
    return whole ? QValidator::Intermediate : QValidator::Invalid;
  }
};

/// A slider that leaves the wheel to its parent, and whose arrow keys go by the value's own step where it has one.
class CalmSlider : public QSlider {
  Q_OBJECT
 public:
  using QSlider::QSlider;
  std::function<void(int steps)> step;

 protected:
  void keyPressEvent(QKeyEvent* event) override {
    const int key = event->key();
    const int steps = key == Qt::Key_Right || key == Qt::Key_Up ? 1 : key == Qt::Key_Left || key == Qt::Key_Down ? -1 : 0;
    if (steps == 0 || !step) return QSlider::keyPressEvent(event);
    step(steps);
    event->accept();
  }
  void wheelEvent(QWheelEvent* event) override { event->ignore(); }
};

}  // namespace reclab
