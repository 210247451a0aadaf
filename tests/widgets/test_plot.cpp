// SPDX-License-Identifier: GPL-3.0-or-later
// The plots themselves: colours, ticks, thinning, the mouse on a time axis, legends, figures and CSV cells.
#include <sys/resource.h>
#include <sys/stat.h>
#include <QApplication>
#include <QFileInfo>
#include <QImage>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <cmath>
#include <csignal>
#include <limits>

#include "plot/parts/heatmap.h"
#include "plot/parts/table.h"
#include "plot/plot.h"
#include "synthetic/synthetic_trace.h"

using namespace reclab;

namespace {

/// A time rect with two curves of 300 steps under a legend.
struct Bench {
  Plot plot;
  Legend* legend = new Legend(&plot);
  QCPAxisRect* rect = plot.makeRect();
  QCPGraph *sine, *line;

  explicit Bench(int steps = 300) {
    plot.plotLayout()->addElement(0, 0, legend);
    plot.plotLayout()->addElement(1, 0, rect);
    plot.addTimeRect(rect);
    sine = plot.addCurve(rect, plot.theme().series(0));
    line = plot.addCurve(rect, plot.theme().series(1));
    for (int t = 0; t < steps; ++t) {
      sine->addData(t, std::sin(0.05 * t));
      line->addData(t, t * 2.0 / steps - 1.0);
    }
    rect->axis(QCPAxis::atLeft)->setRange(-1.1, 1.1);
    legend->add("sine", "sine", sine->pen(), {sine});
    legend->add("line", "line", line->pen(), {line});
    plot.setTimeExtent(0, steps - 1);
    plot.resize(600, 320);
    plot.show();
    if (!QTest::qWaitForWindowExposed(&plot)) qFatal("the window did not come up");
    plot.replot();
  }
  QPoint at(double step, double value = 0.0) const {
    return QPointF(rect->axis(QCPAxis::atBottom)->coordToPixel(step), rect->axis(QCPAxis::atLeft)->coordToPixel(value)).toPoint();
  }
  void wheel(const QPoint& position, int delta) {
    QWheelEvent event(position, plot.mapToGlobal(position), {}, {0, delta}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
    QApplication::sendEvent(&plot, &event);
  }
  void drag(const QPoint& from, const QPoint& to, Qt::KeyboardModifiers keys = {}) {
    QTest::mousePress(&plot, Qt::LeftButton, keys, from);
    // Through move events with the button held, as a hand makes them.
    for (int i = 1; i <= 4; ++i) {
      const QPoint between = from + (to - from) * i / 4;
      QMouseEvent move(QEvent::MouseMove, between, plot.mapToGlobal(between), Qt::NoButton, Qt::LeftButton, keys);
      QApplication::sendEvent(&plot, &move);
    }
    QTest::mouseRelease(&plot, Qt::LeftButton, keys, to);
  }
};

double lightness(QRgb rgb) {
  const auto linear = [](int c) { return std::pow(c / 255.0, 2.2); };
  const double y = 0.2126 * linear(qRed(rgb)) + 0.7152 * linear(qGreen(rgb)) + 0.0722 * linear(qBlue(rgb));
  return 116.0 * std::cbrt(y) - 16.0;
}

/// As the screen has it, with a title.
QString saved(Plot& plot, const QString& file, Panel::Format format) {
  const FigureStyle style = FigureStyle::asShown();
  return saveDrawing(file, format, plot.drawing("A title", style), style, plot.theme().base, plot.logicalDpiX());
}

}  // namespace

class TestPlot : public QObject {
  Q_OBJECT
 private slots:
  void ticksOfTimeAreWrittenAsTheyAre() {
    for (const double spacing : {1.0 / 12.0, 0.1, 0.25, 0.003, 30.0})
      for (const double span : {300.0, 130.0, 41.0, 11.0, 3.0}) {
        StepTicker ticker;
        ticker.setTime(1749.0, spacing);
        QVector<double> ticks;
        QVector<QString> labels;
        ticker.generate(QCPRange(0.0, span), QLocale::c(), u'g', 6, ticks, nullptr, &labels);
        QVERIFY(!ticks.isEmpty() && labels.size() == ticks.size());
        for (qsizetype i = 0; i < ticks.size(); ++i)
          QVERIFY2(std::abs(labels[i].toDouble() - (1749.0 + ticks[i] * spacing)) < 1e-8,
                   qPrintable(QStringLiteral("%1 at %2").arg(labels[i]).arg(1749.0 + ticks[i] * spacing, 0, 'g', 12)));
      }
  }

