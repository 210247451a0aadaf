// SPDX-License-Identifier: GPL-3.0-or-later
// The compared runs: the one that is shown, and the runs kept beside it. Each has one name and one colour, in chips, legends, tables,
// figures and curves of learning. The kept ones have the input that is shown: on another one they are run again; and one that is trained
// beside the run that is shown has its weights of the current step of training: when that moves, it is run again too.
#pragma once

#include <QColor>
#include <QObject>
#include <map>
#include <vector>

#include "gui/jobs/job.h"
#include "gui/session/run_names.h"
#include "gui/session/setup.h"
#include "gui/session/work/training.h"
#include "panel.h"

namespace reclab {

class SessionController;

struct Pin {
  std::uint64_t id = 0;        ///< its own, however many are unpinned
  Setup setup;                 ///< its model, from which it is run again
  TracePtr trace;              ///< null until it has run
  RecordingOptions recording;  ///< the recording that the trace was asked for
  LearnedPtr weights;          ///< those that the trace is of, where it learned them beside the shown run
  int colour = 0;              ///< of pinColour
  QString given;               ///< the user's own name; empty: named by its differences
  QString plain;               ///< that, or its differences
  QString name;                ///< `plain`; and that it is untrained, beside one that is not
  QString problem;             ///< why it cannot run on the present input
  bool running = false;
  bool comparable = false;  ///< of the input that is shown, so it is in the plots
};

/// The part of a pin that a hand can change.
struct PinValue {
  std::uint64_t id = 0;
  Setup setup;
  QString given;
  int colour = 0;
  bool operator==(const PinValue& other) const = default;
};

class Pins : public QObject {
  Q_OBJECT
 public:
  static constexpr std::size_t most = 5;  ///< six runs, with the one that is looked at
  explicit Pins(SessionController* session, QObject* parent = nullptr);
  ~Pins() override;

  /// Pins are of the input that is shown now, and named by how they differ from it.
  void follow();
  /// Sets the recording of the visible panels, which pins record too.
  void setRecording(const RecordingOptions& wanted);

  /// Keeps a run, under a name of the user's own if there is one. Without a trace, or with one that records less than is wanted, it is run
  /// in the background. Returns why not, or an empty string. `colour`: its former one, where no other has it now; -1: the first that is
  /// free.
  QString add(const Setup& setup, const TracePtr& trace, const RecordingOptions& recording, const QString& given = {}, int colour = -1);
  void remove(std::size_t index);
  void rename(std::size_t index, const QString& name);  ///< empty: by its differences again
  const std::vector<Pin>& pins() const { return pins_; }
  std::vector<PinValue> value() const;
  /// Sets the pins. Runs that are pinned now are kept; others are run again.
  void setValue(const std::vector<PinValue>& value);
  /// The pins that can be compared with the run that is shown.
  std::vector<Panel::Run> runs() const;
  /// Whether this is pinned on the input that is shown.
  bool has(const Setup& setup) const;
  /// A run of the comparison: the one that is shown, which comes first, or a pin; without a trace it has not run yet.
  struct Column {
    QString name;
    QColor colour;
    Facets facets;
    TracePtr trace;
  };
  std::vector<Column> columns() const;
  /// The setup of a pin with the weights that it is shown with.
  Setup setupOf(std::size_t index) const;
  /// The pins that learn beside the run that is shown. One that was pinned with learned weights stays as it was then.
  std::vector<RunBeside> learners() const;
  /// The names and colours here of the runs of these trainings.
  std::vector<LearningRun> named(const Learning& learning) const;
  /// The differences between a pin and the run that is shown, as rich text.
  QString table(std::size_t index) const;
  bool running() const { return job_.running() || quick_.running(); }

 signals:
  void changed();
  void followed();  ///< another run is shown

 private:
  Facets facets(const Pin& pin) const;
  Facets facets(const Trace& trace, const std::string& preset) const;
  Facets facetsOfShown() const;
  bool needsRun(const Pin& pin) const;
  LearnedPtr weightsFor(const Pin& pin) const;  ///< those that it is to be of now; null: its setup's own
  /// Whether its weights are others now, and more are about to follow.
  bool moves(const Pin& pin) const;
  bool needsWhole(const Pin& pin) const;  ///< and may have it now
  bool isUntrained(const Pin& pin) const;
  QString nameOfShown(const std::vector<Facets>& all) const;
  /// A pin, the input and the weights that it is run with, and its recording.
  struct Key {
    std::uint64_t pin;
    LoadedSequencePtr input;
    RecordingOptions recording;
    LearnedPtr weights;
  };
  using Runs = Job<Key, TracePtr>;
  void next();  ///< one that needs it is run, when it is its turn
  std::optional<Runs::Work> whatToRun(bool quick) const;
  Runs::Hears hears();
  void take(const Key& key, const TracePtr& trace);
  void mark(std::optional<std::uint64_t> running);  ///< the pin that runs now
  void update();                                    ///< sets which are comparable, and all names

  SessionController* session_;
  LoadedSequencePtr input_;  ///< of the run that is shown
  RecordingOptions wanted_;
  std::vector<Pin> pins_;
  std::uint64_t newest_ = 0;  ///< Pin::id
  mutable std::map<std::string, std::map<std::string, std::pair<std::string, std::string>>>
      symbols_;  ///< of hyper-parameters, and the values of the preset, by preset
  Runs job_;
  Runs quick_;                               ///< while weights move on; it is short, and waits for nothing
  std::vector<std::uint64_t> trainings_;     ///< that there were last
  std::map<std::uint64_t, double> seconds_;  ///< of the last quick run of each
};

/// Whether both are one sequence, read in the same way.
bool sameInput(const LoadedSequencePtr& a, const LoadedSequencePtr& b);

}  // namespace reclab
