// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  const std::int64_t alphabet = parameters.integer("alphabet");
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(sequence.length));
  Rng draw = rng.split("tokens");
  for (std::int64_t& token : tokens) token = draw.integer(alphabet);
  const auto place = static_cast<std::size_t>(rng.split("place").integer(sequence.length - 2));
  tokens[place] = tokens.back() = alphabet;
  one_hot(sequence, tokens, alphabet + 1, "token");
  sequence.names.back() = "special";
  answer(sequence, tokens.size() - 1, tokens[place + 1], alphabet, place + 1);
}

}  // namespace

Task induction_heads() {
  return {
      .info =
          {.name = {},
           .title = "Induction heads",
           .text =
               "Tokens drawn from 16, one-hot, among which a special token stands once and then again at the end; the target, at the end, "
               "is the token that came after it the first time. What to keep is known only when it is seen, and must then be held however "
               "long the rest is. Guessing has a cross-entropy of log 16 = 2.77.",
           .default_length = 256,
           .source = "Olsson and others 2022, In-context learning and induction heads; as a task Fu and others 2023, Hungry hungry hippos, "
                     "and Gu and Dao 2023, Mamba",
           .parameters = {hyper_integer("alphabet", "V", 16, 1, 1000, "How many different tokens there are beside the special one")}},
      .least = [](const Hyper&) { return std::pair(std::int64_t{3}, std::string("the special token twice and one between")); },
      .make = make};
}

}  // namespace reclab::tasks_by_name
