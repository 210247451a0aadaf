// SPDX-License-Identifier: GPL-3.0-or-later
// The credit of three rules over a run, by formulas that a test can recompute, and a table of rules.
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <numbers>

#include "synthetic_trace.h"
#include "trace/rule_table.h"

namespace reclab::test {

/// Degrees of rule 0 (unbiased), 1 (sparse) and 2 (exact) at a step; step 7 has no loss.
inline double synthetic_angle(double t, int rule) {
  return t == 7.0    ? std::numeric_limits<double>::quiet_NaN()
         : rule == 0 ? 60.0 + 25.0 * std::sin(0.05 * t)
         : rule == 1 ? 20.0 + 0.1 * t
                     : 0.0;
}
inline double cosine_of(double degrees) { return std::cos(degrees * std::numbers::pi / 180.0); }

constexpr int synthetic_delays = 16;
inline const char* synthetic_command = "reclab credit lstm --rules uoro,snap,rtrl --length 300";

inline void put_credit(Trace& trace) {
  const std::int64_t T = trace.info.length;
  TraceArray plan = real_array("credit/plan", {5}, {{"choice", "", {"repeats", "signs", "delays", "snap_order", "rbp_terms"}}},
                               {8.0, 0.0, static_cast<double>(synthetic_delays), 1.0, 20.0}, synthetic_command);
  trace.put(std::move(plan));
  const std::vector<std::string> ids{"uoro", "snap", "rtrl"};
  for (int r = 0; r < 3; ++r) {
    const auto put = [&](const std::string& what, std::int64_t n, const std::string& axis, const auto& value) {
      std::vector<double> values;
      for (std::int64_t i = 0; i < n; ++i) values.push_back(value(static_cast<double>(i)));
      TraceArray array = real_array("credit/" + ids[static_cast<std::size_t>(r)] + "/" + what, {n}, {{axis, "", {}}}, std::move(values));
      if (axis == "time")
        for (std::int64_t t = 0; t < n; ++t) array.steps.push_back(t);
      trace.put(std::move(array));
    };
    const double ratio = r == 0 ? 4.0 : r == 1 ? 0.8 : 1.0;
    put("cosine", T, "time", [&](double t) { return cosine_of(synthetic_angle(t, r)); });
    put("ratio", T, "time", [&](double t) { return t == 7.0 ? synthetic_angle(7.0, r) : ratio * (1.0 + 0.2 * std::sin(0.1 * t)); });
    for (const char* weight : {"layer0/W_hh", "layer0/W_xh", "head/weight"}) {
      const double part = weight[0] == 'h' ? 0.0 : weight[9] == 'h' ? 1.0 : 0.5;
      put(std::string("cosine/") + weight, T, "time", [&](double t) { return cosine_of(part * synthetic_angle(t, r)); });
      put(std::string("ratio/") + weight, T, "time", [&](double t) { return t == 7.0 ? synthetic_angle(7.0, r) : std::pow(ratio, part); });
    }
    put("cosine_by_delay", synthetic_delays, "delay",
        [&](double d) { return cosine_of(r == 2 ? 0.0 : std::min(90.0, (r == 0 ? 30.0 : 0.0) + 6.0 * d)); });
    put("ratio_by_delay", synthetic_delays, "delay", [&](double d) { return r == 2 ? 1.0 : std::pow(0.9, d); });
    put("cosine_of_sum", 1, "sequence", [&](double) { return cosine_of(10.0 * r); });
    put("ratio_of_sum", 1, "sequence", [&](double) { return ratio; });
    put("bias", T, "time", [&](double t) { return t == 7.0 ? synthetic_angle(7.0, r) : r == 2 ? 0.0 : (r == 0 ? 1.0 : 0.4) + 0.001 * t; });
    put("deviation", T, "time", [&](double t) { return t == 7.0 ? synthetic_angle(7.0, r) : r == 0 ? 3.0 + 0.01 * t : 0.0; });
    put("bytes", 1, "sequence", [&](double) { return r == 0 ? 4096.0 : r == 1 ? 32768.0 : 1048576.0; });
    put("seconds", 1, "sequence", [&](double) { return r == 0 ? 2e-5 : r == 1 ? 6e-5 : 9e-4; });
    put("repeats", 1, "sequence", [&](double) { return r == 0 ? 8.0 : 1.0; });
    put("exact", 1, "sequence", [&](double) { return r == 2 ? 1.0 : 0.0; });
  }
}

constexpr int synthetic_steps = 40;
inline const char* curves_command = "reclab credit-curves lstm --rules bptt,uoro,snap --steps 40 --rate 0.01 --batch 8";
/// The loss of rule 0, 1 or 2 at a step of training, counted from 0; rule 2 ends after 12.
inline double synthetic_loss(int step, int rule) { return (rule == 0 ? 1.0 : 2.0) * std::exp(-0.05 * step) + 0.1; }

inline void put_curves(Trace& trace) {
  trace.put(real_array("rule_curve/plan", {5}, {{"choice", "", {"steps", "rate", "batch", "snap_order", "rbp_terms"}}},
                       {static_cast<double>(synthetic_steps), 0.01, 8.0, 1.0, 20.0}, curves_command));
  const std::vector<std::string> ids{"bptt", "uoro", "snap"};
  for (int r = 0; r < 3; ++r) {
    const std::string& id = ids[static_cast<std::size_t>(r)];
    const int made = r == 2 ? 12 : synthetic_steps;
    const double none = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> loss;
    for (int step = 0; step < synthetic_steps; ++step) loss.push_back(step < made ? synthetic_loss(step, r) : none);
    trace.put(real_array("rule_curve/" + id + "/loss", {synthetic_steps}, {{"step of training", "", {}}}, std::move(loss)));
    trace.put(
        real_array("rule_curve/" + id + "/held_out", {2}, {{"time", "", {"before", "after"}}}, {1.5, r == 2 ? none : 0.25 * (r + 1)}));
    if (r == 2)
      trace.put(real_array("rule_curve/" + id + "/problem", {1}, {{"steps made", "", {}}}, {12.0},
                           "Training ended at step 13, where the loss became non-finite."));
  }
}

inline std::shared_ptr<RuleTable> synthetic_rules() {
  auto table = std::make_shared<RuleTable>();
  table->model = "LSTM";
  const auto add = [&](const char* id, const char* name, const char* gradient, bool past, bool local, bool steps, double memory,
                       double time, const char* why) {
    RuleTable::Rule rule;
    rule.id = id, rule.name = name, rule.title = std::string("The rule ") + name;
    rule.year = 1989 + static_cast<int>(table->rules.size());
    rule.gradient = gradient, rule.past_facing = past, rule.local = local, rule.step_by_step = steps;
    rule.memory = "d_s |θ|", rule.time = "d_s² |θ|", rule.memory_power = memory, rule.time_power = time;
    rule.source = "A. Author, A paper, 1989", rule.idea = "It does this. It leaves that out.";
    rule.exact_here = rule.gradient == "exact";
    rule.why_not = rule.why_not_compared = Sentence(why);
    rule.sparse = local || rule.id == "snap";
    table->rules.push_back(std::move(rule));
  };
  add("bptt", "BPTT", "exact", false, false, false, 1, 2, "");
  table->rules.back().memory = "T d_s", table->rules.back().time = "|θ|, d_s² for a full matrix";
  add("rtrl", "RTRL", "exact", true, false, true, 3, 4, "");
  add("uoro", "UORO", "unbiased", true, false, true, 2, 2, "");
  add("kf-rtrl", "KF-RTRL", "unbiased", true, false, true, 2, 3, "");
  add("snap", "SnAp-n", "biased", true, false, true, 2, 2, "");
  add("rflo", "RFLO", "biased", true, true, true, 2, 2, "");
  add("diagonal-rtrl", "diagonal RTRL", "biased", true, true, true, 2, 2, "Its transition is neither diagonal nor in blocks.");
  add("rbp", "RBP", "biased", true, false, true, 2, 2, "");
  table->rules.back().memory = "d_s + |θ|, whatever T", table->rules.back().time = "K (d_s² + |θ|), K iterations";
  add("fptt", "FPTT", "biased", false, false, false, 2, 2, "");
  table->rules.back().memory = "K d_s + 2 |θ|", table->rules.back().time = "|θ|, d_s² for a full matrix";
  add("forward-errors", "forward errors", "exact", false, false, false, 2, 3, "The Jacobian of a step is singular.");
  return table;
}

}  // namespace reclab::test
