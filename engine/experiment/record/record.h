// SPDX-License-Identifier: GPL-3.0-or-later
// The record of one run: the request, its preparation, and the trace that its analyses fill.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "experiment/prepared.h"

namespace reclab {

/// The request, network and trace that the analyses of one run share.
class Record {
 public:
  /// `at`: is kept up to date with where the run is, in words.
  Record(const RunRequest& asked, Prepared& ready, const Progress& progress, std::stop_token token, std::string& at)
      : request(asked), prepared(ready), stop(std::move(token)), where(at), progress_(progress) {}

  const RunRequest& request;
  Prepared& prepared;
  const std::stop_token stop;
  std::string& where;
  Trace trace;
  double excluded_seconds = 0.0;  ///< seconds on the way forward that are no part of the run itself
  std::int64_t every = 1;         ///< of so many steps one is recorded, and the last one

  const Network& shape_network() const { return *prepared.shape_network; }  ///< names and shapes
  std::int64_t length() const { return request.sequence->length; }
  std::size_t layers() const { return trace.info.spectra.size(); }
  /// Whether --record, where it was given, names the key, something in front of it or behind it.
  bool names(std::string_view key) const;
  bool wants(Kind kind) const { return request.recording.kinds.has(kind) && names(prefix_of(kind)); }
  /// An array of a kind that is wanted.
  bool wants(std::string_view key) const;
  bool is_recorded(std::int64_t t) const { return t % every == 0 || t == length() - 1; }
  void report(double fraction, std::string_view stage) const {
    if (progress_) progress_(fraction, stage);
  }
  void check() const {
    if (stop.stop_requested()) throw Cancelled();
  }

  /// A note that is about arrays of these kinds, to be shown beside them.
  void note(Kinds kinds, const Sentence& sentence);
  /// The model has no arrays of these kinds, so that a panel need not wait for them; known before anything runs.
  void mark_unavailable(Kinds kinds, const std::string& sentence);
  /// An analysis of a Jacobian that is out of range has no result; the first such step is named. `fine` is asked of each of so many
  /// entries.
  template <class F>
  void note_not_finite(const std::string& key, const std::vector<std::int64_t>& steps, std::ptrdiff_t entries, const F& fine) {
    for (std::ptrdiff_t i = 0; i < entries; ++i)
      if (!fine(static_cast<std::size_t>(i)))
        return note_out_of_range(key, steps[static_cast<std::size_t>(i / (entries / std::ssize(steps)))]);
  }
  /// The recorded steps at which an analysis is worth its time; a note says which array has fewer rows. All where --every was given, since
  /// the user has then chosen.
  std::vector<std::int64_t> rows_within_budget(const std::string& key, const std::vector<std::int64_t>& steps, double seconds_row);

  bool reversed(std::size_t layer) const { return shape_network().layers()[layer].reversed; }
  /// The number of a time step in the segment, as the layer counts.
  std::int64_t own_step(const Rollout::Segment& segment, std::size_t layer, std::int64_t step) const {
    return reversed(layer) ? segment.steps - 1 - (step - segment.first) : step - segment.first;
  }
  bool per_step(std::size_t layer) const { return trace.info.spectra[layer].per_step; }
  /// Whether a layer has states that could have a transition: all where none has, else those that do.
  bool carries(std::size_t layer) const;
  /// Whether no layer's transition changes with time or input, so that one network stands for all of time.
  bool all_invariant() const;
  /// Whether some layer has a transition.
  bool any_transition() const;
  /// The transition of a layer in this run.
  Transition transition(std::size_t layer) const;

 private:
  void note_out_of_range(const std::string& key, std::int64_t step);
  const Progress& progress_;
};

/// An array whose first axis is time: axes and data from the rest.
TraceArray timed(std::string key, Shape shape, std::vector<Axis> axes, std::string unit, std::string text);
std::vector<Axis> axes_of(const Shape& shape, const std::string& one);
/// Thins the recorded steps evenly to at most `most`, the last one always kept (0: all of them).
std::vector<std::int64_t> thinned(const std::vector<std::int64_t>& steps, std::int64_t most);
/// "40 s", "12 minutes"
std::string duration_text(double seconds);

/// The transition of a layer: its one memory's, or that of several memories which are all diagonal.
Transition transition_of(const std::vector<Memory*>& memories);
void factors_at(const std::vector<Memory*>& memories, std::int64_t t, std::span<std::complex<double>> factors);
/// The seconds that the Jacobian of one step takes: a pass forward and two back.
double jacobian_seconds(const Memory& memory, std::int64_t steps);
/// The last recorded step of a segment in `steps`; there is one in the last segment, which analyses visit first.
std::int64_t last_of(const std::vector<std::int64_t>& steps, const Rollout::Segment& segment);

inline constexpr std::int64_t sampled_blocks = 8;  ///< blocks of a transition, of which the others are thought to be like
/// The cost of work(block, size) over all blocks of a memory, estimated from some of them with the Jacobian of one step.
template <class F>
double over_blocks(Memory& memory, std::int64_t step, const F& work) {
  const Transition own = memory.transition();
  const auto square = static_cast<std::size_t>(own.size * own.size);
  const std::int64_t some = std::min(own.count, sampled_blocks);
  std::vector<double> matrices(static_cast<std::size_t>(own.entries()));
  memory.jacobian(step, matrices);
  double sum = 0.0;
  for (std::int64_t block = 0; block < some; ++block)
    sum += work(std::span<const double>(matrices).subspan(static_cast<std::size_t>(block) * square, square), own.size);
  return sum * static_cast<double>(own.count) / static_cast<double>(some);
}

}  // namespace reclab
