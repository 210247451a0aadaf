// SPDX-License-Identifier: GPL-3.0-or-later
// The pieces of work of every exact form over the first steps of the sequence.
#include "schedule/schedule.h"

#include "studies/study.h"

namespace reclab::studies_by_name {
namespace {

struct SchedulePlan {
  std::int64_t steps = 16;
};

const std::vector<PlanField<SchedulePlan>>& fields() {
  static const std::vector<PlanField<SchedulePlan>> all{count_field<SchedulePlan>(
      flag_of("steps"), "N", "steps", 1, most_schedule_steps, "Steps of the sequence", [](auto& plan) -> auto& { return plan.steps; })};
  return all;
}

}  // namespace

Study schedule() {
  Study made;
  made.fields = {fields().begin(), fields().end()};
  made.fills = {Kind::schedule};
  made.compute = [](const StudyInput& input, const FieldTexts& values, const StudyReport&, std::stop_token stop) {
    return form_schedule(input.registry, input.run, plan_of(fields(), values).steps, std::move(stop));
  };
  made.instead = [](const std::string& why) { return no_schedule(why); };
  return made;
}

}  // namespace reclab::studies_by_name
