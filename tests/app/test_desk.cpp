// SPDX-License-Identifier: GPL-3.0-or-later
// The desk at the sizes that screens have: the window inside the screen, nothing cut, no plot too low to be read, and layouts that are
// always themselves. Each size and scale is a program of its own, on a screen of its own. RECLAB_SCREENSHOTS names a folder for pictures of
// them all.
#include <QAbstractSpinBox>
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QLabel>
#include <QLineEdit>
#include <QProcess>
#include <QPushButton>
#include <QScreen>
#include <QSet>
#include <QSettings>
#include <QSlider>
#include <QStyleOptionComboBox>
#include <QTabBar>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <algorithm>

#include "gui/docks/panel_area.h"
#include "gui/learning/training_bar.h"
#include "gui/literature/models_view.h"
#include "gui/session/pins.h"
#include "gui/views/inspector_view.h"
#include "gui/views/pin_chip.h"
#include "gui/views/sequence_view.h"
#include "gui/window/main_window.h"
#include "plot/plot.h"
#include "window_test.h"

using namespace reclab;

namespace {

QString where(const QWidget* widget) {
  QStringList names;
  for (const QWidget* one = widget; one != nullptr && names.size() < 5; one = one->parentWidget())
    names.prepend(one->objectName().isEmpty() ? one->metaObject()->className() : one->objectName());
  return names.join('/');
}

/// What a widget says that its size does not show.
QString cut(QWidget* widget) {
  const auto shortBy = [&](int wanted, int has, const QString& text) {
    return wanted > has + 1 ? QString("%1 \"%2\" needs %3 and has %4").arg(where(widget), text.left(60)).arg(wanted).arg(has) : QString();
  };
  if (const auto* tabs = qobject_cast<QTabBar*>(widget)) {
    for (const auto* arrow : tabs->findChildren<QToolButton*>())  // where one panel has the room of all, arrows bring the others
      if (arrow->isVisible() && tabs->window()->width() > 1200) return where(widget) + " has tabs that are not seen";
    for (int i = 0; i < tabs->count(); ++i)
      if (tabs->tabRect(i).width() < tabs->fontMetrics().horizontalAdvance(tabs->tabText(i)))
        return QString("%1: the tab \"%2\" is cut").arg(where(widget), tabs->tabText(i));
    return {};
  }
  if (const auto* label = qobject_cast<QLabel*>(widget)) {
    if (label->text().isEmpty() || qobject_cast<const ElidedLabel*>(label) != nullptr) return {};
    if (label->wordWrap()) return shortBy(label->heightForWidth(label->width()), label->height(), label->text());
    return shortBy(label->sizeHint().width(), label->width(), label->text());
  }
  if (const auto* box = qobject_cast<QComboBox*>(widget)) {
    QStyleOptionComboBox option;
    option.initFrom(box);
    option.editable = box->isEditable();
    const QRect room = box->style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, box);
    return shortBy(box->fontMetrics().horizontalAdvance(box->currentText()), room.width(), box->currentText());
  }
  if (const auto* spin = qobject_cast<QAbstractSpinBox*>(widget)) {
    const auto* line = spin->findChild<QLineEdit*>();
    return shortBy(line->fontMetrics().horizontalAdvance(line->text()), line->width() - 2, line->text());
  }
  if (qobject_cast<ElidedButton*>(widget) != nullptr) return {};  // says the rest in its tooltip
  if (widget->objectName() == "holdValues") return {};            // draws a padlock; its words are its tooltip
  if (const auto* button = qobject_cast<QAbstractButton*>(widget); button != nullptr && !button->text().isEmpty())
    return shortBy(button->sizeHint().width(), button->width(), button->text());
  return {};
}

/// Words and controls beside one another that stand on one another.
QStringList overlaps(const QWidget* window) {
  QHash<const QWidget*, QList<const QWidget*>> siblings;
  for (const QWidget* one : window->findChildren<QWidget*>()) {
    const bool says = qobject_cast<const QLabel*>(one) || qobject_cast<const QAbstractButton*>(one) ||
                      qobject_cast<const QComboBox*>(one) || qobject_cast<const QAbstractSpinBox*>(one) ||
                      qobject_cast<const QLineEdit*>(one);
    if (says && one->isVisible() && !one->visibleRegion().isEmpty()) siblings[one->parentWidget()] << one;
  }
  QStringList all;
  for (const auto& beside : siblings)
    for (qsizetype i = 0; i < beside.size(); ++i)
      for (qsizetype j = i + 1; j < beside.size(); ++j)
        if (beside[i]->geometry().intersects(beside[j]->geometry()))
          all << QString("%1 and %2 stand on one another").arg(where(beside[i]), where(beside[j]));
  return all;
}

}  // namespace

