// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/sessions/sessions_feature.h"

#include <QAction>
#include <QApplication>
#include <QBoxLayout>
#include <QClipboard>
#include <QDateTime>
#include <QDir>
#include <QEventLoop>
#include <QFileInfo>
#include <QJsonDocument>
#include <QMenu>
#include <QMessageBox>
#include <QPushButton>
#include <QSettings>
#include <QUndoStack>
#include <utility>

#include "experiment/command/command.h"
#include "gui/dialogs/file_dialogs.h"
#include "gui/frame/lab.h"
#include "gui/frame/window_frame.h"
#include "gui/look/look.h"
#include "gui/session/files.h"
#include "gui/session/pins.h"
#include "gui/session/requests.h"
#include "gui/sessions/restoring.h"
#include "gui/start/link.h"
#include "gui/views/status_line.h"
#include "plain_text.h"
#include "plot/theme.h"
#include "window_text.h"

namespace reclab {
namespace {

const QString recentKey = QStringLiteral("recentSessions");
constexpr int mostRecent = 8;
constexpr int learningPatience = 30'000;  ///< ms from one generation to the next while nothing but a training goes on
constexpr int shareOfTime = 10;           ///< writing takes at most one part of so many

void noteRecent(const QString& file) {
  QStringList files = recentSessions();
  files.removeAll(file);
  files.prepend(file);
  QSettings().setValue(recentKey, files.mid(0, mostRecent));
}

QString filter() { return QObject::tr("Sessions (*%1);;All files (*)").arg(QLatin1String(sessionSuffix)); }
QString stem(const QString& file) { return QFileInfo(file).completeBaseName(); }

}  // namespace

QStringList recentSessions() { return QSettings().value(recentKey).toStringList().mid(0, mostRecent); }

SessionsFeature::SessionsFeature(WindowFrame* frame)
    : QObject(frame),
      frame_(frame),
      session_(frame->session()),
      banner_(new Banner(frame->window()->centralWidget())),
      saves_(session_->scheduler(), {.order = JobBase::Order::all},
             {.finished = [this](const SaveKey& key, const SavedSession& saved) { take(key, saved); },
              .ended =
                  [this](const SaveKey&, const Ending& ending) {
                    saveFailed_ = ending.how != Ending::How::finished;
                    if (saveFailed_) frame_->say(ending.sentence, Tone::warning);
                  }}),
      opens_(session_->scheduler(), {.yieldsTo = {&saves_}},
             {.finished = [this](const OpenKey& key, const OpenedSession& opened) { take(key, opened); },
              .ended =
                  [this](const OpenKey&, const Ending& ending) {
                    if (ending.how == Ending::How::finished) return;
                    endRestoring();
                    refuse(ending.sentence);
                  }}),
      keeps_(session_->scheduler(), {.niceness = 10},
             {.finished =
                  [this](const QString& file, const SavedSession& saved) {
                    recovery_.wrote(file, saved.hashes);
                    if (left_ && file == standsFor_) {
                      left_->forget();
                      offerLeft();
                    }
                    interval_ = static_cast<int>(std::max<qint64>(patience_, shareOfTime * writing_.elapsed()));
                    problem_.clear();
                    emit recoverable(file);
                  },
              .ended =
                  [this](const QString&, const Ending& ending) {
                    if (ending.how != Ending::How::failed) return;
                    recoverable_.reset();
                    sayUnkept(ending.sentence);
                  }}) {
  qobject_cast<QBoxLayout*>(frame->window()->centralWidget()->layout())->insertWidget(0, banner_);
  buildActions();
  soon_.setSingleShot(true);
  connect(&soon_, &QTimer::timeout, this, &SessionsFeature::keepNow);
  connect(frame_->lab(), &Lab::changed, this, &SessionsFeature::keepSoon);
  connect(frame_->undo(), &QUndoStack::cleanChanged, this, &SessionsFeature::tellTitle);
  connect(session_, &SessionController::learningChanged, this, [this](const LearningPtr& learning) {
    tellTitle();
    if (!soon_.isActive()) soon_.start(learning->running ? std::max(interval_, learningPatience) : std::max(interval_, patience_));
  });
  connect(session_, &SessionController::runEnded, this, [this] {
    if (!opens_.running() && !opens_.waiting()) endRestoring();
  });
}

void SessionsFeature::buildActions() {
  QAction* opens = frame_->add("openSession", "open", tr("Open session…"), QKeySequence(tr("Ctrl+Shift+O")), [this] {
    const QString file = frame_->chooser()->open(frame_->window(), tr("Open a session"), filter());
    if (!file.isEmpty()) open(file);
  });
  QAction* saves = frame_->add("saveSession", "export", tr("Save session"), QKeySequence::Save, [this] {
    if (file_.isEmpty())
      saveAs();
    else
      save(file_);
  });
  QAction* savesAs = frame_->add("saveSessionAs", {}, tr("Save session as…"), QKeySequence(tr("Ctrl+Shift+S")), [this] { saveAs(); });
  saves->setToolTip(tr("All that is open as a file: models and their values, pinned runs, trainings with their weights, panels"));
  frame_->offer(ActionPlace::fileSession, opens);
  frame_->offer(ActionPlace::fileSession, recentMenu()->menuAction());
  frame_->offer(ActionPlace::fileSession, saves);
  frame_->offer(ActionPlace::fileSession, savesAs);
  frame_->offer(ActionPlace::fileSession, shareMenu()->menuAction());
}

QMenu* SessionsFeature::recentMenu() {
  auto* recent = new QMenu(tr("Recent sessions"), frame_->window());
  recent->setObjectName("recentSessions");
  recent->setToolTipsVisible(true);
  connect(recent, &QMenu::aboutToShow, this, [this, recent] {
    recent->clear();
    for (const QString& file : recentSessions()) {
      QAction* one = recent->addAction(buttonText(QFileInfo(file).fileName()), this, [this, file] { open(file); });
      one->setToolTip(safeTip(QDir::toNativeSeparators(file)));
      one->setEnabled(QFileInfo(file).isFile());
    }
    if (recent->isEmpty()) recent->addAction(tr("No session has been opened yet"))->setEnabled(false);
    recent->addSeparator();
    recent->addAction(tr("Clear this list"), this, [] { QSettings().remove(recentKey); });
  });
  return recent;
}

QMenu* SessionsFeature::shareMenu() {
  auto* share = new QMenu(tr("Share"), frame_->window());
  share->setObjectName("share");
  QAction* link = frame_->add("copyLink", "copy", tr("Copy the run as a link"), {}, [this] { copyLink(); });
  link->setToolTip(tr("A link, reclab:run?…, with which this program opens the run that is shown"));
  QAction* folder = frame_->add("sendFolder", "export", tr("Save a folder to send…"), {}, [this] { sendFolder(); });
  folder->setToolTip(tr("The session with a copy of all that it needs, for somebody else"));
  share->addActions({link, folder});
  // The line of the run is an action of another menu, which is made later.
  connect(share, &QMenu::aboutToShow, this, [this, share, link] {
    if (QAction* line = frame_->action("copyCommand")) share->insertAction(link, line);
  });
  return share;
}

// ---------------------------------------------------------------------------------------------------------------- saving

LabSnapshot SessionsFeature::snapshot() const {
  LabSnapshot lab;
  std::map<QString, LearnedPtr> weights;
  lab.state = frame_->lab()->written([&](const LearnedPtr& learned) {
    const QJsonObject named = session_->nameLearned(learned);
    if (const QString name = named["file"].toString(); !name.isEmpty()) weights[name] = learned;
    return named;
  });
  lab.weights.assign(weights.begin(), weights.end());
  lab.learners = session_->trainings();
  const auto line = [&](const Setup& setup) {
    const RunRequest request = requestFor(setup, session_->library()->presets.find(setup.preset), RecordingOptions{});
    lab.lines << QString::fromStdString(command_of(request, setup.device));
  };
  line(session_->setup());
  for (const PinValue& pin : frame_->pins()->value()) {
    Setup setup = pin.setup;
    setup.sequence = session_->setup().sequence;
    line(setup);
  }
  return lab;
}

SessionPlan SessionsFeature::plan(const QString& file) const {
  SessionPlan plan;
  plan.file = file;
  plan.store = session_->folderOfTrainings();
  plan.before = document_;
  plan.known = frame_->lab()->ids();
  return plan;
}

void SessionsFeature::saveAs() {
  QString file =
      frame_->chooser()->save(frame_->window(), tr("Save the session"),
                              (file_.isEmpty() ? QString::fromStdString(session_->setup().preset) : stem(file_)) + sessionSuffix, filter());
  if (file.isEmpty()) return;
  if (!isSessionFile(file)) {
    file += sessionSuffix;
    const QString place = QDir::toNativeSeparators(file);  // the dialog has asked about another name
    if (QFileInfo::exists(file) && !mayReplace(frame_->window(), tr("Save session"), tr("%1 is there already.").arg(place))) return;
  }
  save(file);
}

void SessionsFeature::save(const QString& file, bool sends) {
  if (!session_->library() || !session_->setup().sequence)
    return frame_->say(tr("There is nothing to save yet: the window is still being opened."), Tone::warning);
  SessionPlan plan = this->plan(QFileInfo(file).absoluteFilePath());
  plan.copiesData = sends;
  // Weights of a training that runs are of the step that it is at then.
  SaveKey key{plan.file, frame_->undo()->index(), sends, learned()};
  saves_.start(std::move(key), [lab = snapshot(), plan = std::move(plan)](const auto&, std::stop_token) { return saveSession(lab, plan); });
}

void SessionsFeature::take(const SaveKey& key, const SavedSession& saved) {
  if (!key.sends) {
    setSession(key.file, saved.document, false);
    learned_ = key.learned;
    if (frame_->undo()->index() == key.steps)
      frame_->undo()->setClean();
    else
      frame_->undo()->resetClean();
    tellTitle();
  }
  QStringList words{tr("The session is in %1.").arg(QDir::toNativeSeparators(key.file))};
  frame_->say((words + saved.notes).join(' '), saved.notes.isEmpty() ? Tone::info : Tone::warning);
  emit sessionSaved(key.file);
}

void SessionsFeature::sendFolder() {
  const QString own = file_.isEmpty() ? QString::fromStdString(session_->setup().preset) : stem(file_), name = own + sessionSuffix;
  const QString folder =
      frame_->chooser()->folder(frame_->window(), tr("Save a folder to send"), folderNameOf(own.toStdString(), QStringLiteral("session")));
  if (folder.isEmpty()) return;
  if (mayReplaceFiles(frame_->window(), tr("Save a folder to send"), folder, {name})) save(QDir(folder).filePath(name), true);
}

void SessionsFeature::copyLink() {
  if (!session_->library() || !session_->trace()) return frame_->say(tr("There is no run yet that a link could open."), Tone::warning);
  try {
    QApplication::clipboard()->setText(linkOf(session_->shownSetup(), *session_->library()));
    frame_->say(tr("The link that opens this run is in the clipboard."));
  } catch (const Error& error) {
    frame_->say(windowText(error), Tone::warning);
  }
}

// --------------------------------------------------------------------------------------------------------------- opening

void SessionsFeature::open(const QString& file) {
  if (!session_->library() || isBusy() || !mayLeave(tr("Open without saving"))) return;
  start({QFileInfo(file).absoluteFilePath(), {}, Origin::any});
}

/// Of what was left older generations are tried.
void SessionsFeature::refuse(const QString& why) {
  frame_->say(why, Tone::warning);
  if (left_ && tried_ > 0) return openLeft();
  emit refused();
}

void SessionsFeature::start(const OpenKey& key) {
  if (!beginRestoring(key.file)) return refuse(twiceEnded(key.file));
  // A training that the session has too is compared with what is on the disk.
  if (const QString why = session_->keepTrainings(); !why.isEmpty()) {
    endRestoring();
    return refuse(why);
  }
  frame_->say(tr("Opening %1…").arg(QFileInfo(key.file).fileName()), Tone::busy);
  opens_.start(key, [key, store = session_->folderOfTrainings(), library = session_->library()](const auto&, std::stop_token) {
    return openSession(key.file, key.beside, store, library, key.origin);
  });
}

void SessionsFeature::take(const OpenKey& key, const OpenedSession& opened) {
  session_->stop();
  session_->keepTrainings();
  session_->beginWith(opened.trainings);
  const auto unlearned = frame_->lab()->open(opened.state, opened.sequence);
  QStringList notes = opened.notes;
  if (unlearned && !unlearned->isEmpty())
    notes << tr("These runs are untrained now, with weights drawn from the seed: %1.").arg(unlearned->join(QStringLiteral(", ")));
  if (key.origin == Origin::own) {
    adopt(opened.document["session"].toObject());
    changedBefore_ = true;
    tellTitle();
    recoverable_.reset();
    opened_ = true;
    keepNow();  // before that of the process that is gone is forgotten
  } else {
    setSession(opened.file, opened.document, false);
    learned_ = learned();
    tellTitle();
  }
  connect(
      session_, &SessionController::runEnded, this,
      [this, notes] {
        if (!notes.isEmpty()) frame_->say(notes.join(' '), Tone::warning);
      },
      Qt::SingleShotConnection);
  emit sessionOpened();
}

// ------------------------------------------------------------------------------------------- the session that is open

void SessionsFeature::setSession(const QString& file, const QJsonObject& document, bool changed) {
  file_ = file;
  document_ = document;
  changedBefore_ = changed;
  if (!file.isEmpty()) noteRecent(file);
  tellTitle();
}

std::map<std::uint64_t, std::int64_t> SessionsFeature::learned() const {
  std::map<std::uint64_t, std::int64_t> steps;
  for (const auto& learner : session_->trainings()) steps[learner->number()] = learner->curve()->done;
  return steps;
}

bool SessionsFeature::hasChanges() const {
  return (changedBefore_ && !file_.isEmpty()) || !frame_->undo()->isClean() || learned() != learned_;
}

void SessionsFeature::tellTitle() {
  const QString program = tr("Recurrence Lab");
  // "[*]" in a name is no place for the mark of changes, but a text.
  frame_->window()->setWindowTitle(file_.isEmpty() ? program : stem(file_).replace("[*]", "[*][*]") + QStringLiteral("[*] — ") + program);
  frame_->window()->setWindowModified(isChanged());
}

QJsonObject SessionsFeature::kept() const {
  return file_.isEmpty() ? QJsonObject() : QJsonObject{{"file", file_}, {"changed", isChanged()}};
}

void SessionsFeature::adopt(const QJsonObject& kept) {
  const QString file = kept["file"].toString();
  QFile there(file);
  const QJsonObject document = !file.isEmpty() && there.open(QIODevice::ReadOnly) ? documentOf(there.readAll()) : QJsonObject();
  setSession(file, document, kept["changed"].toBool() || document.isEmpty());
  learned_ = learned();
  tellTitle();
}

QString SessionsFeature::changes() const {
  std::int64_t steps = 0;
  for (const auto& [number, done] : learned())
    if (const auto before = learned_.find(number); before == learned_.end() || before->second != done)
      steps += done - (before == learned_.end() ? 0 : before->second);
  QStringList words;
  if (steps > 0) words << tr("%1 steps of training").arg(grouped(steps));
  if (const int done = frame_->undo()->index() - std::max(0, frame_->undo()->cleanIndex()); done > 0)
    words << (done == 1 ? tr("1 change by hand") : tr("%1 changes by hand").arg(done));
  return words.isEmpty() ? tr("changes") : words.join(tr(" and "));
}

bool SessionsFeature::mayLeave(const QString& then) {
  finishSaving();
  if (!hasChanges()) return true;
  QMessageBox question(QMessageBox::Question, tr("Session"),
                       file_.isEmpty()
                           ? tr("What is open is in no session, and would be gone: %1.").arg(changes())
                           : tr("%1 does not have what was done since it was saved: %2.").arg(QFileInfo(file_).fileName(), changes()),
                       QMessageBox::NoButton, frame_->window());
  question.setTextFormat(Qt::PlainText);
  const auto* saves = question.addButton(tr("Save"), QMessageBox::AcceptRole);
  const auto* leaves = question.addButton(then, QMessageBox::DestructiveRole);
  question.setDefaultButton(question.addButton(tr("Cancel"), QMessageBox::RejectRole));
  question.exec();
  if (question.clickedButton() == leaves) return true;
  if (question.clickedButton() != saves) return false;
  saveFailed_ = true;  // unless it is saved, or where no file is chosen for it
  frame_->action("saveSession")->trigger();
  finishSaving();
  return !saveFailed_;
}

void SessionsFeature::sayUnkept(const QString& why) {
  if (std::exchange(problem_, why) != why)
    frame_->say(tr("What is open cannot be kept for a start after a crash: %1").arg(why), Tone::warning);
}

/// Waits for what is being saved.
void SessionsFeature::finishSaving() {
  if (!saves_.running() && !saves_.waiting()) return;
  frame_->say(tr("The session is being saved…"), Tone::busy);
  QEventLoop loop;
  QTimer look;
  connect(&look, &QTimer::timeout, &loop, [&] {
    if (!saves_.running() && !saves_.waiting()) loop.quit();
  });
  look.start(20);
  loop.exec(QEventLoop::ExcludeUserInputEvents);
}

void SessionsFeature::close() {
  soon_.stop();
  keeps_.dropAndWait();  // otherwise its folder is made anew behind us
  recovery_.close();
  if (left_ && (opened_ || !standsFor_.isEmpty())) left_->forget();  // it was opened here, and is closed as all that is open
  endRestoring();
}

bool SessionsFeature::mayClose(bool asks) {
  // The next start has a state that is in no session.
  if (asks && isChanged()) return mayLeave(tr("Close without saving"));
  finishSaving();
  return true;
}

// -------------------------------------------------------------------------------------------------------------- recovery

void SessionsFeature::keepSoon() {
  tellTitle();
  const int wait = std::max(interval_, patience_);
  if (!soon_.isActive() || soon_.remainingTime() > wait) soon_.start(wait);
}

void SessionsFeature::setPatience(int milliseconds) {
  patience_ = milliseconds;
  if (soon_.isActive()) soon_.start(patience_);
}

void SessionsFeature::keepNow() {
  soon_.stop();
  if (!session_->library() || !session_->setup().sequence) return;
  if (keeps_.running() || keeps_.waiting()) return soon_.start(std::max(interval_, patience_));
  LabState state = frame_->lab()->state();
  if (recoverable_ && *recoverable_ == state) return;
  recoverable_ = std::move(state);
  const QString file = recovery_.next();
  if (file.isEmpty()) return sayUnkept(tr("%1 cannot be written.").arg(QDir::toNativeSeparators(Recovery::standardFolder())));
  if (std::exchange(opened_, false)) standsFor_ = file;
  SessionPlan plan = this->plan(file);
  plan.beside = recovery_.filesOf();
  plan.copiesTrainings = false;
  plan.alsoKept = recovery_.needed();
  plan.more = {{"saved", QDateTime::currentDateTimeUtc().toString(Qt::ISODate)}, {"session", kept()}};
  writing_.start();
  keeps_.start(file, [lab = snapshot(), plan](const auto&, std::stop_token) { return saveSession(lab, plan); });
}

void SessionsFeature::offerLeft() {
  left_ = recovery_.left();
  tried_ = 0;
  standsFor_.clear();
  if (!left_) return banner_->hide();
  QFile file(left_->files.front());
  const QJsonObject document = file.open(QIODevice::ReadOnly) ? documentOf(file.readAll()) : QJsonObject();
  const QString when = QLocale().toString(QFileInfo(file).lastModified(), QLocale::ShortFormat),
                session = document.value("session")["file"].toString();
  QString name = QFileInfo(session).fileName();
  if (name.isEmpty()) {
    const std::string id = document.value("state")["shown"]["preset"].toString().toStdString();
    const std::vector<Preset>& presets = session_->library()->presets.presets();
    const auto preset = std::ranges::find(presets, id, &Preset::id);
    name = QString::fromStdString(preset == presets.end() ? id : preset->title);
  }
  banner_->show(tr("The program ended without being closed. %1 can be opened as it was at %2.").arg(name, when));
  offer();
}

void SessionsFeature::offer() {
  if (tried_ < left_->files.size()) banner_->offer(tr("Open it"), [this] { openLeft(); });
  banner_->offer(tr("Forget it"), [this] {
    left_->forget();
    offerLeft();
  });
}

/// The newest generation that was not tried yet. Its folder goes as soon as what is open is kept again.
void SessionsFeature::openLeft() {
  if (tried_ == 0 && !mayLeave(tr("Open without saving"))) return offer();
  if (tried_ < left_->files.size()) {
    banner_->hide();
    return start({left_->files[tried_++], left_->beside, Origin::own});
  }
  banner_->show(tr("What was open cannot be read; it stays in %1.").arg(QDir::toNativeSeparators(left_->folder)));
  offer();
}

}  // namespace reclab
