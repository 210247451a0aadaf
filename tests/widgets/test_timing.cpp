// SPDX-License-Identifier: GPL-3.0-or-later
// The timing panel on a hand-made timing with planted laws: its views, words, numbers and choices, with real events.
#include <QApplication>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QSignalSpy>
#include <QStandardItemModel>
#include <QTest>
#include <cmath>

#include "panels/timing/timing.h"
#include "shown_panel.h"
#include "synthetic/synthetic_trace.h"

using namespace reclab;
using test::real_array;

namespace {

constexpr double crossing = 410;

struct Law {
  std::string form;
  double at_crossing, exponent;  // seconds at T = 410, and the slope from there
};
const std::vector<Law> laws = {{"sequential", 1e-3, 1.0}, {"chunkwise", 1e-3, 0.5}, {"newton", 4e-3, 0.75}};

/// Backward takes twice as long as forward; the 90 % band is 2 % wide to each side, the quartiles 1 %.
std::shared_ptr<Trace> timed(double band = 0.02) {
  test::SyntheticOptions options;
  options.timing = false;
  auto trace = std::make_shared<Trace>(*test::synthetic_trace(options));
  trace->info.forms = {"sequential", "chunkwise", "newton"};
  trace->info.devices = {"cpu"};
  RunInfo info = trace->info;
  info.batch = 4;
  info.command = "reclab bench lstm --lengths 64,128";
  info.notes = {"newton at length 4,096 was left out: too long for the budget."};
  trace->timed = std::make_shared<const RunInfo>(info);
  for (const Law& law : laws) {
    std::vector<double> lengths;
    for (double length = 64; length <= 4096; length *= 2) lengths.push_back(length);
    const auto put = [&](const std::string& name, const auto& of) {
      std::vector<double> values;
      for (const double length : lengths) values.push_back(of(length));
      trace->put(
          real_array("timing/" + law.form + "/" + name, {static_cast<std::int64_t>(values.size())}, {{"length", "steps", {}}}, values));
    };
    const auto one = [&](const std::string& name, double value) {
      trace->put(real_array("timing/" + law.form + "/" + name, {1}, {{"", "", {}}}, {value}));
    };
    const auto seconds = [&](double T) { return law.at_crossing * std::pow(T / crossing, law.exponent); };
    put("length", [](double T) { return T; });
    put("seconds", seconds);
    put("low", [&](double T) { return 0.99 * seconds(T); });
    put("high", [&](double T) { return 1.01 * seconds(T); });
    put("low90", [&](double T) { return (1 - band) * seconds(T); });
    put("high90", [&](double T) { return (1 + band) * seconds(T); });
    for (const auto& [pass, share] : {std::pair{"forward", 1.0 / 3}, {"backward", 2.0 / 3}}) {
      const std::string name = pass;
      put(name, [&](double T) { return share * seconds(T); });
      put(name + "_low90", [&](double T) { return 0.98 * share * seconds(T); });
      put(name + "_high90", [&](double T) { return 1.02 * share * seconds(T); });
      one(name + "_exponent", law.exponent);
      one(name + "_exponent_low", law.exponent - 0.01);
      one(name + "_exponent_high", law.exponent + 0.01);
    }
    put("memory", [&](double T) { return 512 * T * (law.form == "sequential" ? 1 : 3); });
    put("flops", [&](double T) { return 1e4 * T; });
    put("bytes", [&](double T) { return law.form == "chunkwise" ? 1e3 * T : 1e4 * T; });
    put("output_error", [&](double) { return law.form == "sequential" ? 0.0 : 3e-15; });
    put("gradient_error", [&](double) { return law.form == "sequential" ? 0.0 : 4e-14; });
    one("exponent", law.exponent);
    one("exponent_low", law.exponent - 0.02);
    one("exponent_high", law.exponent + 0.03);
    one("memory_exponent", 1.0);
    if (law.form == "newton") {
      put("iterations", [](double T) { return T < 4096 ? 7.0 : 100.0; });
      put("converged", [](double T) { return T < 4096 ? 1.0 : 0.0; });
    }
  }
  const auto single = [&](const std::string& key, double value) { trace->put(real_array(key, {1}, {{"", "", {}}}, {value})); };
  single("timing/roof/triad", 2e10);
  single("timing/roof/cached", 8e10);
  single("timing/roof/flops", 6e10);
  single("timing/lyapunov", -0.12);
  single("timing/noise", 0.03);
  single("timing/between", 0.12);
  return trace;
}

struct Shown : test::Shown<TimingPanel> {
  explicit Shown(std::shared_ptr<const Trace> trace, QSize size = {1100, 620}) : test::Shown<TimingPanel>(std::move(trace), size) {}
};

QStringList offered(QComboBox* box) {
  QStringList all;
  for (int i = 0; i < box->count(); ++i) all << box->itemText(i);
  return all;
}

/// As a hand does: the arrow keys on the box that has the focus.
void pick(QComboBox* box, const QString& text) {
  box->setFocus();
  const int to = box->findText(text);
  QVERIFY2(to >= 0, qPrintable(text));
  for (int guard = 0; box->currentIndex() != to && guard < 100; ++guard)
    QTest::keyClick(box, box->currentIndex() < to ? Qt::Key_Down : Qt::Key_Up);
  QCOMPARE(box->currentText(), text);
}

std::shared_ptr<Trace> without(const Trace& trace, const QString& part) {
  auto less = std::make_shared<Trace>();
  less->info = trace.info;
  less->timed = trace.timed;
  for (const auto& array : trace.arrays())
    if (!QString::fromStdString(array->key).contains(part)) less->put(*array);
  return less;
}

}  // namespace

