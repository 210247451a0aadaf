// SPDX-License-Identifier: GPL-3.0-or-later
// The composer's panel alone, on compositions made by hand: its tiles under mouse and keyboard, what it asks for, says, draws and saves.
#include <QAbstractTextDocumentLayout>
#include <QClipboard>
#include <QDoubleSpinBox>
#include <QGuiApplication>
#include <QLabel>
#include <QPushButton>
#include <QRegularExpression>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTest>
#include <QTextBlock>
#include <QTextDocument>
#include <QTextLayout>

#include "panels/composer/composer_panel.h"
#include "shown_panel.h"
#include "synthetic/synthetic_composition.h"
#include "synthetic/synthetic_trace.h"

using namespace reclab;
using test::synthetic_composition;

namespace {

/// A panel that keeps what it asks for.
struct Composer {
  ComposerPanel panel;
  std::vector<Request> asked;
  explicit Composer(QSize size = {1000, 700}, bool answered = true) {
    QObject::connect(&panel, &Panel::requested, &panel, [this](const Request& request) { asked.push_back(request); });
    panel.resize(size);
    panel.show();
    if (!QTest::qWaitForWindowExposed(&panel)) qFatal("the window did not come up");
    if (answered) panel.setComposition(synthetic_composition(), {});
  }
  ComposerPanel* operator->() { return &panel; }
  TileRow* row(const char* key) { return panel.row(key); }
  void click(const char* key, int tile) {
    panel.findChild<QScrollArea*>()->ensureWidgetVisible(row(key), 0, 0);
    QTest::mouseClick(row(key), Qt::LeftButton, {}, row(key)->placeOf(tile).center());
  }
  const StudyChoice* last() const { return asked.empty() ? nullptr : std::get_if<StudyChoice>(&asked.back()); }
};

std::string valueIn(const std::vector<std::pair<std::string, std::string>>& settings, const std::string& key) {
  for (const auto& [name, value] : settings)
    if (name == key) return value;
  return {};
}

std::shared_ptr<Trace> composedRun(const std::string& oscillation, const std::string& transition = "entries") {
  auto trace = std::make_shared<Trace>(*test::synthetic_trace());
  trace->info.architecture = "composed";
  trace->info.hyper = {
      {"expand", "dependent"},   {"oscillation", oscillation}, {"shrink", "dependent"}, {"activation", "relu"}, {"tau", "2"},
      {"transition", transition}};
  return trace;
}

}  // namespace

class TestComposer : public QObject {
  Q_OBJECT
 private slots:
  void itAsksForTheFirstOneWhenItIsShown() {
    Composer composer({800, 600}, false);
    QVERIFY(composer.last() != nullptr && composer.last()->values.empty());
    QVERIFY(composer->emptyReason().contains("being read"));
    composer->setComposition(nullptr, "There is no preset.");
    QCOMPARE(composer->emptyReason(), QString("There is no preset."));
    composer->setComposition(synthetic_composition(), {});
    QCOMPARE(composer->emptyReason(), QString());
    QCOMPARE(composer->headline(), QString("1-9-1-0"));
  }

  void aClickOnATileAsksForItsModel() {
    Composer composer;
    composer.asked.clear();
    composer.click("oscillation", 4);
    QVERIFY(composer.last() != nullptr);
    QCOMPARE(valueIn(composer.last()->values, "oscillation"), std::string("gates-4"));
    QCOMPARE(valueIn(composer.last()->values, "expand"), std::string("dependent"));
    QCOMPARE(valueIn(composer.last()->values, "tau"), std::string("4"));
    QCOMPARE(composer.row("oscillation")->chosen(), 4);  // seen at once, before the answer
    composer.click("oscillation", 4);
    QCOMPARE(composer.asked.size(), std::size_t{1});  // chosen already
    // Between two tiles there is none.
    QTest::mouseClick(composer.row("oscillation"), Qt::LeftButton, {}, composer.row("oscillation")->placeOf(0).topRight() + QPoint(3, 20));
    QCOMPARE(composer.asked.size(), std::size_t{1});
  }