  void numbersReadWell() {
    QCOMPARE(number(0.99712), QStringLiteral("0.997"));
    QCOMPARE(number(0.0), QStringLiteral("0"));
    QCOMPARE(number(-12.5), QStringLiteral("−12.5"));
    QCOMPARE(number(12345), QStringLiteral("12345"));
    QCOMPARE(number(99.7, 2), QStringLiteral("100"));
    QCOMPARE(number(-99999.7), QStringLiteral("−100000"));
    QCOMPARE(number(1e-12), QStringLiteral("10⁻¹²"));
    QCOMPARE(number(2.5e300), QStringLiteral("2.5×10³⁰⁰"));
    QCOMPARE(number(std::numeric_limits<double>::quiet_NaN()), QStringLiteral("none"));
    QCOMPARE(powerOfTen(-400), QStringLiteral("10⁻⁴⁰⁰"));
    QCOMPARE(powerOfTen(-0.001), QStringLiteral("10⁰"));
    QCOMPARE(powerAsNumber(-400.602), QStringLiteral("2.5×10⁻⁴⁰¹"));
    QCOMPARE(powerAsNumber(-399.9999), QStringLiteral("10⁻⁴⁰⁰"));
    QCOMPARE(grouped(1234567), QStringLiteral("1,234,567"));
  }

  void coloursAreReadable() {
    QPalette light, dark;
    light.setColor(QPalette::Base, Qt::white);
    light.setColor(QPalette::Text, Qt::black);
    dark.setColor(QPalette::Base, QColor(34, 38, 44));
    dark.setColor(QPalette::Text, QColor(228, 231, 236));
    for (const QPalette& palette : {light, dark}) {
      const Theme theme = Theme::of(palette, QApplication::font());
      QVERIFY(contrast(theme.muted, theme.base) >= 4.5);
      QVERIFY(contrast(theme.accent, theme.base) >= 3.0);
      for (int i = 0; i < 7; ++i) QVERIFY2(contrast(theme.series(i), theme.base) >= 2.9, qPrintable(theme.series(i).name()));
      QVERIFY(theme.small.pointSizeF() >= 9.0);
    }
    QVERIFY(Theme::of(dark, {}).dark);
    QVERIFY(!Theme::of(light, {}).dark);
  }

  void colourMapsAreUniform() {
    // Lightness rises steadily along viridis: no step of 8 entries is flat or thrice the mean.
    const double whole = lightness(viridis()[255]) - lightness(viridis()[0]);
    for (std::size_t i = 0; i + 8 < 256; i += 8) {
      const double step = lightness(viridis()[i + 8]) - lightness(viridis()[i]);
      QVERIFY2(step > 0.3 * whole / 32 && step < 3.0 * whole / 32, qPrintable(QString::number(i)));
    }
    // A diverging map has its extreme of lightness at the centre: the lightest on white paper, the darkest on a dark ground.
    QVERIFY(lightness(diverging(false)[128]) > lightness(diverging(false)[0]) + 50);
    QVERIFY(lightness(diverging(false)[128]) > lightness(diverging(false)[255]) + 50);
    QVERIFY(lightness(diverging(true)[128]) < lightness(diverging(true)[0]) - 40);
    QVERIFY(lightness(diverging(true)[128]) < lightness(diverging(true)[255]) - 40);
  }

