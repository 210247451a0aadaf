// SPDX-License-Identifier: GPL-3.0-or-later
// A Toeplitz neural network is converted to a state-space model exactly: the same outputs and gradients over the length that it is
// converted for.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "runs.h"

using namespace reclab;
using test::finished;
using test::request_of;
using test::Settings;
using test::values_of;

namespace {

using Numbers = std::vector<double>;

Settings with(Settings set, const Settings& more) {
  for (const auto& [key, value] : more) {
    std::erase_if(set, [&](const auto& entry) { return entry.first == key; });
    set.emplace_back(key, value);
  }
  return set;
}
TracePtr run_of(const Settings& set, std::int64_t steps, const std::string& form = "") {
  RunRequest request = request_of("tnn", make_task("noise", {.length = steps, .seed = 4}), set);
  if (!form.empty()) request.form = form;
  request.recording.kinds.remove(kinds_of(Stage::late));
  return finished(request);
}
/// The largest difference of the first `count` entries, as a share of the largest.
double apart(const Numbers& a, const Numbers& b, std::size_t count) {
  CHECK(count <= a.size() && a.size() == b.size());
  double most = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  CHECK(largest > 0.0);
  return most / largest;
}

}  // namespace

TEST_CASE(
    "the conversion of a Toeplitz matrix to a state-space model is exact over its length: outputs and gradients to 1e-9, in every form") {
  const Settings base{{"width", "3"}, {"expand", "1.4"}, {"heads", "2"}, {"inner", "6"}, {"rpe_layers", "2"}, {"layers", "2"}};
  double worst_output = 0.0, worst_gradient = 0.0;
  for (const Settings& option : std::vector<Settings>{{{"decay", "none"}},
                                                      {{"decay", "fixed"}, {"gamma", "0.9"}},
                                                      {{"decay", "learned"}, {"gamma", "0.8"}},
                                                      {{"position", "ratio"}},
                                                      {{"position", "exp"}}})
    for (const std::int64_t n : {2, 47, 64}) {
      const Settings set = with(with(base, option), {{"length", std::to_string(n)}});
      const TracePtr toeplitz = run_of(set, n);
      for (const std::string form : {"sequential", "scan", "chunkwise", "convolution"}) {
        const TracePtr converted = run_of(with(set, {{"state_space", "yes"}}), n, form);
        const std::string what = option[0].second + ", n = " + std::to_string(n) + ", " + form;
        const double error = apart(values_of(*converted, "output"), values_of(*toeplitz, "output"), values_of(*toeplitz, "output").size());
        CHECK_SAYS(error < 1e-9, what + ": outputs are " + test::show(error) + " apart");
        worst_output = std::max(worst_output, error);
        int compared = 0;
        for (const auto& array : toeplitz->arrays()) {
          if (!array->key.starts_with("gradient/param/") || !array->real) continue;
          const Numbers &expected = *array->real, &found = values_of(*converted, array->key);
          double most = 0.0, largest = 0.0;
          for (std::size_t i = 0; i < expected.size(); ++i) {
            most = std::max(most, std::abs(found[i] - expected[i]));
            largest = std::max(largest, std::abs(expected[i]));
          }
          CHECK_SAYS(most <= 1e-9 * (largest + 1e-6),
                     what + ": " + array->key + " is " + test::show(most) + " apart, of " + test::show(largest));
          worst_gradient = std::max(worst_gradient, most / (largest + 1e-6));
          ++compared;
        }
        CHECK(compared > 10);
      }
    }
  std::printf("outputs %.1e apart, gradients %.1e\n", worst_output, worst_gradient);
}

TEST_CASE("a long Toeplitz matrix is converted as exactly, and beyond its length the two part") {
  const Settings set{{"width", "2"},  {"expand", "1"},   {"inner", "8"},     {"rpe_layers", "1"},
                     {"layers", "1"}, {"block", "none"}, {"length", "1000"}, {"gamma", "0.999"}};
  const TracePtr toeplitz = run_of(set, 1100), converted = run_of(with(set, {{"state_space", "yes"}}), 1100);
  const Numbers &expected = values_of(*toeplitz, "output"), &found = values_of(*converted, "output");
  const std::size_t columns = expected.size() / 1100;
  const double within = apart(found, expected, 1000 * columns), beyond = apart(found, expected, expected.size());
  std::printf("1000 steps: %.1e apart; 100 more: %.1e\n", within, beyond);
  CHECK_SAYS(within < 1e-9, test::show(within));
  CHECK_SAYS(beyond > 1e-3, test::show(beyond));
}

TEST_CASE("what does not go with the conversion, or has no distances below 0, is refused with a sentence that names it") {
  const auto refused = [](const Settings& set) { run_of(set, 8); };
  CHECK_ERROR(refused({{"state_space", "yes"}, {"causal", "no"}}), "causal = no does not go with state_space=yes");
  CHECK_ERROR(refused({{"state_space", "yes"}, {"normalize", "yes"}}), "normalize = yes does not go with state_space=yes");
  CHECK_ERROR(refused({{"state_space", "yes"}, {"coefficient_activation", "silu"}}),
              "coefficient_activation = silu does not go with state_space=yes");
  CHECK_ERROR(refused({{"state_space", "yes"}, {"length", "8193"}}), "length = 8193 is too long for state_space=yes");
  CHECK_ERROR(refused({{"position", "exp"}, {"causal", "no"}}), "position = exp has no distances below 0");
  CHECK_ERROR(refused({{"width", "1"}, {"heads", "2"}, {"expand", "1"}}), "leaves no channel for each of 2 heads");
}
