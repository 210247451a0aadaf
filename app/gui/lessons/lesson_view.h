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
  QWidget* listPage();
  QWidget* stepPage();
  QLabel* addProse(QWidget* page, const Prose& words);

  LessonPlayer* player_;
  double scale_ = 1.0;
  QScrollArea* scroll_;
  QLabel *title_, *place_;
  QToolButton* all_;
  QWidget* foot_;
  QPushButton *back_, *next_, *again_;
  std::vector<std::pair<QLabel*, Prose>> prose_;  ///< with numbers
};

}  // namespace reclab
