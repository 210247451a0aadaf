// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  const std::int64_t bits = parameters.integer("bits");
  const double noise = parameters.real("noise");
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < bits; ++i) names.push_back("bit " + std::to_string(i + 1));
  set_width(sequence, names);
  Rng draw = rng.split("bits"), shift = rng.split("noise");
  std::int64_t parity = 0;
  std::vector<double> held;
  for (std::int64_t i = 0; i < bits; ++i) {
    const bool one = draw.uniform() < 0.5;
    parity ^= one ? 1 : 0;
    held.push_back((one ? 1.0 : -1.0) + noise * shift.normal());
  }
  for (std::size_t k = 0; k < sequence.input.size(); ++k) sequence.input[k] = held[k % held.size()];
  answer(sequence, static_cast<std::size_t>(sequence.length - 1), parity, 2);
}

}  // namespace

Task held_bits() {
  return {
      .info = {.name = {},
               .title = "Held bits",
               .text =
                   "Bits, -1 or 1 with some noise, are held at the input from the first step to the last; the target, at the last step, is "
                   "whether the number of ones is odd, which for two bits is exclusive or. Nothing is to be remembered: a state that "
                   "settles at a fixed point has the answer, so recurrent backpropagation can learn it. Guessing has a cross-entropy of "
                   "log 2 = 0.69.",
               .default_length = 40,
               .source = "the setting of recurrent backpropagation: Almeida 1987; Pineda 1987, Generalization of back-propagation to "
                         "recurrent neural networks, Physical Review Letters 59(19)",
               .parameters = {hyper_integer("bits", "n", 2, 1, 16, "Bits"),
                              hyper_real("noise", "σ", 0.1, 0.0, 10.0, "Standard deviation of what is added to each bit, once")}},
      .least = [](const Hyper&) { return std::pair(std::int64_t{1}, std::string("one step")); },
      .make = make};
}

}  // namespace reclab::tasks_by_name