  void ticksOfPowersAreWhole() {
    PowerTicker ticker;
    ticker.setTickCount(5);
    QVector<double> ticks;
    QVector<QString> labels;
    ticker.generate(QCPRange(-5000, 10), QLocale::c(), u'g', 6, ticks, nullptr, &labels);
    QVERIFY(ticks.size() >= 3 && ticks.size() == labels.size());
    for (const double tick : ticks) QCOMPARE(tick, std::round(tick));
    QVERIFY(labels.contains(QStringLiteral("10⁻⁴⁰⁰⁰")));
  }

  void ticksOfAPartOfADecadeAreRoundNumbers() {
    PowerTicker ticker;
    ticker.setTickCount(5);
    QVector<double> ticks;
    QVector<QString> labels;
    ticker.generate(QCPRange(std::log10(0.93), std::log10(1.03)), QLocale::c(), u'g', 6, ticks, nullptr, &labels);
    for (const char* round : {"0.94", "0.96", "0.98", "1", "1.02"})
      QVERIFY2(labels.contains(QLatin1String(round)), qPrintable(labels.join(' ')));
  }

  void ticksWithinADecadeAreAsManyAsThereIsRoomFor() {
    const auto inside = [](int room, const QCPRange& range) {
      PowerTicker ticker;
      ticker.setTickCount(room);
      QVector<double> ticks;
      ticker.generate(range, QLocale::c(), u'g', 6, ticks, nullptr, nullptr);
      return std::count_if(ticks.begin(), ticks.end(), [&](double tick) { return range.contains(tick); });
    };
    QCOMPARE(inside(6, {-1.35, 0.05}), 5);  // 0.05, 0.1, 0.2, 0.5, 1
    QCOMPARE(inside(3, {-1.35, 0.05}), 3);
    QCOMPARE(inside(2, {-1.35, 0.05}), 3);   // 0.1, 0.3, 1
    QCOMPARE(inside(2, {-2.2, 0.05}), 3);    // no decade goes
    QCOMPARE(inside(2, {-0.75, -0.05}), 2);  // nor all that there is: 0.2, 0.5
  }

  void ticksOfTimeAreRoundYears() {
    Bench bench;
    bench.plot.setTimeNames(*test::synthetic_trace());
    bench.plot.replot();
    QCOMPARE(bench.rect->axis(QCPAxis::atBottom)->label(), QStringLiteral("year"));
    const QVector<QString> labels = bench.rect->axis(QCPAxis::atBottom)->tickVectorLabels();
    const QVector<double> ticks = bench.rect->axis(QCPAxis::atBottom)->tickVector();
    QVERIFY(labels.contains(QStringLiteral("1760")));
    // 1760 is 11 years of 12 monthly steps after 1749.
    QVERIFY(std::abs(ticks[labels.indexOf(QStringLiteral("1760"))] - 132.0) < 1e-6);
  }

  void clickPicksTime() {
    Bench bench;
    QSignalSpy picked(&bench.plot, &Plot::timePicked);
    QTest::mouseClick(&bench.plot, Qt::LeftButton, {}, bench.at(120));
    QCOMPARE(picked.size(), 1);
    QVERIFY(std::abs(picked[0][0].toLongLong() - 120) <= 1);
  }

  void dragOnTheCursorScrubs() {
    Bench bench;
    bench.plot.setCursorStep(100);
    QSignalSpy picked(&bench.plot, &Plot::timePicked), zoomed(&bench.plot, &Plot::timeRangePicked);
    bench.drag(bench.at(100), bench.at(180));
    QVERIFY(picked.size() >= 4);
    QVERIFY(std::abs(picked.last()[0].toLongLong() - 180) <= 1);
    QCOMPARE(zoomed.size(), 0);
  }

