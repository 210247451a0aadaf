// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

Task impulse() {
  return {
      .info = {.name = {},
               .title = "Impulse",
               .text =
                   "1 at the first step and 0 after it, without a target. What comes out is the impulse response: for a linear model its "
                   "convolution kernel, for every model how long one step is remembered.",
               .default_length = 200,
               .source = "a standard test signal of linear systems theory",
               .parameters = {hyper_integer("at", "t_0", 0, 0, 99'999'999,
                                            "The step that is 1, counted from 0; the steps before it show the model at rest", "steps")}},
      .signal = true,
      .least =
          [](const Hyper& parameters) {
            const std::int64_t at = parameters.integer("at");
            return std::pair(at + 1, at == 0 ? std::string("one step") : "the step " + std::to_string(at) + " of the impulse");
          },
      .make =
          [](Sequence& sequence, const Hyper& parameters, const Rng&) {
            set_width(sequence, {"impulse"});
            sequence.input[static_cast<std::size_t>(parameters.integer("at"))] = 1.0;
          }};
}

}  // namespace reclab::tasks_by_name
