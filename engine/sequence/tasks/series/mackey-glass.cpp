// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  set_width(sequence, {"x"});
  add_target(sequence, TargetKind::regress, 1);
  const std::int64_t ahead = parameters.integer("ahead");
  constexpr std::int64_t parts = 10;  // of a unit of time
  constexpr double h = 1.0 / static_cast<double>(parts), beta = 0.2, gamma = 0.1;
  const auto delay = static_cast<std::size_t>(parameters.integer("delay") * parts);
  // The last `delay` values and the present one, in a ring.
  std::vector<double> past(delay + 1);
  Rng draw = rng.split("start");
  const double start = 1.2 + draw.uniform(-0.1, 0.1);
  for (double& x : past) x = start + draw.uniform(-0.01, 0.01);
  std::size_t now = 0;  // the place of the present value; the oldest one comes after it
  const auto rate = [](double x, double delayed) {
    double power = delayed * delayed;  // to the tenth
    power = power * power * power * power * power;
    return beta * delayed / (1.0 + power) - gamma * x;
  };
  const auto advance = [&] {
    const double x = past[now], oldest = past[(now + 1) % past.size()], after = past[(now + 2) % past.size()],
                 between = (oldest + after) / 2;
    const double a = rate(x, oldest), b = rate(x + h / 2 * a, between), c = rate(x + h / 2 * b, between), d = rate(x + h * c, after);
    now = (now + 1) % past.size();
    past[now] = x + h / 6 * (a + 2 * (b + c) + d);
  };
  for (std::int64_t i = 0; i < 1000 * parts; ++i) advance();  // to the attractor
  const auto length = static_cast<std::size_t>(sequence.length);
  for (std::size_t t = 0; t < length + static_cast<std::size_t>(ahead); ++t) {
    if (t < length) sequence.input[t] = past[now] - 1.0;
    if (t >= static_cast<std::size_t>(ahead)) sequence.target[t - static_cast<std::size_t>(ahead)] = past[now] - 1.0;
    for (std::int64_t i = 0; i < parts; ++i) advance();
  }
  sequence.mask.assign(length, 1.0);
}

}  // namespace

Task mackey_glass() {
  return {
      .info =
          {.name = {},
           .title = "Mackey-Glass series, what comes next",
           .text =
               "dx/dt = 0.2 x(t − τ) / (1 + x(t − τ)^10) − 0.1 x with τ = 17, once a unit of time, less 1; the target, at every step, is "
               "the next value. What comes depends on what was 17 steps ago, and the series never repeats itself.",
           .default_length = 500,
           .source = "Mackey and Glass 1977, Oscillation and chaos in physiological control systems; as a test of reservoirs in Jaeger and "
                     "Haas 2004, Harnessing nonlinearity",
           .parameters = {hyper_integer("delay", "τ", 17, 1, 1000, "The delay: chaotic from about 17 on", "units of time"),
                          hyper_integer("ahead", "k", 1, 1, 1000, "How many steps ahead the target is", "steps")}},
      .foretells = true,
      .least = [](const Hyper&) { return std::pair(std::int64_t{1}, std::string("one step")); },
      .make = make};
}

}  // namespace reclab::tasks_by_name
