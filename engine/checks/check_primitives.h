// SPDX-License-Identifier: GPL-3.0-or-later
// The primitives that every model is made of, each by itself on random inputs, for check_device to compare beside the presets.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "recurrence/primitive.h"

namespace reclab {

struct PrimitiveCase {
  std::string name, form;
  std::string primitive;  ///< the primitive that this is a variant of
  /// Builds the primitive over so many steps; returns its outputs.
  std::function<std::vector<Var>(Graph& graph, RandomLeaves& leaves, std::int64_t steps)> build;
};
std::vector<PrimitiveCase> primitive_cases();

/// The result of a primitive on a backend: outputs, and the gradients of all leaves.
struct PrimitiveResult {
  std::vector<std::pair<std::string, std::vector<double>>> outputs, gradients;
  double seconds = 0.0;
};
PrimitiveResult run_primitive(const PrimitiveCase& primitive, Backend& backend, DType real, std::int64_t steps, std::stop_token stop);

}  // namespace reclab
