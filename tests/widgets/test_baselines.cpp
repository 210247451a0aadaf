// SPDX-License-Identifier: GPL-3.0-or-later
// What every panel of the list looks like, small and large, light and dark, against the pictures in tests/widgets/baselines.
// `tests/run.sh baselines` makes them anew.
#include <QApplication>
#include <QDir>
#include <QFileInfo>
#include <QFontDatabase>
#include <QHash>
#include <QImageWriter>
#include <QJsonDocument>
#include <QJsonObject>
#include <QStyleFactory>
#include <QTest>
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "panel.h"
#include "places.h"
#include "plot/plot.h"
#include "scene/vtk_frame.h"
#include "synthetic/synthetic_composition.h"
#include "synthetic/synthetic_credit.h"
#include "synthetic/synthetic_kernels.h"
#include "synthetic/synthetic_lab.h"
#include "synthetic/synthetic_learning.h"
#include "synthetic/synthetic_schedule.h"
#include "synthetic/synthetic_sensitivity.h"
#include "synthetic/synthetic_trace.h"
#include "trajectories_test.h"

using namespace reclab;

namespace {

const QString folder = QString::fromStdString(test::source("tests/widgets/baselines/")),
              found = QString::fromStdString(test::built("baselines/"));
/// Those that app/packages.txt has: one for what stands on the screen, one for the signs that it lacks.
constexpr std::array fonts{"Open Sans", "DejaVu Sans"};

constexpr int tile = 16;
/// The most that a tile of blurred pixels may differ, in the root of the mean square, of 255. Other hinting and smoothing of fonts and
/// lines makes 8 at most, which is all of the picture moved by a quarter of a pixel; a curve that is missing, but not the faintest there
/// is, a word that is cut or a colour of the other theme 12 and more. A picture of OpenGL is drawn by Mesa, whose versions place points and
/// lines of a scene and mix their edges otherwise; what is around it is held to the same as all others.
constexpr double most = 9.0, most_of_scene = 20.0;

/// The mean over 5 x 5 pixels, so that how an edge is smoothed matters little.
std::vector<float> blurred(const QImage& image, int channel) {
  const int w = image.width(), h = image.height();
  std::vector<float> plain(static_cast<std::size_t>(w) * static_cast<std::size_t>(h)), across(plain.size()), both(plain.size());
  for (int y = 0; y < h; ++y) {
    const auto* line = reinterpret_cast<const QRgb*>(image.constScanLine(y));
    for (int x = 0; x < w; ++x) plain[static_cast<std::size_t>(y * w + x)] = static_cast<float>(line[x] >> (8 * channel) & 255);
  }
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x)
      for (int d = -2; d <= 2; ++d)
        across[static_cast<std::size_t>(y * w + x)] += plain[static_cast<std::size_t>(y * w + std::clamp(x + d, 0, w - 1))] / 5.0F;
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x)
      for (int d = -2; d <= 2; ++d)
        both[static_cast<std::size_t>(y * w + x)] += across[static_cast<std::size_t>(std::clamp(y + d, 0, h - 1) * w + x)] / 5.0F;
  return both;
}

struct Difference {
  double worst = 0.0;  ///< of all tiles, in parts of what each may differ
  QString sentence{};  ///< which tiles differ too much; empty where none does
};

