// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/lessons/lesson_player.h"

#include <QDateTime>
#include <QDir>
#include <QFileInfo>
#include <QStandardPaths>
#include <algorithm>
#include <utility>

#include "experiment/training/plan.h"
#include "files/files.h"
#include "gui/dialogs/field_editor.h"
#include "gui/docks/panel_area.h"
#include "gui/frame/lab.h"
#include "gui/frame/window_frame.h"
#include "gui/session/files.h"
#include "gui/session/pins.h"
#include "gui/session/requests.h"
#include "gui/start/options.h"
#include "gui/time/time_link.h"
#include "models/registry.h"
#include "window_text.h"

namespace reclab {

LessonPlayer::LessonPlayer(WindowFrame* frame)
    : QObject(frame),
      frame_(frame),
      prepares_(frame->session()->scheduler(), {},
                {.finished = [this](const Place& place, const LoadedSequencePtr& sequence) { apply(place, sequence); },
                 .ended =
                     [this](const Place&, const Ending& ending) {
                       if (ending.how == Ending::How::failed) frame_->say(ending.sentence, Tone::warning);
                     }}),
      measures_(frame->session()->scheduler(), {.niceness = 5},
                {.finished =
                     [this](const Place& place, const Known& known) {
                       if (const LabSetup* lab = labAt(place)) known_[lab] = known;
                       emit numbersCame();
                     },
                 .ended =
                     [this](const Place& place, const Ending& ending) {
                       if (ending.how != Ending::How::failed) return;
                       if (const LabSetup* lab = labAt(place)) problems_[lab] = ending.sentence;
                       emit numbersCame();
                     }}),
      deedsJob_(frame->session()->scheduler(), {.niceness = 5},
                {.finished =
                     [this](const Deed& deed, const DeedWords& found) {
                       const bool before = isRight(deed.question);
                       // What was done stays done; its words have the numbers of the last state in which it holds.
                       if (const auto had = deeds_.find(deed.question); had == deeds_.end() || !had->second.right || found.words.right)
                         deeds_[deed.question] = found.words;
                       if (found.words.right && !before && lesson_ != nullptr)
                         for (const Question* question : questions_of(lesson_->steps[step_]))
                           if (question->id == deed.question.toStdString()) note(*question, found.given, true);
                       if (found.words.right && lesson_ != nullptr)
                         done_[lesson_->id + '#' + deed.question.toStdString()] = found.words.words;
                       emit judged(deed.question);
                       judgeDeeds();  // of another question of the step, or of what was changed meanwhile
                     },
                 .ended =
                     [this](const Deed& deed, const Ending& ending) {
                       if (ending.how != Ending::How::failed) return;
                       if (const auto had = deeds_.find(deed.question); had != deeds_.end() && had->second.right) return;
                       deeds_[deed.question] = {false, {{ProseSpan::Kind::text, ending.sentence.toStdString()}}};
                       emit judged(deed.question);
                     }}) {
  soon_.setSingleShot(true);
  soon_.setInterval(150);
  connect(&soon_, &QTimer::timeout, this, &LessonPlayer::judgeDeeds);
  const auto later = [this] { soon_.start(); };
  connect(frame->session(), &SessionController::runEnded, this, later);
  connect(frame->session(), &SessionController::traceChanged, this, later);
  connect(frame->pins(), &Pins::changed, this, later);
  connect(frame->time(), &TimeLink::stepChanged, this, later);
  connect(frame->area(), &PanelArea::visiblePanelsChanged, this, later);
}

LessonPlayer::~LessonPlayer() = default;

QString LessonPlayer::answersFile() { return QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) + "/answers.json"; }

