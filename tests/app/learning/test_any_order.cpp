// SPDX-License-Identifier: GPL-3.0-or-later
// Whatever hands do, in whatever order: train, pin, fork, undo, switch, load, close, reopen. After each of it every panel, chip and line
// shows the values of the run that it names, made anew. The order is drawn from a seed; with --thorough there are 1,000 such orders, with
// --first N --orders M those of other seeds.
#include <QComboBox>
#include <QDir>
#include <QElapsedTimer>
#include <QPushButton>
#include <QToolButton>
#include <array>
#include <cstring>
#include <functional>
#include <random>

#include "gui/session/kept/training_store.h"
#include "gui/session/pins.h"
#include "gui/views/inspector_view.h"
#include "gui/views/scrubber.h"
#include "training_test.h"
#include "witness.h"

using namespace reclab;
using test::patience;

namespace {

int first = 1, orders = 12;
constexpr int deeds_of_one = 8;

}  // namespace

class TestAnyOrder : public test::TrainingTest {
  Q_OBJECT

 private:
  using Random = std::mt19937;
  static std::size_t one(Random& random, std::size_t of) { return random() % of; }  // the same on every machine, unlike a distribution
  static TrainingChoice choice() {
    TrainingChoice its;
    its.steps = 6;
    its.options.batch = 4;
    its.options.rate.rate = 0.01;
    its.windows.length = 5;
    return its;
  }

  /// All is at rest and shown, or a question is offered at the banner, which is answered.
  bool rests(Random& random) {
    QElapsedTimer since;
    for (since.start(); since.elapsed() < patience;) {
      if (test::Witness::rests(*window_)) return true;
      const QStringList offers = window_->banner()->offers();
      if (!window_->banner()->sentence().isEmpty() && !offers.isEmpty() && !session().running() && !session().training()) {
        const auto at = static_cast<int>(one(random, static_cast<std::size_t>(offers.size())));
        deeds_ << "offer: " + offers[at];
        QTest::mouseClick(window_->banner()->findChild<QPushButton*>(QStringLiteral("offer.%1").arg(at)), Qt::LeftButton);
      }
      QTest::qWait(5);
    }
    return false;
  }
  void settled() {
    window_->setFileChooser({});
    connect(&session(), &SessionController::said, this, [this](const QString& sentence, Tone) { said_ << sentence; });
    session().setTimingPatience(std::chrono::hours(1), std::chrono::hours(1));
    bar()->settings()->setChoice(choice());
    witness_.chose(choice());
  }
  void begins() {
    test::forgetAll();
    QSettings().setValue("hintSeen", true);
    QDir(TrainingStore::standardFolder()).removeRecursively();
    witness_.forgetAll();
    deeds_.clear();
    Options options;
    options.model = "elman";
    options.given["--task"] = "adding";
    options.given["--length"] = "20";
    options.given["--set"] = "width=6";
    WindowTest::open(options);
    settled();
  }
  /// A file is taken or refused.
  bool opens(const QString& file) {
    bool over = false;
    const auto ends = [&over] { over = true; };
    const std::vector<QMetaObject::Connection> heard{connect(&session(), &SessionController::sequenceLoaded, this, ends),
                                                     connect(&session(), &SessionController::sequenceRefused, this, ends),
                                                     connect(&session(), &SessionController::fileFits, this, ends),
                                                     connect(&session(), &SessionController::said, this, ends)};
    window_->openFile(file);
    const bool heardOf = QTest::qWaitFor([&] { return over; }, patience);
    for (const auto& one : heard) disconnect(one);
    return heardOf;
  }
  void presses(const char* action) {
    if (window_->action(action)->isEnabled()) window_->action(action)->trigger();
  }