  void theKeyboardMovesInARow() {
    Composer composer;
    TileRow* row = composer.row("oscillation");
    row->setFocus();
    QTest::keyClick(row, Qt::Key_Right);
    QCOMPARE(row->chosen(), 10);
    QTest::keyClick(row, Qt::Key_Home);
    QCOMPARE(row->chosen(), 0);
    QTest::keyClick(row, Qt::Key_Left);
    QCOMPARE(row->chosen(), 0);
    QTest::keyClick(row, Qt::Key_Down);  // the tile below it
    QCOMPARE(row->placeOf(row->chosen()).left(), row->placeOf(0).left());
    QVERIFY(row->chosen() > 0);
    QTest::keyClick(row, Qt::Key_Up);
    QCOMPARE(row->chosen(), 0);
    QTest::keyClick(row, Qt::Key_End);
    QCOMPARE(row->chosen(), 11);
    const auto count = composer.asked.size();
    QTest::keyClick(row, Qt::Key_Space);
    QCOMPARE(composer.asked.size(), count);
    // Row by row: expand, shrink, oscillation, activation.
    composer->activateWindow();
    composer.row("expand")->setFocus();
    QTRY_VERIFY(composer.row("expand")->hasFocus());
    for (const char* key : {"shrink", "oscillation", "activation"}) {
      QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
      QVERIFY2(composer.row(key)->hasFocus(), key);
    }
  }

  void tilesSayWhatTheyAre() {
    Composer composer;
    const QString tip = composer.row("oscillation")->tipOf(3);
    QVERIFY2(tip.contains("Oscillation 3: key-gated-matrix-3") && tip.contains("The sentence of choice 3.") &&
                 tip.contains("depends on the data"),
             qPrintable(tip));
    QVERIFY(composer.row("oscillation")->tipOf(2).contains("does not depend on the data"));
    QVERIFY(composer.row("expand")->accessibleName() == "Expand" && composer.row("expand")->accessibleDescription() == "dependent: A key.");
  }

  void rowsWrapAndNothingIsCut() {
    for (const QSize size : {QSize(230, 400), QSize(420, 260), QSize(700, 500), QSize(1500, 900)})
      for (const double points : {9.5, 12.0}) {
        QFont font = QApplication::font();
        font.setPointSizeF(points);
        QApplication::setFont(font);
        Composer composer(size);
        std::vector<QRect> places;
        for (const char* key : {"expand", "oscillation", "shrink", "activation"}) {
          const TileRow* row = composer.row(key);
          for (int tile = 0; tile < std::ssize(row->row().choices); ++tile) {
            QVERIFY2(row->rect().contains(row->placeOf(tile)),
                     qPrintable(QString("%1 %2 at %3 x %4").arg(key).arg(tile).arg(size.width()).arg(size.height())));
            const QRect place = row->placeOf(tile).translated(row->pos());
            for (const QRect& other : places) QVERIFY(!other.intersects(place));
            places.push_back(place);
          }
        }
        const auto* words = composer->findChild<QLabel*>("words");
        QVERIFY(words->heightForWidth(words->width()) <= words->height());
        for (const QRect& place : places)
          QVERIFY(!place.intersects(words->geometry()) && !place.intersects(composer->factors()->geometry()));
        QVERIFY(!words->geometry().intersects(composer->factors()->geometry()));
      }
    QApplication::setFont(QFont());
  }

  void itSaysWhatTheModelIs() {
    Composer composer;
    QVERIFY2(composer->verdict().contains(QRegularExpression("^nearest to <b><a [^>]*href=.preset:gla.>GLA</a></b> \\(GateLoop\\)$")),
             qPrintable(composer->verdict()));
    QVERIFY(composer->words().contains("several heads") && composer->words().contains("2 log") && composer->words().contains("seed 1"));
    QVERIFY2(composer->words().contains("<tt>reclab run composed --task noise --length 40 --seed 1</tt>"), qPrintable(composer->words()));
    composer->setComposition(synthetic_composition({.oscillation = 3}), {});
    QVERIFY2(composer->verdict().startsWith("is <b>") && composer->verdict().contains(">GLA</a></b>") &&
                 !composer->verdict().contains("nearest"),
             qPrintable(composer->verdict()));
    composer->setComposition(synthetic_composition({.runs = false}), {});
    QVERIFY(composer->words().contains("non-finite at step 3") && composer->factors()->isHidden());
    QVERIFY(!composer->findChild<QPushButton*>("open")->isEnabled());
  }

