// SPDX-License-Identifier: GPL-3.0-or-later
// What the HiPPO paper says of its memories: LegS keeps the best fit of the whole past and does not know how fast time goes; LegT keeps a
// window, and that alone; a discretisation is one of a family.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

using Signal = std::vector<double>;

RunResult projected(const Signal& signal, test::Settings set, const std::string& architecture = "hippo-rnn", bool spectra = false) {
  RunRequest request;
  request.preset = test::preset_of(architecture);
  set.emplace_back("layers", "1");
  if (architecture == "hippo-rnn" || architecture == "hippo-legs") set.emplace_back("input", "direct");
  request.set = set;
  Sequence sequence = make_task("noise", {.length = std::ssize(signal), .seed = 1});
  CHECK_EQUAL(sequence.width, std::int64_t{1});
  sequence.input = signal;
  request.sequence = std::move(sequence);
  if (!spectra) request.recording.kinds.remove(kinds_of(Stage::late));
  const RunResult result = run(builtin_registry(), request, {}, {});
  CHECK_SAYS(result.trace->info.outcome == Outcome::finished, result.trace->info.sentence);
  return result;
}
/// The coefficients after the last step.
Signal last(const RunResult& result, const std::string& key = "state/0/c") {
  const TraceArray* c = result.trace->find(key);
  CHECK_SAYS(c, key);
  const auto order = static_cast<std::ptrdiff_t>(c->shape.back());
  return {c->real->end() - order, c->real->end()};
}
Signal coefficients(const Signal& signal, const test::Settings& set, const std::string& architecture = "hippo-rnn") {
  return last(projected(signal, set, architecture));
}

double norm(const Signal& x) {
  double squares = 0.0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}
/// |x - y| / |y|
double apart(const Signal& x, const Signal& y) {
  CHECK_EQUAL(x.size(), y.size());
  Signal difference;
  for (std::size_t i = 0; i < x.size(); ++i) difference.push_back(x[i] - y[i]);
  return norm(difference) / norm(y);
}

Signal sampled(std::int64_t steps, const std::function<double(double)>& f) {
  Signal signal;
  for (std::int64_t t = 0; t < steps; ++t) signal.push_back(f((static_cast<double>(t) + 0.5) / static_cast<double>(steps)));
  return signal;
}
double smooth(double x) { return std::sin(9.0 * x) + 0.6 * std::cos(23.0 * x + 1.0) + 0.3 * x; }
/// Each value held for `times` steps.
Signal held(const Signal& signal, int times) {
  Signal slow;
  for (const double value : signal) slow.insert(slow.end(), static_cast<std::size_t>(times), value);
  return slow;
}

/// The integral of f(x) √(2n+1) P_n(2x - 1) over 0..1 of a signal of held values: with x = (1+y)/2, ∫ P_n dy = (P_{n+1} - P_{n-1})/(2n+1).
Signal best_fit(const Signal& signal, std::size_t order) {
  const auto steps = static_cast<double>(signal.size());
  const auto integral = [](std::size_t n, double y) {
    double before = 1.0, now = y;  // P_0, P_1
    if (n == 0) return y;
    double below = 0.0;
    for (std::size_t k = 1; k <= n; ++k) {
      below = before;
      const double next =
          ((2.0 * static_cast<double>(k) + 1.0) * y * now - static_cast<double>(k) * before) / (static_cast<double>(k) + 1.0);
      before = now;
      now = next;
    }
    return (now - below) / (2.0 * static_cast<double>(n) + 1.0);
  };
  Signal c(order, 0.0);
  for (std::size_t n = 0; n < order; ++n)
    for (std::size_t t = 0; t < signal.size(); ++t) {
      const double from = 2.0 * static_cast<double>(t) / steps - 1.0, to = 2.0 * static_cast<double>(t + 1) / steps - 1.0;
      c[n] += signal[t] * 0.5 * std::sqrt(2.0 * static_cast<double>(n) + 1.0) * (integral(n, to) - integral(n, from));
    }
  return c;
}

}  // namespace