void LessonPlayer::read() {
  library_ = lesson_library(lesson_folders());
  for (const std::string& problem : library_.problems) frame_->say(QString::fromStdString(problem), Tone::warning);
  const QString file = answersFile();
  if (!QFileInfo::exists(file)) return;
  try {
    answers_ = answers_of(read_file(file.toStdString()), file.toStdString());
  } catch (const Error& error) {
    // It is left to be read by a person, and new answers go into a file of their own.
    QString aside = file + ".unread";
    for (int i = 1; QFileInfo::exists(aside); ++i) aside = QString("%1.unread.%2").arg(file).arg(i);
    QFile::rename(file, aside);
    frame_->say(tr("%1 The file is now %2.").arg(windowText(error), QDir::toNativeSeparators(aside)), Tone::warning);
  }
}

void LessonPlayer::setLecture(bool is) {
  if (is == own_.has_value()) return;
  if (is) {
    own_ = std::exchange(answers_, Answers{answers_.name});
  } else {
    answers_ = std::move(*own_);
    own_.reset();
  }
  deeds_.clear();
  judgedOf_.clear();
  emit answersChanged();
  emit blocksChanged();
  soon_.start();
}

void LessonPlayer::keep() {
  emit answersChanged();
  if (own_) return;
  QDir().mkpath(QFileInfo(answersFile()).path());
  const QString why = writeText(answersFile(), QString::fromStdString(text_of(answers_)));
  if (!why.isEmpty()) frame_->say(why, Tone::warning);
}

const LabSetup* LessonPlayer::labAt(const Place& place) const {
  const Lesson* lesson = library_.find(place.lesson.toStdString());
  return lesson == nullptr ? nullptr : lab_measured_at(*lesson, place.step);
}

const LabSetup* LessonPlayer::labOfStep() const { return lesson_ == nullptr ? nullptr : lab_measured_at(*lesson_, step_); }

void LessonPlayer::show(const QString& id, std::size_t step) {
  const Lesson* lesson = library_.find(id.toStdString());
  if (lesson != nullptr) step = std::min(step, lesson->steps.size() - 1);
  if (lesson == lesson_ && (lesson == nullptr || step == step_)) return;
  lesson_ = lesson;
  step_ = lesson == nullptr ? 0 : step;
  deeds_.clear();
  judgedOf_.clear();
  isSetUp();
  deedsJob_.drop();
  if (lesson_ != nullptr) measure();
  emit opened();
  soon_.start();
}

void LessonPlayer::open(const QString& id, std::size_t step) {
  if (const Lesson* lesson = library_.find(id.toStdString())) prepare(*lesson, std::min(step, lesson->steps.size() - 1));
}

void LessonPlayer::go(std::size_t step) {
  if (lesson_ != nullptr && step < lesson_->steps.size()) prepare(*lesson_, step);
}

void LessonPlayer::close() {
  prepares_.drop();
  show({}, 0);
  trains_.clear();
  frame_->session()->setTrainingsAside({});
  emit closed();
}

void LessonPlayer::enter(const QString& lesson, std::size_t step) {
  if (lesson_ == nullptr) emit aboutToOpen();
  show(lesson, step);
}

/// Loads the sequence of the step's lab, where it has one that may be shown; without one the step follows at once.
void LessonPlayer::prepare(const Lesson& lesson, std::size_t step) {
  const Place place{QString::fromStdString(lesson.id), step};
  const LabSetup* own = lesson.steps[step].lab();
  if (own == nullptr || blocksBefore(lesson, step) < lesson.steps[step].blocks.size() || !frame_->session()->library()) {
    prepares_.drop();
    return enter(place.lesson, step);
  }
  try {
    prepares_.start(place, [choice = choiceOf(own->run)](const auto&, std::stop_token) { return loadChoice(choice); });
  } catch (const Error& error) {
    frame_->say(windowText(error), Tone::warning);
  }
}

SequenceChoice LessonPlayer::choiceOf(const TypedRun& run) const {
  const Preset& preset = frame_->session()->library()->presets.find(run.id);
  const Preset of = is_given(run.given, "--trained") ? as_trained(preset) : preset;
  return sequence_of(run.given, of, of.task_length);
}

Setup LessonPlayer::setupOf(const TypedRun& run, const LoadedSequencePtr& sequence) const {
  Setup setup = beginning(optionsOf(run), *frame_->session()->library());
  setup.sequence = sequence;
  return setup;
}

