// SPDX-License-Identifier: GPL-3.0-or-later
// The palette: everything is found by its name and done as by hand; and the history of changes.
#include <QAbstractItemModelTester>
#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QLineEdit>
#include <QListView>
#include <QMenu>
#include <QRegularExpression>
#include <QTabBar>
#include <QTest>
#include <QToolButton>
#include <QUndoView>
#include <QWidgetAction>

#include "gui/docks/panel_area.h"
#include "gui/frame/lab.h"
#include "gui/learning/training_bar.h"
#include "gui/palette/matching.h"
#include "gui/palette/palette.h"
#include "gui/palette/palette_feature.h"
#include "gui/session/kept_setup.h"
#include "gui/session/sentences.h"
#include "gui/views/inspector_view.h"
#include "gui/views/scrubber.h"
#include "models/registry.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

class TestPalette : public test::WindowTest {
  Q_OBJECT

 private:
  Palette* palette() const { return window_->commandPalette()->palette(); }
  QLineEdit* line() const { return palette()->line(); }
  const QAbstractItemModel* rows() const { return palette()->list()->model(); }
  QString row(int i) const { return rows()->index(i, 0).data().toString(); }
  QStringList texts() const {
    QStringList all;
    for (int i = 0; i < rows()->rowCount(); ++i) all << row(i);
    return all;
  }
  void openPalette() {
    QTest::keyClick(window_.get(), Qt::Key_K, Qt::ControlModifier);
    QVERIFY(palette()->isVisible());
    QVERIFY(line()->hasFocus());
  }
  /// With the keyboard alone: the key of the palette, a text, Enter.
  void ask(const QString& text) {
    openPalette();
    QTest::keyClicks(line(), text);
    QTest::keyClick(line(), Qt::Key_Return);
    QVERIFY2(!palette()->isVisible(), qPrintable(text));
  }
  void undo() { QTest::keyClick(window_.get(), Qt::Key_Z, Qt::ControlModifier); }
  QString missing(const QStringList& names) const {
    QStringList all;
    for (const QString& name : names) {
      line()->setText(name);
      if (!texts().contains(name)) all << name;
    }
    return all.join(" / ");
  }
  static QString plain(QString text) { return text.section('\t', 0, 0).replace("&&", "\1").remove('&').replace('\1', '&'); }
  QString radius() const { return QString::fromStdString(session().model()->hyper.text("spectral_radius")); }

 private slots:
  void init() {
    test::forgetAll();
    Options options = onWaves();
    options.model = "elman";
    open(options, {1280, 800});
    window_->scrubber()->strip()->setFocus();
  }
  void cleanup() { close(); }

