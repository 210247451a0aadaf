// SPDX-License-Identifier: GPL-3.0-or-later
// Runs of models without a preset, that are to finish, and the values that they recorded.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "models/registry.h"
#include "test.h"

namespace reclab::test {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// Every step is recorded.
inline RunRequest request_of(const std::string& architecture, SharedSequence sequence, Settings set = {}) {
  RunRequest request;
  request.preset.id = request.preset.title = request.preset.architecture = architecture;
  request.set = std::move(set);
  request.sequence = std::move(sequence);
  request.every = 1;
  return request;
}
inline TracePtr finished(const RunRequest& request, const Registry& registry = builtin_registry()) {
  const RunResult result = run(registry, request, {}, {});
  CHECK_SAYS(result.trace->info.outcome == Outcome::finished, result.trace->info.sentence);
  return result.trace;
}
inline const std::vector<double>& values_of(const Trace& trace, const std::string& key) {
  const TraceArray* array = trace.find(key);
  CHECK_SAYS(array && array->real, key);
  return *array->real;
}

}  // namespace reclab::test