void LessonPlayer::apply(const Place& place, const LoadedSequencePtr& sequence) {
  const Lesson* lesson = library_.find(place.lesson.toStdString());
  if (lesson == nullptr) return;
  const LabSetup& lab = *lesson->steps[place.step].lab();
  try {
    const Setup setup = setupOf(lab.run, sequence);
    std::vector<PinValue> pins;
    for (std::size_t i = 0; i < lab.pins.size(); ++i)
      pins.push_back({.id = i + 1, .setup = setupOf(lab.pins[i], sequence), .given = {}, .colour = static_cast<int>(i)});
    emit aboutToSetUp();
    // Trainings from before the lesson are no part of it.
    const bool begins = std::exchange(trains_, place.lesson) != place.lesson;
    const auto aside = std::make_shared<SessionController::Fork>();
    const auto call = [](const std::function<void()>& one) {
      if (one) one();
    };
    frame_->lab()->change(
        tr("step “%1”").arg(QString::fromStdString(lesson->steps[place.step].title)),
        [&] {
          if (begins) *aside = frame_->session()->putTrainingsAside();
          frame_->session()->apply(setup, false);
          frame_->pins()->setValue(pins);
          enter(place.lesson, place.step);
        },
        0, begins ? Lab::Aside{[=] { call(aside->undo); }, [=] { call(aside->redo); }} : Lab::Aside{});
    if (lab.run.trains) {
      // All of them: the window begins with other values than the command line.
      const TrainingRequest training = training_request_of(lab.run.given, frame_->session()->library()->presets.find(lab.run.id));
      frame_->lab()->putPart("training", savedOf(training_fields(), training));
    }
    emit setUp(&lab);
  } catch (const Error& error) {
    frame_->say(windowText(error), Tone::warning);
  }
}

bool LessonPlayer::wandered() const {
  const LabSetup* own = lesson_ == nullptr ? nullptr : lesson_->steps[step_].lab();
  const Setup& now = frame_->session()->setup();
  if (own == nullptr || shownBlocks() < lesson_->steps[step_].blocks.size() || !frame_->session()->library() || !now.sequence) return false;
  try {
    const std::vector<Pin>& pins = frame_->pins()->pins();
    const auto isPinned = [&](const TypedRun& run) {
      const Setup setup = setupOf(run, now.sequence);
      return std::ranges::any_of(pins, [&](const Pin& pin) { return pin.setup.sameRun(setup); });
    };
    return !(now.sequence->choice == choiceOf(own->run)) || !now.sameRun(setupOf(own->run, now.sequence)) ||
           !std::ranges::all_of(own->pins, isPinned);
  } catch (const Error&) {  // a line that does not run
    return false;
  }
}

/// Those up to a prediction that a lab waits for; all where none does.
std::size_t LessonPlayer::blocksBefore(const Lesson& lesson, std::size_t step) const {
  const std::vector<Block>& blocks = lesson.steps[step].blocks;
  for (std::size_t i = 0; i < blocks.size() && !std::holds_alternative<LabSetup>(blocks[i]); ++i) {
    const auto* question = std::get_if<Question>(&blocks[i]);
    if (question != nullptr && question->kind == Question::Kind::predict && given(lesson, question->id) == nullptr &&
        lesson.steps[step].lab() != nullptr)
      return i + 1;
  }
  return blocks.size();
}

bool LessonPlayer::touched(const Question& question) const {
  std::map<std::string, double> now = view();
  if (question.holds.find("view cursor") == std::string::npos && viewThen_.contains("cursor"))
    now["cursor"] = viewThen_.at("cursor");  // moving it is looking, where it is not what is asked for
  return wandered() || viewThen_ != now;
}

bool LessonPlayer::awaitsPrediction() const { return lesson_ != nullptr && shownBlocks() < lesson_->steps[step_].blocks.size(); }

std::size_t LessonPlayer::shownBlocks() const { return lesson_ == nullptr ? 0 : blocksBefore(*lesson_, step_); }

