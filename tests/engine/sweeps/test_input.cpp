// SPDX-License-Identifier: GPL-3.0-or-later
// The input is the user's: no preset changes it or leaves a part of it out, and what makes gates move is how weights are drawn.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "models/network.h"
#include "models/registry.h"
#include "runs.h"
#include "sweep.h"
#include "test.h"
#include "trace/input_scale.h"

using namespace reclab;

namespace {

RunRequest only_forward(RunRequest request) {
  request.recording.kinds = {Kind::input, Kind::output, Kind::param};
  return request;
}

/// The largest difference of two arrays over the largest entry of the first.
double apart(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK_EQUAL(a.size(), b.size());
  double worst = 0.0, largest = 1e-300;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(a[i]));
    if (std::isnan(a[i]) || std::isnan(b[i])) return NAN;
  }
  return worst / largest;
}

}  // namespace

SWEEP_PRESETS("it reads the input as it is, all of it, and its times in the sequence's own unit", preset) {
  std::vector<Preset> all{preset};
  if (preset.trained) all.push_back(as_trained(preset));
  for (const Preset& one : all) {
    const Hyper hyper = hyper_of(builtin_registry(), one);
    CHECK(std::ranges::any_of(hyper.table(), [](const HyperSpec& row) { return scales_input(row.key); }));
    for (const HyperSpec& row : hyper.table()) {
      if (row.key.ends_with("input_scale")) CHECK_SAYS(hyper.real(row.key) == 1.0, preset.id + " sets " + row.key);
      if (row.key.ends_with("time_unit")) CHECK_SAYS(hyper.real(row.key) == 0.0, preset.id + " sets " + row.key);
      if (row.key.ends_with("first_elapsed")) CHECK_SAYS(hyper.real(row.key) == 1.0, preset.id + " sets " + row.key);
      if (row.key.ends_with("fit_steps"))
        CHECK_SAYS(hyper.integer(row.key) == 0, preset.id + " sets " + row.key);  // of a sequence that is not its own too
    }
  }
}

// Its picture is that of the input times as much.
SWEEP_PRESETS("the gain of its input's weights is one of the weights alone", preset) {
  const Hyper hyper = hyper_of(builtin_registry(), preset);
  if (!hyper.has("input_gain") || hyper.real("input_gain") == 1.0) return;
  RunRequest drawn;
  drawn.preset = preset;
  TaskOptions options = preset.task_options();
  options.length = std::min<std::int64_t>(options.length, 100);
  drawn.sequence = make_task(preset.task, options);
  drawn = only_forward(drawn);
  RunRequest multiplied = drawn, plain = drawn;
  multiplied.set = {{"input_gain", "1"}, {"input_scale", hyper.text("input_gain")}};
  plain.set = {{"input_gain", "1"}};
  const TracePtr a = test::finished(drawn), b = test::finished(multiplied), c = test::finished(plain);
  const auto output = [](const TracePtr& trace) { return test::values_of(*trace, "output"); };
  CHECK_SAYS(apart(output(a), output(b)) < 1e-11, preset.id + ": " + test::show(apart(output(a), output(b))));
  CHECK_SAYS(apart(output(a), output(c)) > 1e-3, preset.id + ": " + test::show(apart(output(a), output(c))));
  CHECK(test::values_of(*a, "input") == test::values_of(*b, "input"));
}

SWEEP_ARCHITECTURES("input_gain multiplies the drawn weights by which the input enters, and no others", architecture) {
  if (std::ranges::none_of(architecture.hyper, [](const HyperSpec& row) { return row.key == "input_gain"; })) return;
  const Preset preset = test::preset_of(architecture.id);
  const test::Settings small = test::small_settings(preset);
  RunRequest request = only_forward(test::request_of(architecture.id, make_task("adding", {.length = 12}), small));
  RunRequest drawn = request, multiplied = request;
  drawn.set.emplace_back("input_gain", "3");
  multiplied.set.emplace_back("input_scale", "3");
  const TracePtr plain = test::finished(request), larger = test::finished(drawn), scaled = test::finished(multiplied);
  const double error = apart(test::values_of(*larger, "output"), test::values_of(*scaled, "output"));
  CHECK_SAYS(error < 1e-11, architecture.id + ": " + test::show(error));
  CHECK(test::values_of(*larger, "output") != test::values_of(*plain, "output"));
  // Each weight is as it was, or three times as large.
  std::size_t times = 0;
  for (const TraceArray* array : plain->of(Kind::param)) {
    const auto &before = *array->real, &after = test::values_of(*larger, array->key);
    std::size_t grown = 0, other = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (after[i] == before[i]) continue;
      ++(after[i] == 3.0 * before[i] ? grown : other);
    }
    CHECK_SAYS(other == 0, architecture.id + ": " + array->key);
    times += grown;
  }
  CHECK_SAYS(times > 0, architecture.id);
}

