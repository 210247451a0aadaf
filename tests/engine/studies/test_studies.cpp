// SPDX-License-Identifier: GPL-3.0-or-later
// What can be computed: its fields read and say every value, and what is asked for with them is what is computed.
#include <algorithm>
#include <cmath>
#include <set>

#include "learning/learning_rule.h"
#include "models/registry.h"
#include "studies/compared.h"
#include "studies/study.h"
#include "test.h"
#include "trace/composition.h"
#include "trace/rule_table.h"

using namespace reclab;

namespace {

const PresetLibrary& presets() {
  static const PresetLibrary all(builtin_registry(), preset_folders());
  return all;
}

StudyInput input_of(const std::string& preset, std::int64_t length) {
  StudyInput input{builtin_registry(), presets()};
  input.run.preset = presets().find(preset);
  input.run.sequence = make_task("noise", {.length = length});
  return input;
}

}  // namespace

TEST_CASE("every study has a name of its own, and its fields keys and options of their own, with defaults that are read back") {
  std::set<std::string> ids, commands;
  for (const Study& study : studies()) {
    CHECK_SAYS(ids.insert(study.id).second && (study.command.empty() || commands.insert(study.command).second), study.id);
    CHECK(study.compute && study.command.empty() == study.summary.empty() && study.command.empty() == study.cancelled_where.empty());
    CHECK(&reclab::study(study.id) == &study);
    std::set<std::string> keys, flags;
    for (const Field& field : study.fields) {
      CHECK_SAYS(keys.insert(field.row.key).second && flags.insert(field.flag).second && !field.row.text.empty(), field.row.key);
      const bool chosen = field.row.kind != HyperKind::integer || field.says != Field::Says::one ||
                          static_cast<double>(std::get<std::int64_t>(field.row.standard)) >= field.row.low;
      if (chosen) CHECK_SAYS(value_of(field, as_text(field.row.standard)) == field.row.standard, field.row.key);
      CHECK_EQUAL(words_of(field, field.row.standard).empty(), !field.always);
    }
    for (const auto& [key, text] : study.in_window) CHECK_SAYS(keys.contains(key), key + " = " + text);
  }
  for (const char* id : {"compare", "compose", "credit", "credit-curves", "distil", "forms", "rules", "schedule", "time"})
    CHECK_SAYS(ids.contains(id), id);
}

TEST_CASE("a field says its values as a command line takes them, and refuses those that it has not") {
  const auto& fields = study("time").fields;
  const auto field = [&](std::string_view key) {
    return *std::ranges::find(fields, key, [](const Field& one) { return std::string_view(one.row.key); });
  };
  using Words = std::vector<std::string>;
  CHECK(words_of(field("lengths"), std::string("16,64")) == (Words{"--lengths", "16,64"}));
  CHECK(words_of(field("forward_only"), true) == Words{"--forward-only"});
  CHECK(words_of(field("batch"), std::int64_t{1}).empty());
  CHECK_ERROR(value_of(field("lengths"), "16,0"), "lengths = 0 is not possible");
  CHECK_ERROR(value_of(field("batch"), "many"), "batch = many is not possible");
  Field names = field("forms");
  names.says = Field::Says::names;
  CHECK(words_of(names, list_of_names({"a,b", "-c"})) == (Words{"--forms", "a\\,b", "--forms=-c"}));
}

TEST_CASE("what a study is given is what it computes") {
  const StudyInput input = input_of("elman", 40);
  const auto steps_of = [&](const FieldTexts& values) {
    const TracePtr trace = study("schedule").compute(input, values, {}, {}).get<Trace>();
    return trace->find("schedule/steps")->real->at(0);
  };
  CHECK_EQUAL(steps_of({}), 16.0);
  CHECK_EQUAL(steps_of({{"steps", "8"}}), 8.0);
  CHECK_ERROR(steps_of({{"steps", "65"}}), "give an integer from 1 to 64");
  CHECK(study("schedule").instead("nothing").get<Trace>()->find("schedule/none")->text == "nothing");

  const StudyResult timed = study("time").compute(input, {{"forms", "sequential"}, {"lengths", "32,16"}, {"width", "5"}}, {}, {});
  const TracePtr trace = timed.get<Trace>();
  CHECK(*trace->find("timing/sequential/length")->real == (std::vector<double>{16.0, 32.0}));
  CHECK_SAYS(
      trace->info.command.find("--set width=5") != std::string::npos && trace->info.command.ends_with("--forms sequential --lengths 16,32"),
      trace->info.command);

  const StudyResult made = study("compose").compute(input, {{"tau", "2"}}, {}, {});
  CHECK(made.get<Composition>() && !made.get<Trace>() && !StudyResult().get<Composition>());
  CHECK_EQUAL(made.get<Composition>()->numbers.front().value, 2.0);
}

