// SPDX-License-Identifier: GPL-3.0-or-later
// The map of learning rules has a place and true words for every rule that there is, without a list of them.
#include <QCheckBox>
#include <QTest>
#include <algorithm>
#include <memory>

#include "experiment/experiment.h"
#include "learning/learning_rule.h"
#include "models/registry.h"
#include "panels/credit/credit.h"
#include "plain_text.h"
#include "plot/theme.h"
#include "sequence/sequence.h"
#include "shown_panel.h"
#include "studies/study.h"
#include "window_text.h"

using namespace reclab;

namespace {

std::shared_ptr<const RuleTable> rulesFor(const char* preset) {
  const PresetLibrary library(builtin_registry(), preset_folders());
  StudyInput input{builtin_registry(), library};
  input.run.preset = library.find(preset);
  input.run.sequence = make_task("noise", {.length = 40});
  return study("rules").compute(input, {}, {}, {}).get<RuleTable>();
}

QString words(const std::string& text) { return QString::fromStdString(text); }

}  // namespace

class TestRuleMap : public QObject {
  Q_OBJECT
 private slots:
  void everyRuleHasItsPlace_data() {
    QTest::addColumn<QString>("preset");
    QTest::newRow("elman") << "elman";
    QTest::newRow("lru") << "lru";
  }
  void everyRuleHasItsPlace() {
    QFETCH(QString, preset);
    const std::shared_ptr<const RuleTable> table = rulesFor(preset.toLatin1());
    QCOMPARE(table->rules.size(), learning_rules().size());
    test::Shown<CreditPanel> shown(nullptr, {760, 520});
    shown->setChoices({{"view", "rules"}});
    shown->setResult("rules", table, {});
    QCOMPARE(shown->emptyReason(), QString());
    shown.plot()->replot();
    const QStringList drawn = shown.texts();
    QRectF past, future;
    QList<QRectF> columns(RuleMap::columns);
    for (const LearningRuleInfo& info : learning_rules()) {
      const QRectF place = shown->map()->placeOf(words(info.id));
      QVERIFY2(place.width() > 60 && place.height() > 20 && QRectF(shown.plot()->rect()).contains(place), info.id.c_str());
      QVERIFY2(drawn.contains(words(info.name)), info.id.c_str());
      const RuleTable::Rule* rule = shown->map()->ruleAt(place.center());
      QVERIFY2(rule && rule->id == info.id, info.id.c_str());
      const RuleMap::Column column = RuleMap::columnOf(*rule);
      QCOMPARE(column == RuleMap::exact, info.gradient == GradientKind::exact);
      QCOMPARE(column == RuleMap::stochastic, info.gradient == GradientKind::unbiased);
      QCOMPARE(column == RuleMap::sparse, info.gradient == GradientKind::biased && info.sparse && !info.local);
      QCOMPARE(column == RuleMap::local, info.gradient == GradientKind::biased && info.local);
      columns[column] |= place;
      (info.past_facing ? past : future) |= place;
      // Its cost, whose powers are those that the memory of every rule is held to, and its card.
      const auto power = [](double of) { return QStringLiteral("dₛ") + (of == 1.0 ? QString() : superscript(QString::number(of))); };
      const QString cost = RuleMap::costOf(*rule);
      QVERIFY2(cost.contains(power(info.memory_power) + " numbers") && cost.contains(power(info.time_power) + " a step"), qPrintable(cost));
      QCOMPARE(cost.startsWith("T "), info.memory.starts_with("T "));
      const QString card = shown->tipAt(place.center());
      for (const QString& said : {words(info.title), QString::number(info.year), words(info.idea), words(info.source),
                                  mathText(words(info.memory)), mathText(words(info.time))})
        QVERIFY2(card.contains(said), qPrintable(card + " lacks " + said));
      QCOMPARE(card.contains("For this model it is exact."), rule->exact_here && rule->why_not.empty() && rule->gradient != "exact");
    }
    QVERIFY(past.isEmpty() || future.isEmpty() || past.bottom() <= future.top());
    for (int i = 0; i + 1 < RuleMap::columns; ++i)
      QVERIFY(columns[i].isEmpty() || columns[i + 1].isEmpty() || columns[i].right() <= columns[i + 1].left());
  }

  /// In the window of 1280 x 800, too, whose panel is that small.
  void namesAreNotCutWhereTheMapIsLow() {
    test::Shown<CreditPanel> shown(nullptr, {392, 266});
    shown->setChoices({{"view", "rules"}});
    shown->setResult("rules", rulesFor("columnar-lstm"), {});
    shown.plot()->replot();
    for (const LearningRuleInfo& info : learning_rules()) {
      const QRectF place = shown->map()->placeOf(words(info.id));
      const int height = QFontMetrics(shown->map()->nameFont(place)).height();
      QVERIFY2(height <= place.height() && height >= 9, qPrintable(QStringLiteral("%1 of %2").arg(height).arg(place.height())));
    }
  }

  /// Those that can be compared step by step are offered, each with a box; the others have none.
  void everyOnlineRuleIsOffered() {
    const std::shared_ptr<const RuleTable> table = rulesFor("elman");
    test::Shown<CreditPanel> shown(nullptr, {760, 520});
    shown->setResult("rules", table, {});
    for (const LearningRuleInfo& info : learning_rules()) {
      const auto* box = shown->findChild<QCheckBox*>("rule." + words(info.id));
      QVERIFY2((box != nullptr) == (info.online != nullptr && info.past_facing), info.id.c_str());
      const RuleTable::Rule& rule = *std::ranges::find(table->rules, info.id, &RuleTable::Rule::id);
      if (box == nullptr) continue;
      QCOMPARE(box->isEnabled(), rule.why_not_compared.empty());
      if (!box->isEnabled()) QCOMPARE(box->toolTip(), safeTip(windowText(rule.why_not_compared)));
    }
  }
};

QTEST_MAIN(TestRuleMap)
#include "test_rule_map.moc"
