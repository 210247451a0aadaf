// SPDX-License-Identifier: GPL-3.0-or-later
// Runs that are kept for comparison. Each is of the input that is shown: on another one it is run again.
#pragma once

#include <QColor>
#include <QObject>
#include <map>
#include <vector>

#include "gui/session/run_names.h"
#include "gui/session/setup.h"
#include "gui/session/worker.h"
#include "panel.h"

namespace reclab {

class SessionController;

struct Pin {
  Setup setup;       ///< what it is, and what it is run again from
  TracePtr trace;    ///< null until it has run
  Probe probe;       ///< what the trace was asked to record
  QColor colour;
  QString given;     ///< the user's own name; empty: named by what differs
  QString name;
  QString problem;   ///< why it cannot run on the present input
  bool running = false;
  bool comparable = false;  ///< of the input that is shown, so it is in the plots
};

class Pins : public QObject {
  Q_OBJECT
 public:
  static constexpr std::size_t most = 4;
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
  /// The whole comparison: the run that is shown and all pins, what differs, as rich text.
  QString table() const;
  /// The same of one pin and the run that is shown.
  QString table(std::size_t index) const;
  bool running() const { return job_ != 0; }

 signals:
  void changed();
  void runningChanged(bool running);

 private:
  Facets facets(const Pin& pin) const;
  Facets facets(const Trace& trace, const std::string& preset) const;
  Facets facetsOfShown() const;
  bool needsRun(const Pin& pin) const;
  void next();
  void take(const TracePtr& trace, const QString& problem);
  void giveUp();          ///< what runs; it begins again with next()
  void update();          ///< which are comparable, and all names

  SessionController* session_;
  LoadedSequencePtr input_;  ///< of what is shown
  Probe wanted_, asked_;     ///< asked_: of the run that goes on
  std::vector<Pin> pins_;
  mutable std::map<std::string, std::map<std::string, std::string>> symbols_;  ///< of hyper-parameters, by preset
  std::uint64_t job_ = 0, jobs_ = 0;  ///< the one that runs, 0 for none
  Worker worker_;  // last: joined before what it reports to is gone
};

/// Whether both are one sequence, read in the same way.
bool sameInput(const LoadedSequencePtr& a, const LoadedSequencePtr& b);

}  // namespace reclab
