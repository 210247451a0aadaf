// SPDX-License-Identifier: GPL-3.0-or-later
// Where exports go: the dialog proposes a folder of their own beside what was used last, and never one that is there.
#include <QDialog>
#include <QLineEdit>
#include <QSettings>
#include <QTimer>

#include "gui/dialogs/file_dialogs.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

class TestFolders : public test::WindowTest {
  Q_OBJECT
 private:
  /// Answers the dialog that the action opens: as it is, or with another folder. What it proposed.
  QString export_(const QString& action, const QString& other = {}) {
    QString proposed;
    QTimer asks;
    connect(&asks, &QTimer::timeout, this, [&] {
      auto* dialog = qobject_cast<FolderDialog*>(QApplication::activeModalWidget());
      if (!dialog) return;
      asks.stop();
      auto* line = dialog->findChild<QLineEdit*>();
      proposed = line->text();
      if (!other.isEmpty()) line->setText(other);
      dialog->accept();
    });
    asks.start(10);
    window_->action(action)->trigger();
    return proposed;
  }
  QString in(const QString& name) const { return own_.filePath(name); }

  QDir own_;

 private slots:
  void init() {
    test::forgetAll();
    open(onWaves(50));
    window_->setFileChooser(dialogChooser());
    own_ = QDir(folder_.filePath(QTest::currentTestFunction()));
    QVERIFY(own_.mkpath("."));
    QSettings().setValue("lastFolder", own_.path());
  }
  void cleanup() { close(); }

  void exportsProposeFoldersOfTheirOwn() {
    const QString stem = "lstm-" + QFileInfo(QString::fromStdString(session().trace()->info.input_name)).completeBaseName();
    QCOMPARE(export_("exportRun"), in(stem));
    QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(in(stem + "/trace.npz")), patience);
    // What was exported first stays, and the next one stands beside it.
    QCOMPARE(export_("exportRun"), in(stem + "-2"));
    QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(in(stem + "-2/trace.npz")), patience);
    QCOMPARE(export_("exportData"), in("lstm-figures"));
    QVERIFY(!QDir(in("lstm-figures")).entryList({"lstm-*.csv"}).isEmpty());
  }

  void aFolderThatWasChosenIsWhereTheNextBegins() {
    QVERIFY(own_.mkdir("mine"));
    const QString first = export_("exportData", in("mine"));
    QCOMPARE(first, in("lstm-figures"));
    QCOMPARE(export_("exportData"), in("mine/lstm-figures"));
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestFolders>(argc, argv, "folders-test"); }

#include "test_folders.moc"
