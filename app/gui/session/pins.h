// SPDX-License-Identifier: GPL-3.0-or-later
// Runs that are kept for comparison. Each is of the input that is shown: on another one it is run again.
#pragma once

#include <QColor>
#include <QObject>
#include <map>
#include <vector>

#include "gui/jobs/job.h"
#include "gui/session/run_names.h"
#include "gui/session/setup.h"
#include "panel.h"

namespace reclab {

class SessionController;

struct Pin {
  std::uint64_t id = 0;  ///< its own, however many are unpinned
  Setup setup;       ///< what it is, and what it is run again from
  TracePtr trace;    ///< null until it has run
  Probe probe;       ///< what the trace was asked to record
  int colour = 0;    ///< of pinColour
  QString given;     ///< the user's own name; empty: named by what differs
  QString name;
  QString problem;   ///< why it cannot run on the present input
  bool running = false;
  bool comparable = false;  ///< of the input that is shown, so it is in the plots
};

class Pins : public QObject {
  Q_OBJECT
 public:
  static constexpr std::size_t most = 5;  ///< six runs, with the one that is looked at
  explicit Pins(SessionController* session, QObject* parent = nullptr);
  ~Pins() override;

  /// Pins are of the input that is shown now, and named by how they differ from it.
  void follow();
  /// What visible panels show, which pins record too.
  void setProbe(const Probe& wanted);

  /// Keeps a run, under a name of the user's own if there is one. Without a trace, or with one that records less than is wanted, it is run
  /// in the background. Returns why not, or an empty string.
  QString add(const Setup& setup, const TracePtr& trace, const Probe& probe, const QString& given = {});
  void remove(std::size_t index);
  void rename(std::size_t index, const QString& name);  ///< empty: by what differs again
  const std::vector<Pin>& pins() const { return pins_; }
  /// Those that can be compared with what is shown.
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
  /// What differs between a pin and the run that is shown, as rich text.
  QString table(std::size_t index) const;
  bool running() const { return job_.running(); }

 signals:
  void changed();
  void followed();  ///< another run is shown

 private:
  Facets facets(const Pin& pin) const;
  Facets facets(const Trace& trace, const std::string& preset) const;
  Facets facetsOfShown() const;
  bool needsRun(const Pin& pin) const;
  /// A pin, the input that it is run on and what is recorded of it.
  struct Key {
    std::uint64_t pin;
    LoadedSequencePtr input;
    Probe probe;
  };
  using Runs = Job<Key, TracePtr>;
  void next();    ///< one that needs it is run, when it is its turn
  std::optional<Runs::Work> whatToRun() const;
  void take(const Key& key, const TracePtr& trace);
  void mark(std::optional<std::uint64_t> running);  ///< the pin that runs now
  void update();  ///< which are comparable, and all names

  SessionController* session_;
  LoadedSequencePtr input_;  ///< of what is shown
  Probe wanted_;
  std::vector<Pin> pins_;
  std::uint64_t newest_ = 0;  ///< Pin::id
  mutable std::map<std::string, std::map<std::string, std::pair<std::string, std::string>>> symbols_;  ///< of hyper-parameters, and the values of the preset, by preset
  Runs job_;
};

/// Whether both are one sequence, read in the same way.
bool sameInput(const LoadedSequencePtr& a, const LoadedSequencePtr& b);

}  // namespace reclab