  void everyModelIsFoundByItsName() {
    openPalette();
    const auto& presets = session().library()->presets.presets();
    QVERIFY(presets.size() >= 123);
    QStringList wrong;
    for (const Preset& preset : presets) {
      const QString title = QString::fromStdString(preset.title);
      for (const QString& query : {title, title.toUpper()}) {
        line()->setText(query);
        if (row(0) != title) wrong << query + " finds " + row(0);
      }
      for (const QString& query : {QString::fromStdString(preset.id), QString::fromStdString(preset.source.authors),
                                   title + ' ' + QString::number(preset.source.year)}) {
        line()->setText(query);
        if (!texts().contains(title)) wrong << query + " does not find " + title;
      }
    }
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join(" / ")));
  }

  void everyActionOfEveryMenuIsFound() {
    openPalette();
    QStringList names;
    for (auto* menu : window_->findChildren<QMenu*>()) {
      for (const QAction* action : menu->actions())
        if (!action->isSeparator() && action->menu() == nullptr && qobject_cast<const QWidgetAction*>(action) == nullptr)
          names << plain(action->text());
    }
    QVERIFY2(names.size() > 250, qPrintable(QString::number(names.size())));
    for (const QString& name : {tr("Quit"), tr("Undo"), tr("Dark"), tr("Copy as a picture"), tr("About Recurrence Lab"), tr("ecg.npy")})
      QVERIFY2(names.contains(name), qPrintable(name));
    const QString lost = missing(names);
    QVERIFY2(lost.isEmpty(), qPrintable(lost));
    // Once, where two menus have it, and with its keys.
    line()->setText("ecg.npy");
    QCOMPARE(texts().count("ecg.npy"), 1);
    line()->setText("export run");
    QCOMPARE(rows()->index(0, 0).data(Qt::AccessibleTextRole).toString().section(", ", -1), "Ctrl+E");
  }

  void everyButtonAndEveryOptionOfAPanelIsFound() {
    openPalette();
    QStringList names;
    for (PanelDock* dock : window_->area()->docks()) {
      names << dock->panel()->title();
      for (const QAction* action : dock->panel()->actions())
        if (action->isCheckable()) names << plain(action->text());
    }
    for (const PanelLayout& layout : window_->area()->layouts()) names << "Layout: " + layout.name;
    for (auto* button : window_->findChildren<QToolButton*>()) {
      if (!button->isVisible() || palette()->isAncestorOf(button) || button->objectName().startsWith("qt_") ||
          qobject_cast<QTabBar*>(button->parentWidget()) || qobject_cast<QLineEdit*>(button->parentWidget()))
        continue;
      names << plain(!button->accessibleName().isEmpty() ? button->accessibleName() : button->text());
      QVERIFY2(!names.back().isEmpty(), qPrintable(button->toolTip()));
    }
    QVERIFY(names.contains("Train"));
    const QString lost = missing(names);
    QVERIFY2(lost.isEmpty(), qPrintable(lost));
  }

  void everySettingOfAModelIsFoundWithItsValue() {
    for (const char* id : {"elman", "lstm", "mamba"}) {
      clickModel(id);
      QTRY_VERIFY(session().model() && session().model()->preset.id == id);
      openPalette();
      for (const HyperSpec& spec : session().model()->hyper.table()) {
        const QString name = inWords(spec.key), value = QString::fromStdString(session().model()->hyper.text(spec.key));
        const bool typed = spec.kind == HyperKind::integer || spec.kind == HyperKind::real;
        const QString wanted = typed ? name + " = " + value : spec.kind == HyperKind::choice ? name + ": " + value : name;
        for (const QString& query : {name, QString::fromStdString(spec.key)}) {
          line()->setText(typed || spec.kind == HyperKind::choice ? query + ' ' + value : query);
          QVERIFY2(texts().contains(wanted), qPrintable(line()->text() + " of " + id + " does not find " + wanted));
        }
      }
      QTest::keyClick(line(), Qt::Key_Escape);
    }
  }

  void synonymsAreFound() {
    openPalette();
    for (const auto& [query, text] : {std::pair{"hochreiter", "LSTM"},
                                      {"finding structure in time", "Elman network"},
                                      {"mamba gu dao 2023", "Mamba"},
                                      {"gradlab", "Layout: Gradient lab"},
                                      {"spctrum", "Spectrum"},
                                      {"forgets loss", "Gradients"},
                                      {"dark theme", "Dark"}}) {
      line()->setText(query);
      QVERIFY2(texts().contains(text), qPrintable(QString("%1 does not find %2, but %3").arg(query, text, texts().mid(0, 5).join(" / "))));
    }
    line()->setText("mamba");
    QCOMPARE(row(0), QString("Mamba"));
    line()->setText("zzzzqq");
    QCOMPARE(rows()->rowCount(), 0);
  }

  void aValueIsSetAndTakenBack() {
    const QString before = radius();
    QVERIFY(before != "0.9");
    const int steps = window_->undoStack()->count();
    ask("radius 0.9");
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && hyperOf(session().trace(), "spectral_radius") == "0.9", patience);
    QTRY_COMPARE(window_->inspector()->slider("spectral_radius")->value(), 450);
    QCOMPARE(window_->undoStack()->count(), steps + 1);
    undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && hyperOf(session().trace(), "spectral_radius") == before, patience);
    for (const auto& [text, key, value] : {std::tuple{"width 24", "width", "24"},
                                           {"rho 0.7", "spectral_radius", "0.7"},
                                           {"activation relu", "activation", "relu"},
                                           {"spectral_radius=1.1", "spectral_radius", "1.1"}}) {
      ask(text);
      QTRY_VERIFY2_WITH_TIMEOUT(atRest() && hyperOf(session().trace(), key) == value, text, patience);
    }
  }

  void aValueThatCannotBeSaysWhy() {
    openPalette();
    QTest::keyClicks(line(), "radius 99");
    QVERIFY2(rows()->index(0, 0).data(Qt::AccessibleTextRole).toString().contains("99"), qPrintable(row(0)));
    QVERIFY(!(rows()->index(0, 0).flags() & Qt::ItemIsEnabled));
    const int steps = window_->undoStack()->count();
    QTest::keyClick(line(), Qt::Key_Return);
    QCOMPARE(window_->undoStack()->count(), steps);
    // Without a value its name stands ready for one.
    line()->clear();
    QTest::keyClicks(line(), "spectral radius");
    QTest::keyClick(line(), Qt::Key_Return);
    QVERIFY(palette()->isVisible());
    QCOMPARE(line()->text(), QString("Spectral radius "));
    QTest::keyClicks(line(), "0.5");
    QTest::keyClick(line(), Qt::Key_Return);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && hyperOf(session().trace(), "spectral_radius") == "0.5", patience);
  }

  void whateverIsDoneIsTakenBack() {
    const LabState before = window_->lab()->state();
    const auto changes = [&](const QString& text, const std::function<bool()>& done) {
      const int steps = window_->undoStack()->index();
      ask(text);
      QTRY_VERIFY2_WITH_TIMEOUT(done() && atRest(), qPrintable(text), patience);
      QTRY_VERIFY2(window_->undoStack()->index() > steps, qPrintable(text));
      while (window_->undoStack()->index() > steps) undo();
      QTRY_VERIFY2_WITH_TIMEOUT(atRest() && window_->lab()->state().setup == before.setup, qPrintable(text), patience);
      QTRY_VERIFY2(window_->lab()->state().arranged == before.arranged, qPrintable(text));
      QTRY_VERIFY2(window_->lab()->state().panels == before.panels, qPrintable(text));
      QTRY_VERIFY2(window_->lab()->state().parts == before.parts, qPrintable(text));
      QVERIFY2(window_->lab()->state().pins.empty(), qPrintable(text));
    };
    changes("LSTM", [&] { return session().setup().preset == "lstm"; });
    changes("seed 7", [&] { return session().setup().seed == 7; });
    changes("precision float32", [&] { return session().setup().dtype == "f32"; });
    changes("standardise no", [&] { return !session().setup().sequence->choice.load.standardise; });
    changes("copy task", [&] { return session().setup().sequence->choice.task == "copy"; });
    changes("layout states", [&] { return !(window_->lab()->state().arranged == before.arranged); });
    changes("pin for comparison", [&] { return !window_->lab()->state().pins.empty(); });
    changes("batch 7", [&] { return window_->trainingBar()->settings()->choice().options.batch == 7; });
    // Every option of every panel.
    for (PanelDock* dock : window_->area()->docks())
      for (const QAction* action : dock->panel()->actions())
        if (action->isCheckable() && action->isEnabled() && !dock->isHidden()) {
          const bool on = action->isChecked();
          changes(plain(action->text()) + ' ' + dock->panel()->title(), [&] { return action->isChecked() != on; });
          QCOMPARE(action->isChecked(), on);
        }
  }

  void whatCannotBeDoneSaysWhy() {
    openPalette();
    QTest::keyClicks(line(), "fork the training");
    QCOMPARE(row(0), QString("Fork the training"));
    QVERIFY(rows()->index(0, 0).data(Qt::AccessibleTextRole).toString().contains("Nothing has been trained yet."));
    QTest::keyClick(line(), Qt::Key_Return);
    QVERIFY(palette()->isVisible());
  }

  void theKeyboardGoesBackToWhereItWas() {
    QWidget* strip = window_->scrubber()->strip();
    QVERIFY(strip->hasFocus());
    openPalette();
    QTest::keyClicks(line(), "gradients");
    QTest::keyClick(line(), Qt::Key_Escape);
    QVERIFY(!palette()->isVisible() && strip->hasFocus());
    openPalette();
    QVERIFY(line()->text().isEmpty());
    // The arrows go through the list, and a click on a row does it.
    QTest::keyClicks(line(), "theme");
    const int first = palette()->list()->currentIndex().row();
    QTest::keyClick(line(), Qt::Key_Down);
    QVERIFY(palette()->list()->currentIndex().row() > first && line()->hasFocus());
    QTest::keyClick(line(), Qt::Key_Up);
    QCOMPARE(palette()->list()->currentIndex().row(), first);
    line()->setText("Show all of the time");
    QTest::mouseClick(palette()->list()->viewport(), Qt::LeftButton, {}, palette()->list()->visualRect(rows()->index(0, 0)).center());
    QVERIFY(!palette()->isVisible() && strip->hasFocus());
    // A click elsewhere closes it, and so does its key.
    openPalette();
    QTest::mouseClick(window_->scrubber()->strip(), Qt::LeftButton, {}, {100, 20});
    QTRY_VERIFY(!palette()->isVisible());
    openPalette();
    QTest::keyClick(line(), Qt::Key_K, Qt::ControlModifier);
    QVERIFY(!palette()->isVisible());
  }

  void theLastUsedComeFirst() {
    ask("panel timing");
    ask("panel spectrum");
    openPalette();
    QCOMPARE(row(0), QString("Spectrum"));
    QCOMPARE(row(1), QString("Timing"));
  }

  void namesOfFilesArePlainText() {
    const QString file = written("<b>big && _small_.csv", test::twoWaves(60));
    noteRecentFile(file);
    openPalette();
    QTest::keyClicks(line(), "big small csv");
    QCOMPARE(row(0), QFileInfo(file).fileName());
    QTest::keyClick(line(), Qt::Key_Return);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().sequence->sequence.length == 60, patience);
  }

  void itsRowsAreAModel() {
    openPalette();
    const QAbstractItemModelTester tester(palette()->list()->model(), QAbstractItemModelTester::FailureReportingMode::Fatal);
    for (const char* query : {"g", "gr", "zzqq", "", "radius 0.9"}) line()->setText(query);
    QVERIFY(rows()->rowCount() > 0);
  }

  void theHistoryHasEachStateAndGoesToIt() {
    const QString before = radius();
    ask("radius 0.9");
    ask("radius 0.5");
    ask("seed 3");
    QTRY_VERIFY_WITH_TIMEOUT(atRest(), patience);
    ask("history");
    auto* view = window_->findChild<QUndoView*>("historyStates");
    QVERIFY(view != nullptr && QTest::qWaitForWindowExposed(view->window()));
    QCOMPARE(view->model()->rowCount(), 4);
    const auto text = [&](int i) { return view->model()->index(i, 0).data().toString(); };
    static const QRegularExpression line(R"(^\d\d:\d\d:\d\d   (.*)$)");
    QCOMPARE(line.match(text(1)).captured(1), QString("spectral_radius of elman: 0.9"));
    QCOMPARE(line.match(text(2)).captured(1), QString("spectral_radius of elman: 0.5"));
    QCOMPARE(line.match(text(3)).captured(1), QString("seed: 3"));
    QCOMPARE(view->currentIndex().row(), 3);
    QTest::mouseClick(view->viewport(), Qt::LeftButton, {}, view->visualRect(view->model()->index(1, 0)).center());
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && hyperOf(session().trace(), "spectral_radius") == "0.9", patience);
    QCOMPARE(window_->undoStack()->index(), 1);
    QCOMPARE(session().setup().seed, std::uint64_t{1});
    QTest::keyClick(view, Qt::Key_Up);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && hyperOf(session().trace(), "spectral_radius") == before, patience);
    QTest::keyClick(view, Qt::Key_End);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.seed == 3, patience);
    QCOMPARE(window_->undoStack()->count(), 3);
    view->window()->close();
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestPalette>(argc, argv, "palette-test"); }

#include "test_palette.moc"
