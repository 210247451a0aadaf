// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/training/rule_use.h"

#include <algorithm>

#include "array/backend.h"
#include "experiment/prepared.h"
#include "learning/learning_rule.h"
#include "learning/online/influence.h"
#include "models/registry.h"

namespace reclab {
namespace {

bool possible(const Registry& registry, const Preset& preset, const std::vector<std::pair<std::string, std::string>>& set) {
  try {
    hyper_of(registry, preset, set);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Whether its step takes long to be looked at.
bool is_large(const Prepared& prepared) {
  constexpr double most = 1 << 17;  // entries of D
  std::int64_t states = 0, weights = 0;
  for (const Network::StateVar& state : prepared.shape_network->states()) states += count(state.shape);
  for (const Parameters::Entry& entry : prepared.parameters.entries()) weights += std::ssize(entry.values);
  return static_cast<double>(states) * static_cast<double>(weights) > most;
}

/// The model of a request, made small where it is large.
std::unique_ptr<Prepared> prepared_small(const Registry& registry, RunRequest request) {
  const Preset& preset = request.preset;
  auto prepared = std::make_unique<Prepared>(registry, request);
  if (!is_large(*prepared)) return prepared;
  for (auto& [key, value] : small_settings(registry, preset)) {
    std::erase_if(request.set, [&](const auto& setting) { return setting.first == key; });
    request.set.emplace_back(key, value);
  }
  // One layer is not the same to all rules as a stack.
  if (std::ranges::find(preset.hyper, std::pair<std::string, HyperValue>("layers", std::int64_t{1})) != preset.hyper.end())
    std::erase_if(request.set, [](const auto& setting) { return setting.first == "layers"; });
  if (possible(registry, preset, request.set)) prepared = std::make_unique<Prepared>(registry, request);
  return prepared;
}

/// Why an online rule has no gradients of the loss of a run; empty where it has.
Sentence no_method(const LearningRuleInfo& rule, const Prepared& prepared, const RunRequest& request) {
  const Model model(prepared.architecture, prepared.hyper, prepared.parameters, cpu_backend(), DType::f64);
  TrainingOptions options;
  options.rule = rule.id;
  try {
    rule.online({model, options, request.sequence->width, prepared.loss.outputs()});
    return {};
  } catch (const Error& error) {
    return error.sentence();
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> small_settings(const Registry& registry, const Preset& preset) {
  if (!preset.stack.empty()) return {};
  for (const char* width : {"4", "8", "16"}) {
    std::vector<std::pair<std::string, std::string>> set;
    for (const HyperSpec& spec : registry.find(preset.architecture).hyper) {
      if (spec.key == "width" || spec.key == "state") set.emplace_back(spec.key, width);
      if (spec.key == "heads" || spec.key == "layers") set.emplace_back(spec.key, "2");
      if (spec.key == "inner" || spec.key == "feed_forward" || spec.key == "mlp") set.emplace_back(spec.key, "8");
      if (spec.key == "order" && spec.high > 64) set.emplace_back(spec.key, "4");
    }
    if (possible(registry, preset, set)) return set;
  }
  return {};
}

std::vector<RuleUse> rule_uses(const Registry& registry, const Preset& preset) {
  RunRequest request;
  request.preset = preset;
  request.sequence = make_task(preset.task, preset.task_options());
  return rule_uses(registry, std::move(request));
}

std::vector<RuleUse> rule_uses(const Registry& registry, RunRequest request, std::stop_token stop) {
  request.weights.clear();
  request.state.clear();
  request.learned.reset();
  const RunRequest own = request;
  if (request.sequence->target_kind == TargetKind::none) request.sequence = make_task("adding", {.length = 8});
  request.loss = LossKind::task;
  const auto prepared = prepared_small(registry, request);
  const std::unique_ptr<Prepared> of_run = own.loss == LossKind::task ? nullptr : prepared_small(registry, own);
  const bool other_loss = of_run && of_run->loss.kind() != LossKind::task;
  Model model(prepared->architecture, prepared->hyper, prepared->parameters, cpu_backend(), DType::f64);
  const std::deque<Sequence> examples{*request.sequence};
  std::vector<RuleUse> uses;
  for (const LearningRuleInfo& rule : learning_rules()) {
    if (stop.stop_requested()) throw Cancelled();
    RuleUse& use = uses.emplace_back(rule.id);
    if (!prepared->readout_note.empty()) {
      use.why_not = "Its read-out is fitted to the target at once, and nothing is learned step by step.";
      continue;
    }
    TrainingOptions options;
    options.rule = rule.id;
    options.batch = 1;
    try {
      use.exact = make_learning_rule({model, options, request.sequence->length, examples})->exact();
    } catch (const Error& error) {
      use.why_not = error.sentence();
    }
    use.no_credit = use.why_not;
    if (other_loss && use.why_not.empty() && rule.online) use.no_credit = no_method(rule, *of_run, own);
  }
  return uses;
}

}  // namespace reclab
