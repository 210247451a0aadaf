// SPDX-License-Identifier: GPL-3.0-or-later
// Owns the setup that is looked at and has it computed, never on the GUI thread. The window sends it requests and receives results. Each
// kind of work is a file in work/; the scheduler says which waits for which.
#pragma once

#include <QElapsedTimer>
#include <QJsonObject>
#include <QObject>
#include <QStringList>
#include <QTimer>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gui/session/kept/training_store.h"
#include "gui/session/requests.h"
#include "gui/session/sentences.h"
#include "gui/session/setup.h"
#include "gui/session/shown.h"
#include "gui/session/work/description.h"
#include "gui/session/work/export.h"
#include "gui/session/work/file.h"
#include "gui/session/work/run.h"
#include "gui/session/work/stream.h"
#include "gui/session/work/study.h"
#include "gui/session/work/timing.h"
#include "gui/session/work/training.h"

namespace reclab {

/// The stream that is looked at, or was last, in numbers.
struct Streaming {
  bool running = false, waits = false;  ///< waits: for a training to stand
  StreamNumbers numbers;
  double pace = 0.0, pictures = 0.0;  ///< steps and pictures a second
  std::int64_t limit = 0;             ///< of steps a second; 0: there is none
  std::int64_t made = 0, drawn = 0;   ///< pictures since it began or went on
  QString folder;                     ///< of the place where it was left last; empty: there is none
  QString command;                    ///< the line that goes over it
  std::string of;                     ///< its preset
  QString problem;                    ///< why it cannot be gone on with, a sentence
};

class SessionController : public QObject {
  Q_OBJECT
 public:
  explicit SessionController(QObject* parent = nullptr);
  ~SessionController() override;

  /// Reads the presets, and kept trainings if `learned`; libraryReady follows.
  void open(bool learned = false);
  const LibraryPtr& library() const { return library_; }
  const Setup& setup() const { return setup_; }
  const ModelPtr& model() const { return model_; }  ///< as last described; null before
  const TracePtr& trace() const { return shown_.trace(); }
  /// The setup of the trace, while a newer setup() may be running.
  /// The present setup as it can be had again: while a stream goes on, that of the last place where it was left.
  const Setup& steadySetup() const { return steady_ ? *steady_ : setup_; }
  const Setup& shownSetup() const { return shown_.setup() ? *shown_.setup() : setup_; }
  /// The recording of the trace: nothing for sure while its run goes on.
  RecordingOptions shownRecording() const;
  /// Why the present setup is not shown, a clause for a heading: its run failed, or was stopped. Empty while it is, or is on its way.
  QString whyNotShown() const;
  /// The present setup, with the settings, the sequence and the loss that its weights go with, where those are known: those of the newest
  /// run with these weights, or of the training that they are of.
  std::optional<Setup> setupThatFits() const;
  bool running() const { return runs_.running(); }
  const RecordingOptions& asked() const { return runs_.asked(); }  ///< recording of the newest run
  bool exporting() const { return exports_.running(); }
  bool timing() const { return timings_.running(); }

  /// Makes it the present setup, and runs it. live: more changes are about to follow (a slider moves).
  void apply(const Setup& setup, bool live);
  /// Applies a setup that was looked at before, and follows a training if it was followed then.
  void restore(const Setup& setup, bool follows);
  void run() { runs_.start(false); }
  void stop();
  /// Loads; sequenceLoaded follows, or a sentence, with everything as it was.
  void loadSequence(const SequenceChoice& choice) { files_.loadSequence(choice); }
  /// Weights or an initial state: sees whether the file fits the present model; fileFits follows, or a sentence, with everything as it was.
  void loadFile(FileKind kind, const QString& file);
  /// Opens any of these files, by its content; the choice is for a sequence.
  void openFile(const SequenceChoice& choice) { files_.open(choice); }
  /// Reads a file with a preset, which is one of the library from then on; presetOpened follows, or a sentence.
  void openPreset(const QString& file);
  /// Writes the weights or the final state of the shown run; saved follows, or a sentence.
  void saveFile(FileKind kind, const QString& file);
  void setVisiblePanels(const QStringList& ids);
  /// Sets the late kinds that are recorded while a slider moves, as long as that keeps up with the hand.
  void setFollowed(const Kinds& kinds) { followed_ = kinds; }
  void setFocus(std::int64_t step) { focus_ = step; }  ///< the cursor: its spectrum comes first
  /// The name of the setup of a trace that was shown, when that is not the present one: "Elman network, spectral radius = 0.7"; empty when
  /// it is.
  QString nameOfFormer(const TracePtr& trace) const;
  /// Whether arrays of this kind, which the trace that is shown does not have, may still come: a run or a timing is under way,
  /// or was stopped before it came to them.
  bool isPending(Kind kind) const;
  /// Carries out the request of a panel.
  void request(const Request& request);
  /// Whether the panel that shows timings is in sight: then forms not timed yet are timed by themselves, once nothing runs and no hand has
  /// moved for a while.
  void setTimingInSight(bool inSight) { timings_.setInSight(inSight); }
  void touched() { timings_.touched(); }  ///< a hand moved
  /// Sets how long the scheduler must have been idle, and how old the program must be before a timing begins by itself.
  void setTimingPatience(std::chrono::milliseconds idle, std::chrono::milliseconds first) { timings_.setPatience(idle, first); }
  /// Runs once more with everything recorded, and writes it.
  void exportRun(const QString& folder, bool csv);
  const PropertiesOf& properties() const { return properties_; }  ///< of the presets; they come some time after libraryReady
  /// Frees a large run somewhere else than on the GUI thread.
  void discard(TracePtr trace);

