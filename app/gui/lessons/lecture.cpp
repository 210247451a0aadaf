// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/lecture.h"

#include <QAbstractSlider>
#include <QAbstractSpinBox>
#include <QApplication>
#include <QComboBox>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenuBar>
#include <QPainter>
#include <QStatusBar>
#include <QTabBar>
#include <QToolBar>
#include <algorithm>

#include "gui/docks/flat_dock.h"
#include "gui/docks/panel_area.h"
#include "gui/frame/lab.h"
#include "gui/frame/window_frame.h"
#include "gui/lessons/lesson_player.h"
#include "gui/lessons/lesson_view.h"
#include "gui/look/look.h"
#include "plain_text.h"

namespace reclab {
namespace {

constexpr double reading = 1.2;  ///< the text of a lesson, next to that of plots

class Ring : public QWidget {
 public:
  explicit Ring(QWidget* window) : QWidget(window) {
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setFocusPolicy(Qt::NoFocus);
    resize(72, 72);
    hide();
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const QRectF circle = QRectF(rect()).adjusted(6, 6, -6, -6);
    painter.setPen(QPen(palette().color(QPalette::Base), 9));
    painter.drawEllipse(circle);
    painter.setPen(QPen(palette().color(QPalette::BrightText), 5));
    painter.drawEllipse(circle);
  }
};

bool isTypedIn(const QWidget* focus) {
  return qobject_cast<const QLineEdit*>(focus) != nullptr || qobject_cast<const QAbstractSpinBox*>(focus) != nullptr;
}

}  // namespace

Lecture::Lecture(WindowFrame* frame, LessonPlayer* player, LessonView* view, FlatDock* dock)
    : QObject(frame), frame_(frame), player_(player), view_(view), dock_(dock), ring_(new Ring(frame->window())) {
  blank_ = new QWidget(frame_->window());
  blank_->setObjectName("lecture.blank");
  QPalette black;
  black.setColor(QPalette::Window, Qt::black);
  blank_->setPalette(black);
  blank_->setAutoFillBackground(true);
  blank_->hide();
  words_ = plainLabel({}, frame_->window());
  words_->setObjectName("lecture.words");
  words_->setWordWrap(true);
  words_->setMargin(10);
  words_->setAutoFillBackground(true);
  words_->setBackgroundRole(QPalette::ToolTipBase);
  words_->setForegroundRole(QPalette::ToolTipText);
  words_->setAttribute(Qt::WA_TransparentForMouseEvents);
  words_->hide();
  soon_.setSingleShot(true);
  soon_.setInterval(0);
  connect(&soon_, &QTimer::timeout, this, &Lecture::fit);
  connect(player_, &LessonPlayer::opened, this, &Lecture::follow);
  connect(frame_, &WindowFrame::said, this, [this] { goes_.reset(); });  // of a step that cannot be set up
  frame_->window()->installEventFilter(this);
}

double Lecture::scaleOf(const QSize& window) { return std::clamp(std::min(window.width() / 1200.0, window.height() / 675.0), 1.34, 2.5); }

int Lecture::panelsOf(const QSize& window) {
  constexpr double height_of_two = 590.0;  // in the type of a desk
  return window.height() < height_of_two * scaleOf(window) ? 1 : 2;
}

void Lecture::setActive(bool active) {
  if (active == active_) return;
  active_ = active;
  if (active)
    enter();
  else
    leave();
  emit changed(active);
}

void Lecture::enter() {
  QMainWindow* window = frame_->window();
  size_ = window->size();
  state_ = window->windowState();
  focus_ = QApplication::focusWidget();
  returning_ = false;
  frame_->lab()->holdArrangement(true);
  player_->setLecture(true);
  window->menuBar()->hide();
  window->statusBar()->hide();
  for (QToolBar* bar : window->findChildren<QToolBar*>(Qt::FindDirectChildrenOnly)) bar->hide();
  for (FlatDock* one : frame_->docks()) one->hide();
  qApp->installEventFilter(this);
  window->setWindowState(state_ | Qt::WindowFullScreen);
  roomOf_ = {};
  follow();
  words_->setText(
      tr("Page Down and Page Up go through the steps. A full stop blanks the screen, P shows the pointer, Esc ends the lecture. "
         "Answers that are given here are not kept."));
  words_->show();
  QTimer::singleShot(10'000, words_, &QWidget::hide);
  fit();
}

void Lecture::leave() {
  QMainWindow* window = frame_->window();
  qApp->removeEventFilter(this);
  for (QWidget* one : {ring_, blank_, static_cast<QWidget*>(words_)}) one->hide();
  goes_.reset();
  frame_->look()->setScale(1.0);
  view_->setScale(1.0);
  dock_->header()->setHeadline({});
  window->menuBar()->show();
  window->statusBar()->show();
  returning_ = window->size() != size_;
  window->setWindowState(state_);
  player_->setLecture(false);
  frame_->lab()->holdArrangement(false);
  if (focus_ && focus_->isVisible()) focus_->setFocus();
}

/// Type by the size of the screen, and a third of it or more for the text.
void Lecture::fit() {
  QMainWindow* window = frame_->window();
  if (!active_) {
    // The docks have the proportions of before once the window has its size.
    if (std::exchange(returning_, false)) frame_->lab()->arrange(frame_->lab()->arranged());
    return;
  }
  if (roomOf_ != window->size()) {
    roomOf_ = window->size();
    const double scale = scaleOf(roomOf_);
    frame_->look()->setScale(scale);
    view_->setScale(reading * scale);
  }
  window->resizeDocks({dock_}, {window->width() * 2 / 5}, Qt::Horizontal);
  blank_->setGeometry(window->rect());
  if (!words_->isHidden()) {
    const int width = std::min(window->width() - 80, 900);
    words_->resize(width, words_->heightForWidth(width));
    words_->move((window->width() - width) / 2, window->height() - words_->height() - 24);
    words_->raise();
  }
}

void Lecture::follow() {
  goes_.reset();
  if (!active_) return;
  for (FlatDock* one : frame_->docks()) one->setVisible(one == dock_ && player_->lesson() != nullptr);
  if (!dock_->isHidden()) dock_->raise();
  if (const Lesson* lesson = player_->lesson())
    dock_->header()->setHeadline(
        tr("%1 of %2, %3").arg(player_->step() + 1).arg(lesson->steps.size()).arg(QString::fromStdString(lesson->title)));
  frame_->area()->setFocus();  // a field or a box that the keyboard came to by itself would take the keys
  soon_.start();
}

void Lecture::makeRoomFor(const QString& target) {
  if (!active_) return;
  QMainWindow* window = frame_->window();
  QString part = target.section('/', 0, 0);
  if (part == u"dock") part = target.section('/', 1);
  if (part == u"time")
    if (auto* bar = window->findChild<QToolBar*>("scrubber")) bar->show();
  for (FlatDock* one : frame_->docks())
    if (one->objectName() == "dock." + part && one->isHidden()) {
      window->setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
      window->addDockWidget(Qt::BottomDockWidgetArea, one);
      one->show();
      window->resizeDocks({one}, {window->height() * 2 / 5}, Qt::Vertical);
    }
}

void Lecture::turn(int by) {
  const Lesson* lesson = player_->lesson();
  if (lesson == nullptr || (!goes_ && view_->scrollOn(by))) return;
  const std::size_t from = goes_.value_or(player_->step());
  if (by < 0 ? from == 0 : from + 1 >= lesson->steps.size()) return;
  goes_ = by < 0 ? from - 1 : from + 1;
  player_->go(*goes_);
}

bool Lecture::takesKey(int key) const {
  const QWidget* focus = QApplication::focusWidget();
  switch (key) {
    case Qt::Key_PageDown:
    case Qt::Key_PageUp:
    case Qt::Key_Escape:
    case Qt::Key_F5: return true;
    case Qt::Key_Left:
    case Qt::Key_Right:
      return !isTypedIn(focus) && qobject_cast<const QAbstractSlider*>(focus) == nullptr &&
             qobject_cast<const QTabBar*>(focus) == nullptr && qobject_cast<const QComboBox*>(focus) == nullptr;
    case Qt::Key_Period:
    case Qt::Key_B:
    case Qt::Key_P: return !isTypedIn(focus);
    default: return false;
  }
}

void Lecture::press(int key) {
  words_->hide();
  if (blank_->isVisible()) return blank_->hide();  // by any key
  switch (key) {
    case Qt::Key_PageDown:
    case Qt::Key_Right: return turn(1);
    case Qt::Key_PageUp:
    case Qt::Key_Left: return turn(-1);
    case Qt::Key_Period:
    case Qt::Key_B:
      blank_->setGeometry(frame_->window()->rect());
      blank_->show();
      return blank_->raise();
    case Qt::Key_P:
      ring_->setVisible(ring_->isHidden());
      ring_->move(frame_->window()->mapFromGlobal(QCursor::pos()) - ring_->rect().center());
      return ring_->raise();
    case Qt::Key_Escape: return setActive(false);
    default: return;
  }
}

bool Lecture::eventFilter(QObject* watched, QEvent* event) {
  QMainWindow* window = frame_->window();
  if (watched == window && event->type() == QEvent::Resize) soon_.start();
  if (!active_) return false;
  switch (event->type()) {
    case QEvent::ShortcutOverride:
    case QEvent::KeyPress: {
      if (QApplication::activeWindow() != window || QApplication::activePopupWidget() != nullptr) return false;
      const auto* key = static_cast<QKeyEvent*>(event);
      // A clicker that begins and ends by one button is a press behind where the keyboard did one of these: its beginning ends nothing.
      const Qt::KeyboardModifiers with = key->modifiers() & ~Qt::KeypadModifier;
      if (with != Qt::NoModifier && !(with == Qt::ShiftModifier && key->key() == Qt::Key_F5)) return false;
      if (!watched->isWidgetType() || !takesKey(key->key())) return false;
      event->accept();  // else it would be the shortcut of an action
      if (event->type() == QEvent::KeyPress) press(key->key());
      return true;
    }
    case QEvent::MouseButtonPress:
      if (watched == blank_) blank_->hide();
      return watched == blank_;
    case QEvent::MouseMove:
      // A window of the system is told of every move, a widget of those that it asked for.
      if (watched->isWindowType() && !ring_->isHidden()) {
        ring_->move(window->mapFromGlobal(static_cast<QMouseEvent*>(event)->globalPosition().toPoint()) - ring_->rect().center());
        ring_->raise();
      }
      return false;
    default: return false;
  }
}

}  // namespace reclab
