// SPDX-License-Identifier: GPL-3.0-or-later
// The tangent of a recurrence that is one fused operation, by way of the same recurrence composed of operations that have tangents. It goes
// a few steps at a time, since the composed one keeps arrays that the fused one was made to avoid.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <vector>

#include "array/device_array.h"
#include "autodiff/graph.h"

namespace reclab {

class Composed {
 public:
  enum class Role : std::uint8_t { sequence, constant, state };
  struct Input {
    Role role;
    Shape shape;  ///< of a sequence: of one step
  };
  /// A recurrence built over some steps: the leaf of the state before them, the output, and the state after each.
  struct Made {
    Var state, output, trajectory;
  };
  /// `in`: an array for each input but the state, in its place.
  using Build = std::function<Made(Graph& graph, std::span<const Var> in)>;
  /// The destinations of the tangents; null: not wanted.
  struct Tangents {
    void* output = nullptr;
    void* states = nullptr;  ///< after every step
    void* last = nullptr;    ///< after the last one
  };

  Composed(DType type, std::vector<Input> inputs, Build build) : type_(type), inputs_(std::move(inputs)), build_(std::move(build)) {}
  void tangent(const TangentCall& call, std::int64_t steps, const Tangents& to);

 private:
  struct Steps {
    Graph graph;
    std::vector<Var> in;
    Made made;
    explicit Steps(DType type) : graph(type) {}
  };
  DType type_;
  std::vector<Input> inputs_;
  Build build_;
  std::map<std::int64_t, Steps> built_;  // by how many steps
  DeviceArray state_[2], moved_[2];      // before the next steps and after them

  Steps& over(Backend& backend, std::int64_t steps);
};

}  // namespace reclab