  /// Trains the present setup on its sequence's task, and `beside` it other runs on the same batches; pictures of all follow. `steps`: so
  /// many, then it pauses; 0: to the end.
  void train(const std::vector<RunBeside>& beside = {}, std::int64_t steps = 0);
  void pauseTraining() { trainings_.pause(); }
  using Forgotten = std::shared_ptr<TrainingWork::Forgotten>;
  /// A new training, from the weights that are looked at; it begins when train() is asked for it. Returns the functions that undo it and
  /// make it again; empty where there are no weights to begin from.
  struct Fork {
    std::function<void()> undo, redo;
  };
  Fork forkTraining();
  /// No more lists the trainings that there are, nor goes on with them, as another subject begins; they stay kept. Returns the functions
  /// that undo it and do it again; empty where there is none.
  Fork putTrainingsAside();
  QStringList trainingsAside() const { return trainings_.aside(); }  ///< ids
  void setTrainingsAside(const QStringList& ids);
  /// Forgets the current training, or again one that was brought back, and draws the weights again. Returns the argument for
  /// bringBackTraining().
  Forgotten resetTraining(const Forgotten& again = {});
  void bringBackTraining(const Forgotten& forgotten, const Setup& before);  ///< with its curve, its weights and the setup of then
  /// The preset of the current training; empty where there is none.
  std::string trainingOf() const { return trainings_.current() ? trainings_.current()->setup().preset : std::string(); }
  void exportTraining(const QString& folder) { trainings_.exportTo(folder); }
  void setTrainingChoice(const TrainingChoice& choice) { trainings_.setChoice(choice); }
  const TrainingChoice& trainingChoice() const { return trainings_.choice(); }
  bool training() const { return trainings_.running(); }
  bool followsTraining() const { return following_; }  ///< its newest weights are looked at, as they come
  const LearningPtr& learning() const { return learning_; }
  /// Looks at the weights that a training had after a step, of those that are kept; `moving`: more are about to follow.
  void lookAtStep(std::uint64_t training, std::int64_t step, bool moving);
  /// The setup that lookAtStep() looks at; nothing where those weights are not kept.
  std::optional<Setup> setupAt(std::uint64_t training, std::int64_t step) const;
  void followTraining();  ///< looks at its newest weights, and at those that come
  /// The training of a run beside; 0 where it has learned nothing. And its weights at the step at which the time of training stands.
  std::uint64_t trainingOf(std::uint64_t run) const;
  LearnedPtr learnedBy(std::uint64_t run) const;
  std::int64_t trainingStep() const { return line_; }  ///< at which that stands
  /// The setup with the weights that it has learned up to that step, where it has.
  Setup asLearned(Setup setup) const;
  /// More weights, or values of a setting, are about to follow, so that runs beside are to be quick; and their recording then.
  bool moving() const { return runs_.dragging() || (following_ && trainings_.running()); }
  RecordingOptions quickRecording() const { return recordingFor(visible_, true, focus_, runs_.liveRunsAreFast() ? followed_ : Kinds()); }
  /// Sets the seconds that the pictures of the runs beside take: those of a training are so far apart that it has most of the time.
  void setSecondsBeside(double seconds) { secondsBeside_ = seconds; }

