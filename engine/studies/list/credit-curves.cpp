// SPDX-License-Identifier: GPL-3.0-or-later
// The loss curves of learning rules: the same model trained by each, from the same weights and with the same sequences.
#include <cmath>
#include <limits>

#include "experiment/command/command.h"
#include "experiment/training/training.h"
#include "studies/study.h"

namespace reclab::studies_by_name {
namespace {

struct CurvePlan {
  std::vector<std::string> rules{"bptt", "uoro", "snap"};
  TrainingPlan training;
  CurvePlan() {
    training.steps = 100;
    training.options.rate.rate = 0.01;
    training.options.batch = 8;
  }
};

constexpr std::int64_t judged = 32;  // held-out sequences, before the first step and after the last

const std::vector<PlanField<CurvePlan>>& fields() {
  static const std::vector<PlanField<CurvePlan>> all = [] {
    auto rules = list_field<CurvePlan>(
        flag_of("rules"), "rules", Field::Says::list, "Learning rules, as `reclab rules` lists them",
        [](const CurvePlan& plan) { return plan.rules; },
        [](CurvePlan& plan, std::vector<std::string> names) { plan.rules = std::move(names); });
    rules.usual = "bptt,uoro,snap";
    const auto count = [](const char* key, const char* argument, std::int64_t high, std::string text, auto of) {
      return count_field<CurvePlan>(flag_of(key), argument, key, 1, high, std::move(text), of);
    };
    auto rate = plan_field<CurvePlan, double>(flag_of("rate"), "X", hyper_real("rate", {}, 0.0, 0.0, 1e3, "Rate of learning"),
                                              [](auto& plan) -> auto& { return plan.training.options.rate.rate; });
    return std::vector{
        std::move(rules),
        count("steps", "N", 1 << 20, "Steps of training, a batch each", [](auto& plan) -> auto& { return plan.training.steps; }),
        std::move(rate),
        count("batch", "B", 1 << 20, "Sequences of a batch", [](auto& plan) -> auto& { return plan.training.options.batch; }),
        count("snap_order", "N", 1 << 20, "Of snap: the steps within which a weight reaches the entries that are kept",
              [](auto& plan) -> auto& { return plan.training.options.snap_order; }),
        count("rbp_terms", "N", 1 << 20, "Of neumann-rbp: terms of its series; of cg-rbp: the most iterations",
              [](auto& plan) -> auto& { return plan.training.options.rbp_terms; })};
  }();
  return all;
}

/// A rule's curve, as far as it came.
struct RuleCurve {
  std::vector<double> loss;  ///< of each batch, before the change; NaN from where it ended on
  double held_out[2] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};  ///< before and after
  std::string problem;  ///< why it ended before all steps; empty where it did not
  std::string command;  ///< of the training alone
};

RuleCurve curve_of(const StudyInput& input, const TrainingRequest& request, const std::function<void(std::int64_t)>& at,
                   const std::stop_token& stop) {
  RuleCurve curve;
  curve.command = command_of(request);
  std::unique_ptr<Training> training;
  try {
    training = std::make_unique<Training>(input.registry, request);
    training->begin(stop);
    curve.held_out[0] = training->evaluations().back().loss;
    while (!training->done()) {
      at(training->trainer().steps());
      training->advance(stop);
    }
    curve.held_out[1] = training->evaluations().back().loss;
  } catch (const Cancelled&) {
    throw;
  } catch (const DeviceError&) {
    throw;
  } catch (const Error& error) {
    // What happened, without the cures, which a terminal and a window say in words of their own.
    curve.problem = error.sentence().text([](const Remedy&) { return std::optional<std::string>(); });
  }
  if (training)
    for (const TrainingStep& step : training->history()) curve.loss.push_back(step.loss);
  curve.loss.resize(static_cast<std::size_t>(request.steps), std::numeric_limits<double>::quiet_NaN());
  return curve;
}

TracePtr trace_of(const StudyInput& input, const CurvePlan& plan, const StudyReport& report, const std::stop_token& stop) {
  if (plan.rules.empty()) throw Error("No learning rule is given: choose some of those that `reclab rules` lists.", {.parameter = "rules"});
  for (const std::string& rule : plan.rules) learning_rule(rule);  // throws
  RunRequest run_request = input.run;
  run_request.recording.kinds = {};
  if (run_request.sequence->target_kind == TargetKind::none)
    throw Error(run_request.sequence->name + " has no target, so there is nothing to learn: choose a task with a target, or a file.",
                {.parameter = "task", .value = run_request.sequence->name});
  TrainingRequest request{plan.training, input.run, choice_of(*input.run.sequence)};
  request.run.form = "sequential";
  request.judge_every = request.steps;
  request.options.held_out = judged;
  Trace trace = *run(input.registry, run_request, {}, stop).trace;
  CommandLine line;
  line.model(run_request, trace.info.device, {"form", "every", "record", "loss"});
  line.fields(fields(), plan);
  trace.info.command = line.text("reclab credit-curves");
  const auto put = [&](const std::string& name, const std::string& text, const std::string& axis, std::vector<std::string> labels,
                       const std::vector<double>& values) {
    TraceArray array;
    array.key = key_of(Kind::rule_curve, name);
    array.text = text;
    array.shape = {std::ssize(values)};
    array.axes = {{axis, "", std::move(labels)}};
    put_real(trace, std::move(array), values);
  };
  put("plan", trace.info.command, "choice", {"steps", "rate", "batch", "snap_order", "rbp_terms"},
      {static_cast<double>(request.steps), request.options.rate.rate, static_cast<double>(request.options.batch),
       static_cast<double>(request.options.snap_order), static_cast<double>(request.options.rbp_terms)});
  for (std::size_t i = 0; i < plan.rules.size(); ++i) {
    const std::string& rule = plan.rules[i];
    request.options.rule = rule;
    const auto at = [&](std::int64_t step) {
      const double of_rule = static_cast<double>(step) / static_cast<double>(request.steps);
      if (report.progress) report.progress((static_cast<double>(i) + of_rule) / static_cast<double>(plan.rules.size()), rule);
    };
    const RuleCurve curve = curve_of(input, request, at, stop);
    put(rule + "/loss", "The loss of each batch, before the weights changed, as in " + curve.command, "step of training", {}, curve.loss);
    put(rule + "/held_out", "The loss of sequences that are not learned from, before the first step and after the last.", "time",
        {"before", "after"}, {curve.held_out[0], curve.held_out[1]});
    const auto made = std::ranges::find_if(curve.loss, [](double loss) { return std::isnan(loss); }) - curve.loss.begin();
    if (!curve.problem.empty()) put(rule + "/problem", curve.problem, "steps made", {}, {static_cast<double>(made)});
  }
  return std::make_shared<const Trace>(std::move(trace));
}

}  // namespace

Study credit_curves() {
  Study made;
  made.command = "credit-curves";
  made.summary = "The loss curves of learning rules: the same model trained by each, from the same weights with the same sequences";
  made.cancelled_where = "during the training";
  made.fields = {fields().begin(), fields().end()};
  made.fields.push_back(json_output());
  made.fields.push_back(file_output("DIR", "Folder for manifest.json and trace.npz, whose keys are rule_curve/<rule>/..."));
  made.fills = {Kind::rule_curve};
  made.on_request = true;
  made.instead = [](const std::string& why) { return trace_without(Kind::rule_curve, why); };
  made.compute = [](const StudyInput& input, const FieldTexts& values, const StudyReport& report, std::stop_token stop) {
    return trace_of(input, plan_of(fields(), values), report, stop);
  };
  return made;
}

}  // namespace reclab::studies_by_name
