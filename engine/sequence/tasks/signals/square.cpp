// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng&) {
  set_width(sequence, {"square"});
  const std::int64_t period = parameters.integer("period");
  for (std::int64_t t = 0; t < sequence.length; ++t) sequence.input[static_cast<std::size_t>(t)] = 2 * (t % period) < period ? 1.0 : -1.0;
}

}  // namespace

Task square() {
  return {
      .info =
          {.name = {},
           .title = "Square wave",
           .text =
               "1 for half a period and −1 for the other half, 50 steps in all, without a target: a step response after the other, from "
               "both sides.",
           .default_length = 300,
           .source = "a standard test signal",
           .parameters = {hyper_integer("period", "P", 50, 2, 1'000'000, "How many steps a period has", "steps")}},
      .signal = true,
      .least = [](const Hyper&) { return std::pair(std::int64_t{1}, std::string("one step")); },
      .make = make};
}

}  // namespace reclab::tasks_by_name
