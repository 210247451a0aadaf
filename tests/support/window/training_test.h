// SPDX-License-Identifier: GPL-3.0-or-later
// Helpers of tests of training in the window: its start and pause, and reads of it.
#pragma once

#include <QToolButton>
#include <optional>

#include "gui/docks/panel_area.h"
#include "gui/learning/training_bar.h"
#include "panels/learning/learning.h"
#include "window_test.h"

namespace reclab::test {

class TrainingTest : public WindowTest {
 protected:
  TrainingBar* bar() { return window_->trainingBar(); }
  LearningPanel* panel() { return qobject_cast<LearningPanel*>(window_->area()->dock("learning")->panel()); }
  void open(const QString& model = "gru", const QString& task = "adding", std::int64_t steps = 100'000) {
    Options options;
    options.model = model;
    options.given["--task"] = task.toStdString();
    options.given["--length"] = "20";
    options.given["--set"] = "width=8";
    WindowTest::open(options);
    TrainingChoice choice;
    choice.steps = steps;
    choice.options.batch = 8;
    choice.options.rate.rate = 0.01;
    bar()->settings()->setChoice(choice);
  }
  LearningCurvePtr curve() {
    const LearningPtr& learning = session().learning();
    return learning && !learning->trainings.empty() ? learning->trainings.back() : nullptr;
  }
  std::int64_t done() { return curve() ? curve()->done : -1; }
  void click(QToolButton* button) {
    QVERIFY2(button->isVisible() && button->isEnabled(), qPrintable(button->objectName()));
    QTest::mouseClick(button, Qt::LeftButton);
  }
  /// The button of the tool bar, as the first training begins.
  void begin() {
    QToolButton* button = nullptr;
    for (QToolButton* one : window_->findChildren<QToolButton*>())
      if (one->defaultAction() == window_->action("train") && one->isVisible()) button = one;
    QVERIFY(button != nullptr);
    QTest::mouseClick(button, Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(session().training(), patience);
  }
  void pause() {
    click(bar()->trainButton());
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && atRest(), patience);
  }
  void trainFor(std::int64_t steps) {
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(done() >= steps, patience);
    pause();
  }
  std::optional<LearnedInfo> looked() { return session().trace()->info.learned; }
};

}  // namespace reclab::test
