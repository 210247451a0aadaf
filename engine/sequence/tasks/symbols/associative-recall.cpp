// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

/// Each key has one value throughout a sequence.
void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  const std::int64_t keys = parameters.integer("keys"), values = parameters.integer("values"), pairs = (sequence.length - 1) / 2;
  std::vector<std::int64_t> value_of;
  Rng draw = rng.split("values");
  for (std::int64_t key = 0; key < keys; ++key) value_of.push_back(draw.integer(values));
  // The steps left over are blank, in front.
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(sequence.length - 2 * pairs - 1), 0);
  Rng shown = rng.split("keys");
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const std::int64_t key = shown.integer(keys);
    tokens.insert(tokens.end(), {1 + key, 1 + keys + value_of[static_cast<std::size_t>(key)]});
  }
  const std::size_t first = tokens.size() - static_cast<std::size_t>(2 * pairs);
  const std::int64_t asked = tokens[first + 2 * static_cast<std::size_t>(rng.split("asked").integer(pairs))];
  tokens.push_back(asked);
  one_hot(sequence, tokens, 1 + keys + values, "value");
  for (std::int64_t key = 0; key <= keys; ++key)
    sequence.names[static_cast<std::size_t>(key)] = key == 0 ? "blank" : "key " + std::to_string(key - 1);
  for (std::int64_t value = 0; value < values; ++value)
    sequence.names[static_cast<std::size_t>(1 + keys + value)] = "value " + std::to_string(value);
  const auto last = static_cast<std::size_t>(std::find(tokens.rbegin() + 1, tokens.rend(), asked).base() - tokens.begin());
  answer(sequence, tokens.size() - 1, value_of[static_cast<std::size_t>(asked - 1)], values, last);
}

}  // namespace

Task associative_recall() {
  return {
      .info =
          {.name = {},
           .title = "Associative recall",
           .text =
               "Pairs of a key and its value, one-hot, and at the end one of the keys again; the target, there, is its value. A key that "
               "is shown more than once has the same value each time. All pairs must be held, because any of them may be asked for. "
               "Guessing among ten values has a cross-entropy of log 10 = 2.30.",
           .default_length = 41,
           .source =
               "Ba, Hinton and others 2016, Using fast weights to attend to the recent past; Graves, Wayne and Danihelka 2014, Neural "
               "Turing machines",
           .parameters = {hyper_integer("keys", "K", 26, 1, 1000, "How many different keys there are"),
                          hyper_integer("values", "V", 10, 1, 1000,
                                        "How many different values there are; guessing among them has a cross-entropy of log V")}},
      .least = [](const Hyper&) { return std::pair(std::int64_t{3}, std::string("a key, its value and the key again")); },
      .make = make};
}

}  // namespace reclab::tasks_by_name
