// SPDX-License-Identifier: GPL-3.0-or-later
// Every panel's SVG and PDF, opened by renderers that have nothing to do with Qt (librsvg and poppler), shows what the panel's PNG shows.
#include <QApplication>
#include <QFile>
#include <QImage>
#include <QProcess>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>
#include <memory>

#include "composer/composer.h"
#include "experiment/training/training.h"
#include "gui/session/session_controller.h"
#include "gui/window/look.h"
#include "models/registry.h"
#include "panel.h"
#include "panels/trajectories/trajectories.h"
#include "scene/vtk_frame.h"
#include "schedule/schedule.h"

using namespace reclab;

namespace {

/// A run of a preset on noise, with everything that panels draw. The timing is a table of its own, so that no test waits for a clock.
TracePtr everything(const std::string& preset, std::int64_t length) {
  const PresetLibrary library(builtin_registry(), preset_folders());
  RunRequest request;
  request.preset = library.find(preset);
  TaskOptions options;
  options.length = length;
  request.sequence = make_task("noise", options);
  QStringList all;
  for (const PanelInfo& panel : panels()) all << panel.id;
  request.probe.kinds = needs_of(all);
  TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  trace = merged(trace, form_schedule(builtin_registry(), request, 16, {}));
  Trace timing;
  timing.info = trace->info;
  for (const std::string form : {"sequential", "scan"}) {
    const auto put = [&](const std::string& name, std::vector<double> values) {
      TraceArray array;
      array.key = "timing/" + form + '/' + name;
      array.shape = {static_cast<std::int64_t>(values.size())};
      array.axes = {{"length", "steps", {}}};
      array.real = std::make_shared<const std::vector<double>>(std::move(values));
      timing.put(std::move(array));
    };
    put("length", {64, 128, 256, 512});
    put("seconds", {1e-4, 2e-4, 4e-4, 8e-4});
    put("low", {0.9e-4, 1.8e-4, 3.6e-4, 7.2e-4});
    put("high", {1.1e-4, 2.2e-4, 4.4e-4, 8.8e-4});
  }
  return withTiming(trace, std::make_shared<const Trace>(timing));
}

/// The share of pixels that are clearly not the ground, in the middle of the picture: under the title, inside the axes.
double ink(const QImage& picture, const QColor& ground) {
  const QRect middle(picture.width() * 12 / 100, picture.height() * 30 / 100, picture.width() * 70 / 100, picture.height() * 55 / 100);
  qint64 count = 0;
  for (int y = middle.top(); y <= middle.bottom(); ++y)
    for (int x = middle.left(); x <= middle.right(); ++x) {
      const QColor pixel = picture.pixelColor(x, y);
      count += std::abs(pixel.red() - ground.red()) + std::abs(pixel.green() - ground.green()) + std::abs(pixel.blue() - ground.blue()) > 60;
    }
  return static_cast<double>(count) / (static_cast<double>(middle.width()) * middle.height());
}

QByteArray said(const QString& program, const QStringList& arguments, bool* well) {
  QProcess process;
  process.start(program, arguments);
  *well = process.waitForFinished(60'000) && process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0;
  return process.readAllStandardOutput() + process.readAllStandardError();
}

}  // namespace

class TestFigures : public QObject {
  Q_OBJECT

 private:
  Look look_;
  TracePtr lstm_, lru_, hippo_;
  CompositionPtr composition_;
  std::shared_ptr<Learning> learning_;

 private slots:
  void initTestCase() {
    for (const char* program : {"pdftoppm", "pdfinfo", "rsvg-convert"})
      QVERIFY2(!QStandardPaths::findExecutable(program).isEmpty(), "install poppler-utils and librsvg2-bin, as app/packages.txt has them");
    lstm_ = everything("lstm", 120);
    lru_ = everything("lru", 120);
    hippo_ = everything("hippo-legs", 120);
    learning_ = std::make_shared<Learning>();
    TrainingRequest request;
    request.run.preset.id = request.run.preset.title = request.run.preset.architecture = "gru";
    request.run.set = {{"width", "6"}};
    request.task = "adding";
    request.make.length = 10;
    request.steps = 12;
    Training training(builtin_registry(), request);
    auto curve = std::make_shared<LearningCurve>();
    curve->training = learning_->current = 1;
    curve->name = "GRU (1)";
    while (!training.done()) {
      training.advance();
      curve->loss.push_back(training.history().back().loss);
      curve->norm.push_back(training.history().back().norm);
      curve->clipped.push_back(training.history().back().clipped);
      curve->rate.push_back(training.history().back().rate);
    }
    curve->done = curve->wanted = 12;
    curve->command = training.learned(1)->command;
    learning_->trainings = {curve};
    composition_ = compose(builtin_registry(), PresetLibrary(builtin_registry(), preset_folders()), {}, {});
  }

