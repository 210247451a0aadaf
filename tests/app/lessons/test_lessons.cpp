// SPDX-License-Identifier: GPL-3.0-or-later
// Every lesson, played in the window as a student would: each step is opened, its numbers are there, a wrong answer gets its own words, the
// right one is taken, what is to be done is done, and what the arrow points at is on the screen.
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QPushButton>
#include <QRadioButton>
#include <QScrollArea>
#include <QSlider>
#include <QUndoStack>
#include <algorithm>

#include "experiment/command/typed_run.h"
#include "gui/docks/flat_dock.h"
#include "gui/docks/panel_area.h"
#include "gui/frame/lab.h"
#include "gui/learning/training_bar.h"
#include "gui/lessons/lesson_player.h"
#include "gui/lessons/lesson_view.h"
#include "gui/lessons/lessons_feature.h"
#include "gui/lessons/pointer.h"
#include "gui/lessons/question_box.h"
#include "gui/lessons/targets.h"
#include "gui/session/pins.h"
#include "gui/time/time_link.h"
#include "gui/views/inspector_view.h"
#include "load.h"
#include "plain_text.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

namespace {
bool thorough = false;
}

class TestLessons : public test::WindowTest {
  Q_OBJECT

 private:
  LessonsFeature& lessons() const { return *window_->lessons(); }
  LessonPlayer& player() const { return *lessons().player(); }
  LessonView& view() const { return *lessons().view(); }

  void openWindow(QSize size = QSize(1500, 950)) {
    test::forgetAll();
    QFile::remove(LessonPlayer::answersFile());
    open(onWaves(), size);
  }
  bool quiet() const {
    const bool is = QTest::qWaitFor([this] { return atRest() && !window_->pins()->running(); }, patience);
    QCoreApplication::processEvents();  // cursor and arrow follow the run by a queued call
    return is;
  }
  /// The words of the question, without the marks of HTML; once they are more than the dots of what is not measured yet.
  static QString plain(const QLabel* label) {
    QString text = label->text();
    text.remove(QRegularExpression("<[^>]*>|[_^{}]"));
    return text.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").simplified();
  }
  static QString plain(const Prose& words) {
    QString text;
    for (const ProseSpan& span : words) text += QString::fromStdString(span.text);
    return text.remove(QRegularExpression("[_^{}]")).simplified();
  }
  QuestionBox* boxOf(const Question& question) const {
    for (QuestionBox* box : view().questions())
      if (box->question().id == question.id) return box;
    return nullptr;
  }
  const Question& firstQuestion() const { return *questions_of(*player().lesson()).front(); }
  /// As a hand does it, by the menu.
  void openByHand(const QString& id) {
    QMenuBar* bar = window_->menuBar();
    QMenu* menu = lessons().menu();
    QTest::mouseClick(bar, Qt::LeftButton, {}, bar->actionGeometry(menu->menuAction()).center());
    QTRY_VERIFY(menu->isVisible());
    QTest::mouseClick(menu, Qt::LeftButton, {}, menu->actionGeometry(window_->action("lesson." + id)).center());
    QTRY_VERIFY_WITH_TIMEOUT(player().lesson() != nullptr && quiet(), patience);
    QCOMPARE(player().lesson()->id, id.toStdString());
  }
  /// Docks and panels, by their names.
  QStringList inPlace() const {
    QStringList all;
    for (const QDockWidget* dock : window_->findChildren<QDockWidget*>())
      if (!dock->isHidden()) all << dock->objectName();
    all.sort();
    return all;
  }
  /// A number that the question's planned wrong answer is, or the right one.
  double truth(const Question& question, const std::string& expression) const {
    LabRuns runs(*lab(), session().library()->presets, measured_in(*player().lesson(), *lab()));
    return evaluate(expression.empty() ? question.measure : expression, runs.measuring());
  }
  bool hasTrained() const { return session().learning() && !session().learning()->trainings.empty(); }
  const LabSetup* lab() const { return lab_measured_at(*player().lesson(), player().step()); }