TEST_CASE(
    "LegS by zero-order hold is the best fit of the whole past, and knows no time scale: a signal at half or a fifth of the speed leaves "
    "the same") {
  const Signal signal = sampled(120, smooth);
  for (const std::string architecture : {"hippo-legs", "hippo-rnn"}) {
    const test::Settings set{{"order", "24"}, {"discretisation", "zoh"}, {"l_max", "1000"}};
    const Signal once = coefficients(signal, set, architecture);
    CHECK(norm(once) > 0.5);
    CHECK(apart(once, best_fit(signal, 24)) < 1e-10);
    CHECK(apart(coefficients(held(signal, 2), set, architecture), once) < 1e-10);
    CHECK(apart(coefficients(held(signal, 5), set, architecture), once) < 1e-10);
    // Where the scale is held from some time on, it is one.
    CHECK(apart(coefficients(held(signal, 2), {{"order", "24"}, {"discretisation", "zoh"}, {"l_max", "120"}}, architecture), once) > 0.1);
  }
}

TEST_CASE("LegS by the other rules knows no time scale but for their own error, which falls as the steps grow finer") {
  for (const auto& [rule, power] : {std::pair{"bilinear", 0.9}, {"backward", 0.8}}) {
    Signal errors;
    for (const std::int64_t steps : {250, 500, 1000}) {
      const test::Settings set{{"order", "8"}, {"discretisation", rule}, {"l_max", "100000"}};
      errors.push_back(apart(coefficients(sampled(2 * steps, smooth), set), coefficients(sampled(steps, smooth), set)));
    }
    CHECK_SAYS(errors[0] < 0.1, std::string(rule) + ": " + std::to_string(errors[0]));
    CHECK_SAYS(errors[2] < errors[0] * std::pow(4.0, -power),
               std::string(rule) + ": " + std::to_string(errors[0]) + " to " + std::to_string(errors[2]));
  }
}

TEST_CASE("LegT has a scale: half the speed leaves something else, but the same where its window is twice as many steps") {
  const Signal signal = sampled(240, [](double x) { return smooth(2.0 * x); });
  for (const std::string measure : {"legt", "lmu", "lagt", "glagt", "legst"}) {
    const auto with = [&](const std::string& dt) {
      return test::Settings{{"measure", measure}, {"order", "12"}, {"discretisation", "zoh"}, {"dt", dt}};
    };
    const Signal once = coefficients(signal, with("0.02"));
    CHECK_SAYS(apart(coefficients(held(signal, 2), with("0.02")), once) > 0.1, measure);
    CHECK_SAYS(apart(coefficients(held(signal, 2), with("0.01")), once) < 1e-9, measure);
  }
}

TEST_CASE(
    "LegT's window is its window: what is in it is read back, and what left it is forgotten, more sharply the more coefficients there "
    "are") {
  const std::int64_t window = 200, steps = 700;
  const auto slow = [&](double t) {
    return std::sin(2.0 * std::numbers::pi * t / 160.0) + 0.5 * std::cos(2.0 * std::numbers::pi * t / 95.0);
  };
  Signal signal;
  for (std::int64_t t = 0; t < steps; ++t) signal.push_back(slow(static_cast<double>(t) + 0.5));
  double sharper = 1.0;
  for (const int order : {8, 16, 32}) {
    const test::Settings set{{"measure", "legt"}, {"order", std::to_string(order)}, {"discretisation", "zoh"}, {"dt", "0.01"}};
    const RunResult result = projected(signal, set);
    const Signal error = *result.trace->find("reconstruction/0/c/error")->real;
    CHECK_CLOSE(result.trace->find("reconstruction/0/c/window")->real->back(), static_cast<double>(window), 1e-9);
    const double read = *std::max_element(error.begin() + 2 * window, error.end());
    CHECK_SAYS(read < (order == 8 ? 0.2 : 2e-3), std::to_string(order) + " coefficients: " + std::to_string(read));
    // A smooth bump of 100 steps, at its end, half way through the window and one and a half windows later.
    const auto weight = [&](std::int64_t after) {
      Signal bump(static_cast<std::size_t>(100 + after), 0.0);
      for (std::size_t t = 0; t < 100; ++t) bump[t] = std::pow(std::sin(std::numbers::pi * (static_cast<double>(t) + 0.5) / 100.0), 4.0);
      return norm(coefficients(bump, set));
    };
    const double inside = weight(50), later = weight(window + window / 2);
    std::printf("%d coefficients: %.2e of the past is wrong, %.2e of a bump is left half a window after its window\n", order, read,
                later / inside);
    CHECK_SAYS(inside > 0.2, std::to_string(inside));
    CHECK_SAYS(later < 0.1 * sharper * inside, std::to_string(order) + " coefficients: " + std::to_string(later / inside));
    sharper = later / inside * 10.0;
  }
}