/// `scene`: where the looser threshold holds.
Difference compare(const QImage& baseline, const QImage& actual, const QRect& scene = {}) {
  if (baseline.size() != actual.size())
    return {1e9, QStringLiteral("it is %1 x %2 pixels, not %3 x %4")
                     .arg(actual.width())
                     .arg(actual.height())
                     .arg(baseline.width())
                     .arg(baseline.height())};
  const QImage a = baseline.convertToFormat(QImage::Format_RGB32), b = actual.convertToFormat(QImage::Format_RGB32);
  const int w = a.width(), h = a.height();
  std::vector<double> squares(static_cast<std::size_t>(w) * static_cast<std::size_t>(h));
  for (int channel = 0; channel < 3; ++channel) {
    const std::vector<float> x = blurred(a, channel), y = blurred(b, channel);
    for (std::size_t i = 0; i < squares.size(); ++i) squares[i] += static_cast<double>((x[i] - y[i]) * (x[i] - y[i])) / 3.0;
  }
  Difference all;
  QStringList tiles;
  for (int top = 0; top < h; top += tile)
    for (int left = 0; left < w; left += tile) {
      const QRect place = QRect(left, top, tile, tile).intersected(a.rect());
      double sum = 0.0;
      for (int y = place.top(); y <= place.bottom(); ++y)
        for (int x = place.left(); x <= place.right(); ++x) sum += squares[static_cast<std::size_t>(y * w + x)];
      const double differs = std::sqrt(sum / (place.width() * place.height())), allowed = scene.intersects(place) ? most_of_scene : most;
      all.worst = std::max(all.worst, differs / allowed);
      if (differs > allowed) tiles << QStringLiteral("%1 at (%2, %3)").arg(differs, 0, 'f', 1).arg(left).arg(top);
    }
  if (!tiles.isEmpty()) {
    const auto many = tiles.size();
    all.sentence = QStringLiteral("%1 of its tiles of %2 x %2 pixels differ by more than %3: ").arg(many).arg(tile).arg(most) +
                   tiles.mid(0, 6).join(", ") + (many > 6 ? " and others" : "");
  }
  return all;
}

QImage differenceOf(const QImage& a, const QImage& b) {
  QImage shown(a.size().expandedTo(b.size()), QImage::Format_RGB32);
  for (int y = 0; y < shown.height(); ++y)
    for (int x = 0; x < shown.width(); ++x) {
      const QRgb p = a.rect().contains(x, y) ? a.pixel(x, y) : 0, q = b.rect().contains(x, y) ? b.pixel(x, y) : 0;
      shown.setPixel(x, y,
                     qRgb(255 - std::abs(qRed(p) - qRed(q)), 255 - std::abs(qGreen(p) - qGreen(q)), 255 - std::abs(qBlue(p) - qBlue(q))));
    }
  return shown;
}

/// With at most 256 colours, each as near to the picture's own as that allows, so that its file is a third as large.
QImage ofFewColours(const QImage& image) {
  QHash<QRgb, int> counts;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) ++counts[image.pixel(x, y)];
  std::vector<std::pair<int, QRgb>> byCount;
  for (auto entry = counts.begin(); entry != counts.end(); ++entry) byCount.emplace_back(-entry.value(), entry.key());
  std::ranges::sort(byCount);
  const auto away = [](QRgb a, QRgb b) {
    return std::max({std::abs(qRed(a) - qRed(b)), std::abs(qGreen(a) - qGreen(b)), std::abs(qBlue(a) - qBlue(b))});
  };
  // The most frequent colours, but none that is as near to another as the distance that just suffices.
  QList<QRgb> table;
  for (int distance = 0; table.isEmpty(); ++distance) {
    for (const auto& [count, colour] : byCount)
      if (table.size() <= 256 && std::ranges::none_of(table, [&](QRgb other) { return away(colour, other) <= distance; })) table << colour;
    if (table.size() > 256) table.clear();
  }
  QHash<QRgb, int> nearest;
  for (const auto& [count, colour] : byCount)
    nearest[colour] =
        static_cast<int>(std::ranges::min_element(table, {}, [&](QRgb other) { return away(colour, other); }) - table.begin());
  QImage few(image.size(), QImage::Format_Indexed8);
  few.setColorTable(table);
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) few.setPixel(x, y, static_cast<uint>(nearest[image.pixel(x, y)]));
  return few;
}

QString written(const QImage& image, const QString& file) {
  QDir().mkpath(QFileInfo(file).path());
  QImageWriter writer(file, "png");
  writer.setQuality(0);  // as small as can be
  return writer.write(image) ? QString() : QStringLiteral("%1: %2").arg(file, writer.errorString());
}