  void choose(const Question& question, const std::string& answer) {
    const auto at = std::ranges::find(question.order, answer) - question.order.begin();
    auto* button = boxOf(question)->findChild<QRadioButton*>(QString("answer.%1").arg(at));
    QVERIFY2(button != nullptr && button->isVisible(), answer.c_str());
    QTest::mouseClick(button, Qt::LeftButton, {}, QPoint(8, button->height() / 2));
  }
  void type(const Question& question, double value) {
    auto* field = boxOf(question)->findChild<QLineEdit*>("number");
    QVERIFY(field != nullptr);
    field->setFocus();
    field->selectAll();
    QTest::keyClicks(field, QString::number(value, 'g', 10));
    QTest::mouseClick(boxOf(question)->findChild<QPushButton*>("check"), Qt::LeftButton);
  }
  /// Takes the run of the lab with these options, as a hand does by its controls; and what is done in the window besides.
  void doIt(const std::string& further) {
    const std::size_t at = further.starts_with("view ") ? 0 : further.find(" view ");
    const std::string options = further.substr(0, at);
    const LabSetup& setup = *lab();
    if (!options.empty()) {
      const TypedRun run = with_options(setup.run, options);
      Options typed;
      typed.model = QString::fromStdString(run.id);
      typed.given = run.given;
      Setup after = beginning(typed, *session().library());
      const Preset& preset = session().library()->presets.find(run.id);
      const Preset of = is_given(run.given, "--trained") ? as_trained(preset) : preset;
      after.sequence = loadChoice(sequence_of(run.given, of, of.task_length));
      if (after.sequence->choice == session().setup().sequence->choice) after.sequence = session().setup().sequence;
      window_->lab()->change("by the test", [&] { session().apply(after, false); });
      QVERIFY(quiet());
      if (run.trains) {
        TrainingChoice choice;
        static_cast<TrainingPlan&>(choice) = training_request_of(run.given, preset);
        window_->trainingBar()->settings()->setChoice(choice);
        window_->action("train")->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(session().training(), patience);
        QTRY_VERIFY_WITH_TIMEOUT(!session().training(), 3 * patience);
        QVERIFY(quiet() && hasTrained());
      }
    }
    if (at == std::string::npos) return;
    PanelLayout panels;  // a row each, as a layout has them
    for (const std::string& fact : shell_words(std::string_view(further).substr(at))) {
      const QString name = QString::fromStdString(fact).section('=', 0, 0), value = QString::fromStdString(fact).section('=', 1);
      if (name == "pins")
        while (window_->pins()->pins().size() < value.toUInt()) window_->action("pin")->trigger();
      if (name == "cursor") window_->time()->setStep(value.toLongLong());
      if (name.startsWith("shown/") && value.toInt() > 0) panels.rows.push_back({name.section('/', 1)});
    }
    if (!panels.rows.empty()) window_->area()->arrange(panels);
    QVERIFY(quiet());
  }

  void playDeed(const Question& question) {
    for (const PlannedWrong& wrong : question.wrong) {
      if (view().again()->isVisible()) QTest::mouseClick(view().again(), Qt::LeftButton);
      QTRY_VERIFY_WITH_TIMEOUT(!player().wandered() && quiet(), patience);
      doIt(wrong.such_as);
      LabRuns runs(*lab(), session().library()->presets, measured_in(*player().lesson(), *lab()), wrong.such_as);
      const QString expected = plain(with_numbers(prose_of(wrong.message), runs.measuring()));
      QTRY_VERIFY2_WITH_TIMEOUT(plain(boxOf(question)->words()).contains(expected.left(30)),
                                qPrintable(plain(boxOf(question)->words()) + " is not: " + expected), patience);
    }
    QVERIFY(!player().isRight(QString::fromStdString(question.id)));
    doIt(question.answer);
    QTRY_VERIFY2_WITH_TIMEOUT(player().isRight(QString::fromStdString(question.id)), question.id.c_str(), patience);
    QVERIFY2(plain(boxOf(question)->words()).contains("Done."), qPrintable(plain(boxOf(question)->words())));
    if (!question.hint.empty()) {
      QTest::mouseClick(boxOf(question)->findChild<QPushButton*>("where"), Qt::LeftButton);
      QVERIFY2(lessons().pointer()->target() != nullptr && lessons().pointer()->isVisible(), question.hint.c_str());
      QVERIFY2(!lessons().pointer()->words().isEmpty(), question.hint.c_str());
    }
  }

