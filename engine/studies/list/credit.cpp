// SPDX-License-Identifier: GPL-3.0-or-later
// The credit that learning rules give: how near their gradients come to the true ones, step by step, by parameter and by delay.
#include "learning/online/credit.h"

#include "experiment/command/command.h"
#include "experiment/prepared.h"
#include "studies/study.h"

namespace reclab::studies_by_name {
namespace {

const std::vector<PlanField<CreditPlan>>& fields() {
  static const std::vector<PlanField<CreditPlan>> all = [] {
    auto rules = list_field<CreditPlan>(
        flag_of("rules"), "rules", Field::Says::list, "Online learning rules, as `reclab rules` lists them",
        [](const CreditPlan& plan) { return plan.rules; },
        [](CreditPlan& plan, std::vector<std::string> names) { plan.rules = std::move(names); });
    rules.usual = "uoro,snap";
    return std::vector{
        std::move(rules),
        count_field<CreditPlan>(flag_of("repeats"), "N", "repeats", 1, 1 << 20, "Times that a rule draws its signs anew",
                                [](auto& plan) -> auto& { return plan.repeats; }),
        count_field<CreditPlan>(flag_of("signs"), "N", "signs", 0, 1 << 20, "Of rules that draw signs: another number, other signs",
                                [](auto& plan) -> auto& { return plan.signs; }),
        count_field<CreditPlan>(flag_of("delays"), "N", "delays", 1, 1 << 20, "Delays from a loss back to the step at which weights act",
                                [](auto& plan) -> auto& { return plan.delays; }),
        count_field<CreditPlan>(flag_of("snap_order"), "N", "snap_order", 1, 1 << 20,
                                "Of snap: the steps within which a weight reaches the entries that are kept",
                                [](auto& plan) -> auto& { return plan.snap_order; }),
        count_field<CreditPlan>(flag_of("rbp_terms"), "N", "rbp_terms", 1, 1 << 20,
                                "Of neumann-rbp: terms of its series; of cg-rbp: the most iterations",
                                [](auto& plan) -> auto& { return plan.rbp_terms; })};
  }();
  return all;
}

TracePtr trace_of(const StudyInput& input, const CreditPlan& plan, const StudyReport& report, std::stop_token stop) {
  RunRequest request = input.run;
  request.recording.kinds = {};
  const Prepared prepared(input.registry, request);
  const Model model(prepared.architecture, prepared.hyper, prepared.parameters, prepared.backend, prepared.real);
  const auto progress = [&](double fraction, const std::string& rule) {
    if (report.progress) report.progress(fraction, rule);
  };
  const std::vector<CreditOfRule> found = credit_of(model, *request.sequence, prepared.loss, plan, request.seed, progress, stop);
  Trace trace = *run(input.registry, request, {}, stop).trace;
  CommandLine line;
  line.model(request, trace.info.device, {"form", "every", "record"});
  line.fields(fields(), plan);
  trace.info.command = line.text("reclab credit");
  TraceArray planned;
  planned.key = key_of(Kind::credit, "plan");
  planned.text = trace.info.command;  // beside a run, whose own line it has
  planned.shape = {5};
  planned.axes = {{"choice", "", {"repeats", "signs", "delays", "snap_order", "rbp_terms"}}};
  put_real(trace, std::move(planned),
           {static_cast<double>(plan.repeats), static_cast<double>(plan.signs), static_cast<double>(plan.delays),
            static_cast<double>(plan.snap_order), static_cast<double>(plan.rbp_terms)});
  for (const CreditOfRule& rule : found) {
    const auto put = [&](const std::string& what, const std::string& axis, const std::vector<double>& values, const std::string& unit,
                         const std::string& text) {
      TraceArray array;
      array.key = key_of(Kind::credit, rule.rule + "/" + what);
      array.shape = {std::ssize(values)};
      array.unit = unit;
      array.text = text;
      array.axes = {{axis, axis == "time" ? "step" : "", {}}};
      if (axis == "time")
        for (std::int64_t t = 0; t < std::ssize(values); ++t) array.steps.push_back(t);
      put_real(trace, std::move(array), values);
    };
    const auto nearness = [&](const std::string& behind, const std::string& axis, const Nearness& near, const std::string& of) {
      put("cosine" + behind, axis, near.cosine, "", "The cosine between the rule's gradient and the true one, " + of + ".");
      put("ratio" + behind, axis, near.ratio, "", "The norm of the rule's gradient over that of the true one, " + of + ".");
    };
    nearness("", "time", rule.whole, "of the loss of each step by all weights");
    for (std::size_t w = 0; w < rule.by_weight.size(); ++w)
      nearness("/" + model.weights()[w].name, "time", rule.by_weight[w], "of the loss of each step by " + model.weights()[w].name);
    nearness("_by_delay", "delay", rule.by_delay, "of all losses by weights that act so many steps before them alone");
    nearness("_of_sum", "sequence", rule.sum, "of the loss of the whole sequence");
    put("bias", "time", rule.bias, "", "How far the mean over repeats is from the true gradient, over its norm.");
    put("deviation", "time", rule.deviation, "", "How far repeats are from their mean, over the norm of the true gradient.");
    put("bytes", "sequence", {rule.bytes}, "bytes", "The memory of the rule for one sequence, beside the model's.");
    put("seconds", "sequence", {rule.seconds}, "s", "The time of the rule for a step, without the step itself.");
    put("repeats", "sequence", {static_cast<double>(rule.repeats)}, "", "How often the rule was repeated with other signs.");
    put("exact", "sequence", {rule.exact ? 1.0 : 0.0}, "", "1 where the rule has the true gradient for this model.");
  }
  return std::make_shared<const Trace>(std::move(trace));
}

}  // namespace

Study credit() {
  Study made;
  made.command = "credit";
  made.summary = "How near the gradients of online learning rules come to the true ones, by step, parameter and delay";
  made.cancelled_where = "during the comparison";
  made.fields = {fields().begin(), fields().end()};
  made.fields.push_back(json_output());
  made.fields.push_back(file_output("DIR", "Folder for manifest.json and trace.npz, whose keys are credit/<rule>/..."));
  made.takes_loss = true;
  made.fills = {Kind::credit};
  made.on_request = true;
  made.instead = [](const std::string& why) { return trace_without(Kind::credit, why); };
  made.compute = [](const StudyInput& input, const FieldTexts& values, const StudyReport& report, std::stop_token stop) {
    return trace_of(input, plan_of(fields(), values), report, std::move(stop));
  };
  return made;
}

}  // namespace reclab::studies_by_name
