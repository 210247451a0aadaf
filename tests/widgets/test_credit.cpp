// SPDX-License-Identifier: GPL-3.0-or-later
// The panel of learning rules' credit on hand-made traces: what it asks for, draws, says, exports, and how it comes back.
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QGuiApplication>
#include <QProgressBar>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTest>
#include <cmath>

#include "panels/credit/credit.h"
#include "shown_panel.h"
#include "synthetic/synthetic_credit.h"
#include "synthetic/synthetic_trace.h"

using namespace reclab;
using test::Shown, test::synthetic_angle, test::synthetic_trace;

namespace {

std::shared_ptr<const Trace> credited() {
  auto trace = std::make_shared<Trace>(*synthetic_trace());
  test::put_credit(*trace);
  return trace;
}

/// The studies that a panel asks for.
class Asked {
 public:
  explicit Asked(Panel& panel) {
    QObject::connect(&panel, &Panel::requested, &panel, [this](const Request& request) {
      if (const auto* choice = std::get_if<StudyChoice>(&request)) all.push_back(*choice);
    });
  }
  int count(const std::string& study) const {
    return static_cast<int>(std::ranges::count(all, study, [](const StudyChoice& one) { return one.study; }));
  }
  static std::string value(const StudyChoice& choice, const std::string& key) {
    for (const auto& [name, text] : choice.values)
      if (name == key) return text;
    return "none";
  }
  std::vector<StudyChoice> all;
};

void choose(Shown<CreditPanel>& shown, CreditPanel::View view) {
  auto* box = shown.find<QComboBox>("view");
  box->setCurrentIndex(static_cast<int>(view));
  emit box->activated(static_cast<int>(view));
  shown.plot()->replot();
}

}  // namespace

class TestCredit : public QObject {
  Q_OBJECT
 private slots:
  /// Someone who knows none of the rules sees first which there are; what was compared comes into sight by itself.
  void theMapIsFirstAndThenTheSteps() {
    Shown<CreditPanel> shown(synthetic_trace());
    shown->setResult("rules", test::synthetic_rules(), {});
    Asked asked(shown.panel);
    QCOMPARE(shown->view(), CreditPanel::View::rules);
    QCOMPARE(shown->emptyReason(), QString());
    auto* start = shown.find<QPushButton>("creditStart");
    QVERIFY(start->isVisible() && start->isEnabled() && start->text().startsWith("Compare"));
    start->click();
    QCOMPARE(asked.all.back().act, StudyChoice::Act::compute);
    shown->setStudyState("credit", {true, 0.25, "uoro", {}});
    QCOMPARE(shown->view(), CreditPanel::View::steps);
    shown->setTrace(credited());
    QCOMPARE(shown->view(), CreditPanel::View::steps);
    QCOMPARE(shown->emptyReason(), QString());
  }

  void withoutCreditItOffersTheComparison() {
    Shown<CreditPanel> shown(synthetic_trace());
    Asked asked(shown.panel);
    choose(shown, CreditPanel::View::steps);
    QVERIFY2(shown->emptyReason().contains("Press “Compare rules”"), qPrintable(shown->emptyReason()));
    auto* offer = shown.find<QPushButton>("offer");
    QVERIFY(offer->isVisible() && offer->isEnabled());
    offer->click();
    QCOMPARE(asked.count("credit"), 1);
    QCOMPARE(asked.all.back().act, StudyChoice::Act::compute);
    QCOMPARE(Asked::value(asked.all.back(), "rules"), "uoro,snap");
    QCOMPARE(Asked::value(asked.all.back(), "repeats"), "8");
    QCOMPARE(Asked::value(asked.all.back(), "delays"), "16");
    QCOMPARE(Asked::value(asked.all.back(), "snap_order"), "1");
    QCOMPARE(Asked::value(asked.all.back(), "rbp_terms"), "20");
    QCOMPARE(Asked::value(asked.all.back(), "signs"), "0");
    QCOMPARE(shown->dataAsCsv(), QString());
  }