/// The colours of the program.
void applyTheme(bool dark) {
  QFile file(QString::fromStdString(test::source("resources/themes/%1.json")).arg(dark ? "dark" : "light"));
  if (!file.open(QIODevice::ReadOnly)) qFatal("no %s", qPrintable(file.fileName()));
  const QJsonObject named = QJsonDocument::fromJson(file.readAll()).object()["palette"].toObject();
  QPalette palette;
  const std::array<std::pair<QPalette::ColorRole, const char*>, 15> roles{{{QPalette::Window, "window"},
                                                                           {QPalette::WindowText, "text"},
                                                                           {QPalette::Base, "base"},
                                                                           {QPalette::AlternateBase, "alternate"},
                                                                           {QPalette::Text, "text"},
                                                                           {QPalette::Button, "button"},
                                                                           {QPalette::ButtonText, "text"},
                                                                           {QPalette::PlaceholderText, "muted"},
                                                                           {QPalette::Highlight, "accent"},
                                                                           {QPalette::HighlightedText, "accentText"},
                                                                           {QPalette::Link, "link"},
                                                                           {QPalette::Light, "hover"},
                                                                           {QPalette::Midlight, "faint"},
                                                                           {QPalette::Mid, "border"},
                                                                           {QPalette::Dark, "muted"}}};
  for (const auto& [role, name] : roles) palette.setColor(role, QColor(named[QLatin1String(name)].toString()));
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    palette.setColor(QPalette::Disabled, role, QColor(named["disabled"].toString()));
  QApplication::setPalette(palette);
}

void addPast(Trace& trace) {
  const auto past = test::pastTrace(true, trace.info.length);
  for (const auto& array : past->arrays())
    if (!trace.find(array->key)) trace.put(*array);
}

/// Three outputs with a target that counts from step 100 on.
void addOutput(Trace& trace, double lag) {
  const auto wave = [](double t, double j) { return std::sin(0.04 * t + 0.8 * j) * std::cos(0.011 * t); };
  trace.put(test::unit_array(
      "output", trace.steps, 3, [&](double t, double j) { return 0.9 * wave(t - lag, j) + 0.1 * std::sin(0.9 * t + j); },
      "what it returns"));
  trace.put(test::unit_array("target", trace.steps, 3, wave, "what it should"));
  trace.put(test::unit_array("mask", trace.steps, 1, [](double t, double) { return t < 100 ? 0.0 : 1.0; }, "where it counts"));
}

/// Everything that panels draw, and a run to compare with.
std::shared_ptr<const Trace> everything() {
  auto trace = std::make_shared<Trace>(*test::synthetic_trace());
  trace->info.loss = "last: L = ½ |y_T|²";
  trace->info.loss_value = 0.137;
  trace->info.spectra[0].continuous = true;
  trace->info.spectra[0].rule = "bilinear";
  test::put_schedules(*trace, 16);
  test::put_kernels(*trace);
  test::put_sensitivity(*trace);
  test::put_mixing(*trace);
  test::put_lab(*trace, false);
  test::put_credit(*trace);
  test::put_curves(*trace);
  addPast(*trace);
  addOutput(*trace, 3.0);
  return trace;
}
std::shared_ptr<const Trace> another() {
  test::SyntheticOptions options;
  options.decades_per_step = -1.0 / 60.0;
  auto trace = std::make_shared<Trace>(*test::synthetic_trace(options));
  addPast(*trace);
  test::put_kernels(*trace, "0/h", 6, 2.0);
  addOutput(*trace, 9.0);
  test::put_sensitivity(*trace, 0.1);
  const auto slower = [](double phase) {
    return [phase](double t, double j) { return 2.0 * std::sin(0.021 * t + 0.4 * j + phase) * std::cos(0.3 * j); };
  };
  trace->put(test::unit_array("state/0/hidden", trace->steps, 16, slower(0.0), ""));
  trace->put(test::unit_array("state/0/cell", trace->steps, 16, slower(1.0), ""));
  trace->put(
      test::unit_array("gate/0/forget", trace->steps, 16, [](double t, double j) { return test::synthetic_gate(0.5 * t, j, 2.0); }, ""));
  TraceArray spectrum = *trace->find("spectrum/0");
  auto inner = std::make_shared<std::vector<std::complex<double>>>(*spectrum.complex);
  for (auto& z : *inner) z *= 0.8;
  spectrum.complex = inner;
  trace->put(std::move(spectrum));
  trace->put(test::unit_array("lyapunov/0", trace->steps, 16, [](double t, double j) { return test::synthetic_exponent(t, j + 3.0); }, ""));
  return trace;
}

