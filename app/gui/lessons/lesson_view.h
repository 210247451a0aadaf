// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <utility>
#include <vector>

#include "lessons/lesson.h"

class QLabel;
class QPushButton;
class QScrollArea;
class QToolButton;
class QVBoxLayout;

namespace reclab {

class LessonPlayer;
class QuestionBox;

/// The lesson beside the panels: the list of all, or the step that is open.
class LessonView : public QWidget {
  Q_OBJECT
 public:
  explicit LessonView(LessonPlayer* player, QWidget* parent = nullptr);
  void setScale(double scale);  ///< of its type
  double scale() const { return scale_; }
  void rebuild();
  void showWandered(bool wandered);
  /// Scrolls to the words on the newest answer of a question where they are out of sight.
  void seeWords(const QString& question);
  /// Scrolls on, or back, where there is more of the step than is in sight; false where there is not.
  bool scrollOn(int by);
  QList<QuestionBox*> questions() const;
  QPushButton* next() const { return next_; }
  QPushButton* back() const { return back_; }
  QPushButton* again() const { return again_; }

 signals:
  void pointWanted(QString target);
  void linkWanted(QString target);
  void saveWanted();

 private:
  void refresh();
  void fillList(QWidget* page, QVBoxLayout* column);
  void fillStep(QWidget* page, QVBoxLayout* column);
  QLabel* addProse(QWidget* page, const Prose& words);
  QPushButton* addTitle(QWidget* page, QVBoxLayout* column, const Lesson& lesson);  ///< opens it

  LessonPlayer* player_;
  double scale_ = 1.0;
  QWidget* head_;  ///< not in a lecture, whose dock is named by the step
  QScrollArea* scroll_;
  QLabel *title_, *place_;
  QToolButton* all_;
  QWidget* foot_;
  QPushButton *back_, *next_, *again_;
  std::vector<std::pair<QLabel*, Prose>> prose_;  ///< with numbers
};

}  // namespace reclab