  void whileItRunsItSaysHowFarAndStops() {
    Shown<CreditPanel> shown(synthetic_trace());
    shown->setResult("rules", test::synthetic_rules(), {});
    Asked asked(shown.panel);
    shown->setStudyState("credit", {true, 0.25, "uoro", {}});
    QCOMPARE(shown->emptyReason(), QStringLiteral("UORO is being compared, 25 %."));
    QVERIFY(!shown.find<QPushButton>("offer")->isVisible());
    auto* start = shown.find<QPushButton>("creditStart");
    QVERIFY(start->isVisible());
    QCOMPARE(start->text(), QStringLiteral("Stop"));
    start->click();
    QCOMPARE(asked.all.back().act, StudyChoice::Act::stop);
    shown->setStudyState("credit", {});
    QCOMPARE(shown->view(), CreditPanel::View::rules);
    choose(shown, CreditPanel::View::steps);
    QVERIFY(shown->emptyReason().contains("Press “Compare rules”"));
    shown->setStudyState("time", {.running = true});
    QVERIFY(shown->emptyReason().contains("Press “Compare rules”"));
  }

  void whyThereIsNoneIsSaid() {
    auto trace = std::make_shared<Trace>(*synthetic_trace());
    trace->put(test::real_array("credit/none", {1}, {{"reason", "", {}}}, {1.0}, "The true gradients are too large."));
    Shown<CreditPanel> shown(trace);
    QCOMPARE(shown->emptyReason(), QStringLiteral("The true gradients are too large."));
    QVERIFY(shown.find<QPushButton>("offer")->isVisible());
  }

  void theRulesAreAskedForOnceARun() {
    Shown<CreditPanel> shown(synthetic_trace());
    shown->setResult("rules", test::synthetic_rules(), {});
    Asked asked(shown.panel);
    auto other = std::make_shared<Trace>(*synthetic_trace());
    other->info.command = "reclab run gru";
    shown->setTrace(other);
    QCOMPARE(asked.count("rules"), 1);
    shown->setResult("rules", test::synthetic_rules(), {});
    shown->setTrace(std::make_shared<Trace>(*other));  // a later stage
    QCOMPARE(asked.count("rules"), 1);
  }

  void rulesThatDoNotTakeTheModelAreNotAskedFor() {
    Shown<CreditPanel> shown(synthetic_trace());
    shown->setChoices({{"rules", QStringList{"diagonal-rtrl", "kf-rtrl", "bptt", "nothing"}}});
    QCOMPARE(shown->asked(), (QStringList{"diagonal-rtrl", "kf-rtrl", "bptt", "nothing"}));  // nothing is known of them yet
    shown->setResult("rules", test::synthetic_rules(), {});
    QCOMPARE(shown->asked(), QStringList{"kf-rtrl"});
    auto* box = shown.find<QCheckBox>("rule.diagonal-rtrl");
    QVERIFY(!box->isEnabled());
    QCOMPARE(box->toolTip(), QStringLiteral("Its transition is neither diagonal nor in blocks."));
    QVERIFY(!shown->findChild<QCheckBox*>("rule.bptt"));  // it has no gradient of each step
    shown.find<QCheckBox>("rule.kf-rtrl")->click();
    QVERIFY(shown->asked().isEmpty());
    QVERIFY(!shown.find<QPushButton>("creditStart")->isEnabled());
    choose(shown, CreditPanel::View::steps);
    QVERIFY(!shown.find<QPushButton>("offer")->isEnabled());
    QVERIFY2(shown->emptyReason().contains("None of the chosen learning rules takes this model"), qPrintable(shown->emptyReason()));
    shown.find<QCheckBox>("rule.rtrl")->click();
    QCOMPARE(shown->asked(), QStringList{"rtrl"});
  }

