// SPDX-License-Identifier: GPL-3.0-or-later
// The base of tests of names that a stranger wrote: names that look like HTML with a picture, and a watch on that picture, so that whatever
// reads a name as markup is found by the file that it opens.
#pragma once

#include <sys/inotify.h>
#include <unistd.h>

#include <QAbstractButton>
#include <QApplication>
#include <QFormLayout>
#include <QHelpEvent>
#include <QImage>
#include <QLabel>
#include <QMouseEvent>
#include <QPointer>
#include <QToolTip>
#include <algorithm>
#include <array>

#include "plot/plot.h"
#include "window_test.h"

namespace reclab::test {

class StrangerTest : public WindowTest {
 protected:
  ~StrangerTest() override {
    if (watch_ >= 0) ::close(watch_);
  }
  /// Makes the picture, and sees that the watch sees what Qt does with a label that is left to guess.
  void watch() {
    QImage image(4, 4, QImage::Format_RGB32);
    image.fill(Qt::red);
    picture_ = folder_.filePath("p.png");
    QVERIFY(image.save(picture_));
    watch_ = inotify_init1(IN_NONBLOCK);
    QVERIFY(watch_ >= 0 && inotify_add_watch(watch_, picture_.toUtf8().constData(), IN_OPEN) >= 0);
    QLabel guess(evil("guessed"));
    guess.adjustSize();
    guess.grab();
    QVERIFY(opened() > 0);
  }
  /// How often the picture that the names are of was opened.
  int opened() const {
    alignas(inotify_event) std::array<char, 4096> buffer{};
    int count = 0;
    for (ssize_t got = 0; (got = read(watch_, buffer.data(), buffer.size())) > 0;)
      for (ssize_t at = 0; at < got; at += static_cast<ssize_t>(sizeof(inotify_event)) +
                                           reinterpret_cast<const inotify_event*>(&buffer[static_cast<std::size_t>(at)])->len)
        ++count;
    return count;
  }
  static void hover(QWidget* widget, QPoint at) {
    const QPoint global = widget->mapToGlobal(at);
    QMouseEvent move(QEvent::MouseMove, at, global, Qt::NoButton, Qt::NoButton, Qt::NoModifier);
    QApplication::sendEvent(widget, &move);
    QHelpEvent help(QEvent::ToolTip, at, global);
    QApplication::sendEvent(widget, &help);
    QCoreApplication::sendPostedEvents();
  }
  /// Over every widget of `window` that is to be seen, and over plots and lists at many places; how many said something.
  int hoverAll(QWidget* window) {
    int said = 0;
    QList<QPointer<QWidget>> all{window};  // a tooltip goes while others are hovered over
    for (QWidget* one : window->findChildren<QWidget*>()) all << one;
    for (const QPointer<QWidget>& one : all) {
      if (!one || !one->isVisible()) continue;
      const bool large = qobject_cast<Plot*>(one.data()) != nullptr || one->inherits("QAbstractItemView") ||
                         (one->parentWidget() && one->parentWidget()->inherits("QAbstractItemView"));
      const int step = large ? 12 : std::max({one->width(), one->height(), 1});
      for (int y = std::min(step, one->height()) / 2; one && y < one->height(); y += step)
        for (int x = std::min(step * 2, one->width()) / 2; one && x < one->width(); x += step * 2) {
          hover(one, {x, y});
          said += QToolTip::isVisible();
        }
    }
    return said;
  }
  QString evil(const QString& what) const { return what + " R&D <img src='" + picture_ + "'><b>bold</b>"; }

  QString picture_;

 private:
  int watch_ = -1;
};

}  // namespace reclab::test
