// SPDX-License-Identifier: GPL-3.0-or-later
//   u = backbone([x_t; h_{t-1}]),   f = W_1 u + b_1,   g = W_2 u + b_2,   s = σ((A u + a) Δ_t + B u + b)
//   h_t = (1 - s) tanh f + s tanh g;   without the gate tanh f + s tanh g;   pure: A - A e^{-Δ_t (|w_τ| + |f|)} f
// R. Hasani, M. Lechner, A. Amini, L. Liebenwein, A. Ray, M. Tschaikowski, G. Teschl, D. Rus, Closed-form continuous-time neural networks,
// Nature Machine Intelligence 4 (2022). Names and conventions of ncps' torch CfC.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "models/ode_inspired/cfc/parameters.h"
#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Var cfc_solution(const std::string& mode, const std::vector<Var>& maps, Var leak, Var A, Var elapsed, const std::function<Var(Var)>& gate) {
  if (mode == "pure") {
    const Var f = maps[0], rate = leak + abs(f);
    const Var left = gate(exp(elapsed ? -(elapsed * rate) : -rate));
    return A - A * left * f;
  }
  const Var s = gate(sigmoid((elapsed ? maps[2] * elapsed : maps[2]) + maps[3]));
  const Var first = tanh(maps[0]), second = tanh(maps[1]);
  return mode == "no_gate" ? first + s * second : first * (1.0 - s) + s * second;
}

Architecture cfc() {
  Architecture a = cfc_card();
  a.layer = [](Layer& l, Var x) {
    if (parts::is_wired(l.hyper)) return wired_cfc(l, x);
    const CfcParameters p = cfc_parameters(l, x);
    const std::string mode = l.hyper.choice("mode"), phi = l.hyper.choice("activation");
    std::vector<Var> tokens;
    for (const CfcJoined& map : p.of_both) tokens.push_back(map.of_x);
    const CfcBeside beside(l, x, tokens);

    const CellFunction cell = [=](Cell& c, std::span<const Var> token, std::span<const Var> before) {
      const auto [h, memory] = beside.read(c, token, before);
      std::vector<Var> maps;  // f, then with a gate g and the maps of the gate
      if (p.heads.empty()) {
        for (std::size_t i = 0; i < p.of_both.size(); ++i) maps.push_back(token[i] + linear(h, p.of_both[i].W_h));
      } else {
        Var u = parts::activation(phi, linear(h, p.of_both[0].W_h, token[0]));
        for (const CfcPlain& layer : p.inner) u = parts::activation(phi, linear(u, layer.W, layer.b));
        for (const CfcPlain& head : p.heads) maps.push_back(linear(u, head.W, head.b));
      }
      const Var next = cfc_solution(mode, maps, p.leak, p.A, beside.elapsed(token), [&](Var gate) { return cfc_gate(c, mode, gate); });
      return beside.next(next, memory);
    };
    return cfc_projected(l, step(l, beside.states("The hidden state: what is read out."), tokens, cell)[0]);
  };
  return a;
}

}  // namespace reclab::architectures