/// What a panel asks for in one way.
class Asked {
 public:
  Asked(Panel* panel, StudyChoice::Act act) : act_(act), all_(panel, &Panel::requested) {}
  qsizetype size() const { return std::ssize(all()); }
  TimingChoices::Values last() const {
    const auto found = all();
    return found.empty() ? TimingChoices::Values() : TimingChoices::Values(found.back().values.begin(), found.back().values.end());
  }

 private:
  std::vector<StudyChoice> all() const {
    std::vector<StudyChoice> found;
    for (const QVariantList& one : all_)
      if (const auto choice = std::get<StudyChoice>(one[0].value<Request>()); choice.study == "time" && choice.act == act_)
        found.push_back(choice);
    return found;
  }
  StudyChoice::Act act_;
  QSignalSpy all_;
};

class TestTiming : public QObject {
  Q_OBJECT
 private slots:
  void theHeadlineNamesTheCrossing() {
    TimingPanel panel;
    panel.setTrace(timed());
    QCOMPARE(panel.headline(), QStringLiteral("chunkwise overtakes sequential at T = 410"));
    // What the 90 % bands do not tell apart is no overtaking, however narrow the quartiles.
    panel.setTrace(timed(0.9));
    QCOMPARE(panel.headline(), QStringLiteral("chunkwise is fastest at T = 4,096"));
    panel.setTrace(timed());
    panel.setView(TimingPanel::View::memory);
    QCOMPARE(panel.headline(), QStringLiteral("sequential takes the least memory at T = 4,096"));
    panel.setView(TimingPanel::View::error);
    QCOMPARE(panel.headline(), QStringLiteral("largest error 4×10⁻¹⁴, chunkwise at T = 4,096"));
    panel.setView(TimingPanel::View::newton);
    QCOMPARE(panel.headline(), QStringLiteral("λ₁ = −0.12 a step"));
  }

