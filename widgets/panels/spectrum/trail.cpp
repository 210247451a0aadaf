// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/spectrum/trail.h"

#include <algorithm>

namespace reclab {

void SpectrumTrail::take(const RunInfo& run, const QString& layer, std::int64_t step, std::span<const std::complex<double>> values) {
  if (!run.learned) return clear();
  // All streams have the number 0, and one that is behind the last picture is another.
  const bool back = run.learned->training == 0 && !past_.empty() && run.learned->steps < past_.back().steps;
  if (back || run.preset != preset_ || run.learned->training != training_ || layer != layer_ || step != step_) {
    clear();
    preset_ = run.preset;
    training_ = run.learned->training;
    layer_ = layer;
    step_ = step;
  }
  Past now{run.learned->steps, {values.begin(), values.end()}};
  const auto place = std::ranges::lower_bound(past_, now.steps, {}, &Past::steps);
  if (place != past_.end() && place->steps == now.steps)
    *place = std::move(now);
  else
    past_.insert(place, std::move(now));
  if (past_.size() <= most) return;
  // Every second goes, but for the first and the newest.
  std::vector<Past> kept;
  for (std::size_t i = 0; i < past_.size(); ++i)
    if (i % 2 == 0 || i + 1 == past_.size()) kept.push_back(std::move(past_[i]));
  past_ = std::move(kept);
}

}  // namespace reclab