/// On one screen: started as such by the other class.
class TestScreen : public test::WindowTest {
  Q_OBJECT
  /// Till all has been laid out anew: till nothing has moved for a while.
  void layOut() {
    QHash<QString, QRect> before;
    for (int still = 0; still < 3;) {
      QTest::qWait(90);
      const auto now = places();
      still = now == before ? still + 1 : 0;
      before = now;
    }
  }
  QHash<QString, QRect> places() {
    QHash<QString, QRect> all;
    for (PanelDock* dock : window_->area()->docks())
      if (!dock->visibleRegion().isEmpty())  // one that stands behind another as a tab has the place of when it was in front
        all[dock->panel()->id()] = QRect(dock->mapTo(window_.get(), QPoint()), dock->size());
    return all;
  }
  QComboBox* layouts() {
    for (QComboBox* box : window_->findChildren<QComboBox*>())
      if (box->findText("Explore") >= 0) return box;
    return nullptr;
  }
  void pickLayout(const QString& name) {
    QComboBox* box = layouts();
    box->setCurrentIndex(box->findText(name));
    emit box->activated(box->currentIndex());
    layOut();
  }
  QStringList problems() {
    QStringList all;
    for (QWidget* widget : window_->findChildren<QWidget*>()) {
      if (!widget->isVisible() || widget->visibleRegion().isEmpty()) continue;
      if (const QString one = cut(widget); !one.isEmpty()) all << one;
      if (const auto* plot = qobject_cast<Plot*>(widget)) {
        int highest = 0;
        for (const QCPAxisRect* rect : plot->axisRects())
          if (rect->visible()) highest = std::max(highest, rect->height());
        if (!plot->axisRects().isEmpty() && highest < 120)
          all << QString("%1 is %2 high, its picture %3").arg(where(widget)).arg(plot->height()).arg(highest);
      }
    }
    for (const PinChip* chip : window_->findChildren<PinChip*>()) {
      const int room = chip->width() - (chip->compact() ? 24 : 90);
      if (!chip->isVisible() || room < 0) all << QString("the chip %1 is %2 wide").arg(chip->text()).arg(chip->width());
    }
    for (const char* id : {"dock.models", "dock.sequence", "dock.inspector", "dock.card"}) {
      const auto* dock = window_->findChild<QDockWidget*>(id);
      if (dock->isVisible() && dock->width() < 220) all << QString("%1 is %2 wide").arg(id).arg(dock->width());
    }
    return all;
  }
  void shoot(const QString& name) {
    const QString folder = qEnvironmentVariable("RECLAB_SCREENSHOTS");
    if (folder.isEmpty()) return;
    QDir().mkpath(folder);
    const QSize size = window_->screen()->size() * window_->devicePixelRatioF();
    window_->grab().save(
        QString("%1/%2x%3-%4-%5.png").arg(folder).arg(size.width()).arg(size.height()).arg(window_->devicePixelRatioF()).arg(name));
  }

  QString seen() const {
    return QStringLiteral("%1x%2 at %3").arg(window_->width()).arg(window_->height()).arg(window_->devicePixelRatioF());
  }

 private slots:
  void theWholeDesk() {
    if (qEnvironmentVariable("RECLAB_ONE_SCREEN") != "desk") return;
    test::forgetAll();
    Options options;
    options.model = "bidirectional-lstm";
    open(options);
    layOut();
    const QRect screen = window_->screen()->availableGeometry();
    QVERIFY2(screen.contains(window_->frameGeometry()), qPrintable(QString("a window of %1x%2 on a screen of %3x%4")
                                                                       .arg(window_->width())
                                                                       .arg(window_->height())
                                                                       .arg(screen.width())
                                                                       .arg(screen.height())));
    QVERIFY(window_->minimumSizeHint().width() <= screen.width() && window_->minimumSizeHint().height() <= screen.height());
    for (const quint64 seed : {2, 3, 4, 1}) {  // four runs, and the last one is shown
      emit window_->inspector()->seedEdited(seed, 0);
      QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.seed == seed, test::patience);
      window_->action("pin")->trigger();
    }
    QCOMPARE(window_->pins()->runs().size(), std::size_t{4});
    layOut();