  void exponentsAreInTheLegend() {
    Shown shown(timed());
    QStringList texts = shown.texts();
    QVERIFY2(texts.join(u'|').contains(QStringLiteral("sequential  ∝ T|1.00| [0.98, 1.03]")), qPrintable(texts.join(u'|')));
    QVERIFY(texts.join(u'|').contains(QStringLiteral("chunkwise  ∝ T|0.50| [0.48, 0.53]")));
    shown->setView(TimingPanel::View::throughput);
    texts = shown.texts();
    QVERIFY2(texts.join(u'|').contains(QStringLiteral("chunkwise  ∝ T|0.50| [0.47, 0.52]")), qPrintable(texts.join(u'|')));
    QVERIFY(texts.first().startsWith(QStringLiteral("Timing: throughput")));
    shown->setView(TimingPanel::View::memory);
    QVERIFY(shown.texts().join(u'|').contains(QStringLiteral("newton  ∝ T|1.00|")));  // no band, no brackets
    shown->setView(TimingPanel::View::time);
    shown->setPass(TimingPanel::Pass::apart);
    texts = shown.texts();
    QVERIFY2(texts.join(u'|').contains(QStringLiteral("newton, backward  ∝ T|0.75| [0.74, 0.76]")), qPrintable(texts.join(u'|')));
    int dashed = 0;
    for (int i = 0; i < shown->plot()->graphCount(); ++i) dashed += shown->plot()->graph(i)->pen().style() == Qt::DashLine;
    QCOMPARE(dashed, 3);
  }

  void pointsAreWhereTheNumbersAre() {
    Shown shown(timed());
    const auto at = [&](const QString& form, double length, double x, double y) {
      const QPointF pixel = shown->pixelOf(form, length);
      QVERIFY2(
          !pixel.isNull() && std::abs(pixel.x() - shown.x()->coordToPixel(x)) < 0.01 &&
              std::abs(pixel.y() - shown.y()->coordToPixel(y)) < 0.01,
          qPrintable(
              QStringLiteral("%1 is at %2, %3").arg(form).arg(shown.x()->pixelToCoord(pixel.x())).arg(shown.y()->pixelToCoord(pixel.y()))));
    };
    const double slow = 1e-3 * 4096 / crossing;  // sequential at the longest
    at("sequential", 4096, 4096, slow);
    shown->setPass(TimingPanel::Pass::backward);
    at("sequential", 4096, 4096, slow * 2 / 3);
    shown->setPass(TimingPanel::Pass::sum);
    shown->setView(TimingPanel::View::throughput);
    at("sequential", 4096, 4096, 4096 * 4 / slow);  // of a batch of four
    shown->setView(TimingPanel::View::memory);
    at("chunkwise", 64, 64, 512 * 64 * 3);
    shown->setView(TimingPanel::View::roofline);
    at("chunkwise", 4096, 10, 1e4 * 4096 / (1e-3 * std::sqrt(4096 / crossing) / 3));
    at("sequential", 64, 1, 1e4 * crossing / 1e-3 * 3);
    shown->setView(TimingPanel::View::error);
    at("chunkwise", 4096, 1e-3 * std::sqrt(4096 / crossing), 4e-14);
    at("sequential", 4096, slow, 1e-17);  // no error at all: at the bottom
    shown->setView(TimingPanel::View::newton);
    at("newton", 64, 64, 7);
    at("newton", 4096, 4096, 100);
    for (int i = 0; i < shown->plot()->graphCount(); ++i) QVERIFY(shown->plot()->graph(i)->dataCount() > 0);
  }

  void theRoofIsThatOfTheMachine() {
    Shown shown(timed());
    shown->setView(TimingPanel::View::roofline);
    QCOMPARE(shown->view(), TimingPanel::View::roofline);
    QCPGraph* roof = nullptr;
    for (int i = 0; i < shown->plot()->graphCount(); ++i)
      if (QCPGraph* one = shown->plot()->graph(i); one->dataCount() == 3 && std::abs(one->data()->at(1)->key - 3.0) < 1e-12) roof = one;
    QVERIFY(roof != nullptr);  // its corner is where 2e10 B/s bring what 6e10 flop/s take
    QCOMPARE(roof->data()->at(1)->value, 6e10);
    QCOMPARE(roof->data()->at(2)->value, 6e10);
    QVERIFY(std::abs(roof->data()->at(0)->value / roof->data()->at(0)->key / 2e10 - 1) < 1e-12);
    QVERIFY(shown.y()->range().upper > 6e10 && shown.x()->range().contains(3.0));
    const QStringList texts = shown.texts();
    QVERIFY2(texts.contains(QStringLiteral("roof: 18.6 GiB/s, 60 Gflop/s")), qPrintable(texts.join(u'|')));
    QVERIFY(texts.contains(QStringLiteral("chunkwise, T = 4,096")));
    // Without the machine's numbers the points are there, and no roof.
    shown->setTrace(without(*timed(), "roof"));
    QCOMPARE(shown->view(), TimingPanel::View::roofline);
    QVERIFY(!shown.texts().join(u' ').contains("roof:"));
  }

