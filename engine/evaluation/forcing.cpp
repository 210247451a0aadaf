// SPDX-License-Identifier: GPL-3.0-or-later
#include "evaluation/forcing.h"

#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "execution/elapsed_times.h"
#include "experiment/command/command.h"
#include "experiment/prepared.h"

namespace reclab {
namespace {

constexpr std::int64_t longest = std::int64_t{1} << 40;

PlanField<ForcingPlan> real(const char* key, double high, const char* text, auto of) {
  return plan_field<ForcingPlan, double>(flag_of(key), "X", hyper_real(key, {}, 0.0, 0.0, high, text), of);
}

/// The root of the mean variance of the inputs.
double spread_of(const Sequence& sequence) {
  const auto width = static_cast<std::size_t>(sequence.width), length = static_cast<std::size_t>(sequence.length);
  double variance = 0.0;
  for (std::size_t j = 0; j < width; ++j) {
    double mean = 0.0;
    for (std::size_t t = 0; t < length; ++t) mean += sequence.input[t * width + j] / static_cast<double>(length);
    for (std::size_t t = 0; t < length; ++t) variance += std::pow(sequence.input[t * width + j] - mean, 2) / static_cast<double>(length);
  }
  return std::sqrt(variance / static_cast<double>(width));
}

}  // namespace

const std::vector<PlanField<ForcingPlan>>& forcing_fields() {
  static const std::vector<PlanField<ForcingPlan>> all = [] {
    auto warm_up = count_field<ForcingPlan>(flag_of("warm_up"), "N", "warm_up", 1, longest, "Steps of data before the model runs freely",
                                            [](auto& plan) -> auto& { return plan.warm_up; });
    warm_up.usual = "half of the sequence";
    return std::vector{
        real("forcing", 1.0, "The share α of the data at a forced step", [](auto& plan) -> auto& { return plan.forcing.strength; }),
        count_field<ForcingPlan>(flag_of("forcing_every"), "N", "forcing_every", 1, longest, "The steps from one forced step to the next",
                                 [](auto& plan) -> auto& { return plan.forcing.every; }),
        std::move(warm_up),
        real("valid_error", 1e6, "The error, in standard deviations, at which a forecast ends",
             [](auto& plan) -> auto& { return plan.valid_error; })};
  }();
  return all;
}

ForcingTable forcing_of(const Registry& registry, const RunRequest& request, const ForcingPlan& plan, const Progress& progress,
                        std::stop_token stop) {
  constexpr std::int64_t least = 8;
  const Sequence& sequence = *request.sequence;
  require_own_future(sequence, "A closed loop");
  if (sequence.length < least)
    throw Error("A closed loop is followed over " + std::to_string(least) + " steps or more: choose a longer sequence.",
                {.parameter = "length", .value = std::to_string(sequence.length), .range = std::to_string(least) + " or more"});
  if (!request.state.empty()) throw Error("a closed loop begins from rest: leave out the state.", {.parameter = "state"});
  if (plan.warm_up >= sequence.length)
    throw Error("warm_up = " + std::to_string(plan.warm_up) + " leaves no step to foretell: choose less than the " +
                    std::to_string(sequence.length) + " steps of the sequence.",
                {.parameter = "warm_up", .value = std::to_string(plan.warm_up)});
  const Prepared prepared(registry, request);
  const Model model(prepared.architecture, prepared.hyper, prepared.parameters, prepared.backend, prepared.real);
  StepMap step(model, sequence.width, prepared.loss.outputs());
  if (step.knows_time() && ElapsedTimes::uneven(Batch(sequence, prepared.loss)))
    throw Error("A closed loop takes steps of equal time, and those of " + sequence.name + " are not: choose another sequence.",
                {.parameter = "task", .value = sequence.name});
  ClosedLoop loop(step, sequence);
  const std::int64_t skipped = sequence.length / 4;
  const auto exponent_of = [&](const Forcing& forcing) {
    loop.run(forcing, stop);
    return loop.bad_array().empty() ? loop.exponent(skipped, stop) : std::numeric_limits<double>::infinity();
  };
  ForcingTable table{.data = sequence.source};
  constexpr int parts = 20;
  for (int i = 0; i <= parts; ++i) {
    const double strength = static_cast<double>(i) / parts;
    if (progress) progress(0.6 * strength, "exponents of the loop");
    table.rows.push_back({strength, exponent_of({.strength = strength, .every = 1})});
  }
  table.forced_exponent = exponent_of(plan.forcing);
  if (progress) progress(0.65, "the least forcing");
  table.estimate = estimate_forcing(loop, skipped, stop);
  if (progress) progress(0.95, "the free run");
  table.warm_up = plan.warm_up > 0 ? plan.warm_up : sequence.length / 2;
  loop.run({.strength = 1.0, .every = 1}, stop, table.warm_up);
  const double spread = spread_of(sequence);
  if (!(spread > 0.0))
    throw Error("the inputs of " + sequence.name + " are constant, so no error can be said in their standard deviations: choose another " +
                    "sequence.",
                {.parameter = "task", .value = sequence.name});
  // u[t], t >= warm_up, is what the model foretold of x[t], t - warm_up + 1 steps after the last data.
  bool valid = true;
  const auto width = static_cast<std::size_t>(sequence.width);
  for (auto t = static_cast<std::size_t>(table.warm_up); t < static_cast<std::size_t>(sequence.length); ++t) {
    double squares = 0.0;
    for (std::size_t j = 0; j < width; ++j) squares += std::pow(loop.inputs()[t * width + j] - sequence.input[t * width + j], 2);
    const bool left = !loop.bad_array().empty() && static_cast<std::int64_t>(t) > loop.bad_step();
    table.error.push_back(left ? std::numeric_limits<double>::infinity() : std::sqrt(squares / static_cast<double>(width)) / spread);
    valid = valid && table.error.back() <= plan.valid_error;
    table.valid_steps += valid;
  }
  CommandLine line;
  line.model(request, prepared.backend.device() == Device::cpu ? "cpu" : "cuda", {"form", "every", "record", "loss"});
  line.fields(forcing_fields(), plan);
  table.command = line.text("reclab forcing");
  return table;
}

}  // namespace reclab
