// SPDX-License-Identifier: GPL-3.0-or-later
// The survey's tables of complexities in the window: what is shipped is there at once, a row opens its model, and it can be measured and
// saved.
#include <QApplication>
#include <QFile>
#include <QPushButton>
#include <QSettings>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTest>

#include "gui/dialogs/complexity_dialog.h"
#include "gui/window/main_window.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

class TestComplexities : public test::WindowTest {
  Q_OBJECT

 private:
  ComplexityDialog* opened() {
    window_->action("complexities")->trigger();
    return window_->findChild<ComplexityDialog*>();
  }

 private slots:
  void init() {
    test::forgetAll();
    look_.apply(ThemeChoice::light);
    open(onWaves(40));
  }
  void cleanup() { close(); }

  void whatIsShippedIsThereAtOnceAndNothingIsCut() {
    for (const ThemeChoice theme : {ThemeChoice::light, ThemeChoice::dark}) {
      look_.apply(theme);
      ComplexityDialog* dialog = opened();
      QVERIFY(dialog != nullptr);
      QTRY_VERIFY(dialog->isVisible());
      QCOMPARE(dialog->table()->rowCount(), static_cast<int>(dialog->rows().size()));
      QVERIFY(dialog->rows().size() >= 9);
      QVERIFY(dialog->saveButton()->isEnabled());
      QTest::qWait(100);
      photograph(dialog, theme == ThemeChoice::light ? "complexities-light" : "complexities-dark");
      for (int row = 0; row < dialog->table()->rowCount(); ++row)
        for (int column = 0; column < dialog->table()->columnCount(); ++column) {
          const QTableWidgetItem* item = dialog->table()->item(row, column);
          QVERIFY(!item->text().isEmpty());
          const QRect room = dialog->table()->visualItemRect(item);
          const QRect wanted = QFontMetrics(item->font()).boundingRect(QRect(0, 0, room.width(), 10'000), Qt::TextWordWrap, item->text());
          QVERIFY2(wanted.height() <= room.height() && wanted.width() <= room.width(), qPrintable(item->text()));
        }
      delete dialog;
    }
  }

  void aRowOpensItsModel() {
    ComplexityDialog* dialog = opened();
    QTRY_VERIFY(dialog->isVisible());
    int row = 0;
    while (dialog->rows()[static_cast<std::size_t>(row)].preset != "retnet") ++row;
    dialog->table()->setCurrentCell(row, 0);
    QTest::keyClick(dialog->table(), Qt::Key_Return);
    QTRY_COMPARE_WITH_TIMEOUT(session().setup().preset, std::string("retnet"), patience);
    dialog->reject();
    QVERIFY(settle());
  }

  void itIsMeasuredStoppedAndSaved() {
    QTemporaryDir folder;
    const QString file = folder.filePath("complexities.csv");
    ComplexityDialog* dialog = new ComplexityDialog(
        session().library(), FileChooser{{}, [&](QWidget*, const QString&, const QString&, const QString&) { return file; }, {}},
        window_.get(), &session().scheduler());
    dialog->open();
    dialog->setMeasured({"elman", "rwkv-4"}, {32, 64});
    QTest::mouseClick(dialog->runButton(), Qt::LeftButton);
    QVERIFY(dialog->running());
    QTest::mouseClick(dialog->runButton(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(!dialog->running(), patience);
    QTRY_VERIFY2(dialog->words().startsWith("Stopped"), qPrintable(dialog->words()));
    QTest::mouseClick(dialog->runButton(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(!dialog->running() && dialog->rows().size() == 2, 4 * patience);
    QTRY_VERIFY2(dialog->words().contains("of 2 models"), qPrintable(dialog->words()));
    QTest::mouseClick(dialog->saveButton(), Qt::LeftButton);
    QFile saved(file);
    QVERIFY(saved.open(QIODevice::ReadOnly));
    QCOMPARE(saved.readAll().count('\n'), 3);
    dialog->reject();
  }

  void aMeasurementThatGivesWayBeginsAnew() {
    ComplexityDialog* dialog = opened();
    dialog->setMeasured({"elman", "rwkv-4"}, {64, 128, 256, 512, 1024, 2048});
    QTest::mouseClick(dialog->runButton(), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(dialog->rows().size(), std::size_t{1}, patience);
    Setup other = session().setup();
    ++other.seed;
    session().apply(other, true);
    QVERIFY(dialog->running());
    QCOMPARE(dialog->rows().size(), std::size_t{0});
    QCOMPARE(dialog->table()->rowCount(), 0);
    QTRY_VERIFY_WITH_TIMEOUT(!dialog->running(), 4 * patience);
    QCOMPARE(dialog->rows().size(), std::size_t{2});
    QCOMPARE(dialog->table()->rowCount(), 2);
    dialog->reject();
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestComplexities>(argc, argv, "complexities-test"); }

#include "test_complexities.moc"
