// SPDX-License-Identifier: GPL-3.0-or-later
// The network that says how fast a state moves, for models that solve a differential equation: linear maps with a nonlinearity between.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/architecture.h"

namespace reclab::parts {

/// The rows hidden_layers, hidden_units, activation and final_activation.
std::vector<HyperSpec> derivative_hyper(std::int64_t hidden_layers, std::int64_t hidden_units, const std::string& final_activation);

class Derivative {
 public:
  /// name.0.weight, name.0.bias, name.2.weight and so on, as in a torch Sequential. `x`: a sequence that the first layer reads in front of
  /// the state (none: the state alone).
  Derivative(Layer& l, const std::string& name, Var x, std::int64_t width);
  /// The first layer's map of x, a token for the cell; none without x.
  Var token() const { return token_; }
  /// f(s); `given` is this step's token.
  Var operator()(Var s, Var given = {}) const;

 private:
  std::string activation_;
  bool bounded_;
  Var token_;
  std::vector<std::pair<Var, Var>>
      maps_;  // weight and bias; the first one's weight is that of the state, and with x its bias is in the token
};

}  // namespace reclab::parts