  /// A deed of a hand; what is not possible now is left.
  QString deed(Random& random) {
    const auto ends = [&] { return QTest::qWaitFor([&] { return !session().training(); }, patience); };
    switch (one(random, 20)) {
      case 0:
      case 1:
      case 2: {
        presses("train");
        if (one(random, 3) == 0) {
          QTest::qWait(static_cast<int>(one(random, 30)));
          if (session().training()) presses("train");  // a pause
          return ends() ? "train, and pause" : "a pause that does not come";
        }
        return ends() ? "train" : "a training that does not end";
      }
      case 3: presses("trainStep"); return ends() ? "a step" : "a step that does not end";
      case 4: presses("pin"); return "pin";
      case 5: {
        const auto chips = window_->findChildren<PinChip*>();
        if (chips.isEmpty()) return {};
        const QString name = chips.back()->name();
        emit chips.back()->unpinWanted();
        return "unpin " + name;
      }
      case 6: {
        const auto chips = window_->findChildren<PinChip*>();
        if (chips.isEmpty()) return {};
        PinChip* chip = chips[static_cast<qsizetype>(one(random, static_cast<std::size_t>(chips.size())))];
        const QString name = chip->name();
        emit chip->lookWanted();
        return "look at " + name;
      }
      case 7: presses("fork"); return "fork";
      case 8: QTest::keyClick(window_.get(), Qt::Key_Z, Qt::ControlModifier); return "undo";
      case 9: QTest::keyClick(window_.get(), Qt::Key_Y, Qt::ControlModifier); return "redo";
      case 10:
      case 11: {
        const QString id = QStringList{"elman", "gru", "lstm", "lru"}[static_cast<qsizetype>(one(random, 4))];
        QTreeWidgetItem* item = window_->models()->itemOf(id);
        QTreeWidget* tree = window_->models()->tree();
        tree->scrollToItem(item);
        QTest::mouseClick(tree->viewport(), Qt::LeftButton, {}, tree->visualItemRect(item).center());
        return "switch to " + id;
      }
      case 12: {
        const QByteArray which = one(random, 2) == 0 ? "one.csv" : "two.csv";
        QByteArray text = which == "one.csv" ? "a,b\n" : "a,b,c\n";
        for (int i = 0; i < 60; ++i) {
          text += QByteArray::number(std::sin(i * 0.3)) + ',' + QByteArray::number(std::cos(i * 0.5));
          text += which == "one.csv" ? QByteArray("\n") : ',' + QByteArray::number(i % 3) + '\n';
        }
        return (opens(written(which, text)) ? "load " : "a file that is not heard of again: ") + which;
      }
      case 13: {
        const QString file = folder_.filePath(QStringLiteral("weights-%1.npz").arg(++files_));
        bool saved = false;
        connect(&session(), &SessionController::saved, this, [&](const QString&) { saved = true; }, Qt::SingleShotConnection);
        session().saveFile(FileKind::weights, file);
        if (!QTest::qWaitFor([&] { return saved; }, patience)) return "weights that are not written";
        witness_.wrote(file, *window_);
        return opens(file) ? "save its weights, and load them" : "weights that are not heard of again";
      }
      case 14: {
        if (!bar()->isVisible()) return {};
        const Qt::Key key = std::array{Qt::Key_Home, Qt::Key_End, Qt::Key_Left, Qt::Key_Right}[one(random, 4)];
        for (std::size_t i = 0; i <= one(random, 3); ++i) QTest::keyClick(bar()->strip(), key);
        return "along the time of training";
      }
      case 15: {
        const QString text = QString::number(5 + one(random, 2));
        emit window_->inspector()->edited("width", text, false, 0);
        return "width " + text;
      }
      case 16: {
        const std::uint64_t seed = 1 + one(random, 2);
        emit window_->inspector()->seedEdited(seed, 0);
        return QStringLiteral("seed %1").arg(seed);
      }
      case 17: {
        for (QComboBox* box : window_->findChildren<QComboBox*>()) {
          const int at = box->findText("Explore");
          if (at < 0) continue;
          const int to =
              static_cast<int>(one(random, static_cast<std::size_t>(box->count() - 1)));  // but the last, which hides what hands need here
          box->setCurrentIndex(to);
          emit box->activated(to);
          return "layout " + box->itemText(to);
        }
        return "no layouts";
      }
      case 18: {
        for (std::size_t i = 0; i <= one(random, 5); ++i)
          QTest::keyClick(window_->scrubber()->strip(), std::array{Qt::Key_Left, Qt::Key_Right, Qt::Key_Home, Qt::Key_End}[one(random, 4)]);
        return "along the sequence";
      }
      default: {
        if (one(random, 3) == 0) {
          presses("resetTraining");
          return "reset the training";
        }
        close();
        window_ = std::make_unique<MainWindow>(&look_, Options{});
        window_->show();
        if (!QTest::qWaitForWindowExposed(window_.get())) return "a window that is not seen";
        window_->activateWindow();
        if (!QTest::qWaitFor([&] { return session().library() && session().trace(); }, patience)) return "a window that does not begin";
        settled();
        return "close, and open again";
      }
    }
  }

  test::Witness witness_;
  QStringList deeds_, said_;  ///< since the last deed
  int files_ = 0, done_ = 0;

 private slots:
  void cleanup() { close(); }

  void everyPanelShowsTheRunThatItNames_data() {
    QTest::addColumn<int>("seed");
    for (int seed = first; seed < first + orders; ++seed) QTest::addRow("%d", seed) << seed;
  }
  void everyPanelShowsTheRunThatItNames() {
    QFETCH(int, seed);
    Random random(static_cast<Random::result_type>(seed));
    begins();
    for (int i = 0; i < deeds_of_one; ++i) {
      said_.clear();
      const QString did = deed(random);
      if (did.isEmpty()) continue;
      deeds_ << did;
      ++done_;
      // Another panel in front.
      const auto& docks = window_->area()->docks();
      docks[one(random, docks.size())]->raise();
      const bool rested = rests(random);
      QStringList wrong;
      QElapsedTimer since;
      since.start();
      do {  // a picture is late by a moment, for it is drawn when the window has time
        QTest::qWait(1);
        wrong = witness_.look(*window_);
      } while (!wrong.isEmpty() && since.elapsed() < 3000);
      const QString told = deeds_.join("; "),
                    says = window_->statusLine()->facts() + " | " + window_->banner()->sentence() + '\n' + said_.join('\n');
      QVERIFY2(rested, qPrintable(told + "\nis not at rest: " + says));
      QVERIFY2(wrong.isEmpty(), qPrintable(told + '\n' + wrong.join('\n') + '\n' + says));
    }
  }
  void cleanupTestCase() {
    QVERIFY(done_ > orders * deeds_of_one / 2);
    qInfo("%d deeds, %d values and texts compared", done_, witness_.compared());
  }
};

int main(int argc, char** argv) {
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i) {
    if (std::strcmp(argv[i], "--thorough") == 0)
      orders = 1000;
    else if (std::strcmp(argv[i], "--first") == 0 && i + 1 < argc)
      first = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--orders") == 0 && i + 1 < argc)
      orders = std::atoi(argv[++i]);
    else
      rest.push_back(argv[i]);
  }
  return test::runWindowTest<TestAnyOrder>(static_cast<int>(rest.size()), rest.data(), "any-order-test");
}
#include "test_any_order.moc"
