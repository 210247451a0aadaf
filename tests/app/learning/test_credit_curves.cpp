// SPDX-License-Identifier: GPL-3.0-or-later
// The training of one model by several rules in the panel Credit, by hand: it runs beside the window, is stopped, and draws what `reclab`
// has for the line that stands under it.
#include <QCheckBox>
#include <QComboBox>
#include <QPushButton>
#include <QTest>
#include <algorithm>
#include <cmath>

#include "gui/session/requests.h"
#include "models/registry.h"
#include "panels/credit/credit.h"
#include "studies/study.h"
#include "training_test.h"

using namespace reclab;
using test::patience;

class TestCreditCurves : public test::TrainingTest {
  Q_OBJECT

 private:
  CreditPanel* credit() { return qobject_cast<CreditPanel*>(window_->area()->dock("credit")->panel()); }
  template <class Widget>
  Widget* find(const char* name) {
    return credit()->findChild<Widget*>(QString::fromLatin1(name));
  }
  /// A choice of a box by the keys of a person.
  void choose(QComboBox* box, const QString& text) {
    const int wanted = box->findText(text);
    QVERIFY2(wanted >= 0, qPrintable(text));
    box->setFocus();
    for (int i = 0; i < box->count() && box->currentIndex() != wanted; ++i)
      QTest::keyClick(box, box->currentIndex() < wanted ? Qt::Key_Down : Qt::Key_Up);
    QCOMPARE(box->currentText(), text);
  }
  void show() {
    open("elman", "adding");
    QTRY_VERIFY_WITH_TIMEOUT(atRest(), patience);
    PanelDock* dock = window_->area()->dock("credit");
    window_->area()->open(dock);
    QTRY_VERIFY_WITH_TIMEOUT(dock->inSight() && credit()->isVisible(), patience);
    choose(find<QComboBox>("view"), "Training");
    QCOMPARE(credit()->view(), CreditPanel::View::training);
    QTRY_VERIFY_WITH_TIMEOUT(find<QCheckBox>("train.bptt") != nullptr, patience);  // the rules have been asked
  }
  /// Chooses in the sheet under the button.
  void chooseInSheet(const char* name, const QString& text) {
    auto* more = find<QToolButton>("creditChoices");
    QTest::mouseClick(more, Qt::LeftButton);
    auto* box = find<QComboBox>(name);
    QTRY_VERIFY(box->isVisible());
    choose(box, text);
    QTest::keyClick(box->window(), Qt::Key_Escape);
    QTRY_VERIFY(!box->isVisible());
  }

 private slots:
  void cleanup() { close(); }

  void rulesTrainBesideTheWindow() {
    show();
    auto* offer = find<QPushButton>("offer");
    QVERIFY2(credit()->emptyReason().startsWith("Press “Train rules”"), qPrintable(credit()->emptyReason()));
    chooseInSheet("trainSteps", "20");
    QVERIFY2(credit()->emptyReason().contains("for 20 steps"), qPrintable(credit()->emptyReason()));
    QTest::mouseClick(offer, Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(credit()->curves().rules.size(), 3U, patience);
    QCOMPARE(credit()->emptyReason(), QString());
    const QString line = credit()->curves().command;
    QVERIFY2(line.startsWith("reclab credit-curves elman") && credit()->said().endsWith(line), qPrintable(credit()->said()));
    // What the study has by itself, of the same setup.
    const PresetLibrary library(builtin_registry(), preset_folders());
    StudyInput input{builtin_registry(), library, requestFor(session().setup(), library.find("elman"), {})};
    const TracePtr made = study("credit-curves")
                              .compute(input, {{"rules", "bptt,uoro,snap"}, {"steps", "20"}, {"rate", "0.01"}, {"batch", "8"}}, {}, {})
                              .get<Trace>();
    QCOMPARE(line.toStdString(), made->find("rule_curve/plan")->text);
    for (const CurveData::Rule& rule : credit()->curves().rules) {
      const auto& loss = *made->find("rule_curve/" + rule.id.toStdString() + "/loss")->real;
      QVERIFY2(rule.loss == loss && loss.size() == 20U && rule.problem.isEmpty(), qPrintable(rule.id));
      QCOMPARE(rule.loss.front(), credit()->curves().rules.front().loss.front());  // the same weights, the same batch
    }
    QVERIFY(credit()->curves().rules[0].loss.back() != credit()->curves().rules[1].loss.back());
  }

  void aTrainingIsStoppedAndWhatWasThereStays() {
    show();
    chooseInSheet("trainSteps", "10");
    QTest::mouseClick(find<QPushButton>("offer"), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(credit()->curves().steps, std::int64_t{10}, patience);
    chooseInSheet("trainSteps", "2000");
    auto* start = find<QPushButton>("creditStart");
    QVERIFY(start->isVisible() && start->property("primary").toBool());
    QTest::mouseClick(start, Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(start->text(), QStringLiteral("Stop"), patience);
    QTest::mouseClick(start, Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(start->text().startsWith("Train"), patience);
    QCOMPARE(credit()->curves().steps, std::int64_t{10});
    // Undo takes choices of the closed sheet back, the newest first.
    chooseInSheet("trainRate", "0.03");
    QTRY_COMPARE((window_->action("undo")->trigger(), find<QComboBox>("trainRate")->currentText()), QStringLiteral("0.01"));
  }

  void aRuleThatDivergesSaysSo() {
    show();
    chooseInSheet("trainSteps", "100");
    chooseInSheet("trainRate", "1");
    for (const char* rule : {"train.uoro", "train.snap"}) find<QCheckBox>(rule)->click();
    find<QCheckBox>("train.rbp")->click();  // which refuses where the state is at no stable fixed point
    QTest::mouseClick(find<QPushButton>("offer"), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(credit()->curves().rules.size(), 2U, patience);
    const CurveData::Rule& rbp = credit()->curves().rules[1];
    QVERIFY2(!rbp.problem.isEmpty() && rbp.made < 100, qPrintable(QString::number(rbp.made)));
    QVERIFY2(credit()->said().contains(rbp.problem), qPrintable(credit()->said()));
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestCreditCurves>(argc, argv, "credit-curves-test"); }
#include "test_credit_curves.moc"