  void dragZoomsAndDoubleClickResets() {
    Bench bench;
    QSignalSpy zoomed(&bench.plot, &Plot::timeRangePicked), picked(&bench.plot, &Plot::timePicked);
    bench.drag(bench.at(60), bench.at(150));
    QCOMPARE(zoomed.size(), 1);
    QVERIFY(std::abs(zoomed[0][0].toLongLong() - 60) <= 1);
    QVERIFY(std::abs(zoomed[0][1].toLongLong() - 150) <= 1);
    QCOMPARE(picked.size(), 0);
    QCOMPARE(bench.plot.firstStep(), zoomed[0][0].toLongLong());
    bench.plot.replot();
    bench.drag(bench.at(100), bench.at(90), Qt::ShiftModifier);  // pans: what was at 100 goes to where 90 was
    QVERIFY(std::abs(bench.plot.firstStep() - (zoomed[0][0].toLongLong() + 10)) <= 1);
    bench.plot.replot();
    QTest::mouseDClick(&bench.plot, Qt::LeftButton, {}, bench.at(120));
    QCOMPARE(bench.plot.firstStep(), 0);
    QCOMPARE(bench.plot.lastStep(), 299);
    QCOMPARE(zoomed.last()[0].toLongLong(), 0);
    QCOMPARE(zoomed.last()[1].toLongLong(), 299);
  }

  void wheelZoomsAboutTheMouse() {
    Bench bench;
    QSignalSpy zoomed(&bench.plot, &Plot::timeRangePicked);
    const QPoint mouse = bench.at(200);
    bench.wheel(mouse, 360);
    QCOMPARE(zoomed.size(), 1);
    bench.plot.replot();
    QVERIFY(bench.plot.lastStep() - bench.plot.firstStep() < 180);
    QVERIFY(std::abs(bench.rect->axis(QCPAxis::atBottom)->pixelToCoord(mouse.x()) - 200) < 2.5);
    for (int i = 0; i < 30; ++i) bench.wheel(mouse, 120);
    QVERIFY(bench.plot.lastStep() - bench.plot.firstStep() >= 4);
    for (int i = 0; i < 60; ++i) bench.wheel(mouse, -120);
    QCOMPARE(bench.plot.firstStep(), 0);
    QCOMPARE(bench.plot.lastStep(), 299);
  }

  void rangeIsKeptWhileTheExtentIs() {
    Bench bench;
    QSignalSpy zoomed(&bench.plot, &Plot::timeRangePicked);
    bench.plot.setTimeRange(50, 80);
    bench.plot.setTimeExtent(0, 299);
    QCOMPARE(bench.plot.firstStep(), 50);
    bench.plot.setTimeExtent(0, 399);
    QCOMPARE(bench.plot.firstStep(), 0);
    QCOMPARE(bench.plot.lastStep(), 399);
    QCOMPARE(zoomed.size(), 0);  // nobody touched the mouse
  }

  void aNameWiderThanItsPlotIsCutAndToldWhole() {
    Bench bench;
    const QString name =
        QString("quasi-newton, damped, with a name that nobody would give to a form of a model, however long it is").repeated(2);
    bench.legend->add("long", name, bench.line->pen(), {bench.line});
    bench.plot.resize(320, 320);
    bench.plot.replot();
    const QRect place = bench.legend->placeOf("long");
    QVERIFY2(!place.isNull() && place.right() <= bench.plot.width(), qPrintable(QString::number(place.right())));
    QVERIFY2(bench.legend->tipAt(place.center()).startsWith(name), qPrintable(bench.legend->tipAt(place.center())));
    QVERIFY(!bench.legend->tipAt(bench.legend->placeOf("sine").center()).contains("sine"));
  }

