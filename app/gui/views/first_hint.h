// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <array>

class QLabel;

namespace reclab {

/// Gestures to try, over the time line of a window that was never used: each is ticked once it was done, and with the last the line
/// is gone for good, as it is when it is closed.
class FirstHint : public QFrame {
  Q_OBJECT
 public:
  enum Gesture { drag, train, scrub, pin, gestures };
  explicit FirstHint(QWidget* parent = nullptr);
  void done(Gesture gesture);
  bool isDone(Gesture gesture) const { return done_[gesture]; }

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void end();
  void fit();  ///< as many as there is room for
  QLabel* title_;
  std::array<QLabel*, gestures> words_{};
  std::array<bool, gestures> done_{};
};

}  // namespace reclab
