// SPDX-License-Identifier: GPL-3.0-or-later
// The window beside a device: one that fails in the middle of a run, and the dialog that compares it with the CPU. In the place of the
// CUDA backend stands one that runs its kernels on the host.
#include <QApplication>
#include <QFile>
#include <QPointer>
#include <QPushButton>
#include <QSettings>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>

#include "checks/check_device.h"
#include "faulty_machine.h"
#include "gui/dialogs/device_dialog.h"
#include "gui/docks/panel_area.h"
#include "gui/learning/training_bar.h"
#include "gui/views/status_line.h"
#include "gui/window/main_window.h"
#include "models/registry.h"
#include "panels/learning/learning.h"
#include "places.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

namespace {

using Fault = test::FaultyMachine::Fault;
std::unique_ptr<test::FaultyBackend> device;
}  // namespace

/// Taken by the linker before the library's own.
reclab::Backend* reclab::cuda_backend(std::string* why) {
  if (!device && why) *why = "no CUDA device";
  return device.get();
}

class TestDevice : public test::WindowTest {
  Q_OBJECT

 private:
  LibraryPtr library(const char* family) {
    return std::make_shared<const Library>(Library{PresetLibrary(builtin_registry(), {test::source("presets/") + family}), tasks()});
  }

  LearningCurvePtr curve() {
    const LearningPtr& learning = session().learning();
    return learning && !learning->trainings.empty() ? learning->trainings.back() : nullptr;
  }
  void openTraining() {
    Options options;
    options.model = "gru";
    options.given["--task"] = "adding";
    options.given["--length"] = "10";
    options.given["--set"] = "width=4";
    open(options);
    TrainingChoice choice;
    choice.steps = 1'000'000;
    choice.options.batch = 2;
    window_->trainingBar()->settings()->setChoice(choice);
    session().setTrainingChoice(choice);
    Setup setup = session().setup();
    setup.device = "cuda";
    session().apply(setup, false);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.device == "cuda", patience);
  }

 private slots:
  void init() {
    test::forgetAll();
    look_.apply(ThemeChoice::light);
    device = std::make_unique<test::FaultyBackend>();
  }

  void aDeviceThatFailsIsSaidAndTheCpuIsShown() {
    Options options = onWaves(40);
    options.given["--set"] = "width=4";
    open(options);
    QVERIFY2(window_->statusLine()->facts().startsWith("CPU, "), qPrintable(window_->statusLine()->facts()));  // auto, and float64

    Setup setup = session().setup();
    QCOMPARE(setup.device, std::string("auto"));
    setup.device = "cuda";
    session().apply(setup, false);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.device == "cuda", patience);
    QTRY_VERIFY2_WITH_TIMEOUT(window_->statusLine()->facts().startsWith("CUDA, "), qPrintable(window_->statusLine()->facts()), patience);

    device->machine().fail(Fault::end, 200);
    session().run();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.device == "cpu", patience);
    QTRY_VERIFY2_WITH_TIMEOUT(window_->statusLine()->facts().startsWith("CPU, "), qPrintable(window_->statusLine()->facts()), patience);
    QTRY_VERIFY2_WITH_TIMEOUT(window_->statusLine()->sentence().contains("The CUDA device was lost") &&
                                  window_->statusLine()->sentence().contains("the run was done on the CPU."),
                              qPrintable(window_->statusLine()->sentence()), patience);
    photograph(window_.get(), "device-lost");
    close();
  }

  /// At its beginning, while every step's weights are here, and later, when those of the last step are not: what trained goes on on the
  /// CPU.
  void aTrainingWhoseDeviceFailsGoesOnOnTheCpu() {
    struct Failure {
      Fault fault;
      std::int64_t after;  ///< steps
      const char* said;
    };
    for (const Failure& one : {Failure{Fault::end, 0, "was lost"}, {Fault::end, 700, "was lost"}, {Fault::launch, 20, "failed"}}) {
      device = std::make_unique<test::FaultyBackend>();
      openTraining();
      if (one.after == 0) device->machine().fail(one.fault, 2500, true);
      window_->action("train")->trigger();
      if (one.after > 0) {
        QTRY_VERIFY_WITH_TIMEOUT(curve() && curve()->done >= one.after, patience);
        device->machine().fail(one.fault, 30);
      }
      // Runs of the window are on the device too, and one that fails and is over may be theirs.
      const auto noted = [&] {
        if (curve() && !curve()->note.empty()) return true;
        if (one.fault == Fault::launch && device->machine().launches() > 30) device->machine().fail(one.fault, 30);
        return false;
      };
      QTRY_VERIFY2_WITH_TIMEOUT(noted(),
                                qPrintable(QString("%1 from step %2 on, now %3, %4 launches")
                                               .arg(one.said)
                                               .arg(one.after)
                                               .arg(curve() ? curve()->done : -1)
                                               .arg(device->machine().launches())),
                                patience);
      QVERIFY2(
          QString::fromStdString(curve()->note).contains(one.said) && QString::fromStdString(curve()->note).contains("goes on on the CPU"),
          curve()->note.c_str());
      QVERIFY(session().training());
      const std::int64_t then = curve()->done;
      QTRY_VERIFY_WITH_TIMEOUT(curve()->done >= then + 20, patience);
      window_->action("train")->trigger();
      QTRY_VERIFY_WITH_TIMEOUT(!session().training() && atRest(), patience);
      QVERIFY(curve()->problem.empty() && std::ssize(curve()->loss) == curve()->done);
      QVERIFY(std::ranges::is_sorted(curve()->kept) && curve()->kept.back() == curve()->done);
      QVERIFY(session().trace()->info.learned && session().trace()->info.learned->steps == curve()->done);
      QCOMPARE(device->machine().asked_when_lost(), std::int64_t{0});
      if (one.after == 0) {  // all of it on the CPU, with the CPU's bits
        Setup setup = session().setup();
        setup.learned.clear();
        setup.device = "cpu";
        Training again(builtin_registry(),
                       trainingRequestFor(setup, session().library()->presets.find(setup.preset), session().trainingChoice()));
        for (std::size_t i = 0; i < 20; ++i) {
          again.advance();
          QCOMPARE(curve()->loss[i], again.history()[i].loss);
        }
      }
      auto* learning = window_->area()->dock("learning");
      learning->raise();
      QTRY_VERIFY(learning->isVisible());
      const QString note = qobject_cast<LearningPanel*>(learning->panel())->note();
      QVERIFY2(note.contains("goes on on the CPU"), qPrintable(note));
      close();
    }
  }

  /// One that was kept loses nothing of what it had, whenever its device fails as it goes on.
  void aKeptTrainingWhoseDeviceFailsIsWhole() {
    openTraining();
    const LibraryPtr all = session().library();
    auto learner = std::make_unique<Learner>(1, 0, all, session().setup(), session().trainingChoice(), "one");
    close();
    for (int i = 0; i < 6; ++i) QVERIFY(learner->advance({}));
    learner->keepCheckpoint();
    const QString folder = folder_.filePath("kept");
    QVERIFY(learner->keep(folder));
    const LearningCurvePtr before = learner->curve();
    learner.reset();  // before the device that it was on
    QCOMPARE(before->done, std::int64_t{6});
    int failed = 0;
    for (const std::int64_t at : {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144}) {
      device = std::make_unique<test::FaultyBackend>();
      device->machine().fail(Fault::end, at);
      const auto again = Learner::kept(folder, [](std::uint64_t number) { return number; }, all, loadChoice);
      QVERIFY(again->advance({}));
      const LearningCurvePtr after = again->curve();
      failed += !after->note.empty();
      QCOMPARE(after->done, before->done + 1);
      QVERIFY(after->loss.size() == 7 && std::equal(before->loss.begin(), before->loss.end(), after->loss.begin()));
      QVERIFY2(std::ranges::includes(after->kept, before->kept), qPrintable(QString::number(at)));
    }
    QVERIFY2(failed > 5, qPrintable(QString::number(failed)));
  }

  /// Weights that are on their way from the device are nothing that the window's thread waits for.
  void theWindowDoesNotWaitForADownload() {
    openTraining();
    Setup setup = session().setup();
    Learner learner(1, 0, session().library(), setup, session().trainingChoice(), "one");
    QVERIFY(learner.advance({}));
    std::promise<void> release, reached;
    std::shared_future<void> released = release.get_future().share();
    std::atomic<bool> first{true};
    device->machine().at_download([&] {
      if (first.exchange(false)) reached.set_value();
      released.wait();
    });
    auto step = std::async(std::launch::async, [&] { return learner.advance({}); });
    const bool there = reached.get_future().wait_for(std::chrono::seconds(30)) == std::future_status::ready;
    auto asked = std::async(std::launch::async, [&] { return std::pair(learner.curve(), learner.nearest(0)); });
    const bool answered = asked.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    release.set_value();
    QVERIFY(step.get());
    asked.wait();
    device->machine().at_download({});
    QVERIFY(there);
    QVERIFY2(answered, "it waited for the weights");
    close();
  }

  void theDeviceIsComparedLineByLine() {
    QString saved;
    FileChooser chooser;
    chooser.save = [&](QWidget*, const QString&, const QString& name, const QString&) { return saved = folder_.filePath(name); };
    for (const ThemeChoice theme : {ThemeChoice::light, ThemeChoice::dark}) {
      look_.apply(theme);
      auto* dialog = new DeviceDialog(library("recurrent/elman.json"), chooser);
      dialog->setCheck({.length = 20});
      dialog->show();
      QVERIFY(QTest::qWaitForWindowExposed(dialog));
      QVERIFY(!dialog->saveButton()->isEnabled());
      QTest::mouseClick(dialog->runButton(), Qt::LeftButton);
      QVERIFY(dialog->running());
      QTRY_VERIFY_WITH_TIMEOUT(!dialog->running(), patience);
      QVERIFY2(dialog->words().startsWith("All ") && dialog->words().endsWith("lines agree."), qPrintable(dialog->words()));
      QCOMPARE(dialog->table()->rowCount(), static_cast<int>(dialog->rows().size()));
      QCOMPARE(dialog->table()->item(0, 6)->text(), QString("agrees"));
      photograph(dialog, theme == ThemeChoice::light ? "device-check-light" : "device-check-dark");

      device->machine().fail(Fault::allocation, 300);  // one line of the next run
      QTest::mouseClick(dialog->runButton(), Qt::LeftButton);
      QTRY_VERIFY_WITH_TIMEOUT(!dialog->running(), patience);
      QVERIFY2(dialog->words().startsWith("1 of "), qPrintable(dialog->words()));
      const auto bad = std::ranges::find(dialog->rows(), false, &DeviceReport::agrees) - dialog->rows().begin();
      QVERIFY(dialog->table()->item(static_cast<int>(bad), 6)->text().contains("memory"));
      QCOMPARE(dialog->table()->item(static_cast<int>(bad), 3)->text(), QString("–"));
      dialog->table()->scrollToItem(dialog->table()->item(static_cast<int>(bad), 6));
      photograph(dialog, theme == ThemeChoice::light ? "device-check-failed-light" : "device-check-failed-dark");
      QTest::mouseClick(dialog->saveButton(), Qt::LeftButton);
      QFile file(saved);
      QVERIFY(file.open(QFile::ReadOnly));
      QCOMPARE(file.readAll().count('\n'), static_cast<qsizetype>(dialog->rows().size()) + 1);
      dialog->close();
    }
  }

  void aStoppedComparisonKeepsItsLines() {
    auto* dialog = new DeviceDialog(library("recurrent"), {});
    dialog->show();
    QVERIFY(QTest::qWaitForWindowExposed(dialog));
    QTest::mouseClick(dialog->runButton(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(dialog->table()->rowCount() > 2, patience);
    QTest::mouseClick(dialog->runButton(), Qt::LeftButton);  // it says Stop
    QTRY_VERIFY_WITH_TIMEOUT(!dialog->running(), patience);
    QVERIFY2(dialog->words().startsWith("Stopped. "), qPrintable(dialog->words()));
    QVERIFY(dialog->saveButton()->isEnabled());
    dialog->close();
  }

  void withoutADeviceItSaysWhatToDo() {
    device.reset();
    for (const ThemeChoice theme : {ThemeChoice::light, ThemeChoice::dark}) {
      look_.apply(theme);
      auto* dialog = new DeviceDialog(library("recurrent/elman.json"), {});
      dialog->show();
      QVERIFY(QTest::qWaitForWindowExposed(dialog));
      QVERIFY(!dialog->runButton()->isEnabled());
      QVERIFY(!dialog->table()->isVisible());
      photograph(dialog, theme == ThemeChoice::light ? "device-none-light" : "device-none-dark");
      dialog->close();
    }
  }

  void aCloseInTheMiddleEndsTheWork() {
    auto* dialog = new DeviceDialog(library("recurrent"), {});
    QPointer<QDialog> alive(dialog);
    dialog->show();
    QTest::mouseClick(dialog->runButton(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(dialog->table()->rowCount() > 0, patience);
    dialog->close();
    QTRY_VERIFY_WITH_TIMEOUT(alive.isNull(), patience);
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestDevice>(argc, argv, "device-test"); }

#include "test_device.moc"