const std::vector<GivenAnswer>* LessonPlayer::given(const Lesson& lesson, const std::string& question) const {
  const auto of = answers_.lessons.find(lesson.id);
  if (of == answers_.lessons.end()) return nullptr;
  const auto found = of->second.find(question);
  return found == of->second.end() || found->second.empty() ? nullptr : &found->second;
}

void LessonPlayer::measure() {
  const LabSetup* lab = labOfStep();
  if (lab == nullptr || known_.contains(lab) || !frame_->session()->library()) return;
  problems_.erase(lab);
  measures_.start(
      {QString::fromStdString(lesson_->id), step_},
      [lab = *lab, texts = measured_in(*lesson_, *lab), library = frame_->session()->library()](const auto&, std::stop_token stop) {
        LabRuns runs(lab, library->presets, texts, {}, stop);
        return runs.measure_all(texts, stop);
      });
}

bool LessonPlayer::hasMeasured() const { return labOfStep() == nullptr || known_.contains(labOfStep()) || problems_.contains(labOfStep()); }

std::optional<Prose> LessonPlayer::numbered(const Prose& words) const {
  if (std::ranges::none_of(words, [](const ProseSpan& span) { return span.kind == ProseSpan::Kind::number; })) return words;
  const LabSetup* lab = labOfStep();
  const auto found = known_.find(lab);
  if (const auto problem = problems_.find(lab); found == known_.end() && problem != problems_.end())
    return Prose{{ProseSpan::Kind::text, problem->second.toStdString()}};
  if (found == known_.end()) return {};
  try {
    return with_numbers(words, measured_before(found->second));
  } catch (const Error& error) {
    return Prose{{ProseSpan::Kind::text, windowText(error).toStdString()}};
  }
}

AnswerWords LessonPlayer::answer(const Question& question, const QString& given) {
  const auto known = known_.find(labOfStep());
  const bool needs = question.kind == Question::Kind::number;
  if (needs && known == known_.end()) throw Error("the lab is still measuring; answer again in a moment.", {});
  const Judgement judged = judge(question, given.toStdString(), needs ? measured_before(known->second) : Measuring());
  const bool waited = shownBlocks() < lesson_->steps[step_].blocks.size();
  note(question, given, judged.right);
  if (waited && shownBlocks() == lesson_->steps[step_].blocks.size()) prepare(*lesson_, step_);
  if (waited) emit blocksChanged();
  return {judged.right, numbered(prose_of(judged.message)).value_or(Prose())};
}

std::optional<LessonPlayer::Answered> LessonPlayer::answered(const Question& question) const {
  if (question.kind == Question::Kind::act) {
    if (const auto deed = deeds_.find(QString::fromStdString(question.id)); deed != deeds_.end()) return Answered{{}, deed->second};
    return {};
  }
  const auto* all = lesson_ == nullptr ? nullptr : given(*lesson_, question.id);
  if (all == nullptr) return {};
  const GivenAnswer& newest = all->back();
  const auto known = known_.find(labOfStep());
  try {
    const Judgement judged = judge(question, newest.given, known == known_.end() ? measured_before({}) : measured_before(known->second));
    return Answered{QString::fromStdString(newest.given),
                    {judged.right, numbered(prose_of(judged.message)).value_or(Prose())},
                    all->size(),
                    judged.side};
  } catch (const Error&) {  // not measured yet
    return Answered{QString::fromStdString(newest.given), {newest.right, {}}};
  }
}

void LessonPlayer::note(const Question& question, const QString& given, bool right) {
  answers_.lessons[lesson_->id][question.id].push_back(
      {given.toStdString(), right, QDateTime::currentDateTimeUtc().toString(Qt::ISODate).toStdString()});
  keep();
}

bool LessonPlayer::isRight(const QString& question) const {
  const auto* all = lesson_ == nullptr ? nullptr : given(*lesson_, question.toStdString());
  return all != nullptr && std::ranges::any_of(*all, &GivenAnswer::right);
}

