// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/plan.h"

#include <algorithm>

#include "array/host.h"

namespace reclab::drawing {

std::vector<Complex> values_of(Var var) { return to_complex(var.graph->backend(), var.dtype(), var.graph->value(var), count(var.shape())); }

std::int64_t most_active(const std::vector<Complex>& values, std::int64_t width) {
  std::vector<double> squares(static_cast<std::size_t>(width), 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) squares[i % static_cast<std::size_t>(width)] += std::norm(values[i]);
  return std::max_element(squares.begin(), squares.end()) - squares.begin();
}

std::int64_t drawn_chunk(std::int64_t own, std::int64_t steps) {
  std::int64_t chunk = 1;
  while (chunk * chunk < steps) chunk *= 2;
  return std::min(own, chunk);
}
std::string chunks_said(const std::string& what, std::int64_t own, std::int64_t drawn) {
  if (own == drawn) return " The " + what + " are " + std::to_string(drawn) + " steps long.";
  return " In a run " + what + " are " + std::to_string(own) + " steps long; here they are " + std::to_string(drawn) +
         ", so that this short sequence has several.";
}
std::string of_entry(const std::string& what, const Drawn& found, std::int64_t entry) {
  return what + (found.state.empty() ? "" : ", of " + found.state) + ", entry " + std::to_string(entry) + ".";
}

const std::string why_sequential =
    "Each step needs the state that the one before it left, so there are as many rounds as steps, however many processors there are.";

InputRows::InputRows(Var var)
    : values(values_of(var)), stride(var.shape().size() == 4 ? var.dim(2) * var.dim(3) : var.dim(-1)), width(var.dim(-1)) {}
std::int64_t InputRows::most_active(std::int64_t steps) const {
  std::vector<double> squares(static_cast<std::size_t>(width), 0.0);
  for (std::int64_t t = 0; t < steps; ++t)
    for (std::int64_t i = 0; i < width; ++i) squares[static_cast<std::size_t>(i)] += std::pow((*this)(t, i), 2.0);
  return std::max_element(squares.begin(), squares.end()) - squares.begin();
}

void steps(Plan& plan, const Drawn& f) {
  const std::int64_t T = f.order.steps;
  const bool states = static_cast<bool>(f.trajectory);
  const auto made = states ? values_of(f.trajectory) : std::vector<Complex>();
  const std::int64_t width = states ? std::ssize(made) / T : 1, entry = states ? most_active(made, width) : 0;
  const int given = plan.kind("input", Place::point, "what the layer computed for this step alone; all steps at once"),
            stepped = plan.kind("step", Place::point, "the next state, from the state before and this step's input");
  int before = -1;
  for (std::int64_t t = 0; t < T; ++t) {
    std::vector<int> needs{plan.add(given, 0, t, t)};
    if (before >= 0) needs.push_back(before);
    before = plan.add(stepped, t + 1, 0, t, needs, states ? made[static_cast<std::size_t>(t * width + entry)] : Complex(none));
  }
  plan.why = why_sequential;
  plan.unit = "steps";
  plan.entry = of_entry("The state after the step", f, entry);
}

}  // namespace reclab::drawing