  void errorsStandBesideWhatIsAllowed() {
    Shown shown(timed());
    shown->setView(TimingPanel::View::error);
    const auto allowed = [&] {
      for (int i = 0; i < shown->plot()->graphCount(); ++i)
        if (shown->plot()->graph(i)->pen().style() == Qt::DashLine) return shown->plot()->graph(i)->data()->at(0)->value;
      return 0.0;
    };
    QCOMPARE(allowed(), 1e-9);
    QVERIFY2(shown.texts().join(u'|').contains(QStringLiteral("allowed in float64: 10|−9")), qPrintable(shown.texts().join(u'|')));
    QVERIFY(shown.texts().contains(QStringLiteral("0")));
    auto single = std::make_shared<Trace>(*timed());
    RunInfo info = *single->timed;
    info.dtype = "float32";
    single->timed = std::make_shared<const RunInfo>(info);
    shown->setTrace(single);
    QCOMPARE(allowed(), 1e-3);
  }

  void newtonSaysWhetherItContracts() {
    Shown shown(timed());
    shown->setView(TimingPanel::View::newton);
    QCOMPARE(shown->sentence(), QStringLiteral("λ₁ = −0.12 a step: Newton's iteration contracts."));
    QVERIFY2(shown.texts().contains(QStringLiteral("newton (× did not converge)")), qPrintable(shown.texts().join(u'|')));
    auto chaos = std::make_shared<Trace>(*timed());
    chaos->put(real_array("timing/lyapunov", {1}, {{"", "", {}}}, {0.05}));
    shown->setTrace(chaos);
    QCOMPARE(shown->sentence(), QStringLiteral("λ₁ = +0.05 a step: chaotic, Newton converges slowly."));
    shown->setView(TimingPanel::View::time);
    QVERIFY(shown->sentence().isEmpty());
  }

  void whatIsMissingIsLeftOut() {
    Shown shown(timed());
    auto* views = shown.find<QComboBox>("timingView");
    const QStringList all = {"time", "throughput", "memory", "roofline", "error", "Newton"};
    QCOMPARE(offered(views), all);
    const std::pair<QString, QString> parts[] = {
        {"/memory", "memory"}, {"/bytes", "roofline"}, {"output_error", "error"}, {"iterations", "Newton"}};
    for (const auto& [part, view] : parts) {
      shown->setTrace(without(*timed(), part));
      QStringList rest = all;
      rest.removeAll(view);
      QCOMPARE(offered(views), rest);
    }
    // A view that this timing has not is the time until another has it.
    shown->setView(TimingPanel::View::memory);
    shown->setTrace(test::synthetic_trace());
    QCOMPARE(offered(views), (QStringList{"time", "throughput"}));
    QCOMPARE(shown->view(), TimingPanel::View::time);
    QVERIFY(!shown.find<QComboBox>("timingPass")->isVisible());
    shown->setTrace(timed());
    QCOMPARE(shown->view(), TimingPanel::View::memory);
  }