TEST_CASE("the forms of a model are compared with the loss of its run, and presets with one another") {
  StudyInput input = input_of("elman", 40);
  const auto reports = study("forms").compute(input, {}, {}, {}).get<FormReports>();
  CHECK(reports && reports->size() > 1 && reports->front().form == "sequential" && reports->front().output_error == 0.0);
  for (const FormReport& report : *reports)
    CHECK_SAYS(report.output_error < 1e-9 && report.gradient_error < 1e-9 && report.flops > 0.0, report.form);
  input.run.loss = LossKind::task;
  CHECK_ERROR(study("forms").compute(input, {}, {}, {}), "target");

  const auto pair = study("compare").compute(input, {{"presets", "lstm,transformer"}}, {}, {}).get<ComparedPresets>();
  CHECK_EQUAL(pair->front().card.id, "lstm");
  CHECK_EQUAL(pair->back().card.id, "transformer");
  CHECK(pair->front().properties.gated && !pair->front().properties.growing && pair->back().properties.growing);
  CHECK_EQUAL(pair->front().cost.parameters, step_cost(builtin_registry(), presets().find("lstm"), 1, 200).parameters);
  CHECK(!pair->front().eigenvalues.empty() && pair->front().no_spectrum.empty());
  CHECK(pair->back().eigenvalues.empty() && !pair->back().no_spectrum.empty());
  CHECK_ERROR(study("compare").compute(input, {{"presets", "lstm,none"}}, {}, {}), "none");
}

TEST_CASE("the rules of a run are all that there are, each with its facts, and with a reason where it does not take the model") {
  const auto table_of = [](const std::string& preset) { return study("rules").compute(input_of(preset, 30), {}, {}, {}).get<RuleTable>(); };
  const auto lru = table_of("lru"), lstm = table_of("lstm");
  CHECK_EQUAL(lru->rules.size(), learning_rules().size());
  const auto rule = [](const RuleTable& table, const std::string& id) { return *std::ranges::find(table.rules, id, &RuleTable::Rule::id); };
  for (const RuleTable::Rule& one : lru->rules) {
    CHECK_SAYS(!one.title.empty() && !one.name.empty() && !one.source.empty() && !one.memory.empty() && !one.time.empty(), one.id);
    CHECK_SAYS(std::ranges::count(one.idea, '.') >= 2 && one.idea.ends_with('.'), one.id + ": " + one.idea);
    CHECK_SAYS(one.memory_power >= 1.0 && one.time_power >= one.memory_power, one.id);
  }
  CHECK(rule(*lru, "diagonal-rtrl").exact_here && rule(*lru, "diagonal-rtrl").why_not.empty());
  CHECK(!rule(*lstm, "diagonal-rtrl").why_not.empty() && rule(*lstm, "rtrl").exact_here);
  CHECK(rule(*lstm, "uoro").step_by_step && !rule(*lstm, "bptt").step_by_step && !rule(*lstm, "forward-errors").step_by_step);
  CHECK_EQUAL(lstm->model, presets().find("lstm").title);
}

TEST_CASE("the rules that can be compared are those that have credit with the loss of the run, the others say why not") {
  for (const LossKind loss : {LossKind::automatic, LossKind::task, LossKind::last, LossKind::mean})
    for (const char* task : {"adding", "noise"}) {
      StudyInput input = input_of("elman", 10);
      input.run.set = {{"width", "4"}};
      input.run.sequence = make_task(task, {.length = 10});
      input.run.loss = loss;
      const bool has_target = input.run.sequence->target_kind != TargetKind::none;
      if (loss == LossKind::task && !has_target) continue;
      const bool reads = loss == LossKind::task || (loss == LossKind::automatic && has_target);
      const auto table = study("rules").compute(input, {}, {}, {}).get<RuleTable>();
      for (const RuleTable::Rule& rule : table->rules) {
        if (!rule.step_by_step) continue;
        bool computed = true;
        try {
          study("credit").compute(input, {{"rules", rule.id}, {"repeats", "1"}, {"delays", "2"}}, {}, {});
        } catch (const Error& error) {
          computed = false;
          CHECK_EQUAL(rule.why_not_compared.terminal_text(), error.sentence().terminal_text());
        }
        CHECK_SAYS(computed == rule.why_not_compared.empty(), rule.id + " " + to_string(loss) + " " + task);
        if (rule.id == "rflo" || rule.id == "e-prop") {
          CHECK(rule.why_not.empty());
          CHECK_EQUAL(rule.why_not_compared.empty(), reads);
          CHECK_SAYS(reads || rule.why_not_compared.terminal_text().find("choose --loss task") != std::string::npos,
                     rule.why_not_compared.terminal_text());
        }
      }
    }
}

