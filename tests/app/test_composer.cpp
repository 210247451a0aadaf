// SPDX-License-Identifier: GPL-3.0-or-later
// The composer in the window: tiles that are clicked say at once what the model is, and "Open as a model" makes it the one that runs.
// RECLAB_SCREENSHOTS names a folder for pictures.
#include <QClipboard>
#include <QDir>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QSpinBox>
#include <QSvgRenderer>
#include <QTextDocument>
#include <QUndoStack>
#include <ctime>

#include "composer/composer.h"
#include "gui/docks/panel_area.h"
#include "models/parts/composition/codes.h"
#include "models/registry.h"
#include "panels/composer/composer_panel.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

class TestComposer : public test::WindowTest {
  Q_OBJECT

 private:
  PanelDock* dock() const { return window_->area()->dock("composer"); }
  ComposerPanel* panel() const { return qobject_cast<ComposerPanel*>(dock()->panel()); }
  QPushButton* openButton() const { return panel()->findChild<QPushButton*>("open"); }
  void open(const QString& model = "elman", QSize size = {}) {
    Options options = onWaves();
    options.model = model;
    WindowTest::open(options, size);
    dock()->raise();
    QTRY_VERIFY_WITH_TIMEOUT(panel()->composition() != nullptr, patience);
  }
  void click(const QString& row, int tile) const {
    TileRow* tiles = panel()->row(row);
    QVERIFY2(tiles != nullptr, qPrintable(row));
    panel()->findChild<QScrollArea*>()->ensureWidgetVisible(tiles, 0, 0);
    QTest::mouseClick(tiles, Qt::LeftButton, {}, tiles->placeOf(tile).center());
  }
  bool shows(const std::string& code) const {
    return QTest::qWaitFor([&] { return panel()->composition()->code == code; }, patience);
  }
  /// Rich text as plain text, without what keeps its lines whole.
  static QString said(const QString& html) {
    QTextDocument document;
    document.setHtml(html);
    return document.toPlainText().replace(QChar::Nbsp, ' ').remove(QChar(0x2060));
  }
  void picture(const QString& name) const {
    const QString folder = qEnvironmentVariable("RECLAB_SCREENSHOTS");
    if (folder.isEmpty()) return;
    QDir().mkpath(folder);
    QTest::qWait(150);
    window_->grab().save(QDir(folder).filePath(name + ".png"));
  }

 private slots:
  void init() { test::forgetAll(); }
  void cleanup() {
    close();
    look_.apply(ThemeChoice::light);
  }

  void tilesSayAtOnceWhatTheModelIs() {
    open();
    QCOMPARE(panel()->composition()->code, to_string(LcsmCode{1, 9, 1, 0}));  // the preset's own
    click("oscillation", 3);
    QVERIFY(shows("1-3-1-0"));
    QCOMPARE(panel()->headline(), QString("1-3-1-0"));
    QCOMPARE(panel()->findChild<QLabel*>("code")->text(), QString("1-3-1-0"));
    QVERIFY2(said(panel()->verdict()).startsWith("is GLA (GateLoop)"), qPrintable(panel()->verdict()));
    for (const std::string& line : equation(LcsmCode{1, 3, 1, 0}))
      QVERIFY2(said(panel()->words()).contains(said(mathHtml(line))), line.c_str());
    for (const LcsmForm& form : exact_forms(LcsmCode{1, 3, 1, 0}))
      QVERIFY2(said(panel()->words()).contains(said(mathHtml(form.cost))), form.cost.c_str());
    click("expand", 0);
    click("activation", 6);
    QVERIFY(shows("0-3-1-6"));
    QVERIFY2(panel()->verdict().contains("nearest to"), qPrintable(panel()->verdict()));
    // Nothing of what runs has changed; the tiles are taken back as any choice in a panel.
    QCOMPARE(session().setup().preset, std::string("elman"));
    for (int i = 0; i < window_->undoStack()->count(); ++i)
      QVERIFY2(window_->undoStack()->command(i)->actionText().startsWith("view of "), qPrintable(window_->undoStack()->text(i)));
    while (window_->undoStack()->canUndo()) window_->undoStack()->undo();
    QVERIFY(shows("1-9-1-0"));
  }

