// SPDX-License-Identifier: GPL-3.0-or-later
// Weights that a test says by hand.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "files/npz.h"
#include "models/network.h"
#include "models/registry.h"
#include "test.h"

namespace reclab::test {

/// Writes a file of the request's weights for so many inputs: those that are named, and drawn ones for encoder and head; asserts that every
/// other one is named.
inline void write_given_weights(const RunRequest& request, std::int64_t inputs, const std::map<std::string, std::vector<double>>& values) {
  const Network network(builtin_registry().find(request.preset.architecture), hyper_of(builtin_registry(), request.preset, request.set),
                        {.input = inputs});
  AtomicFile file(request.weights);
  NpzWriter writer(file);
  Parameters drawn = network.initialise(1);
  for (auto& entry : drawn.entries()) {
    if (const auto found = values.find(entry.name); found != values.end()) {
      CHECK_SAYS(found->second.size() == entry.values.size(), entry.name);
      entry.values = found->second;
    } else {
      CHECK_SAYS(!entry.name.starts_with("0/"), entry.name);
    }
    writer.add("param/" + entry.name, entry.shape, std::span<const double>(entry.values));
  }
  writer.finish();
  file.commit();
}

}  // namespace reclab::test
