// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/derivative.h"

#include "models/parts/parts.h"

namespace reclab::parts {

std::vector<HyperSpec> derivative_hyper(std::int64_t hidden_layers, std::int64_t hidden_units, const std::string& final_activation) {
  return {hyper_integer("hidden_layers", "", hidden_layers, 0, 16, "Hidden layers of the network f; 0: one linear map."),
          hyper_integer("hidden_units", "", hidden_units, 1, 4096, "Width of its hidden layers.", "units"),
          hyper_choice("activation", "tanh", {"tanh", "relu", "elu", "softplus", "silu"}, "The nonlinearity of its hidden layers."),
          hyper_choice("final_activation", final_activation, {"identity", "tanh"},
                       "What its last layer ends with: nothing, or tanh, which bounds how fast the state moves."),
          initialisation_only(hyper_real("deviation", "", 0.1, 0.0, 10.0, "Its weights start normal with this standard deviation."))};
}

Derivative::Derivative(Layer& l, const std::string& name, Var x, std::int64_t width)
    : activation_(l.hyper.choice("activation")), bounded_(l.hyper.choice("final_activation") == "tanh") {
  const std::int64_t depth = l.hyper.integer("hidden_layers"), units = l.hyper.integer("hidden_units"), in = x ? x.dim(-1) : 0;
  const Init start = init::normal(l.hyper.real("deviation"));
  for (std::int64_t i = 0; i <= depth; ++i) {
    const std::int64_t from = i ? units : in + width, to = i < depth ? units : width;
    const std::string key = name + "." + std::to_string(2 * i), which = i   ? "of a layer of f"
                                                                        : x ? "of f's first layer, columns x, s"
                                                                            : "of f's first layer";
    const Var W =
        l.parameter(key + ".weight", {to, from}, start, "Weights " + which + "; start normal with the standard deviation `deviation`.");
    const Var b = l.parameter(key + ".bias", {to}, init::constant(0.0), "Its bias; starts at 0.");
    if (i || !x) {
      maps_.emplace_back(W, b);
      continue;
    }
    token_ = reclab::linear(x, slice(W, 1, 0, in), b);
    maps_.emplace_back(slice(W, 1, in, from), Var{});
  }
}

Var Derivative::operator()(Var s, Var given) const {
  for (std::size_t i = 0; i < maps_.size(); ++i) {
    s = reclab::linear(s, maps_[i].first, maps_[i].second);
    if (i == 0 && given) s = given + s;
    if (i + 1 < maps_.size()) s = activation(activation_, s);
  }
  return bounded_ ? tanh(s) : s;
}

}  // namespace reclab::parts
