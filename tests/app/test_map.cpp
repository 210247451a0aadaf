// SPDX-License-Identifier: GPL-3.0-or-later
// The map of the literature in the window and in one of its own, with the models that there are and with many more.
#include <QDir>
#include <QDragEnterEvent>
#include <QFile>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QPushButton>
#include <QScrollBar>
#include <QSettings>
#include <QStackedWidget>
#include <QTextBrowser>
#include <QToolButton>
#include <QUndoStack>
#include <set>

#include "gui/literature/map_view.h"
#include "gui/literature/map_window.h"
#include "gui/views/card_view.h"
#include "models/registry.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

namespace {

/// Presets as many and as crowded as the survey has: most of them of five years, in nine families.
void writeManyPresets(const QString& folder) {
  const char* families[] = {"recurrent",   "linear-transformers", "low-rank", "modelling-recurrence", "decaying-attention",
                            "state-space", "long-convolutions",   "enhanced", "ode-inspired"};
  const int years[] = {1986, 1990, 1997, 2001, 2014, 2016, 2018, 2019, 2020, 2021, 2021, 2022, 2022, 2022, 2023, 2023, 2023, 2024, 2024};
  const char* titles[] = {"Recurrent attention network %1", "S4 of kind %1", "LRU %1",
                          "Temporal latent bottleneck with a very long name %1", "Gated model %1"};
  for (int i = 0; i < 100; ++i) {
    const int year = years[(i * 7) % 19];
    QByteArray links;
    for (int parent = i - 1; parent >= 0 && links.isEmpty(); --parent)
      if (years[(parent * 7) % 19] <= year && (i + parent) % 3 == 0)
        links = QString(R"(, "descends_from": [{"id": "made-%1", "changed": "change number %2"}])").arg(parent).arg(i).toUtf8();
    QFile file(folder + QString("/made-%1.json").arg(i));
    if (!file.open(QIODevice::WriteOnly)) qFatal("the test cannot write its own file");
    file.write(
        QString(
            R"({"schema": 1, "id": "made-%1", "architecture": "elman", "title": "%2", "family": "%3", "idea": "An idea.", "hyper": {"width": 4},
                          "source": {"authors": "Author%1", "year": %4, "title": "T"})")
            .arg(i)
            .arg(QString(titles[i % 5]).arg(i), families[(i * i + i / 7) % 9])
            .arg(year)
            .toUtf8() +
        links + "}");
  }
}

}  // namespace

class TestMap : public test::WindowTest {
  Q_OBJECT

  LiteratureMap* map() const { return window_->models()->map(); }
  QToolButton* button(const char* name) const { return window_->models()->findChild<QToolButton*>(name); }
  void startWith(const char* model, QSize size = {1280, 800}) {
    Options options;
    options.model = model;
    options.given["--task"] = "noise";
    options.given["--length"] = "60";
    open(options, size);
    QTRY_VERIFY_WITH_TIMEOUT(!session().properties().empty(), patience);
  }
  void moveTo(LiteratureMap* there, QPoint at) {
    there->viewport()->repaint();
    QTest::mouseMove(there->viewport(), at);
  }
  MapWindow* enlarged(QSize size) {
    QTest::mouseClick(button("enlargeMap"), Qt::LeftButton);
    MapWindow* made = window_->mapWindow();
    made->resize(size);
    if (!QTest::qWaitForWindowExposed(made)) qFatal("the map's window does not come");
    QTest::qWait(50);
    return made;
  }
  static void keep(QWidget* widget, const QString& name) {
    if (const QString folder = qEnvironmentVariable("RECLAB_SCREENSHOTS"); !folder.isEmpty()) {
      QTest::qWait(150);
      widget->grab().save(folder + "/" + name + ".png");
    }
  }
  /// No two names meet, and none covers the dot of another model.
  void namesAreApart(LiteratureMap* there) {
    there->viewport()->repaint();
    const auto& names = there->drawnNames();
    QVERIFY(!names.empty());
    for (std::size_t i = 0; i < names.size(); ++i) {
      for (std::size_t j = i + 1; j < names.size(); ++j)
        QVERIFY2(!names[i].where.adjusted(0.5, 1.5, -0.5, -1.5).intersects(names[j].where.adjusted(0.5, 1.5, -0.5, -1.5)),
                 qPrintable(names[i].id + " meets " + names[j].id));
      for (const Literature::Model& model : window_->models()->literature()->models)
        if (model.id != names[i].id)
          QVERIFY2(!names[i].where.adjusted(1, 1, -1, -1).contains(there->placeOf(model.id)),
                   qPrintable(names[i].id + " covers the dot of " + model.id));
    }
  }