TEST_CASE("the loss curves of rules begin at one loss, and have the line that repeats them") {
  StudyInput input = input_of("elman", 12);
  input.run.set = {{"width", "4"}};
  input.run.sequence = make_task("adding", {.length = 8, .seed = 3});
  const Study& curves = study("credit-curves");
  std::vector<std::string> stages;
  std::vector<double> fractions;
  const auto progress = [&](double fraction, std::string_view stage) {
    fractions.push_back(fraction);
    if (stages.empty() || stages.back() != stage) stages.emplace_back(stage);
  };
  const FieldTexts values{{"rules", "bptt,rtrl,uoro"}, {"steps", "5"}, {"rate", "0.02"}, {"batch", "2"}};
  const TracePtr trace = curves.compute(input, values, {.progress = progress}, {}).get<Trace>();
  const auto read = [&](const std::string& key) { return *trace->find("rule_curve/" + key)->real; };
  CHECK(stages == (std::vector<std::string>{"bptt", "rtrl", "uoro"}) && std::ranges::is_sorted(fractions) && fractions.back() < 1.0);
  CHECK_EQUAL(read("bptt/loss").size(), 5U);
  CHECK_EQUAL(read("bptt/loss")[0], read("uoro/loss")[0]);
  for (std::size_t i = 0; i < 5; ++i) CHECK_CLOSE(read("bptt/loss")[i], read("rtrl/loss")[i], 1e-9);  // both are exact
  CHECK(std::abs(read("bptt/loss")[4] - read("uoro/loss")[4]) > 1e-9);
  CHECK_EQUAL(read("bptt/held_out").size(), 2U);
  CHECK(!trace->find("rule_curve/bptt/problem"));
  CHECK(read("plan") == (std::vector<double>{5, 0.02, 2, 1, 20}));
  const std::string line = trace->find("rule_curve/plan")->text;
  CHECK_SAYS(
      line.starts_with("reclab credit-curves elman") && line.find("--rules bptt,rtrl,uoro --steps 5 --rate 0.02 --batch 2") != line.npos,
      line);
  CHECK_SAYS(trace->find("rule_curve/uoro/loss")->text.find("reclab train elman") != std::string::npos,
             trace->find("rule_curve/uoro/loss")->text);
  CHECK(curves.on_request && curves.instead("It has no target.").get<Trace>()->find("rule_curve/none")->text == "It has no target.");
  std::stop_source stop;
  stop.request_stop();
  bool ended = false;
  try {
    curves.compute(input, values, {}, stop.get_token());
  } catch (const Cancelled&) {
    ended = true;
  }
  CHECK(ended);
}

TEST_CASE("the credit of a run has the line that repeats it, other signs on request, and a sentence where there is none") {
  StudyInput input = input_of("elman", 12);
  input.run.set = {{"width", "4"}};
  const auto credit_of = [&](FieldTexts values) {
    values.emplace_back("rules", "uoro,rtrl");
    values.emplace_back("repeats", "2");
    return study("credit").compute(input, values, {}, {}).get<Trace>();
  };
  const auto read = [](const TracePtr& trace, const char* key) { return *trace->find(key)->real; };
  const TracePtr usual = credit_of({}), again = credit_of({{"signs", "0"}}), other = credit_of({{"signs", "1"}});
  const TraceArray* plan = usual->find("credit/plan");
  CHECK(*plan->real == (std::vector<double>{2, 0, 16, 1, 20}));
  CHECK_SAYS(plan->text.starts_with("reclab credit elman") && plan->text.find("--repeats 2") != std::string::npos, plan->text);
  CHECK(other->find("credit/plan")->text.find("--signs 1") != std::string::npos);
  const auto same = [&](const TracePtr& a, const TracePtr& b, const char* key) {  // a step without a loss has NaN
    return std::ranges::equal(read(a, key), read(b, key), [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
  };
  CHECK(same(usual, again, "credit/uoro/bias"));
  CHECK(!same(usual, other, "credit/uoro/bias"));
  CHECK(same(usual, other, "credit/rtrl/ratio_of_sum"));
  CHECK_EQUAL(read(usual, "credit/uoro/repeats")[0], 2.0);
  CHECK_EQUAL(read(usual, "credit/rtrl/repeats")[0], 1.0);
  CHECK(study("credit").on_request);
  const TracePtr none = study("credit").instead("It is too large.").get<Trace>();
  CHECK_EQUAL(none->find("credit/none")->text, "It is too large.");
}
