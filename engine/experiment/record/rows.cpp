// SPDX-License-Identifier: GPL-3.0-or-later
#include "experiment/record/rows.h"

#include <algorithm>

namespace reclab {

void RecordedRows::add(TraceArray array, const Network& network, std::function<Var(const Network&)> of, bool backward) {
  if (!record_.wants(array.key)) return;
  Growing growing;
  growing.is_complex = is_complex(of(network).dtype());
  // Reserved, since a growing vector is copied again and again, the last time as a whole.
  const std::size_t entries = record_.trace.steps.size() * static_cast<std::size_t>(count(of(network).shape()) / network.options().steps);
  growing.is_complex ? growing.complex.reserve(entries) : growing.real.reserve(entries);
  growing.array = std::move(array);
  growing.of = std::move(of);
  growing.reversed = backward;
  growing_.push_back(std::move(growing));
}

const std::vector<double>* RecordedRows::values(std::string_view key) const {
  const auto found = std::ranges::find_if(growing_, [&](const Growing& one) { return one.array.key == key; });
  return found == growing_.end() ? nullptr : &found->real;
}

void RecordedRows::forward(const Rollout::Segment& segment) {
  const Graph& graph = segment.network.graph();
  for (std::int64_t t = 0; t < segment.steps; ++t) {
    if (!record_.is_recorded(segment.first + t)) continue;
    record_.check();
    for (Growing& growing : growing_) {
      const Var own = growing.of(segment.network);
      const std::int64_t size = count(own.shape()) / segment.steps, row = growing.reversed ? segment.steps - 1 - t : t;
      if (growing.is_complex) {
        const auto values = to_complex(graph.backend(), own.dtype(), graph.value(own), size, row * size);
        growing.complex.insert(growing.complex.end(), values.begin(), values.end());
      } else {
        const auto values = to_double(graph.backend(), own.dtype(), graph.value(own), size, row * size);
        growing.real.insert(growing.real.end(), values.begin(), values.end());
      }
    }
  }
}

void RecordedRows::finish(std::int64_t rows) {
  for (Growing& growing : growing_) {
    growing.array.shape[0] = rows;
    const auto size = static_cast<std::size_t>(growing.array.size());
    if (growing.is_complex) {
      growing.complex.resize(size);
      growing.array.complex = std::make_shared<const std::vector<std::complex<double>>>(std::move(growing.complex));
    } else {
      growing.real.resize(size);
      growing.array.real = std::make_shared<const std::vector<double>>(std::move(growing.real));
    }
    record_.trace.put(std::move(growing.array));
  }
  growing_.clear();
}

}  // namespace reclab
