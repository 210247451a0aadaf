// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/session_controller.h"

#include <QFileInfo>
#include <QTimer>
#include <utility>

#include "gui/session/files.h"
#include "panel.h"

namespace reclab {
namespace {

constexpr int longestStart = 2000;  // ms

}  // namespace

SessionController::SessionController(QObject* parent)
    : QObject(parent),
      runs_(scheduler_, [this](bool live) { return whatToRun(live); }),
      timings_(scheduler_, [this] { return whatToTime(); }),
      keptTrainings_(scheduler_, {},
                     {.finished = [this](int, const KeptTrainings& kept) { takeBack(kept); },
                      .ended =
                          [this](int, const Ending& ending) {
                            if (ending.how == Ending::How::failed) emit said(ending.sentence, Tone::warning);
                            begin();
                          }}) {
  qRegisterMetaType<TracePtr>("reclab::TracePtr");
  qRegisterMetaType<ModelPtr>("reclab::ModelPtr");
  qRegisterMetaType<LoadedSequencePtr>("reclab::LoadedSequencePtr");
  qRegisterMetaType<Outcome>("reclab::Outcome");
  qRegisterMetaType<FileKind>("reclab::FileKind");
  qRegisterMetaType<Tone>("reclab::Tone");
  qRegisterMetaType<Request>("reclab::Request");
  qRegisterMetaType<LearningPtr>("reclab::LearningPtr");
  connectRuns();
  connectOthers();
  connectStudies();
  connectTraining();
  connectStreams();
}

SessionController::~SessionController() = default;

void SessionController::connectRuns() {
  connect(&runs_, &RunWork::runningChanged, this, &SessionController::runningChanged);
  connect(&runs_, &RunWork::progressed, this, &SessionController::progressed);
  connect(&runs_, &RunWork::followUpStarted, this, &SessionController::pendingChanged);
  connect(&runs_, &RunWork::came, this, [this](const RunStage& stage, const std::shared_ptr<const Setup>& of) {
    if (shown_.take(stage.trace, of, stage.state)) showJoined();
  });
  connect(&runs_, &RunWork::ended, this, [this](Outcome outcome, const QString& sentence, double seconds) {
    if (outcome == Outcome::cancelled)
      emit said(tr("Stopped after %1; what is shown was complete before.").arg(roughSecondsInWords(seconds)), Tone::info);
    else if (outcome == Outcome::finished) {
      if (!streams_.running()) emit said(sentence.isEmpty() ? shown_.summary() : sentence, Tone::info);
    } else
      emit said(sentence, Tone::warning);
    lastOutcome_ = outcome;
    if (const std::shared_ptr<const Setup>& its = shown_.setup();
        outcome == Outcome::finished && its && (its->learnedWeights() || its->weights.contains(its->preset)))
      ran_[its->preset] = *its;
    emit runEnded(outcome);
  });
  connect(&runs_, &RunWork::weightsMisfit, this, &SessionController::weightsMisfit);
  connect(&runs_, &RunWork::dragPaused, this, &SessionController::describe);
  connect(&runs_, &RunWork::rests, this, [this](Outcome outcome) {
    if (outcome != Outcome::finished || streams_.running()) return;
    for (const auto& one : studies_)
      if (!one->study().on_request && needs_of(visible_).has_any(one->study().fills)) one->start();  // a tab behind another is open too
  });
}

void SessionController::connectOthers() {
  connect(&description_, &DescriptionWork::said, this, &SessionController::said);
  connect(&description_, &DescriptionWork::presetsRead, this, [this](const LibraryPtr& library) {
    library_ = library;
    for (const std::string& problem : library_->presets.problems()) emit said(QString::fromStdString(problem), Tone::warning);
    for (const QString& problem : problemsOfPlaces(library_->presets.presets())) emit said(problem, Tone::warning);
    for (const auto& one : studies_)
      if (!one->study().takes_model) one->start();  // where one was asked for before
    if (std::exchange(wantsLearned_, false) && store_.isMine())
      return keptTrainings_.start(
          0, [library = library_, folder = store_.folder()](const auto&, std::stop_token) { return TrainingStore::read(folder, library); });
    begin();
  });
  connect(&description_, &DescriptionWork::propertiesFound, this, [this](const PropertiesOf& found) {
    properties_ = found;
    emit propertiesReady();
  });
  connect(&description_, &DescriptionWork::described, this, [this](const ModelPtr& model) {
    model_ = model;
    if (timings_.modelChanged() && shown_.trace()) showJoined();
    emit modelDescribed(model);
  });
  connect(&exports_, &ExportWork::progressed, this, &SessionController::progressed);
  connect(&exports_, &ExportWork::exported, this, &SessionController::exported);
  connect(&exports_, &ExportWork::said, this, &SessionController::said);
  connect(&files_, &FileWork::presetRead, this, [this](const LibraryPtr& library, const QString& id, const QString& file) {
    library_ = library;
    emit presetOpened(id, file);
  });
  connect(&files_, &FileWork::sequenceLoaded, this, &SessionController::sequenceLoaded);
  connect(&files_, &FileWork::fileFits, this, &SessionController::fileFits);
  connect(&files_, &FileWork::sizesFit, this, &SessionController::sizesFit);
  connect(&files_, &FileWork::partsFit, this, &SessionController::partsFit);
  connect(&files_, &FileWork::saved, this, &SessionController::saved);
  connect(&files_, &FileWork::said, this, &SessionController::said);
  connect(&files_, &FileWork::isOf, this, [this](FileKind kind, const SequenceChoice& choice) {
    if (kind == FileKind::sequence)
      loadSequence(choice);
    else
      loadFile(kind, QString::fromStdString(choice.file));
  });
  connect(&files_, &FileWork::cellsMissing, this, &SessionController::cellsMissing);
  connect(&files_, &FileWork::sequenceRefused, this, [this] {
    emit setupChanged();  // editors return to the present values
    emit sequenceRefused();
  });
}

void SessionController::connectStudies() {
  for (const Study& study : reclab::studies()) {
    if (study.measures) continue;
    StudyWork* work =
        studies_
            .emplace_back(std::make_unique<StudyWork>(
                study, scheduler_, [this] { return StudyWork::Subject{library_, setup_, ready() && shown_.trace() && runs_.hasShown()}; }))
            .get();
    connect(work, &StudyWork::said, this, &SessionController::said);
    connect(work, &StudyWork::moved, this, [this, work](const StudyState& state) { emit studyMoved(work->study().id, state); });
    connect(work, &StudyWork::came, this, [this, work](const QString& problem) {
      if (work->study().fills.empty())
        emit studied(work->study().id, work->result(), problem);
      else
        showJoined();
    });
  }
  connect(&timings_, &TimingWork::came, this, &SessionController::showJoined);
  connect(&timings_, &TimingWork::said, this, &SessionController::said);
  connect(&timings_, &TimingWork::pendingChanged, this, &SessionController::pendingChanged);
  connect(&timings_, &TimingWork::moved, this, [this](const StudyState& state) { emit studyMoved(timings_.study().id, state); });
}

void SessionController::begin() {
  emit libraryReady();
  // The first run has the machine for itself, if one comes.
  const auto find = [this, found = std::make_shared<bool>(false)] {
    if (!std::exchange(*found, true)) description_.findProperties(library_);
  };
  connect(&runs_, &RunWork::ended, this, find, Qt::SingleShotConnection);
  QTimer::singleShot(longestStart, this, find);
}

void SessionController::open(bool learned) {
  wantsLearned_ = learned;
  description_.readPresets();
}

void SessionController::take(const Setup& setup) {
  setup_ = setup;
  if (const LearnedPtr learned = setup_.learnedWeights(); learned && learned->training != 0) setLine(learned->step);
  emit setupChanged();
  timings_.setupChanged();
  for (const auto& one : studies_) one->setupChanged();
}

void SessionController::apply(const Setup& setup, bool live) {
  holdStream();
  take(asKept(setup));
  if (live)
    runs_.moved();  // the card follows when the hand rests: it builds the model's graph once more
  else
    describe();
  runs_.start(live);
  if (trainsNext_ && ready() && setup_.sequence->sequence.target_kind != TargetKind::none) std::exchange(trainsNext_, nullptr)();
}

void SessionController::describe() {
  if (library_ && !setup_.preset.empty()) description_.describe(library_, setup_);
}

std::optional<RunWork::Subject> SessionController::whatToRun(bool live) const {
  if (!ready()) return std::nullopt;
  return RunWork::Subject{
      library_,
      {std::make_shared<const Setup>(setup_), recordingFor(visible_, live, focus_, runs_.liveRunsAreFast() ? followed_ : Kinds()), live}};
}

TimingWork::Subject SessionController::whatToTime() const {
  const std::string ranOn = shown_.run() ? shown_.run()->info.device : std::string();
  return {{timingKeyOf(setup_, model_, ranOn), model_ ? shapesOf(model_->card) : std::string()},
          library_,
          setup_,
          ranOn,
          shown_.trace() != nullptr};
}

RecordingOptions SessionController::shownRecording() const {
  RecordingOptions nothing;
  nothing.kinds = {};
  return running() || !runs_.complete() ? nothing : asked();
}

void SessionController::showJoined() {
  std::vector<TracePtr> others;
  for (const auto& one : studies_) others.push_back(one->trace());
  TracePtr before = shown_.join(timings_.trace(), others);
  emit traceChanged(shown_.trace());
  if (learning_) tellLearning();  // its time says of which step the picture is
  discard(std::move(before));
}

QString SessionController::nameOfFormer(const TracePtr& trace) const {
  const auto its = shown_.setupOf(trace);
  return its ? reclab::nameOfFormer(trace->info, *its, setup_) : QString();
}

QString SessionController::whyNotShown() const {
  if (runs_.running() || (shown_.setup() && shown_.setup()->sameRun(setup_))) return {};
  return lastOutcome_ == Outcome::failed      ? tr("it cannot run as it is set")
         : lastOutcome_ == Outcome::cancelled ? tr("its run was stopped")
                                              : QString();
}

std::optional<Setup> SessionController::setupThatFits() const {
  const auto weightsOf = [](const Setup& setup) {
    const auto file = setup.weights.find(setup.preset);
    return std::pair(setup.learnedWeights(),
                     setup.learnedWeights() || file == setup.weights.end() ? std::filesystem::path() : file->second);
  };
  const LearnedPtr learned = setup_.learnedWeights();
  std::optional<Setup> its;
  if (const auto ran = ran_.find(setup_.preset); ran != ran_.end() && weightsOf(ran->second) == weightsOf(setup_)) its = ran->second;
  if (!its && learned) its = setupAt(learned->training, learned->step);
  if (!its || its->preset != setup_.preset) return std::nullopt;
  Setup fits = setup_;
  if (const auto set = its->set.find(its->preset); set != its->set.end())
    fits.set[fits.preset] = set->second;
  else
    fits.set.erase(fits.preset);
  fits.sequence = its->sequence;
  fits.loss = its->loss;
  return fits;
}

bool SessionController::isPending(Kind kind) const {
  if (timings_.study().fills.has(kind)) return !runs_.settled() || timings_.isPending();
  for (const auto& one : studies_)
    if (one->study().fills.has(kind)) return !runs_.settled() || one->isAtIt();
  // All kinds recorded as the sequence passes are in the first stage.
  return info_of(kind).stage == Stage::late && !runs_.complete();
}

void SessionController::discard(TracePtr trace) {
  if (trace && trace.use_count() == 1) bin_.post([trace = std::move(trace)](std::stop_token) {});
}

void SessionController::stop() {
  if (timings_.wanted()) timings_.stop();
  trainings_.pause();
  streams_.pause();
  exports_.stop();
  runs_.stop();
}

void SessionController::loadFile(FileKind kind, const QString& file) {
  if (!ready()) {
    emit said(tr("There is no model to load %1 into yet; choose a model and a sequence first.").arg(QFileInfo(file).fileName()),
              Tone::warning);
    return;
  }
  files_.loadFile(kind, file, library_, setup_);
}

void SessionController::openPreset(const QString& file) {
  if (library_) files_.openPreset(file, library_);
}

void SessionController::saveFile(FileKind kind, const QString& file) {
  const bool weights = kind == FileKind::weights;
  if (!shown_.trace() || (!weights && (!shown_.state() || shown_.state()->empty()))) {
    emit said(weights ? tr("There is no run whose weights could be saved yet; choose a model and a sequence first.")
                      : tr("What is shown has no final state, because it was not run to its end; run it once more."),
              Tone::warning);
    return;
  }
  if (weights)
    files_.saveWeights(shown_.trace(), file);
  else
    files_.saveState(shown_.state(), file);
}

void SessionController::setVisiblePanels(const QStringList& ids) {
  if (ids == visible_) return;
  visible_ = ids;
  if (!asked().kinds.has_all(recordingFor(ids, false).kinds)) runs_.start(false);
}

void SessionController::request(const Request& request) {
  if (const auto* model = std::get_if<ModelChoice>(&request)) return emit modelWanted(*model);
  if (const auto* setting = std::get_if<SettingChoice>(&request)) return emit settingWanted(*setting);
  if (const auto* at = std::get_if<CheckpointChoice>(&request)) return lookAtStep(at->training, at->step, at->moving);
  const auto* choice = std::get_if<StudyChoice>(&request);
  if (choice->study == "train") return emit trainingWanted();
  for (const auto& one : studies_)
    if (one->study().id == choice->study) {
      if (choice->act == StudyChoice::Act::stop) return one->stop();
      return one->choose(choice->values);
    }
  if (choice->study != timings_.study().id) return;
  if (choice->act == StudyChoice::Act::stop)
    timings_.stop();
  else if (choice->act == StudyChoice::Act::choose)
    timings_.setChoice(choice->values);
  else
    timings_.want(choice->values);
}

void SessionController::exportRun(const QString& folder, bool csv) {
  if (ready())
    exports_.start(folder, csv, library_, setup_);
  else
    emit said(tr("There is no run to export yet; choose a model and a sequence first."), Tone::warning);
}

}  // namespace reclab
