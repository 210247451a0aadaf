// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  set_width(sequence, {"bit"});
  const double chance = parameters.real("chance");
  Rng draw = rng.split("bits");
  std::int64_t parity = 0;
  for (std::size_t t = 0; t < sequence.input.size(); ++t) {
    const bool one = draw.uniform() < chance;
    sequence.input[t] = one ? 1.0 : 0.0;
    parity ^= one ? 1 : 0;
    answer(sequence, t, parity, 2);
  }
}

}  // namespace

Task parity() {
  return {
      .info =
          {.name = {},
           .title = "Parity",
           .text =
               "Bits, 0 or 1 with the same chance; the target, at every step, is whether the number of ones so far is odd. One bit of "
               "memory is enough, but each 1 must turn it: what is linear in its state with eigenvalues between 0 and 1 cannot. Guessing "
               "has a cross-entropy of log 2 = 0.69.",
           .default_length = 64,
           .source =
               "a classic of the study of recurrent networks; as a measure of what models can express in Merrill, Petty and Sabharwal "
               "2024, The illusion of state in state-space models, and Grazzi and others 2024, Unlocking state-tracking in linear RNNs "
               "through negative eigenvalues",
           .parameters = {hyper_real("chance", "p", 0.5, 0.0, 1.0, "The chance of a 1")}},
      .least = [](const Hyper&) { return std::pair(std::int64_t{1}, std::string("one step")); },
      .make = make};
}

}  // namespace reclab::tasks_by_name
