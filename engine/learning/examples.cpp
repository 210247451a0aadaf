// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/examples.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "array/error.h"
#include "array/rng.h"

namespace reclab {
namespace {

/// A sequence of a part of those that a task's seed gives.
Sequence made(const std::string& name, TaskOptions options, const char* part, std::int64_t step, std::int64_t index) {
  options.seed = Rng(options.seed).split(part).split(std::to_string(step)).split(std::to_string(index)).bits();
  return make_task(name, options);
}

class TaskExamples final : public Examples {
 public:
  TaskExamples(std::string name, TaskOptions options) : name_(std::move(name)), options_(std::move(options)) {
    length_ = made("first", 0, 0).length;
  }
  Sequence training(std::int64_t step, std::int64_t index) const override { return made("training", step, index); }
  Sequence held_out(std::int64_t index) const override { return made("held out", 0, index); }
  std::int64_t held_out_count() const override { return 0; }
  std::int64_t length() const override { return length_; }
  std::string text() const override {
    return "the task " + name_ + " of " + std::to_string(length_) + " steps, fresh sequences at every step";
  }

 private:
  Sequence made(const char* part, std::int64_t step, std::int64_t index) const { return reclab::made(name_, options_, part, step, index); }
  std::string name_;
  TaskOptions options_;
  std::int64_t length_ = 0;
};

/// Steps that are learned from; the others are held out.
std::int64_t learned_of(std::int64_t steps, const WindowOptions& options) {
  return steps - static_cast<std::int64_t>(std::llround(options.held_out * static_cast<double>(steps)));
}

class WindowExamples final : public Examples {
 public:
  WindowExamples(std::shared_ptr<const Sequence> sequence, const WindowOptions& options) : whole_(std::move(sequence)), options_(options) {
    const Sequence& all = *whole_;
    own_target_ = all.target_kind != TargetKind::none;
    if (options.length < 1) refuse("window", std::to_string(options.length), "is no length of a window: choose 1 or more");
    if (options.ahead < 1) refuse("ahead", std::to_string(options.ahead), "is not ahead: choose 1 or more");
    if (!(options.held_out > 0.0 && options.held_out < 1.0))
      refuse("held-out", std::to_string(options.held_out), "is no share: choose a number between 0 and 1");
    // A window and the steps ahead of its last lie in one part.
    reach_ = options.length + (own_target_ ? 0 : options.ahead);
    learned_ = learned_of(all.length, options);
    if (learned_ < reach_ || all.length - learned_ < reach_)
      refuse("window", std::to_string(options.length),
             "and what is ahead of it do not fit into the " + std::to_string(std::min(learned_, all.length - learned_)) +
                 " steps of a part of " + all.name + " (" + std::to_string(learned_) + " to learn from, " +
                 std::to_string(all.length - learned_) + " held out): choose a shorter window, or a longer sequence");
    input_ = measured(all.input, all.width, all.flags);
    if (own_target_ && all.target_kind == TargetKind::regress) target_ = measured(all.target, all.target_width, 0);
  }
  Sequence training(std::int64_t step, std::int64_t index) const override {
    const std::int64_t places = learned_ - reach_ + 1;
    return window(Rng(options_.seed).split("training").split(std::to_string(step)).split(std::to_string(index)).integer(places));
  }
  Sequence held_out(std::int64_t index) const override {
    // As many as stand side by side; where more are asked for they begin again, a part of a window later.
    const std::int64_t places = whole_->length - learned_ - reach_ + 1;
    return window(learned_ + index * options_.length % places);
  }
  std::int64_t held_out_count() const override {
    return std::max<std::int64_t>(1, (whole_->length - learned_ - reach_ + options_.length) / options_.length);
  }
  std::int64_t length() const override { return options_.length; }
  std::string text() const override {
    const std::string missing = missing_words(whole_->missing);
    return "windows of " + std::to_string(options_.length) + " of the first " + std::to_string(learned_) + " steps of " + whole_->name +
           "; the other " + std::to_string(whole_->length - learned_) + " are held out" +
           (own_target_ ? "" : "; the target is the value " + std::to_string(options_.ahead) + " ahead") +
           (missing.empty() ? "" : "; " + missing);
  }

