// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/diagonal/drawing.h"

#include <utility>

#include "array/demand.h"
#include "array/order.h"

namespace reclab::drawing {
namespace {

/// s_t = a_t s_{t-1} + b_t, of one entry.
struct Factors {
  std::vector<Complex> a, b;
  Complex initial;
  std::int64_t entry = 0;

  explicit Factors(const Drawn& f) {
    const std::int64_t T = f.order.steps;
    const auto factors = values_of(f.in[0]), drive = values_of(f.in[1]), start = values_of(f.in[2]), states = values_of(f.out[0]);
    const std::int64_t width = std::ssize(states) / T, period = std::ssize(factors);
    entry = most_active(states, width);
    for (std::int64_t t = 0; t < T; ++t) {
      a.push_back(factors[static_cast<std::size_t>(period == T * width && f.in[0].shape() == f.in[1].shape() ? t * width + entry
                                                                                                             : entry % period)]);
      b.push_back(drive[static_cast<std::size_t>(t * width + entry)]);
    }
    initial = start[static_cast<std::size_t>(entry)];
  }
};

/// Places that elements are composed in.
class Places {
 public:
  Places(Plan& plan, const Factors& x, int given, int composed) : plan_(plan), composed_(composed) {
    for (std::size_t t = 0; t < x.a.size(); ++t) {
      const auto step = static_cast<std::int64_t>(t);
      // The initial state enters with the first element.
      now_.push_back(plan.add(given, 0, step, step, {}, t ? x.b[t] : x.b[t] + x.a[t] * x.initial, x.a[t]));
    }
  }
  void compose(std::int64_t earlier, std::int64_t later, std::int64_t round) {
    const Plan::Node first = plan_[at(earlier)], second = plan_[at(later)];
    RECLAB_DEMAND(first.last + 1 == second.first);
    at(later) = plan_.add(composed_, round, first.first, second.last, {at(earlier), at(later)}, second.product * first.value + second.value,
                          second.product * first.product);
  }

 private:
  int& at(std::int64_t t) { return now_[static_cast<std::size_t>(t)]; }
  Plan& plan_;
  int composed_;
  std::vector<int> now_;
};

const std::string composition = "two neighbours become one: s → a₂(a₁ s + b₁) + b₂ has the factor a = a₂a₁ and the drive b = a₂b₁ + b₂";

}  // namespace

void diagonal(Plan& plan, const Drawn& f) {
  const Factors x(f);
  const int given = plan.kind("element", Place::point, "the factor a and the drive b of this step, computed for all steps at once"),
            stepped = plan.kind("step", Place::point, "s = a s' + b, from the state s' before and this step's a and b");
  int before = -1;
  Complex state = x.initial;
  for (std::size_t t = 0; t < x.a.size(); ++t) {
    const auto step = static_cast<std::int64_t>(t);
    std::vector<int> needs{plan.add(given, 0, step, step, {}, x.b[t], x.a[t])};
    if (before >= 0) needs.push_back(before);
    state = x.a[t] * state + x.b[t];
    before = plan.add(stepped, step + 1, 0, step, needs, state);
  }
  plan.why = why_sequential;
  plan.unit = "steps";
  plan.entry = of_entry("The state after the step, or the drive b", f, x.entry);
}

void tree(Plan& plan, const Drawn& f) {
  const Factors x(f);
  const int given = plan.kind("element", Place::point, "the factor a and the drive b of this step, computed for all steps at once"),
            composed = plan.kind("composition", Place::point, composition);
  Places places(plan, x, given, composed);
  std::int64_t round = 0;
  bool fresh = false;
  // A round without a pair is none.
  order::tree(
      f.order.steps, [&] { fresh = true; },
      [&](std::int64_t earlier, std::int64_t later) {
        round += std::exchange(fresh, false) ? 1 : 0;
        places.compose(earlier, later, round);
      });
  plan.why =
      "A step s → a s + b after another is again such a step, and it does not matter which pair is put together first: so neighbours are "
      "composed side by side, and then what they became. Where a node reaches back to the first step, its b is the state.";
  plan.unit = "compositions";
  plan.entry = of_entry("The drive b that the composed steps add", f, x.entry);
}

void chunks(Plan& plan, const Drawn& f) {
  const std::int64_t chunk = drawn_chunk(f.order.chunk, f.order.steps);
  const Factors x(f);
  const int given = plan.kind("element", Place::point, "the factor a and the drive b of this step, computed for all steps at once"),
            composed = plan.kind("composition", Place::point, composition);
  Places places(plan, x, given, composed);
  order::chunks(
      f.order.steps, chunk, [&](std::int64_t t) { places.compose(t - 1, t, t % chunk); },
      [&](std::int64_t last, std::int64_t t) { places.compose(last, t, chunk - 1 + (last + 1) / chunk); });
  plan.why =
      "All chunks run side by side as if each began from nothing; then the last state of each is carried into the next, whose steps take "
      "it in all at once." +
      chunks_said("chunks", f.order.chunk, chunk);
  plan.unit = "compositions";
  plan.entry = of_entry("The drive b that the composed steps add", f, x.entry);
}

}  // namespace reclab::drawing