/// A panel on a trace, at rest.
class ShownPanel {
 public:
  ShownPanel(const PanelInfo& info, const QString& detail, QSize size) : panel_(info.make(nullptr)) {
    panel_->resize(size);
    const auto trace = everything();
    if (!detail.isEmpty()) panel_->lookAt(QString::fromStdString(trace->info.preset), detail, true);
    panel_->setTrace(trace);
    panel_->setResult("compose", test::synthetic_composition(), {});
    panel_->setResult("train", test::synthetic_learning(), {});
    panel_->setResult("rules", test::synthetic_rules(), {});
    if (detail.isEmpty()) panel_->setPinned({{another(), QColor("#a566d6"), "slower", {}}});
    panel_->setTimeRange(0, trace->info.length - 1);
    panel_->setTime(trace->info.length / 2);
    panel_->show();
    if (!QTest::qWaitForWindowExposed(panel_.get())) qFatal("the window did not come up");
  }
  Panel* operator->() const { return panel_.get(); }
  /// When four in a row, as far apart as plots may be drawn, are the same.
  QImage picture() const {
    QImage last;
    for (int same = 0, tries = 0; same < 4 && tries < 100; ++tries) {
      QTest::qWait(35);
      const QImage now = panel_->grab().toImage().convertToFormat(QImage::Format_RGB32);
      same = now == last ? same + 1 : 0;
      last = now;
    }
    return last;
  }
  QRect scene() const {
    for (const QWidget* widget : panel_->findChildren<QWidget*>())
      if (dynamic_cast<const VtkWidget*>(widget) && widget->isVisible()) return {widget->mapTo(panel_.get(), QPoint()), widget->size()};
    return {};
  }

 private:
  std::unique_ptr<Panel> panel_;
};

/// The smaller is the least that all of them can be given in a row of three.
constexpr QSize small(420, 260), large(900, 600);

QString nameOf(const QString& id, const QString& detail, bool dark, QSize size) {
  return QStringLiteral("%1-%2-%3.png")
      .arg(detail.isEmpty() ? id : id + u'-' + detail, dark ? "dark" : "light", size == small ? "small" : "large");
}

}  // namespace

class TestBaselines : public QObject {
  Q_OBJECT

  /// The panels as they open with a run pinned, and each view that there is to choose in one.
  static std::vector<std::pair<const PanelInfo*, QString>> pictures() {
    std::vector<std::pair<const PanelInfo*, QString>> all;
    for (const PanelInfo& info : panels()) {
      all.emplace_back(&info, QString());
      for (const QString& view : info.places.views) all.emplace_back(&info, view);
    }
    return all;
  }
  static const PanelInfo& panelOf(const QString& id) { return *std::ranges::find(panels(), id, &PanelInfo::id); }
  static QImage baseline(const QString& name) { return QImage(folder + name).convertToFormat(QImage::Format_RGB32); }
  /// Where an OpenGL picture is in that of a panel.
  QRect sceneOf(const PanelInfo& info, const QString& detail) {
    const QString key = info.id + u':' + detail;
    if (!scenes_.contains(key)) scenes_[key] = ShownPanel(info, detail, large).scene();
    return scenes_[key];
  }
  QHash<QString, QRect> scenes_;
  static bool renewing() { return qEnvironmentVariable("RECLAB_BASELINES") == "renew"; }

 private slots:
  void initTestCase() {
    for (const char* name : fonts)
      if (!QFontDatabase::hasFamily(name))
        QSKIP(qPrintable(QStringLiteral("The baselines are written in %1: install fonts-open-sans and fonts-dejavu-core.").arg(name)));
    QApplication::setStyle(QStyleFactory::create("Fusion"));
    QFont font(QStringLiteral("Open Sans"));
    font.setFamilies({QString::fromLatin1(fonts[0]), QString::fromLatin1(fonts[1])});
    font.setPointSizeF(9.5);
    font.setHintingPreference(QFont::PreferNoHinting);
    font.setStyleStrategy(QFont::StyleStrategy(QFont::PreferAntialias | QFont::NoSubpixelAntialias));
    QApplication::setFont(font);
    QDir(found).removeRecursively();
  }

