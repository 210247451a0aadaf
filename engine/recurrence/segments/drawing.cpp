// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/segments/drawing.h"

#include <algorithm>

namespace reclab::drawing {

void segments(Plan& plan, const Drawn& f) {
  const std::int64_t T = f.order.steps;
  const int given = plan.kind("input", Place::point, "what the layer computed for this step alone; all steps at once"),
            segment =
                plan.kind("segment", Place::box,
                          "attention among the steps of a segment and the memory before it, all at once; it makes the memory after it");
  std::vector<int> element;
  for (std::int64_t t = 0; t < T; ++t) element.push_back(plan.add(given, 0, t, t));
  int before = -1;
  std::int64_t round = 0;
  for (std::int64_t first = -f.order.cached_steps; first < T; first += f.order.chunk) {
    const std::int64_t from = std::max<std::int64_t>(0, first), last = std::min(T, first + f.order.chunk) - 1;
    std::vector<int> needs(element.begin() + from, element.begin() + last + 1);
    if (before >= 0) needs.push_back(before);
    before = plan.add(segment, ++round, from, last, needs);
  }
  plan.why =
      "Segments of " + std::to_string(f.order.chunk) +
      " steps go one after another, since each begins from the memory that the one before it left; inside a segment all steps run at once.";
  plan.unit = "segments";
  plan.entry = "";
}

void contexts(Plan& plan, const Drawn& f) {
  const std::int64_t T = f.order.steps;
  const int given = plan.kind("input", Place::point, "what the layer computed for this step alone; all steps at once"),
            segment = plan.kind("segment", Place::box,
                                "attention among the steps of a segment and to what the steps of the one before it left, all at once");
  std::vector<int> element;
  for (std::int64_t t = 0; t < T; ++t) element.push_back(plan.add(given, 0, t, t));
  std::int64_t before = 0;
  for (std::int64_t first = -f.order.cached_steps; first < T; first += f.order.chunk) {
    const std::int64_t from = std::max<std::int64_t>(0, first), last = std::min(T, first + f.order.chunk) - 1;
    plan.add(segment, 1, from, last, std::vector<int>(element.begin() + before, element.begin() + last + 1));
    before = from;
  }
  plan.why =
      "Segments of " + std::to_string(f.order.chunk) +
      " steps are computed all at once: what each reads of the one before it is made of the inputs of that one and not of what it read.";
  plan.unit = "segments";
  plan.entry = "";
}

}  // namespace reclab::drawing
