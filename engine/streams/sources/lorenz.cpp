// SPDX-License-Identifier: GPL-3.0-or-later
#include <array>
#include <cmath>

#include "streams/series.h"

namespace reclab::sources_by_name {
namespace {

using Place = std::array<double, 3>;

Place lorenz_velocity(const Place& p, double rho) {
  return {10.0 * (p[1] - p[0]), p[0] * (rho - p[2]) - p[1], p[0] * p[1] - 8.0 / 3.0 * p[2]};
}

/// One step of the classical Runge-Kutta method.
Place lorenz_step(const Place& p, double step, double rho) {
  const auto along = [&](const Place& v, double by) { return Place{p[0] + by * v[0], p[1] + by * v[1], p[2] + by * v[2]}; };
  const Place a = lorenz_velocity(p, rho), b = lorenz_velocity(along(a, step / 2), rho), c = lorenz_velocity(along(b, step / 2), rho),
              d = lorenz_velocity(along(c, step), rho);
  Place next = p;
  for (std::size_t i = 0; i < 3; ++i) next[i] += step / 6 * (a[i] + 2 * (b[i] + c[i]) + d[i]);
  return next;
}

class MovingLorenz final : public SeriesSource {
 public:
  MovingLorenz(const SourceChoice& choice, const Hyper& parameters)
      : SeriesSource({"x", "y", "z"}, choice.standardise,
                     {"ρ = " + parameters.text("from"), "ρ moves to " + parameters.text("to"), "ρ = " + parameters.text("to"),
                      "ρ moves to " + parameters.text("from")}),
        from_(parameters.real("from")),
        to_(parameters.real("to")),
        step_(parameters.real("step")),
        hold_(parameters.integer("hold")),
        move_(parameters.integer("move")) {
    Rng draw = Rng(choice.seed).split("start");
    place_ = {draw.uniform(-1.0, 1.0), draw.uniform(-1.0, 1.0), from_ - 1.0 + draw.uniform(-1.0, 1.0)};
    for (int i = 0; i < 2000; ++i) place_ = lorenz_step(place_, fine, from_);  // to the attractor
  }

 protected:
  Next row(std::vector<double>& values, std::int64_t& regime, std::stop_token) override {
    const std::int64_t half = hold_ + move_, within = t_ % half;
    const bool back = t_ / half % 2 == 1, moves = within >= hold_;
    const double begin = back ? to_ : from_, end = back ? from_ : to_;
    const double rho = moves ? begin + (end - begin) * static_cast<double>(within - hold_ + 1) / static_cast<double>(move_) : begin;
    regime = (back ? 2 : 0) + (moves ? 1 : 0);
    values = {place_[0] / 10.0, place_[1] / 10.0, (place_[2] - 25.0) / 10.0};
    const auto parts = static_cast<int>(step_ / fine) + 1;
    for (int i = 0; i < parts; ++i) place_ = lorenz_step(place_, step_ / parts, rho);
    ++t_;
    return Next::step;
  }
  void keep_place(StreamState& state) override {
    state.whole("t", t_);
    std::vector<double> place(place_.begin(), place_.end());
    state.same("place", place);
    std::ranges::copy(place, place_.begin());
  }

 private:
  static constexpr double fine = 0.01;
  double from_, to_, step_;
  std::int64_t hold_, move_, t_ = 0;
  Place place_{};
};

}  // namespace

StreamSourceInfo lorenz() {
  return {.text =
              "The Lorenz system (σ = 10, β = 8/3), scaled as the task lorenz, whose ρ holds at one value, moves to another, holds there, "
              "and moves back",
          .parameters = {hyper_real("from", "ρ₁", 28.0, 0.5, 100.0, "ρ at the beginning"),
                         hyper_real("to", "ρ₂", 45.0, 0.5, 100.0, "ρ at the other end"),
                         hyper_integer("hold", "T", 5000, 1, 1'000'000'000, "Steps for which ρ holds", "steps"),
                         hyper_integer("move", "M", 1000, 0, 1'000'000'000, "Steps in which it moves; 0: it jumps", "steps"),
                         hyper_real("step", "Δ", 0.02, 0.001, 1.0, "Time between two steps", true)},
          .make = [](const SourceChoice& choice) -> std::unique_ptr<StreamSource> {
            return std::make_unique<MovingLorenz>(choice, source_parameters(choice));
          }};
}

}  // namespace reclab::sources_by_name