    QStringList all;
    for (const auto& [name, choice] : {std::pair{"light", ThemeChoice::light}, {"dark", ThemeChoice::dark}}) {
      look_.apply(choice);
      layOut();
      shoot(name);
      for (PanelDock* dock : window_->area()->docks()) {
        dock->raise();
        layOut();
        shoot(QString(name) + '-' + dock->panel()->id());
        for (const QString& one : problems()) all << QString("%1, %2 in front: %3").arg(name, dock->panel()->id(), one);
      }
      for (const char* id : {"dock.inspector", "dock.card", "dock.sequence", "dock.models"}) {
        window_->findChild<QDockWidget*>(id)->raise();
        layOut();
        for (const QString& one : problems()) all << QString("%1, %2 in front: %3").arg(name, id, one);
        if (QString(id) == "dock.inspector") shoot(QString(name) + "-tabs");
      }
    }
    all.removeDuplicates();
    QVERIFY2(all.isEmpty(), qPrintable("\n" + all.join('\n')));

    // A layout is itself, whatever was shown before.
    pickLayout("Explore");
    const auto before = places();
    pickLayout("Speed");
    QTest::qWait(300);
    shoot("speed");
    pickLayout("Explore");
    const auto after = places();
    QCOMPARE(QSet<QString>(after.keyBegin(), after.keyEnd()), QSet<QString>(before.keyBegin(), before.keyEnd()));
    for (auto one = before.begin(); one != before.end(); ++one)
      QVERIFY2(one.value() == after[one.key()],
               qPrintable(QString("%1 was %2 and is %3 wide").arg(one.key()).arg(one.value().width()).arg(after[one.key()].width())));

    // No link's text widens the column.
    const auto column = [&] { return window_->findChild<QDockWidget*>("dock.sequence")->width(); };
    const int width = column();
    window_->findChild<QDockWidget*>("dock.models")->raise();
    clickModel("recurrent-memory-transformer");
    window_->findChild<QDockWidget*>("dock.sequence")->raise();
    layOut();
    QCOMPARE(column(), width);
    for (const QString& one : problems()) QVERIFY2(false, qPrintable("of the recurrent memory transformer: " + one));

    // Small and large again.
    const QSize size = window_->size();
    window_->resize(window_->minimumSizeHint());
    layOut();
    window_->resize(size);
    layOut();
    shoot("again");
    for (const QString& one : problems()) QVERIFY2(false, qPrintable("after it was small: " + one));
    QCOMPARE(column(), width);
    close();
  }

  /// Six runs that have learned, in every layout, light and dark.
  void sixRunsThatLearn() {
    if (qEnvironmentVariable("RECLAB_ONE_SCREEN") != "six") return;
    test::forgetAll();
    QSettings().setValue("hintSeen", true);
    Options options;
    options.model = "elman";
    options.given["--task"] = "adding";
    options.given["--length"] = "20";
    open(options, QGuiApplication::primaryScreen()->availableSize());  // all of the screen
    TrainingChoice choice;
    choice.steps = 12;
    choice.options.batch = 4;
    window_->trainingBar()->settings()->setChoice(choice);
    for (const char* id : {"gru", "lstm", "lru", "mamba", "retnet"}) {
      Setup beside = session().setup();
      beside.preset = id;
      QCOMPARE(window_->pins()->add(beside, nullptr, {}), QString());
    }
    window_->action("train")->trigger();
    const auto rests = [&] {
      return !session().training() && atRest() && !window_->pins()->running() &&
             std::ranges::all_of(window_->pins()->runs(), &Panel::Run::whole);
    };
    QTRY_VERIFY_WITH_TIMEOUT(session().training(), test::patience);
    QTRY_VERIFY_WITH_TIMEOUT(rests(), 3 * test::patience);
    QCOMPARE(window_->pins()->runs().size(), Pins::most);
    QVERIFY(window_->trainingBar()->isVisible());
    QVERIFY2(window_->screen()->availableSize().width() - window_->width() < 8, qPrintable(seen()));
    QStringList all;
    for (const auto& [name, theme] : {std::pair{"light", ThemeChoice::light}, {"dark", ThemeChoice::dark}}) {
      look_.apply(theme);
      for (const PanelLayout& layout : window_->area()->layouts()) {
        pickLayout(layout.name);
        QTRY_VERIFY_WITH_TIMEOUT(rests(), test::patience);
        layOut();
        // What does nothing to weights that were learned is greyed beside the picture as in the inspector.
        for (const QSlider* slider : window_->area()->dock("gradient-lab")->panel()->findChildren<QSlider*>())
          if (const QSlider* own = window_->inspector()->slider(slider->objectName().section('.', -1));
              own != nullptr && slider->isVisible() && slider->isEnabled() != own->isEnabled())
            all << QString("%1, %2: %3 is greyed in one place alone").arg(name, layout.name, slider->objectName());
        shoot(QString("six-%1-%2").arg(name, layout.name).replace(' ', '-'));
        for (const QString& one : problems() + overlaps(window_.get())) all << QString("%1, %2: %3").arg(name, layout.name, one);
      }
    }
    all.removeDuplicates();
    QVERIFY2(all.isEmpty(), qPrintable(seen() + "\n" + all.join('\n')));
    close();
  }
};

