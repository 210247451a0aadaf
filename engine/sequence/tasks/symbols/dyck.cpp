// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  const std::int64_t kinds = parameters.integer("kinds"), depth = parameters.integer("depth");
  std::vector<std::int64_t> tokens, wanted, open;
  Rng draw = rng.split("brackets");
  for (std::int64_t t = 0; t < sequence.length; ++t) {
    const bool opens = open.empty() || (std::ssize(open) < depth && draw.integer(2) == 0);
    if (opens) {
      open.push_back(draw.integer(kinds));
      tokens.push_back(open.back());
    } else {
      tokens.push_back(kinds + open.back());
      open.pop_back();
    }
    wanted.push_back(open.empty() ? 0 : 1 + open.back());
  }
  one_hot(sequence, tokens, 2 * kinds, "open");
  for (std::int64_t k = 0; k < kinds; ++k) sequence.names[static_cast<std::size_t>(kinds + k)] = "close " + std::to_string(k);
  for (std::size_t t = 0; t < tokens.size(); ++t) answer(sequence, t, wanted[t], kinds + 1);
}

}  // namespace

Task dyck() {
  return {
      .info =
          {.name = {},
           .title = "Brackets (Dyck language)",
           .text =
               "Brackets of two kinds, one-hot, well nested and at most eight deep; the target, at every step, is which bracket may close "
               "next: of the kind that was opened last, or none where all are closed. What was opened must be held as on a stack.",
           .default_length = 100,
           .source =
               "Hewitt and others 2020, RNNs can generate bounded hierarchical languages with optimal memory; Suzgun and others 2019, "
               "LSTM networks can perform dynamic counting",
           .parameters = {hyper_integer("kinds", "k", 2, 1, 500, "How many kinds of brackets there are"),
                          hyper_integer("depth", "m", 8, 1, 1000, "How many may be open at once", "brackets")}},
      .least = [](const Hyper&) { return std::pair(std::int64_t{1}, std::string("one step")); },
      .make = make};
}

}  // namespace reclab::tasks_by_name