  void aLowPlotLeavesOutTextsThenLegends() {
    Bench bench;
    auto* words = new Paragraph(&bench.plot);
    bench.plot.plotLayout()->addElement(2, 0, words);
    words->setText("what is to be said of it, in a sentence that takes more than one line of a plot that is as narrow as this one");
    for (int i = 0; i < 12; ++i)
      bench.legend->add(QString("more%1").arg(i), QString("another curve %1").arg(i), bench.line->pen(), {bench.line});
    using Room = Plot::Room;
    const auto at = [&](int height) {
      bench.plot.resize(360, height);
      bench.plot.replot();
      return std::pair{bench.plot.roomFor(words), bench.plot.roomFor(bench.legend)};
    };
    QVERIFY((at(500) == std::pair{Room::all, Room::all}));
    QVERIFY(bench.plot.leftOut().isEmpty());
    const int least = 176 + bench.legend->wantedHeight();
    QVERIFY(words->wantedHeight() > 20 && bench.legend->wantedHeight() > 3 * bench.legend->lineHeight());
    QVERIFY((at(least + words->wantedHeight() / 2) == std::pair{Room::none, Room::all}));
    QVERIFY(bench.rect->height() >= 120 && bench.plot.leftOut().contains("in a sentence"));
    QVERIFY((at(176 + 2 * bench.legend->lineHeight()) == std::pair{Room::none, Room::line}));
    QVERIFY2(bench.rect->height() >= 120, qPrintable(QString::number(bench.rect->height())));
    QVERIFY(!bench.legend->placeOf("sine").isNull() && bench.legend->placeOf("more11").isNull());
    QVERIFY(bench.plot.leftOut().contains("another curve 11") && !bench.plot.leftOut().contains("sine"));
    QVERIFY((at(176 + bench.legend->lineHeight() / 2) == std::pair{Room::none, Room::none}));
    QVERIFY2(bench.rect->height() >= 120, qPrintable(QString::number(bench.rect->height())));
    QVERIFY(bench.plot.leftOut().contains("sine"));
    // Its figure has all of it, and is the higher for it.
    QTemporaryDir folder;
    const QString file = folder.filePath("low.svg");
    QCOMPARE(saved(bench.plot, file, Panel::Format::svg), QString());
    QFile saved(file);
    QVERIFY(saved.open(QIODevice::ReadOnly));
    const QByteArray drawn = saved.readAll();
    QVERIFY(drawn.contains("another curve 11") && drawn.contains("in a sentence"));
    QVERIFY((at(500) == std::pair{Room::all, Room::all}));
    QVERIFY(!bench.legend->placeOf("more11").isNull());
  }

  void legendHidesAndRemembers() {
    Bench bench;
    QSignalSpy toggled(&bench.plot, &Plot::curvesToggled), picked(&bench.plot, &Plot::timePicked);
    QTest::mouseClick(&bench.plot, Qt::LeftButton, {}, bench.legend->placeOf("line").center());
    QVERIFY(!bench.line->visible());
    QVERIFY(bench.sine->visible());
    QCOMPARE(toggled.size(), 1);
    QCOMPARE(picked.size(), 0);
    bench.legend->clear();
    bench.line->setVisible(true);
    bench.legend->add("line", "line", bench.line->pen(), {bench.line});
    QVERIFY(!bench.line->visible());
    bench.plot.replot();
    QTest::mouseClick(&bench.plot, Qt::LeftButton, {}, bench.legend->placeOf("line").center());
    QVERIFY(bench.line->visible());
  }

  void cursorIsDrawnWithoutAFullReplot() {
    Bench bench;
    QSignalSpy replots(&bench.plot, &QCustomPlot::afterReplot);
    bench.plot.setCursorStep(150);
    const QPoint at = bench.at(150, -0.6);  // away from curves and labels
    const auto on_line = [&] {
      const QImage seen = bench.plot.grab().toImage();
      for (int dx = -1; dx <= 1; ++dx)
        if (seen.pixelColor(at + QPoint(dx, 0)) != bench.plot.theme().base &&
            seen.pixelColor(at + QPoint(dx, 0)) != bench.plot.theme().grid)
          return true;
      return false;
    };
    QTRY_VERIFY(on_line());
    QCOMPARE(replots.size(), 0);
  }

