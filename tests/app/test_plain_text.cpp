// SPDX-License-Identifier: GPL-3.0-or-later
// Names that look like HTML, of columns, files, presets and runs, are shown as they are: whatever one hovers over, no file that they name
// is opened.

#include <QAction>
#include <QApplication>
#include <QDesktopServices>
#include <QDir>
#include <QFormLayout>
#include <QLabel>
#include <QMenu>
#include <QSettings>
#include <QTextBrowser>

#include "gui/comparing/compare_dialog.h"
#include "gui/comparing/side_by_side.h"
#include "gui/docks/panel_area.h"
#include "gui/session/pins.h"
#include "gui/views/card_view.h"
#include "gui/views/sequence_view.h"
#include "gui/views/status_line.h"
#include "plain_text.h"
#include "plot/plot.h"
#include "stranger_test.h"

using namespace reclab;
using test::patience;

class TestPlainText : public test::StrangerTest {
  Q_OBJECT

  QStringList taken_;

 public slots:
  void take(const QUrl& url) { taken_ << url.toString(); }

 private slots:
  void initTestCase() { watch(); }
  void cleanup() {
    close();
    qunsetenv("RECLAB_PRESETS");
    test::forgetAll();
  }

  void aTipIsPlainUnlessItIsOurOwnHtml() {
    QCOMPARE(safeTip("a & b < c"), QString("a & b < c"));
    QVERIFY(Qt::mightBeRichText(safeTip(evil("x"))));
    QVERIFY(safeTip(evil("x")).contains("&lt;img"));
    QVERIFY(!safeTip("<qt id='1'><b>x</b></qt>").contains("<b>"));
    const QString own = htmlTip("<b>x</b>");
    QCOMPARE(safeTip(own), own);
    QVERIFY(own.contains("<b>x</b>"));
    QCOMPARE(joinedTips({"a", {}, "b"}), QString("a\nb"));
    const QString both = joinedTips({own, evil("y")});
    QCOMPARE(safeTip(both), both);
    QVERIFY(both.contains("<b>x</b><br>") && both.contains("&lt;img") && !both.contains("<img"));
  }

