// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/lessons_feature.h"

#include <QAction>
#include <QDesktopServices>
#include <QFileInfo>
#include <QMenu>
#include <QMenuBar>
#include <QSettings>
#include <QUrl>
#include <algorithm>

#include "gui/docks/flat_dock.h"
#include "gui/docks/panel_area.h"
#include "gui/frame/lab.h"
#include "gui/frame/window_frame.h"
#include "gui/lessons/lesson_player.h"
#include "gui/lessons/lesson_view.h"
#include "gui/lessons/pointer.h"
#include "gui/lessons/targets.h"
#include "gui/look/look.h"
#include "gui/time/time_link.h"
#include "gui/views/first_hint.h"
#include "plain_text.h"

namespace reclab {

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
  connect(player_, &LessonPlayer::opened, this, &LessonsFeature::show);
  connect(player_, &LessonPlayer::aboutToOpen, this, &LessonsFeature::makeRoom);
  connect(player_, &LessonPlayer::closed, this, &LessonsFeature::restore);
  connect(player_, &LessonPlayer::aboutToSetUp, this, [this] { pointAt({}, {}); });
  connect(player_, &LessonPlayer::setUp, this, [this](const LabSetup* lab) {
    lab_ = lab;
    arrange(*lab);
  });
  connect(view_, &LessonView::pointWanted, this, [this](const QString& target) { pointAt(target, {}); });
  connect(view_, &LessonView::linkWanted, this, &LessonsFeature::follow);
  connect(view_, &LessonView::saveWanted, this, &LessonsFeature::save);
  connect(frame_->look(), &Look::changed, view_, &LessonView::rebuild);
  const auto wandered = [this] {
    const bool is = player_->lesson() != nullptr && player_->wandered();
    view_->showWandered(is);
    if (is && lab_ == nullptr) pointAt({}, {});  // the hand has found it
  };
  connect(frame_->session(), &SessionController::setupChanged, this, wandered);
  connect(player_, &LessonPlayer::setUp, this, wandered);
  // Controls of the Inspector are made anew with each model, and time has its steps with its first run.
  connect(frame_->session(), &SessionController::traceChanged, this, [this] { point(); }, Qt::QueuedConnection);
  frame_->lab()->add({"lesson", tr("step of the lesson"),
                      [this] {
                        QVariantMap value;
                        if (const Lesson* lesson = player_->lesson())
                          value = {{"lesson", QString::fromStdString(lesson->id)}, {"step", static_cast<int>(player_->step())}};
                        return value;
                      },
                      [this](const QVariantMap& saved) {
                        read();
                        player_->show(saved["lesson"].toString(), static_cast<std::size_t>(std::max(0, saved["step"].toInt())));
                      },
                      true});
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
  menu_->addAction(frame_->add("saveAnswers", {}, tr("Save my answers…"), {}, [this] { save(); }));
  menu_->addAction(frame_->add("forgetAnswers", {}, tr("Forget my answers of this lesson"), {}, [this] {
    if (const Lesson* lesson = player_->lesson()) player_->forget(QString::fromStdString(lesson->id));
  }));
}

void LessonsFeature::begin(const QString& lesson) {
  read();
  if (!lesson.isEmpty()) open(lesson);
}

void LessonsFeature::open(const QString& id) {
  read();
  frame_->lab()->settle();  // what is being restored stays as it is by now
  player_->open(id);
}

void LessonsFeature::show() {
  const bool is = player_->lesson() != nullptr;
  frame_->action("forgetAnswers")->setEnabled(is);
  pointAt({}, {});
  if (is == aside_) return;
  aside_ = is;
  frame_->hint()->setVisible(!is && !QSettings().value("hintSeen").toBool());
  lab_ = nullptr;
}

/// Where a hand opens a lesson it gets room at the side, in the place of models and sequence.
void LessonsFeature::makeRoom() {
  before_ = frame_->lab()->arranged();
  for (FlatDock* one : frame_->docks())
    if (one->objectName() == "dock.models" || one->objectName() == "dock.sequence") one->hide();
  dock_->show();
  dock_->raise();
  frame_->window()->resizeDocks({dock_}, {std::clamp(frame_->window()->width() / 4, 300, 420)}, Qt::Horizontal);
}

/// Where a hand closes it everything is as it was before, but for the list with what is left to do.
void LessonsFeature::restore() {
  if (before_) {
    frame_->lab()->arrange(*before_);
  } else {
    for (FlatDock* one : frame_->docks()) one->show();
    const std::vector<PanelLayout>& layouts = frame_->area()->layouts();
    frame_->area()->arrange(
        layouts[static_cast<std::size_t>(std::clamp(frame_->lab()->arranged().layout, 0, static_cast<int>(layouts.size()) - 1))]);
  }
  before_.reset();
  dock_->show();
}

/// The panels of a step, and no others: one, two under each other, or two rows.
void LessonsFeature::arrange(const LabSetup& lab) {
  PanelArea* area = frame_->area();
  QStringList ids;
  for (const std::string& place : lab.look) {
    const QString id = QString::fromStdString(place).section(':', 0, 0);
    if (area->dock(id) != nullptr && !ids.contains(id)) ids << id;
  }
  QStringList shown = area->visiblePanels(), wanted = ids;
  shown.sort();
  wanted.sort();
  if (!ids.isEmpty() && shown != wanted) {
    PanelLayout layout;
    for (qsizetype i = 0; i < ids.size(); i += ids.size() > 2 ? 2 : 1) layout.rows.push_back(ids.mid(i, ids.size() > 2 ? 2 : 1));
    const int index = std::clamp(frame_->lab()->arranged().layout, 0, static_cast<int>(area->layouts().size()) - 1);
    area->arrange(layout);
    area->takeOver(area->layouts()[static_cast<std::size_t>(index)], area->fit(), true);
  }
  for (const std::string& id : lab.hide)
    if (PanelDock* dock = area->dock(QString::fromStdString(id))) dock->hide();
  const QString preset = QString::fromStdString(frame_->session()->setup().preset);
  for (const std::string& place : lab.look) {
    const QString text = QString::fromStdString(place);
    if (PanelDock* dock = area->dock(text.section(':', 0, 0)); dock && text.contains(':'))
      dock->panel()->lookAt(preset, text.section(':', 1), true);
  }
  target_ = QString::fromStdString(lab.point);
  words_.clear();
  if (const auto words = player_->numbered(prose_of(lab.say)))
    for (const ProseSpan& span : *words) words_ += QString::fromStdString(span.text);
}

void LessonsFeature::point() {
  if (lab_ != nullptr && lab_->step && frame_->time()->length() > *lab_->step) frame_->time()->setStep(*lab_->step);
  const bool first = std::exchange(lab_, nullptr) != nullptr;
  if (first) player_->isSetUp();
  if (!target_.isEmpty() && (first || pointer_->target() == nullptr)) pointAt(target_, words_);
}

void LessonsFeature::pointAt(const QString& target, const QString& words) {
  target_ = target;
  words_ = words;
  if (target.isEmpty()) return pointer_->pointAt(nullptr, {});
  QWidget* found = targetOf(frame_, target);
  if (found == nullptr || !bringToSight(frame_, found)) {
    pointer_->pointAt(nullptr, {});
    return frame_->say(tr("The lesson points at %1, which is not on the screen now.").arg(wordsOfTarget(target)));
  }
  pointer_->pointAt(found, words);
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
