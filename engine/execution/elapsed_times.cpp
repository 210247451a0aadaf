// SPDX-License-Identifier: GPL-3.0-or-later
#include "execution/elapsed_times.h"

#include <algorithm>

#include "array/host.h"

namespace reclab {

bool ElapsedTimes::uneven(const Batch& batch) {
  return std::ranges::any_of(batch.examples(), [](const Example& example) { return reclab::uneven(example.sequence->time); });
}

void ElapsedTimes::set_clocks(std::span<const double> values) {
  clocks_.clear();
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) clocks_.push_back({values[i], values[i + 1]});
}

void ElapsedTimes::upload(const Network& network, const Batch& batch, std::int64_t steps, std::int64_t segment) {
  const auto& wanted = network.elapsed();
  if (wanted.empty()) return;
  segment_ = segment;
  batch_ = batch.size();
  const auto size = static_cast<std::size_t>(batch.size()), length = static_cast<std::size_t>(steps);
  // A clock that is all zeros is that of a state that had none.
  const auto clock_of = [&](std::size_t b) {
    return clocks_.size() == size && clocks_[b].typical > 0.0 ? std::optional(clocks_[b]) : std::nullopt;
  };
  elapsed_.resize(wanted.size());
  const DType real = wanted[0].var.dtype();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    std::vector<double> all(length * size, 1.0);
    for (std::size_t b = 0; b < size; ++b) {
      const auto own =
          reclab::elapsed(batch.examples()[b].sequence->time, wanted[i].unit, clock_of(b), wanted[i].reversed, wanted[i].first);
      for (std::size_t t = 0; t < std::min(own.size(), length); ++t) all[t * size + b] = own[t];
    }
    const auto values = narrowed(real, all);
    backend_.upload(elapsed_[i].resize(backend_, real, std::ssize(all)), values.data(), values.size());
  }
  // The unit that a continued run keeps: a layer without one of its own takes the typical step.
  const auto own_unit = std::ranges::find(wanted, 0.0, &Network::ElapsedVar::unit);
  std::vector<double> ends;
  for (std::size_t last = 0; last < length;) {
    last = std::min(length, last + static_cast<std::size_t>(segment));
    for (std::size_t b = 0; b < size; ++b) {
      const auto& time = batch.examples()[b].sequence->time;
      const auto before = clock_of(b);
      ends.push_back(time.empty() ? static_cast<double>(last - 1) : time[std::min(last, time.size()) - 1]);
      ends.push_back(own_unit == wanted.end() ? wanted[0].unit : before ? before->typical : typical_step(time));
    }
  }
  backend_.upload(ends_.resize(backend_, DType::f64, std::ssize(ends)), ends.data(), ends.size() * sizeof(double));
}

void ElapsedTimes::bind(Network& network, std::int64_t index) const {
  const auto& wanted = network.elapsed();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::size_t row = static_cast<std::size_t>(batch_) * bytes_of(wanted[i].var.dtype());
    network.graph().bind(wanted[i].var, static_cast<const char*>(elapsed_[i].data()) + static_cast<std::size_t>(index * segment_) * row);
  }
  for (const auto& state : network.states())
    if (state.clock)
      network.graph().bind(state.final_state,
                           static_cast<const char*>(ends_.data()) + static_cast<std::size_t>(index * batch_ * 2) * sizeof(double));
}

std::int64_t ElapsedTimes::bytes() const {
  std::size_t total = ends_.bytes();
  for (const auto& array : elapsed_) total += array.bytes();
  return static_cast<std::int64_t>(total);
}

}  // namespace reclab