  void repaintsAreAtMostFortyASecond() {
    Bench bench;
    QTest::qWait(80);
    QSignalSpy replots(&bench.plot, &QCustomPlot::afterReplot);
    QElapsedTimer clock;
    clock.start();
    int asked = 0;
    while (clock.elapsed() < 500) {
      bench.plot.redraw();
      ++asked;
      QTest::qWait(1);
    }
    const double most = static_cast<double>(clock.elapsed()) / 25.0 + 2.0;
    QVERIFY2(asked > replots.size(), qPrintable(QString::number(asked)));
    QVERIFY2(replots.size() >= 2 && static_cast<double>(replots.size()) <= most, qPrintable(QString::number(replots.size())));
  }

  void whatIsDueIsDrawnBeforeTheWindowIsPainted() {
    Bench bench;
    QTest::qWait(80);
    QSignalSpy replots(&bench.plot, &QCustomPlot::afterReplot);
    bench.plot.redraw();
    bench.plot.update();
    QCoreApplication::sendPostedEvents();
    QCOMPARE(replots.size(), 1);
  }

  void aPlotBehindOthersIsDrawnWhenItIsSeen() {
    QWidget window;
    window.resize(400, 300);
    auto* plot = new Plot(&window);
    plot->setGeometry(-1000, 0, 400, 300);  // where a dock's tab is that is behind another
    window.show();
    QVERIFY(QTest::qWaitForWindowExposed(&window));
    QSignalSpy replots(plot, &QCustomPlot::afterReplot);
    plot->redraw();
    QTest::qWait(80);
    QCOMPARE(replots.size(), 0);
    plot->move(0, 0);
    QTRY_VERIFY(!replots.isEmpty());
  }