TEST_CASE("a scaled embedding is the encoder's output times the root of the width") {
  RunRequest request;
  request.preset = test::shipped().find("hawk");
  request.sequence = make_task("selective-copy", {.length = 40});
  request = only_forward(request);
  RunRequest plain = request, by_input = request;
  plain.set = {{"scale_embedding", "no"}};
  by_input.set = {{"scale_embedding", "no"}, {"input_scale", test::show(std::sqrt(32.0))}};
  const auto output = [](const RunRequest& of) { return test::values_of(*test::finished(of), "output"); };
  CHECK(apart(output(request), output(by_input)) < 1e-12);
  CHECK(apart(output(request), output(plain)) > 1e-3);
}

TEST_CASE("a card says which weights are drawn larger") {
  const auto text_of = [](const char* preset, const std::string& name) {
    const Card shown = card(builtin_registry(), test::shipped().find(preset), 2);
    const auto found = std::ranges::find_if(shown.parameters, [&](const auto& one) { return one.name.ends_with(name); });
    CHECK_SAYS(found != shown.parameters.end(), name);
    return found->text;
  };
  CHECK(text_of("lstm", "weight_ih").ends_with(", times input_gain."));
  CHECK(!text_of("lstm", "weight_hh").ends_with(", times input_gain."));
  CHECK(text_of("cfc", "backbone.0.weight").ends_with(", the columns of the input times input_gain."));
  CHECK(text_of("ls-lstm", "0/fc.W").ends_with(", the rows of the input times input_gain.") ||
        text_of("ls-lstm", "fc.W").ends_with("times input_gain."));
  CHECK(text_of("srwm", "encoder/weight").ends_with(", times input_gain."));
  CHECK(!text_of("elman", "weight_ih").ends_with("times input_gain."));
}

// ---- Weights are drawn as numbers whatever is chosen: every choice and flag of every preset, each with both bounds of every number that
// matters for drawing.

namespace {

using Set = std::vector<std::pair<std::string, HyperValue>>;

/// The hyper-parameters of a preset with some of them set; none where these do not go together.
std::optional<Hyper> with(const Architecture& architecture, Hyper hyper, const Set& set) {
  try {
    for (const auto& [key, value] : set) hyper.set(key, value, architecture.id);
    if (architecture.check) architecture.check(hyper);
    return hyper;
  } catch (const Error&) {
    return {};
  }
}

void check_drawn(const Preset& preset) {
  const auto architecture = architecture_of(builtin_registry(), preset);
  Hyper small = hyper_of(builtin_registry(), preset);
  // Small, so that many can be drawn.
  for (const auto& [key, most] : {std::pair("width", 8), std::pair("heads", 2), std::pair("state", 4), std::pair("layers", 1),
                                  std::pair("feed_forward", 8), std::pair("l_max", 16), std::pair("segment", 4)})
    if (small.has(key) && small.integer(key) > most)
      if (const auto smaller = with(*architecture, small, {{key, std::int64_t{most}}})) small = *smaller;
  std::vector<Set> choices{{}}, bounds{{}};
  for (const HyperSpec& row : small.table()) {
    if (row.kind == HyperKind::flag) choices.push_back({{row.key, !small.flag(row.key)}});
    for (const auto& choice : row.choices)
      if (choice != small.choice(row.key)) choices.push_back({{row.key, choice}});
    if (!row.initialisation_only || (row.kind != HyperKind::real && row.kind != HyperKind::integer)) continue;
    for (const double bound : {row.low, row.high})
      bounds.push_back({{row.key, row.kind == HyperKind::real ? HyperValue(bound) : HyperValue(static_cast<std::int64_t>(bound))}});
  }
  int drawn = 0;
  for (const Set& choice : choices)
    for (const Set& bound : bounds) {
      Set both = choice;
      both.insert(both.end(), bound.begin(), bound.end());
      const auto hyper = with(*architecture, small, both);
      if (!hyper) continue;
      std::string said;
      for (const auto& [key, value] : both) said += " " + key + "=" + hyper->text(key);
      try {
        const Network network(*architecture, *hyper, {.input = 2, .head = 1});
        const Parameters parameters = network.initialise(1);
        for (const auto& entry : parameters.entries())
          for (const double value : entry.values)
            CHECK_SAYS(std::isfinite(value), preset.id + said + ": " + entry.name + " is " + test::show(value));
        ++drawn;
      } catch (const Error&) {  // values that a network cannot have
        continue;
      }
    }
  CHECK(drawn > 0);
}

}  // namespace

SWEEP_PRESETS("weights are drawn as finite numbers with every choice and at the bounds of every number of their drawing", preset) {
  check_drawn(preset);
}
