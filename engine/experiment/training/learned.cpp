// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/training/learned.h"

#include <algorithm>
#include <utility>

#include "array/demand.h"

namespace reclab {

std::int64_t LearnedWeights::bytes() const { return values.count() * static_cast<std::int64_t>(sizeof(double)); }

void Checkpoints::add(LearnedPtr weights) {
  RECLAB_DEMAND(kept_.empty() || kept_.back()->step < weights->step);
  if (kept_.size() > 1 && !wants(kept_.back()->step)) kept_.pop_back();
  kept_.push_back(std::move(weights));
  while (kept_.size() > 2 && (std::ssize(kept_) > most || bytes() > limit_)) thin();
}

void Checkpoints::thin() {
  every_ *= 2;
  const std::int64_t first = kept_.front()->step, newest = kept_.back()->step;
  std::erase_if(kept_, [&](const LearnedPtr& one) { return one->step != first && one->step != newest && !wants(one->step); });
}

LearnedPtr Checkpoints::nearest(std::int64_t step) const {
  LearnedPtr best;
  for (const LearnedPtr& one : kept_)
    if (!best || std::abs(one->step - step) <= std::abs(best->step - step)) best = one;
  return best;
}

std::int64_t Checkpoints::bytes() const {
  std::int64_t total = 0;
  for (const LearnedPtr& one : kept_) total += one->bytes();
  return total;
}

}  // namespace reclab
