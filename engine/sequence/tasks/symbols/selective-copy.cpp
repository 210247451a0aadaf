// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

/// Every set of steps before the markers is as likely as any other: a step is taken with the chance of those still wanted among those left.
void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  const std::int64_t kept = parameters.integer("symbols"), before = sequence.length - kept;
  std::vector<std::size_t> places;
  Rng draw = rng.split("places");
  for (std::int64_t t = 0; t < before; ++t)
    if (draw.integer(before - t) < kept - static_cast<std::int64_t>(places.size())) places.push_back(static_cast<std::size_t>(t));
  recall(sequence, rng, places, parameters.integer("alphabet"));
}

}  // namespace

Task selective_copy() {
  return {
      .info =
          {.name = {},
           .title = "Selective copying",
           .text =
               "Ten symbols drawn from 1 to 8 at steps drawn at random among blanks (0), then ten markers (9), one-hot over ten channels; "
               "the "
               "target, over the last ten steps, is the ten symbols in their order. What to keep depends on what is seen, not on when: the "
               "blanks between have to be passed over. Guessing among the eight has a cross-entropy of log 8 = 2.08.",
           .default_length = 120,
           .source = "Gu and Dao 2023, Mamba: linear-time sequence modeling with selective state spaces; after Jing and others 2019, Gated "
                     "orthogonal "
                     "recurrent units",
           .parameters = {hyper_integer("symbols", "K", 10, 1, 10'000,
                                        "How many symbols are to be kept, and how many markers ask for them"),
                          hyper_integer("alphabet", "N", 8, 1, 1000,
                                        "How many different symbols there are; guessing among them has a cross-entropy of log N")}},
      .least =
          [](const Hyper& parameters) {
            const std::int64_t kept = parameters.integer("symbols");
            return std::pair(2 * kept + 1, std::to_string(kept) + " symbols, at least 1 blank and " + std::to_string(kept) + " markers");
          },
      .make = make};
}

}  // namespace reclab::tasks_by_name
