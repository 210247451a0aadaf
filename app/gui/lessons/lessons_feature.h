// SPDX-License-Identifier: GPL-3.0-or-later
// Lessons in the window: their dock and menu, the arrow, and what a step of one shows.
#pragma once

#include <QObject>
#include <QPointer>
#include <QVariantMap>
#include <optional>

#include "gui/frame/lab_state.h"
#include "lessons/lesson.h"

class QAction;
class QMenu;
class QProcess;

namespace reclab {

class FlatDock;
class Lecture;
class LessonPlayer;
class LessonView;
class Pointer;
class WindowFrame;

class LessonsFeature : public QObject {
  Q_OBJECT
 public:
  explicit LessonsFeature(WindowFrame* frame);
  LessonPlayer* player() const { return player_; }
  LessonView* view() const { return view_; }
  Pointer* pointer() const { return pointer_; }
  Lecture* lecture() const { return lecture_; }
  QMenu* menu() const { return menu_; }
  FlatDock* dock() const { return dock_; }
  void begin(const QString& lesson);  ///< once the presets are read; with this lesson where it is not empty
  void open(const QString& id);
  /// The arrangement before the lesson that a written state has open; nothing where it has none.
  static std::optional<Arranged> arrangedBefore(const QVariantMap& written);

 private:
  void read();
  void buildMenu();
  void show();
  void allow();
  void arrangeLecture(bool begins);
  void print(const QString& step);
  void makeRoom();
  void restore();
  void putBackDocks();
  void lookAgain();
  void lookAt(const LabSetup& lab, bool asked);
  void arrange(const LabSetup& lab);
  void arrangePanels(const QStringList& ids, bool beside = false);
  void point();
  void withhold();  ///< the pictures, while a prediction is asked for
  void pointAt(const QString& target, const QString& words);
  QString wordsAt(const QString& target) const;
  QString sayOf(const LabSetup& lab) const;
  void follow(const QString& link);
  void save();

  WindowFrame* frame_;
  LessonPlayer* player_;
  LessonView* view_;
  FlatDock* dock_;
  Pointer* pointer_;
  Lecture* lecture_;
  QMenu* menu_;
  bool read_ = false, aside_ = false;
  QVariantMap before_;                 ///< the arrangement before the lesson, as it is written
  QString target_, words_;             ///< of the arrow
  QString looked_;                     ///< the step whose views are shown
  QList<QPointer<FlatDock>> brought_;  ///< parts that were hidden until the arrow pointed into them
  QPointer<QProcess> printing_;
  std::size_t lectured_ = 0;       ///< the step at which the lecture began
  const LabSetup* lab_ = nullptr;  ///< whose time and arrow are still to be set, when its run is there
};

}  // namespace reclab
