// SPDX-License-Identifier: GPL-3.0-or-later
// The wired CfC of ncps: layers of units one above the other within a step, whose synapses a wiring names.
#include "models/ode_inspired/cfc/parameters.h"

#include "models/parts/parts.h"

namespace reclab::architectures {
namespace {

/// One layer of a wired cell.
struct WiredLayer {
  std::int64_t inputs, units, offset;  ///< offset: of its units in h
  std::vector<CfcJoined> maps;      ///< f, then with a gate g and the maps of the gate; their part of x is there in the first layer alone
  std::vector<Var> of_below, bias;  ///< of the other layers: weights of the layer below, and biases
  Var leak, A;
};

}  // namespace

Var wired_cfc(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  const std::int64_t H = h.integer("width"), in = x.dim(-1);
  const std::string mode = h.choice("mode");
  const bool pure = mode == "pure";
  const parts::Wiring wiring = parts::wiring_of(h, in);
  std::vector<WiredLayer> layers;
  std::vector<Var> tokens;
  std::int64_t inputs = in, offset = 0;
  for (std::size_t k = 0; k < wiring.layers.size(); ++k) {
    const auto& own = wiring.layers[k];
    const std::int64_t n = std::ssize(own), columns = inputs + n;
    WiredLayer layer{inputs, n, offset, {}, {}, {}, {}, {}};
    const std::string prefix = "rnn_cell.layer_" + std::to_string(k) + ".";
    std::vector<int> mask(static_cast<std::size_t>(n * columns), 1);
    for (std::int64_t to = 0; to < n; ++to)
      for (std::int64_t from = 0; from < inputs; ++from)
        mask[static_cast<std::size_t>(to * columns + from)] =
            k == 0 ? wiring.sensory[static_cast<std::size_t>(from * H + own[static_cast<std::size_t>(to)])]
                   : wiring.synapses[static_cast<std::size_t>(wiring.layers[k - 1][static_cast<std::size_t>(from)] * H +
                                                              own[static_cast<std::size_t>(to)])];
    const Var present = l.parameter(
        prefix + "sparsity_mask", {n, columns}, parts::mask_of(std::move(mask)),
        "1 where there is a synapse, else 0; columns what is read, h of this layer, which is all there. Starts as the wiring says.");
    const auto map = [&](const std::string& name, bool masked, const std::string& role) {
      const Var W = l.parameter(prefix + name + ".weight", {n, columns}, parts::xavier_uniform(columns, n),
                                role + ", columns what is read, h of this layer; starts uniform in ±√(6/(columns + rows)) (Xavier).");
      const Var b = l.parameter(prefix + name + ".bias", {n}, parts::torch_uniform(columns), "Its bias; starts uniform in ±1/√columns."),
                own_W = masked ? W * present : W;
      const Var of_below = slice(own_W, 1, 0, inputs), W_h = slice(own_W, 1, inputs, columns);
      layer.maps.push_back({k == 0 ? linear(x, of_below, b) : Var{}, W_h});
      if (k == 0) tokens.push_back(layer.maps.back().of_x);
      layer.of_below.push_back(of_below);
      layer.bias.push_back(b);
    };
    map("ff1", true, "W_1, the first end");
    if (pure) {
      layer.leak = abs(l.parameter(prefix + "w_tau", {1, n}, init::constant(0.0), "w_τ, the inverse time constant; starts at 0."));
      layer.A = l.parameter(prefix + "A", {1, n}, init::constant(1.0), "A, where the state is drawn to; starts at 1.");
    } else {
      map("ff2", true, "W_2, the second end");
      map("time_a", false, "A, how fast the gate moves in time");
      map("time_b", false, "B, where the gate stands at Δ = 0");
    }
    layers.push_back(std::move(layer));
    inputs = n;
    offset += n;
  }
  const CfcBeside beside(l, x, tokens);
  const auto after_one_another = [](const std::vector<Var>& all) { return all.size() == 1 ? all[0] : concat(all, -1); };
  const Var y = step(
      l, beside.states("The hidden state, layer after layer of the wiring; the last one is read out."), tokens,
      [=](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
        const auto [h_all, c] = beside.read(cell, u, s);
        std::vector<Var> made, gates;
        for (const WiredLayer& layer : layers) {
          const Var own = slice(h_all, -1, layer.offset, layer.offset + layer.units);
          std::vector<Var> of;
          for (std::size_t i = 0; i < layer.maps.size(); ++i)
            of.push_back((made.empty() ? u[i] : linear(made.back(), layer.of_below[i], layer.bias[i])) + linear(own, layer.maps[i].W_h));
          made.push_back(cfc_solution(mode, of, layer.leak, layer.A, beside.elapsed(u), [&](Var gate) {
            gates.push_back(gate);
            return gate;
          }));
        }
        cfc_gate(cell, mode, after_one_another(gates));
        return beside.next(after_one_another(made), c);
      })[0];
  const std::int64_t shown = layers.back().units;
  return cfc_projected(l, shown < H ? slice(y, -1, H - shown, H) : y);
}

}  // namespace reclab::architectures
