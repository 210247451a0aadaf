// SPDX-License-Identifier: GPL-3.0-or-later
// Arithmetic over measures, conditions, and measures of a run whose numbers are known.
#include <cmath>
#include <map>

#include "array/error.h"
#include "measures/expression.h"
#include "measures/measure.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

double known(const std::string& name) {
  static const std::map<std::string, double> table{
      {"max output", 3.0}, {"mean gate/0/forget", 0.5}, {"steps_until gradient/state/0/h -3", 66.0}};
  const auto found = table.find(name);
  if (found == table.end()) throw Error("no " + name);
  return found->second;
}

}  // namespace

TEST_CASE("an expression is evaluated as it is written") {
  const std::pair<const char*, double> right[] = {{"1 + 2 * 3", 7.0},
                                                  {"(1 + 2) * 3", 9.0},
                                                  {"2 ^ 3 ^ 2", 512.0},
                                                  {"-2 ^ 2", -4.0},
                                                  {"2 ^ -1", 0.5},
                                                  {"8 / 4 / 2", 1.0},
                                                  {"7 - 2 - 1", 4.0},
                                                  {"1e-3 * 5", 0.005},
                                                  {"log10(1000)", 3.0},
                                                  {"sqrt(16) + abs(-2)", 6.0},
                                                  {"round(2.6)", 3.0},
                                                  {"cos(pi)", -1.0},
                                                  {"max output", 3.0},
                                                  {"[max output] ^ 2 - [mean gate/0/forget]", 8.5},
                                                  {"  [ max output ] ", 3.0},
                                                  {"steps_until gradient/state/0/h -3", 66.0}};
  for (const auto& [text, value] : right) CHECK_CLOSE(evaluate(text, known), value, 1e-12);
}

TEST_CASE("an expression that is none is refused with a sentence") {
  for (const char* text :
       {"", "1 +", "(1", "1 2", "[max output", "sine(1)", "sqrt 4", "1..2..3", ")", "^", "[max nothing]", "0x", "--", "log10()"})
    CHECK_ERROR(evaluate(text, known), "");
  CHECK_ERROR(evaluate(std::string(10000, '('), known), "");
  CHECK_ERROR(evaluate(std::string(10000, '-') + "1", known), "");
}

TEST_CASE("a condition holds where all its parts do") {
  CHECK(holds("[max output] > 2", known));
  CHECK(holds("max output >= 3 and mean gate/0/forget < 1", known));
  CHECK(!holds("max output > 3", known));
  CHECK(!holds("max output >= 3 and mean gate/0/forget > 1", known));
  CHECK(holds("1 <= 1", known));
  CHECK_ERROR(holds("max output", known), "compares nothing");
  CHECK_ERROR(holds("1 <", known), "");
  CHECK_ERROR(holds("max output > 2 and nothing < 1", known), "nothing");
}

TEST_CASE("measures of a linear network are those of its closed form") {
  // h_t = ρ Q h_{t-1} + W x_t with an orthogonal Q: a step back multiplies a gradient's length by ρ.
  RunRequest request;
  request.preset = test::shipped().find("elman");
  request.set = {{"activation", "identity"}, {"spectral_radius", "0.9"}};
  request.sequence = make_task("noise", {.length = 200});
  const MeasuredRun run = run_measured(request, {"factor gradient/state/0/h", "max spectrum/0"});
  const auto of = [&](const std::string& text) { return measure(run, text); };
  CHECK_CLOSE(of("factor gradient/state/0/h"), 0.9, 1e-9);
  CHECK_CLOSE(of("at gradient/state/0/h 0") - of("at gradient/state/0/h 199"), 199.0 * std::log10(0.9), 1e-9);
  CHECK_EQUAL(of("steps_until gradient/state/0/h -3"), std::ceil(3.0 / -std::log10(0.9)));
  CHECK_CLOSE(of("span gradient/state/0/h"), -199.0 * std::log10(0.9), 1e-9);
  CHECK_CLOSE(of("max spectrum/0"), 0.9, 1e-9);
  CHECK_CLOSE(of("max spectrum/0 with spectral_radius=0.5"), 0.5, 1e-9);
  CHECK_EQUAL(of("setting spectral_radius"), 0.9);
  CHECK_EQUAL(of("setting bias"), 1.0);
  CHECK_EQUAL(of("is elman"), 1.0);
  CHECK_EQUAL(of("is lstm"), 0.0);
  CHECK_EQUAL(of("length"), 200.0);
  CHECK_EQUAL(of("entries state/0/h"), 32.0);
  CHECK_EQUAL(of("parameters"), 32.0 * 32.0 + 32.0 + 64.0);
  CHECK_EQUAL(of("trained_steps"), 0.0);
  CHECK_EQUAL(of("view pins"), 0.0);
  CHECK_EQUAL(of("forms sequential"), 1.0);
  CHECK_CLOSE(of("at input 7"), (*run.trace->find("input")->real)[7], 0.0);
  double sum = 0.0;
  for (int i = 0; i < 32; ++i) sum += std::pow((*run.trace->find("state/0/h")->real)[5 * 32 + static_cast<std::size_t>(i)], 2);
  CHECK_CLOSE(of("norm state/0/h 5"), std::sqrt(sum), 1e-12);
}

TEST_CASE("a measure that cannot be taken says why") {
  RunRequest request;
  request.preset = test::shipped().find("elman");
  request.sequence = make_task("noise", {.length = 20});
  const MeasuredRun run = run_measured(request, {});
  const auto of = [&](const std::string& text) { return measure(run, text); };
  CHECK_ERROR(of("beauty output"), "no measure \"beauty\"");
  CHECK_ERROR(of("max"), "max ARRAY");
  CHECK_ERROR(of("is"), "is PRESET");
  CHECK_ERROR(of("at output"), "at ARRAY STEP");
  CHECK_ERROR(of("max gate/0/forget"), "records no gate/0/forget");
  CHECK_ERROR(of("at output 99"), "no such steps");
  CHECK_ERROR(of("at output x"), "no number");
  CHECK_ERROR(of("at output 3 77"), "no entry 77");
  CHECK_ERROR(of("left output 77"), "no row 77");
  CHECK_ERROR(of("left output -1"), "no whole number");
  CHECK_ERROR(of("real output"), "real");
  CHECK_ERROR(of("max output with"), "KEY=VALUE");
  CHECK_ERROR(of("max output with radius=1"), "radius");
  CHECK_ERROR(of("steps_until gradient/state/0/h -300"), "never");
  CHECK_ERROR(of("flops diagonal 10"), "no form diagonal");
  CHECK_ERROR(of("setting radius"), "radius");
  CHECK_ERROR(of(""), "");
}