  void othersSeeWhatThePanelShows_data() {
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("model");
    QTest::addColumn<int>("view");
    QTest::addColumn<bool>("dark");
    for (const bool dark : {false, true})
      for (const PanelInfo& info : panels()) {
        const QString theme = dark ? "dark" : "light";
        if (info.id == "trajectories")
          for (int view = 0; view < 4; ++view)
            QTest::newRow(qPrintable(QString("%1, view %2, %3").arg(info.id).arg(view).arg(theme))) << info.id << (view == 3 ? "hippo-legs" : "lstm") << view << dark;
        else
          QTest::newRow(qPrintable(info.id + ", " + theme)) << info.id << (info.id == "steps" || info.id == "kernels" ? "lru" : "lstm") << -1 << dark;
      }
  }
  void othersSeeWhatThePanelShows() {
    QFETCH(QString, id);
    QFETCH(QString, model);
    QFETCH(int, view);
    QFETCH(bool, dark);
    look_.apply(dark ? ThemeChoice::dark : ThemeChoice::light);
    const TracePtr trace = model == "lstm" ? lstm_ : model == "lru" ? lru_ : hippo_;
    const auto info = std::find_if(panels().begin(), panels().end(), [&](const PanelInfo& one) { return one.id == id; });
    const std::unique_ptr<Panel> panel(info->make(nullptr));
    panel->setAttribute(Qt::WA_DontShowOnScreen);
    panel->resize(720, 480);
    panel->show();
    panel->setTrace(trace);
    panel->setComposition(composition_, {});
    panel->setLearning(learning_);
    panel->setTimeRange(0, trace->info.length - 1);
    panel->setTime(trace->info.length / 2);
    if (view >= 0) dynamic_cast<TrajectoriesPanel*>(panel.get())->setView(static_cast<TrajectoriesPanel::View>(view));
    QCoreApplication::processEvents();
    QVERIFY2(panel->emptyReason().isEmpty(), qPrintable(panel->emptyReason()));

    const QTemporaryDir folder;
    const auto path = [&](const char* name) { return folder.filePath(name); };
    QCOMPARE(panel->saveFigure(path("own.png"), Panel::Format::png), QString());
    QCOMPARE(panel->saveFigure(path("own.svg"), Panel::Format::svg), QString());
    QCOMPARE(panel->saveFigure(path("own.pdf"), Panel::Format::pdf), QString());
    bool well = false;
    QByteArray words = said("rsvg-convert", {"-o", path("svg.png"), path("own.svg")}, &well);
    QVERIFY2(well, words.constData());
    words = said("pdftoppm", {"-png", "-singlefile", "-r", "96", path("own.pdf"), path("pdf")}, &well);
    QVERIFY2(well, words.constData());
    QVERIFY2(!words.contains("Error"), words.constData());
    const QColor ground = panel->palette().color(QPalette::Base);
    const double expected = ink(QImage(path("own.png")), ground);
    QVERIFY2(expected > 0.002, qPrintable(QString::number(expected)));
    for (const char* name : {"svg.png", "pdf.png"}) {
      const QImage picture(path(name));
      QVERIFY2(!picture.isNull(), name);
      const double seen = ink(picture, ground);
      QVERIFY2(seen > 0.4 * expected && seen < 2.5 * expected, qPrintable(QString("%1: %2, own %3").arg(name).arg(seen).arg(expected)));
    }
    // The file says what it is of, and how to make it again.
    QFile svg(path("own.svg"));
    QVERIFY(svg.open(QIODevice::ReadOnly));
    const QString text = QString::fromUtf8(svg.readAll());
    // The composer's is of the small run of what is composed.
    const bool learned = id == "learning";  // of a training
    const QString command = learned ? "reclab train gru" : "reclab run " + (id == "composer" ? "lcsm" : model), setting = learned ? "width=" : id == "composer" ? "oscillation = " : "width = ";
    QVERIFY(text.contains(setting) && text.contains(command) && text.contains("seed 1"));
    QVERIFY(!text.contains("Generated with Qt"));
    QVERIFY(!text.contains("font-family") || text.contains(", sans-serif\""));
    words = said("pdfinfo", {path("own.pdf")}, &well);
    QVERIFY2(well, words.constData());
    for (const QString& part : {QString("Title:"), QString("Subject:"), QString("Keywords:"), command, setting})
      QVERIFY2(QString::fromUtf8(words).contains(part), words.constData());
  }
};

int main(int argc, char** argv) {
  prepareOpenGl();
  QApplication application(argc, argv);
  TestFigures test;
  return QTest::qExec(&test, argc, argv);
}

#include "test_figures.moc"
