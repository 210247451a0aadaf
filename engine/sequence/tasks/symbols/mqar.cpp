// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <numeric>

#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

/// Some of 0 .. all - 1, each once, in random order.
std::vector<std::int64_t> some_of(Rng draw, std::int64_t all, std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(all));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::int64_t i = 0; i < count; ++i)
    std::swap(numbers[static_cast<std::size_t>(i)], numbers[static_cast<std::size_t>(i + draw.integer(all - i))]);
  numbers.resize(static_cast<std::size_t>(count));
  return numbers;
}

/// Places for queries, of which there is one every other step: the i-th is 1/i as likely as the first, and each is taken once.
std::vector<std::size_t> query_places(Rng draw, std::int64_t places, std::int64_t count) {
  std::vector<double> sums;
  double sum = 0.0;
  for (std::int64_t i = 1; i <= places; ++i) sums.push_back(sum += 1.0 / static_cast<double>(i));
  std::vector<std::size_t> taken;
  std::vector<bool> is_taken(sums.size());
  while (std::ssize(taken) < count) {
    const auto at = static_cast<std::size_t>(std::ranges::upper_bound(sums, draw.uniform(0.0, sum)) - sums.begin());
    if (at >= sums.size() || is_taken[at]) continue;
    is_taken[at] = true;
    taken.push_back(at);
  }
  return taken;
}

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  const std::int64_t pairs = parameters.integer("pairs"), values = parameters.integer("values"),
                     keys = std::max(parameters.integer("keys"), pairs);
  const bool at_once = parameters.integer("pair_steps") == 1;
  const std::size_t pair = at_once ? 1 : 2, shown = pair * static_cast<std::size_t>(pairs);
  const auto key = some_of(rng.split("keys"), keys, pairs);
  std::vector<std::int64_t> value, tokens(static_cast<std::size_t>(sequence.length), 0);
  Rng draw = rng.split("values");
  for (std::size_t i = 0; i < key.size(); ++i) {
    value.push_back(draw.integer(values));
    tokens[pair * i] = 1 + key[i];
    if (!at_once) tokens[2 * i + 1] = 1 + keys + value[i];
  }
  const auto places = query_places(rng.split("gaps"), (sequence.length - std::ssize(key) * static_cast<std::int64_t>(pair)) / 2, pairs);
  for (std::size_t i = 0; i < key.size(); ++i) tokens[shown + 2 * places[i]] = 1 + key[i];
  one_hot(sequence, tokens, 1 + keys + values, "value");
  for (std::size_t i = 0; at_once && i < key.size(); ++i)
    sequence.input[i * static_cast<std::size_t>(sequence.width) + static_cast<std::size_t>(1 + keys + value[i])] = 1.0;
  for (std::int64_t k = 0; k <= keys; ++k) sequence.names[static_cast<std::size_t>(k)] = k == 0 ? "blank" : "key " + std::to_string(k - 1);
  for (std::int64_t v = 0; v < values; ++v) sequence.names[static_cast<std::size_t>(1 + keys + v)] = "value " + std::to_string(v);
  for (std::size_t i = 0; i < key.size(); ++i) answer(sequence, shown + 2 * places[i], value[i], values, pair * i + pair - 1);
}

}  // namespace

Task mqar() {
  return {
      .info =
          {.name = {},
           .title = "Multi-query associative recall",
           .text =
               "Eight pairs of a key and its value, one-hot, then each key once again among blanks, soon after the pairs more often than "
               "late (the gap follows a power law); the target, at each of those, is its value. All pairs must be held at once, so the "
               "state must be as large as they are. Guessing among eight values has a cross-entropy of log 8 = 2.08.",
           .default_length = 64,
           .source = "Arora and others 2023, Zoology: measuring and improving recall in efficient language models",
           .parameters = {hyper_integer("pairs", "D", 8, 1, 1000, "How many pairs there are, and how many queries"),
                          hyper_integer("keys", "K", 16, 1, 10'000, "How many different keys there are; as many as pairs at least"),
                          hyper_integer("values", "V", 8, 1, 1000,
                                        "How many different values there are; guessing among them has a cross-entropy of log V"),
                          hyper_integer("pair_steps", "p", 2, 1, 2,
                                        "2: a key and then its value; 1: both at one step, as Schlag and others 2021 have them, so that no "
                                        "layer has to look at the step before")}},
      .least =
          [](const Hyper& parameters) {
            const std::int64_t pairs = parameters.integer("pairs");
            return std::pair((2 + parameters.integer("pair_steps")) * pairs,
                             std::to_string(pairs) + " pairs, and as many queries with a blank after each");
          },
      .make = make};
}

}  // namespace reclab::tasks_by_name
