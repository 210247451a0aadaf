// SPDX-License-Identifier: GPL-3.0-or-later
// A lesson and a session of a stranger, every word of which looks like HTML with a picture: all of it is shown as it is, wherever it comes
// to stand and whatever one hovers over, no file that it names is opened, and a link of it leads to the web alone, when it is clicked.
#include <QAction>
#include <QDesktopServices>
#include <QDialog>
#include <QDir>
#include <QFileInfo>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QMessageBox>
#include <QRadioButton>
#include <QSignalSpy>
#include <QTimer>
#include <QUndoStack>
#include <QXmlStreamReader>
#include <functional>

#include "gui/docks/flat_dock.h"
#include "gui/docks/panel_area.h"
#include "gui/frame/lab.h"
#include "gui/lessons/lecture.h"
#include "gui/lessons/lesson_player.h"
#include "gui/lessons/lesson_view.h"
#include "gui/lessons/lessons_feature.h"
#include "gui/lessons/print_lesson.h"
#include "gui/lessons/question_box.h"
#include "gui/palette/palette.h"
#include "gui/palette/palette_feature.h"
#include "gui/session/pins.h"
#include "gui/sessions/sessions_feature.h"
#include "gui/views/status_line.h"
#include "lessons/lesson.h"
#include "stranger_test.h"

using namespace reclab;
using test::patience;

class TestStrangers : public test::StrangerTest {
  Q_OBJECT

 private:
  /// Labels show words as they are: plain text, or HTML of the program's own in which those of others are escaped.
  static QString unsafe(const QWidget* window) {
    for (const QLabel* label : window->findChildren<QLabel*>()) {
      if (label->inherits("QTipLabel")) continue;  // Qt's own
      const bool ofForm = qobject_cast<QFormLayout*>(label->parentWidget()->layout()) != nullptr;
      if (label->textFormat() == Qt::AutoText && !ofForm) return "a label guesses: " + label->text();
      if (label->textFormat() != Qt::PlainText && label->text().contains("<img")) return "a label has a picture: " + label->text();
    }
    return {};
  }
  QString lessonText() const {
    QString text = R"(---
title: TITLE
about: ABOUT
minutes: 5
---
## STEP {#one}

PROSE **STRONG**, `CODE`, $x$ and [LINK](https://x.org/a).

```lab
reclab run elman --set width=4 --task noise --length 40 --seed 1
look: gradients
point: timing
say: SAY
```

```ask
choice: QUESTION
right: RIGHT
holds: span gradient/state/0/h > 0
wrong: WRONG -- MESSAGE
because: BECAUSE
```
)";
    for (const char* word :
         {"TITLE", "ABOUT", "STEP", "PROSE", "STRONG", "CODE", "LINK", "SAY", "QUESTION", "RIGHT", "WRONG", "MESSAGE", "BECAUSE"})
      text.replace(word, evil(QString(word).toLower()));
    return text;
  }
  bool quiet() const {
    return QTest::qWaitFor([this] { return atRest() && !window_->pins()->running(); }, patience);
  }
  QStringList taken_;

 public slots:
  void take(const QUrl& url) { taken_ << url.toString(); }

 private slots:
  void initTestCase() { watch(); }
  void cleanup() {
    if (window_) window_->closeUnasked();
    window_.reset();
    qunsetenv("RECLAB_LESSONS");
    test::forgetAll();
  }