  // Streams: while one goes on its last steps are the sequence, and each picture is a live run of it. A change of the setup ends that.
  void startStream(const StreamRequest& choice);  ///< from the beginning, with the present model
  void goOnWithStream(std::int64_t pace);         ///< from the place that is looked at, so many steps a second at most
  void setStreamPace(std::int64_t pace);          ///< of the stream that goes on
  void pauseStream() { streams_.pause(); }        ///< it is kept, and the run of its last steps follows
  void endStream();                               ///< the same, and its source is closed
  /// The same as a pause, and returns when it stands: before a change of the setup. It is nothing where no stream goes on.
  void holdStream();
  /// Looks at a place where a stream was left, with its model; it can be gone on with. A sentence where that cannot be.
  void lookAtPlace(const QString& folder);
  /// The places that the present setup needs, and all of a stream that goes on.
  QStringList placesInUse() const;
  QString keepStream();  ///< what it has learned, before the window closes; a sentence where that cannot be
  void exportStream(const QString& folder);
  /// Sets how often a stream that goes on is written beside its places, for a program that ends without a word.
  void setStreamKeptEvery(std::chrono::milliseconds every) { streamKeptEvery_ = every; }
  bool streams() const { return streams_.running(); }
  Streaming streaming() const;
  /// The line of the stream that goes on; else that of the one that startStream() would begin, or nothing where it could not.
  QString streamCommand(const StreamRequest& choice) const;
  /// Sets the function that makes the first picture of a stream a change by hand, which undo takes back.
  void setChangeBy(std::function<void(const QString& text, const std::function<void()>& does)> change) { asChange_ = std::move(change); }

  // Trainings from one start of the window to the next.
  /// Writes them; a sentence where that cannot be.
  QString keepTrainings();
  const std::vector<std::shared_ptr<Learner>>& trainings() const { return trainings_.all(); }
  QString folderOfTrainings() const { return store_.folder(); }
  /// Leaves the trainings that there are, as keepTrainings() wrote them, for these, as a window that opens does.
  void beginWith(const KeptTrainings& kept);
  QJsonObject putLearned(const LearnedPtr& weights);         ///< of a setup or pin, as kept_setup.h has it
  QJsonObject nameLearned(const LearnedPtr& weights) const;  ///< the same, with no file written
  LearnedPtr getLearned(const QJsonObject& weights);
  void keepNoOtherWeights() { store_.removeOthers(written_); }     ///< than those that were put
  QStringList oldestTrainings() const { return store_.oldest(); }  ///< on the disk, of more than are kept unasked
  void removeTrainings(const QStringList& ids) { store_.remove(ids); }
  QString idOfTraining(std::uint64_t training) const { return trainings_.idOf(training); }
  void follow(std::uint64_t run, const QString& training);  ///< assigns a kept training to a run beside
  QStringList trainedTogether() const { return trainings_.together(); }
  void trainOnWith(const QStringList& ids);
  /// The sequence that a training was kept with; null where none was.
  LoadedSequencePtr sequenceOf(const SequenceChoice& choice) const;

  Scheduler& scheduler() { return scheduler_; }          ///< for other jobs
  const JobBase& runJob() const { return runs_.job(); }  ///< for jobs that give way to it

 signals:
  void libraryReady();
  void propertiesReady();
  void presetOpened(QString id, QString file);
  void setupChanged();
  void modelDescribed(reclab::ModelPtr model);
  void sequenceLoaded(reclab::LoadedSequencePtr sequence);
  void sequenceRefused();  ///< after the sentence that says why
  void cellsMissing(reclab::SequenceChoice choice,
                    QStringList cures);  ///< after that: of a file that is read with one of these choices of Missing
  void traceChanged(reclab::TracePtr trace);
  void runningChanged(bool running);
  void progressed(double fraction, QString stage);
  void studyMoved(const std::string& study, const reclab::StudyState& state);
  /// The result of a study that is no part of the run; without a result a sentence that says why not.
  void studied(const std::string& study, const reclab::StudyResult& result, QString problem);
  /// A panel wants this to be the present model everywhere.
  void modelWanted(const reclab::ModelChoice& model);
  void settingWanted(const reclab::SettingChoice& setting);
  void runEnded(reclab::Outcome outcome);
  void weightsMisfit();  ///< after the sentence that says so: weights that were learned or read do not go with the setup
  void learningChanged(reclab::LearningPtr learning);  ///< a few times a second while it trains, and with each picture
  void trainingStepChanged();
  void streamChanged();   ///< with each picture, and where it begins or stands
  void trainingWanted();  ///< by a panel
  void pendingChanged();  ///< the answers of isPending() may be others now
  void said(QString sentence, reclab::Tone tone);
  void exported(QString folder);
  /// Weights were refused that these hyper-parameters would fit.
  void sizesFit(QString preset, QString file, reclab::Settings sizes);
  void partsFit(QString preset, QString file, QStringList parts);
  void fileFits(reclab::FileKind kind, QString preset, QString file);
  void saved(QString file);

