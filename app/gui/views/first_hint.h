// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>
#include <array>
#include <vector>

class QLabel;
class QPushButton;
class QToolButton;

namespace reclab {

/// Three things to try, over the time line of a window that was never used, and beside them where data come from: each is ticked once it
/// was done, and with the last the line is gone, as it is when it is closed, until it is asked for again.
class FirstHint : public QFrame {
  Q_OBJECT
 public:
  enum Gesture { drag, train, lesson, gestures };
  explicit FirstHint(QWidget* parent = nullptr);
  void done(Gesture gesture);
  bool isDone(Gesture gesture) const { return done_[gesture]; }
  void again();  ///< from the beginning
  /// A button behind the things to try.
  QToolButton* addButton(const QString& iconName, const QString& text, const QString& tip);

 signals:
  void wanted(reclab::FirstHint::Gesture gesture);  ///< its words were clicked

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void end();
  void tell(Gesture gesture);  ///< whether it is done
  void fit();                  ///< as many as there is room for
  QLabel* title_;
  std::array<QPushButton*, gestures> words_{};
  std::array<bool, gestures> done_{};
  std::vector<QToolButton*> buttons_;
  QToolButton* shut_;
};

}  // namespace reclab
