// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <iterator>

#include "sweeps/results.h"

namespace reclab {
namespace {

using Plan = SummaryPlan;
const std::string orders[] = {"axes", "rising", "falling"};

std::vector<PlanField<Plan>> made() {
  auto measure = text_field<Plan>(
      flag_of("measure"), "NAME", "measure", "The column that is summed up", [](const Plan& plan) { return plan.measure; },
      [](Plan& plan, const std::string& name) { plan.measure = name; });
  measure.usual = "the first measure";
  auto by = list_field<Plan>(
      flag_of("by"), "by", Field::Says::names, "An axis by whose values rows are grouped", [](const Plan& plan) { return plan.by; },
      [](Plan& plan, std::vector<std::string> names) { plan.by = std::move(names); });
  by.usual = "all but seed";
  auto only = list_field<Plan>(
      flag_of("only"), "only", Field::Says::texts, "Rows with this value of an axis alone",
      [](const Plan& plan) { return names_of_pairs(plan.only); },
      [](Plan& plan, const std::vector<std::string>& texts) {
        plan.only.clear();
        for (const std::string& text : texts) plan.only.push_back(pair_of(text));
      });
  only.wanted = wanted_pair("set.width=8");
  PlanField<Plan> order;
  order.row = hyper_choice("order", "axes", {std::begin(orders), std::end(orders)}, "By the values of the axes, or by the mean");
  order.flag = flag_of("order");
  order.argument = "ORDER";
  order.get = [](const Plan& plan) { return HyperValue(orders[static_cast<std::size_t>(plan.order)]); };
  order.set = [](Plan& plan, const HyperValue& value) {
    const auto found = std::ranges::find(orders, std::get<std::string>(value));
    plan.order = static_cast<Plan::Order>(found - std::begin(orders));
  };
  auto confidence =
      plan_field<Plan, double>(flag_of("confidence"), "X", hyper_real("confidence", {}, 0.95, 0.0, 0.999999, "Of the intervals"),
                               [](auto& plan) -> auto& { return plan.confidence; });
  confidence.above_low = true;
  confidence.wanted = wanted_confidence;
  std::vector<PlanField<Plan>> all;
  for (auto* field : {&measure, &by, &only, &order, &confidence}) all.push_back(std::move(*field));
  return all;
}

}  // namespace

const std::vector<PlanField<SummaryPlan>>& summary_fields() {
  static const std::vector<PlanField<SummaryPlan>> all = made();
  return all;
}

}  // namespace reclab
