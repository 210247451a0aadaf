// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/attention/drawing.h"

#include <algorithm>
#include <optional>

namespace reclab::drawing {
namespace {

/// All at once, or one step after another.
void reads(Plan& plan, const Drawn& f, bool at_once) {
  const EvaluationOrder& course = f.order;
  const std::int64_t T = course.steps;
  const bool before = course.read == ReadOrder::before;
  // A decayed read of the memory before its update is the read of the step before, with this step's query.
  const std::int64_t shift = before && course.weights == EvaluationOrder::Weights::decayed ? 1 : 0;
  const bool direct = !at_once && course.weights == EvaluationOrder::Weights::other && f.in.size() == 2;
  const auto out = values_of(f.out[0]);
  const std::int64_t width =
      f.out[0].shape().size() == 3 && !direct ? f.out[0].dim(2) : std::ssize(out) / T;  // of one step, of one head where heads come first
  std::optional<InputRows> q, k, v;
  std::vector<Complex> low, extra[4];
  if (!direct) {
    q.emplace(f.in[0]);
    k.emplace(f.in[1]);
    v.emplace(f.in[2]);
    if (course.bounded) low = values_of(f.in[3]);
    if (course.weights == EvaluationOrder::Weights::decayed)
      for (std::size_t i = 0; i < 4; ++i) extra[i] = values_of(f.in[3 + i]);
  }
  const std::int64_t column = v ? v->most_active(course.cached_steps + T) : most_active(out, width);
  const bool softmax =
      course.weights == EvaluationOrder::Weights::softmax || (course.weights == EvaluationOrder::Weights::other && !direct);
  plan.drawing = "triangle";
  const int given = plan.kind(direct ? "input" : "value", Place::lane,
                              direct ? "the input of this step" : "this step's query, key and value, computed for all steps at once");
  const std::string weighed =
      softmax ? "the softmax of its scores, and the mean of their values that it weighs" : "the sum of the values, each times its score";
  const int score = at_once
                        ? plan.kind("score", Place::cell,
                                    "the query of the row's step times the key of the column's" +
                                        std::string(course.weights == EvaluationOrder::Weights::decayed ? ", decayed over the steps between"
                                                                                                        : ""))
                        : -1,
            output = plan.kind(at_once ? "output" : "row", Place::end,
                               at_once  ? weighed
                               : direct ? "the kernel's taps times the inputs so far, summed"
                                        : "its scores with all rows that the cache holds, then " + weighed);
  std::vector<int> element;
  for (std::int64_t t = 0; t < T; ++t)
    element.push_back(plan.add(given, 0, t, t, {}, v ? Complex((*v)(course.cached_steps + t, column)) : Complex(none)));
  for (std::int64_t t = 0; t < T; ++t) {
    std::int64_t first =
        low.empty() ? 0
                    : std::max<std::int64_t>(0, static_cast<std::int64_t>(low[static_cast<std::size_t>(t)].real()) - course.cached_steps);
    if (course.window) first = std::max(first, t - course.window + 1);
    std::vector<int> needs;
    for (std::int64_t s = first; s < t + (before ? 0 : 1); ++s) {
      needs.push_back(element[static_cast<std::size_t>(s)]);
      if (!at_once) continue;
      double weight = 0.0;
      for (std::int64_t i = 0; i < q->width; ++i) weight += (*q)(t - shift, i) * (*k)(course.cached_steps + s, i);
      if (course.weights == EvaluationOrder::Weights::decayed)
        weight *= std::exp((extra[0][static_cast<std::size_t>(t - shift)] + extra[1][static_cast<std::size_t>(s)] +
                            (extra[2][static_cast<std::size_t>(t - shift)] + extra[3][static_cast<std::size_t>(s)]))
                               .real());
      if (course.weights == EvaluationOrder::Weights::other) weight = none;
      std::vector<int> pair{element[static_cast<std::size_t>(s)]};
      if (s != t) pair.push_back(element[static_cast<std::size_t>(t)]);
      needs.push_back(plan.add(score, 1, s, t, pair, weight));
    }
    if (needs.empty()) needs.push_back(element[static_cast<std::size_t>(t)]);
    plan.add(output, at_once ? 2 : t + 1, first, t, needs,
             t < shift ? Complex(none) : out[static_cast<std::size_t>((t - shift) * width + column)]);
  }
  plan.why =
      at_once
          ? "No step waits for another: each reads what came before by itself, so all scores are made at once, and then all rows. That "
            "takes work for every pair of steps."
          : std::string("Row after row, as when a sequence is made step by step: each reads what came before and is then kept itself.") +
                (direct ? ""
                        : " No row needs the result of another, so where all inputs are known they can be made at once: that is the form "
                          "attention.");
  plan.unit = at_once ? "scores and rows" : "rows";
  plan.entry = std::string(direct ? "" : "Of the first head: ") + (at_once ? "a value, a score, or column " : "a value, or column ") +
               std::to_string(column) + " of what is read.";
}

}  // namespace

void pairs(Plan& plan, const Drawn& f) { reads(plan, f, true); }
void rows(Plan& plan, const Drawn& f) { reads(plan, f, false); }

}  // namespace reclab::drawing
