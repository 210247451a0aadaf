// SPDX-License-Identifier: GPL-3.0-or-later
// The lesson that is open: its step, what its numbers are, the answers, and how a step sets the lab up. No widgets.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <QTimer>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gui/frame/lab_state.h"
#include "gui/jobs/job.h"
#include "gui/session/setup.h"
#include "lessons/answers.h"
#include "lessons/lesson.h"
#include "lessons/play.h"

namespace reclab {

class WindowFrame;

/// The words on an answer, with their numbers.
struct AnswerWords {
  bool right = false;
  Prose words{};  ///< empty for a wrong answer that nobody thought of
};

class LessonPlayer : public QObject {
  Q_OBJECT
 public:
  explicit LessonPlayer(WindowFrame* frame);
  ~LessonPlayer() override;

  void read();  ///< the lessons and the answers that are kept
  const LessonLibrary& lessons() const { return library_; }
  const Lesson* lesson() const { return lesson_; }  ///< null: none is open
  std::size_t step() const { return step_; }

  /// Opens a lesson at a step, and sets the lab up for it: one change that undo takes back.
  void open(const QString& id, std::size_t step = 0);
  void go(std::size_t step);
  void setUpAgain() { prepare(*lesson_, step_); }
  void close();  ///< panels and docks are as they were before
  /// Opens it without setting the lab up; an empty id closes.
  void show(const QString& id, std::size_t step);
  /// The lesson whose trainings are listed; those from before it are put aside until it is closed.
  const QString& trains() const { return trains_; }
  void setTrains(const QString& id) { trains_ = id; }
  /// Whether what is set differs from what the step sets.
  bool wandered() const;
  /// Whether a hand changed anything of that, or moved cursor, panels or pins, since the step set the lab up.
  bool touched(const Question& question) const;
  void isSetUp() { viewThen_ = view(); }  ///< its run is there, and cursor and panels are as it sets them

  /// How many of the step's blocks are shown: all, or those before a lab that waits for a prediction.
  std::size_t shownBlocks() const;
  bool awaitsPrediction() const;  ///< it is not all
  /// The words with their numbers; nothing while these are being measured. A number that cannot be measured is a sentence in their place.
  std::optional<Prose> numbered(const Prose& words) const;
  bool hasMeasured() const;  ///< the numbers of the step are there, or cannot be
  /// Judges an answer, and keeps it. Throws Error for a number that is none, and where the lab has not measured yet.
  AnswerWords answer(const Question& question, const QString& given);
  /// The words on the newest answer that was given, and that answer; nothing where there is none.
  struct Answered {
    QString given;
    AnswerWords words;
    std::size_t tries = 1;
    int side = 0;  ///< of a number that nobody thought of: 1 where the right one is more, -1 where it is less
  };
  std::optional<Answered> answered(const Question& question) const;
  bool isRight(const QString& question) const;  ///< answered rightly, now or before
  bool allDone() const;                         ///< the step has something to do, and all of it was done, now or before
  /// The words on something to do when it was done, before the step was left; empty where it was before the program began.
  Prose wordsOfDeed(const Question& question) const;
  int right(const Lesson& lesson) const;
  /// The next one of the list that has questions left; null where there is none.
  const Lesson* following() const;
  bool hasAnswers() const;  ///< of any lesson

  const Answers& answers() const { return answers_; }
  void setName(const QString& name);
  void forget(const QString& lesson);  ///< its answers
  static QString answersFile();
  /// In a lecture questions begin without answers, and those that are given are forgotten at its end: a lecturer's clicks are no student's.
  void setLecture(bool is);

 signals:
  void opened();         ///< another lesson, another step or none
  void blocksChanged();  ///< more of the step is shown
  void numbersCame();
  void judged(QString question);  ///< something to do was looked at again
  void answersChanged();
  void setUp(const reclab::LabSetup* lab);
  void aboutToSetUp();
  void aboutToOpen();  ///< by hand, where no lesson is open
  void closed();       ///< by hand

 private:
  struct Place {
    QString lesson;
    std::size_t step = 0;
    bool operator==(const Place&) const = default;
  };
  struct Deed {
    QString question;
    Setup setup;
    std::map<std::string, double> view;
    bool operator==(const Deed&) const = default;
  };
  struct DeedWords {
    AnswerWords words;
    QString given;
  };
  using Known = std::map<std::string, double>;
  std::size_t blocksBefore(const Lesson& lesson, std::size_t step) const;
  const std::vector<GivenAnswer>* given(const Lesson& lesson, const std::string& question) const;  ///< null: none
  const LabSetup* labAt(const Place& place) const;
  const LabSetup* labOfStep() const;  ///< the one that is in force
  void prepare(const Lesson& lesson, std::size_t step);
  void enter(const QString& lesson, std::size_t step);
  void apply(const Place& place, const LoadedSequencePtr& sequence);
  void measure();
  void judgeDeeds();
  std::map<std::string, double> view() const;
  SequenceChoice choiceOf(const TypedRun& run) const;
  Setup setupOf(const TypedRun& run, const LoadedSequencePtr& sequence) const;
  void keep();
  void note(const Question& question, const QString& given, bool right);

  WindowFrame* frame_;
  LessonLibrary library_;
  Answers answers_;
  std::optional<Answers> own_;  ///< those outside of the lecture
  const Lesson* lesson_ = nullptr;
  std::size_t step_ = 0;
  QString trains_;
  std::map<const LabSetup*, Known> known_;
  std::map<const LabSetup*, QString> problems_;  ///< why a lab could not be measured
  std::map<QString, AnswerWords> deeds_;         ///< of things to do, as they stand
  std::map<std::string, Prose> done_;            ///< by "lesson#question", the words when it was done
  std::map<std::string, double> viewThen_;       ///< when the run of the step was there
  std::map<QString, Deed> judgedOf_;             ///< of each thing to do, the state that it was judged in last
  Job<Place, LoadedSequencePtr> prepares_;
  Job<Place, Known> measures_;
  Job<Deed, DeedWords> deedsJob_;
  QTimer soon_;
};

}  // namespace reclab
