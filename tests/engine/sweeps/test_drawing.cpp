// SPDX-License-Identifier: GPL-3.0-or-later
// Weights are drawn as numbers whatever is chosen: every choice and flag of every preset, each with both bounds of every number that matters for drawing.
#include <cmath>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "models/network.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

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
  for (const auto& [key, most] : {std::pair("width", 8), std::pair("heads", 2), std::pair("state", 4), std::pair("layers", 1), std::pair("feed_forward", 8), std::pair("l_max", 16), std::pair("segment", 4)})
    if (small.has(key) && small.integer(key) > most)
      if (const auto smaller = with(*architecture, small, {{key, std::int64_t{most}}})) small = *smaller;
  std::vector<Set> choices{{}}, bounds{{}};
  for (const HyperSpec& row : small.table()) {
    if (row.kind == HyperKind::flag) choices.push_back({{row.key, !small.flag(row.key)}});
    for (const auto& choice : row.choices)
      if (choice != small.choice(row.key)) choices.push_back({{row.key, choice}});
    if (!row.draws_only || (row.kind != HyperKind::real && row.kind != HyperKind::integer)) continue;
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
          for (const double value : entry.values) CHECK_SAYS(std::isfinite(value), preset.id + said + ": " + entry.name + " is " + test::show(value));
        ++drawn;
      } catch (const Error&) {  // values that a network cannot have
        continue;
      }
    }
  CHECK(drawn > 0);
}

}  // namespace

SWEEP_PRESETS("weights are drawn as finite numbers with every choice and at the bounds of every number of their drawing", preset) { check_drawn(preset); }
