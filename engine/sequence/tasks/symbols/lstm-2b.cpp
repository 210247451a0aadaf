// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  const std::int64_t symbols = parameters.integer("symbols");
  std::vector<std::string> names{"first"};
  for (std::int64_t i = 1; i <= symbols; ++i) names.push_back("symbol " + std::to_string(i));
  set_width(sequence, std::move(names));
  const std::int64_t side = rng.split("first").integer(2);
  sequence.input[0] = side == 1 ? 1.0 : -1.0;
  Rng draw = rng.split("symbols");
  for (std::int64_t t = 1; t < sequence.length; ++t)
    sequence.input[static_cast<std::size_t>(t * sequence.width + 1 + draw.integer(symbols))] = 1.0;
  answer(sequence, static_cast<std::size_t>(sequence.length - 1), side, 2);
}

}  // namespace

Task lstm_2b() {
  return {
      .info = {.name = {},
               .title = "The first of many (LSTM task 2b)",
               .text =
                   "The first step is 1 or −1 in a channel of its own; every other step shows one of 100 symbols at random, one-hot, which "
                   "tell nothing. The target, at the end, is which of the two the first step was. One bit must be held through all that "
                   "follows; guessing has a cross-entropy of log 2 = 0.69.",
               .default_length = 100,
               .source =
                   "Hochreiter and Schmidhuber 1997, Long short-term memory, experiment 2, with the first element as +1 or −1 as Bengio, "
                   "Simard and Frasconi 1994 have it",
               .parameters = {hyper_integer("symbols", "p", 100, 1, 1000, "How many different symbols there are to be passed over")}},
      .least = [](const Hyper&) { return std::pair(std::int64_t{2}, std::string("the first step and one more")); },
      .make = make};
}

}  // namespace reclab::tasks_by_name