  void aTileIsAnsweredSoon() {
    open();
    // Of the processor's time, whatever else the machine does; the quickest of five.
    double best = 1e9;
    for (int tile : {0, 1, 7, 11, 3}) {
      const std::clock_t begin = std::clock();
      click("oscillation", tile);
      QVERIFY(shows("1-" + std::to_string(tile) + "-1-0"));
      best = std::min(best, 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
    qInfo("a tile is answered with %.1f ms of work", best);
    QVERIFY2(best <= 100, qPrintable(QString::number(best)));
  }

  void openingMakesItTheModelThatRunsAndUndoTakesItBack() {
    open();
    click("oscillation", 4);
    click("activation", 3);
    QVERIFY(shows("1-4-1-3"));
    QVERIFY(openButton()->isEnabled());
    QTest::mouseClick(openButton(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == "lcsm", patience);
    QCOMPARE(hyperOf(session().trace(), "oscillation"), QString("key-decays"));
    QCOMPARE(hyperOf(session().trace(), "activation"), QString("elu+1"));
    QCOMPARE(hyperOf(session().trace(), "expand"), QString("dependent"));
    QVERIFY2(window_->undoStack()->undoText().startsWith("model "), qPrintable(window_->undoStack()->undoText()));
    QVERIFY(!openButton()->isEnabled());  // it runs
    QVERIFY2(panel()->composition()->code == "1-4-1-3", panel()->composition()->code.c_str());
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == "elman", patience);
    QTRY_VERIFY_WITH_TIMEOUT(openButton()->isEnabled(), patience);
    QCOMPARE(panel()->composition()->code, std::string("1-4-1-3"));  // the choice stays
    window_->undoStack()->redo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == "lcsm" && !openButton()->isEnabled(), patience);
  }

  void theNamedModelOpensItsOwnPreset() {
    open();
    click("oscillation", 3);
    QVERIFY(shows("1-3-1-0"));
    auto* verdict = panel()->findChild<QLabel*>("verdict");
    for (int y = 6; y < verdict->height() && session().setup().preset == "elman"; y += 8)
      for (int x = 2; x < verdict->width() && session().setup().preset == "elman"; x += 6)
        QTest::mouseClick(verdict, Qt::LeftButton, {}, {x, y});
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == "gla", patience);
    QVERIFY2(window_->undoStack()->undoText().startsWith("model "), qPrintable(window_->undoStack()->undoText()));
    QVERIFY(dock()->inSight());
    QCOMPARE(panel()->composition()->code, std::string("1-3-1-0"));
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == "elman", patience);
    // By keyboard, and the second model of the same row.
    openButton()->setFocus();
    QTest::keyClick(window_->windowHandle(), Qt::Key_Backtab);
    QVERIFY(verdict->hasFocus());
    QTest::keyClick(window_->windowHandle(), Qt::Key_Return);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == "gateloop", patience);
  }

  void aNewcomerWhoOpensItSeesTheComposer() {
    for (const bool dark : {false, true})
      for (const QSize size : {QSize(1280, 800), QSize(1600, 1000)}) {
        look_.apply(dark ? ThemeChoice::dark : ThemeChoice::light);
        test::forgetAll();
        Options options = onWaves();
        options.model = "elman";
        WindowTest::open(options, size);
        QVERIFY(!dock()->inSight());
        clickModel("lcsm");
        QTRY_VERIFY_WITH_TIMEOUT(dock()->inSight() && panel()->composition() != nullptr, patience);
        QVERIFY(!panel()->row("oscillation")->visibleRegion().isEmpty());
        QVERIFY(window_->area()->dock("spectrum")->inSight() || window_->area()->dock("gating")->inSight());
        QVERIFY(dock()->toggleViewAction()->isEnabled() && dock()->toggleViewAction()->text() == "Composer");
        picture(QString("lcsm-%1-%2").arg(dark ? "dark" : "light").arg(size.width()));
        if (!dark) {
          clickModel("lcsm-m1");
          QTRY_VERIFY_WITH_TIMEOUT(panel()->runWithoutCode().contains("transition = m1"), patience);
          picture(QString("m1-%1").arg(size.width()));
        }
        close();
      }
  }

  void aRunThatNoCodeSaysIsSaidSo() {
    for (const auto& [key, value] :
         {std::pair<std::string, std::string>{"transition", "m2"}, {"parameterisation", "ssm"}, {"use_tau", "false"}}) {
      test::forgetAll();
      Options options = onWaves();
      options.model = "lcsm";
      options.given["--set"] = key + "=" + value;
      WindowTest::open(options);
      dock()->raise();
      auto* sentence = panel()->findChild<QLabel*>("sentence");
      QTRY_VERIFY_WITH_TIMEOUT(sentence->isVisible() && sentence->text().contains(QString::fromStdString(key + " = " + value)), patience);
      QVERIFY(panel()->headline().isEmpty());
      // It is of a code again: the tiles are those of what runs.
      Setup after = session().setup();
      after.set["lcsm"].clear();
      session().apply(after, false);
      QTRY_VERIFY_WITH_TIMEOUT(atRest() && !sentence->isVisible() && panel()->headline() == "1-9-1-0", patience);
      close();
    }
  }

  void theSmallRunIsThatOfItsCommand() {
    open();
    click("oscillation", 1);
    QVERIFY(shows("1-1-1-0"));
    const Composition& c = *panel()->composition();
    QVERIFY2(c.command.starts_with("reclab run lcsm ") && c.command.find("oscillation=gates") != std::string::npos &&
                 c.command.find("--seed 1") != std::string::npos,
             c.command.c_str());
    QVERIFY(panel()->words().contains(QString::fromStdString(c.command).toHtmlEscaped()));
    // Its gates by value and by key, multiplied, are the factors.
    RunRequest request;
    const Preset& preset = session().library()->presets.find("lcsm");
    request.preset = preset;
    request.set = {{"oscillation", "gates"}};
    request.sequence = make_task(preset.task, preset.task_options());
    const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
    const auto& by_value = *trace->find("gate/0/o1")->real;
    const auto& by_key = *trace->find("gate/0/o2")->real;
    const std::size_t T = static_cast<std::size_t>(c.steps), d = by_value.size() / T, k = by_key.size() / T;
    QCOMPARE(static_cast<std::size_t>(c.entries), k * d);
    for (const std::size_t t : {std::size_t{0}, T / 2, T - 1})
      for (std::size_t key = 0; key < k; ++key)
        for (std::size_t value = 0; value < d; ++value)
          QVERIFY(std::abs(c.factors[t * k * d + key * d + value] - by_key[t * k + key] * by_value[t * d + value]) < 1e-12);
    // What is kept of token 0 at the end is the product of all factors but its own.
    std::vector<double> kept;
    for (std::size_t entry = 0; entry < k * d; ++entry) {
      double product = 1.0;
      for (std::size_t t = 1; t < T; ++t) product *= c.factors[t * k * d + entry].real();
      kept.push_back(product);
    }
    std::ranges::sort(kept);
    QCOMPARE(panel()->factors()->token(), static_cast<int>(T) - 1);
    const auto& first = panel()->factors()->kept().front();
    QVERIFY(std::abs(first.least - kept.front()) <= 1e-12 * kept.back() && std::abs(first.most - kept.back()) <= 1e-12 * kept.back());
    const double median = 0.5 * (kept[kept.size() / 2 - 1] + kept[kept.size() / 2]);
    QVERIFY(std::abs(first.median - median) <= 1e-12 * kept.back());
  }

  void theTilesBeginWithTheCodeThatRuns() {
    Options options = onWaves();
    options.model = "lcsm";
    options.given["--set"] = "oscillation=rotation,activation=square,tau=8";
    WindowTest::open(options);
    dock()->raise();
    QTRY_VERIFY_WITH_TIMEOUT(panel()->composition() && panel()->composition()->code == "1-11-1-7", patience);
    QVERIFY(!openButton()->isEnabled());
    QVERIFY2(!panel()->composition()->numbers.front().unused.empty(), "a rotation has no tau");
    // A change by the inspector is followed too.
    Setup after = session().setup();
    after.setValue("oscillation", "ones");
    session().apply(after, false);
    QVERIFY(shows("1-10-1-7"));
    QVERIFY(settle());
  }

  void whatWasChosenIsThereAgain() {
    open();
    click("oscillation", 6);
    QVERIFY(shows("1-6-1-0"));
    panel()->findChild<QDoubleSpinBox*>("number")->setValue(4.0);
    QTRY_VERIFY_WITH_TIMEOUT(panel()->composition()->numbers.front().value == 4.0, patience);
    close();
    open();
    QVERIFY(shows("1-6-1-0"));
    QCOMPARE(panel()->composition()->numbers.front().value, 4.0);
    close();
    // Anything may come back from a settings file.
    QJsonObject lab = test::keptLab(), kept = lab["panels"].toObject();
    kept["composer"] = QJsonObject{{"oscillation", "plaid"}, {"tau", "many"}, {"nothing", 3}, {"activation", "relu"}};
    lab["panels"] = kept;
    test::keepLab(lab);
    open();
    QVERIFY(shows("1-9-1-1"));
  }

  void theFieldsOfTauAndTokenChangeThePictures() {
    open();
    click("oscillation", 2);
    QVERIFY(shows("1-2-1-0"));
    const double before = panel()->factors()->kept().front().median;
    auto* tau = panel()->findChild<QDoubleSpinBox*>("number");
    tau->setFocus();
    QTest::keyClick(tau, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(tau, "64");
    QTest::keyClick(tau, Qt::Key_Return);
    QTRY_VERIFY_WITH_TIMEOUT(panel()->composition()->numbers.front().value == 64.0, patience);
    QVERIFY(panel()->factors()->kept().front().median > before);  // forgets more slowly
    FactorsView* view = panel()->factors();
    panel()->findChild<QScrollArea*>()->ensureWidgetVisible(view);
    view->replot();
    QTest::mouseClick(view, Qt::LeftButton, {}, view->placeOfToken(20));
    QVERIFY(std::abs(view->token() - 20) <= 1);
    QCOMPARE(panel()->findChild<QSpinBox*>("token")->value(), view->token());
    QCOMPARE(view->kept().size(), static_cast<std::size_t>(view->token() + 1));
    QCOMPARE(view->kept().back().median, 1.0);  // nothing has come after it
  }

  void theKeyboardGoesThroughTheTiles() {
    open();
    TileRow* oscillation = panel()->row("oscillation");
    oscillation->setFocus();
    QTest::keyClick(oscillation, Qt::Key_Home);
    QVERIFY(shows("1-0-1-0"));
    QTest::keyClick(oscillation, Qt::Key_Right);
    QVERIFY(shows("1-1-1-0"));
    const std::int64_t step = window_->time()->step();
    QTest::keyClick(oscillation, Qt::Key_Left);
    QVERIFY(shows("1-0-1-0"));
    QCOMPARE(window_->time()->step(), step);  // the arrows are the row's own
    QTest::keyClick(oscillation, Qt::Key_Tab);
    QVERIFY(panel()->row("activation")->hasFocus());
  }

  void itIsSavedAsFigureAndTable() {
    open();
    click("oscillation", 11);
    QVERIFY(shows("1-11-1-0"));
    for (const char* suffix : {"svg", "pdf", "png"}) {
      const QString file = folder_.filePath(QString("composer.") + suffix);
      const Panel::Format format = QByteArray(suffix) == "svg"   ? Panel::Format::svg
                                   : QByteArray(suffix) == "pdf" ? Panel::Format::pdf
                                                                 : Panel::Format::png;
      QCOMPARE(panel()->saveFigure(file, format, FigureStyle::asShown()), QString());
    }
    QVERIFY(QSvgRenderer(folder_.filePath("composer.svg")).isValid());
    QFile svg(folder_.filePath("composer.svg"));
    QVERIFY(svg.open(QIODevice::ReadOnly));
    const QByteArray text = svg.readAll();
    QVERIFY(text.contains("1-11-1-0") && text.contains("reclab run lcsm") && text.contains("cosFormer"));
    QVERIFY(QImage(folder_.filePath("composer.png")).width() > 600);
    const QStringList lines = panel()->dataAsCsv().split('\n', Qt::SkipEmptyParts);
    QCOMPARE(lines.size(), static_cast<qsizetype>(panel()->composition()->steps) + 1);
    QCOMPARE(lines[0].count(','), lines[1].count(','));
    QVERIFY(lines[0].startsWith("code,read_at,token,kept_least") && lines[1].startsWith("1-11-1-0,"));
    if (const QString folder = qEnvironmentVariable("RECLAB_SCREENSHOTS"); !folder.isEmpty())
      panel()->saveFigure(QDir(folder).filePath("figure.png"), Panel::Format::png, FigureStyle::asShown());
  }

  void itIsShownAtEverySize() {
    for (const bool dark : {false, true}) {
      look_.apply(dark ? ThemeChoice::dark : ThemeChoice::light);
      for (const QSize size : {QSize(1280, 800), QSize(1800, 1100)}) {
        test::forgetAll();
        open("elman", size);
        const QString name = QString("%1-%2").arg(dark ? "dark" : "light").arg(size.width());
        picture(name + "-tab");
        window_->area()->enlarge(dock());
        picture(name + "-large");
        click("oscillation", 11);
        QVERIFY(shows("1-11-1-0"));
        picture(name + "-rotation");
        for (const auto& [key, row] : {std::pair<QString, int>{"expand", 2}, {"oscillation", 12}, {"shrink", 2}, {"activation", 8}}) {
          const TileRow* tiles = panel()->row(key);
          QCOMPARE(static_cast<int>(tiles->row().choices.size()), row);
          for (int tile = 0; tile < row; ++tile) QVERIFY2(tiles->rect().contains(tiles->placeOf(tile)), qPrintable(key));
        }
        close();
      }
    }
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestComposer>(argc, argv, "composer-test"); }
#include "test_composer.moc"
