// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  set_width(sequence, {"value", "marker"});
  add_target(sequence, TargetKind::regress, 1);
  const auto length = static_cast<std::size_t>(sequence.length);
  const std::int64_t count = parameters.integer("markers");
  Rng values = rng.split("values"), markers = rng.split("markers");
  for (std::size_t t = 0; t < length; ++t) sequence.input[2 * t] = values.uniform();
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t from = sequence.length * i / count, to = sequence.length * (i + 1) / count;
    const auto at = static_cast<std::size_t>(from + markers.integer(to - from));
    sequence.input[2 * at + 1] = 1.0;
    sum += sequence.input[2 * at];
  }
  sequence.target[length - 1] = sum;
  sequence.mask[length - 1] = 1.0;
}

}  // namespace

Task adding() {
  return {
      .info =
          {.name = {},
           .title = "Adding problem",
           .text =
               "Each step brings a number drawn uniformly from [0, 1) and a marker that is 1 at two steps, one in each half of the "
               "sequence; "
               "the target, at the last step, is the sum of the two marked numbers. The first must be held for at least half the sequence; "
               "always answering 1 has a mean squared error of 1/6.",
           .default_length = 200,
           .source =
               "Hochreiter and Schmidhuber 1997, Long short-term memory; with a marker in each half as in Arjovsky, Shah and Bengio 2016, "
               "Unitary evolution recurrent neural networks",
           .parameters = {hyper_integer(
               "markers", "M", 2, 1, 1000,
               "How many numbers are marked and added, one in each of as many equal parts of the sequence; always answering M/2 has a mean "
               "squared error of M/12")}},
      .least =
          [](const Hyper& parameters) {
            const std::int64_t count = parameters.integer("markers");
            return std::pair(
                count, count == 2 ? std::string("one marker in each half") : "a step for each of " + std::to_string(count) + " markers");
          },
      .make = make};
}

}  // namespace reclab::tasks_by_name
