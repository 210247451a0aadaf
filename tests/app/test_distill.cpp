// SPDX-License-Identifier: GPL-3.0-or-later
// The dialog of distillation: rows and curves, a stop, a sentence where there is no filter, and a model that opens with its weights.
#include <QApplication>
#include <QPushButton>
#include <QSettings>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTest>
#include <cmath>

#include "gui/dialogs/distil_dialog.h"
#include "gui/window/main_window.h"
#include "plot/plot.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

class TestDistill : public test::WindowTest {
  Q_OBJECT

 private:
  DistilDialog* opened() {
    window_->action("distill")->trigger();
    return window_->findChild<DistilDialog*>();
  }
  bool distilled(DistilDialog* dialog, int modes, int taps) {
    dialog->modes()->setValue(modes);
    dialog->taps()->setValue(taps);
    QTest::mouseClick(dialog->runButton(), Qt::LeftButton);
    return QTest::qWaitFor([&] { return !dialog->running(); }, patience);
  }
  void looksAt(const QString& preset, const Settings& set) {
    Options options = onWaves(60);
    options.model = preset;
    if (!set.empty()) options.given["--set"] = list_of_names(names_of_pairs(set));
    open(options);
  }

 private slots:
  void init() {
    test::forgetAll();
    look_.apply(ThemeChoice::light);
  }
  void cleanup() { close(); }

  void errorsFallWithTheModesAndAreDrawn() {
    looksAt("hyena", {{"width", "4"}, {"l_max", "128"}, {"filter_order", "6"}});
    DistilDialog* dialog = opened();
    QVERIFY(dialog != nullptr);
    QTRY_VERIFY(dialog->isVisible());
    QVERIFY(!dialog->openButton()->isEnabled());
    QVERIFY(!dialog->plot()->isVisible());  // axes of nothing say nothing
    QVERIFY(distilled(dialog, 12, 128));
    QVERIFY(dialog->plot()->isVisible());
    QCOMPARE(dialog->table()->rowCount(), 7);
    for (std::size_t i = 0; i < dialog->rows().size(); ++i) {
      const ModesRow& row = dialog->rows()[i];
      QVERIFY(row.l2 <= row.above && row.hankel >= row.below * (1.0 - 1e-9));
      if (i) QVERIFY(row.l2 <= dialog->rows()[i - 1].l2);
    }
    QCOMPARE(dialog->plot()->graphCount(), 4);
    for (int i = 0; i < 3; ++i) QVERIFY(dialog->plot()->graph(i)->dataCount() > 0);
    QVERIFY2(dialog->words().startsWith("4 channels of 1 filter: with 12 modes, ") && dialog->words().contains("whole model"),
             qPrintable(dialog->words()));
    // A dash under "at most" is explained, in its cell and under the table.
    for (int row = 0; row < dialog->table()->rowCount(); ++row)
      if (const QTableWidgetItem* bound = dialog->table()->item(row, 2); bound->text() == QStringLiteral("–"))
        QVERIFY2(bound->toolTip().contains("bounds nothing") && dialog->words().contains(QStringLiteral("– under “at most”")),
                 qPrintable(dialog->words()));
    photograph(dialog, "distill-light");
    look_.apply(ThemeChoice::dark);
    QTest::qWait(100);
    photograph(dialog, "distill-dark");
    dialog->reject();
  }

  void theDistilledModelOpensWithItsWeightsAndCanBeUndone() {
    looksAt("hyena", {{"width", "4"}, {"l_max", "64"}, {"filter_order", "6"}});
    QTemporaryDir folder;
    window_->setFileChooser({{}, {}, [&](QWidget*, const QString&, const QString&) { return folder.path(); }});
    const TracePtr before = session().trace();
    DistilDialog* dialog = opened();
    QTRY_VERIFY(dialog->isVisible());
    QVERIFY(distilled(dialog, 24, 64));
    const double lost = dialog->rows().back().l2;
    QTest::mouseClick(dialog->openButton(), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(session().setup().preset, std::string("laughing-hyena"), patience);
    QVERIFY(settle());
    const TracePtr after = session().trace();
    QCOMPARE(hyperOf(after, "width"), QString("4"));
    QVERIFY(QString::fromStdString(after->info.weights).startsWith(folder.path()));
    QVERIFY(after->find("spectrum/0") != nullptr || after->info.outcome == Outcome::finished);
    const std::vector<double>&is = *after->find("output")->real, &was = *before->find("output")->real;
    QCOMPARE(is.size(), was.size());
    double off = 0.0, size = 0.0;
    for (std::size_t i = 0; i < is.size(); ++i) {
      off = std::max(off, std::abs(is[i] - was[i]));
      size = std::max(size, std::abs(was[i]));
    }
    QVERIFY2(off <= std::max(20.0 * lost, 1e-9) * size, qPrintable(QString("%1 of %2, filters off by %3").arg(off).arg(size).arg(lost)));
    window_->action("undo")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(session().setup().preset, std::string("hyena"), patience);
    QVERIFY(settle());
  }

  void aFilterOfAnotherModelOpensOnAnImpulse() {
    looksAt("sgconv", {});
    QTemporaryDir folder;
    window_->setFileChooser({{}, {}, [&](QWidget*, const QString&, const QString&) { return folder.path(); }});
    DistilDialog* dialog = opened();
    QTRY_VERIFY(dialog->isVisible());
    QVERIFY(distilled(dialog, 4, 64));
    QTest::mouseClick(dialog->openButton(), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(session().setup().preset, std::string("laughing-hyena"), patience);
    QVERIFY(settle());
    QCOMPARE(session().setup().sequence->choice.task, std::string("impulse"));
    QCOMPARE(hyperOf(session().trace(), "block"), QString("filter"));
  }

  void aModelWithoutFiltersSaysSoAndALongOneIsStopped() {
    looksAt("gru", {});
    DistilDialog* dialog = opened();
    QTRY_VERIFY(dialog->isVisible());
    QVERIFY(distilled(dialog, 4, 64));
    QVERIFY2(dialog->words().contains("has no long filter"), qPrintable(dialog->words()));
    QVERIFY(!dialog->openButton()->isEnabled());
    dialog->reject();
    close();
    looksAt("hyena", {});
    dialog = opened();
    QTRY_VERIFY(dialog->isVisible());
    dialog->modes()->setValue(64);
    dialog->taps()->setValue(4096);
    QTest::mouseClick(dialog->runButton(), Qt::LeftButton);
    QVERIFY(dialog->running());
    QTest::mouseClick(dialog->runButton(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(!dialog->running(), patience);
    QTRY_VERIFY2(dialog->words().startsWith("Stopped"), qPrintable(dialog->words()));
    dialog->reject();
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestDistill>(argc, argv, "distill-test"); }

#include "test_distill.moc"
