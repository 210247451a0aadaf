// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QPointer>
#include <QSize>
#include <QTimer>
#include <optional>

class QLabel;
class QToolBar;

namespace reclab {

class FlatDock;
class LessonPlayer;
class LessonView;
class WindowFrame;

/// The window for the last row: on the whole screen, in large type, with nothing but the panels and the step of the lesson, whose steps the
/// keys of a clicker go through. Its arrangement is no state of the lab, and answers in it are not kept.
class Lecture : public QObject {
  Q_OBJECT
 public:
  Lecture(WindowFrame* frame, LessonPlayer* player, LessonView* view, FlatDock* dock);
  bool active() const { return active_; }
  void setActive(bool active);
  QWidget* ring() const { return ring_; }    ///< around the mouse, so that it can be seen from afar
  QWidget* blank() const { return blank_; }  ///< black, over everything
  QLabel* words() const { return words_; }   ///< on the keys, at the beginning
  /// Gives the part of the window that a control of this name is in, "inspector/rate", a place under the panels; others have none.
  void makeRoomFor(const QString& target);
  static double scaleOf(const QSize& window);  ///< of type, by the room for it
  static int panelsOf(const QSize& window);    ///< how many there is room for

 signals:
  void changed(bool active);  ///< after the window was arranged

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void enter();
  void leave();
  void fit();
  void turn(int by);
  void follow();
  bool takesKey(int key) const;
  void press(int key);

  WindowFrame* frame_;
  LessonPlayer* player_;
  LessonView* view_;
  FlatDock* dock_;
  QWidget *ring_, *blank_;
  QLabel* words_;
  bool active_ = false;
  Qt::WindowStates state_;
  QPointer<QWidget> focus_;
  QSize size_, roomOf_;
  bool returning_ = false;           ///< the window has still to become as large as it was
  std::optional<std::size_t> goes_;  ///< to a step whose sequence is being loaded
  QTimer soon_;
};

}  // namespace reclab
