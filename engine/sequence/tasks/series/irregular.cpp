// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

constexpr std::int64_t parts = 8;  // of a unit of time: all times are multiples of an eighth, which a double holds exactly

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  set_width(sequence, {"sine"});
  add_target(sequence, TargetKind::regress, 1);
  const std::int64_t period = parameters.integer("period") * parts, gap = parameters.integer("gap") * parts;
  Rng draw = rng.split("times");
  sequence.time_name = "time";
  std::int64_t now = 0;
  for (std::int64_t t = 0; t < sequence.length; ++t) {
    const auto row = static_cast<std::size_t>(t);
    sequence.time[row] = static_cast<double>(now) / static_cast<double>(parts);
    sequence.input[row] = sine_at(now, period);
    now += draw.integer(parts) == 0 ? gap : 1 + draw.integer(2 * parts - 1);
    sequence.target[row] = sine_at(now, period);
    sequence.mask[row] = 1.0;
  }
}

}  // namespace

Task irregular() {
  return {.info = {.name = {},
                   .title = "Sine at unequal times, next value",
                   .text = "A sine that is looked at at unequal times: mostly an eighth to fifteen eighths of a unit apart, and one time "
                           "in eight after a long gap; the target, "
                           "at every step, is the next value that is looked at. The values alone do not tell what comes next: the time "
                           "between them must be known.",
                   .default_length = 200,
                   .source = "as Rubanova and others 2019, Latent ordinary differential equations for irregularly-sampled time series, "
                             "look at periodic curves at random times",
                   .parameters = {hyper_integer("period", "P", 20, 3, 1'000'000, "How many units of time a period has", "units"),
                                  hyper_integer("gap", "G", 6, 1, 100'000, "How long a gap is", "units")}},
          .foretells = true,
          .least = [](const Hyper&) { return std::pair(std::int64_t{1}, std::string("one step")); },
          .make = make};
}

}  // namespace reclab::tasks_by_name
