// SPDX-License-Identifier: GPL-3.0-or-later
// The numbers that a learning rule keeps, against the power of the state's size that its row states.
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "array/error.h"
#include "learning/examples.h"
#include "learning/learning_rule.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t length = 300;

/// The bytes of a rule for a model of so many units, on a series whose own future is foretold; 0 where it does not take the model.
double bytes_of(const std::string& rule, const std::string& id, std::int64_t width) {
  const auto examples = task_examples("mackey-glass", {.length = length, .seed = 1});
  const std::deque<Sequence> batch{examples->training(0, 0)};
  const Architecture& architecture = builtin_registry().find(id);
  Hyper hyper(architecture.hyper);
  hyper.set("width", width, id);
  if (hyper.has("state")) hyper.set("state", width, id);
  const Parameters parameters = Network(architecture, hyper, {.input = batch[0].width, .head = batch[0].target_width}).initialise(2);
  Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
  TrainingOptions options;
  options.rule = rule;
  options.batch = 1;
  try {
    const auto made = make_learning_rule({model, options, length, batch});
    made->begin(batch, 1);
    made->learn({});
    return static_cast<double>(made->bytes());
  } catch (const TrainingDiverged&) {
    throw;
  } catch (const Error&) {
    return 0.0;
  }
}

/// Why the numbers of a rule do not grow as its row states.
const std::map<std::string, std::string> reasons{
    {"block-descent", "the states of 300 steps outweigh arrays of the weights at these widths"},
    {"staged-columns", "its first stage reads the input alone, whose width does not grow with the state"}};

}  // namespace

TEST_CASE("the memory of each rule grows with the state as its row states") {
  for (const LearningRuleInfo& info : learning_rules()) {
    double power = std::nan("");
    std::string model;
    for (const char* id : {"elman", "lru", "columnar-lstm", "ctrnn"}) {
      const double small = bytes_of(info.id, id, 32), large = bytes_of(info.id, id, 64);
      if (small == 0.0) continue;
      power = std::log2(large / small);
      model = id;
      break;
    }
    CHECK_SAYS(!model.empty(), info.id + " takes none of the models");
    const bool as_stated = std::abs(power - info.memory_power) < 0.3;
    const std::string said = info.id + " on " + model + ": " + info.memory + " is power " + std::to_string(info.memory_power) +
                             ", and bytes grow with power " + std::to_string(power);
    if (std::getenv("RECLAB_MEASURE")) std::printf("%s\n", said.c_str());
    CHECK_SAYS(as_stated != reasons.contains(info.id), said);
  }
}
