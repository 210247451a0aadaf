// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/step/drawing.h"

#include <algorithm>
#include <utility>

#include "array/order.h"

namespace reclab::drawing {
namespace {

constexpr double least_error = -17.0;  // log10 of the largest error that is drawn as none

}  // namespace

void iterations(Plan& plan, const Drawn& f) {
  const Watched& watched = f.watched;
  const auto& truth = f.truth;
  const std::int64_t T = f.order.steps, stretch = drawn_chunk(f.order.chunk, T), whole = T / stretch * stretch;
  plan.drawing = "iterations";
  const std::int64_t width = std::ssize(truth[0]) / T, entry = most_active(truth[0], width);
  const int guess = plan.kind("guess", Place::point, "zero, before the first iteration"),
            linear = plan.kind(
                "evaluation", Place::point,
                "the step's function and its slope at the guess of the state before: a straight line in its place; all steps at once"),
            composed = plan.kind("composition", Place::point, "two neighbouring straight lines become one, as in a scan");
  std::vector<int> now;
  const auto at = [&](std::int64_t t) -> int& { return now[static_cast<std::size_t>(t)]; };
  std::int64_t round = 0;
  for (std::size_t i = 0; i < watched.states.size(); ++i) {
    const auto& states = watched.states[i];
    plan.errors.emplace_back();
    for (std::int64_t t = 0; t < T; ++t) {
      double worst = 0.0;
      for (std::size_t s = 0; s < states.size(); ++s) {
        double largest = 0.0;
        for (const Complex& x : truth[s]) largest = std::max(largest, std::abs(x));
        const std::int64_t size = std::ssize(states[s]) / T;
        for (std::int64_t j = t * size; j < (t + 1) * size; ++j) {
          const double error = std::abs(states[s][static_cast<std::size_t>(j)] - truth[s][static_cast<std::size_t>(j)].real());
          worst = std::max(worst, largest > 0.0 ? error / largest : error);
        }
      }
      plan.errors.back().push_back(std::isfinite(worst) ? std::max(least_error, std::log10(worst)) : none);
    }
    const auto value = [&](std::int64_t t) { return states[0][static_cast<std::size_t>(t * width + entry)]; };
    const auto row = static_cast<std::int64_t>(i);
    if (i == 0) {
      for (std::int64_t t = 0; t < T; ++t) {
        now.push_back(plan.add(guess, 0, t, t, {}, value(t)));
        plan[now.back()].row = 0;
      }
      continue;
    }
    std::vector<int> lines;
    for (std::int64_t t = 0; t < T; ++t) {
      std::vector<int> needs{at(t)};
      if (t) needs.push_back(at(t - 1));
      lines.push_back(plan.add(linear, round + 1, t, t, needs));
      plan[lines.back()].row = row;
    }
    now = lines;
    std::int64_t base = round + 1;
    round = base;
    const auto compose = [&](std::int64_t earlier, std::int64_t later, std::int64_t when) {
      const auto first = plan[at(earlier)].first;
      at(later) = plan.add(composed, when, first, later, {at(earlier), at(later)});
      plan[at(later)].row = row;
      round = std::max(round, when);
    };
    if (watched.diagonal[i]) {
      bool fresh = false;
      order::tree(
          T, [&] { fresh = true; },
          [&](std::int64_t earlier, std::int64_t later) { compose(earlier, later, std::exchange(fresh, false) ? round + 1 : round); });
    } else {
      order::chunks(
          whole, stretch, [&](std::int64_t t) { compose(t - 1, t, base + t % stretch); },
          [&](std::int64_t last, std::int64_t t) { compose(last, t, base + stretch - 1 + (last + 1) / stretch); });
      for (std::int64_t t = std::max<std::int64_t>(whole, 1); t < T; ++t) compose(t - 1, t, round + 1);  // the rest
    }
    for (std::int64_t t = 0; t < T; ++t) plan[at(t)].value = value(t);
  }
  const bool quasi = f.order.form == Form::quasi_newton, scanned = watched.diagonal.back();
  const std::string count = std::to_string(std::ssize(watched.states) - 1) + (watched.states.size() == 2 ? " iteration" : " iterations");
  plan.why = "Every iteration puts a straight line in each step's place, all steps at once, and solves them by a scan: " + count +
             " over the whole sequence " + "instead of " + std::to_string(T) + " steps in a row. " +
             (quasi                          ? "The slopes are the Jacobian's diagonal alone." + std::string()
              : f.order.form == Form::newton ? "At least one more step from the start is exact after each."
                                             : "An iteration that would be worse is halved.") +
             (quasi || scanned ? "" : chunks_said("stretches", f.order.chunk, stretch));
  plan.unit = "evaluations and compositions";
  plan.entry = of_entry("The state that the iteration gives the step", f, entry);
  if (const NewtonReport* report = f.memory->newton(); report && !report->converged)
    plan.why += " Here it did not converge" + (report->reason.empty() ? "" : ", for " + report->reason) +
                ": a run takes the steps one after another instead.";
}

}  // namespace reclab::drawing
