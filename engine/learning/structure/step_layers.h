// SPDX-License-Identifier: GPL-3.0-or-later
// The layers of a model's step: which entries of the state and which weights belong to each, and which entries a linear read-out sees.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "learning/structure/step_pattern.h"

namespace reclab {

struct StepLayers {
  static constexpr int none = std::numeric_limits<int>::max();
  std::vector<int> of_state{};   ///< the layer of each entry of the state
  std::vector<int> of_weight{};  ///< of each weight the lowest layer that it acts on; none for one that acts on outputs alone
  /// Of a pattern what stays in one layer, and of the weights what acts on their own; `layer`: in that one alone, none for all.
  StepPattern within(const StepPattern& pattern, int layer = none) const;
};
/// Looked at, by one product of the step's Jacobian for each layer, until several rounds of steps show no more of it.
StepLayers step_layers(const OnlineSetup& setup);
/// Throws Error, which names the rule `id`, where more than half of a layer's entries, and more than two, act on one of them.
void require_blocks(const StepLayers& layers, const StepPattern& pattern, const OnlineSetup& setup, const std::string& id);

/// A linear read-out y = V r + c of entries r of the next state.
struct LinearReadOut {
  std::size_t weight = 0;                              ///< of V in Model::weights()
  std::size_t first_of_weight = 0, first_of_bias = 0;  ///< their entries in StepMap::weight_adjoint()
  std::vector<std::size_t> read{};                     ///< the entry of the state that each column of V is multiplied with
};
/// Found by steps with weights moved a little. Throws Error, which begins with `title`, for a model whose outputs are read from something
/// else.
LinearReadOut linear_read_out(const OnlineSetup& setup, const std::string& title, const std::string& id);

}  // namespace reclab