  void aLessonIsWords() {
    QVERIFY(QDir(folder_.path()).mkpath("lessons/own"));
    written("lessons/own/lesson.md", lessonText().toUtf8());
    qputenv("RECLAB_LESSONS", folder_.filePath("lessons").toUtf8());
    const LessonLibrary library = lesson_library(lesson_folders());
    QVERIFY2(library.find("own") != nullptr, library.problems.empty() ? "it is not there" : library.problems.front().c_str());
    opened();
    open(onWaves(), {1500, 950});
    LessonsFeature& lessons = *window_->lessons();
    QVERIFY(window_->action("lesson.own") != nullptr);
    hoverAll(lessons.view());  // the list
    lessons.open("own");
    QVERIFY(quiet());
    QTRY_VERIFY_WITH_TIMEOUT(!lessons.view()->questions().isEmpty() && quiet(), patience);
    QVERIFY(lessons.dock()->isVisible());
    const auto looks = [&] {
      hoverAll(lessons.dock());
      window_->grab();
      QCOMPARE(unsafe(window_.get()), QString());
      QCOMPARE(opened(), 0);
    };
    looks();
    const QuestionBox* box = lessons.view()->questions().front();
    for (const char* answer : {"wrong", "right"}) {
      const Question& question = lessons.view()->questions().front()->question();
      const bool right = answer == std::string("right");
      const auto at = std::ranges::find_if(question.order, [&](const std::string& one) { return (one == question.right) == right; }) -
                      question.order.begin();
      box = lessons.view()->questions().front();
      auto* button = box->findChild<QRadioButton*>(QString("answer.%1").arg(at));
      QVERIFY(button != nullptr);
      QTest::mouseClick(button, Qt::LeftButton, {}, QPoint(8, button->height() / 2));
      QTRY_VERIFY_WITH_TIMEOUT(!lessons.view()->questions().isEmpty() && lessons.view()->questions().front()->words()->isVisible(),
                               patience);
      QVERIFY(quiet());
      looks();
    }
    // Of links those of the web, on a click alone.
    QCOMPARE(taken_, QStringList());
    for (const char* scheme : {"file", "http", "https", "javascript"}) QDesktopServices::setUrlHandler(scheme, this, "take");
    for (const char* link : {"file:///tmp/x.desktop", "http://x.org", "javascript:x()", "/etc/passwd", "https://x.org/a"})
      emit lessons.view()->linkWanted(link);
    for (const char* scheme : {"file", "http", "https", "javascript"}) QDesktopServices::unsetUrlHandler(scheme);
    QCOMPARE(taken_, QStringList{"https://x.org/a"});
    // In a lecture, in the palette, and printed.
    window_->action("lecture")->trigger();
    QTRY_VERIFY(lessons.lecture()->active());
    QVERIFY(quiet());
    looks();
    window_->action("lecture")->trigger();
    QTRY_VERIFY(!lessons.lecture()->active());
    Palette* palette = window_->commandPalette()->palette();
    palette->open();
    palette->line()->setText("title");
    hoverAll(palette);
    looks();
    QTest::keyClick(palette->line(), Qt::Key_Escape);
    Options print;
    print.lesson = "own";
    print.print = folder_.filePath("own.pdf");
    QCOMPARE(printLesson(print), 0);
    QVERIFY(QFileInfo(print.print).size() > 1000);
    QCOMPARE(opened(), 0);
  }

