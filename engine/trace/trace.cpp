// SPDX-License-Identifier: GPL-3.0-or-later
#include "trace/trace.h"

#include <algorithm>
#include <numeric>

#include "array/demand.h"

namespace reclab {

std::int64_t TraceArray::size() const { return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()); }

std::int64_t TraceArray::row_size() const {
  return shape.empty() ? 1 : std::accumulate(shape.begin() + 1, shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::finished: return "finished";
    case Outcome::cancelled: return "cancelled";
    case Outcome::failed: return "failed";
    case Outcome::diverged: return "diverged";
  }
  return "unknown";
}

const TraceArray* Trace::find(std::string_view key) const {
  for (const auto& array : arrays_)
    if (array->key == key) return array.get();
  return nullptr;
}

std::vector<const TraceArray*> Trace::matching(std::string_view prefix) const {
  std::vector<const TraceArray*> found;
  for (const auto& array : arrays_)
    if (std::string_view(array->key).starts_with(prefix)) found.push_back(array.get());
  return found;
}

bool Trace::has(Kind kind) const {
  return std::any_of(arrays_.begin(), arrays_.end(),
                     [prefix = prefix_of(kind)](const auto& array) { return array->key.starts_with(prefix); });
}

void Trace::put(TraceArray array) {
  RECLAB_DEMAND((array.real != nullptr) != (array.complex != nullptr));
  RECLAB_DEMAND(array.size() == static_cast<std::int64_t>(array.real ? array.real->size() : array.complex->size()));
  auto shared = std::make_shared<const TraceArray>(std::move(array));
  for (auto& present : arrays_) {
    if (present->key == shared->key) {
      present = std::move(shared);
      return;
    }
  }
  arrays_.push_back(std::move(shared));
}

namespace {
std::int64_t nearest(const std::vector<std::int64_t>& steps, std::int64_t step) {
  if (steps.empty()) return -1;
  const auto after = std::lower_bound(steps.begin(), steps.end(), step);
  if (after == steps.end()) return static_cast<std::int64_t>(steps.size()) - 1;
  if (after == steps.begin()) return 0;
  const auto before = after - 1;
  return (step - *before <= *after - step ? before : after) - steps.begin();
}
}  // namespace

std::int64_t Trace::row_of_step(std::int64_t step) const { return nearest(steps, step); }

std::int64_t Trace::row_of_step(const TraceArray& array, std::int64_t step) const {
  if (!array.shape.empty() && array.shape[0] == 1 && array.steps.empty()) return 0;
  return nearest(array.steps.empty() ? steps : array.steps, step);
}

}  // namespace reclab
