// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFrame>

#include "gui/lessons/lesson_player.h"
#include "lessons/lesson.h"

class QButtonGroup;
class QLabel;
class QLineEdit;
class QPushButton;

namespace reclab {

/// One question of a lesson: its words, what takes the answer, and the words on it.
class QuestionBox : public QFrame {
  Q_OBJECT
 public:
  QuestionBox(const Question& question, LessonPlayer* player, double scale, QWidget* parent);
  const Question& question() const { return question_; }
  void refresh();  ///< from the player: the newest answer, numbers, whether something is done
  QLabel* words() const { return words_; }

 signals:
  void pointWanted(QString target);
  void linkWanted(QString target);
  void answered();  ///< by hand, or what is to be done is done now

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void buildChoices();
  void buildNumber();
  void buildDeed();
  void give(const QString& answer);
  QString onceMore(const LessonPlayer::Answered& answered) const;
  void say(const QString& mark, const QString& html, bool right);

  Question question_;
  LessonPlayer* player_;
  double scale_;
  QLabel *text_ = nullptr, *words_ = nullptr;
  QButtonGroup* choices_ = nullptr;
  QLineEdit* number_ = nullptr;
  QString refused_;                    ///< a number that is none, a sentence
  bool built_ = false, done_ = false;  ///< what is to be done
};

}  // namespace reclab
