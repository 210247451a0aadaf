// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/lessons_feature.h"

#include <QAction>
#include <QCoreApplication>
#include <QDesktopServices>
#include <QDir>
#include <QFileInfo>
#include <QMenu>
#include <QMenuBar>
#include <QProcess>
#include <QScreen>
#include <QSettings>
#include <QUrl>
#include <algorithm>

#include "gui/docks/flat_dock.h"
#include "gui/docks/panel_area.h"
#include "gui/frame/lab.h"
#include "gui/frame/lab_json.h"
#include "gui/frame/window_frame.h"
#include "gui/lessons/lecture.h"
#include "gui/lessons/lesson_player.h"
#include "gui/lessons/lesson_view.h"
#include "gui/lessons/pointer.h"
#include "gui/lessons/targets.h"
#include "gui/look/look.h"
#include "gui/session/pins.h"
#include "gui/time/time_link.h"
#include "gui/views/first_hint.h"
#include "plain_text.h"

namespace reclab {

namespace {

/// The name of the dock that a control is in: "inspector/rate" is in "dock.inspector".
QString dockOf(const std::string& target) {
  const QString name = QString::fromStdString(target), place = name.section('/', 0, 0);
  return "dock." + (place == u"dock" ? name.section('/', 1) : place);
}

}  // namespace

LessonsFeature::LessonsFeature(WindowFrame* frame)
    : QObject(frame), frame_(frame), player_(new LessonPlayer(frame)), view_(new LessonView(player_, frame->window())) {
  dock_ = frame_->addDock("dock.lesson", tr("Lesson"), view_, Qt::LeftDockWidgetArea, 300);
  dock_->setProperty("guest", true);
  dock_->hide();
  pointer_ = new Pointer(frame_->window());
  menu_ = new QMenu(tr("&Lessons"), frame_->window());
  QAction* shows = frame_->add("lessons", {}, tr("Lessons"), QKeySequence(tr("Ctrl+L")), [this] {
    dock_->setVisible(dock_->isHidden());
    if (!dock_->isHidden()) dock_->raise();
  });
  shows->setToolTip(tr("Lessons beside the lab: each step sets it up, and asks what the picture answers"));
  menu_->addAction(shows);
  lecture_ = new Lecture(frame_, player_, view_, dock_);
  QAction* lectures =
      frame_->add("lecture", {}, tr("Lecture"), QKeySequence(tr("Shift+F5")), [this] { lecture_->setActive(!lecture_->active()); });
  lectures->setToolTip(tr("On the whole screen and in large type; Page Down and Page Up go through the steps, Esc ends it"));
  menu_->addAction(lectures);
  connect(lecture_, &Lecture::changed, this, &LessonsFeature::arrangeLecture);
  connect(player_, &LessonPlayer::opened, this, &LessonsFeature::show);
  connect(player_, &LessonPlayer::aboutToOpen, this, &LessonsFeature::makeRoom);
  connect(player_, &LessonPlayer::closed, this, &LessonsFeature::restore);
  connect(player_, &LessonPlayer::aboutToSetUp, this, [this] { pointAt({}, {}); });
  connect(dock_, &QDockWidget::visibilityChanged, this, [this] {
    if (dock_->isHidden()) pointAt({}, {});
  });
  connect(player_, &LessonPlayer::setUp, this, [this](const LabSetup* lab) {
    lab_ = lab;
    arrange(*lab);
  });
  connect(view_, &LessonView::pointWanted, this, [this](const QString& target) {
    pointAt(target, {});
    pointer_->blink();
  });
  connect(player_, &LessonPlayer::judged, this, [this] {
    if (player_->allDone()) pointAt({}, {});
  });
  connect(view_, &LessonView::linkWanted, this, &LessonsFeature::follow);
  connect(view_, &LessonView::saveWanted, this, &LessonsFeature::save);
  connect(frame_->look(), &Look::changed, view_, &LessonView::rebuild);
  connect(frame_->hint(), &FirstHint::wanted, this, [this](FirstHint::Gesture gesture) {
    if (gesture == FirstHint::lesson) open("window");
  });
  const auto wandered = [this] {
    const bool is = player_->lesson() != nullptr && player_->wandered();
    view_->showWandered(is);
    if (is && lab_ == nullptr) pointAt({}, {});  // the hand has found it
  };
  connect(frame_->session(), &SessionController::setupChanged, this, wandered);
  connect(frame_->pins(), &Pins::changed, this, wandered);
  connect(player_, &LessonPlayer::setUp, this, wandered);
  connect(player_, &LessonPlayer::answersChanged, this, &LessonsFeature::allow);
  // Before a prediction no picture of another run says what it may be.
  for (const auto signal : {&LessonPlayer::opened, &LessonPlayer::blocksChanged, &LessonPlayer::answersChanged, &LessonPlayer::closed})
    connect(player_, signal, this, &LessonsFeature::withhold);
  // Behind that of the preset, which names its own places when its run is restored.
  connect(frame_->session(), &SessionController::setupChanged, this, &LessonsFeature::lookAgain, Qt::QueuedConnection);
  // Controls of the Inspector are made anew with each model, and time has its steps with its first run.
  connect(frame_->session(), &SessionController::traceChanged, this, [this] { point(); }, Qt::QueuedConnection);
  frame_->lab()->add({"lesson", tr("step of the lesson"),
                      [this] {
                        QVariantMap value;
                        if (const Lesson* lesson = player_->lesson())
                          value = {{"lesson", QString::fromStdString(lesson->id)},
                                   {"step", static_cast<int>(player_->step())},
                                   {"before", before_},
                                   {"trains", player_->trains()}};
                        return value;
                      },
                      [this](const QVariantMap& saved) {
                        read();
                        before_ = saved["before"].toMap();
                        player_->setTrains(saved["trains"].toString());
                        player_->show(saved["lesson"].toString(), static_cast<std::size_t>(std::max(0, saved["step"].toInt())));
                      },
                      true});
}

void LessonsFeature::withhold() {
  const QString words = player_->awaitsPrediction() ? tr("The picture comes with your answer.") : QString();
  for (PanelDock* dock : frame_->area()->docks()) dock->withhold(words);
}

std::optional<Arranged> LessonsFeature::arrangedBefore(const QVariantMap& written) {
  return arrangedOf(QJsonObject::fromVariantMap(written["before"].toMap()));
}

void LessonsFeature::read() {
  if (std::exchange(read_, true)) return;
  player_->read();
  buildMenu();
  view_->rebuild();
}

void LessonsFeature::buildMenu() {
  menu_->addSeparator();
  for (const Lesson& lesson : player_->lessons().lessons) {
    const QString id = QString::fromStdString(lesson.id);
    menu_->addAction(frame_->add("lesson." + id, {}, buttonText(QString::fromStdString(lesson.title)), {}, [this, id] { open(id); }));
  }
  menu_->addSeparator();
  menu_->addAction(frame_->add("printStep", {}, tr("Print this step…"), {}, [this] {
    if (const Lesson* lesson = player_->lesson()) print(QString::fromStdString(lesson->steps[player_->step()].id));
  }));
  menu_->addAction(frame_->add("printLesson", {}, tr("Print the lesson…"), {}, [this] { print({}); }));
  menu_->addSeparator();
  menu_->addAction(frame_->add("saveAnswers", {}, tr("Save my answers…"), {}, [this] { save(); }));
  menu_->addAction(frame_->add("forgetAnswers", {}, tr("Forget my answers of this lesson"), {}, [this] {
    if (const Lesson* lesson = player_->lesson()) player_->forget(QString::fromStdString(lesson->id));
  }));
  for (const char* name : {"printStep", "printLesson"}) WindowFrame::setWhyNot(frame_->action(name), tr("No lesson is open."));
  WindowFrame::setWhyNot(frame_->action("saveAnswers"), tr("No question has been answered yet."));
  WindowFrame::setWhyNot(frame_->action("forgetAnswers"), tr("No lesson is open, or no question of it has been answered yet."));
  allow();
}

/// What there is nothing for is disabled.
void LessonsFeature::allow() {
  if (!read_) return;
  const Lesson* lesson = player_->lesson();
  for (const char* name : {"printStep", "printLesson"}) frame_->action(name)->setEnabled(lesson != nullptr);
  frame_->action("saveAnswers")->setEnabled(player_->hasAnswers());
  frame_->action("forgetAnswers")->setEnabled(lesson != nullptr && player_->answers().lessons.contains(lesson->id));
}

void LessonsFeature::begin(const QString& lesson) {
  read();
  if (!lesson.isEmpty()) open(lesson);
}

void LessonsFeature::open(const QString& id) {
  read();
  frame_->lab()->settle();                                    // what is being restored stays as it is by now
  if (player_->lesson() != nullptr && !lecture_->active()) {  // another one, or the same, in a dock that was closed
    dock_->show();
    dock_->raise();
  }
  player_->open(id);
}

void LessonsFeature::show() {
  const bool is = player_->lesson() != nullptr;
  allow();
  pointAt({}, {});
  putBackDocks();
  if (is) frame_->hint()->done(FirstHint::lesson);
  if (is == aside_) return;
  aside_ = is;
  frame_->hint()->setVisible(!is && !QSettings().value("hintSeen").toBool());
  lab_ = nullptr;
}

/// Where a hand opens a lesson it gets room at the side, in the place of models and sequence.
void LessonsFeature::makeRoom() {
  before_ = toJson(frame_->lab()->arranged()).toVariantMap();
  for (FlatDock* one : frame_->docks())
    if (one->objectName() == "dock.models" || one->objectName() == "dock.sequence") one->hide();
  dock_->show();
  dock_->raise();
  QMainWindow* window = frame_->window();
  window->resizeDocks({dock_}, {std::clamp(window->width() / 4, 300, 420)}, Qt::Horizontal);
  for (FlatDock* one : frame_->docks())  // in a narrow window the others are under it
    if (one != dock_ && one->isVisible() && !one->isFloating() && window->dockWidgetArea(one) == window->dockWidgetArea(dock_))
      window->resizeDocks({dock_, one}, {3 * window->height() / 5, window->height() / 5}, Qt::Vertical);
}

/// Where a hand closes it everything is as it was before, but for the list with what is left to do.
void LessonsFeature::restore() {
  lecture_->setActive(false);
  if (const auto before = arrangedBefore({{"before", std::exchange(before_, {})}})) {
    frame_->lab()->arrange(*before);
  } else {
    for (FlatDock* one : frame_->docks()) one->show();
    const std::vector<PanelLayout>& layouts = frame_->area()->layouts();
    frame_->area()->arrange(
        layouts[static_cast<std::size_t>(std::clamp(frame_->lab()->arranged().layout, 0, static_cast<int>(layouts.size()) - 1))]);
  }
  dock_->show();
}

/// These and no others: one, two under or beside each other, or two rows.
void LessonsFeature::arrangePanels(const QStringList& ids, bool beside) {
  PanelArea* area = frame_->area();
  const auto isRight = [&](const PanelDock* one) { return one->inSight() == ids.contains(one->info().id); };
  if (ids.isEmpty() || (!lecture_->active() && std::ranges::all_of(area->docks(), isRight))) return;
  PanelLayout layout;
  const int columns = beside || ids.size() > 2 ? 2 : 1;
  for (qsizetype i = 0; i < ids.size(); i += columns) layout.rows.push_back(ids.mid(i, columns));
  const int index = std::clamp(frame_->lab()->arranged().layout, 0, static_cast<int>(area->layouts().size()) - 1);
  area->arrange(layout);
  area->takeOver(area->layouts()[static_cast<std::size_t>(index)], area->fit(), true);
}

/// Parts of the window that an arrow brought to sight go with it, but for the one that the step points into.
void LessonsFeature::putBackDocks() {
  const Lesson* lesson = player_->lesson();
  const LabSetup* lab = lesson == nullptr ? nullptr : lesson->steps[player_->step()].lab();
  for (const auto& dock : std::exchange(brought_, {}))
    if (dock && lab != nullptr && dockOf(lab->point) == dock->objectName())
      brought_ << dock;
    else if (dock)
      dock->hide();
}

/// The views that the step names, where its run comes back with a restart or by undo; what a hand chose stays.
void LessonsFeature::lookAgain() {
  const Lesson* lesson = player_->lesson();
  const LabSetup* lab = lesson == nullptr ? nullptr : lab_at(*lesson, player_->step(), player_->shownBlocks() - 1);
  const std::string& preset = frame_->session()->setup().preset;
  if (lab == nullptr || lab->run.id != preset) return looked_.clear();
  if (const QString id = QString::fromStdString(lesson->id + '#' + std::to_string(player_->step())); std::exchange(looked_, id) != id)
    lookAt(*lab, false);
}

void LessonsFeature::lookAt(const LabSetup& lab, bool asked) {
  const QString preset = QString::fromStdString(frame_->session()->setup().preset);
  for (const std::string& place : lab.look) {
    const QString text = QString::fromStdString(place);
    if (PanelDock* dock = frame_->area()->dock(text.section(':', 0, 0)); dock && text.contains(':'))
      dock->tell("place", [preset, detail = text.section(':', 1), asked](Panel& panel) { panel.lookAt(preset, detail, asked); });
  }
}

/// The panels of a step, with what they show of all time and all values; and of a control that it points at the name and words.
void LessonsFeature::arrange(const LabSetup& lab) {
  PanelArea* area = frame_->area();
  frame_->time()->resetRange();
  for (PanelDock* dock : area->docks())
    dock->tell("hold", [](Panel& panel) {
      for (QAction* action : panel.actions())
        if (action->objectName() == u"hold") action->setChecked(false);
    });
  QStringList ids;
  for (const std::string& place : lab.look) {
    const QString id = QString::fromStdString(place).section(':', 0, 0);
    if (area->dock(id) != nullptr && !ids.contains(id)) ids << id;
  }
  if (lecture_->active()) ids = ids.mid(0, Lecture::panelsOf(frame_->window()->screen()->size()));
  // In a lecture a control that is pointed at has the room under them.
  const QString part = dockOf(lab.point);
  const bool over = lecture_->active() && std::ranges::find(frame_->docks(), part, &QObject::objectName) != frame_->docks().end();
  arrangePanels(ids, over && area->width() * 10 > frame_->window()->height() * 9);
  for (const std::string& id : lab.hide)
    if (PanelDock* dock = area->dock(QString::fromStdString(id))) dock->hide();
  lookAt(lab, true);
  target_ = QString::fromStdString(lab.point);
  words_ = sayOf(lab);
}

/// A lecture has the panels of the step that is open; after it the panels are those of before, or of the step that it ended at.
void LessonsFeature::arrangeLecture(bool begins) {
  const Lesson* lesson = player_->lesson();
  if (begins) lectured_ = player_->step();
  if (lesson == nullptr || (!begins && lectured_ == player_->step())) return;
  if (const LabSetup* lab = lab_at(*lesson, player_->step(), player_->shownBlocks() - 1)) {
    arrange(*lab);
    lab_ = lab;
    point();
  } else if (begins) {
    arrangePanels(
        frame_->area()->visiblePanels().mid(0, Lecture::panelsOf(frame_->window()->screen()->size())));  // until the picture comes
  }
}

/// Another process of the program draws the pages, as it does for who types the command.
void LessonsFeature::print(const QString& step) {
  const Lesson* lesson = player_->lesson();
  if (lesson == nullptr) return;
  if (printing_) return frame_->say(tr("A lesson is being printed; print this one when it is there."));
  const QString id = QString::fromStdString(lesson->id), title = step.isEmpty() ? tr("Print the lesson") : tr("Print this step");
  const QString file =
      frame_->chooser()->save(frame_->window(), title, (step.isEmpty() ? id : id + '-' + step) + ".pdf", tr("PDF (*.pdf)"));
  if (file.isEmpty()) return;
  const QString beside = QDir(QCoreApplication::applicationDirPath()).filePath("recurrence-lab"), name = QDir::toNativeSeparators(file);
  QStringList arguments{"--lesson", id, "--print", file};
  if (!step.isEmpty()) arguments << "--step" << step;
  printing_ = new QProcess(this);
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert("QT_QPA_PLATFORM", "offscreen");
  environment.remove("QT_SCALE_FACTOR");
  printing_->setProcessEnvironment(environment);
  const auto ended = [this, name, process = printing_.data()](bool good) {
    if (process != printing_) return;
    QString why = QString::fromUtf8(process->readAllStandardError()).trimmed().section('\n', -1).remove("recurrence-lab: ");
    if (why.isEmpty()) why = process->errorString() + '.';
    if (good)
      frame_->say(tr("The pages are in %1.").arg(name));
    else
      frame_->say(tr("Nothing was printed: %1").arg(why), Tone::warning);
    printing_ = nullptr;
    process->deleteLater();
  };
  connect(printing_, &QProcess::finished, this,
          [ended](int code, QProcess::ExitStatus how) { ended(how == QProcess::NormalExit && code == 0); });
  connect(printing_, &QProcess::errorOccurred, this, [ended](QProcess::ProcessError error) {
    if (error == QProcess::FailedToStart) ended(false);
  });
  frame_->say(tr("Drawing the pages of %1…").arg(name));
  printing_->start(QFileInfo(beside).isExecutable() ? beside : QCoreApplication::applicationFilePath(), arguments);
}

void LessonsFeature::point() {
  if (lab_ != nullptr && lab_->step && frame_->time()->length() > *lab_->step) frame_->time()->setStep(*lab_->step);
  const bool first = std::exchange(lab_, nullptr) != nullptr;
  if (first) player_->isSetUp();
  if (player_->allDone()) return pointAt({}, {});
  if (!target_.isEmpty() && (first || pointer_->target() == nullptr)) pointAt(target_, words_);
}

void LessonsFeature::pointAt(const QString& target, const QString& words) {
  target_ = target;
  words_ = words;
  if (target.isEmpty()) return pointer_->pointAt(nullptr, {});
  lecture_->makeRoomFor(target);
  QWidget* found = targetOf(frame_, target);
  if (found != nullptr && !lecture_->active())
    for (FlatDock* dock : frame_->docks())
      if (dock->isHidden() && (dock == found || dock->isAncestorOf(found)) && !brought_.contains(dock)) brought_ << dock;
  if (found == nullptr || !bringToSight(frame_, found)) {
    pointer_->pointAt(nullptr, {});
    return frame_->say(tr("The lesson points at %1, which is not on the screen now.").arg(wordsOfTarget(target)));
  }
  pointer_->pointAt(found, words.isEmpty() ? wordsAt(target) : words);
}

/// The words of the step where it points there itself, else the name of the control.
QString LessonsFeature::wordsAt(const QString& target) const {
  const Lesson* lesson = player_->lesson();
  const LabSetup* lab = lesson == nullptr ? nullptr : lesson->steps[player_->step()].lab();
  if (lab != nullptr && QString::fromStdString(lab->point) == target && !lab->say.empty()) return sayOf(*lab);
  const QWidget* found = targetOf(frame_, target);
  const QString name = found == nullptr ? QString() : nameOfTarget(frame_, target, found);
  return name.isEmpty() ? QString() : tr("Here: %1").arg(name);
}

QString LessonsFeature::sayOf(const LabSetup& lab) const {
  QString words;
  if (const auto numbered = player_->numbered(prose_of(lab.say)))
    for (const ProseSpan& span : *numbered) words += QString::fromStdString(span.text);
  return words;
}

void LessonsFeature::follow(const QString& link) {
  const QString name = link.section(':', 1);
  if (link.startsWith("look:")) {
    if (PanelDock* dock = frame_->area()->dock(name.section(':', 0, 0))) {
      frame_->area()->open(dock);
      dock->panel()->lookAt(QString::fromStdString(frame_->session()->setup().preset), name.section(':', 1), true);
    }
  } else if (link.startsWith("model:")) {
    const auto& presets = frame_->session()->library()->presets.presets();
    if (std::ranges::find(presets, name.toStdString(), &Preset::id) != presets.end()) frame_->pickModel(name);
  } else if (link.startsWith("lesson:")) {
    open(name);
  } else if (link.startsWith("https://")) {
    QDesktopServices::openUrl(QUrl(link));
  }
}

void LessonsFeature::save() {
  const QString file = frame_->chooser()->save(frame_->window(), tr("Save my answers"), "answers.json", tr("Answers (*.json)"));
  if (file.isEmpty()) return;
  const QString why = writeText(file, QString::fromStdString(text_of(player_->answers())));
  if (!why.isEmpty()) return frame_->say(why, Tone::warning);
  frame_->say(tr("Your answers are in %1.").arg(QFileInfo(file).fileName()));
}

}  // namespace reclab
