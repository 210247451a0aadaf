// SPDX-License-Identifier: GPL-3.0-or-later
// Two trainings made by hand: one that learns over 400 steps and is judged every 40, and one that stays at its baseline.
#pragma once

#include <cmath>
#include <memory>
#include <string>

#include "trace/learning.h"

namespace reclab::test {

inline LearningCurvePtr synthetic_curve(std::uint64_t number, const std::string& name, double falls, std::int64_t steps = 400) {
  auto made = std::make_shared<LearningCurve>();
  made->training = number;
  made->name = name;
  made->from = "adding, 100 steps, new sequences at every step";
  made->command = "reclab train " + name + " --task adding --set width=16 --seed 1 --steps 500";
  made->done = steps;
  made->wanted = 500;
  made->metric = "squared error";
  made->baseline = "always the target's mean";
  made->baseline_loss = 0.09;
  made->baseline_metric = 0.18;
  made->clip = 1.0;
  made->weights = {"0/weight_ih", "0/weight_hh", "head/weight"};
  const auto loss = [&](double t) { return 0.09 * std::exp(-falls * t) * (1.0 + 0.3 * std::sin(0.7 * t)); };
  for (std::int64_t step = 1; step <= steps; ++step) {
    const auto t = static_cast<double>(step);
    made->loss.push_back(loss(t));
    made->rate.push_back(5e-3 * std::exp(-t / 300.0));
    made->norm.push_back(0.4 + 2.0 * std::abs(std::sin(0.31 * t)));
    made->clipped.push_back(std::min(1.0, made->norm.back()));
  }
  for (std::int64_t step = 0; step <= steps; step += 40) {
    made->judged.push_back(step);
    made->judged_loss.push_back(0.09 * std::exp(-falls * static_cast<double>(step)));
    made->judged_metric.push_back(2.0 * made->judged_loss.back());
    if (step > 0) made->changes.push_back({1e-2 / (1.0 + 0.01 * static_cast<double>(step)), 4e-3, 2e-2});
  }
  for (std::int64_t step = 0; step <= steps; step += 4) made->kept.push_back(step);
  return made;
}

inline std::shared_ptr<Learning> synthetic_learning() {
  auto made = std::make_shared<Learning>();
  made->trainings = {synthetic_curve(1, "elman", 0.0), synthetic_curve(2, "lstm", 0.012)};
  made->current = made->shown = made->line = 2;
  made->together = {2, 1};
  made->shown_step = made->line_step = 240;
  made->line_shown = true;
  made->runs = {{1, "elman", "#cb00ff"}, {2, "lstm", "#0072b2"}};
  return made;
}

}  // namespace reclab::test