  void hoveringOverNamesOpensNoFile() {
    QVERIFY(QDir(folder_.path()).mkpath("presets"));
    const auto preset = [&](const QString& id, const QString& title) {
      QString text =
          R"({"schema": 1, "id": "%1", "architecture": "elman", "title": "%2", "family": "recurrent", "idea": "%2", "hyper": {"width": 6}, "sequence": {"task": "noise", "length": 60},
                         "descends_from": [{"id": "jordan", "changed": "%2"}], "source": {"authors": "%2", "year": 1997, "title": "%2", "venue": "%2", "url": "https://x.org/'%2'"}})";
      return written("presets/" + id + ".json", text.replace("%1", id).replace("%2", title).toUtf8());
    };
    preset("mine", evil("Mine"));
    preset("other", evil("Other"));
    qputenv("RECLAB_PRESETS", folder_.filePath("presets").toUtf8());
    QByteArray rows = "time," + evil("first").toUtf8() + ',' + evil("second").toUtf8() + ",third\n";
    for (int i = 0; i < 60; ++i)
      rows += QByteArray::number(i * 0.5) + ',' + QByteArray::number(std::sin(i * 0.1)) + ',' + QByteArray::number(std::cos(i * 0.2)) +
              ",0.5\n";
    Options options;
    options.model = "mine";
    // A file's name cannot have a slash, so that its picture is beside it.
    options.given["--input"] = written("<img src='p.png'><b>x.csv", rows).toStdString();
    const QString before = QDir::currentPath();
    QVERIFY(QDir::setCurrent(folder_.path()));
    opened();
    open(options, {1500, 950});
    QVERIFY(window_->sequenceView()->findChildren<QLabel*>().size() > 2);
    window_->action("pin")->trigger();
    session().apply(
        [&] {
          Setup other = session().setup();
          other.preset = "other";
          return other;
        }(),
        false);
    QVERIFY(settle());
    QTRY_VERIFY_WITH_TIMEOUT(window_->pins()->runs().size() == 1, patience);
    window_->pins()->rename(0, evil("renamed"));
    int said = 0;
    for (const PanelLayout& layout : window_->area()->layouts()) {
      window_->area()->arrange(layout);
      QTest::qWait(50);
      QVERIFY(settle());
      for (PanelDock* dock : window_->area()->docks())
        if (!dock->isHidden()) {
          dock->raise();
          QTest::qWait(20);
          said += hoverAll(dock);
        }
      QCOMPARE(opened(), 0);
    }
    said += hoverAll(window_.get());
    QVERIFY2(said > 200, qPrintable(QString::number(said)));
    QCOMPARE(opened(), 0);
    window_->action("sideBySide")->trigger();
    QTest::qWait(100);
    hoverAll(window_->sideBySide());
    window_->action("sideBySide")->trigger();
    window_->action("differences")->trigger();
    auto* dialog = window_->findChild<CompareDialog*>();
    QVERIFY(dialog != nullptr);
    QTest::qWait(50);
    hoverAll(dialog);
    dialog->close();
    auto* recent = window_->findChild<QMenu*>("recent");
    recent->popup(window_->mapToGlobal(QPoint(100, 100)));
    QTest::qWait(30);
    for (QAction* one : recent->actions()) hover(recent, recent->actionGeometry(one).center());
    recent->close();
    window_->banner()->show(evil("a sentence about"));
    window_->statusLine()->say(evil("a sentence about"), Tone::info);
    QTest::qWait(30);
    hoverAll(window_->statusLine());
    window_->grab();
    QVERIFY(QDir::setCurrent(before));
    QCOMPARE(opened(), 0);
    // They are there, as they are.
    int marked = 0;
    const auto unmarked = [&marked](QString text) {
      marked += text.contains("R&&D");
      return !text.remove("&&").contains('&') || !text.contains("<img");
    };
    for (const QAction* one : window_->findChildren<QAction*>()) QVERIFY2(unmarked(one->text()), qPrintable(one->text()));
    for (const QAbstractButton* one : window_->findChildren<QAbstractButton*>()) QVERIFY2(unmarked(one->text()), qPrintable(one->text()));
    QVERIFY2(marked >= 5, qPrintable(QString::number(marked)));  // columns, their button, the pinned run, the models to compare with
    QVERIFY(window_->findChild<CardView*>()->toPlainText().contains(evil("Other")));
    for (const QLabel* label : window_->findChildren<QLabel*>()) {
      if (label->inherits("QTipLabel")) continue;  // Qt's own, of a tooltip that was looked at above
      const bool ofForm = qobject_cast<QFormLayout*>(label->parentWidget()->layout()) != nullptr;  // words of the program's, made by Qt
      QVERIFY2(label->textFormat() != Qt::AutoText || ofForm, qPrintable(label->text()));
      QVERIFY2(label->textFormat() == Qt::PlainText || !label->text().contains("<img"), qPrintable(label->text()));
    }
  }

  void aLinkOfACardIsOfTheWeb() {
    open(onWaves(40));
    auto* card = window_->findChild<CardView*>();
    for (const char* scheme : {"file", "https", "vscode"}) QDesktopServices::setUrlHandler(scheme, this, "take");
    for (const char* url : {"file:///tmp/x.desktop", "vscode://run", "https://doi.org/10.1"}) emit card->anchorClicked(QUrl(url));
    for (const char* scheme : {"file", "https", "vscode"}) QDesktopServices::unsetUrlHandler(scheme);
    QCOMPARE(taken_, QStringList{"https://doi.org/10.1"});
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestPlainText>(argc, argv, "test-plain-text"); }
#include "test_plain_text.moc"
