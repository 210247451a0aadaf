// SPDX-License-Identifier: GPL-3.0-or-later
// The program recurrence-lab as a shell sees it: figures without a window, and one line for each mistake.
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QImage>
#include <QProcess>
#include <QSvgRenderer>
#include <QTemporaryDir>
#include <QTest>

#include "panel.h"

using reclab::PanelInfo;
using reclab::panels;

namespace {

struct Ended {
  int status = -1;
  QStringList out, errors;
};

Ended start(const QStringList& arguments) {
  QProcess process;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  static const QTemporaryDir runtime;  // of the user alone; Qt speaks of it where it is missing
  environment.insert("XDG_RUNTIME_DIR", runtime.path());
  process.setProcessEnvironment(environment);
  process.start(QString(RECLAB_BINARY_DIR) + "/bin/recurrence-lab", arguments);
  if (!process.waitForFinished(300'000)) return {};
  const auto lines = [](const QByteArray& text) { return QString::fromUtf8(text).split('\n', Qt::SkipEmptyParts); };
  return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1, lines(process.readAllStandardOutput()), lines(process.readAllStandardError())};
}

}  // namespace

class TestStart : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;

 private slots:
  void mistakesAreOneLine_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("names");
    QTest::newRow("a model that there is not") << QStringList{"lstn"} << "lstn";
    QTest::newRow("a file that there is not") << QStringList{"--input", "/nowhere/at/all.csv"} << "/nowhere/at/all.csv";
    QTest::newRow("weights that there are not") << QStringList{"lstm", "--weights", "/nowhere/w.npz"} << "/nowhere/w.npz";
    QFile text(folder_.filePath("text.safetensors"));
    QVERIFY(text.open(QIODevice::WriteOnly) && text.write("hello, this is a text") > 0);
    QTest::newRow("weights that are none") << QStringList{"lstm", "--weights", text.fileName()} << "text.safetensors is not a safetensors file";
    QTest::newRow("a state that is none, and no window") << QStringList{"lstm", "--state", text.fileName(), "--figures", "x"} << "text.safetensors is not a safetensors file";
    QTest::newRow("a task that there is not") << QStringList{"--task", "addding"} << "addding";
    QTest::newRow("a hyper-parameter that there is not") << QStringList{"lstm", "--set", "widht=3"} << "widht";
    QTest::newRow("a value out of range") << QStringList{"lstm", "--set", "width=-3"} << "width";
    QTest::newRow("an option that there is not") << QStringList{"--wdith", "3"} << "wdith";
    QTest::newRow("a length that is none") << QStringList{"--task", "noise", "--length", "many"} << "many";
    for (const char* option : {"--input", "--task", "--weights", "--state", "--seed", "--length", "--theme", "--figures", "--panels"})
      QTest::newRow(option) << QStringList{option, ""} << QString(option) + " is empty";
    QTest::newRow("two sequences") << QStringList{"--task", "noise", "--input", "a.csv"} << "--input";
    QTest::newRow("two models") << QStringList{"lstm", "gru"} << "gru";
    QTest::newRow("a format that there is not") << QStringList{"--figures", "x", "--format", "gif"} << "gif";
    QTest::newRow("a panel that there is not") << QStringList{"--figures", "x", "--panels", "gradients,gates"} << "names gates, which there is not; there are spectrum";
    QTest::newRow("panels of no figures") << QStringList{"--panels", "gradients"} << "--panels belongs to --figures";
    QTest::newRow("a folder that cannot be") << QStringList{"lstm", "--task", "noise", "--length", "20", "--figures", "/proc/nowhere"} << "/proc/nowhere";
  }
  void mistakesAreOneLine() {
    QFETCH(QStringList, arguments);
    QFETCH(QString, names);
    const Ended ended = start(arguments);
    QCOMPARE(ended.status, 2);
    QCOMPARE(ended.out, QStringList());
    QVERIFY2(ended.errors.size() == 1 && ended.errors[0].contains(names), qPrintable(ended.errors.join(" / ")));
  }

  void figuresWithoutAWindow_data() {
    QTest::addColumn<QString>("format");
    QTest::addColumn<QStringList>("wanted");
    QTest::newRow("svg, all") << "svg" << QStringList();  // which times the forms
    for (const char* format : {"png", "pdf"}) QTest::newRow(format) << format << QStringList{"gradients", "steps"};
  }
  void figuresWithoutAWindow() {
    QFETCH(QString, format);
    QFETCH(QStringList, wanted);
    const QString out = folder_.filePath(format);
    QStringList arguments{"gru", "--task", "noise", "--length", "120", "--set", "width=12", "--seed", "3", "--figures", out, "--format", format};
    if (!wanted.isEmpty()) arguments << "--panels" << wanted.join(',');
    const Ended ended = start(arguments);
    QVERIFY2(ended.status == 0, qPrintable(ended.errors.join(" / ")));
    QStringList names;
    for (const QString& path : ended.out) {
      names << QFileInfo(path).fileName();
      QVERIFY2(QFileInfo(path).size() > 1000, qPrintable(path));
      if (format == "png") QVERIFY(QImage(path).width() >= 600);
      if (format == "svg") QVERIFY(QSvgRenderer(path).isValid());
    }
    // The list is the program's own: a panel that is added is drawn too.
    if (wanted.isEmpty())
      for (const PanelInfo& info : panels()) wanted << info.id;
    QCOMPARE(names.size(), wanted.size());
    for (const QString& id : wanted) QVERIFY2(names.contains(id + "." + format), qPrintable(id));
    QCOMPARE(QDir(out).entryList(QDir::Files | QDir::Hidden).size(), names.size());
  }

  void helpAndVersion() {
    QCOMPARE(start({"--version"}).status, 0);
    const Ended help = start({"--help"});
    QCOMPARE(help.status, 0);
    QVERIFY(help.out.join(' ').contains("--figures"));
    QVERIFY2(help.out[0] == "Usage: recurrence-lab [options] [ID]", qPrintable(help.out[0]));
  }
};

QTEST_MAIN(TestStart)
#include "test_start.moc"
