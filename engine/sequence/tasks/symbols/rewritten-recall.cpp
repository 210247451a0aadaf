// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <numeric>

#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

std::vector<std::int64_t> shuffled(Rng draw, std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::int64_t i = count - 1; i > 0; --i)
    std::swap(numbers[static_cast<std::size_t>(i)], numbers[static_cast<std::size_t>(draw.integer(i + 1))]);
  return numbers;
}

/// Channels: blank, keys, values. A write has 1 at its key and at its value, a query at its key alone.
void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  const std::int64_t keys = parameters.integer("keys"), values = parameters.integer("values"), writes = keys * parameters.integer("writes");
  const auto width = static_cast<std::size_t>(1 + keys + values);
  std::vector<std::string> names{"blank"};
  for (std::int64_t k = 0; k < keys; ++k) names.push_back("key " + std::to_string(k));
  for (std::int64_t v = 0; v < values; ++v) names.push_back("value " + std::to_string(v));
  set_width(sequence, names);
  const auto on = [&](std::int64_t step, std::int64_t channel) {
    sequence.input[static_cast<std::size_t>(step) * width + static_cast<std::size_t>(channel)] = 1.0;
  };

  // Every key as often as every other, in random order; no key gets the value that it holds.
  const std::vector<std::int64_t> order = shuffled(rng.split("writes"), writes);
  Rng draw = rng.split("values");
  std::vector<std::int64_t> held(static_cast<std::size_t>(keys), -1), written(held);
  for (std::int64_t t = 0; t < writes; ++t) {
    const std::int64_t key = order[static_cast<std::size_t>(t)] % keys;
    std::int64_t& value = held[static_cast<std::size_t>(key)];
    value = value < 0 ? draw.integer(values) : (value + 1 + draw.integer(values - 1)) % values;
    written[static_cast<std::size_t>(key)] = t;
    on(t, 1 + key);
    on(t, 1 + keys + value);
  }
  // Each key is asked for once, at places of its own.
  std::vector<std::int64_t> places = shuffled(rng.split("places"), sequence.length - writes);
  places.resize(static_cast<std::size_t>(keys));
  std::ranges::sort(places);
  const std::vector<std::int64_t> asked = shuffled(rng.split("queries"), keys);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    on(writes + places[i], 1 + asked[i]);
    const auto key = static_cast<std::size_t>(asked[i]);
    answer(sequence, static_cast<std::size_t>(writes + places[i]), held[key], values, static_cast<std::size_t>(written[key]));
  }
  for (std::int64_t t = writes, i = 0; t < sequence.length; ++t)
    if (i < keys && writes + places[static_cast<std::size_t>(i)] == t)
      ++i;
    else
      on(t, 0);
}

}  // namespace

Task rewritten_recall() {
  return {
      .info =
          {.name = {},
           .title = "Recall of rewritten keys",
           .text =
               "A key and a value at each step, one-hot: each of eight keys is written three times, each time with another value, in "
               "random "
               "order; then each key comes once again among blanks, and the target is the value that it was given last. A memory that only "
               "adds returns what was written before with it, and one that forgets by time loses keys of long ago: a value has to be "
               "overwritten. Guessing among eight values has a cross-entropy of log 8 = 2.08.",
           .default_length = 40,
           .source =
               "Schlag, Irie and Schmidhuber 2021, Linear transformers are secretly fast weight programmers, its second synthetic setting",
           .parameters = {hyper_integer("keys", "K", 8, 1, 1000, "How many keys there are, and how many queries"),
                          hyper_integer("writes", "n", 3, 1, 100, "How often each key is written; 1: nothing is overwritten"),
                          hyper_integer("values", "V", 8, 2, 1000,
                                        "How many different values there are; guessing among them has a cross-entropy of log V")}},
      .least =
          [](const Hyper& parameters) {
            const std::int64_t keys = parameters.integer("keys"), writes = keys * parameters.integer("writes");
            return std::pair(writes + keys, std::to_string(writes) + " writes and " + std::to_string(keys) + " queries");
          },
      .make = make};
}

}  // namespace reclab::tasks_by_name