  void curvesAreTheAnglesAndTheRatios() {
    Shown<CreditPanel> shown(credited());
    QCOMPARE(shown->emptyReason(), QString());
    QCOMPARE(shown->upperRect()->graphs().size(), 3);
    QCOMPARE(shown->lowerRect()->graphs().size(), 3);
    for (int r = 0; r < 3; ++r) {
      const auto& points = *shown->upperRect()->graphs()[r]->data();
      QCOMPARE(points.size(), 300);
      for (const int t : {0, 50, 299})
        QVERIFY2(std::abs(points.at(t)->value - synthetic_angle(t, r)) < 1e-5, qPrintable(QString::number(points.at(t)->value)));
      QVERIFY(std::isnan(points.at(7)->value));
    }
    QVERIFY(std::abs(shown->lowerRect()->graphs()[0]->data()->at(0)->value - std::log10(4.0)) < 1e-12);
    shown->setTime(50);
    QVERIFY2(shown->said().contains("At step 50"), qPrintable(shown->said()));
    QVERIFY2(shown->said().contains("SnAp-n") || shown->said().contains("snap is 25° off"), qPrintable(shown->said()));
    QCOMPARE(shown->headline(), QStringLiteral("nearest rtrl, 0° at step 50"));
    shown->setTime(7);
    QVERIFY2(shown->said().contains("Step 7 has no loss; at step 6"), qPrintable(shown->said()));
    shown->setResult("rules", test::synthetic_rules(), {});
    QCOMPARE(shown->headline(), QStringLiteral("nearest RTRL, 0° at step 6"));
  }

