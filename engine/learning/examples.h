// SPDX-License-Identifier: GPL-3.0-or-later
// Examples, the data that a model learns from: sequences, as many as are asked for, and held-out ones that it is evaluated on and never
// learns from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sequence/sequence.h"

namespace reclab {

class Examples {
 public:
  virtual ~Examples() = default;
  /// The `index`-th sequence of the `step`-th batch: a value of these two alone.
  virtual Sequence training(std::int64_t step, std::int64_t index) const = 0;
  /// The `index`-th sequence of those that are held out.
  virtual Sequence held_out(std::int64_t index) const = 0;
  /// The number of held-out sequences; 0: as many as are asked for.
  virtual std::int64_t held_out_count() const = 0;
  virtual std::int64_t length() const = 0;  ///< of each sequence
  virtual std::string text() const = 0;     ///< the data in words
};

/// A task, made anew for each example: no sequence is learned from twice. Each has a seed of its own, drawn from `options.seed`, its step
/// and its place. Throws Error for a task or options that there are none of.
std::unique_ptr<Examples> task_examples(const std::string& name, const TaskOptions& options);
/// The `index`-th sequence of a task that weights are evaluated on once they are trained. Its seed is of a stream of its own, so it is
/// drawn by no training, and held out by none, whatever their seeds; a task of which there are few different sequences may still make an
/// equal one.
Sequence evaluation_sequence(const std::string& name, const TaskOptions& options, std::int64_t index);

/// Windows of a long sequence as it was measured (not standardised). Its first steps are learned from, the rest is held out, and no window
/// of the one part reads a step of the other, nor has it as target.
struct WindowOptions {
  std::int64_t length = 100;  ///< steps of a window
  std::int64_t ahead = 1;     ///< where the sequence has no target: its own values so many steps later are
  double held_out = 0.2;      ///< share of the steps, the last ones
  bool standardise = true;    ///< by mean and deviation of the training part
  std::uint64_t seed = 1;     ///< of where windows begin
  bool operator==(const WindowOptions&) const = default;
};
/// The longest window of a sequence of so many steps that fits into both of its parts, with the steps ahead of it where there is no target
/// of its own; 0: none.
std::int64_t longest_window(std::int64_t steps, bool own_target, const WindowOptions& options);
/// Throws Error where either part is shorter than a window.
std::unique_ptr<Examples> window_examples(std::shared_ptr<const Sequence> sequence, const WindowOptions& options);

}  // namespace reclab
