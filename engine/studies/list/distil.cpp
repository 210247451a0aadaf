// SPDX-License-Identifier: GPL-3.0-or-later
// The long filters of a model as a few modes: a Distillation.
#include "distillation/distil.h"
#include "studies/study.h"

namespace reclab::studies_by_name {
namespace {

constexpr std::int64_t most_modes = 256, most_taps = 1 << 20;

const std::vector<PlanField<DistilRequest>>& fields() {
  static const std::vector<PlanField<DistilRequest>> all = [] {
    auto modes =
        count_field<DistilRequest>(flag_of("modes"), "N", "modes", 1, most_modes, "Modes a channel, both of a conjugate pair counted",
                                   [](auto& plan) -> auto& { return plan.modes; });
    modes.form = {"&Modes", "Modes a channel of the model that is made", 1, most_modes, {}};
    auto taps = count_field<DistilRequest>(flag_of("taps"), "T", "taps", 2, most_taps, "Steps that the filters are fitted over",
                                           [](auto& plan) -> auto& { return plan.taps; });
    taps.usual = "1024, or those of the preset's sequence";
    taps.form = {"&Steps", "Steps that the filters are fitted over", 2, most_taps, {}};
    return std::vector{std::move(modes), std::move(taps)};
  }();
  return all;
}

}  // namespace

Study distil() {
  Study made;
  made.command = "distill";
  made.summary = "The long filters of a preset as a few modes: errors, Hankel singular values, and a model that runs them";
  made.cancelled_where = "during the distillation";
  made.fields = {fields().begin(), fields().end()};
  made.fields.push_back(json_output());
  made.fields.push_back(file_output(
      "DIR",
      "Folder for the model, a preset and its weights (<preset>.json and <preset>.npz), and for the errors and singular values as CSV"));
  made.compute = [](const StudyInput& input, const FieldTexts& values, const StudyReport& report, std::stop_token stop) {
    DistilRequest request = plan_of(fields(), values);
    request.model = input.run;
    return std::make_shared<Distillation>(reclab::distil(input.registry, request, report.progress, std::move(stop)));
  };
  return made;
}

}  // namespace reclab::studies_by_name
