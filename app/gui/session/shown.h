// SPDX-License-Identifier: GPL-3.0-or-later
// The newest run as it is shown, with the timings and studies beside it, and the setups of the traces that panels still hold.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "gui/session/requests.h"

namespace reclab {

class Shown {
 public:
  const TracePtr& trace() const { return trace_; }
  const TracePtr& run() const { return run_; }  ///< alone
  const std::shared_ptr<const Setup>& setup() const { return setup_; }
  const std::shared_ptr<const FinalState>& state() const { return state_; }  ///< that it ended in; null before it has

  /// A stage of a run, or its result. False where there is nothing new to show: the last stage that was published is the result.
  bool take(const TracePtr& run, const std::shared_ptr<const Setup>& setup, std::shared_ptr<const FinalState> state);
  /// Joins the run with the results beside it to the trace that is shown; returns the former one.
  TracePtr join(const TracePtr& timing, const std::vector<TracePtr>& others);
  /// The setup of a trace that was shown; null where nobody holds it.
  std::shared_ptr<const Setup> setupOf(const TracePtr& trace) const;
  QString summary() const;  ///< for the status line

 private:
  TracePtr trace_, run_;
  std::weak_ptr<const Trace> given_;  ///< the newest trace of a run, as it came
  std::shared_ptr<const Setup> setup_;
  std::shared_ptr<const FinalState> state_;
  std::vector<std::pair<std::weak_ptr<const Trace>, std::shared_ptr<const Setup>>> setups_;
};

/// Where its weights come from that are not drawn, a file or a training; empty where they are drawn.
QString weightsInWords(const Setup& setup);

/// What a run was of, in the words of the window, where that is not what is set now: its model and what of it differs. Empty when nothing
/// does.
QString nameOfFormer(const RunInfo& run, const Setup& its, const Setup& now);

}  // namespace reclab