  void openingGivesTheModelAndIsOffWhereItRuns() {
    Composer composer;
    auto* open = composer->findChild<QPushButton*>("open");
    composer->setTrace(test::synthetic_trace());
    composer.click("activation", 1);
    QTest::mouseClick(open, Qt::LeftButton);
    const auto* model = std::get_if<ModelChoice>(&composer.asked.back());
    QVERIFY(model != nullptr);
    QCOMPARE(model->preset, std::string("composed"));
    QCOMPARE(valueIn(model->settings, "activation"), std::string("relu"));
    QCOMPARE(valueIn(model->settings, "transition"), std::string("entries"));
    auto same = composedRun("key-gated-matrix-9");
    same->info.hyper[3].second = "identity";
    same->info.hyper[4].second = "4";
    composer->setComposition(synthetic_composition(), {});
    composer->setTrace(same);
    QVERIFY(!open->isEnabled());
    QVERIFY(open->toolTip().contains("This is the model that runs"));
  }

  void aRunOfItIsFollowed() {
    Composer composer;
    composer.asked.clear();
    composer->setTrace(composedRun("gates-2"));
    QVERIFY(composer.last() != nullptr);
    QCOMPARE(valueIn(composer.last()->values, "oscillation"), std::string("gates-2"));
    QCOMPARE(valueIn(composer.last()->values, "tau"), std::string("2"));
    // The same once more is not asked for again, so that a choice by hand stays.
    composer.asked.clear();
    composer->setTrace(composedRun("gates-2"));
    QVERIFY(composer.asked.empty());
    // One that is put together otherwise is none of these models.
    composer->setTrace(composedRun("gates-4", "m1"));
    composer->setTrace(test::synthetic_trace());
    QVERIFY(composer.asked.empty());
  }

  void theNamedModelIsALinkToItsPreset() {
    Composer composer;
    auto* verdict = composer->findChild<QLabel*>("verdict");
    const auto opened = [&]() -> std::string {
      const auto* model = composer.asked.empty() ? nullptr : std::get_if<ModelChoice>(&composer.asked.back());
      return model != nullptr && model->settings.empty() ? model->preset : std::string();
    };
    // Where the hand is over it; the words before it are none.
    int links = 0;
    for (int x = 2; x < verdict->width() && links == 0; x += 4) {
      composer.asked.clear();
      QTest::mouseMove(verdict, {x, verdict->height() / 2});
      QTest::mouseClick(verdict, Qt::LeftButton, {}, {x, verdict->height() / 2});
      links += !composer.asked.empty();
      QVERIFY(links == 0 || x > 20);
    }
    QCOMPARE(opened(), std::string("gla"));
    QVERIFY2(!composer->verdict().contains("GateLoop</a>"), qPrintable(composer->verdict()));  // it has none
    // With the keyboard: from either side the link is chosen at once, and the next Tab leaves it.
    composer->activateWindow();
    auto* open = composer->findChild<QPushButton*>("open");
    open->setFocus();
    QTRY_VERIFY(open->hasFocus());
    composer.asked.clear();
    QTest::keyClick(open, Qt::Key_Backtab);
    QVERIFY(verdict->hasFocus());
    QTest::keyClick(verdict, Qt::Key_Return);
    QCOMPARE(opened(), std::string("gla"));
    QTest::keyClick(verdict, Qt::Key_Tab);
    QVERIFY(open->hasFocus());
    // Of a model without a preset nothing is one, and the keyboard passes it.
    auto without = synthetic_composition();
    without->nearest.model.preset.clear();
    composer->setComposition(without, {});
    QVERIFY(!composer->verdict().contains("<a "));
    QTest::keyClick(open, Qt::Key_Backtab);
    QVERIFY(!verdict->hasFocus());
  }

