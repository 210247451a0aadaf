// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

/// The phase is a whole number of parts of a turn, and so are its first and second differences.
void make(Sequence& sequence, const Hyper& parameters, const Rng&) {
  set_width(sequence, {"chirp"});
  constexpr std::int64_t turn = std::int64_t{1} << 56;
  const auto first = static_cast<std::int64_t>(static_cast<double>(turn) / parameters.real("from")),
             last = static_cast<std::int64_t>(static_cast<double>(turn) / parameters.real("to"));
  const std::int64_t rise = (last - first) / std::max<std::int64_t>(1, sequence.length - 1);
  std::int64_t phase = 0, speed = first;
  for (double& value : sequence.input) {
    value = sine_at(phase, turn);
    phase = (phase + speed) % turn;
    speed += rise;
  }
}

}  // namespace

Task chirp() {
  return {
      .info = {.name = {},
               .title = "Chirp",
               .text =
                   "A sine whose frequency rises evenly, from a period of 200 steps to one of 4, without a target: a frequency response in "
                   "one run, from slow to fast.",
               .default_length = 800,
               .source = "a standard test signal of system identification",
               .parameters = {hyper_real("from", "P_1", 200.0, 2.0, 1e6, "Steps of a period at the beginning", true, "steps"),
                              hyper_real("to", "P_2", 4.0, 2.0, 1e6, "Steps of a period at the end", true, "steps")}},
      .signal = true,
      .least = [](const Hyper&) { return std::pair(std::int64_t{1}, std::string("one step")); },
      .make = make};
}

}  // namespace reclab::tasks_by_name