 private:
  [[noreturn]] static void refuse(const std::string& option, const std::string& value, const std::string& why) {
    throw Error(option + " = " + value + " " + why + ".", {.parameter = option, .value = value});
  }
  struct Moments {
    std::vector<double> mean, deviation;
  };
  /// Of the steps that are learned from; 0 and 1 where nothing is to be standardised, and of the last `flags` columns.
  Moments measured(const std::vector<double>& values, std::int64_t columns, std::int64_t flags) const {
    const auto width = static_cast<std::size_t>(columns);
    Moments of{std::vector<double>(width, 0.0), std::vector<double>(width, 1.0)};
    for (std::size_t j = 0; options_.standardise && j < width - static_cast<std::size_t>(flags); ++j) {
      double sum = 0.0, squares = 0.0;
      const auto at = [&](std::int64_t t) { return values[static_cast<std::size_t>(t) * width + j]; };
      for (std::int64_t t = 0; t < learned_; ++t) sum += at(t);
      of.mean[j] = sum / static_cast<double>(learned_);
      for (std::int64_t t = 0; t < learned_; ++t) squares += (at(t) - of.mean[j]) * (at(t) - of.mean[j]);
      const double deviation = std::sqrt(squares / static_cast<double>(learned_));
      if (!std::isfinite(deviation))
        throw Error(whole_->name + " has values that are too large to be standardised" +
                        Remedy{": ", "take them as they are (", {"standardise", "no"}, ")"} + ".",
                    {.file = whole_->source});
      if (deviation > 0.0) of.deviation[j] = deviation;
    }
    return of;
  }
  /// The rows [from, from + length) of a table, standardised.
  std::vector<double> rows(const std::vector<double>& values, const Moments& by, std::int64_t from) const {
    const std::size_t width = by.mean.size();
    const auto first = static_cast<std::size_t>(from) * width;
    std::vector<double> some(values.begin() + static_cast<std::ptrdiff_t>(first),
                             values.begin() + static_cast<std::ptrdiff_t>(first + static_cast<std::size_t>(options_.length) * width));
    for (std::size_t i = 0; i < some.size(); ++i) some[i] = (some[i] - by.mean[i % width]) / by.deviation[i % width];
    return some;
  }
  /// Of rows of `width` numbers the first `values` each.
  static void drop_flags(std::vector<double>& rows, std::size_t width, std::size_t values) {
    std::size_t to = 0;
    for (std::size_t at = 0; at < rows.size(); ++at)
      if (at % width < values) rows[to++] = rows[at];
    rows.resize(to);
  }
  Sequence window(std::int64_t from) const {
    const Sequence& all = *whole_;
    Sequence part;
    part.name = all.name + ", steps " + std::to_string(from) + " to " + std::to_string(from + options_.length - 1);
    part.source = all.source;
    part.length = options_.length;
    part.width = all.width;
    part.names = all.names;
    part.flags = all.flags;
    part.time.assign(all.time.begin() + from, all.time.begin() + from + part.length);
    part.time_name = all.time_name;
    part.time_unit = all.time_unit;
    part.standardised = options_.standardise;
    part.mean = input_.mean;
    part.deviation = input_.deviation;
    part.input = rows(all.input, input_, from);
    if (own_target_) {
      part.target_kind = all.target_kind;
      part.target_width = all.target_width;
      part.classes = all.classes;
      part.target_names = all.target_names;
      if (part.target_kind == TargetKind::regress)
        part.target = rows(all.target, target_, from);
      else
        part.target.assign(all.target.begin() + from, all.target.begin() + from + part.length);
      part.mask.assign(all.mask.begin() + from, all.mask.begin() + from + part.length);
    } else {
      part.target_kind = TargetKind::regress;
      part.target_width = all.width - all.flags;
      part.target_names.assign(all.names.begin(), all.names.end() - all.flags);
      part.mask.assign(static_cast<std::size_t>(part.length), 1.0);
      if (!all.known.empty())
        std::copy_n(all.known.begin() + from + options_.ahead, part.length, part.mask.begin());  // values filled in are no target
      part.target = rows(all.input, input_, from + options_.ahead);
      if (all.flags > 0) drop_flags(part.target, static_cast<std::size_t>(all.width), static_cast<std::size_t>(part.target_width));
    }
    return part;
  }

  std::shared_ptr<const Sequence> whole_;
  WindowOptions options_;
  bool own_target_ = false;
  std::int64_t reach_ = 0, learned_ = 0;
  Moments input_, target_;
};

}  // namespace

std::unique_ptr<Examples> task_examples(const std::string& name, const TaskOptions& options) {
  return std::make_unique<TaskExamples>(name, options);
}

Sequence evaluation_sequence(const std::string& name, const TaskOptions& options, std::int64_t index) {
  return made(name, options, "evaluation", 0, index);
}

std::int64_t longest_window(std::int64_t steps, bool own_target, const WindowOptions& options) {
  const std::int64_t learned = learned_of(steps, options);
  return std::max<std::int64_t>(0, std::min(learned, steps - learned) - (own_target ? 0 : options.ahead));
}

std::unique_ptr<Examples> window_examples(std::shared_ptr<const Sequence> sequence, const WindowOptions& options) {
  return std::make_unique<WindowExamples>(std::move(sequence), options);
}

}  // namespace reclab