  void aRunThatNoCodeSaysIsSaidSo() {
    Composer composer;
    composer->setTrace(composedRun("gates-4", "m1"));
    auto* sentence = composer->findChild<QLabel*>("sentence");
    QVERIFY(sentence->isVisible() && !composer->findChild<QLabel*>("code")->isVisible());
    QCOMPARE(sentence->text(),
             QString("The model that runs has no code: it has transition = m1, where every code has transition = entries."));
    QCOMPARE(composer->emptyReason(), sentence->text());
    QVERIFY(composer->headline().isEmpty() && composer->dataAsCsv().isEmpty());
    // Another one is put together all the same, until another such run comes.
    auto* compose = composer->findChild<QPushButton*>("compose");
    QTest::mouseClick(compose, Qt::LeftButton);
    QVERIFY(composer->findChild<QLabel*>("code")->isVisible() && composer->headline() == "1-9-1-0");
    composer.asked.clear();
    composer.click("activation", 1);
    QCOMPARE(composer.asked.size(), std::size_t{1});
    composer->setTrace(composedRun("gates-2", "m1"));
    QVERIFY(!sentence->isVisible());
    composer->setTrace(composedRun("gates-2", "m2"));
    QVERIFY2(sentence->isVisible() && sentence->text().contains("transition = m2"), qPrintable(sentence->text()));
    // A model of a code, and any other model, show the tiles.
    composer->setTrace(composedRun("gates-2"));
    QVERIFY(!sentence->isVisible() && !composer->headline().isEmpty());
    composer->setTrace(composedRun("gates-2", "m2"));
    QVERIFY(sentence->isVisible());
    composer->setTrace(test::synthetic_trace());
    QVERIFY(!sentence->isVisible());
  }

  void whereThereIsLittleRoomTilesAreSmall() {
    for (const QSize size : {QSize(390, 240), QSize(390, 520), QSize(760, 260)}) {
      Composer composer(size);
      const auto* scroll = composer->findChild<QScrollArea*>();
      const auto* words = composer->findChild<QLabel*>("words");
      for (const char* key : {"expand", "oscillation", "shrink", "activation"}) {
        QVERIFY2(composer.row(key)->isCompact(), key);
        // All of a row in one line, and every row in sight.
        QCOMPARE(composer.row(key)->placeOf(0).top(),
                 composer.row(key)->placeOf(static_cast<int>(composer.row(key)->row().choices.size()) - 1).top());
        QVERIFY2(composer.row(key)->geometry().bottom() <= scroll->viewport()->height(), key);
      }
      QVERIFY2(words->geometry().top() < scroll->viewport()->height(), qPrintable(QString::number(words->geometry().top())));
      composer.asked.clear();
      composer.click("oscillation", 11);
      QCOMPARE(valueIn(composer.last()->values, "oscillation"), std::string("gates-11"));
    }
    Composer large({1000, 700});
    QVERIFY(!large.row("oscillation")->isCompact());
    large->resize(390, 240);
    QTRY_VERIFY(large.row("oscillation")->isCompact());
    large->resize(1000, 700);
    QTRY_VERIFY(!large.row("oscillation")->isCompact());
  }