  void aLowPanelHasTheAnglesAlone() {
    Shown<CreditPanel> shown(credited(), {420, 260});
    QVERIFY(shown->upperRect()->visible() && !shown->lowerRect()->visible());
    shown->resize(420, 480);
    QTRY_VERIFY_WITH_TIMEOUT(shown->lowerRect()->visible(), 20'000);
    QCOMPARE(shown->lowerRect()->graphs().size(), 3);
  }

  void nothingInTheRowIsCutWhereThereIsLittleRoom() {
    Shown<CreditPanel> shown(credited(), {290, 320});
    shown->setResult("rules", test::synthetic_rules(), {});
    for (int view = 0; view < CreditPanel::views().size(); ++view) {
      choose(shown, static_cast<CreditPanel::View>(view));
      QCoreApplication::processEvents();
      auto* box = shown.find<QComboBox>("view");
      QVERIFY2(box->width() >= box->sizeHint().width(), qPrintable(box->currentText()));
      auto* start = shown.find<QPushButton>("creditStart");
      QVERIFY2(!start->isVisible() || start->width() >= start->sizeHint().width(), qPrintable(box->currentText()));
      QVERIFY(start->isVisible() || view == 2 || view == 4);  // of one rule
    }
    shown->resize(700, 320);
    QCoreApplication::processEvents();
    QVERIFY(shown.find<QPushButton>("creditStart")->isVisible() && shown.find<QComboBox>("rule")->isVisible());
  }

  void lossesThatStandAloneArePoints() {
    auto trace = std::make_shared<Trace>(*credited());
    TraceArray cosine = *trace->find("credit/uoro/cosine");
    auto values = std::make_shared<std::vector<double>>(*cosine.real);
    for (std::size_t t = 0; t + 1 < values->size(); ++t) (*values)[t] = std::nan("");
    cosine.real = values;
    trace->put(cosine);
    Shown<CreditPanel> shown(trace);
    QCOMPARE(shown->upperRect()->graphs()[0]->scatterStyle().shape(), QCPScatterStyle::ssDisc);
  }

  void mapsAreByDelayAndByParameter() {
    Shown<CreditPanel> shown(credited());
    shown->setResult("rules", test::synthetic_rules(), {});
    choose(shown, CreditPanel::View::delays);
    const auto inside = [](const Heatmap* map, double key, double value) {
      return QPointF(map->keyAxis()->coordToPixel(key), map->valueAxis()->coordToPixel(value));
    };
    const auto entry = shown->delayMap()->at(inside(shown->delayMap(), 5, 1));
    QVERIFY(entry.has_value());
    QVERIFY(std::abs(entry->value - 30.0) < 1e-6);
    QVERIFY2(shown->tipAt(inside(shown->delayMap(), 5, 1)).startsWith("SnAp-n, weights that act 5 steps before the loss: 30°"),
             qPrintable(shown->tipAt(inside(shown->delayMap(), 5, 1))));
    auto* measure = shown.find<QComboBox>("measure");
    measure->setCurrentIndex(1);
    shown.plot()->replot();
    const Heatmap* map = shown->delayMap();
    const double later = map->at(inside(map, 9, 1))->value - map->at(inside(map, 5, 1))->value;
    QVERIFY2(std::abs(later - 4.0 * std::log10(0.9)) < 1e-5, qPrintable(QString::number(later)));
    QVERIFY2(shown->said().startsWith("The norm of each rule's gradient over that of the true one"), qPrintable(shown->said()));
    measure->setCurrentIndex(0);
    QCOMPARE(shown->dataAsCsv().section(u'\n', 0, 0),
             QStringLiteral("delay,angle of uoro,ratio of uoro,angle of snap,ratio of snap,angle of rtrl,ratio of rtrl"));
    QCOMPARE(shown->dataAsCsv().count(u'\n'), 1 + test::synthetic_delays);
    choose(shown, CreditPanel::View::parameters);
    QCOMPARE(shown->parameterMap()->units(), 3);
    const auto half = shown->parameterMap()->at(inside(shown->parameterMap(), 50, 1));
    QVERIFY(half.has_value());
    QVERIFY2(std::abs(half->value - 0.5 * synthetic_angle(50, 0)) < 1e-5, qPrintable(QString::number(half->value)));
    const QString tip = shown->tipAt(inside(shown->parameterMap(), 50, 1));
    QVERIFY2(tip.startsWith("UORO, step 50, by layer0/W_xh: ") && tip.endsWith(", 2 times as long"), qPrintable(tip));
    QVERIFY2(shown->dataAsCsv().section(u'\n', 0, 0).contains("angle of uoro by layer0/W_xh,ratio of uoro by layer0/W_xh"),
             qPrintable(shown->dataAsCsv().section(u'\n', 0, 0)));
    shown->setTime(50);
    QVERIFY2(shown->said().contains("UORO is nearest by head/weight, 0°, and farthest by layer0/W_hh"), qPrintable(shown->said()));
    auto* rule = shown.find<QComboBox>("rule");
    QVERIFY(rule->isVisible());
    rule->setCurrentIndex(1);
    emit rule->activated(1);
    QVERIFY2(shown->said().contains("SnAp-n is nearest"), qPrintable(shown->said()));
  }

  void valuesBelowTheColoursAreTold() {
    auto trace = std::make_shared<Trace>(*credited());
    TraceArray ratio = *trace->find("credit/snap/ratio_by_delay");
    auto values = std::make_shared<std::vector<double>>(*ratio.real);
    values->back() = 1e-9;
    ratio.real = values;
    trace->put(ratio);
    Shown<CreditPanel> shown(trace);
    choose(shown, CreditPanel::View::delays);
    QVERIFY(!shown->said().contains("Colours go down"));
    shown.find<QComboBox>("measure")->setCurrentIndex(1);
    QVERIFY2(shown->said().contains("Colours go down to 10⁻⁴; smaller values, down to 10⁻⁹"), qPrintable(shown->said()));
  }

  void noiseAndCostAreAsMeasured() {
    Shown<CreditPanel> shown(credited());
    shown->setResult("rules", test::synthetic_rules(), {});
    choose(shown, CreditPanel::View::noise);
    shown->setTime(100);
    QVERIFY2(shown->said().contains("UORO has bias 1.1 and deviation 4 over 8 repeats"), qPrintable(shown->said()));
    QVERIFY2(shown->said().contains("RTRL has bias 0 and is the same each time"), qPrintable(shown->said()));
    QVERIFY(std::abs(shown->lowerRect()->graphs()[0]->data()->at(100)->value - std::log10(4.0)) < 1e-12);
    choose(shown, CreditPanel::View::cost);
    QCOMPARE(shown->costRect()->graphs().size(), 3);
    QVERIFY(std::abs(shown->costRect()->graphs()[2]->data()->at(0)->key - std::log10(1048576.0)) < 1e-12);
    QVERIFY2(shown->said().contains("UORO took 4 KiB beside the model and its gradient, and 20 µs a step here"), qPrintable(shown->said()));
    QVERIFY2(shown->said().contains("By its equations: numbers kept, dₛ |θ|; operations a step, dₛ² |θ|"), qPrintable(shown->said()));
    QVERIFY2(shown.texts().join(QString()).contains("RTRL: dₛ3 numbers, dₛ4 a step"), qPrintable(shown.texts().join(u'|')));
    QCOMPARE(shown->dataAsCsv().section(u'\n', 1, 1), QStringLiteral("uoro,0,8,4096,2e-05,0"));
  }

  void theMapOfRulesIsOfTheirFacts() {
    Shown<CreditPanel> shown(synthetic_trace());
    choose(shown, CreditPanel::View::rules);
    QVERIFY2(shown->emptyReason().contains("being asked"), qPrintable(shown->emptyReason()));
    shown->setResult("rules", {}, "The model cannot be built.");
    QCOMPARE(shown->emptyReason(), QStringLiteral("The model cannot be built."));
    const auto table = test::synthetic_rules();
    shown->setResult("rules", table, {});
    QCOMPARE(shown->emptyReason(), QString());
    shown.plot()->replot();
    QCOMPARE(shown->headline(), QStringLiteral("8 of 10 rules take LSTM"));
    for (const RuleTable::Rule& rule : table->rules) {
      const QRectF place = shown->map()->placeOf(QString::fromStdString(rule.id));
      QVERIFY2(place.width() > 20 && place.height() > 10, rule.id.c_str());
      QCOMPARE(shown->map()->ruleAt(place.center())->id, rule.id);
      for (const RuleTable::Rule& other : table->rules) {
        const QRectF its = shown->map()->placeOf(QString::fromStdString(other.id));
        if (rule.id == other.id) continue;
        QVERIFY(!place.intersects(its));
        if (rule.past_facing && !other.past_facing) QVERIFY(place.bottom() <= its.top());
        if (RuleMap::columnOf(rule) < RuleMap::columnOf(other)) QVERIFY(place.right() <= its.left());
      }
    }
    const auto cost = [&](const char* id) {
      return RuleMap::costOf(*std::ranges::find(table->rules, std::string(id), &RuleTable::Rule::id));
    };
    QCOMPARE(cost("rtrl"), QStringLiteral("dₛ³ numbers, dₛ⁴ a step"));
    QCOMPARE(cost("bptt"), QStringLiteral("T dₛ numbers, dₛ² a step"));
    QCOMPARE(cost("rbp"), QStringLiteral("dₛ² numbers, K dₛ² a step"));
    QCOMPARE(cost("fptt"), QStringLiteral("dₛ² numbers, dₛ² a step"));
    QTest::mouseClick(shown.plot(), Qt::LeftButton, {}, shown->map()->placeOf("diagonal-rtrl").center().toPoint());
    QVERIFY2(shown->said().contains("The rule diagonal RTRL") && shown->said().contains("neither diagonal nor in blocks"),
             qPrintable(shown->said()));
    QCOMPARE(shown.find<QComboBox>("rule")->currentData().toString(), QStringLiteral("diagonal-rtrl"));
    QVERIFY(shown->dataAsCsv().contains("\nuoro,The rule UORO,1991,unbiased,past,0,"));
    QCOMPARE(shown->dataAsCsv().count(u'\n'), 11);
  }

  /// Rules train the same model: the view asks for the study, says how it goes, stops it, and draws what came.
  void rulesTrainSideBySide() {
    Shown<CreditPanel> shown(synthetic_trace());
    shown->setResult("rules", test::synthetic_rules(), {});
    choose(shown, CreditPanel::View::training);
    Asked asked(shown.panel);
    QVERIFY2(
        shown->emptyReason().startsWith("Press “Train rules” to see the losses of BPTT, UORO, SnAp-n, each training this model for 100 "
                                        "steps"),
        qPrintable(shown->emptyReason()));
    auto* offer = shown.find<QPushButton>("offer");
    QVERIFY(offer->isVisible() && offer->text() == "Train rules");
    offer->click();
    QCOMPARE(asked.count("credit-curves"), 1);
    QCOMPARE(asked.all.back().act, StudyChoice::Act::compute);
    for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
             {"rules", "bptt,uoro,snap"}, {"steps", "100"}, {"rate", "0.01"}, {"batch", "8"}, {"snap_order", "1"}, {"rbp_terms", "20"}})
      QCOMPARE(Asked::value(asked.all.back(), key), value);
    shown->setStudyState("credit-curves", {true, 0.5, "uoro", {}});
    QCOMPARE(shown->emptyReason(), QStringLiteral("UORO is training, 50 % of all."));
    auto* start = shown.find<QPushButton>("creditStart");
    QVERIFY(start->isVisible() && start->text() == "Stop");
    QCOMPARE(shown->findChild<QProgressBar*>()->value(), 500);
    start->click();
    QCOMPARE(asked.all.back().study, "credit-curves");
    QCOMPARE(asked.all.back().act, StudyChoice::Act::stop);
    shown->setStudyState("credit-curves", {});
    QVERIFY(shown->emptyReason().startsWith("Press “Train rules”"));
    // The comparison beside it goes on by itself.
    shown->setStudyState("credit", {true, 0.25, "uoro", {}});
    QVERIFY(shown->view() == CreditPanel::View::training && start->text() != "Stop");
    shown->setStudyState("credit", {});

