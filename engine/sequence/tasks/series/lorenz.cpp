// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

struct Point {
  double x, y, z;
};
Point velocity(const Point& p, double rho) { return {10.0 * (p.y - p.x), p.x * (rho - p.z) - p.y, p.x * p.y - 8.0 / 3.0 * p.z}; }
Point moved(const Point& p, const Point& v, double by) { return {p.x + by * v.x, p.y + by * v.y, p.z + by * v.z}; }
/// One step of the classical Runge-Kutta method.
Point next(const Point& p, double step, double rho) {
  const Point a = velocity(p, rho), b = velocity(moved(p, a, step / 2), rho), c = velocity(moved(p, b, step / 2), rho),
              d = velocity(moved(p, c, step), rho);
  const double sixth = step / 6;
  return {p.x + sixth * (a.x + 2 * (b.x + c.x) + d.x), p.y + sixth * (a.y + 2 * (b.y + c.y) + d.y),
          p.z + sixth * (a.z + 2 * (b.z + c.z) + d.z)};
}

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  const std::int64_t ahead = parameters.integer("ahead");
  const double step = parameters.real("step"), rho = parameters.real("rho");
  const auto width = static_cast<std::size_t>(parameters.integer("coordinates"));
  const std::vector<std::string> names{"x", "y", "z"};
  set_width(sequence, {names.begin(), names.begin() + static_cast<std::ptrdiff_t>(width)});
  add_target(sequence, TargetKind::regress, static_cast<std::int64_t>(width));
  Rng draw = rng.split("start");
  Point p{draw.uniform(-1.0, 1.0), draw.uniform(-1.0, 1.0), rho - 1.0 + draw.uniform(-1.0, 1.0)};
  constexpr double fine = 0.01;
  for (int i = 0; i < 2000; ++i) p = next(p, fine, rho);  // to the attractor
  const auto parts = static_cast<int>(step / fine) + 1;   // of a step, which may be long
  const auto length = static_cast<std::size_t>(sequence.length);
  for (std::size_t t = 0; t < length + static_cast<std::size_t>(ahead); ++t) {
    const double shown[] = {p.x / 10.0, p.y / 10.0, (p.z - 25.0) / 10.0};
    for (std::size_t j = 0; j < width; ++j) {
      if (t < length) sequence.input[t * width + j] = shown[j];
      if (t >= static_cast<std::size_t>(ahead)) sequence.target[(t - static_cast<std::size_t>(ahead)) * width + j] = shown[j];
    }
    for (int i = 0; i < parts; ++i) p = next(p, step / parts, rho);
  }
  sequence.mask.assign(length, 1.0);
}

}  // namespace

Task lorenz() {
  return {
      .info =
          {.name = {},
           .title = "Lorenz attractor, what comes next",
           .text =
               "The three coordinates of the Lorenz system (σ = 10, ρ = 28, β = 8/3), a tenth of their size with z moved by 25, every "
               "0.02 units of time; the target, at every step, is the next values. Neighbouring orbits part by a factor of e in about one "
               "unit of time, so an error grows whatever the model is.",
           .default_length = 500,
           .source =
               "Lorenz 1963, Deterministic nonperiodic flow; as a test of reservoirs in Jaeger and Haas 2004, Harnessing nonlinearity, "
               "and Pathak and others 2018",
           .parameters = {hyper_integer("coordinates", "d", 3, 1, 3,
                                        "How many are seen and are to be foretold, x first: the others must be made out from them"),
                          hyper_integer("ahead", "k", 1, 1, 1000, "How many steps ahead the target is", "steps"),
                          hyper_real("step", "Δ", 0.02, 0.001, 1.0, "Time between two steps", true),
                          hyper_real("rho", "ρ", 28.0, 0.5, 100.0,
                                     "The drive: below 1 all comes to rest, below about 24.7 at one of two points, above it is chaos")}},
      .foretells = true,
      .least = [](const Hyper&) { return std::pair(std::int64_t{1}, std::string("one step")); },
      .make = make};
}

}  // namespace reclab::tasks_by_name