  void everyPointExplainsItself() {
    Shown shown(timed());
    const QString tip = shown->tipAt(shown->pixelOf("newton", 4096));
    for (const char* part :
         {"newton at T = 4,096, batch 4", "forward and backward: 22.", "90 % band", "quartiles", "forward: 7.49", "backward: 15 ms",
          "throughput: 729 k steps/s", "memory of its arrays: 6 MiB", "41 Mflop", "1 flop a byte", "5.47 Gflop/s, 27 % of what",
          "error of outputs: 3×10⁻¹⁵, of gradients: 4×10⁻¹⁴", "did not converge in 100 steps"})
      QVERIFY2(tip.contains(QString::fromUtf8(part)), qPrintable(QString::fromUtf8(part) + " is not in " + tip));
    QVERIFY(shown->tipAt(shown->pixelOf("sequential", 64)).contains("error of outputs: none"));
    QVERIFY(shown->tipAt(QPointF(-5, -5)).isEmpty());
    // A curve that is hidden explains nothing.
    QTest::mouseClick(shown->plot(), Qt::LeftButton, {}, shown->legend()->placeOf("newton").center());
    QVERIFY(!shown->tipAt(shown->pixelOf("newton", 4096)).contains("newton"));
  }

  void theCaptionSaysWhatRan() {
    Shown shown(timed());
    QCOMPARE(shown->caption(),
             QStringLiteral("CPU, float64, batch 4, width 16, seed 1; this machine's noise: ±3 %; one note, rest the pointer here"));
    QVERIFY(shown.texts().join(u' ').contains("batch 4"));
    QString tip;
    for (int y = 0; y < shown->plot()->height() && !tip.startsWith("What was timed"); y += 2)
      tip = shown->tipAt(QPointF(shown->plot()->width() / 2, y));
    for (const char* part : {"±3 %", "From one run to another", "±12 %", "are in the bands"})
      QVERIFY2(tip.contains(QString::fromUtf8(part)), qPrintable(tip));
    shown->setStudyState("time", {.running = true});
    shown->setStudyState("time", {true, 0.25, "timing chunkwise at length 1,024", {}});
    QCOMPARE(shown->caption(), QStringLiteral("Timing chunkwise at length 1,024, 25 %"));
    auto* bar = shown->findChild<QProgressBar*>();
    QVERIFY(bar->isVisible() && bar->value() == 250);
    shown->setStudyState("time", {});
    QVERIFY(!bar->isVisible() && shown->caption().startsWith("CPU"));
    shown->setStudyState("time", {false, 0.5, "of a timing that was stopped", {}});
    QVERIFY(shown->caption().startsWith("CPU"));
    QCOMPARE(shown->actions().size(), 1);
    shown->actions().front()->trigger();
    QCOMPARE(QGuiApplication::clipboard()->text(), QStringLiteral("reclab bench lstm --lengths 64,128"));
    auto other = std::make_shared<Trace>(*timed());
    other->timed.reset();  // the run's own command repeats no timing
    shown->setTrace(other);
    QVERIFY(!shown->actions().front()->isEnabled());
  }

  void allOfItIsInTheData() {
    TimingPanel panel;
    panel.setTrace(timed());
    const QStringList lines = panel.dataAsCsv().split(u'\n', Qt::SkipEmptyParts);
    const QStringList names = lines[0].split(u','), values = lines[1 + 2 * 7 + 6].split(u',');
    QVERIFY(lines[0].startsWith("form,length,seconds,low,high,exponent,"));
    QCOMPARE(lines.size(), 1 + 3 * 7);
    QCOMPARE(values.size(), names.size());
    const auto value = [&](const QString& name) { return values[names.indexOf(name)].toDouble(); };
    QCOMPARE(values[0], QStringLiteral("newton"));
    QCOMPARE(value("length"), 4096.0);
    QCOMPARE(value("exponent"), 0.75);
    QCOMPARE(value("exponent_high"), 0.78);
    QCOMPARE(value("backward_exponent_low"), 0.74);
    QCOMPARE(value("memory"), 512.0 * 4096 * 3);
    QCOMPARE(value("iterations"), 100.0);
    QCOMPARE(value("converged"), 0.0);
    QCOMPARE(value("gradient_error"), 4e-14);
    QCOMPARE(value("roof_flops"), 6e10);
    QCOMPARE(value("lyapunov"), -0.12);
    QCOMPARE(value("between"), 0.12);
    QCOMPARE(value("batch"), 4.0);
    QCOMPARE(value("low90"), 0.98 * value("seconds"));
  }

