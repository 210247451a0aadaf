// SPDX-License-Identifier: GPL-3.0-or-later
// Every panel's SVG and PDF, opened by renderers that have nothing to do with Qt (librsvg and poppler), shows what the panel's PNG shows;
// figures for print have their width, their text in its size and nothing that was not asked for, for the presets too. With --thorough for
// all of them.
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDir>
#include <QDoubleSpinBox>
#include <QFile>
#include <QFontMetricsF>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QProcess>
#include <QPushButton>
#include <QRegularExpression>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>
#include <QTransform>
#include <QXmlStreamReader>
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "composer/composer.h"
#include "experiment/training/training.h"
#include "gui/dialogs/file_dialogs.h"
#include "gui/look/look.h"
#include "gui/session/session_controller.h"
#include "gui/start/options.h"
#include "models/registry.h"
#include "panel.h"
#include "panels/trajectories/trajectories.h"
#include "plot/plot.h"
#include "plot/theme.h"
#include "scene/vtk_frame.h"
#include "schedule/schedule.h"
#include "studies/study.h"

using namespace reclab;

namespace {

bool thorough = false;  // all presets

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
  request.recording.kinds = needs_of(all);
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
      count +=
          std::abs(pixel.red() - ground.red()) + std::abs(pixel.green() - ground.green()) + std::abs(pixel.blue() - ground.blue()) > 60;
    }
  return static_cast<double>(count) / (static_cast<double>(middle.width()) * middle.height());
}

/// An SVG as it is on paper.
struct Read {
  QString problem;                    ///< why it is no XML
  double width = 0.0, height = 0.0;   ///< mm
  double smallest = 1e9;              ///< points, of its texts
  QStringList texts, beyond, raised;  ///< all, those that reach over its edge, and those with Unicode's small digits
  QString description;
};