    auto trace = std::make_shared<Trace>(*synthetic_trace());
    test::put_curves(*trace);
    shown->setTrace(trace);
    QCOMPARE(shown->emptyReason(), QString());
    shown.plot()->replot();
    QCOMPARE(shown->trainingRect()->graphs().size(), 3);
    for (int r = 0; r < 3; ++r) {
      const auto& points = *shown->trainingRect()->graphs()[r]->data();
      QCOMPARE(points.size(), r == 2 ? 12 : test::synthetic_steps);
      QCOMPARE(points.at(5)->key, 6.0);
      QVERIFY(std::abs(points.at(5)->value - std::log10(test::synthetic_loss(5, r))) < 1e-12);
    }
    QVERIFY2(shown->said().contains("After 40 steps at a learning rate of 0.01, 8 sequences each") &&
                 shown->said().contains("BPTT 0.25; UORO 0.5;"),
             qPrintable(shown->said()));
    QVERIFY2(shown->said().contains("SnAp-n: Training ended at step 13, where the loss became non-finite."), qPrintable(shown->said()));
    QVERIFY2(shown->said().endsWith(test::curves_command), qPrintable(shown->said()));
    QVERIFY2(shown.texts().contains("SnAp-n (ended after 12)"), qPrintable(shown.texts().join(u'|')));
    QCOMPARE(shown->headline(), QStringLiteral("lowest after 40 steps: BPTT, 0.25"));
    QCOMPARE(shown->dataAsCsv().section(u'\n', 0, 0), QStringLiteral("step of training,loss of bptt,loss of uoro,loss of snap"));
    QCOMPARE(shown->dataAsCsv().count(u'\n'), 1 + test::synthetic_steps);
    const QPointF at(shown->trainingRect()->axis(QCPAxis::atBottom)->coordToPixel(20.0), shown->trainingRect()->center().y());
    QVERIFY2(shown->tipAt(at).startsWith("step 20: BPTT ") && shown->tipAt(at).endsWith("SnAp-n has ended"), qPrintable(shown->tipAt(at)));
    for (QAction* action : shown->actions())
      if (action->text().contains("repeats the training")) action->trigger();
    QCOMPARE(QGuiApplication::clipboard()->text(), QString(test::curves_command));
  }

  void theChoicesOfATrainingAreItsOwn() {
    auto trace = std::make_shared<Trace>(*synthetic_trace());
    test::put_curves(*trace);
    Shown<CreditPanel> shown(trace);
    shown->setResult("rules", test::synthetic_rules(), {});
    choose(shown, CreditPanel::View::training);
    auto* start = shown.find<QPushButton>("creditStart");
    auto* steps = shown.find<QComboBox>("trainSteps");
    steps->setCurrentIndex(steps->findData("50"));
    QVERIFY(start->property("primary").toBool());  // what is drawn is of 40 steps
    QVERIFY(!shown.find<QCheckBox>("train.diagonal-rtrl")->isEnabled());
    shown.find<QCheckBox>("train.bptt")->click();
    shown.find<QCheckBox>("train.rtrl")->click();
    QCOMPARE(shown->trainedRules(), (QStringList{"uoro", "snap", "rtrl"}));
    QCOMPARE(shown->asked(), (QStringList{"uoro", "snap"}));
    Asked asked(shown.panel);
    start->click();
    QCOMPARE(Asked::value(asked.all.back(), "rules"), "uoro,snap,rtrl");
    QCOMPARE(Asked::value(asked.all.back(), "steps"), "50");
    const QVariantMap kept = shown->choices();
    Shown<CreditPanel> other(trace);
    other->setChoices(kept);
    other->setResult("rules", test::synthetic_rules(), {});
    QCOMPARE(other->trainedRules(), shown->trainedRules());
    QCOMPARE(other->view(), CreditPanel::View::training);
    other->setChoices({{"view", "training"}});
    QCOMPARE(other->trainedRules(), (QStringList{"bptt", "uoro", "snap"}));
    for (const char* rule : {"train.bptt", "train.uoro", "train.snap"}) other.find<QCheckBox>(rule)->click();
    QVERIFY(!other.find<QPushButton>("creditStart")->isEnabled());
  }

  void whyThereAreNoCurvesIsSaid() {
    auto trace = std::make_shared<Trace>(*synthetic_trace());
    trace->put(test::real_array("rule_curve/none", {1}, {{"reason", "", {}}}, {1.0}, "noise has no target."));
    Shown<CreditPanel> shown(trace);
    choose(shown, CreditPanel::View::training);
    QCOMPARE(shown->emptyReason(), QStringLiteral("noise has no target."));
    QVERIFY(shown.find<QPushButton>("offer")->isVisible());
  }

  void otherChoicesMakeTheButtonStandOut() {
    Shown<CreditPanel> shown(credited());
    shown->setChoices({{"rules", QStringList{"uoro", "snap", "rtrl"}}});
    auto* start = shown.find<QPushButton>("creditStart");
    QVERIFY(!start->property("primary").toBool());
    shown.find<QSpinBox>("signs")->setValue(3);
    QVERIFY(start->property("primary").toBool());
    Asked asked(shown.panel);
    start->click();
    QCOMPARE(Asked::value(asked.all.back(), "signs"), "3");
    shown.find<QSpinBox>("signs")->setValue(0);
    QVERIFY(!start->property("primary").toBool());
  }

  void choicesComeBack() {
    Shown<CreditPanel> shown(credited());
    const QVariantMap saved{{"rules", QStringList{"rtrl", "uoro"}}, {"signs", 5}, {"view", "noise"}, {"rule", "rtrl"}};
    shown->setChoices(saved);
    QCOMPARE(shown->choices(), saved);
    QCOMPARE(shown->view(), CreditPanel::View::noise);
    shown->setChoices({{"rules", 7}, {"signs", "many"}, {"view", "nowhere"}});
    QCOMPARE(shown->view(), CreditPanel::View::steps);
    QCOMPARE(shown.find<QSpinBox>("signs")->value(), 0);
  }

  void theLineOfTheComparisonIsCopied() {
    Shown<CreditPanel> shown(credited());
    QAction* copy = nullptr;
    for (QAction* action : shown->actions())
      if (action->text().contains("reclab line")) copy = action;
    QVERIFY(copy && copy->isEnabled());
    copy->trigger();
    QCOMPARE(QGuiApplication::clipboard()->text(), QString::fromLatin1(test::synthetic_command));
    shown->setTrace(synthetic_trace());
    QVERIFY(!copy->isEnabled());
  }

  void figuresNameTheRulesAndTheView() {
    Shown<CreditPanel> shown(credited());
    shown->setResult("rules", test::synthetic_rules(), {});
    const QStringList texts = shown.texts();
    QVERIFY2(texts.contains("UORO") && texts.contains("RTRL (exact here)"), qPrintable(texts.join(u'|')));
    choose(shown, CreditPanel::View::rules);
    QVERIFY2(shown.texts().contains("KF-RTRL"), qPrintable(shown.texts().join(u'|')));
  }
};

QTEST_MAIN(TestCredit)
#include "test_credit.moc"
