// SPDX-License-Identifier: GPL-3.0-or-later
// The learning rules, and which of them take the model of a run: a RuleTable.
#include "experiment/training/rule_use.h"
#include "learning/learning_rule.h"
#include "studies/study.h"
#include "trace/rule_table.h"

namespace reclab::studies_by_name {

Study rules() {
  Study made;
  made.takes_loss = true;  // what can be compared step by step depends on it
  made.compute = [](const StudyInput& input, const FieldTexts&, const StudyReport&, std::stop_token stop) {
    const std::vector<RuleUse> uses = rule_uses(input.registry, input.run, std::move(stop));
    auto table = std::make_shared<RuleTable>();
    table->model = input.run.preset.title;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const LearningRuleInfo& info = learning_rules()[i];
      table->rules.push_back({.id = info.id,
                              .name = info.name,
                              .title = info.title,
                              .year = info.year,
                              .gradient = std::string(to_string(info.gradient)),
                              .past_facing = info.past_facing,
                              .local = info.local,
                              .sparse = info.sparse,
                              .step_by_step = info.online != nullptr && info.past_facing,
                              .memory = info.memory,
                              .time = info.time,
                              .memory_power = info.memory_power,
                              .time_power = info.time_power,
                              .source = info.source,
                              .idea = info.idea,
                              .exact_here = uses[i].exact,
                              .why_not = uses[i].why_not,
                              .why_not_compared = uses[i].no_credit});
    }
    return StudyResult(std::shared_ptr<const RuleTable>(std::move(table)));
  };
  return made;
}

}  // namespace reclab::studies_by_name
