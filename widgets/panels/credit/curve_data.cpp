// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/credit/curve_data.h"

#include <algorithm>
#include <limits>

namespace reclab {

CurveData::CurveData(const Trace& trace) {
  if (const TraceArray* array = trace.find(key_of(Kind::rule_curve, "none"))) none = QString::fromStdString(array->text);
  const TraceArray* plan = trace.find(key_of(Kind::rule_curve, "plan"));
  if (!plan || !plan->real || plan->axes.empty()) return;
  command = QString::fromStdString(plan->text);
  const std::vector<std::string>& choices = plan->axes.front().labels;
  const auto planned = [&](const std::string& choice) {
    const auto at = static_cast<std::size_t>(std::ranges::find(choices, choice) - choices.begin());
    return at < choices.size() && at < plan->real->size() ? (*plan->real)[at] : 0.0;
  };
  steps = static_cast<std::int64_t>(planned("steps")), batch = static_cast<std::int64_t>(planned("batch"));
  order = static_cast<std::int64_t>(planned("snap_order")), terms = static_cast<std::int64_t>(planned("rbp_terms"));
  rate = planned("rate");
  const std::string end = "/loss";
  for (const TraceArray* array : trace.of(Kind::rule_curve)) {
    const auto key = parse_key(array->key);
    if (!key || !key->name.ends_with(end) || !array->real) continue;
    const std::string id = key->name.substr(0, key->name.size() - end.size());
    Rule rule;
    rule.id = QString::fromStdString(id);
    rule.loss = *array->real;
    rule.made = std::ssize(rule.loss);
    rule.before = rule.after = std::numeric_limits<double>::quiet_NaN();
    if (const TraceArray* held_out = trace.find(key_of(Kind::rule_curve, id + "/held_out"));
        held_out && held_out->real && held_out->real->size() == 2)
      rule.before = held_out->real->front(), rule.after = held_out->real->back();
    if (const TraceArray* problem = trace.find(key_of(Kind::rule_curve, id + "/problem")); problem && problem->real) {
      rule.problem = QString::fromStdString(problem->text);
      rule.made = std::clamp<std::int64_t>(static_cast<std::int64_t>(problem->real->front()), 0, rule.made);
    }
    rules.push_back(std::move(rule));
  }
}

QStringList CurveData::ids() const {
  QStringList all;
  for (const Rule& rule : rules) all << rule.id;
  return all;
}

}  // namespace reclab
