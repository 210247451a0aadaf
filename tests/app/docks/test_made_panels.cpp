// SPDX-License-Identifier: GPL-3.0-or-later
// Panels are made when they come into sight, and are then as if they had been there from the start.
#include <QComboBox>
#include <QToolButton>
#include <algorithm>

#include "lab_test.h"
#include "panels/learning/learning.h"

using namespace reclab;
using test::patience;

class TestMadePanels : public test::LabTest {
  Q_OBJECT
 private:
  void first(const QString& layout) {
    Options options = onWaves();
    options.layout = layout;
    WindowTest::open(options, {1600, 1000});
    QTRY_VERIFY_WITH_TIMEOUT(std::ranges::all_of(docks(), [](const PanelDock* one) { return !one->inSight() || one->made(); }), patience);
  }
  const std::vector<PanelDock*>& docks() const { return window_->area()->docks(); }
  PanelDock* dock(const char* id) const { return window_->area()->dock(id); }
  QStringList made() const {
    QStringList ids;
    for (const PanelDock* one : docks())
      if (one->made() != nullptr) ids << one->info().id;
    ids.sort();
    return ids;
  }

 private slots:
  void init() { test::forgetAll(); }
  void cleanup() { close(); }

  void onlyThoseInSightAreMade() {
    first("First steps");
    QCOMPARE(made(), QStringList{"gradients"});
    step(layouts(), false);
    QStringList seen{"gradients"};
    for (const PanelDock* one : docks())
      if (one->inSight() && one->info().id != "gradients") seen << one->info().id;
    QVERIFY(seen.size() > 1);
    seen.sort();
    QCOMPARE(made(), seen);
  }

  void arrangingMakesNoneOfThoseBehind() {
    first("Explore");
    const QStringList ids = made();
    for (const PanelDock* one : docks()) QVERIFY2(one->inSight() == ids.contains(one->info().id), qPrintable(one->info().id));
    QVERIFY(ids.size() < static_cast<qsizetype>(docks().size()));
  }

  /// It has the run at once, and the settings, and its controls are between its own header and the next panel for the keyboard.
  void aTabThatComesToTheFrontIsWhole() {
    first("Explore");
    PanelDock* output = dock("output");
    QVERIFY(output->made() == nullptr);
    output->raise();
    QVERIFY(output->made() != nullptr);
    QCOMPARE(output->panel()->emptyReason(), QString());
    QVERIFY(output->panel()->dataAsCsv().size() > 100);
    QVERIFY(!output->menu()->actions().isEmpty());
    const auto* more = output->findChild<QToolButton*>("more");
    const QWidget* next = more->nextInFocusChain();
    while (!(next->focusPolicy() & Qt::TabFocus) || next->focusProxy() != nullptr) next = next->nextInFocusChain();
    QVERIFY2(output->panel()->isAncestorOf(next), next->metaObject()->className());
  }

  /// A hidden panel is given no run, and none records for it; shown again, it has the present one.
  void aHiddenOneCatchesUp() {
    first("Explore");
    PanelDock* gating = dock("gating");
    QTRY_VERIFY_WITH_TIMEOUT(gating->answered(), patience);
    const auto shows = [gates = gating->panel()->findChild<QComboBox*>("gate")](const char* one) { return gates->findText(one) >= 0; };
    QVERIFY(shows("forget"));
    gating->toggleViewAction()->trigger();
    QVERIFY(!gating->inSight());
    clickModel("gru");
    QVERIFY(session().trace()->matching("gate/").empty() && shows("forget"));
    gating->toggleViewAction()->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(shows("reset") && !shows("forget"), patience);
    QVERIFY(gating->inSight());
  }

  void theNewestOfWhatAllWereToldIsThere() {
    first("Speed");
    trainFor(12);
    QVERIFY(dock("learning")->made() == nullptr);
    const QString csv = panelOf<LearningPanel>()->dataAsCsv();
    QVERIFY2(csv.count('\n') >= 12, qPrintable(csv));
  }

  /// The choices of a panel come back in one that is made later, in another window, also where a window between them never showed it.
  void choicesOfOneThatWasNotMadeAreKept() {
    first("Explore");
    PanelDock* changed = nullptr;
    QVariantMap chosen;
    for (PanelDock* one : docks()) {
      if (one->made() != nullptr || changed != nullptr) continue;
      one->raise();
      const QVariantMap before = one->panel()->choices();
      for (QComboBox* box : one->panel()->findChildren<QComboBox*>())
        if (box->isVisible() && box->isEnabled() && box->count() > 1) {
          step(box, box->currentIndex() == 0);
          chosen = one->panel()->choices();
          if (chosen == before) continue;
          changed = one;
          break;
        }
    }
    QVERIFY(changed != nullptr);
    const QString id = changed->info().id;
    layouts()->setFocus();
    while (window_->area()->dock(id)->inSight()) step(layouts(), true);
    for (int i = 0; i < 2; ++i) {
      again();
      QVERIFY(window_->area()->dock(id)->made() == nullptr);
    }
    QCOMPARE(window_->area()->dock(id)->panel()->choices(), chosen);
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestMadePanels>(argc, argv, "made-panels-test"); }

#include "test_made_panels.moc"
