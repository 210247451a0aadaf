// SPDX-License-Identifier: GPL-3.0-or-later
// `reclab rules`.
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "array/error.h"
#include "commands.h"
#include "experiment/training/rule_use.h"
#include "learning/learning_rule.h"
#include "models/registry.h"
#include "progress_line.h"
#include "text.h"

namespace reclab::cli {
namespace {

using Json = nlohmann::ordered_json;
/// By the id of a preset.
using Uses = std::vector<std::pair<std::string, std::vector<RuleUse>>>;

const RuleUse& use_of(const std::vector<RuleUse>& uses, const std::string& rule) { return *std::ranges::find(uses, rule, &RuleUse::rule); }

Json json_of(const LearningRuleInfo& rule, const Uses& uses) {
  Json takes = Json::array(), refuses = Json::array();
  for (const auto& [id, all] : uses) {
    const RuleUse& use = use_of(all, rule.id);
    if (use.why_not.empty())
      takes.push_back({{"id", id}, {"exact", use.exact}});
    else
      refuses.push_back({{"id", id}, {"why", use.why_not}});
  }
  return {{"id", rule.id},
          {"title", rule.title},
          {"name", rule.name},
          {"year", rule.year},
          {"gradient", to_string(rule.gradient)},
          {"memory", rule.memory},
          {"time", rule.time},
          {"memory_power", rule.memory_power},
          {"time_power", rule.time_power},
          {"past_facing", rule.past_facing},
          {"local", rule.local},
          {"sparse", rule.sparse},
          {"source", rule.source},
          {"idea", rule.idea},
          {"models", takes},
          {"not_for", refuses}};
}

void print(const Uses& uses) {
  TextTable table(2);
  table.row({"rule", "gradient", "faces", "local", "numbers kept", "operations of a step", "presets"});
  for (const LearningRuleInfo& rule : learning_rules()) {
    const auto taken = std::ranges::count_if(uses, [&](const auto& of) { return use_of(of.second, rule.id).why_not.empty(); });
    table.row({rule.id, std::string(to_string(rule.gradient)), rule.past_facing ? "past" : "future", rule.local ? "yes" : "no", rule.memory,
               rule.time, std::to_string(taken) + " of " + std::to_string(uses.size())});
  }
  table.right_align(6);
  std::cout << heading("Learning rules")
            << ": their gradient beside that of backpropagation, and their cost for T steps, d_s entries of the state and |θ| weights\n";
  table.print(std::cout);
  for (const LearningRuleInfo& rule : learning_rules())
    paragraph(std::cout, rule.id + ": " + rule.title + ". " + rule.idea + " " + rule.source + ".");
  if (uses.size() != 1) return;
  for (const RuleUse& use : uses.front().second)
    paragraph(std::cout, use.rule + (!use.why_not.empty() ? ": not for " + uses.front().first + ". " + use.why_not.terminal_text()
                                     : use.exact          ? ": exact for " + uses.front().first
                                                          : ": for " + uses.front().first));
}

}  // namespace

int rules(const RulesOptions& options, Interrupt& interrupt) {
  const PresetLibrary all = library();
  std::vector<const Preset*> wanted;
  for (const std::string& id : options.ids) wanted.push_back(&all.find(id));
  if (options.ids.empty())
    for (const Preset& preset : all.presets()) wanted.push_back(&preset);
  const Uses uses = computed(interrupt, "while rules were tried", [&](const Progress& progress) {
    Uses found;
    for (const Preset* preset : wanted) {
      if (interrupt.token().stop_requested()) throw Cancelled();
      if (progress) progress(static_cast<double>(found.size()) / static_cast<double>(wanted.size()), preset->id);
      found.emplace_back(preset->id, rule_uses(builtin_registry(), *preset));
    }
    return found;
  });
  if (!options.json) {
    print(uses);
    return 0;
  }
  Json json = Json::array();
  for (const LearningRuleInfo& rule : learning_rules()) json.push_back(json_of(rule, uses));
  std::cout << json.dump(2) << '\n';
  return 0;
}

}  // namespace reclab::cli
