// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "evaluation/evaluation.h"

namespace reclab {
namespace {

using Plan = EvaluationPlan;
constexpr std::int64_t longest = std::int64_t{1} << 40, most = std::int64_t{1} << 30;

template <class Numbers>
std::vector<std::string> texts_of(const Numbers& numbers) {
  std::vector<std::string> texts;
  for (const auto number : numbers) texts.push_back(std::to_string(number));
  return texts;
}

PlanField<Plan> of_file(std::string why, PlanField<Plan> made) {
  made.of = Field::Of::file;
  made.why = std::move(why);
  return made;
}

std::vector<PlanField<Plan>> made() {
  auto lengths = list_field<Plan>(
      flag_of("lengths"), "lengths", Field::Says::list, "Steps of the sequences, or of a file's windows",
      [](const Plan& plan) { return texts_of(plan.lengths); },
      [](Plan& plan, const std::vector<std::string>& texts) {
        plan.lengths.clear();
        for (const std::string& text : texts) plan.lengths.push_back(std::stoll(text));
        std::ranges::sort(plan.lengths);
        plan.lengths.erase(std::unique(plan.lengths.begin(), plan.lengths.end()), plan.lengths.end());
      });
  lengths.row.kind = HyperKind::integer;
  lengths.row.low = 1;
  lengths.row.high = static_cast<double>(longest);
  lengths.usual = "the task's own, or 100 of a file";
  auto sequences =
      count_field<Plan>(flag_of("sequences"), "N", "sequences", 1, most,
                        "Sequences of each length and seed, from a stream that no training draws from; of a file windows that are held out",
                        [](auto& plan) -> auto& { return plan.sequences; });
  auto seeds = list_field<Plan>(
      flag_of("seeds"), "seeds", Field::Says::list, "Of the sequences of a task", [](const Plan& plan) { return texts_of(plan.seeds); },
      [](Plan& plan, const std::vector<std::string>& texts) {
        plan.seeds.clear();
        for (const std::string& text : texts) plan.seeds.push_back(seed_of(text));
      });
  seeds.wanted = wanted_seed;
  seeds.usual = "that of the task";
  seeds.of = Field::Of::task;
  seeds.why = "a file has no seed";
  auto others = list_field<Plan>(
      flag_of("with"), "with", Field::Says::texts, "A further model on the same sequences, in the words that `reclab run` has for it",
      [](const Plan& plan) { return plan.others; }, [](Plan& plan, std::vector<std::string> lines) { plan.others = std::move(lines); });
  others.argument = "LINE";
  auto confidence =
      plan_field<Plan, double>(flag_of("confidence"), "X", hyper_real("confidence", {}, 0.95, 0.0, 0.999999, "Of the intervals"),
                               [](auto& plan) -> auto& { return plan.confidence; });
  confidence.above_low = true;
  confidence.wanted = wanted_confidence;
  auto batch = count_field<Plan>(flag_of("batch"), "B", "batch", 1, 1 << 20, "Sequences side by side, at most; results do not depend on it",
                                 [](auto& plan) -> auto& { return plan.batch; });
  auto ahead = of_file("a task brings the target that it has", count_field<Plan>(flag_of("ahead"), "K", "ahead", 1, longest,
                                                                                 "The target is the file's own value so many steps later",
                                                                                 [](auto& plan) -> auto& { return plan.windows.ahead; }));
  auto share = of_file(
      "no sequence of a task is learned from here",
      plan_field<Plan, double>(flag_of("held_out_share"), "X",
                               hyper_real("held_out_share", {}, 0.2, 0.0, 1.0,
                                          "Share of the file that is judged, its last steps: as in the training, which has not seen them"),
                               [](auto& plan) -> auto& { return plan.windows.held_out; }));
  auto horizon = of_file("a task brings the target that it has",
                         count_field<Plan>(flag_of("horizon"), "H", "horizon", 0, 1 << 20,
                                           "Steps ahead up to which outputs are fed back as inputs, for the error by horizon; 0: none",
                                           [](auto& plan) -> auto& { return plan.horizon; }));
  std::vector<PlanField<Plan>> all;
  for (auto* field : {&lengths, &sequences, &seeds, &others, &confidence, &batch, &ahead, &share, &horizon})
    all.push_back(std::move(*field));
  return all;
}

}  // namespace

const std::vector<PlanField<EvaluationPlan>>& evaluation_fields() {
  static const std::vector<PlanField<EvaluationPlan>> all = made();
  return all;
}

}  // namespace reclab
