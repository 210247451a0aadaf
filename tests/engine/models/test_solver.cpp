// SPDX-License-Identifier: GPL-3.0-or-later
// What the solvers of differential equations promise: the error of Dormand and Prince's method follows its tolerance, and those of equal
// steps have their orders.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

RunResult result_of(const std::string& architecture, Settings set) {
  RunRequest request;
  request.preset.id = request.preset.title = request.preset.architecture = architecture;
  request.set = {{"width", "6"}, {"hidden_units", "12"}, {"deviation", "0.5"}, {"final_activation", "tanh"}};
  request.set.insert(request.set.end(), set.begin(), set.end());
  request.sequence = make_task("noise", {.length = 20, .seed = 3});
  request.every = 1;
  request.recording.kinds.remove(kinds_of(Stage::late));
  return run(builtin_registry(), request, {}, {});
}

struct Solved {
  std::vector<double> output;
  double tried = 0.0;  ///< steps of dopri5 a step, the mean
};
Solved solved(const Settings& set) {
  const TracePtr trace = result_of("neural-ode", set).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  Solved made{*trace->find("output")->real};
  if (const TraceArray* steps = trace->find("gate/0/solver_steps")) {
    for (const double n : *steps->real) made.tried += n;
    made.tried /= static_cast<double>(steps->real->size());
  }
  return made;
}
double distance(const Solved& a, const Solved& b) {
  double most = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < a.output.size(); ++i) {
    most = std::max(most, std::abs(a.output[i] - b.output[i]));
    largest = std::max(largest, std::abs(b.output[i]));
  }
  return most / largest;
}
const Solved& exact() {
  static const Solved made = solved({{"solver", "rk4"}, {"unfolds", "100"}});
  return made;
}

}  // namespace

TEST_CASE("the error of dopri5 follows its tolerance, and so do its steps") {
  double last_error = 0.0, last_tried = 0.0;
  for (const int digits : {3, 4, 5, 6, 7, 8}) {
    const std::string tolerance = "1e-" + std::to_string(digits);
    const Solved made = solved({{"solver", "dopri5"}, {"rtol", tolerance}, {"atol", tolerance}, {"max_steps", "100"}});
    const double error = distance(made, exact()), asked = std::pow(10.0, -digits);
    std::printf("tolerance %s: error %.1e, %.1f steps a step\n", tolerance.c_str(), error, made.tried);
    CHECK_SAYS(error <= 20.0 * asked && error >= asked / 1000.0, tolerance + ": " + test::show(error));
    if (last_error > 0.0) {
      CHECK_SAYS(error < last_error, tolerance);
      CHECK_SAYS(made.tried > last_tried, tolerance);
    }
    last_error = error;
    last_tried = made.tried;
  }
}

TEST_CASE("the methods of equal steps have their orders") {
  for (const auto& [method, order] : {std::pair{"euler", 1}, std::pair{"midpoint", 2}, std::pair{"rk4", 4}, std::pair{"rk4_38", 4}}) {
    const auto error = [&, name = method](const char* unfolds) {
      return distance(solved({{"solver", name}, {"unfolds", unfolds}}), exact());
    };
    const double measured = std::log2(error("10") / error("20"));
    std::printf("%s: order %.2f\n", method, measured);
    CHECK_SAYS(std::abs(measured - order) < 0.35, std::string(method) + " has order " + test::show(measured));
  }
}

TEST_CASE("where dopri5 has too few steps, the run ends there and names them") {
  const TracePtr trace = result_of("neural-ode", {{"solver", "dopri5"}, {"max_steps", "2"}}).trace;
  CHECK(trace->info.outcome == Outcome::diverged);
  CHECK_SAYS(trace->info.sentence.find("gate/0/solver_steps became non-finite at step 0") != std::string::npos, trace->info.sentence);
}

TEST_CASE("each sequence of a batch has solver steps of its own") {
  // Alone or beside itself, and in a Jacobian, which runs a copy a state: the same numbers. A copy that shared its steps would differ.
  const Settings set{{"solver", "dopri5"}, {"rtol", "1e-3"}, {"atol", "1e-3"}, {"layers", "2"}};
  RunRequest request;
  request.preset.id = request.preset.title = request.preset.architecture = "neural-ode";
  request.set = set;
  request.set.insert(request.set.end(),
                     {{"width", "4"}, {"hidden_units", "6"}, {"deviation", "0.8"}, {"final_activation", "tanh"}, {"max_steps", "40"}});
  request.sequence = make_task("irregular", {.length = 24, .seed = 2});
  request.every = 1;
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  const auto& tried = *trace->find("gate/0/solver_steps")->real;
  CHECK(*std::ranges::max_element(tried) > *std::ranges::min_element(tried));  // long gaps take more
  CHECK(trace->find("spectrum/0"));
}
