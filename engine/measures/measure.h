// SPDX-License-Identifier: GPL-3.0-or-later
// Numbers that a run has, by a name and what they are of: "factor gradient/state/0/h". Claims of presets and lessons are made of them.
// An array is a key of the trace; "@first:last" behind it takes those steps alone, and entries of complex arrays count with their modulus.
// The array "elapsed" is the time since the step before. "with KEY=VALUE" at the end measures a run with another hyper-parameter.
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "experiment/experiment.h"

namespace reclab {

/// A run, and what it was asked for.
struct MeasuredRun {
  RunRequest request{};
  TracePtr trace{};
  FinalState state{};                    ///< after its last step
  std::map<std::string, double> view{};  ///< of a window: "pins", "cursor", "shown/gradients"; of what is not there 0
};

struct MeasureInfo {
  std::string name, arguments, text;  ///< "factor", "ARRAY", a sentence
};
const std::vector<MeasureInfo>& measures();
bool is_measure(const std::string& name);

/// The kinds of arrays that a measure, or an expression with measures in it, names.
Kinds kinds_named(const std::string& text);
/// The request with every step recorded, and of what takes time only what the measures name.
RunRequest recording_for(RunRequest request, const std::vector<std::string>& measured);
/// The run of that. Throws Error, also where it does not end as it should, and Cancelled.
MeasuredRun run_measured(const RunRequest& request, const std::vector<std::string>& measured, std::stop_token stop = {});

/// Throws Error for a measure that there is not, one of an array that the run does not have, and one that is no number for it.
double measure(const MeasuredRun& run, const std::string& text, std::stop_token stop = {});

}  // namespace reclab
