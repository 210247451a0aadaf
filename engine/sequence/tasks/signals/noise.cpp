// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

/// An autoregressive process of first order, stationary from its first step on.
void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  set_width(sequence, {"noise"});
  Rng draw = rng.split("noise");
  for (double& value : sequence.input) value = draw.normal();
  const double correlation = parameters.real("correlation"), fresh = std::sqrt((1.0 - correlation) * (1.0 + correlation));
  if (correlation == 0.0) return;
  for (std::size_t t = 1; t < sequence.input.size(); ++t)
    sequence.input[t] = correlation * sequence.input[t - 1] + fresh * sequence.input[t];
}

}  // namespace

Task noise() {
  return {.info = {.name = {},
                   .title = "White noise",
                   .text = "Independent normal numbers of mean 0 and deviation 1, without a target. It drives every mode of a model alike, "
                           "so that states, "
                           "Jacobians and gradients show the model and not the input.",
                   .default_length = 500,
                   .source = "a standard test signal of system identification",
                   .parameters = {hyper_real("correlation", "ρ", 0.0, -0.999, 0.999,
                                             "Of each step with the one before: 0 is white noise, near 1 it drifts and drives the slow "
                                             "modes more, below 0 the fast ones; the "
                                             "deviation stays 1")}},
          .signal = true,
          .least = [](const Hyper&) { return std::pair(std::int64_t{1}, std::string("one step")); },
          .make = make};
}

}  // namespace reclab::tasks_by_name
