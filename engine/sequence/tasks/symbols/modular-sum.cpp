// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  const std::int64_t modulus = parameters.integer("modulus");
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(sequence.length));
  Rng draw = rng.split("numbers");
  for (std::int64_t& token : tokens) token = draw.integer(modulus);
  one_hot(sequence, tokens, modulus, "number");
  std::int64_t sum = 0;
  for (std::size_t t = 0; t < tokens.size(); ++t) answer(sequence, t, sum = (sum + tokens[t]) % modulus, modulus);
}

}  // namespace

Task modular_sum() {
  return {
      .info =
          {.name = {},
           .title = "Sum modulo five",
           .text =
               "Numbers from 0 to 4, one-hot; the target, at every step, is their sum so far modulo 5. The state turns around a circle of "
               "five places, which eigenvalues on the unit circle, or a permutation, do exactly. Guessing has a cross-entropy of log 5 = "
               "1.61.",
           .default_length = 64,
           .source = "a word problem of the cyclic group, as in Merrill, Petty and Sabharwal 2024, The illusion of state in state-space "
                     "models",
           .parameters = {hyper_integer("modulus", "m", 5, 2, 1000,
                                        "How many places the circle has; guessing among them has a cross-entropy of log m")}},
      .least = [](const Hyper&) { return std::pair(std::int64_t{1}, std::string("one step")); },
      .make = make};
}

}  // namespace reclab::tasks_by_name
