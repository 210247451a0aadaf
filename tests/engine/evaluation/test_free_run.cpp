// SPDX-License-Identifier: GPL-3.0-or-later
// The table of a model on its own output, against a loop over its step that is written out here.
#include <cmath>

#include "array/backend.h"
#include "evaluation/forcing.h"
#include "experiment/prepared.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

RunRequest request_of(const std::string& id, const std::string& task, std::int64_t length) {
  RunRequest request;
  request.preset = test::preset_of(id);
  request.set = {{"width", "6"}};
  request.sequence = make_task(task, {.length = length});
  request.loss = LossKind::task;
  return request;
}

}  // namespace

TEST_CASE("a model that runs freely is as far from the data as its own loop, and foretells until it is too far") {
  const RunRequest request = request_of("gru", "lorenz", 40);
  ForcingPlan plan;
  plan.warm_up = 25;
  plan.valid_error = 0.9;
  const ForcingTable table = forcing_of(builtin_registry(), request, plan, {}, {});
  const Prepared prepared(builtin_registry(), request);
  const Model model(prepared.architecture, prepared.hyper, prepared.parameters, cpu_backend(), DType::f64);
  StepMap step(model, 3, 3);
  const Sequence& sequence = *request.sequence;
  double variance = 0.0;
  for (std::size_t j = 0; j < 3; ++j) {
    double sum = 0.0, squares = 0.0;
    for (std::size_t t = 0; t < 40; ++t) sum += sequence.input[3 * t + j], squares += std::pow(sequence.input[3 * t + j], 2);
    variance += squares / 40 - std::pow(sum / 40, 2);
  }
  std::vector<double> state = step.start(), fed;
  std::int64_t valid = 0;
  bool near = true;
  CHECK_EQUAL(table.error.size(), 15U);
  for (std::size_t t = 0; t < 40; ++t) {
    const std::vector<double> data(sequence.input.begin() + 3 * static_cast<std::ptrdiff_t>(t),
                                   sequence.input.begin() + 3 * static_cast<std::ptrdiff_t>(t) + 3);
    if (t >= 25) {
      double squares = 0.0;
      for (std::size_t j = 0; j < 3; ++j) squares += std::pow(fed[j] - data[j], 2);
      const double error = std::sqrt(squares / variance);
      CHECK_CLOSE(table.error[t - 25], error, 1e-10);
      near = near && error <= 0.9;
      valid += near;
    }
    step.evaluate(state, t >= 25 ? fed : data);
    state = step.next();
    fed = step.output();
  }
  CHECK_EQUAL(table.valid_steps, valid);
  CHECK_EQUAL(table.rows.size(), 21U);
  CHECK_EQUAL(table.rows.front().exponent, table.estimate.free_exponent);
  CHECK_SAYS(table.command.starts_with("reclab forcing gru") && table.command.find("--warm-up 25 --valid-error 0.9") != std::string::npos,
             table.command);
}

TEST_CASE("a loop that cannot be closed is refused with a sentence") {
  const auto refused = [](const RunRequest& request, const ForcingPlan& plan = {}) {
    forcing_of(builtin_registry(), request, plan, {}, {});
  };
  CHECK_ERROR(refused(request_of("elman", "adding", 40)), "choose a task such as lorenz");
  CHECK_ERROR(refused(request_of("elman", "lorenz", 4)), "choose a longer sequence");
  CHECK_ERROR(refused(request_of("elman", "lorenz", 40), {.warm_up = 40}), "choose less than the 40 steps");
  RunRequest grows = request_of("elman", "lorenz", 40);
  grows.preset = test::preset_of("transformer");
  grows.set = {};
  CHECK_ERROR(refused(grows), "grows with the sequence");
}