Read readSvg(const QString& path) {
  Read read;
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) read.problem = "there is no file " + path;
  QXmlStreamReader xml(&file);
  QRectF box;
  double mm = 0.0;  // of a unit
  std::vector<QTransform> at{QTransform()};
  while (!xml.atEnd()) {
    const auto token = xml.readNext();
    if (token == QXmlStreamReader::EndElement) {
      at.pop_back();
    } else if (token == QXmlStreamReader::StartElement) {
      const auto number = [&](const char* name) { return xml.attributes().value(name).toString().remove("mm").toDouble(); };
      QTransform here = at.back();
      if (const QString matrix = xml.attributes().value("transform").toString(); matrix.startsWith("matrix(")) {
        const QStringList m = matrix.mid(7).chopped(1).split(',');
        if (m.size() == 6)
          here = QTransform(m[0].toDouble(), m[1].toDouble(), m[2].toDouble(), m[3].toDouble(), m[4].toDouble(), m[5].toDouble()) * here;
      }
      at.push_back(here);
      if (xml.name() == u"svg") {
        const QStringList view = xml.attributes().value("viewBox").toString().split(' ');
        if (view.size() == 4) box = QRectF(view[0].toDouble(), view[1].toDouble(), view[2].toDouble(), view[3].toDouble());
        read.width = number("width"), read.height = number("height");
        mm = read.width / box.width();
      } else if (xml.name() == u"desc") {
        read.description = xml.readElementText();
        at.pop_back();
      } else if (xml.name() == u"text") {
        QFont font(xml.attributes().value("font-family").toString().section(',', 0, 0));
        const double size = number("font-size");
        font.setPixelSize(static_cast<int>(size));
        const double x = number("x"), y = number("y");
        const QString text = xml.readElementText();
        at.pop_back();
        read.texts << text;
        if (text.contains(QRegularExpression("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]"))) read.raised << text;
        read.smallest = std::min(read.smallest, size * std::sqrt(std::abs(here.determinant())) * mm * 72.0 / 25.4);
        const QRectF place = here.mapRect(QRectF(x, y - 0.7 * size, QFontMetricsF(font).horizontalAdvance(text), 0.9 * size));
        if (!text.trimmed().isEmpty() && !box.adjusted(-3, -3, 3, 3).contains(place)) read.beyond << text;
      }
    }
  }
  if (xml.hasError()) read.problem = xml.errorString();
  return read;
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
  StudyResult rules_;
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
    request.from.task = "adding";
    request.from.make.length = 10;
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
    const PresetLibrary library(builtin_registry(), preset_folders());
    composition_ = compose(builtin_registry(), library, {}, {});
    StudyInput input{builtin_registry(), library};
    input.run.preset = library.find("lstm");
    input.run.sequence = make_task("noise", {.length = 120});
    rules_ = study("rules").compute(input, {}, {}, {});
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
            QTest::newRow(qPrintable(QString("%1, view %2, %3").arg(info.id).arg(view).arg(theme)))
                << info.id << (view == 3 ? "hippo-legs" : "lstm") << view << dark;
        else
          QTest::newRow(qPrintable(info.id + ", " + theme))
              << info.id << (info.id == "steps" || info.id == "kernels" ? "lru" : "lstm") << -1 << dark;
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
    panel->setResult("compose", composition_, {});
    panel->setResult("rules", rules_, {});
    panel->setResult("train", learning_, {});
    panel->setTimeRange(0, trace->info.length - 1);
    panel->setTime(trace->info.length / 2);
    if (view >= 0) dynamic_cast<TrajectoriesPanel*>(panel.get())->setView(static_cast<TrajectoriesPanel::View>(view));
    QCoreApplication::processEvents();
    QVERIFY2(panel->emptyReason().isEmpty(), qPrintable(panel->emptyReason()));

    const QTemporaryDir folder;
    const auto path = [&](const char* name) { return folder.filePath(name); };
    const FigureStyle style = FigureStyle::asShown();
    QCOMPARE(panel->saveFigure(path("own.png"), Panel::Format::png, style), QString());
    QCOMPARE(panel->saveFigure(path("own.svg"), Panel::Format::svg, style), QString());
    QCOMPARE(panel->saveFigure(path("own.pdf"), Panel::Format::pdf, style), QString());
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
    const QString command = learned ? "reclab train gru" : "reclab run " + (id == "composer" ? "lcsm" : model),
                  setting = learned            ? "width="
                            : id == "composer" ? "oscillation = "
                                               : "width = ";
    QVERIFY(text.contains(setting) && text.contains(command) && text.contains("seed 1"));
    QVERIFY(!text.contains("Generated with Qt"));
    QVERIFY(!text.contains("font-family") || text.contains(", sans-serif\""));
    words = said("pdfinfo", {path("own.pdf")}, &well);
    QVERIFY2(well, words.constData());
    for (const QString& part : {QString("Title:"), QString("Subject:"), QString("Keywords:"), command, setting})
      QVERIFY2(QString::fromUtf8(words).contains(part), words.constData());
  }

  /// Whatever is written in names and commands, an SVG is XML and says it.
  void textsAreEscaped_data() {
    QTest::addColumn<QString>("id");
    for (const PanelInfo& info : panels())
      // These name what the program itself composes, and its learning rules.
      if (info.id != "composer" && info.id != "credit") QTest::newRow(qPrintable(info.id)) << info.id;
  }
  void textsAreEscaped() {
    QFETCH(QString, id);
    look_.apply(ThemeChoice::light);
    const QString odd = "R&D <b>\"x\"</b> 'y' ]]> &amp; \x01\x0b\uffff\u0394";
    const QString read = QString(odd).remove(QRegularExpression("[\\x01\\x0b\uffff]"));
    auto trace = std::make_shared<Trace>(id == "steps" || id == "kernels" ? *lru_ : *lstm_);
    for (std::string* text :
         {&trace->info.title, &trace->info.input_name, &trace->info.command, &trace->info.loss, &trace->info.device, &trace->time_name})
      *text = odd.toStdString();
    trace->info.hyper.emplace_back(odd.toStdString(), odd.toStdString());
    auto learning = std::make_shared<Learning>(*learning_);
    auto curve = std::make_shared<LearningCurve>(*learning->trainings.front());
    curve->name = curve->from = curve->command = odd.toStdString();
    learning->trainings = {curve};
    const auto info = std::find_if(panels().begin(), panels().end(), [&](const PanelInfo& one) { return one.id == id; });
    const std::unique_ptr<Panel> panel(info->make(nullptr));
    panel->setAttribute(Qt::WA_DontShowOnScreen);
    panel->resize(720, 480);
    panel->show();
    panel->setTrace(trace);
    panel->setResult("train", learning, {});
    panel->setPinned({{lstm_, QColor(200, 0, 200), odd, odd}});
    panel->setTimeRange(0, trace->info.length - 1);
    panel->setTime(trace->info.length / 2);
    QCoreApplication::processEvents();
    const QTemporaryDir folder;
    for (const bool all : {false, true}) {
      FigureStyle style;
      style.title = style.caption = style.cursor = all;
      QCOMPARE(panel->saveFigure(folder.filePath("a.svg"), Panel::Format::svg, style), QString());
      const Read svg = readSvg(folder.filePath("a.svg"));
      QVERIFY2(svg.problem.isEmpty(), qPrintable(svg.problem));
      QVERIFY2(svg.description.contains(read), qPrintable(svg.description));
      bool well = false;
      QByteArray words = said("rsvg-convert", {"-o", folder.filePath("a.png"), folder.filePath("a.svg")}, &well);
      QVERIFY2(well, words.constData());
      QCOMPARE(panel->saveFigure(folder.filePath("a.pdf"), Panel::Format::pdf, style), QString());
      words = said("pdfinfo", {folder.filePath("a.pdf")}, &well);
      QVERIFY2(well && QString::fromUtf8(words).contains("R&D <b>\"x\"</b> 'y' ]]> &amp;"), words.constData());
    }
  }

  /// Of print: as wide as asked for, the smallest text as large, and nothing of the screen.
  void figuresForPrint_data() {
    QTest::addColumn<QString>("id");
    QTest::addColumn<double>("width");
    QTest::addColumn<double>("font");
    for (const PanelInfo& info : panels())
      for (const auto& [width, font] : {std::pair{85.0, 7.0}, {174.0, 7.0}, {120.0, 9.0}})
        QTest::newRow(qPrintable(QString("%1, %2 mm").arg(info.id).arg(width))) << info.id << width << font;
  }
  void figuresForPrint() {
    QFETCH(QString, id);
    QFETCH(double, width);
    QFETCH(double, font);
    look_.apply(ThemeChoice::light);
    const TracePtr trace = id == "steps" || id == "kernels" ? lru_ : lstm_;
    const auto info = std::find_if(panels().begin(), panels().end(), [&](const PanelInfo& one) { return one.id == id; });
    const std::unique_ptr<Panel> panel(info->make(nullptr));
    panel->setAttribute(Qt::WA_DontShowOnScreen);
    panel->resize(720, 480);
    panel->show();
    panel->setTrace(trace);
    panel->setResult("compose", composition_, {});
    panel->setResult("rules", rules_, {});
    panel->setResult("train", learning_, {});
    panel->setTimeRange(0, trace->info.length - 1);
    panel->setTime(trace->info.length / 2);
    QCoreApplication::processEvents();
    const auto settled = [&] {  // margins follow from ticks, and ticks from the room that margins leave
      for (Plot* plot : panel->findChildren<Plot*>()) plot->replot(), plot->replot();
      return panel->grab().toImage();
    };
    const QImage before = settled();

    const QTemporaryDir folder;
    FigureStyle style{width, font, false, false, false};
    const auto saved = [&](Panel::Format format, const char* name) {
      const QString file = folder.filePath(name);
      if (const QString problem = panel->saveFigure(file, format, style); !problem.isEmpty()) qFatal("%s", qPrintable(problem));
      return file;
    };
    const Read svg = readSvg(saved(Panel::Format::svg, "a.svg"));
    QVERIFY2(svg.problem.isEmpty(), qPrintable(svg.problem));
    QVERIFY2(std::abs(svg.width - width) < 0.2 && svg.height > 0.3 * width && svg.height < 1.7 * width,
             qPrintable(QString("%1 x %2 mm").arg(svg.width).arg(svg.height)));
    QVERIFY2(svg.smallest > font - 0.05 && !svg.texts.isEmpty(), qPrintable(QString("%1 pt").arg(svg.smallest)));
    QVERIFY2(svg.beyond.isEmpty(), qPrintable(svg.beyond.join('|')));
    QVERIFY2(svg.raised.isEmpty(), qPrintable(svg.raised.join('|')));
    for (const QString& text : svg.texts)
      QVERIFY2(!text.contains(panel->title() + ": ") && text != "step 60" && !text.endsWith('.'), qPrintable(text));
    QFile bytes(folder.filePath("a.svg"));
    QVERIFY(bytes.open(QIODevice::ReadOnly));
    QVERIFY2(!bytes.readAll().contains(Theme::of(panel.get()).accent.name().toLatin1()), "the cursor is drawn");
    bool well = false;
    const QByteArray words = said("pdfinfo", {saved(Panel::Format::pdf, "a.pdf")}, &well);
    const QRegularExpressionMatch page = QRegularExpression("Page size: +([0-9.]+) x").match(QString::fromUtf8(words));
    QVERIFY2(well && std::abs(page.captured(1).toDouble() - width / 25.4 * 72.0) < 0.7, words.constData());
    const QImage png(saved(Panel::Format::png, "a.png"));
    QVERIFY(std::abs(png.width() - width / 25.4 * 600.0) < 6.0 && std::abs(png.dotsPerMeterX() - 23622) < 2);
    // What is asked for is there.
    if (id != "trajectories" && id != "timing" && id != "learning") {
      style.title = style.caption = style.cursor = true;
      const Read whole = readSvg(saved(Panel::Format::svg, "b.svg"));
      QVERIFY(whole.height > svg.height && whole.texts.size() > svg.texts.size() && whole.texts[0].startsWith(panel->title()));
      QVERIFY2(whole.smallest > font - 0.05, qPrintable(QString("%1 pt").arg(whole.smallest)));
      for (const char* instruction : {"wheel", "click", "pointer", "Press", "press "})
        QVERIFY2(!whole.texts.join(' ').contains(instruction), instruction);
    }
    // The screen is as it was.
    QCoreApplication::processEvents();
    QCOMPARE(panel->grab().toImage().size(), before.size());
    // A tube is drawn anew by OpenGL, and the margins of the gradient lab settle a pixel apart.
    if (id != "trajectories" && id != "gradient-lab") QVERIFY(settled() == before);
  }

  void theDialogAsksHowAndWhere() {
    look_.apply(ThemeChoice::light);
    QSettings().remove("figures");
    const QTemporaryDir folder;
    const QString made = folder.filePath("not/there yet");
    {
      FigureDialog dialog({"Save Gradients", {"lstm-gradients"}, Panel::Format::svg}, folder.path(), nullptr);
      dialog.show();
      auto* save = dialog.findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Save);
      auto* font = dialog.findChild<QDoubleSpinBox*>("fontSize");
      auto* width = dialog.findChild<QComboBox*>("width");
      QCOMPARE(dialog.answer().style.width, FigureStyle::page);
      QVERIFY(!dialog.answer().style.title && !dialog.answer().style.caption && !dialog.answer().style.cursor);
      dialog.findChild<QLineEdit*>("folder")->setText({});
      QVERIFY(!save->isEnabled());
      dialog.findChild<QLineEdit*>("folder")->setText(made);
      width->setCurrentIndex(0);
      font->setValue(20);
      QVERIFY2(!save->isEnabled() && dialog.findChild<QLabel*>("said")->text().contains("it can be up to 9.4 pt there"),
               qPrintable(dialog.findChild<QLabel*>("said")->text()));
      font->setValue(8);
      QVERIFY(save->isEnabled() && !dialog.findChild<QDoubleSpinBox*>("ownWidth")->isEnabled());
      QCOMPARE(dialog.findChild<QLabel*>("said")->text(), QString("lstm-gradients.svg"));
      dialog.findChild<QCheckBox*>("caption")->setChecked(true);
      if (const QString pictures = qEnvironmentVariable("RECLAB_PICTURES"); !pictures.isEmpty())
        QVERIFY(dialog.grab().save(pictures + "/figure-dialog.png"));
      QTest::mouseClick(save, Qt::LeftButton);
      QCOMPARE(dialog.result(), int(QDialog::Accepted));  // nothing is replaced, so nothing is asked
      const FigureAnswer answer = dialog.answer();
      QCOMPARE(answer.file(), made + "/lstm-gradients.svg");
      QVERIFY(answer.style.width == 85.0 && answer.style.fontSize == 8.0 && answer.style.caption && !answer.style.title);
      // Its folder is made with it.
      const auto info = std::find_if(panels().begin(), panels().end(), [](const PanelInfo& one) { return one.id == "gradients"; });
      const std::unique_ptr<Panel> panel(info->make(nullptr));
      panel->setTrace(lstm_);
      QCOMPARE(saveFigure(panel.get(), answer), QString());
      QVERIFY(QFile::exists(answer.file()));
    }
    // As it was chosen last; and now there is a file, which is not replaced without a question.
    FigureDialog dialog({"Save Gradients", {"lstm-gradients"}, Panel::Format::svg}, made, nullptr);
    dialog.show();
    QVERIFY(dialog.answer().style.width == 85.0 && dialog.answer().style.fontSize == 8.0 && dialog.answer().style.caption);
    QStringList asked;
    const auto answering = [&](const QString& button) {
      QTimer::singleShot(300, &dialog, [&asked, button] {
        auto* question = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
        if (question == nullptr) return;
        asked << question->text();
        for (QAbstractButton* one : question->buttons())
          if (one->text().remove('&') == button) return one->click();
        question->reject();
      });
      dialog.accept();
    };
    answering("Cancel");
    QVERIFY(dialog.isVisible() && asked.size() == 1 && asked[0].contains("lstm-gradients.svg is in"));
    answering("Replace it");
    QVERIFY(!dialog.isVisible() && asked.size() == 2);
    // Several, in one question.
    FigureDialog several({"Save", {"lstm-gradients", "lstm-gating"}, Panel::Format::svg}, made, nullptr);
    QVERIFY2(several.findChild<QLabel*>("said")->text() == "2 figures: lstm-gradients.svg, lstm-gating.svg",
             qPrintable(several.findChild<QLabel*>("said")->text()));
    QSettings().remove("figures");
  }

  /// Every figure of every preset is XML, or a PDF, for another renderer too, with its text in its size at its width.
  void figuresOfPresets_data() {
    QTest::addColumn<QString>("id");
    const PresetLibrary library(builtin_registry(), preset_folders());
    const QStringList sample{"lstm", "transformer", "gla", "hippo-legs", "s4d"};
    for (const Preset& preset : library.presets())
      if (const QString id = QString::fromStdString(preset.id); thorough || sample.contains(id)) QTest::newRow(qPrintable(id)) << id;
  }
  void figuresOfPresets() {
    QFETCH(QString, id);
    look_.apply(ThemeChoice::light);
    QTemporaryDir folder;
    Options options;
    options.model = id;
    options.figures = folder.path();
    options.style.width = FigureStyle::column;
    for (const PanelInfo& info : panels())
      if (info.id != "timing" && info.id != "composer" && info.id != "learning" && info.id != "credit")
        options.panels << info.id;  // a measurement, what is of no run, and what is computed when it is asked for
    QCOMPARE(drawFigures(options), 0);
    options.format = Panel::Format::pdf;
    QCOMPARE(drawFigures(options), 0);
    const QDir drawn(folder.path());
    const QStringList svgs = drawn.entryList({"*.svg"}), pdfs = drawn.entryList({"*.pdf"});
    QVERIFY(!svgs.isEmpty() && svgs.size() == pdfs.size());
    bool well = false;
    QStringList problems;
    for (const QString& name : svgs) {
      if (!name.startsWith(id + '-')) problems << name + " is not named by its model";
      const Read svg = readSvg(drawn.filePath(name));
      if (!svg.problem.isEmpty()) problems << name + ": " + svg.problem;
      if (std::abs(svg.width - FigureStyle::column) > 0.2) problems << QString("%1 is %2 mm wide").arg(name).arg(svg.width);
      if (svg.smallest < 6.95) problems << QString("%1 has text of %2 pt").arg(name).arg(svg.smallest);
      for (const QString& text : svg.beyond) problems << QString("%1: \"%2\" reaches over the edge").arg(name, text);
      for (const QString& text : svg.raised) problems << QString("%1 has small digits: %2").arg(name, text);
      for (const QString& text : svg.texts)
        if (text.endsWith('.')) problems << QString("%1 has a sentence: %2").arg(name, text);
      const QByteArray words = said("rsvg-convert", {"-o", drawn.filePath("a.png"), drawn.filePath(name)}, &well);
      if (!well || QImage(drawn.filePath("a.png")).width() < 300) problems << name + ": rsvg: " + words;
      if (name.section('.', 0, -2) != pdfs[svgs.indexOf(name)].section('.', 0, -2)) problems << name + " has no PDF";
    }
    for (const QString& name : pdfs) {
      const QByteArray words = said("pdftoppm", {"-png", "-singlefile", "-r", "96", drawn.filePath(name), drawn.filePath("b")}, &well);
      if (!well || words.contains("Error") || QImage(drawn.filePath("b.png")).width() < 300) problems << name + ": poppler: " + words;
    }
    qInfo("%s: %lld figures", qPrintable(id), static_cast<long long>(svgs.size()));
    QVERIFY2(problems.isEmpty(), qPrintable(problems.join('\n')));
  }
};

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string(argv[i]) == "--thorough") {
      thorough = true;
      std::copy(argv + i + 1, argv + argc, argv + i);
      --argc, --i;
    }
  prepareOpenGl();
  QApplication application(argc, argv);
  QApplication::setOrganizationName("figures-test");
  TestFigures test;
  return QTest::qExec(&test, argc, argv);
}

#include "test_figures.moc"