 private slots:
  void init() {
    test::forgetAll();
    QSettings().setValue("hintSeen", true);
    qunsetenv("RECLAB_PRESETS");
    look_.apply(ThemeChoice::light);
  }
  void cleanup() {
    close();
    qunsetenv("RECLAB_PRESETS");
  }

  void aClickLoads() {
    startWith("lstm");
    QVERIFY(!map()->isVisible());
    QTest::mouseClick(button("showMap"), Qt::LeftButton);
    QVERIFY(map()->isVisible() && !window_->models()->tree()->isVisible());
    QCOMPARE(map()->current(), QString("lstm"));
    QVERIFY(map()->viewport()->rect().contains(map()->placeOf("lstm")));
    map()->bringIntoSight("gru");
    QTest::mouseClick(map()->viewport(), Qt::LeftButton, {}, map()->placeOf("gru"));
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == "gru", patience);
    QCOMPARE(map()->current(), QString("gru"));
    QCOMPARE(window_->undoStack()->undoText(), QString("model gru"));
    window_->undoStack()->undo();
    QTRY_COMPARE_WITH_TIMEOUT(map()->current(), QString("lstm"), patience);
    // The name is as good as the dot; a click beside everything does nothing.
    map()->bringIntoSight("gru");
    map()->viewport()->repaint();
    const auto& names = map()->drawnNames();
    const auto gru = std::find_if(names.begin(), names.end(), [](const auto& name) { return name.id == "gru"; });
    QVERIFY(gru != names.end());
    QTest::mouseClick(map()->viewport(), Qt::LeftButton, {}, gru->where.center().toPoint());
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == "gru", patience);
    QTest::mouseClick(map()->viewport(), Qt::LeftButton, {}, QPoint(map()->viewport()->width() - 2, 4));
    QCOMPARE(session().setup().preset, std::string("gru"));
    // The list is there again, at the same model, and the next window opens as this one was left.
    QTest::mouseClick(button("showMap"), Qt::LeftButton);
    QVERIFY(window_->models()->tree()->isVisible());
    QCOMPARE(window_->models()->tree()->currentItem()->text(0), QString("GRU"));
    QTest::mouseClick(button("showMap"), Qt::LeftButton);
    close();
    startWith("lstm");
    QVERIFY(window_->models()->isMap());
  }

  void aFileIsDroppedOnItsWindow() {
    startWith("lstm");
    window_->action("map")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(window_->mapWindow() != nullptr && window_->mapWindow()->isVisible(), patience);
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(written("dropped.csv", test::twoWaves(50)))});
    QDragEnterEvent enter(QPoint(200, 200), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(window_->mapWindow(), &enter);
    QVERIFY(enter.isAccepted() && window_->mapWindow()->acceptDrops());
    QDropEvent drop(QPoint(200, 200), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(window_->mapWindow(), &drop);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().sequence->sequence.name == "dropped.csv", patience);
  }

  void theMouseTellsWhatChanged() {
    startWith("lstm", {1600, 1000});
    MapWindow* large = enlarged({1500, 900});
    LiteratureMap* there = large->map();
    there->bringIntoSight("gru");
    moveTo(there, there->placeOf("gru"));
    QString clause;
    for (const Descent& descent : session().library()->presets.find("gru").descends_from) clause = QString::fromStdString(descent.changed);
    QVERIFY(!clause.isEmpty());
    QTRY_VERIFY2_WITH_TIMEOUT(there->told().contains(clause) && there->told().contains("LSTM") && there->told().contains("nonlinear"),
                              qPrintable(there->told()), 5000);
    // A parent that is no preset is named, in grey.
    for (const Literature::Model& model : window_->models()->literature()->models)
      if (!model.absent.empty()) {
        there->bringIntoSight(model.id);
        moveTo(there, there->placeOf(model.id));
        QTRY_VERIFY2_WITH_TIMEOUT(
            there->told().contains(model.absent.front().id) && there->told().contains(model.absent.front().changed.toHtmlEscaped()),
            qPrintable(there->told()), 5000);
        break;
      }
    // Somewhere along a link its clause is told.
    const LiteraturePtr literature = window_->models()->literature();
    int told = 0;
    for (const Literature::Link& link : literature->links) {
      const QString parent = literature->models[static_cast<std::size_t>(link.parent)].title,
                    child = literature->models[static_cast<std::size_t>(link.child)].title;
      if (child != "GRU" && child != "Griffin" && child != "LMU") continue;
      there->bringIntoSight(literature->models[static_cast<std::size_t>(link.child)].id);
      there->viewport()->repaint();
      if (!there->viewport()->rect().contains(there->placeOf(link))) continue;
      QTest::mouseMove(there->viewport(), there->placeOf(link));
      ++told;
      // Where lines cross, another may be told.
      QTRY_VERIFY2_WITH_TIMEOUT(there->told().contains(QString::fromUtf8("</b> → <b>")) || there->told().contains(parent),
                                qPrintable(parent + " to " + child + ": " + there->told()), 5000);
    }
    QVERIFY(told >= 2);
    const auto gru = std::find_if(literature->links.begin(), literature->links.end(),
                                  [&](const auto& link) { return link.child == literature->indexOf("gru"); });
    there->bringIntoSight("gru");
    there->viewport()->repaint();
    QTest::mouseMove(there->viewport(), there->placeOf(*gru));
    QTRY_VERIFY2_WITH_TIMEOUT(there->told().contains(clause) && there->told().contains(QString::fromUtf8("LSTM</b> → <b>GRU")),
                              qPrintable(there->told()), 5000);
  }

  void byKeyboard() {
    startWith("lstm");
    QVERIFY(QTest::qWaitForWindowActive(window_.get()));
    QTest::mouseClick(button("showMap"), Qt::LeftButton);
    map()->setFocus(Qt::TabFocusReason);
    const auto key = [&](Qt::Key one) { QTest::keyClick(window_->windowHandle(), one); };
    const std::int64_t step = window_->time()->step();
    const auto& models = window_->models()->literature()->models;
    const int at = window_->models()->literature()->indexOf("lstm");
    key(Qt::Key_Down);  // in a list: the next year
    const QString next = models[static_cast<std::size_t>(at + 1)].id;
    QVERIFY2(map()->told().contains(models[static_cast<std::size_t>(at + 1)].title.toHtmlEscaped()), qPrintable(map()->told()));
    QCOMPARE(session().setup().preset, std::string("lstm"));
    key(Qt::Key_Return);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == next.toStdString(), patience);
    key(Qt::Key_Up);
    key(Qt::Key_Left);  // to what LSTM was made from
    QVERIFY2(map()->told().contains("Elman"), qPrintable(map()->told()));
    key(Qt::Key_Right);
    key(Qt::Key_Home);
    QVERIFY(map()->told().contains(models.front().title.toHtmlEscaped()));
    key(Qt::Key_End);
    QVERIFY(map()->told().contains(models.back().title.toHtmlEscaped()));
    QVERIFY(map()->viewport()->rect().contains(map()->placeOf(models.back().id)));
    QVERIFY(!window_->models()->compareButton()->isVisible());
    key(Qt::Key_Space);
    QCOMPARE(map()->marked(), models.back().id);
    QVERIFY(window_->models()->compareButton()->isVisible());
    key(Qt::Key_Space);
    QVERIFY(map()->marked().isEmpty() && !window_->models()->compareButton()->isVisible());
    // None of this moved or played the time.
    QCOMPARE(window_->time()->step(), step);
    const double zoom = map()->zoom();
    key(Qt::Key_Plus);
    QVERIFY(map()->zoom() > zoom);
    key(Qt::Key_0);
    QVERIFY(map()->verticalScrollBar()->maximum() == 0);
    // A search is over the map too: Enter picks the first that fits.
    QTest::keyClick(window_->windowHandle(), Qt::Key_F, Qt::ControlModifier);
    for (const char one : {'g', 'r', 'u'}) QTest::keyClick(window_->windowHandle(), one);
    key(Qt::Key_Return);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == "gru", patience);
    QVERIFY(map()->hasFocus());
  }

  void twoModelsSideBySide() {
    startWith("lstm", {1600, 1000});
    MapWindow* large = enlarged({1500, 900});
    QVERIFY(!large->comparison()->isVisible());
    large->map()->bringIntoSight("gru");
    QTest::mouseClick(large->map()->viewport(), Qt::LeftButton, Qt::ControlModifier, large->map()->placeOf("gru"));
    QCOMPARE(large->map()->marked(), QString("gru"));
    QCOMPARE(session().setup().preset, std::string("lstm"));
    QTRY_VERIFY_WITH_TIMEOUT(large->comparison()->isVisible(), patience);
    const QString text = large->comparison()->toPlainText();
    const Card lstm = card(builtin_registry(), session().library()->presets.find("lstm")),
               gru = card(builtin_registry(), session().library()->presets.find("gru"));
    for (const Card* one : {&lstm, &gru}) {
      QVERIFY2(text.contains(QString::fromStdString(one->title)), qPrintable(text));
      for (const auto& state : one->states) QVERIFY2(text.contains(QString::fromStdString(state.name)), qPrintable(text));
    }
    for (const char* section : {"Equations", "States of a layer", "Parameters", "Cost of a step", "Spectrum", "GRU descends from LSTM",
                                "floating-point operations"})
      QVERIFY2(text.contains(section), section);
    const StepCost cost = step_cost(builtin_registry(), session().library()->presets.find("lstm"), 1, 60);
    QVERIFY(text.contains(QLocale::c().toString(static_cast<double>(cost.parameters), 'f', 0)));
    // The pictures of both spectra: there are eigenvalues in them.
    for (int i = 0; i < 2; ++i) {
      const QPixmap picture =
          large->comparison()->document()->resource(QTextDocument::ImageResource, QUrl(QString("spectrum:%1").arg(i))).value<QPixmap>();
      QVERIFY(!picture.isNull());
      const QImage image = picture.toImage();
      std::set<QRgb> colours;
      for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) colours.insert(image.pixel(x, y));
      QVERIFY2(colours.size() > 8, qPrintable(QString::number(colours.size())));
    }
    keep(large, "map-comparison-light");
    look_.apply(ThemeChoice::dark);
    keep(large, "map-comparison-dark");
    look_.apply(ThemeChoice::light);
    // What is loaded is compared with what is marked; Escape ends the comparison, again closes the window.
    QTest::mouseClick(large->map()->viewport(), Qt::LeftButton, {},
                      (large->map()->bringIntoSight("elman"), large->map()->placeOf("elman")));
    QTRY_VERIFY_WITH_TIMEOUT(large->comparison()->toPlainText().contains("Elman network"), patience);
    QTest::keyClick(large, Qt::Key_Escape);
    QVERIFY(!large->comparison()->isVisible() && large->isVisible());
    QTest::keyClick(large, Qt::Key_Escape);
    QVERIFY(!large->isVisible());
    // From the panel, with what is marked there.
    QTest::mouseClick(button("showMap"), Qt::LeftButton);
    map()->bringIntoSight("lru");
    QTest::mouseClick(map()->viewport(), Qt::LeftButton, Qt::ControlModifier, map()->placeOf("lru"));
    QTest::mouseClick(window_->models()->compareButton(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(large->isVisible() && large->comparison()->isVisible() && large->comparison()->toPlainText().contains("LRU"),
                             patience);
  }

  void aSearchFindsProperties() {
    startWith("lstm");
    const auto listed = [&] {
      QSet<QString> ids;
      QTreeWidget* tree = window_->models()->tree();
      for (int i = 0; i < tree->topLevelItemCount(); ++i)
        for (int j = 0; j < tree->topLevelItem(i)->childCount(); ++j)
          if (!tree->topLevelItem(i)->child(j)->isHidden()) ids << tree->topLevelItem(i)->child(j)->text(0);
      return ids;
    };
    QLineEdit* search = window_->models()->searchField();
    const auto ask = [&](const QString& text) {
      search->clear();
      QTest::keyClicks(search, text);
      return listed();
    };
    QVERIFY(ask("is:linear").contains("LRU") && !ask("is:linear").contains("LSTM"));
    QVERIFY(ask("not:linear is:gated").contains("LSTM") && !ask("not:linear is:gated").contains("LRU") &&
            !ask("not:linear is:gated").contains("Elman network"));
    QVERIFY(ask("time-invariant").contains("S4D") && !ask("time-invariant").contains("Mamba"));
    QVERIFY(ask("complex").contains("LRU") && ask("growing").contains("Transformer") && !ask("growing").contains("LRU"));
    QVERIFY(ask("Hochreiter").contains("LSTM") && ask("1997").contains("LSTM") && ask("lstm 2005").contains("Bidirectional LSTM"));
    QVERIFY(ask("is:nothing-of-this-name").isEmpty());
    // The menu writes the same words.
    search->clear();
    auto* menu = search->findChild<QMenu*>("properties");
    QVERIFY(menu != nullptr);
    for (QAction* one : menu->actions())
      if (one->text() == "diagonal") one->trigger();
    QCOMPARE(search->text(), QString("is:diagonal"));
    QVERIFY(listed().contains("LRU") && !listed().contains("LSTM"));
    // The card says it of what is set.
    QTRY_VERIFY_WITH_TIMEOUT(window_->findChild<CardView*>()->toPlainText().contains("nonlinear · gated"), patience);
    QVERIFY(window_->findChild<CardView*>()->toPlainText().contains("from Elman network: "));
  }

  void aHundredModels_data() {
    QTest::addColumn<QSize>("size");
    QTest::addColumn<bool>("dark");
    for (const QSize size : {QSize(1280, 800), QSize(2560, 1440)})
      for (const bool dark : {false, true})
        QTest::addRow("%d x %d, %s", size.width(), size.height(), dark ? "dark" : "light") << size << dark;
  }
  void aHundredModels() {
    QFETCH(const QSize, size);
    QFETCH(const bool, dark);
    QTemporaryDir folder;
    writeManyPresets(folder.path());
    qputenv("RECLAB_PRESETS", folder.path().toUtf8());
    look_.apply(dark ? ThemeChoice::dark : ThemeChoice::light);
    startWith("lstm", size - QSize(4, 40));
    const QString name = QString("map-%1-%2").arg(size.width()).arg(dark ? "dark" : "light");
    QTest::mouseClick(button("showMap"), Qt::LeftButton);
    QVERIFY(window_->models()->literature()->models.size() >= 100);
    for (const double zoom : {1.0, 0.3, 2.0}) {
      map()->setZoom(zoom);
      namesAreApart(map());
    }
    map()->setZoom(1.0);
    keep(window_.get(), name + "-dock");
    MapWindow* large = enlarged(size - QSize(4, 40));
    LiteratureMap* there = large->map();
    QVERIFY(there->places().shape == MapLayout::Shape::chart);
    const auto& models = window_->models()->literature()->models;
    // At the readable size every model that is in sight has its name.
    for (const int share : {0, 50, 100}) {
      there->verticalScrollBar()->setValue(there->verticalScrollBar()->maximum() * share / 100);
      namesAreApart(there);
      const QRect sight = there->viewport()->rect().adjusted(0, 36, -200, -12);
      for (const Literature::Model& model : models)
        if (sight.contains(there->placeOf(model.id)))
          QVERIFY2(std::any_of(there->drawnNames().begin(), there->drawnNames().end(), [&](const auto& one) { return one.id == model.id; }),
                   qPrintable(model.id + " has no name"));
    }
    there->bringIntoSight("lstm");
    moveTo(there, there->placeOf("lstm"));
    keep(large, name + "-large");
    QTest::mouseClick(large->findChild<QToolButton*>("fit"), Qt::LeftButton);
    QVERIFY(there->horizontalScrollBar()->maximum() <= 1 && there->verticalScrollBar()->maximum() <= 1);
    for (const Literature::Model& model : models)
      QVERIFY2(there->viewport()->rect().contains(there->placeOf(model.id)), qPrintable(model.id));
    namesAreApart(there);
    keep(large, name + "-all");
    // The wheel scrolls; with Ctrl it zooms, and what is under the mouse stays there.
    there->setZoom(1.0);
    there->bringIntoSight("lstm");
    const QPoint at = there->placeOf("lstm");
    QWheelEvent wheel(at, there->viewport()->mapToGlobal(at), {}, {0, 240}, Qt::NoButton, Qt::ControlModifier, Qt::NoScrollPhase, false);
    QApplication::sendEvent(there->viewport(), &wheel);
    QVERIFY(there->zoom() > 1.3);
    if (there->horizontalScrollBar()->value() > 0 && there->verticalScrollBar()->value() > 0)
      QVERIFY2((there->placeOf("lstm") - at).manhattanLength() < 12,
               qPrintable(QString::number((there->placeOf("lstm") - at).manhattanLength())));
    // A drag moves it.
    const QPoint middle = there->viewport()->rect().center();
    const int before = there->verticalScrollBar()->value();
    QTest::mousePress(there->viewport(), Qt::LeftButton, {}, middle);
    const auto drag = [&](QPoint to) {
      QMouseEvent move(QEvent::MouseMove, to, there->viewport()->mapToGlobal(to), Qt::NoButton, Qt::LeftButton, {});
      QApplication::sendEvent(there->viewport(), &move);
    };
    drag(middle + QPoint(0, before > 40 ? 40 : -40));
    QTest::mouseRelease(there->viewport(), Qt::LeftButton, {}, middle + QPoint(0, before > 40 ? 40 : -40));
    QCOMPARE(std::abs(there->verticalScrollBar()->value() - before), 40);
    QCOMPARE(session().setup().preset, std::string("lstm"));
  }

  void aFigureHasEveryName() {
    startWith("lstm");
    MapWindow* large = enlarged({1200, 700});
    for (const auto& [suffix, format] : {std::pair{"svg", Panel::Format::svg}, {"pdf", Panel::Format::pdf}, {"png", Panel::Format::png}}) {
      const QString file = folder_.filePath(QString("map.") + suffix);
      QCOMPARE(large->map()->saveFigure(file, format), QString());
      QVERIFY(QFile(file).size() > 4000);
    }
    QFile svg(folder_.filePath("map.svg"));
    QVERIFY(svg.open(QIODevice::ReadOnly));
    const QString text = QString::fromUtf8(svg.readAll());
    QStringList missing;
    for (const Literature::Model& model : window_->models()->literature()->models)
      if (!text.contains(">" + model.title.left(9).toHtmlEscaped())) missing << model.title;
    QVERIFY2(missing.isEmpty(), qPrintable(missing.join(", ")));
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestMap>(argc, argv, "map-test"); }

#include "test_map.moc"