TEST_CASE(
    "the generalised rule is the forward, bilinear and backward ones at 0, a half and 1, and LegT is the LMU's memory in another scale") {
  const Signal signal = sampled(150, smooth);
  for (const std::string measure : {"legs", "legt", "lagt", "glagt", "lmu", "legst"})
    for (const auto& [rule, share] : {std::pair{"forward", "0"}, {"bilinear", "0.5"}, {"backward", "1"}}) {
      const auto with = [&](const std::string& name) {
        return test::Settings{{"measure", measure}, {"order", "6"}, {"dt", "0.05"}, {"discretisation", name}, {"gbt_alpha", share}};
      };
      CHECK_SAYS(apart(coefficients(signal, with("generalised")), coefficients(signal, with(rule))) < 1e-11, measure + " " + rule);
    }
  for (const std::string rule : {"zoh", "bilinear", "backward"}) {
    Signal legt = coefficients(signal, {{"measure", "legt"}, {"order", "10"}, {"dt", "0.04"}, {"discretisation", rule}});
    const Signal lmu = coefficients(signal, {{"measure", "lmu"}, {"order", "10"}, {"dt", "0.02"}, {"discretisation", rule}});
    for (std::size_t n = 0; n < legt.size(); ++n) legt[n] *= std::sqrt(2.0 * static_cast<double>(n) + 1.0) * (n % 2 ? -1.0 : 1.0);
    CHECK_SAYS(apart(legt, lmu) < 1e-10, rule);
  }
}

TEST_CASE("LSSL begins as HiPPO with time held: the same states as the projection's, and the eigenvalues of the bilinear rule") {
  const Signal signal = sampled(100, smooth);
  const test::Settings bare{{"width", "1"}, {"block", "none"}, {"dt_min", "0.05"}, {"dt_max", "0.05"}};
  struct Pair {
    std::string lssl, hippo, order;
  };
  for (const Pair& pair : {Pair{"legs", "legst", "24"}, {"lagt", "lagt", "12"}, {"toep", "lagt", "12"}, {"glagt", "glagt", "12"}})
    for (const std::string learn : {"0", "1", "2"})
      for (const std::string share : {"0.5", "1"}) {
        test::Settings set = bare;
        set.insert(set.end(), {{"order", pair.order},
                               {"measure", pair.lssl},
                               {"learn", learn},
                               {"gbt_alpha", share},
                               {"alpha", "0.3"},
                               {"beta", pair.lssl == "glagt" ? "0.2" : "1"}});
        const RunResult result = projected(signal, set, "lssl");
        const Signal expected = coefficients(signal, {{"measure", pair.hippo},
                                                      {"order", pair.order},
                                                      {"dt", "0.05"},
                                                      {"discretisation", "generalised"},
                                                      {"gbt_alpha", share},
                                                      {"alpha", "0.3"},
                                                      {"beta", pair.lssl == "glagt" ? "0.2" : "1"}});
        CHECK_SAYS(apart(last(result, "state/0/x"), expected) < 1e-10, pair.lssl + ", learn = " + learn);
      }
  // Far from normal as the matrix is, its eigenvalues are those of theory at sizes where a dense solver finds none of them.
  for (const std::string order : {"8", "64", "256"}) {
    test::Settings set = bare;
    set.emplace_back("order", order);
    const RunResult result = projected(sampled(10, smooth), set, "lssl", true);
    const TraceArray* spectrum = result.trace->find("spectrum/0");
    CHECK(spectrum && spectrum->complex);
    std::vector<double> found;
    for (const auto& z : *spectrum->complex) {
      CHECK_EQUAL(z.imag(), 0.0);
      found.push_back(z.real());
    }
    std::ranges::sort(found, std::greater<>());
    CHECK_EQUAL(std::to_string(found.size()), order);
    for (std::size_t n = 0; n < found.size(); ++n) {
      const double half = 0.025 * static_cast<double>(n + 1);
      CHECK_CLOSE(found[n], (1.0 - half) / (1.0 + half), 1e-12);
    }
  }
}

TEST_CASE("an input that neither the memory nor the units see is refused, whatever the measure") {
  for (const char* measure : {"legs", "legt"})
    CHECK_ERROR(hyper_of(builtin_registry(), test::preset_of("hippo-rnn"), {{"measure", measure}, {"ux", "no"}, {"hx", "no"}}),
                "hippo-rnn: ux = false and hx = false leave the input no way in");
}
