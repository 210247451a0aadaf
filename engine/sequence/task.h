// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of a synthetic task. Each task is one file in a folder of sequence/tasks/, which the build lists: menus, help, presets, the
// command line and the editors of its parameters follow from it. Everything random comes from Rng streams named after their draws. Inside
// the floor only.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "array/rng.h"
#include "sequence/sequence.h"

namespace reclab {

struct Task {
  TaskInfo info;           ///< its name is that of its file
  bool signal = false;     ///< a test signal without a target: those stand after the others
  bool foretells = false;  ///< its own target is the next input
  /// The least length, and the symbols that must have their place in it, "10 symbols, 1 blank and 10 markers".
  std::pair<std::int64_t, std::string> (*least)(const Hyper& parameters) = nullptr;
  /// Fills a sequence whose length and time are there; one with times of its own names them (time_name). Throws Error for parameters that
  /// do not go together.
  void (*make)(Sequence& sequence, const Hyper& parameters, const Rng& rng) = nullptr;
};
const std::vector<Task>& task_table();
void arrange(std::vector<Task>& table);

/// Channels, all of them 0.
void set_width(Sequence& sequence, std::vector<std::string> names);
/// A target for every step, counted at none.
void add_target(Sequence& sequence, TargetKind kind, std::int64_t width);
/// A channel a token, 1 at the steps that show it: their names are `name` and the token's number.
void one_hot(Sequence& sequence, const std::vector<std::int64_t>& tokens, std::int64_t channels, const std::string& name);
/// The target of a step was shown at an earlier one.
void shown_at(Sequence& sequence, std::size_t step, std::size_t shown);
/// The class that is the target at a step, of so many; `shown`: the step that showed it, where there is one.
void answer(Sequence& sequence, std::size_t step, std::int64_t wanted, std::int64_t classes, std::optional<std::size_t> shown = {});
/// One-hot: symbols 1 to `alphabet` at the given steps, blanks (0) elsewhere, and at the end as many markers, at which the symbols are the
/// target.
void recall(Sequence& sequence, const Rng& rng, const std::vector<std::size_t>& places, std::int64_t alphabet);

/// sin(2 pi k / period) by its Taylor series on the first quarter, so that no library's sine takes part; error below 3e-16.
double sine_at(std::int64_t k, std::int64_t period);

}  // namespace reclab