  void choicesAreMadeByHand() {
    Shown shown(timed());
    Asked changed(&shown.panel, StudyChoice::Act::choose), wanted(&shown.panel, StudyChoice::Act::compute),
        stopped(&shown.panel, StudyChoice::Act::stop);
    QVERIFY(shown->choice() == TimingChoices::usual());
    auto* start = shown.find<QPushButton>("timingStart");
    QTest::mouseClick(shown.find<QToolButton>("field"), Qt::LeftButton);
    auto* box = shown.find<QCheckBox>("form.newton");
    QVERIFY(box->isVisible() && box->isChecked());
    QTest::mouseClick(box, Qt::LeftButton, {}, {8, box->height() / 2});
    QCOMPARE(shown->choice().at("forms"), std::string("sequential,chunkwise"));
    QVERIFY(start->property("primary").toBool());
    // The last one stays.
    for (const char* name : {"form.sequential", "form.chunkwise"}) {
      auto* one = shown.find<QCheckBox>(name);
      QTest::mouseClick(one, Qt::LeftButton, {}, {8, one->height() / 2});
    }
    QCOMPARE(shown->choice().at("forms"), std::string("chunkwise"));
    QVERIFY(shown.find<QCheckBox>("form.chunkwise")->isChecked());
    QTest::keyClick(box->window(), Qt::Key_Escape);
    QTRY_VERIFY(!box->isVisible());
    pick(shown.find<QComboBox>("timingFrom"), "4,096");
    QCOMPARE(shown->choice().at("lengths"), std::string("4096"));  // to is not before from
    pick(shown.find<QComboBox>("timingTo"), "1,024");
    QCOMPARE(shown->choice().at("lengths"), std::string("1024"));
    pick(shown.find<QComboBox>("timingFrom"), "256");
    QCOMPARE(shown->choice().at("lengths"), std::string("256,512,1024"));
    pick(shown.find<QComboBox>("timingBatch"), "8");
    pick(shown.find<QComboBox>("timingWidth"), "64");
    pick(shown.find<QComboBox>("timingPrecision"), "float32");
    pick(shown.find<QComboBox>("timingPasses"), "forward alone");
    QTest::mouseClick(start, Qt::LeftButton);
    QCOMPARE(wanted.size(), 1);
    const TimingChoices::Values choice = wanted.last();
    const TimingChoices::Values chosen{{"forms", "chunkwise"}, {"lengths", "256,512,1024"}, {"batch", "8"}, {"width", "64"}, {"device", ""},
                                       {"dtype", "f32"},       {"forward_only", "true"}};
    QVERIFY(choice == chosen);
    QVERIFY(changed.size() > 6 && changed.last() == choice);
    shown->setStudyState("time", {.running = true});
    QCOMPARE(start->text(), QStringLiteral("Stop"));
    QVERIFY(!start->property("primary").toBool());
    QTest::mouseClick(start, Qt::LeftButton);
    QCOMPARE(stopped.size(), 1);
    // There is no CUDA here, and why is said.
    shown->setNoCuda("no driver was found.");
    auto* device = shown.find<QComboBox>("timingDevice");
    QVERIFY(!qobject_cast<QStandardItemModel*>(device->model())->item(1)->isEnabled());
    QVERIFY(device->itemData(1, Qt::ToolTipRole).toString().contains("no driver") && device->toolTip().contains("no driver"));
    QTest::keyClick(device, Qt::Key_Down);
    QCOMPARE(device->currentText(), QStringLiteral("CPU"));
  }

