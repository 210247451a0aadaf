// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng&) {
  set_width(sequence, {"sine"});
  add_target(sequence, TargetKind::regress, 1);
  const std::int64_t period = parameters.integer("period");
  for (std::int64_t t = 0; t < sequence.length; ++t) {
    sequence.input[static_cast<std::size_t>(t)] = sine_at(t, period);
    sequence.target[static_cast<std::size_t>(t)] = sine_at(t + 1, period);
    sequence.mask[static_cast<std::size_t>(t)] = 1.0;
  }
}

}  // namespace

Task sine() {
  return {.info = {.name = {},
                   .title = "Sine, next value",
                   .text = "A sine of amplitude 1 and a period of 50 steps; the target, at every step, is the next value. Two numbers of "
                           "memory are enough; "
                           "repeating the last value is the answer to beat.",
                   .default_length = 500,
                   .source = "a standard test signal; as an online prediction task in Tiezzi and others 2024, On the resurgence of "
                             "recurrent models for long "
                             "sequences (a sine at 2.8 mHz)",
                   .parameters = {hyper_integer("period", "P", 50, 3, 1'000'000, "How many steps a period has", "steps")}},
          .foretells = true,
          .least = [](const Hyper&) { return std::pair(std::int64_t{1}, std::string("one step")); },
          .make = make};
}

}  // namespace reclab::tasks_by_name
