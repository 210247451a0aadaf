// SPDX-License-Identifier: GPL-3.0-or-later
// The memories that every model is made of, each by itself on random inputs: what check_device compares beside the presets.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "array/rng.h"
#include "recurrence/memory.h"

namespace reclab {

/// Leaves of a graph with random values, the same for the same seed.
class RandomLeaves {
 public:
  RandomLeaves(Graph& graph, std::uint64_t seed) : graph_(graph), rng_(seed) {}
  Var real(Shape shape, double low = -1.0, double high = 1.0);
  /// Of a modulus from low to high.
  Var complex(Shape shape, double low = 0.0, double high = 1.0);
  /// Gives values to the initial states that a memory has made, and keeps the memory for the unit of their gradients.
  void initial(const MemoryVars& vars);

  struct Leaf {
    Var var;
    std::vector<double> parts;  ///< of complex entries both
    const Memory* memory = nullptr;
  };
  const std::vector<Leaf>& all() const { return all_; }

 private:
  Graph& graph_;
  Rng rng_;
  std::vector<Leaf> all_;
};

struct PrimitiveCase {
  std::string name, form;
  /// Builds it over so many steps; returns what it makes.
  std::function<std::vector<Var>(Graph& graph, RandomLeaves& leaves, std::int64_t steps)> build;
};
std::vector<PrimitiveCase> primitive_cases();

/// What a primitive made on a backend: outputs, and the gradients of all leaves.
struct PrimitiveResult {
  std::vector<std::pair<std::string, std::vector<double>>> outputs, gradients;
  double seconds = 0.0;
};
PrimitiveResult run_primitive(const PrimitiveCase& primitive, Backend& backend, DType real, std::int64_t steps, std::stop_token stop);

}  // namespace reclab