  void whatIsKeptIsTheProductOfTheFactors() {
    Composer composer;
    const Composition& c = *composer->composition();
    FactorsView* view = composer->factors();
    QCOMPARE(view->token(), 39);
    auto* token = composer->findChild<QSpinBox*>("token");
    token->setFocus();
    QTest::keyClick(token, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(token, "12");
    QTest::keyClick(token, Qt::Key_Return);
    QCOMPARE(view->token(), 12);
    std::vector<double> products(8, 1.0);
    for (std::size_t t = 6; t <= 12; ++t)
      for (std::size_t i = 0; i < 8; ++i) products[i] *= c.factors[t * 8 + i].real();
    std::ranges::sort(products);
    const auto& kept = view->kept()[5];
    QVERIFY(std::abs(kept.least - products[0]) < 1e-14 && std::abs(kept.most - products[7]) < 1e-14);
    QVERIFY(std::abs(kept.median - 0.5 * (products[3] + products[4])) < 1e-14);
    QVERIFY(std::abs(kept.low - (0.3 * products[0] + 0.7 * products[1])) < 1e-14);
    QVERIFY2(view->note().contains("token 12"), qPrintable(view->note()));
    // The pointer on an eigenvalue and on a token.
    view->replot();
    QVERIFY(view->tipAt(view->placeOf(c.factors[12 * 8])).contains("time constant"));
    QVERIFY(view->tipAt(view->placeOfToken(5)).contains("token 5, read at token 12"));
    QTest::mouseClick(view, Qt::LeftButton, {}, view->placeOfToken(30));
    QCOMPARE(token->value(), 30);
    composer->setComposition(synthetic_composition({.turns = true}), {});
    QVERIFY(view->turns() && view->token() == 30);
    QVERIFY2(view->note().contains("nothing is lost"), qPrintable(view->note()));
    QVERIFY(!composer->findChild<QDoubleSpinBox*>("number")->isEnabled());
    QCOMPARE(composer->findChild<QDoubleSpinBox*>("number")->toolTip(), QString("A rotation has no τ."));
  }

  void anEquationIsNotBrokenWithinAPart() {
    Composer composer;
    Composition c = *synthetic_composition();
    c.equations = {
        "m_t = o_t ⊙ m_{t−1} + e_t i_tᵀ", "y_t = m_tᵀ s_t", "i_t = W_i x_t", "e_t = W_e x_t", "o_t = σ(A)^{1/τ}", "s_t = W_s x_t"};
    composer->setComposition(std::make_shared<const Composition>(c), {});
    const QLabel* words = nullptr;
    for (const QLabel* one : composer->findChildren<QLabel*>())
      if (one->text().contains("σ(A)") && one->text().contains("<table")) words = one;
    QVERIFY(words != nullptr);
    const auto broken = [&](const QString& html, int width) {
      QTextDocument page;
      page.setDefaultFont(words->font());
      page.setHtml(html);
      page.setTextWidth(width);
      page.documentLayout()->documentSize();
      for (QTextBlock block = page.begin(); block.isValid(); block = block.next()) {
        const QString text = block.text();
        const auto begin = text.indexOf(QStringLiteral("σ(A)")), end = text.indexOf(QStringLiteral("τ"), begin);
        if (begin < 0 || end < 0) continue;
        if (block.layout()->lineForTextPosition(static_cast<int>(begin)).lineNumber() !=
            block.layout()->lineForTextPosition(static_cast<int>(end)).lineNumber())
          return true;
      }
      return false;
    };
    // Without what holds it together it would be, at some of these widths.
    const QString loose = QString(words->text()).remove(QChar(0x2060));
    int would = 0;
    for (int width = 120; width <= 500; ++width) {
      QVERIFY2(!broken(words->text(), width), qPrintable(QString::number(width)));
      would += broken(loose, width);
    }
    QVERIFY(would > 0);
  }

  void choicesComeBack() {
    Composer composer;
    composer.click("oscillation", 7);
    const QVariantMap kept = composer->choices();
    QCOMPARE(kept.value("oscillation").toString(), QString("gates-7"));
    Composer again({800, 600}, false);
    again->setChoices(kept);
    again->setComposition(synthetic_composition(), {});
    QVERIFY(again.last() != nullptr);
    QCOMPARE(valueIn(again.last()->values, "oscillation"), std::string("gates-7"));
    Composer broken({800, 600}, false);
    broken->setChoices({{"oscillation", "plaid"}, {"tau", "1e99"}, {"expand", 7}});
    broken.asked.clear();
    broken->setComposition(synthetic_composition(), {});
    QVERIFY(broken.asked.empty());  // none of them is anything
  }

  void itIsSaved() {
    Composer composer;
    composer->copyFigure();
    QVERIFY(!QGuiApplication::clipboard()->image().isNull());
    QTemporaryDir folder;
    const QString file = folder.filePath("composer.svg");
    QCOMPARE(composer->saveFigure(file, Panel::Format::svg, FigureStyle::asShown()), QString());
    const QString texts = test::textsOf(file).join(' ');
    for (const char* word : {"Composer: code 1-9-1-0", "nearest to", "GLA", "chunkwise", "reclab", "token", "Read at token 39"})
      QVERIFY2(texts.contains(word), qPrintable(QString(word) + ": " + texts));
    const QStringList lines = composer->dataAsCsv().split('\n', Qt::SkipEmptyParts);
    QCOMPARE(lines.size(), 41);
    QVERIFY(lines[0].startsWith("code,read_at,token,kept_least,kept_10,kept_median,kept_90,kept_most,factor_0,factor_0_imaginary"));
    QCOMPARE(lines[40].section(',', 3, 7), QString("1,1,1,1,1"));  // the token that is read
    QCOMPARE(lines[1].section(',', 5, 5).toDouble(), composer->factors()->kept()[0].median);
  }
};

QTEST_MAIN(TestComposer)
#include "test_composer.moc"
