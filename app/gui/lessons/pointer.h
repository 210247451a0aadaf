// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointer>
#include <QTimer>
#include <QWidget>

namespace reclab {

/// An arrow in the window that points at a control, with words at its tail. It follows the control, and takes no click: whatever lies under
/// it works as without it.
class Pointer : public QWidget {
  Q_OBJECT
 public:
  explicit Pointer(QWidget* window);
  void pointAt(QWidget* target, const QString& words);  ///< null: at nothing
  void blink();                                         ///< for who looks for it
  QWidget* target() const { return target_; }
  QString words() const { return words_; }
  QRectF box() const { return box_; }  ///< of the words, in the window

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void place();
  /// An arrow at one side of the target with its words, all in the window.
  struct Way {
    QPointF tip, tail;
    QRectF box;
  };
  /// `slide`: where the words stand at its tail, -1 to 1; `length`: of the arrow.
  Way wayFrom(Qt::Edge side, double slide, double length, const QRect& seen, const QSizeF& words) const;
  struct Covered {
    QRect part;
    double weight;
  };
  std::vector<Covered> coverable() const;
  double covers(const Way& way, const QRect& seen, const std::vector<Covered>& all) const;
  QPointer<QWidget> target_;
  QList<QPointer<QWidget>> watched_;  ///< the target and all that it lies in
  QString words_;
  QPointF tip_, tail_;  ///< in the window
  QRectF box_;
  QTimer soon_, blinks_;
  int turns_ = 0;         ///< of colour that are left
  bool scrolls_ = false;  ///< to the target, when it is placed next
};

}  // namespace reclab
