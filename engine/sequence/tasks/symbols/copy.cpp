// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <numeric>

#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  const std::int64_t kept = parameters.integer("symbols"), delay = parameters.integer("delay");
  std::vector<std::size_t> places(static_cast<std::size_t>(kept));
  std::iota(places.begin(), places.end(), static_cast<std::size_t>(delay > 0 ? sequence.length - 2 * kept - delay : 0));
  recall(sequence, rng, places, parameters.integer("alphabet"));
}

}  // namespace

Task copy() {
  return {
      .info =
          {.name = {},
           .title = "Copy memory",
           .text =
               "Ten symbols drawn from 1 to 8, then T blanks (0), then ten markers (9), one-hot over ten channels, T + 20 steps in all; "
               "the "
               "target, over the last ten steps, is the ten symbols in their order. Each must be held for T + 10 steps; guessing among the "
               "eight has a cross-entropy of log 8 = 2.08.",
           .default_length = 120,
           .source = "after Hochreiter and Schmidhuber 1997, Long short-term memory; in this form Arjovsky, Shah and Bengio 2016, Unitary "
                     "evolution "
                     "recurrent neural networks",
           .parameters = {hyper_integer("delay", "T", 0, 0, 100'000'000,
                                        "How many blanks stand between the symbols and the markers; 0: as many as the length leaves. What "
                                        "else the length leaves is blank "
                                        "in front of the symbols",
                                        "steps"),
                          hyper_integer("symbols", "K", 10, 1, 10'000,
                                        "How many symbols are to be kept, and how many markers ask for them"),
                          hyper_integer("alphabet", "N", 8, 1, 1000,
                                        "How many different symbols there are; guessing among them has a cross-entropy of log N")}},
      .least =
          [](const Hyper& parameters) {
            const std::int64_t kept = parameters.integer("symbols"), blanks = std::max<std::int64_t>(1, parameters.integer("delay"));
            return std::pair(2 * kept + blanks, std::to_string(kept) + " symbols, at least " + std::to_string(blanks) +
                                                    (blanks == 1 ? " blank and " : " blanks and ") + std::to_string(kept) + " markers");
          },
      .make = make};
}

}  // namespace reclab::tasks_by_name
