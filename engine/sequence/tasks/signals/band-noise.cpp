// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  set_width(sequence, {"noise"});
  constexpr std::int64_t turn = std::int64_t{1} << 56;
  constexpr int waves = 64;
  const auto fastest = static_cast<std::int64_t>(static_cast<double>(turn) / parameters.real("period"));
  Rng draw = rng.split("waves");
  const double size = std::sqrt(2.0 / waves);
  for (int i = 0; i < waves; ++i) {
    const std::int64_t speed = draw.integer(fastest + 1);
    std::int64_t phase = draw.integer(turn);
    for (double& value : sequence.input) {
      value += size * sine_at(phase, turn);
      phase = (phase + speed) % turn;
    }
  }
}

}  // namespace

Task band_noise() {
  return {
      .info = {.name = {},
               .title = "Band-limited noise",
               .text =
                   "A sum of 64 sines of random phase, their frequencies drawn evenly up to that of a period of 20 steps, of deviation 1, "
                   "without a target. It is smooth, so that what a memory keeps of it can be told from what it cannot resolve.",
               .default_length = 500,
               .source = "as Voelker, Kajić and Eliasmith 2019, Legendre memory units, drive a memory to measure its capacity",
               .parameters = {hyper_real("period", "P", 20.0, 2.0, 1e6, "The shortest period that is in it", true, "steps")}},
      .signal = true,
      .least = [](const Hyper&) { return std::pair(std::int64_t{1}, std::string("one step")); },
      .make = make};
}

}  // namespace reclab::tasks_by_name
