// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  set_width(sequence, {"noise"});
  add_target(sequence, TargetKind::regress, 1);
  Rng draw = rng.split("noise");
  for (double& value : sequence.input) value = draw.normal();
  const auto delay = static_cast<std::size_t>(parameters.integer("delay"));
  for (std::size_t t = delay; t < sequence.input.size(); ++t) {
    sequence.target[t] = sequence.input[t - delay];
    sequence.mask[t] = 1.0;
    shown_at(sequence, t, t - delay);
  }
}

}  // namespace

Task delay() {
  return {.info = {.name = {},
                   .title = "Delay line",
                   .text = "Independent normal numbers of mean 0 and deviation 1; the target, at every step that has one, is the input of "
                           "20 steps before. All "
                           "of the last 20 numbers must be held at once, so it measures how much a state can hold; always answering 0 has "
                           "a mean squared "
                           "error of 1.",
                   .default_length = 300,
                   .source = "Jaeger 2002, Short term memory in echo state networks; of band-limited noise in Voelker, Kajić and Eliasmith "
                             "2019, Legendre memory "
                             "units",
                   .parameters = {hyper_integer("delay", "θ", 20, 0, 99'999'999, "How many steps ago the input was that is the target",
                                                "steps")}},
          .least =
              [](const Hyper& parameters) {
                const std::int64_t delay = parameters.integer("delay");
                return std::pair(delay + 1, "a step that comes " + std::to_string(delay) + " after another");
              },
          .make = make};
}

}  // namespace reclab::tasks_by_name
