// SPDX-License-Identifier: GPL-3.0-or-later
// An analysis: one thing that a run can record. Each is a file under experiment/analyses/, which the build lists.
#pragma once

#include <memory>
#include <vector>

#include "experiment/record/record.h"

namespace reclab {

/// It is asked at each stage of a run, in the order of these functions, and looks itself whether it is wanted (Record::request, wants).
class Analysis {
 public:
  explicit Analysis(Record& record) : record_(record) {}
  Analysis(const Analysis&) = delete;
  Analysis& operator=(const Analysis&) = delete;
  virtual ~Analysis() = default;

  /// The kinds that it records, at least one.
  virtual Kinds kinds() const = 0;
  /// Whether it is of inputs and outputs of the whole network, which every form has, and whether it is of states inside its layers, which a
  /// form that never forms the state leaves to the sequential form on the same weights: a second rollout then.
  virtual bool needs_outputs() const { return false; }
  virtual bool needs_states() const { return true; }
  /// Whether its arrays are of states, or of the Jacobians and adjoints of those that keep them: the rollout then keeps them all.
  virtual bool of_states() const { return false; }
  /// Called before anything runs, to mark arrays that there will never be.
  virtual void plan() {}
  /// The bytes of a recorded step: from them and the limit follows how many steps are recorded.
  virtual double bytes_a_row() const { return 0.0; }

  /// A rollout is made, which steps are recorded is known (Record::trace.steps).
  virtual void begin(const Network& network) { static_cast<void>(network); }
  /// Called after each segment on the way forward.
  virtual void forward(const Rollout::Segment& segment) { static_cast<void>(segment); }
  /// Called after the way forward, when it has not diverged. `network` is that of the form that was asked for.
  virtual void ran(Network& network) { static_cast<void>(network); }

  /// Whether it needs the way back, and the call for each segment of it, last first: gradients are to be multiplied with 2^scale.
  virtual bool goes_back() const { return false; }
  virtual void backward(const Rollout::Segment& segment, int scale) {
    static_cast<void>(segment);
    static_cast<void>(scale);
  }
  /// Called after the way back of each rollout.
  virtual void went_back(Rollout& rollout) { static_cast<void>(rollout); }

  /// The recording ends with the first `rows` of its rows: into the trace. Also of a run that was cancelled or diverged.
  virtual void finish(std::int64_t rows) { static_cast<void>(rows); }

  /// The seconds that its arrays at RecordingOptions::focus take, 0 for none; and the call that adds them to the trace.
  virtual double seconds_at_focus() const { return 0.0; }
  virtual void at_focus() {}
  /// Runs passes of its own, when the first results are published. True when it has put something that is worth a publication.
  virtual bool revisit(Rollout& rollout) {
    static_cast<void>(rollout);
    return false;
  }

 protected:
  Record& record_;
};

/// All analyses, in the order in which a run asks them: that of their first kinds in the table.
std::vector<std::unique_ptr<Analysis>> analyses_of(Record& record);

using AnalysisMaker = std::unique_ptr<Analysis> (*)(Record&);
const std::vector<AnalysisMaker>& analysis_makers();
inline void list(std::vector<AnalysisMaker>& table, const char*, const char*, AnalysisMaker make) { table.push_back(make); }

}  // namespace reclab