  void everyPanelLooksAsItsBaseline_data() {
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("detail");
    QTest::addColumn<bool>("dark");
    QTest::addColumn<QSize>("size");
    for (const bool dark : {false, true})
      for (const auto& [info, detail] : pictures())
        for (const QSize size : {small, large})
          QTest::newRow(qPrintable(nameOf(info->id, detail, dark, size))) << info->id << detail << dark << size;
  }
  void everyPanelLooksAsItsBaseline() {
    QFETCH(QString, id);
    QFETCH(QString, detail);
    QFETCH(bool, dark);
    QFETCH(QSize, size);
    applyTheme(dark);
    const ShownPanel shown(panelOf(id), detail, size);
    QVERIFY2(shown->emptyReason().isEmpty(),
             qPrintable(QStringLiteral("The trace of this test has nothing for it, so there would be a baseline of a sentence: ") +
                        shown->emptyReason()));
    QCOMPARE(shown->devicePixelRatioF(), 1.0);
    const QImage actual = shown.picture();
    QCOMPARE(actual.size(), size);
    const QString name = nameOf(id, detail, dark, size);
    if (renewing()) {
      if (QFile::exists(folder + name) && compare(baseline(name), actual, shown.scene()).worst < 0.3)
        return;  // but for the colours that were left out: the file stays as it is
      const QString wrong = written(ofFewColours(actual), folder + name);
      QVERIFY2(wrong.isEmpty(), qPrintable(wrong));
      return;
    }
    if (!QFile::exists(folder + name)) {
      written(actual, found + name);
      QFAIL(qPrintable(
          QStringLiteral("There is no %1%2. Make it with tests/run.sh baselines, look at it and commit it; %3%2 is what it would be.")
              .arg(folder, name, found)));
    }
    const QImage expected = baseline(name);
    const Difference differs = compare(expected, actual, shown.scene());
    if (differs.sentence.isEmpty()) return;
    const QString base = found + name.chopped(4);
    written(actual, base + "-actual.png");
    written(differenceOf(expected, actual), base + "-difference.png");
    QFAIL(qPrintable(QStringLiteral("%1 does not look as %2%3: %4. See %5-actual.png and -difference.png; if it is to look so, "
                                    "tests/run.sh baselines makes it the baseline.")
                         .arg(id, folder, name, differs.sentence, base)));
  }

  void noBaselineIsOfAPanelThatThereIsNot() {
    QStringList known;
    for (const bool dark : {false, true})
      for (const auto& [info, detail] : pictures())
        for (const QSize size : {small, large}) known << nameOf(info->id, detail, dark, size);
    for (const QString& file : QDir(folder).entryList(QDir::Files))
      QVERIFY2(known.contains(file), qPrintable(folder + file + " is of no panel: remove it."));
  }

  // What the comparison must see, and what it must not mind.

  void aMissingCurveIsSeen_data() {
    QTest::addColumn<QString>("id");
    QTest::addColumn<int>("fromLast");
    QTest::newRow("gradients, a thick one") << "gradients" << 0;
    QTest::newRow("gradients, a thin one") << "gradients" << 3;
    QTest::newRow("lyapunov, a pinned run's") << "lyapunov" << 0;
    QTest::newRow("lyapunov, the second") << "lyapunov" << 2;
    QTest::newRow("gating, a pinned run's mean") << "gating" << 0;
    QTest::newRow("output, a target") << "output" << 1;
    QTest::newRow("output, a pinned run's") << "output" << 9;
    QTest::newRow("timing, a form") << "timing" << 0;
    QTest::newRow("kernels, a pinned run's") << "kernels" << 0;
  }
  void aMissingCurveIsSeen() {
    QFETCH(QString, id);
    QFETCH(int, fromLast);
    applyTheme(false);
    const ShownPanel shown(panelOf(id), {}, large);
    const QImage before = shown.picture();
    Plot* plot = nullptr;
    for (Plot* one : shown->findChildren<Plot*>())
      if (one->isVisible() && one->graphCount() > 0) plot = one;
    QVERIFY(plot);
    plot->graph(plot->graphCount() - 1 - fromLast)->setVisible(false);
    plot->replot();
    const Difference differs = compare(before, shown.picture());
    qInfo("%.1f times what is allowed", differs.worst);
    QVERIFY(!differs.sentence.isEmpty());
  }

