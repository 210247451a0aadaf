// SPDX-License-Identifier: GPL-3.0-or-later
// Schedules made by hand, in a Trace as the engine lays them out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "synthetic_trace.h"

namespace reclab::test {

struct Made {
  std::string form, drawing = "tree", why = "Neighbours go together.", unit = "compositions";
  std::vector<std::string> kinds = {};
  std::vector<double> places = {};
  std::vector<std::vector<double>> nodes = {};  // round, first, last, kind, begin, row, work
  std::vector<std::pair<double, double>> edges = {};
  std::vector<double> value = {}, product = {}, error = {};
};

inline void put_schedule(Trace& trace, const Made& made, std::int64_t steps) {
  const std::string at = "schedule/" + made.form + "/";
  std::vector<double> rows, ends, counts(made.kinds.size(), 0.0);
  std::vector<std::string> rules;
  double rounds = 0, work = 0;
  for (const auto& node : made.nodes) {
    rows.insert(rows.end(), node.begin(), node.end());
    rounds = std::max(rounds, node[0]);
    work += node[6];
    ++counts[static_cast<std::size_t>(node[3])];
  }
  for (const auto& [from, to] : made.edges) ends.insert(ends.end(), {from, to});
  for (const std::string& kind : made.kinds) rules.push_back("what a " + kind + " computes");
  const auto n = static_cast<std::int64_t>(made.nodes.size()), k = static_cast<std::int64_t>(made.kinds.size());
  trace.put(real_array(at + "nodes", {n, 7}, {{"node", "", {}}, {"column", "", {}}}, rows));
  trace.put(real_array(at + "edges", {static_cast<std::int64_t>(made.edges.size()), 2}, {{"edge", "", {}}, {"column", "", {}}}, ends));
  trace.put(real_array(at + "kinds", {k}, {{"kind", "", made.kinds}}, made.places));
  trace.put(real_array(at + "rules", {k}, {{"kind", "", rules}}, counts));
  trace.put(real_array(at + "rounds", {1}, {{"rounds", "", {}}}, {rounds}, made.why));
  trace.put(real_array(at + "work", {1}, {{"work", "", {}}}, {work}, made.unit));
  trace.put(real_array(at + "depth", {1}, {{"rounds", "", {}}}, {rounds}));
  trace.put(real_array(at + "drawing", {1}, {{"drawing", "", {made.drawing}}}, {0.0}));
  if (!made.value.empty()) trace.put(real_array(at + "value", {n}, {{"node", "", {}}}, made.value, "Of entry 0."));
  if (!made.product.empty()) trace.put(real_array(at + "product", {n}, {{"node", "", {}}}, made.product));
  if (!made.error.empty())
    trace.put(real_array(at + "error", {static_cast<std::int64_t>(made.error.size()) / steps, steps},
                         {{"iteration", "", {}}, {"time", "", {}}}, made.error));
  trace.put(real_array("schedule/steps", {1}, {{"steps", "", {}}}, {static_cast<double>(steps)}));
}

/// Schedules of 8 steps: one after another; a tree of neighbours, pairs and halves; a triangle in two chunks; an iteration of 3.
inline void put_schedules(Trace& trace, std::int64_t steps = 8) {
  const auto T = static_cast<double>(steps);
  Made chain{.form = "sequential", .unit = "steps", .kinds = {"input", "step"}, .places = {0, 0}};
  for (double t = 0; t < T; ++t) {
    chain.nodes.push_back({0, t, t, 0, 0, t, 0});
    chain.nodes.push_back({t + 1, 0, t, 1, t + 1, t, 1});
    chain.edges.emplace_back(2 * t, 2 * t + 1);
    if (t > 0) chain.edges.emplace_back(2 * t - 1, 2 * t + 1);
  }
  put_schedule(trace, chain, steps);
  Made tree{.form = "scan", .kinds = {"element", "composition"}, .places = {0, 0}};
  for (double t = 0; t < T; ++t) {
    tree.nodes.push_back({0, t, t, 0, 0, t, 0});
    tree.value.push_back(t);
    tree.product.push_back(0.5);
  }
  std::vector<double> level;
  for (double t = 0; t < T; ++t) level.push_back(t);
  for (double round = 1, wide = 2; level.size() > 1; ++round, wide *= 2) {
    std::vector<double> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) {
      const double number = static_cast<double>(tree.nodes.size()), first = static_cast<double>(i / 2) * wide;
      tree.edges.emplace_back(level[i], number);
      tree.edges.emplace_back(level[i + 1], number);
      tree.nodes.push_back({round, first, first + wide - 1, 1, round, first + wide - 1, 1});
      tree.value.push_back(10 + number);
      tree.product.push_back(0.25);
      next.push_back(number);
    }
    level = next;
  }
  put_schedule(trace, tree, steps);
  Made triangle{.form = "chunkwise",
                .drawing = "triangle",
                .unit = "pieces",
                .kinds = {"value", "memory", "score", "read", "output"},
                .places = {1, 1, 2, 3, 4}};
  for (double t = 0; t < T; ++t) triangle.nodes.push_back({0, t, t, 0, 0, t, 0});
  triangle.nodes.push_back({1, 0, 3, 1, 1, 3, 1});
  const double memory = T;
  for (double t = 0; t < T; ++t) triangle.edges.emplace_back(t, memory);
  for (double t = 0; t < T; ++t) {
    std::vector<double> needs;
    for (double s = std::floor(t / 4) * 4; s <= t; ++s) {
      const auto number = static_cast<double>(triangle.nodes.size());
      triangle.nodes.push_back({1, s, t, 2, 1, t, 1});
      triangle.edges.emplace_back(s, number);
      needs.push_back(number);
    }
    if (t >= 4) {
      const auto number = static_cast<double>(triangle.nodes.size());
      triangle.nodes.push_back({2, 0, 3, 3, 2, t, 1});
      triangle.edges.emplace_back(memory, number);
      needs.push_back(number);
    }
    const auto number = static_cast<double>(triangle.nodes.size());
    triangle.nodes.push_back({3, 0, t, 4, 3, t, 1});
    for (const double from : needs) triangle.edges.emplace_back(from, number);
  }
  put_schedule(trace, triangle, steps);
  Made newton{.form = "newton", .drawing = "iterations", .unit = "evaluations", .kinds = {"guess", "evaluation"}, .places = {0, 0}};
  for (double row = 0; row < 4; ++row)
    for (double t = 0; t < T; ++t) {
      newton.nodes.push_back({row, t, t, row > 0 ? 1.0 : 0.0, row, row, row > 0 ? 1.0 : 0.0});
      newton.value.push_back(row);
      newton.error.push_back(row == 3 || t < 2 * row ? -17.0 : -0.5 * row);
      if (row > 0) newton.edges.emplace_back((row - 1) * T + t, row * T + t);
    }
  put_schedule(trace, newton, steps);
}

}  // namespace reclab::test
