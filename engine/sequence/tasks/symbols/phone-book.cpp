// SPDX-License-Identifier: GPL-3.0-or-later
#include <numeric>

#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  const std::int64_t entries = parameters.integer("entries"), digits = parameters.integer("digits");
  std::vector<std::int64_t> name(static_cast<std::size_t>(entries));
  std::iota(name.begin(), name.end(), 0);
  Rng order = rng.split("names"), draw = rng.split("digits");
  for (std::int64_t i = 0; i + 1 < entries; ++i)
    std::swap(name[static_cast<std::size_t>(i)], name[static_cast<std::size_t>(i + order.integer(entries - i))]);
  constexpr std::int64_t blank = 0, first_digit = 1, first_name = 11;
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(sequence.length - entries * (1 + digits) - digits), blank);
  const std::size_t book = tokens.size();
  for (const std::int64_t one : name) {
    tokens.push_back(first_name + one);
    for (std::int64_t i = 0; i < digits; ++i) tokens.push_back(first_digit + draw.integer(10));
  }
  const std::size_t asked = book + static_cast<std::size_t>(rng.split("asked").integer(entries) * (1 + digits)), query = tokens.size();
  tokens.push_back(tokens[asked]);
  tokens.resize(query + static_cast<std::size_t>(digits), blank);
  one_hot(sequence, tokens, first_name + entries, "name");
  sequence.names[0] = "blank";
  for (std::int64_t i = 0; i < 10; ++i) sequence.names[static_cast<std::size_t>(first_digit + i)] = "digit " + std::to_string(i);
  for (std::int64_t i = 0; i < entries; ++i) sequence.names[static_cast<std::size_t>(first_name + i)] = "name " + std::to_string(i);
  for (std::size_t i = 0; i < static_cast<std::size_t>(digits); ++i)
    answer(sequence, query + i, tokens[asked + 1 + i] - first_digit, 10, asked + 1 + i);
}

}  // namespace

Task phone_book() {
  return {
      .info =
          {.name = {},
           .title = "Phone book",
           .text =
               "Eight names, each with a number of four digits, then one of the names; the target, from that step on, is its number, "
               "digit by digit. The whole book must be held, because any name may be asked for, and a state of fixed size holds only so "
               "much. Guessing has a cross-entropy of log 10 = 2.30.",
           .default_length = 44,
           .source = "Jelassi and others 2024, Repeat after me: transformers are better than state space models at copying",
           .parameters = {hyper_integer("entries", "E", 8, 1, 1000, "How many names the book has"),
                          hyper_integer("digits", "D", 4, 1, 100, "How many digits a number has", "digits")}},
      .least =
          [](const Hyper& parameters) {
            const std::int64_t entries = parameters.integer("entries"), digits = parameters.integer("digits");
            return std::pair(entries * (1 + digits) + digits, std::to_string(entries) +
                                                                  (entries == 1 ? " entry and a number" : " entries and a number") +
                                                                  " of " + std::to_string(digits) + (digits == 1 ? " digit" : " digits"));
          },
      .make = make};
}

}  // namespace reclab::tasks_by_name