namespace {

/// This program once more, on a screen of that size alone; `what`: which of its tests.
void begin(const char* what, QSize size, double scale) {
  QTemporaryDir folder;
  const QString screens = folder.filePath("screens.json");
  QFile file(screens);
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write(
      QString(
          R"({"screens": [{"name": "one", "x": 0, "y": 0, "width": %1, "height": %2, "logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}]})")
          .arg(size.width())
          .arg(size.height())
          .toUtf8());
  file.close();
  QProcess process;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert("QT_QPA_PLATFORM", "offscreen:configfile=" + screens);
  environment.insert("QT_SCALE_FACTOR", QString::number(scale));
  environment.insert("RECLAB_ONE_SCREEN", what);
  process.setProcessEnvironment(environment);
  process.setProcessChannelMode(QProcess::MergedChannels);
  process.start(QCoreApplication::applicationFilePath(), QStringList());
  QVERIFY(process.waitForFinished(500'000));
  const QByteArray said = process.readAll();
  QVERIFY2(process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0, said.right(9000).constData());
}

}  // namespace

class TestDesk : public QObject {
  Q_OBJECT

 private slots:
  void onAScreenOf_data() {
    QTest::addColumn<QSize>("size");
    QTest::addColumn<double>("scale");
    for (const QSize& size : {QSize(1280, 800), QSize(1600, 1000), QSize(2560, 1440)})
      for (const double scale : {1.0, 1.5}) QTest::addRow("%d x %d at %.1f", size.width(), size.height(), scale) << size << scale;
  }
  void onAScreenOf() {
    QFETCH(QSize, size);
    QFETCH(double, scale);
    begin("desk", size, scale);
  }
};

/// With --six: a case of its own, for it takes long.
class TestSixRuns : public QObject {
  Q_OBJECT

 private slots:
  void onAScreenOf_data() {
    QTest::addColumn<QSize>("size");
    for (const QSize& size : {QSize(1280, 800), QSize(1700, 1100), QSize(2560, 1440)})
      QTest::addRow("%d x %d", size.width(), size.height()) << size;
  }
  void onAScreenOf() {
    QFETCH(QSize, size);
    begin("six", size, 1.0);
  }
};

int main(int argc, char** argv) {
  const test::TestApplication application(argc, argv, "desk-test");
  if (qEnvironmentVariableIsSet("RECLAB_ONE_SCREEN")) {
    TestScreen test;
    return QTest::qExec(&test, argc, argv);
  }
  if (argc > 1 && QByteArrayView(argv[1]) == "--six") {
    argv[1] = argv[0];
    TestSixRuns six;
    return QTest::qExec(&six, argc - 1, argv + 1);
  }
  TestDesk test;
  return QTest::qExec(&test, argc, argv);
}

#include "test_desk.moc"
