// SPDX-License-Identifier: GPL-3.0-or-later
// The program recurrence-lab as a shell sees it: figures without a window, and one line for each mistake.
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QImage>
#include <QProcess>
#include <QRegularExpression>
#include <QSvgRenderer>
#include <QTemporaryDir>
#include <QTest>
#include <QXmlStreamReader>
#include <cmath>
#include <csignal>

#include "panel.h"
#include "places.h"

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
  process.start(QString::fromStdString(reclab::test::built("bin/recurrence-lab")), arguments);
  if (!process.waitForFinished(300'000)) return {};
  const auto lines = [](const QByteArray& text) { return QString::fromUtf8(text).split('\n', Qt::SkipEmptyParts); };
  return {process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -1, lines(process.readAllStandardOutput()),
          lines(process.readAllStandardError())};
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
    QTest::newRow("weights that are none") << QStringList{"lstm", "--weights", text.fileName()}
                                           << "text.safetensors is not a safetensors file";
    QTest::newRow("a state that is none, and no window")
        << QStringList{"lstm", "--state", text.fileName(), "--figures", "x"} << "text.safetensors is not a safetensors file";
    QTest::newRow("a task that there is not") << QStringList{"--task", "addding"} << "addding";
    QTest::newRow("a hyper-parameter that there is not") << QStringList{"lstm", "--set", "widht=3"} << "widht";
    QTest::newRow("a value out of range") << QStringList{"lstm", "--set", "width=-3"} << "width";
    QTest::newRow("an option that there is not") << QStringList{"--wdith", "3"} << "wdith";
    QTest::newRow("a layout that there is not")
        << QStringList{"--layout", "Exploer"} << "--layout is Exploer; it is one of Explore, Memory";
    QTest::newRow("a length that is none") << QStringList{"--task", "noise", "--length", "many"} << "many";
    for (const char* option : {"--input", "--task", "--weights", "--state", "--seed", "--length", "--layout", "--theme", "--figures",
                               "--panels", "--width", "--font-size", "--with", "--missing"})
      QTest::newRow(option) << QStringList{option, ""} << QString(option) + " is empty";
    const QString gaps = folder_.filePath("gaps.csv");
    QFile file(gaps);
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write("a,b\n1,2\n,4\n3,6\n") > 0);
    QTest::newRow("a file with a missing cell, and no window")
        << QStringList{"lstm", "--input", gaps, "--figures", "x"}
        << "gaps.csv: line 3, column 1 (a) is empty: fill it in, leave the row out, choose other columns, or say with --missing what "
           "becomes of missing cells";
    QTest::newRow("the same file, named alone") << QStringList{"lstm", gaps, "--figures", "x"} << "gaps.csv: line 3, column 1 (a) is empty";
    QTest::newRow("a file, named alone, that there is not") << QStringList{"/nowhere/at/all.csv"} << "/nowhere/at/all.csv";
    QTest::newRow("two files") << QStringList{gaps, "b.csv"} << "gaps.csv and b.csv are two sequences";
    QTest::newRow("a file twice") << QStringList{gaps, "--input", "b.csv"} << "gaps.csv are two sequences";
    QTest::newRow("what becomes of none") << QStringList{"--missing", "hold"} << "--missing belongs to --input";
    QTest::newRow("what becomes of missing cells, which it does not")
        << QStringList{"--input", gaps, "--missing", "drop"}
        << "--missing is \"drop\"; give refuse or leave-out or hold or interpolate or mask.";
    QTest::newRow("a length of no sequence that is named") << QStringList{"--length", "30"} << "--length belongs to a sequence";
    QTest::newRow("a device that there is not")
        << QStringList{"lstm", "--device", "tpu"} << "--device is \"tpu\"; give auto or cpu or cuda.";
    QTest::newRow("a loss that there is not") << QStringList{"lstm", "--loss", "least"} << "--loss is \"least\"";
    QTest::newRow("two sequences") << QStringList{"--task", "noise", "--input", "a.csv"} << "--input";
    QTest::newRow("two sessions") << QStringList{"a.reclab", "b.reclab"} << "a.reclab and b.reclab are two sessions";
    QTest::newRow("a session and a model") << QStringList{"lstm", "a.reclab"} << "a.reclab is a session, which has its models";
    QTest::newRow("two models") << QStringList{"lstm", "gru"} << "gru";
    QTest::newRow("a format that there is not") << QStringList{"--figures", "x", "--format", "gif"} << "gif";
    QTest::newRow("a panel that there is not") << QStringList{"--figures", "x", "--panels", "gradients,gates"}
                                               << "names gates, which there is not; there are spectrum";
    QTest::newRow("a width of no figures") << QStringList{"--width", "85"} << "--width belongs to --figures";
    QTest::newRow("a width that is none") << QStringList{"--figures", "x", "--width", "wide"}
                                          << "--width is wide; it takes a number, of mm, such as 85.";
    QTest::newRow("a width that is no figure's") << QStringList{"--figures", "x", "--width", "8500"} << "8500 mm; it can be 40 to 500 mm";
    QTest::newRow("text that has no room") << QStringList{"--figures", "x", "--width", "85", "--font-size", "20"}
                                           << "it can be up to 9.4 pt there";
    QTest::newRow("a part that there is not") << QStringList{"--figures", "x", "--with", "title,legend"}
                                              << "--with names legend; the parts are title, caption and cursor.";
    QTest::newRow("a lesson and figures") << QStringList{"--lesson", "state", "--figures", "x"} << "--figures draws a run, and --lesson";
    QTest::newRow("panels of no figures") << QStringList{"--panels", "gradients"} << "--panels belongs to --figures";
    QTest::newRow("a folder that cannot be") << QStringList{"lstm", "--task", "noise", "--length", "20", "--figures", "/proc/nowhere"}
                                             << "/proc/nowhere";
  }
  void mistakesAreOneLine() {
    QFETCH(QStringList, arguments);
    QFETCH(QString, names);
    const Ended ended = start(arguments);
    QCOMPARE(ended.status, 2);
    QCOMPARE(ended.out, QStringList());
    QVERIFY2(ended.errors.size() == 1 && ended.errors[0].contains(names), qPrintable(ended.errors.join(" / ")));
  }

  /// Who clicks on one sees no terminal: the window opens, and its banner says the same.
  void aSessionOrLinkThatCannotBeOpenedIsSaidTwice_data() {
    QTest::addColumn<QString>("argument");
    QTest::addColumn<QString>("says");
    const QString none = folder_.filePath("none.reclab");
    QFile file(none);
    QVERIFY(file.open(QIODevice::WriteOnly) && file.write("a,b\n1,2\n") > 0);
    QTest::newRow("a session that there is not") << "/nowhere/at/all.reclab" << "/nowhere/at/all.reclab";
    QTest::newRow("a session that is none") << none << "none.reclab is no session: at byte";
    QTest::newRow("a link to a file") << "reclab:run?lstm&--input&/etc/passwd" << "The link has --input";
    QTest::newRow("a link to a model that there is not") << "reclab:run?lstn" << "lstn";
  }
  void aSessionOrLinkThatCannotBeOpenedIsSaidTwice() {
    QFETCH(QString, argument);
    QFETCH(QString, says);
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    for (const char* home : {"XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"}) {
      environment.insert(home, folder_.filePath(home));
      QVERIFY(QDir().mkpath(folder_.filePath(home)));
    }
    QVERIFY(QFile::setPermissions(folder_.filePath("XDG_RUNTIME_DIR"), QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
    process.setProcessEnvironment(environment);
    process.start(QString::fromStdString(reclab::test::built("bin/recurrence-lab")), {argument});
    QVERIFY(process.waitForStarted());
    // It hears of the signal as soon as it has its window.
    const QString status = QStringLiteral("/proc/%1/status").arg(process.processId());
    const auto hears = [&] {
      QFile read(status);
      if (!read.open(QIODevice::ReadOnly)) return false;
      const QString caught = QRegularExpression("SigCgt:\\s*([0-9a-f]+)").match(QString::fromLatin1(read.readAll())).captured(1);
      return (caught.toULongLong(nullptr, 16) >> (SIGTERM - 1) & 1) != 0;
    };
    QTRY_VERIFY_WITH_TIMEOUT(hears(), 120'000);
    process.terminate();
    QVERIFY(process.waitForFinished(120'000));
    const QString errors = QString::fromUtf8(process.readAllStandardError());
    QVERIFY2(errors.count("recurrence-lab: ") == 1 && errors.contains(says), qPrintable(errors));
    QCOMPARE(process.exitStatus(), QProcess::NormalExit);
    QCOMPARE(process.exitCode(), 2);
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
    QStringList arguments{"gru",    "--task", "noise",     "--length", "120",      "--set", "width=12",
                          "--seed", "3",      "--figures", out,        "--format", format};
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
    // The list is the program's own: a panel that is added is drawn too. One without a picture is a sentence, and no file.
    if (wanted.isEmpty()) {
      for (const PanelInfo& info : panels())
        if (info.id != "composer") wanted << info.id;  // which is of another model
      int without = 0;
      for (const QString& line : ended.errors) {
        const QString title = QRegularExpression("There is no figure of ([^:]+): .+\\.$").match(line).captured(1);
        for (const PanelInfo& info : panels())
          if (info.title == title) without += static_cast<int>(wanted.removeAll(info.id));
      }
      QCOMPARE(without, ended.errors.size());
      QVERIFY2(!wanted.contains("learning") && wanted.contains("gradients"), qPrintable(ended.errors.join('|')));
    }
    QCOMPARE(names.size(), wanted.size());
    for (const QString& id : wanted) QVERIFY2(names.contains("gru-" + id + "." + format), qPrintable(id));
    QCOMPARE(QDir(out).entryList(QDir::Files | QDir::Hidden).size(), names.size());
  }

  /// Names of files and columns are text wherever they come to stand, and a figure is as wide as was asked for.
  void oddNamesAndAWidth() {
    const QString odd = folder_.filePath("R&D <b> \"a\" 's.csv"), out = folder_.filePath("made/here");
    QFile file(odd);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("\"x & <y>\",\"it's \"\"z\"\" & co\"\n");
    for (int i = 0; i < 60; ++i) file.write(QByteArray::number(std::sin(0.3 * i)) + ',' + QByteArray::number(std::cos(0.2 * i)) + '\n');
    file.close();
    const Ended ended =
        start({"gru", "--input", odd, "--figures", out, "--panels", "spectrum,trajectories,gating,gradients,output,steps,learning",
               "--width", "85", "--font-size", "7", "--with", "title,caption,cursor"});
    QVERIFY2(ended.status == 0 && ended.errors.size() == 1 && ended.errors[0].contains("There is no figure of Learning: "),
             qPrintable(ended.errors.join(" / ")));
    QCOMPARE(ended.out.size(), 6);
    for (const QString& path : ended.out) {
      QFile svg(path);
      QVERIFY(svg.open(QIODevice::ReadOnly));
      QXmlStreamReader xml(&svg);
      QString width, texts;
      while (!xml.atEnd())
        if (xml.readNext() == QXmlStreamReader::StartElement) {
          if (xml.name() == u"svg") width = xml.attributes().value("width").toString();
          if (xml.name() == u"desc" || xml.name() == u"title") texts += xml.readElementText();
        }
      QVERIFY2(!xml.hasError(), qPrintable(path + ": " + xml.errorString()));
      QVERIFY2(texts.contains("R&D <b> \"a\" 's.csv"), qPrintable(texts));
      QVERIFY2(width.endsWith("mm") && std::abs(width.chopped(2).toDouble() - 85.0) < 0.2, qPrintable(width));
    }
  }

  void helpAndVersion() {
    QCOMPARE(start({"--version"}).status, 0);
    const Ended help = start({"--help"});
    QCOMPARE(help.status, 0);
    QVERIFY(help.out.join(' ').contains("--figures"));
    QVERIFY2(help.out[0] == "Usage: recurrence-lab [options] [ID] [FILE]", qPrintable(help.out[0]));
  }
};

QTEST_MAIN(TestStart)
#include "test_start.moc"
