// SPDX-License-Identifier: GPL-3.0-or-later
#include "timing/primitives.h"

#include <algorithm>
#include <numeric>

#include "array/rng.h"
#include "recurrence/primitive.h"

namespace reclab {
namespace {

using Argument = TimedPrimitive::Argument;

std::int64_t width_of(const std::vector<Argument>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0},
                         [](std::int64_t sum, const Argument& part) { return sum + part.width; });
}

}  // namespace

const Registry& primitives() {
  static const Registry registry = [] {
    Registry of;
    for (const Primitive& one : all_primitives()) {
      Architecture architecture;
      architecture.title = one.timed.title;
      architecture.equations = one.timed.equations;
      architecture.hyper = one.timed.hyper;
      architecture.spectrum = one.timed.spectrum;
      architecture.layer = one.timed.layer;
      architecture.input_width = [arguments = one.timed.arguments](const Hyper& hyper) { return width_of(arguments(hyper)); };
      of.add(one.id, "primitive", std::move(architecture));
    }
    return of;
  }();
  return registry;
}

bool is_primitive(std::string_view id) { return std::ranges::find(all_primitives(), id, &Primitive::id) != all_primitives().end(); }

std::vector<std::string> primitive_names() {
  std::vector<std::string> names;
  for (const Primitive& one : all_primitives()) names.push_back(one.id);
  return names;
}

Preset primitive_preset(std::string_view id) {
  Preset preset;
  const Architecture& architecture = primitives().find(id);
  preset.id = preset.architecture = architecture.id;
  preset.title = architecture.title;
  preset.family = architecture.family;
  return preset;
}

Sequence primitive_input(std::string_view id, const Hyper& hyper, std::int64_t length, std::uint64_t seed) {
  const Primitive& primitive = *std::ranges::find(all_primitives(), id, &Primitive::id);
  const std::vector<Argument> parts = primitive.timed.arguments(hyper);
  Sequence sequence;
  sequence.name = "the arguments of " + std::string(id);
  sequence.length = length;
  sequence.width = width_of(parts);
  Rng rng(seed);
  for (std::int64_t t = 0; t < length; ++t) {
    sequence.time.push_back(static_cast<double>(t));
    for (const Argument& part : parts)
      for (std::int64_t j = 0; j < part.width; ++j)
        sequence.input.push_back(part.low < part.high ? rng.uniform(part.low, part.high) : part.deviation * rng.normal());
  }
  for (std::int64_t j = 0; j < sequence.width; ++j) sequence.names.push_back("x" + std::to_string(j + 1));
  return sequence;
}

}  // namespace reclab