  void choicesAreKeptAndBelongToTheirModel() {
    Shown shown(timed());
    pick(shown.find<QComboBox>("timingWidth"), "64");
    pick(shown.find<QComboBox>("timingTo"), "8,192");
    QTest::mouseClick(shown.find<QToolButton>("field"), Qt::LeftButton);
    auto* box = shown.find<QCheckBox>("form.newton");
    QTest::mouseClick(box, Qt::LeftButton, {}, {8, box->height() / 2});
    QTest::keyClick(box->window(), Qt::Key_Escape);
    QTest::mouseClick(shown.find<QToolButton>("timingView.memory"), Qt::LeftButton);
    const QVariantMap kept = shown->choices();
    const TimingChoices::Values chosen = shown->choice();
    TimingPanel later;
    later.setChoices(kept);
    later.setTrace(timed());
    QVERIFY(later.choice() == chosen);
    QCOMPARE(later.view(), TimingPanel::View::memory);
    // Another model: all of its forms and its own width, at the same lengths.
    auto other = std::make_shared<Trace>(*timed());
    other->info.preset = "gru";
    other->info.hyper = {{"units", "8"}};
    later.setTrace(other);
    QVERIFY(later.choice().at("forms").empty() && later.choice().at("width").empty());
    QCOMPARE(later.choice().at("lengths"), chosen.at("lengths"));
    QVERIFY(!later.findChild<QComboBox*>("timingWidth")->isVisibleTo(&later));
    // They are the hand's, whichever runs came since, and in force again with a run of their model.
    QCOMPARE(later.choices(), kept);
    later.setTrace(timed());
    QVERIFY(later.choice() == chosen);
    // Restored while there is a run of another model, as of a panel that is out of sight.
    TimingPanel behind;
    behind.setTrace(other);
    behind.setChoices(kept);
    QCOMPARE(behind.choices(), kept);
    QVERIFY(behind.choice().at("forms").empty() && behind.choice().at("width").empty());
    behind.setTrace(timed());
    QVERIFY(behind.choice() == chosen);
    // Forms of another model that are chosen by hand replace them.
    later.setTrace(other);
    auto* to = later.findChild<QComboBox*>("timingTo");
    to->setCurrentIndex(to->findText("4,096"));
    emit to->activated(to->currentIndex());
    QCOMPARE(later.choices()["model"], kept["model"]);
    later.findChild<QCheckBox*>("form.newton")->click();
    QCOMPARE(later.choices()["model"].toString(), QString("gru"));
    QVERIFY(!later.choice().at("forms").empty() && later.choices()["width"].toString().isEmpty());
    // None at all are those of a new panel.
    later.setChoices({});
    QVERIFY(later.choice() == TimingChoices::usual());
    QCOMPARE(later.choices(), TimingPanel().choices());
    // A damaged settings file is no harm.
    TimingPanel damaged;
    damaged.setChoices(
        {{"lengths", "x,-7"}, {"batch", 3}, {"width", 1e30}, {"device", 5}, {"dtype", QStringList{"a"}}, {"pass", 99}, {"view", 3}});
    QVERIFY(damaged.choice() == TimingChoices::usual());
    damaged.setTrace(timed());
    QVERIFY(damaged.choice() == TimingChoices::usual());
    QCOMPARE(damaged.view(), TimingPanel::View::time);
  }

  void thePrecisionIsThatOfTheRunUntilAnotherIsChosen() {
    Shown shown(timed());
    auto single = std::make_shared<Trace>(*timed());
    single->info.dtype = "float32";
    auto* precision = shown.find<QComboBox>("timingPrecision");
    QCOMPARE(precision->currentText(), QStringLiteral("float64"));
    shown->setTrace(single);
    QCOMPARE(precision->currentText(), QStringLiteral("float32"));
    QCOMPARE(shown->choice().at("dtype"), std::string());
    pick(precision, "float64");
    QCOMPARE(shown->choice().at("dtype"), std::string("f64"));
    pick(precision, "float32");
    QCOMPARE(shown->choice().at("dtype"), std::string());
  }