  void playChoice(const Question& question) {
    const PlannedWrong& wrong = question.wrong.front();
    choose(question, wrong.answer);
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && boxOf(question) && boxOf(question)->words()->isVisible(), patience);
    QVERIFY(!player().isRight(QString::fromStdString(question.id)));
    const QString expected = plain(prose_of(wrong.message));
    QTRY_VERIFY2_WITH_TIMEOUT(plain(boxOf(question)->words()).contains(expected.left(12)), qPrintable(expected), patience);
    choose(question, question.right);
    QTRY_VERIFY_WITH_TIMEOUT(player().isRight(QString::fromStdString(question.id)), patience);
    QTRY_VERIFY_WITH_TIMEOUT(plain(boxOf(question)->words()).contains("Right."), patience);
  }

  void playNumber(const Question& question) {
    QVERIFY(numbersAreThere());
    const PlannedWrong& wrong = question.wrong.front();
    type(question, wrong.near.empty() ? (wrong.low + wrong.high) / 2.0 : truth(question, wrong.near));
    const QString expected = plain(prose_of(wrong.message));
    QVERIFY2(plain(boxOf(question)->words()).contains(expected.left(12)), qPrintable(plain(boxOf(question)->words())));
    QVERIFY(!player().isRight(QString::fromStdString(question.id)));
    type(question, truth(question, {}));
    QVERIFY2(player().isRight(QString::fromStdString(question.id)), question.id.c_str());
    QVERIFY(plain(boxOf(question)->words()).contains("Right."));
  }

  /// All words of the step that are shown, once nothing of them is measured any more.
  bool numbersAreThere() const {
    return QTest::qWaitFor(
        [this] {
          return player().hasMeasured() && std::ranges::none_of(view().findChildren<QLabel*>(), [](const QLabel* label) {
                   return label->isVisible() && label->property("waits").toBool();
                 });
        },
        patience);
  }

 private slots:
  void cleanup() { close(); }

  void eachIsPlayed_data() {
    QTest::addColumn<QString>("id");
    // Two of them, and all with --thorough.
    for (const Lesson& lesson : lesson_library(lesson_folders()).lessons)
      if (thorough || lesson.id == "window" || lesson.id == "vanishing")
        QTest::newRow(lesson.id.c_str()) << QString::fromStdString(lesson.id);
  }
  void eachIsPlayed() {
    QFETCH(QString, id);
    // For a person who looks at the pictures (RECLAB_PICTURES): "1280x800", and "dark".
    const QStringList size = qEnvironmentVariable("RECLAB_WINDOW", "1500x950").split('x');
    if (qEnvironmentVariable("RECLAB_THEME") == "dark") look_.apply(ThemeChoice::dark);
    openWindow({size.value(0).toInt(), size.value(1).toInt()});
    openByHand(id);
    QVERIFY(lessons().dock()->isVisible());
    std::pair<long long, std::string> slowest;  // milliseconds, of a step
    for (std::size_t step = 0; step < player().lesson()->steps.size(); ++step) {
      const LessonStep& of = player().lesson()->steps[step];
      QVERIFY(quiet());
      QCOMPARE(player().step(), step);
      for (const Block& block : of.blocks) {
        if (std::holds_alternative<LabSetup>(block)) {
          const auto& setup = std::get<LabSetup>(block);
          QTRY_VERIFY2_WITH_TIMEOUT(quiet() && session().setup().preset == setup.run.id, setup.line.c_str(), patience);
          for (const std::string& place : setup.look) {
            PanelDock* dock = window_->area()->dock(QString::fromStdString(place).section(':', 0, 0));
            QVERIFY2(dock != nullptr, place.c_str());
            QTRY_VERIFY2_WITH_TIMEOUT(dock->inSight(), place.c_str(), patience);  // its sequence may still be loaded
            // Before there is a training there is no curve of one.
            if (dock->panel()->id() != u"learning" || hasTrained())
              QTRY_VERIFY2_WITH_TIMEOUT(dock->panel()->emptyReason().isEmpty(),
                                        qPrintable(id + ", " + QString::fromStdString(place) + ": " + dock->panel()->emptyReason()),
                                        patience);
          }
          if (!setup.point.empty())
            QTRY_VERIFY2_WITH_TIMEOUT(lessons().pointer()->target() != nullptr && lessons().pointer()->isVisible(), setup.point.c_str(),
                                      patience);
          QCOMPARE(window_->pins()->pins().size(), setup.pins.size());
        }
        const auto* question = std::get_if<Question>(&block);
        if (question == nullptr) continue;
        QVERIFY2(boxOf(*question) != nullptr, question->id.c_str());
        if (question->kind == Question::Kind::act)
          playDeed(*question);
        else if (question->kind == Question::Kind::number)
          playNumber(*question);
        else
          playChoice(*question);
        if (QTest::currentTestFailed()) {
          qWarning("in the question %s", question->id.c_str());
          return;
        }
      }
      QVERIFY2(numbersAreThere(), of.id.c_str());
      for (const QLabel* label : view().findChildren<QLabel*>())
        QVERIFY2(!label->text().contains("could not be measured") && !label->text().contains("cannot be measured"),
                 qPrintable(label->text()));
      photograph(window_.get(), QString("lesson-%1-%2-%3").arg(id).arg(step + 1).arg(QString::fromStdString(of.id)));
      if (step + 1 == player().lesson()->steps.size()) break;
      // The step is there, and the first pictures of it. A lab that waits for a prediction shows what was before it.
      test::Load load;
      QTest::mouseClick(view().next(), Qt::LeftButton);
      QVERIFY(QTest::qWaitFor(
          [&] { return player().step() == step + 1 && session().trace() && session().shownSetup() == session().setup(); }, patience));
      const std::string& name = player().lesson()->steps[step + 1].id;
      slowest = std::max(slowest, {std::llround(load.end() * 1000), name});
      QVERIFY2(load.end() < load.allowed(0.3), (name + ": " + load.text(0.3)).c_str());
    }
    qInfo("%s: the slowest step, %s, was there after %lld ms", qPrintable(id), slowest.second.c_str(), slowest.first);
    QCOMPARE(player().right(*player().lesson()), static_cast<int>(questions_of(*player().lesson()).size()));
  }

  void aStepIsOneChangeThatUndoTakesBack() {
    openWindow();
    const Setup before = session().setup();
    const QStringList places = inPlace();
    openByHand("vanishing");
    const Question question = firstQuestion();
    QCOMPARE(session().setup(), before);  // the picture waits for the prediction
    choose(question, question.right);
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && session().setup().preset == "elman", patience);
    QTest::mouseClick(view().next(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().step() == 1, patience);
    const Setup second = session().setup();
    QTest::mouseClick(view().next(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().step() == 2, patience);
    const auto undo = [this] { QTest::keyClick(window_.get(), Qt::Key_Z, Qt::ControlModifier); };
    undo();
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().step() == 1, patience);
    QVERIFY(session().setup().sameRun(second));
    QTest::keyClick(window_.get(), Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().step() == 2, patience);
    while (window_->undoStack()->canUndo()) undo();
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && session().setup() == before, patience);
    QVERIFY(player().lesson() == nullptr);
    QCOMPARE(inPlace(), places);
  }

  void whoWandersOffFindsBack() {
    openWindow();
    lessons().open("vanishing");
    QTRY_VERIFY_WITH_TIMEOUT(player().lesson() != nullptr, patience);
    player().go(1);
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().step() == 1, patience);
    QVERIFY(!view().again()->isVisible());
    const Setup step = session().setup();
    clickModel("lstm");
    QVERIFY(view().again()->isVisible());
    window_->area()->dock("gradients")->hide();
    QTest::mouseClick(view().again(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(!player().wandered() && quiet(), patience);
    Setup now = session().setup();
    now.sequence = step.sequence;  // loaded anew
    QVERIFY(now.sameRun(step));
    QVERIFY(!view().again()->isVisible());
    QTRY_VERIFY_WITH_TIMEOUT(window_->area()->dock("gradients")->inSight(), patience);
  }

  void closingALessonBringsBackThePanels_data() {
    QTest::addColumn<bool>("restarts");
    QTest::newRow("at once") << false;
    QTest::newRow("after a restart") << true;
  }
  void closingALessonBringsBackThePanels() {
    QFETCH(bool, restarts);
    openWindow();
    for (FlatDock* dock : window_->findChildren<FlatDock*>())
      if (dock->objectName() == "dock.card") dock->hide();
    QStringList before = inPlace();
    openByHand("vanishing");
    player().go(1);
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().step() == 1, patience);
    QCOMPARE(window_->area()->visiblePanels().size(), 2);
    QVERIFY(!inPlace().contains("dock.models"));
    if (restarts) {
      close();
      open(Options());
      QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().lesson() != nullptr && player().step() == 1, patience);
    }
    player().close();
    QTRY_VERIFY_WITH_TIMEOUT(quiet(), patience);
    before << "dock.lesson";  // the list, with what is left to do
    before.sort();
    QCOMPARE(inPlace(), before);
  }

  /// Nor are they gone on with; undo lists them again, and so does the end of the lesson.
  void aLessonHasNoTrainingsFromBefore() {
    openWindow();
    lessons().open("adding");
    QTRY_VERIFY_WITH_TIMEOUT(player().lesson() != nullptr && quiet(), patience);
    const auto trainOneStep = [this] {
      window_->action("trainStep")->trigger();
      QTRY_VERIFY_WITH_TIMEOUT(hasTrained() && !session().training() && quiet(), patience);
    };
    trainOneStep();
    if (QTest::currentTestFailed()) return;
    QTRY_VERIFY_WITH_TIMEOUT(window_->trainingBar()->isVisible(), patience);
    player().go(2);  // of the same lesson: its curves are compared
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && session().setup().preset == "lstm", patience);
    QVERIFY(hasTrained());
    player().open("window", 1);
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().lesson()->id == "window", patience);
    QTRY_VERIFY_WITH_TIMEOUT(!hasTrained() && !window_->trainingBar()->isVisible(), patience);
    QCOMPARE(session().trainings().size(), std::size_t{1});  // it stays kept
    QVERIFY(!window_->action("exportTraining")->isEnabled());
    QTest::keyClick(window_.get(), Qt::Key_Z, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().lesson()->id == "adding" && hasTrained(), patience);
    QVERIFY(window_->action("exportTraining")->isEnabled());
    QTest::keyClick(window_.get(), Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().lesson()->id == "window" && !hasTrained(), patience);
    close();
    open(Options());
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().lesson() != nullptr && player().lesson()->id == "window", patience);
    QVERIFY(!hasTrained() && session().trainings().size() == 1);
    // The same lesson again begins anew: its network is as it was drawn.
    player().open("adding");
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && session().setup().preset == "elman" && player().lesson()->id == "adding", patience);
    trainOneStep();
    QCOMPARE(session().learning()->trainings.size(), std::size_t{1});
    QCOMPARE(session().learning()->trainings.front()->done, std::int64_t{1});
    player().close();
    QTRY_COMPARE_WITH_TIMEOUT(session().learning()->trainings.size(), std::size_t{2}, patience);
  }

  void aStepShowsAllOfTimeAndPutsAwayWhatTheArrowBrought() {
    openWindow();
    lessons().open("attention");
    QTRY_VERIFY_WITH_TIMEOUT(player().lesson() != nullptr, patience);
    player().go(2);
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && lessons().pointer()->isVisible(), patience);
    QCOMPARE(lessons().pointer()->target()->objectName(), QString("parameter.pairs"));
    QVERIFY(inPlace().contains("dock.sequence"));
    window_->time()->setRange(10, 20);
    auto* panel = window_->area()->dock("output")->panel();
    QAction* hold = nullptr;
    for (QAction* one : panel->actions())
      if (one->objectName() == "hold") hold = one;
    QVERIFY(hold != nullptr);
    hold->setChecked(true);
    player().go(1);
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().step() == 1, patience);
    QTRY_VERIFY_WITH_TIMEOUT(window_->time()->whole(), patience);
    QVERIFY(!hold->isChecked());
    QVERIFY(!inPlace().contains("dock.sequence"));
  }

  void theViewsOfAStepComeBackWithARestart() {
    openWindow();
    lessons().open("attention");
    QTRY_VERIFY_WITH_TIMEOUT(player().lesson() != nullptr, patience);
    player().go(1);
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().step() == 1, patience);
    const auto view = [this] {
      const auto* box = window_->area()->dock("sensitivity")->panel()->findChild<QComboBox*>("view");
      return box == nullptr ? QString() : box->currentText();
    };
    QTRY_COMPARE_WITH_TIMEOUT(view(), QString("Mixing matrix"), patience);
    close();
    open(Options());
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().lesson() != nullptr && player().step() == 1, patience);
    QTRY_COMPARE_WITH_TIMEOUT(view(), QString("Mixing matrix"), patience);
  }

  void aStartWithAnotherModelIsNoStepOfTheLesson() {
    openWindow();
    const QStringList before = inPlace();
    openByHand("vanishing");
    player().go(1);
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().step() == 1, patience);
    QVERIFY(!inPlace().contains("dock.models"));
    close();
    Options options = onWaves();
    options.model = "gru";
    open(options, QSize(1500, 950));
    QVERIFY(player().lesson() == nullptr);
    QCOMPARE(inPlace(), before);
  }

  void theArrowsWordsLieBesideWhatTheyName() {
    openWindow(QSize(1280, 800));
    lessons().open("window");
    QTRY_VERIFY_WITH_TIMEOUT(player().lesson() != nullptr && quiet(), patience);
    for (std::size_t step = 0; step < 2; ++step) {
      player().go(step);
      QTRY_VERIFY_WITH_TIMEOUT(quiet() && player().step() == step && lessons().pointer()->isVisible(), patience);
      const Pointer* pointer = lessons().pointer();
      const QRectF box = pointer->box();
      QVERIFY(QRectF(window_->rect()).contains(box));
      const auto place = [this](const QWidget* one) { return QRectF(one->mapTo(window_.get(), QPoint()), one->size()); };
      QVERIFY(!box.intersects(place(pointer->target())));
      QVERIFY(!box.intersects(place(lessons().dock())));
      for (const QSlider* slider : window_->inspector()->findChildren<QSlider*>())
        if (slider->isVisible()) QVERIFY2(!box.intersects(place(slider)), qPrintable(slider->objectName()));
    }
  }

  void theEndProposesTheNext() {
    openWindow();
    const std::vector<Lesson>& all = player().lessons().lessons;
    const Lesson &first = all.at(0), &second = all.at(1);
    player().open(QString::fromStdString(first.id));
    QTRY_VERIFY_WITH_TIMEOUT(player().lesson() == &first && quiet(), patience);
    QVERIFY(view().findChild<QPushButton*>("lesson.following") == nullptr);
    player().go(first.steps.size() - 1);
    QTRY_VERIFY_WITH_TIMEOUT(player().step() == first.steps.size() - 1 && quiet(), patience);
    auto* following = view().findChild<QPushButton*>("lesson.following");
    QVERIFY(following != nullptr);
    QCOMPARE(following->text(), buttonText(QString::fromStdString(second.title)));
    view().findChild<QScrollArea*>()->ensureWidgetVisible(following);
    QTest::mouseClick(following, Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(player().lesson() == &second && player().step() == 0 && quiet(), patience);
    player().open(QString::fromStdString(all.back().id), all.back().steps.size() - 1);
    QTRY_VERIFY_WITH_TIMEOUT(player().lesson() == &all.back() && quiet(), patience);
    QVERIFY(view().findChild<QPushButton*>("lesson.following") == nullptr);
  }

  void answersAreKeptAndForgotten() {
    openWindow();
    lessons().open("vanishing");
    QTRY_VERIFY_WITH_TIMEOUT(player().lesson() != nullptr, patience);
    const Question question = firstQuestion();
    for (const char* name : {"saveAnswers", "forgetAnswers"}) QVERIFY2(!window_->action(name)->isEnabled(), name);
    choose(question, question.right);
    for (const char* name : {"saveAnswers", "forgetAnswers"}) QVERIFY2(window_->action(name)->isEnabled(), name);
    QTRY_VERIFY_WITH_TIMEOUT(quiet() && session().setup().preset == "elman", patience);
    close();
    open(Options());  // where it was left
    QTRY_VERIFY_WITH_TIMEOUT(player().lesson() != nullptr && player().lesson()->id == "vanishing", patience);
    QVERIFY(player().isRight(QString::fromStdString(question.id)));
    QTRY_VERIFY_WITH_TIMEOUT(boxOf(question) && plain(boxOf(question)->words()).contains("Right."), patience);
    // A teacher's file.
    const QString file = folder_.filePath("mine.json");
    FileChooser chooser;
    chooser.save = [file](QWidget*, const QString&, const QString&, const QString&) { return file; };
    window_->setFileChooser(chooser);
    player().setName("Ada & Co");
    window_->action("saveAnswers")->trigger();
    QFile saved(file);
    QVERIFY(saved.open(QIODevice::ReadOnly));
    const Answers answers = answers_of(saved.readAll().toStdString(), file.toStdString());
    QCOMPARE(answers.name, std::string("Ada & Co"));
    QVERIFY(answers == player().answers());
    window_->action("forgetAnswers")->trigger();
    QVERIFY(!player().isRight(QString::fromStdString(question.id)));
    QCOMPARE(player().right(*player().lesson()), 0);
    for (const char* name : {"saveAnswers", "forgetAnswers"}) QVERIFY2(!window_->action(name)->isEnabled(), name);
    player().close();
    QVERIFY(!view().findChild<QPushButton*>("lesson.save")->isEnabled());
  }

  void aDamagedFileOfAnswersIsLeftAside() {
    test::forgetAll();
    QDir().mkpath(QFileInfo(LessonPlayer::answersFile()).path());
    QFile file(LessonPlayer::answersFile());
    QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
    file.write("{\"reclab answers\": 9");
    file.close();
    open(onWaves());
    const QString aside = LessonPlayer::answersFile() + ".unread";
    QVERIFY(QFileInfo::exists(aside));
    QFile::remove(aside);
  }
};

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (QByteArray(argv[i]) == "--thorough") {
      thorough = true;
      qputenv("QTEST_FUNCTION_TIMEOUT", "3600000");
      std::rotate(argv + i, argv + i + 1, argv + argc);
      --argc;
    }
  return test::runWindowTest<TestLessons>(argc, argv, "lessons");
}
#include "test_lessons.moc"