 private:
  void begin();
  void connectRuns();
  void connectOthers();
  void connectStudies();
  void connectTraining();
  void connectStreams();
  void showPicture();
  void showStream(bool begins, const std::function<void()>& show);
  void leaveStreaming(const QString& problem);
  void followStream(const std::shared_ptr<LiveStream>& stream, const StreamNumbers& from);
  StreamRequest streamOf(const StreamRequest& choice, Setup& setup) const;
  QString streamFolder() const;
  std::shared_ptr<const StreamFiles> streamFiles(const QString& folder) const;
  Setup asKept(Setup setup) const;
  void takeBack(const KeptTrainings& kept);
  void tellLearning();
  void followOn();
  void setLine(std::int64_t step);
  void lookAt(const LearnedPtr& weights, bool live);
  void take(const Setup& setup);  ///< makes it the present setup; its computation follows
  bool ready() const { return library_ && setup_.sequence && !setup_.preset.empty(); }
  void describe();
  std::optional<RunWork::Subject> whatToRun(bool live) const;
  TimingWork::Subject whatToTime() const;
  void showJoined();

  Setup setup_;
  LibraryPtr library_;
  bool wantsLearned_ = false;
  PropertiesOf properties_;
  ModelPtr model_;  ///< as last described
  QStringList visible_;
  Kinds followed_;
  std::int64_t focus_ = 0;
  Shown shown_;
  std::map<std::string, Setup> ran_;  ///< with weights that were learned or read: the newest of each preset
  Outcome lastOutcome_ = Outcome::finished;
  Scheduler scheduler_{sentenceOf};
  DescriptionWork description_{scheduler_};
  RunWork runs_;
  std::vector<std::unique_ptr<StudyWork>> studies_;  ///< all that do not measure
  TimingWork timings_;
  ExportWork exports_{scheduler_};
  FileWork files_{scheduler_};
  TrainingWork trainings_{scheduler_};
  StreamWork streams_{scheduler_, trainings_.job()};
  std::shared_ptr<LiveStream> stream_;  ///< that goes on or stands; null: none, or it was closed
  struct ReadPlace {
    QString folder;
    QDateTime written;
    LibraryPtr library;
    std::shared_ptr<const StreamFiles> files;
  };
  mutable std::vector<ReadPlace> readPlaces_;  ///< the last ones, which are written once
  std::optional<Setup> steady_;                ///< while the setup is a picture of a stream
  struct Live {
    LoadedSequencePtr ring;
    LearnedPtr weights;
    std::string preset;
  };
  Live live_;  ///< the last picture
  PicturesShown pictures_;
  std::chrono::milliseconds streamKeptEvery_{60'000};
  bool streamBegins_ = false;  ///< there is no picture yet
  bool showsPicture_ = false;  ///< the change that is made is the stream's own
  std::function<void(const QString&, const std::function<void()>&)> asChange_ = [](const QString&, const auto& does) { does(); };
  TrainingStore store_;
  std::map<QString, Parameters> keptWeights_;                      ///< of setups and pins, by their files
  std::map<std::pair<QString, std::int64_t>, LearnedPtr> gotten_;  ///< by training and step
  QSet<QString> written_;
  Job<int, KeptTrainings> keptTrainings_;
  LearningPtr learning_;
  bool following_ = false;  ///< pictures are of the newest weights
  std::int64_t line_ = 0;   ///< the step of training that all runs that learn are looked at
  double secondsBeside_ = 0.0;
  bool runBefore_ = false;  ///< the present run began before the training: its pictures do not wait for that, nor for its late arrays
  QElapsedTimer sincePicture_;
  std::int64_t pause_ = 200;  ///< ms from one picture to the next, so that training has nine tenths of the time
  QTimer tellSoon_;
  std::function<void()> trainsNext_;  ///< as soon as the sequence has its target
  Worker bin_;                        ///< frees large traces; that is no job, for a timing that goes on gives up its former ones
};

}  // namespace reclab
