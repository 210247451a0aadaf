// SPDX-License-Identifier: GPL-3.0-or-later
// Reconstruction of a signal's past from a memory's state, followed through a run and compared with that signal.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "execution/rollout.h"
#include "trace/trace.h"

namespace reclab {

/// The reconstruction of one state's signal (Layer::reconstruction). Rows come as segments pass, so that the errors are there for as many
/// of them as were run when a run is cancelled or diverges.
class Reconstruction {
 public:
  /// `number`: in the network's list of pasts. `rows`: how many will be recorded. `continued`: the run begins with a state, whose signal is
  /// not known.
  Reconstruction(const Network& network, std::size_t number, std::int64_t rows, bool continued);

  /// Sets the window from the parameter that has it (PastBasis::inverse_window).
  void measure(const Parameters& parameters);
  /// Takes the segment's signal, and the error after each of its recorded steps. Throws Cancelled.
  void add(const Rollout::Segment& segment, const std::function<bool(std::int64_t)>& recorded, const std::stop_token& stop);
  /// The first `rows` recorded rows, under the keys that are wanted: signal/, basis/ and reconstruction/<layer>/<state>.
  void put(Trace& trace, std::int64_t rows, const std::function<bool(std::string_view)>& wants) const;

  /// Doubles that a row takes, for RecordingOptions::every.
  static std::int64_t row_size(const Network::HistoryVar& past) { return 2 * past.signal.dim(-1) + 1; }
  /// The note for a run of that many steps; empty when the reconstruction is known throughout.
  static std::string note(const Network::HistoryVar& past, std::int64_t length, bool continued);

 private:
  Reconstruction(const Network& network, const Network::HistoryVar& past, std::int64_t rows, bool continued);
  double window(std::int64_t step) const;
  void compare(std::int64_t step, const std::vector<double>& state);

  std::string name_;  // "<layer>/<state>"
  PastBasis basis_;
  std::string unknown_;                             // why the window of some rows is not known
  std::size_t past_number_ = 0, state_number_ = 0;  // in the lists of each network of the rollout
  std::int64_t copies_ = 1, order_ = 1, most_ = 1;
  bool continued_ = false;
  std::vector<double> past_;                     // the signal at all steps so far, [steps, copies]
  std::vector<double> kept_, error_, reach_;     // of the recorded rows
  std::vector<std::int64_t> ages_;               // the past steps that are compared, counted back from the present one
  std::vector<double> places_, values_, guess_;  // [ages], [order, ages], [ages]
};

}  // namespace reclab