  void itFitsWhereThereIsLittleRoom() {
    Shown shown(timed(), {340, 300});
    auto* more = shown.find<QToolButton>("timingChoices");
    auto* start = shown.find<QPushButton>("timingStart");
    const auto fits = [&] {
      for (const QWidget* one : shown->findChildren<QWidget*>())
        if (one->isVisible() && one->window() == shown.panel.window() &&
            (qobject_cast<const QComboBox*>(one) || qobject_cast<const QAbstractButton*>(one))) {
          const QRect place(one->mapTo(&shown.panel, QPoint(0, 0)), one->size());
          if (!shown->rect().contains(place) || place.width() < one->minimumSizeHint().width())
            return QStringLiteral("%1 is at %2 to %3 of %4")
                .arg(one->objectName())
                .arg(place.left())
                .arg(place.right())
                .arg(shown->width());
        }
      return QString();
    };
    QVERIFY2(fits().isEmpty(), qPrintable(fits()));
    QVERIFY(more->isVisible() && start->isVisible() && shown.find<QComboBox>("timingView")->isVisible());
    QVERIFY(shown->plot()->height() > 200 && shown->plot()->axisRect(0)->height() > 80);
    // The same choices, in a sheet.
    QTest::mouseClick(more, Qt::LeftButton);
    auto* batch = shown.find<QComboBox>("timingBatch");
    QTRY_VERIFY(batch->isVisible());
    QVERIFY(shown.find<QCheckBox>("form.chunkwise")->isVisible());
    pick(batch, "16");
    QCOMPARE(shown->choice().at("batch"), std::string("16"));
    QTest::keyClick(batch->window(), Qt::Key_Escape);
    QTRY_VERIFY(!batch->isVisible());
    // With room they are in a row, as they were chosen.
    shown->resize(1100, 620);
    QTRY_VERIFY(batch->isVisible() && !more->isVisible());
    QCOMPARE(batch->currentText(), QStringLiteral("16"));
    QVERIFY2(fits().isEmpty(), qPrintable(fits()));
    QVERIFY(shown.find<QToolButton>("timingView.newton")->isVisible());
    shown->resize(520, 300);
    QTRY_VERIFY(more->isVisible());
    QVERIFY2(fits().isEmpty(), qPrintable(fits()));
  }

  void pinnedRunsAreBesideThisOne() {
    Shown shown(timed());
    const int before = shown->plot()->graphCount();
    shown->setPinned({{timed(), QColor(255, 0, 255), "width 32"}});
    QCOMPARE(shown->plot()->graphCount(), before + 3);
    shown->plot()->replot();
    QVERIFY(!shown->legend()->placeOf("pinned/width 32").isNull());
    shown->setView(TimingPanel::View::throughput);
    QCOMPARE(shown->plot()->graphCount(), before + 3);
    shown->setPinned({{test::synthetic_trace(), QColor(255, 0, 255), "old"}});
    shown->setView(TimingPanel::View::memory);  // that run has none
    QVERIFY(shown->emptyReason().isEmpty());
  }

  void whileNothingIsThereItSaysWhatIsDone() {
    test::SyntheticOptions options;
    options.timing = false;
    Shown shown(test::synthetic_trace(options), {420, 320});
    auto* start = shown.find<QPushButton>("timingStart");
    QVERIFY(!start->isVisible());  // the offer in the middle is enough
    shown->setStudyState("time", {.running = true});
    shown->setStudyState("time", {true, 0.1, "timing sequential at length 64", {}});
    QCOMPARE(shown->emptyReason(), QStringLiteral("Timing sequential at length 64…"));
    QVERIFY(start->isVisible());
    Asked stopped(&shown.panel, StudyChoice::Act::stop);
    QTest::mouseClick(start, Qt::LeftButton);
    QCOMPARE(stopped.size(), 1);
    shown->setStudyState("time", {});
    QVERIFY(shown->emptyReason().contains("Press “Time the forms”"));
    shown->setTrace(nullptr);
    QVERIFY(shown->emptyReason().contains("Nothing has run yet") && !start->isVisible());
  }
};

QTEST_MAIN(TestTiming)
#include "test_timing.moc"
