// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/credit/credit_data.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>

namespace reclab {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

CreditData::Values angles(CreditData::Values cosines) {
  for (double& x : cosines) x = angleOf(x);
  return cosines;
}

}  // namespace

double angleOf(double cosine) { return std::isnan(cosine) ? nan : std::acos(std::clamp(cosine, -1.0, 1.0)) * 180.0 / std::numbers::pi; }

CreditData::CreditData(const Trace& trace) {
  if (const TraceArray* array = trace.find(key_of(Kind::credit, "none"))) none = QString::fromStdString(array->text);
  const TraceArray* plan = trace.find(key_of(Kind::credit, "plan"));
  if (!plan || !plan->real || plan->axes.empty()) return;
  command = QString::fromStdString(plan->text);
  const std::vector<std::string>& choices = plan->axes.front().labels;
  const auto planned = [&](const std::string& choice) -> std::int64_t {
    const auto at = static_cast<std::size_t>(std::ranges::find(choices, choice) - choices.begin());
    return at < choices.size() && at < plan->real->size() ? static_cast<std::int64_t>((*plan->real)[at]) : 0;
  };
  repeats = planned("repeats"), signs = planned("signs"), delays = planned("delays");
  order = planned("snap_order"), terms = planned("rbp_terms");
  const std::string end = "/exact", cosine = "cosine/";
  const std::vector<const TraceArray*> arrays = trace.of(Kind::credit);
  for (const TraceArray* array : arrays) {
    const auto key = parse_key(array->key);
    if (!key || !key->name.ends_with(end) || !array->real) continue;
    const std::string id = key->name.substr(0, key->name.size() - end.size());
    const auto values = [&](const std::string& what) {
      const TraceArray* one = trace.find(key_of(Kind::credit, id + "/" + what));
      return one && one->real ? *one->real : Values();
    };
    const auto single = [&](const std::string& what) {
      const Values all = values(what);
      return all.empty() ? nan : all.front();
    };
    Rule rule;
    rule.id = QString::fromStdString(id);
    rule.exact = array->real->front() != 0.0;
    rule.repeats = static_cast<std::int64_t>(single("repeats"));
    rule.bytes = single("bytes");
    rule.seconds = single("seconds");
    rule.angle_of_sum = angleOf(single("cosine_of_sum"));
    rule.angle = angles(values("cosine"));
    rule.ratio = values("ratio");
    rule.bias = values("bias");
    rule.deviation = values("deviation");
    rule.delay_angle = angles(values("cosine_by_delay"));
    rule.delay_ratio = values("ratio_by_delay");
    const std::string prefix = id + "/" + cosine;
    for (const TraceArray* one : arrays)
      if (const auto its = parse_key(one->key); its && one->real && its->name.starts_with(prefix))
        rule.weights.push_back({QString::fromStdString(its->name.substr(prefix.size())), angles(*one->real),
                                values("ratio/" + its->name.substr(prefix.size()))});
    if (steps.empty())
      for (std::int64_t t = 0; t < std::ssize(rule.angle); ++t) steps.push_back(t);
    rules.push_back(std::move(rule));
  }
}

const CreditData::Rule* CreditData::find(const QString& id) const {
  const auto found = std::ranges::find(rules, id, &Rule::id);
  return found == rules.end() ? nullptr : &*found;
}

QStringList CreditData::ids() const {
  QStringList all;
  for (const Rule& rule : rules) all << rule.id;
  return all;
}

bool CreditData::counts(std::int64_t step) const {
  return step >= 0 && std::ranges::any_of(rules, [&](const Rule& rule) {
           return step < std::ssize(rule.angle) && !std::isnan(rule.angle[static_cast<std::size_t>(step)]);
         });
}

std::int64_t CreditData::nearestCounted(std::int64_t step) const {
  std::int64_t nearest = -1;
  for (const std::int64_t t : steps)
    if (counts(t) && (nearest < 0 || std::abs(t - step) < std::abs(nearest - step))) nearest = t;
  return nearest;
}

}  // namespace reclab