  void aMillionPointsStaySmooth() {
    Bench bench;
    QVector<QCPGraphData> points(1'000'000);
    for (int i = 0; i < points.size(); ++i) points[i] = {static_cast<double>(i), std::sin(0.001 * i) + (i == 777'777 ? 5.0 : 0.0)};
    bench.sine->data()->set(points, true);
    bench.rect->axis(QCPAxis::atLeft)->setRange(-2, 7);
    bench.plot.setTimeExtent(0, 999'999);
    bench.plot.replot();
    double least = 1e9;
    for (int i = 0; i < 8; ++i) {
      bench.plot.replot();
      least = std::min(least, bench.plot.replotTime());
    }
    QVERIFY2(least < 100.0, qPrintable(QString::number(least)));
    // The one outlier of a million survives the thinning.
    const QImage seen = bench.plot.grab().toImage();
    const QPoint tip = bench.at(777'777, std::sin(777.777) + 4.8);
    bool drawn = false;
    for (int dx = -2; dx <= 2; ++dx)
      for (int dy = -2; dy <= 2; ++dy) {
        const QColor c = seen.pixelColor(tip + QPoint(dx, dy));
        drawn = drawn || (c.blue() - c.red() > 60);
      }
    QVERIFY(drawn);
  }

  void gapsAreGaps() {
    Bench bench;
    bench.line->setVisible(false);
    for (auto point = bench.sine->data()->begin(); point != bench.sine->data()->end(); ++point)
      if (point->key > 100 && point->key < 200) point->value = std::numeric_limits<double>::quiet_NaN();
    bench.plot.replot();
    const QImage seen = bench.plot.grab().toImage();
    const QRect inside(bench.at(110, 1.0), bench.at(190, -1.0));
    for (int x = inside.left(); x < inside.right(); ++x)
      for (int y = inside.top(); y < inside.bottom(); ++y) {
        const QColor c = seen.pixelColor(x, y);
        QVERIFY(c.blue() - c.red() < 40);
      }
  }

  void figuresAreReadBack() {
    Bench bench;
    bench.plot.setCursorStep(100);
    bench.rect->axis(QCPAxis::atLeft)->setLabel("value");
    QTemporaryDir folder;
    const QString png = folder.filePath("a.png"), svg = folder.filePath("a.svg"), pdf = folder.filePath("a.pdf");
    QCOMPARE(saved(bench.plot, png, Panel::Format::png), QString());
    QCOMPARE(saved(bench.plot, svg, Panel::Format::svg), QString());
    QCOMPARE(saved(bench.plot, pdf, Panel::Format::pdf), QString());
    const QImage image(png);
    QVERIFY(image.width() == 2 * bench.plot.width() && image.height() > 2 * bench.plot.height());
    QVERIFY(!image.hasAlphaChannel() || qAlpha(image.pixel(0, 0)) == 255);
    QFile text(svg);
    QVERIFY(text.open(QIODevice::ReadOnly));
    const QByteArray written = text.readAll();
    QVERIFY(written.contains("<path") || written.contains("<polyline"));
    QVERIFY(written.contains("A title") && written.contains(">value<") && written.contains(">sine<"));
    QVERIFY(!written.contains("<image"));
    QFile document(pdf);
    QVERIFY(document.open(QIODevice::ReadOnly));
    const QByteArray pages = document.readAll();
    QVERIFY(pages.startsWith("%PDF-") && pages.contains("/MediaBox") && pages.trimmed().endsWith("%%EOF"));
    QVERIFY(!pages.contains("/Subtype /Image"));
    // Only what was asked for is in the folder: no temporary file is left.
    QCOMPARE(QDir(folder.path()).entryList(QDir::Files).size(), 3);
  }

  void refusedFiguresSaySo() {
    Bench bench;
    for (const Panel::Format format : {Panel::Format::png, Panel::Format::svg, Panel::Format::pdf}) {
      const QString said = saved(bench.plot, "/no/such/folder/a", format);
      QVERIFY2(said.contains("/no/such/folder/a") && said.endsWith(u'.'), qPrintable(said));
    }
    // What is not an ordinary file is not replaced by one.
    QTemporaryDir pipes;
    const QString pipe = pipes.filePath("pipe");
    QCOMPARE(mkfifo(qPrintable(pipe), 0600), 0);
    QVERIFY(saved(bench.plot, pipe, Panel::Format::png).contains(pipe));
    QVERIFY(!QFileInfo(pipe).isFile());
    // A disk that fills up in the middle (here: a limit on the size of files): the figure that was there stays, and nothing else does.
    QTemporaryDir folder;
    const QString file = folder.filePath("a.png");
    QCOMPARE(saved(bench.plot, file, Panel::Format::png), QString());
    const qint64 size = QFileInfo(file).size();
    rlimit before{};
    QCOMPARE(getrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{1000, before.rlim_max};
    QCOMPARE(setrlimit(RLIMIT_FSIZE, &small), 0);
    QStringList said;
    for (const Panel::Format format : {Panel::Format::png, Panel::Format::svg, Panel::Format::pdf}) said << saved(bench.plot, file, format);
    QCOMPARE(setrlimit(RLIMIT_FSIZE, &before), 0);
    for (const QString& sentence : said) QVERIFY2(sentence.contains(file), qPrintable(sentence));
    QCOMPARE(QFileInfo(file).size(), size);
    QCOMPARE(QDir(folder.path()).entryList(QDir::Files).size(), 1);
  }

  void heatmapShowsWhatIsThere() {
    Plot plot;
    QCPAxisRect* rect = plot.makeRect();
    plot.plotLayout()->addElement(0, 0, rect);
    plot.addTimeRect(rect);
    auto* map = new Heatmap(rect->axis(QCPAxis::atBottom), rect->axis(QCPAxis::atLeft));
    // Four units, ten steps: unit 3 is high throughout, at step 5 nothing is known.
    auto values = std::make_shared<std::vector<double>>();
    std::vector<std::int64_t> steps;
    for (int t = 0; t < 10; ++t) {
      steps.push_back(t);
      for (int j = 0; j < 4; ++j) values->push_back(t == 5 ? std::numeric_limits<double>::quiet_NaN() : j == 3 ? 1.0 : 0.0);
    }
    map->setData(values, 4, steps);
    QCOMPARE(map->dataLow(), 0.0);
    QCOMPARE(map->dataHigh(), 1.0);
    map->setScale(0, 1);
    rect->axis(QCPAxis::atLeft)->setRange(-0.5, 3.5);
    plot.setTimeExtent(0, 9);
    plot.resize(400, 300);
    plot.show();
    QVERIFY(QTest::qWaitForWindowExposed(&plot));
    plot.replot();
    const QImage seen = plot.grab().toImage();
    const auto colour = [&](double t, double j) {
      return seen.pixel(static_cast<int>(rect->axis(QCPAxis::atBottom)->coordToPixel(t)),
                        static_cast<int>(rect->axis(QCPAxis::atLeft)->coordToPixel(j)));
    };
    QCOMPARE(colour(2, 3), viridis()[255]);
    QCOMPARE(colour(2, 0), viridis()[0]);
    QCOMPARE(QColor(colour(5, 3.2)), plot.theme().base);
    const auto entry = map->at({rect->axis(QCPAxis::atBottom)->coordToPixel(7), rect->axis(QCPAxis::atLeft)->coordToPixel(3)});
    QVERIFY(entry.has_value());
    QCOMPARE(entry->step, 7);
    QCOMPARE(entry->unit, 3);
    QCOMPARE(entry->value, 1.0);
    map->setScale(-1, 3);
    QVERIFY(map->isDiverging());
    QCOMPARE(map->low(), -3.0);
  }

  void heatmapThinsALongRecord() {
    // Alternating 0 and 1 average to one half in any pixel that holds many rows; drawn quickly from the coarse copy.
    constexpr std::int64_t rows = 100'000, units = 256;
    auto values = std::make_shared<std::vector<double>>(static_cast<std::size_t>(rows * units));
    std::vector<std::int64_t> steps(rows);
    for (std::int64_t t = 0; t < rows; ++t) {
      steps[static_cast<std::size_t>(t)] = t;
      for (std::int64_t j = 0; j < units; ++j) (*values)[static_cast<std::size_t>(t * units + j)] = (t / 2 + j) % 2 ? 1.0 : 0.0;
    }
    Plot plot;
    QCPAxisRect* rect = plot.makeRect();
    plot.plotLayout()->addElement(0, 0, rect);
    plot.addTimeRect(rect);
    auto* map = new Heatmap(rect->axis(QCPAxis::atBottom), rect->axis(QCPAxis::atLeft));
    map->setData(values, units, steps);
    map->setScale(0, 1);
    rect->axis(QCPAxis::atLeft)->setRange(-0.5, units - 0.5);
    plot.setTimeExtent(0, rows - 1);
    plot.resize(500, 120);
    plot.show();
    QVERIFY(QTest::qWaitForWindowExposed(&plot));
    QElapsedTimer clock;
    clock.start();
    plot.replot();
    QVERIFY2(clock.elapsed() < 250, qPrintable(QString::number(clock.elapsed())));
    const QImage seen = plot.grab().toImage();
    const QColor middle = seen.pixelColor(rect->rect().center() + QPoint(20, 5)), half = QColor::fromRgb(viridis()[128]);
    QVERIFY2(std::abs(middle.red() - half.red()) < 24 && std::abs(middle.green() - half.green()) < 24, qPrintable(middle.name()));
  }

  void csvCellsAreQuotedWhenTheyHaveToBe() {
    QCOMPARE(csvCell("plain"), QStringLiteral("plain"));
    QCOMPARE(csvCell("a,b \"c\""), QStringLiteral("\"a,b \"\"c\"\"\""));
    QCOMPARE(csvNumber(0.1), QByteArray("0.1"));
    QCOMPARE(csvNumber(1.0 / 3.0).toDouble(), 1.0 / 3.0);
    QCOMPARE(csvNumber(-std::numeric_limits<double>::infinity()), QByteArray("-inf"));
    QCOMPARE(csvNumber(std::numeric_limits<double>::quiet_NaN()), QByteArray());
  }
};

QTEST_MAIN(TestPlot)
#include "test_plot.moc"