bool LessonPlayer::allDone() const {
  if (lesson_ == nullptr) return false;
  std::vector<const Question*> deeds = questions_of(lesson_->steps[step_]);
  std::erase_if(deeds, [](const Question* one) { return one->kind != Question::Kind::act; });
  return !deeds.empty() && std::ranges::all_of(deeds, [this](const Question* one) { return isRight(QString::fromStdString(one->id)); });
}

Prose LessonPlayer::wordsOfDeed(const Question& question) const {
  const auto found = lesson_ == nullptr ? done_.end() : done_.find(lesson_->id + '#' + question.id);
  return found == done_.end() ? Prose() : found->second;
}

bool LessonPlayer::hasAnswers() const {
  return std::ranges::any_of(answers_.lessons, [](const auto& lesson) { return !lesson.second.empty(); });
}

int LessonPlayer::right(const Lesson& lesson) const {
  const auto found = answers_.lessons.find(lesson.id);
  if (found == answers_.lessons.end()) return 0;
  return static_cast<int>(
      std::ranges::count_if(found->second, [](const auto& question) { return std::ranges::any_of(question.second, &GivenAnswer::right); }));
}

const Lesson* LessonPlayer::following() const {
  const auto left = std::ranges::find_if(std::next(std::ranges::find(library_.lessons, lesson_->id, &Lesson::id)), library_.lessons.end(),
                                         [this](const Lesson& one) { return right(one) < std::ssize(questions_of(one)); });
  return left == library_.lessons.end() ? nullptr : &*left;
}

void LessonPlayer::setName(const QString& name) {
  if (std::exchange(answers_.name, name.toStdString()) != name.toStdString()) keep();
}

void LessonPlayer::forget(const QString& lesson) {
  answers_.lessons.erase(lesson.toStdString());
  std::erase_if(done_, [&](const auto& one) { return one.first.starts_with(lesson.toStdString() + '#'); });
  deeds_.clear();
  judgedOf_.clear();
  keep();
  emit opened();
}

std::map<std::string, double> LessonPlayer::view() const {
  std::map<std::string, double> facts{{"pins", static_cast<double>(frame_->pins()->pins().size())},
                                      {"cursor", static_cast<double>(frame_->time()->step())}};
  for (const PanelDock* dock : frame_->area()->docks()) facts["shown/" + dock->info().id.toStdString()] = dock->inSight() ? 1.0 : 0.0;
  return facts;
}

/// Looks at what is to be done in this step and is not yet: whether it holds in the run that is shown.
void LessonPlayer::judgeDeeds() {
  const SessionController* session = frame_->session();
  if (lesson_ == nullptr || !session->library() || !session->trace() || session->running() || !session->whyNotShown().isEmpty()) return;
  if (labOfStep() == nullptr || shownBlocks() < lesson_->steps[step_].blocks.size()) return;
  const Setup setup = session->shownSetup();
  if (setup != session->setup() || !setup.sequence) return;
  for (const Question* question : questions_of(lesson_->steps[step_])) {
    if (question->kind != Question::Kind::act) continue;
    const QString id = QString::fromStdString(question->id);
    Deed deed{id, setup, view()};
    if (const auto last = judgedOf_.find(id); (last != judgedOf_.end() && last->second == deed) || deedsJob_.isAt(deed)) continue;
    judgedOf_[id] = deed;
    std::string given = session->trace()->info.command + " view";
    for (const auto& [name, value] : deed.view) given += " " + name + "=" + QString::number(value).toStdString();
    deedsJob_.start(deed, [question = *question, library = session->library(), setup, view = deed.view,
                           given = QString::fromStdString(given)](const auto&, std::stop_token stop) {
      MeasuredRun run = run_measured(requestFor(setup, library->presets.find(setup.preset), {}), measured_in(question), stop);
      run.view = view;
      LabRuns runs({std::move(run)});
      const Judgement judged = judge_deed(question, runs.measuring(stop));
      return DeedWords{{judged.right, with_numbers(prose_of(judged.message), runs.measuring(stop))}, given};
    });
    return;
  }
}

}  // namespace reclab
