// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng&) {
  set_width(sequence, {"step"});
  for (auto t = static_cast<std::size_t>(parameters.integer("at")); t < sequence.input.size(); ++t) sequence.input[t] = 1.0;
}

}  // namespace

Task step() {
  return {
      .info = {.name = {},
               .title = "Step",
               .text =
                   "0 up to a step and 1 from there on, without a target. What comes out is the step response: how a model leaves one rest "
                   "for another, whether it overshoots, and how long it takes.",
               .default_length = 200,
               .source = "a standard test signal of linear systems theory",
               .parameters = {hyper_integer("at", "t_0", 10, 0, 99'999'999, "The first step that is 1, counted from 0", "steps")}},
      .signal = true,
      .least =
          [](const Hyper& parameters) {
            const std::int64_t at = parameters.integer("at");
            return std::pair(at + 1, at == 0 ? std::string("one step") : "the step " + std::to_string(at) + " at which it rises");
          },
      .make = make};
}

}  // namespace reclab::tasks_by_name
