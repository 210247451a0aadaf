// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/state_place.h"

#include <algorithm>
#include <vector>

namespace reclab {

bool layersApart(std::size_t states, std::size_t layers) { return states * layers <= 6; }

int placeOfState(const Trace& trace, const std::string& key) {
  std::vector<std::string> states;
  std::vector<std::int64_t> layers;
  const auto noted = [](auto& all, const auto& one) {
    const auto found = std::ranges::find(all, one);
    const auto at = static_cast<std::size_t>(found - all.begin());
    if (found == all.end()) all.push_back(one);
    return at;
  };
  std::size_t layer = 0, state = 0;
  bool there = false;
  for (const TraceArray* array : trace.matching(key_of(Kind::gradient, prefix_of(Kind::state)))) {
    if (!array->real || !array->has_rows()) continue;
    const auto parsed = parse_key(array->key);
    const auto its = parsed ? parse_key(parsed->name) : std::nullopt;
    if (!its) continue;
    const std::size_t s = noted(states, std::string(its->name)), l = noted(layers, its->layer);
    if (array->key != key) continue;
    there = true;
    layer = l;
    state = s;
  }
  if (!there) return -1;
  return static_cast<int>(layersApart(states.size(), layers.size()) ? layer * states.size() + state : state);
}

}  // namespace reclab
