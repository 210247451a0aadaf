// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  const auto kept = static_cast<std::size_t>(sequence.length / 2);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < kept; ++i) places.push_back(static_cast<std::size_t>(sequence.length) - kept - 1 - i);
  recall(sequence, rng, places, parameters.integer("alphabet"));
}

}  // namespace

Task reverse() {
  return {
      .info =
          {.name = {},
           .title = "Reversal",
           .text =
               "Symbols drawn from 1 to 8, as many as half the sequence takes, then as many markers (9), one-hot over ten channels; the "
               "target, at the markers, is the symbols backwards. The last symbol is wanted at once and the first one at the end, as from "
               "a stack. Guessing among the eight has a cross-entropy of log 8 = 2.08.",
           .default_length = 40,
           .source =
               "as in Graves, Wayne and Danihelka 2014, Neural Turing machines, and Grefenstette and others 2015, Learning to transduce "
               "with unbounded memory",
           .parameters = {hyper_integer("alphabet", "N", 8, 1, 1000,
                                        "How many different symbols there are; guessing among them has a cross-entropy of log N")}},
      .least = [](const Hyper&) { return std::pair(std::int64_t{2}, std::string("a symbol and a marker")); },
      .make = make};
}

}  // namespace reclab::tasks_by_name
