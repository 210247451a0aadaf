// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/results/result_choice.h"

#include <algorithm>

#include "experiment/command/command.h"
#include "parameters/typed.h"

namespace reclab {
namespace {

constexpr const char* seed = "seed";

bool has(const std::vector<std::string>& names, const std::string& name) { return std::ranges::find(names, name) != names.end(); }

std::vector<std::string> without_seed(std::vector<std::string> names) {
  if (names.size() > 1) std::erase(names, seed);
  return names;
}

}  // namespace

std::vector<std::string> varied_axes(const ResultTable& table) {
  std::vector<std::string> names;
  for (const ResultAxis& axis : table.axes)
    if (axis.levels.size() > 1) names.push_back(axis.name);
  return names;
}

bool is_scale(const ResultAxis& axis) { return !axis.numbers.empty(); }

ResultChoice usual_choice(const ResultTable& table) {
  ResultChoice choice;
  choice.measure = table.measures.at(0).name;
  choice.against = table.measures.at(table.measures.size() > 1 ? 1 : 0).name;
  std::vector<std::string> names = without_seed(varied_axes(table));
  // The scale with the most values is the bottom axis, what has the most of the others the upright one.
  std::ranges::stable_sort(names, [&](const std::string& a, const std::string& b) {
    const ResultAxis &one = table.axis(a), &other = table.axis(b);
    if (is_scale(one) != is_scale(other)) return is_scale(one);
    return one.levels.size() > other.levels.size();
  });
  std::string* places[] = {&choice.across, &choice.upright, &choice.apart};
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 3); ++i) *places[i] = names[i];
  choice.view = names.size() >= 2                                       ? ResultView::map
                : !names.empty() && is_scale(table.axis(names.front())) ? ResultView::curves
                                                                        : ResultView::ranking;
  return choice;
}

ResultChoice fitted(ResultChoice choice, const ResultTable& table) {
  const std::vector<std::string> names = varied_axes(table);
  const auto has_measure = [&](const std::string& name) {
    return std::ranges::find(table.measures, name, &ResultMeasure::name) != table.measures.end();
  };
  if (!has_measure(choice.measure)) choice.measure = table.measures.at(0).name;
  if (!has_measure(choice.against)) choice.against = table.measures.at(table.measures.size() > 1 ? 1 : 0).name;
  std::vector<std::string> used;
  for (std::string* one : {&choice.across, &choice.upright, &choice.apart}) {
    if (!has(names, *one) || has(used, *one)) one->clear();
    if (!one->empty()) used.push_back(*one);
  }
  if (choice.across.empty())
    for (const std::string& name : without_seed(names))
      if (!has(used, name)) {
        choice.across = name;
        break;
      }
  std::erase_if(choice.only, [&](const auto& one) {
    return !has(names, one.first) || std::ranges::find(table.axis(one.first).levels, one.second) == table.axis(one.first).levels.end();
  });
  return choice;
}

SummaryPlan plan_of(const ResultChoice& choice, const ResultTable& table) {
  SummaryPlan plan;
  plan.measure = choice.measure;
  plan.confidence = choice.confidence;
  plan.only = choice.only;
  const std::vector<std::string> names = varied_axes(table);
  switch (choice.view) {
    case ResultView::map:
    case ResultView::curves:
      for (const std::string& one : {choice.apart, choice.upright, choice.across})
        if (!one.empty()) plan.by.push_back(one);
      break;
    case ResultView::ranking:
      plan.by = without_seed(names);
      plan.order = choice.falling ? SummaryPlan::Order::falling : SummaryPlan::Order::rising;
      break;
    case ResultView::points:
      plan.by = choice.upright == seed || choice.apart == seed ? names : without_seed(names);
      if (const auto apart = std::ranges::find(plan.by, choice.apart); apart != plan.by.end())
        std::rotate(plan.by.begin(), apart, apart + 1);
      break;
    case ResultView::parallel: plan.by = names; break;
  }
  if (plan.by.empty() && !table.axes.empty()) plan.by.push_back(table.axes.front().name);  // a table of one row has a summary too
  return plan;
}

std::string command_of(const ResultChoice& choice, const ResultTable& table) {
  const auto line_of = [&](const SummaryPlan& plan) {
    CommandLine line;
    line.word(table.file);
    line.fields(summary_fields(), plan);
    return line.text("reclab sweep summary");
  };
  SummaryPlan plan = plan_of(choice, table);
  const std::string first = line_of(plan);
  if (choice.view != ResultView::points) return first;
  plan.measure = choice.against;
  return first + " && " + line_of(plan);
}

std::vector<std::int64_t> rows_of(const ResultTable& table, const SummaryPlan& plan, const std::vector<std::string>& by,
                                  const std::vector<std::uint32_t>& levels) {
  std::vector<std::pair<const ResultAxis*, std::uint32_t>> wanted;
  for (std::size_t i = 0; i < by.size(); ++i) wanted.emplace_back(&table.axis(by[i]), levels[i]);
  for (const auto& [name, text] : plan.only) {
    const ResultAxis& axis = table.axis(name);
    wanted.emplace_back(&axis, static_cast<std::uint32_t>(std::ranges::find(axis.levels, text) - axis.levels.begin()));
  }
  std::vector<std::int64_t> rows;
  for (std::size_t row = 0; row < table.states.size(); ++row)
    if (std::ranges::all_of(wanted, [&](const auto& one) { return one.first->level[row] == one.second; }))
      rows.push_back(static_cast<std::int64_t>(row));
  return rows;
}

std::string words_of_row(const ResultTable& table, std::int64_t row) {
  std::string text;
  for (const std::string& name : varied_axes(table)) {
    const ResultAxis& axis = table.axis(name);
    const std::string& level = axis.levels[axis.level[static_cast<std::size_t>(row)]];
    if (!level.empty()) text += (text.empty() ? "" : ", ") + name + " = " + level;
  }
  return text;
}

}  // namespace reclab
