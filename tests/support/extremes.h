// SPDX-License-Identifier: GPL-3.0-or-later
// Helpers of tests at the edge of the numbers: sequences and weights of any size, and checks of their results.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "array/rng.h"
#include "experiment/experiment.h"
#include "files/files.h"
#include "files/npz.h"
#include "models/network.h"
#include "models/registry.h"

namespace reclab::test {

using Numbers = std::vector<double>;

inline bool finite(const Numbers& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}
inline double largest(const Numbers& values) {
  double size = 0.0;
  for (const double x : values) size = std::max(size, std::abs(x));
  return size;
}
inline bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline Sequence sequence_of(std::int64_t length, std::int64_t width, const std::function<double(std::int64_t)>& value) {
  Sequence sequence;
  sequence.name = sequence.source = "made";
  sequence.length = length;
  sequence.width = width;
  for (std::int64_t i = 0; i < length * width; ++i) sequence.input.push_back(value(i));
  for (std::int64_t t = 0; t < length; ++t) sequence.time.push_back(static_cast<double>(t));
  for (std::int64_t j = 0; j < width; ++j) {
    sequence.names.push_back("u" + std::to_string(j));
    sequence.mean.push_back(0.0);
    sequence.deviation.push_back(1.0);
  }
  return sequence;
}

inline RunRequest request_for(const std::string& architecture, std::int64_t length, double size = 1.0) {
  RunRequest request;
  request.preset.id = request.preset.architecture = architecture;
  Rng rng(7);
  request.sequence = sequence_of(length, 2, [&](std::int64_t) { return size * rng.normal(); });
  request.seed = 3;
  return request;
}
/// Weights of a model after a change, in a file.
inline void write_weights(const RunRequest& request, const std::filesystem::path& path,
                          const std::function<double(const std::string&, double)>& change) {
  const Network network(builtin_registry().find(request.preset.architecture), hyper_of(builtin_registry(), request.preset, request.set),
                        {.input = request.sequence->width});
  AtomicFile file(path);
  NpzWriter writer(file);
  Parameters parameters = network.initialise(request.seed);
  for (auto& entry : parameters.entries()) {
    for (double& value : entry.values) value = change(entry.name, value);
    writer.add("param/" + entry.name, entry.shape, std::span<const double>(entry.values));
  }
  writer.finish();
  file.commit();
}

}  // namespace reclab::test
