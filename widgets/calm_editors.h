// SPDX-License-Identifier: GPL-3.0-or-later
// Editors that lie in something that scrolls: the wheel scrolls that, and changes no value on its way.
#pragma once

#include <QKeyEvent>
#include <QSlider>
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