  void theOtherThemeIsSeen() {
    for (const auto& [info, detail] : pictures())
      QVERIFY(
          !compare(baseline(nameOf(info->id, detail, false, small)), baseline(nameOf(info->id, detail, true, small))).sentence.isEmpty());
  }

  void anAccentOfTheOtherThemeIsSeen() {
    applyTheme(false);
    const ShownPanel shown(panelOf("gradients"), {}, small);
    const QImage before = shown.picture();
    QPalette palette = QApplication::palette();
    palette.setColor(QPalette::Text, QColor("#7d8794"));  // words too faint
    shown->setPalette(palette);
    QVERIFY(!compare(before, shown.picture()).sentence.isEmpty());
  }

  void aWordThatIsCutIsSeen() {
    for (const auto& [info, detail] : pictures()) {
      QImage cut = baseline(nameOf(info->id, detail, false, small));
      // The right half of what is lowest on the left, a tick label or a line of words.
      QRect word;
      for (int y = cut.height() - 1; y > 0 && word.isNull(); --y)
        for (int x = 2; x < cut.width() - 20; ++x)
          if (qGray(cut.pixel(x, y)) < 120) {
            word = QRect(x, y - 10, 20, 11);
            break;
          }
      const QImage before = cut;
      for (int y = std::max(0, word.top()); y <= word.bottom(); ++y)
        for (int x = word.left(); x <= word.right(); ++x) cut.setPixel(x, y, 0xffffffff);
      QVERIFY2(!compare(before, cut).sentence.isEmpty(), qPrintable(nameOf(info->id, detail, false, small)));
    }
  }

  void otherSmoothingIsNoDifference() {
    for (const auto& [info, detail] : pictures()) {
      const QString name = nameOf(info->id, detail, false, large);
      const QImage plain = baseline(name);
      // A quarter of a pixel to the side and down, mixed as a font's renderer would.
      QImage moved(plain.size(), QImage::Format_RGB32);
      for (int y = 0; y < plain.height(); ++y)
        for (int x = 0; x < plain.width(); ++x) {
          const auto at = [&](int dx, int dy) { return plain.pixel(std::max(0, x - dx), std::max(0, y - dy)); };
          const auto mix = [&](auto channel) {
            return static_cast<int>(
                std::lround(0.5625 * channel(at(0, 0)) + 0.1875 * (channel(at(1, 0)) + channel(at(0, 1))) + 0.0625 * channel(at(1, 1))));
          };
          moved.setPixel(
              x, y, qRgb(mix([](QRgb c) { return qRed(c); }), mix([](QRgb c) { return qGreen(c); }), mix([](QRgb c) { return qBlue(c); })));
        }
      const Difference differs = compare(plain, moved, sceneOf(*info, detail));
      qInfo("%s: %.2f of what is allowed", qPrintable(name), differs.worst);
      QVERIFY2(differs.sentence.isEmpty(), qPrintable(name + ": " + differs.sentence));
    }
  }
};

int main(int argc, char** argv) {
  // One pixel of the picture is one of the screen, and fonts have the size they have at 96 dots per inch.
  for (const char* name :
       {"QT_SCALE_FACTOR", "QT_SCREEN_SCALE_FACTORS", "QT_AUTO_SCREEN_SCALE_FACTOR", "QT_STYLE_OVERRIDE", "QT_QPA_PLATFORMTHEME"})
    qunsetenv(name);
  qputenv("QT_FONT_DPI", "96");
  prepareOpenGl();
  QApplication application(argc, argv);
  TestBaselines test;
  return QTest::qExec(&test, argc, argv);
}
#include "test_baselines.moc"