  void aSessionIsWords() {
    // A file's name cannot have a slash, so that its picture is beside it.
    const QString before = QDir::currentPath(), file = folder_.filePath("<img src='p.png'><b>R&D [*].reclab");
    QVERIFY(QDir::setCurrent(folder_.path()));
    QByteArray rows = "time," + evil("first").toUtf8() + ",second\n";
    for (int i = 0; i < 60; ++i)
      rows += QByteArray::number(i) + ',' + QByteArray::number(std::sin(i * 0.1)) + ',' + QByteArray::number(std::cos(i * 0.2)) + '\n';
    Options options;
    options.given["--input"] = written("<img src='p.png'><b>x.csv", rows).toStdString();
    opened();
    open(options, {1500, 950});
    window_->action("pin")->trigger();
    QVERIFY(quiet());
    window_->pins()->rename(0, evil("renamed"));
    window_->setFileChooser({.open = {}, .save = [&](auto...) { return file; }, .folder = {}});
    QSignalSpy saved(window_->sessions(), &SessionsFeature::sessionSaved);
    window_->action("saveSessionAs")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(saved.count(), 1, patience);
    window_->closeUnasked();
    window_.reset();
    test::forgetAll();

    // As somebody else opens it.
    open(onWaves(), {1500, 950});
    QSignalSpy got(window_->sessions(), &SessionsFeature::sessionOpened);
    window_->openFile(file);
    QTRY_COMPARE_WITH_TIMEOUT(got.count(), 1, patience);
    QVERIFY(quiet());
    QCOMPARE(window_->pins()->pins().size(), std::size_t{1});
    QVERIFY2(window_->windowTitle().startsWith("<img src='p.png'><b>R&D [*][*][*]"), qPrintable(window_->windowTitle()));
    const auto looks = [&](QWidget* window) {
      hoverAll(window);
      window->grab();
      QCOMPARE(unsafe(window), QString());
      QCOMPARE(opened(), 0);
    };
    looks(window_.get());
    // A change, in the history; and the question that it makes.
    window_->lab()->change("name of a pinned run", [&] { window_->pins()->rename(0, evil("another")); });
    window_->action("history")->trigger();
    auto* history = window_->findChild<QDialog*>("history");
    QVERIFY(history != nullptr);
    QTRY_VERIFY(history->isVisible());
    looks(history);
    history->close();
    QString asked;
    Qt::TextFormat format = Qt::AutoText;
    std::function<void()> cancels = [&] {
      auto* question = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
      if (question == nullptr) return QTimer::singleShot(0, this, cancels);
      asked = question->text();
      format = question->textFormat();
      question->grab();
      question->reject();
    };
    QTimer::singleShot(0, this, cancels);
    window_->openFile(file);
    QVERIFY2(asked.startsWith("<img src='p.png'><b>R&D [*].reclab does not have"), qPrintable(asked));
    QCOMPARE(format, Qt::PlainText);
    QCOMPARE(opened(), 0);
    // The recent ones, the palette, and what a session that is none says of itself.
    auto* recent = window_->findChild<QMenu*>("recentSessions");
    recent->popup(window_->mapToGlobal(QPoint(100, 100)));
    QTRY_VERIFY(recent->isVisible());
    QVERIFY2(recent->actions().front()->text().contains("R&&D"), qPrintable(recent->actions().front()->text()));
    hover(recent, recent->actionGeometry(recent->actions().front()).center());
    recent->close();
    Palette* palette = window_->commandPalette()->palette();
    palette->open();
    palette->line()->setText("img");
    looks(palette);
    QTest::keyClick(palette->line(), Qt::Key_Escape);
    window_->undoStack()->undo();
    QVERIFY(quiet());
    const QString none = written("<b>none.reclab", R"({"reclab session": 1, "state": {"shown": {"preset": "<img src='p.png'>"}}})");
    window_->undoStack()->setClean();
    window_->openFile(none);
    QTRY_VERIFY_WITH_TIMEOUT(window_->banner()->sentence().contains("shows the model <img src='p.png'>"), patience);
    looks(window_.get());
    // Figures name runs as they are, and have no picture of a file.
    int drawn = 0;
    for (PanelDock* dock : window_->area()->docks()) {
      if (!dock->inSight() || !dock->panel()->emptyReason().isEmpty()) continue;
      for (const Panel::Format kind : {Panel::Format::svg, Panel::Format::pdf}) {
        const QString figure = folder_.filePath(dock->panel()->id() + (kind == Panel::Format::svg ? ".svg" : ".pdf"));
        QCOMPARE(dock->panel()->saveFigure(figure, kind), QString());
        if (kind == Panel::Format::pdf) continue;
        QFile svg(figure);
        QVERIFY(svg.open(QIODevice::ReadOnly));
        QXmlStreamReader xml(&svg);
        while (!xml.atEnd()) {
          xml.readNext();
          for (const QXmlStreamAttribute& attribute : xml.attributes())
            QVERIFY2(!attribute.value().contains(QString("p.png")), qPrintable(attribute.value().toString()));
        }
        QVERIFY2(!xml.hasError(), qPrintable(figure + ": " + xml.errorString()));
        ++drawn;
      }
    }
    QVERIFY(drawn >= 3);
    QCOMPARE(opened(), 0);
    QVERIFY(QDir::setCurrent(before));
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestStrangers>(argc, argv, "test-strangers"); }
#include "test_strangers.moc"
