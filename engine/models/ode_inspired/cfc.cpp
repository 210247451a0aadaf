// SPDX-License-Identifier: GPL-3.0-or-later
//   u = backbone([x_t; h_{t-1}]),   f = W_1 u + b_1,   g = W_2 u + b_2,   s = σ((A u + a) Δ_t + B u + b)
//   h_t = (1 - s) tanh f + s tanh g;   without the gate tanh f + s tanh g;   pure: A - A e^{-Δ_t (|w_τ| + |f|)} f
// R. Hasani, M. Lechner, A. Amini, L. Liebenwein, A. Ray, M. Tschaikowski, G. Teschl, D. Rus, Closed-form continuous-time neural networks,
// Nature Machine Intelligence 4 (2022). Names and conventions of ncps' torch CfC.
#include <cmath>
#include <utility>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

/// A linear map of [x; h], whose part of x is made for all steps at once.
struct Joined {
  Var of_x, W_h;
};

Joined joined(Layer& l, const std::string& name, Var x, std::int64_t H, std::int64_t out, const std::string& role) {
  const std::int64_t in = x.dim(-1);
  const Var W = l.parameter(name + ".weight", {out, in + H}, parts::xavier_uniform(in + H, out), role + ", columns x, h; starts uniform in ±√(6/(in + out)) (Xavier).");
  const Var b = l.parameter(name + ".bias", {out}, parts::torch_uniform(in + H), "The bias of " + name + "; starts uniform in ±1/√(in + H).");
  return {linear(x, slice(W, 1, 0, in), b), slice(W, 1, in, in + H)};
}

/// A linear map of what the backbone makes.
struct Plain {
  Var W, b;
};
Plain plain(Layer& l, const std::string& name, std::int64_t in, std::int64_t out, const std::string& role) {
  const Var W = l.parameter(name + ".weight", {out, in}, parts::xavier_uniform(in, out), role + "; starts uniform in ±√(6/(in + out)) (Xavier).");
  return {W, l.parameter(name + ".bias", {out}, parts::torch_uniform(in), "The bias of " + name + "; starts uniform in ±1/√in.")};
}

}  // namespace

Architecture cfc() {
  Architecture a;
  a.title = "CfC";
  a.equations = {"u = backbone([x_t; h_{t-1}]), layers of φ(W u + b); φ(z) = 1.7159 tanh(0.666 z) for lecun_tanh",
                 "f = W_1 u + b_1,  g = W_2 u + b_2,  s = σ((A u + a) Δ_t + B u + b)",
                 "default: h_t = (1 − s) ⊙ tanh(f) + s ⊙ tanh(g);  no_gate: h_t = tanh(f) + s ⊙ tanh(g)",
                 "pure: h_t = A − A ⊙ exp(−Δ_t (|w_τ| + |f|)) ⊙ f",
                 "mixed memory: [z i f o] = W_in x_t + b_in + W_rec h_{t-1},  c_t = σ(f + 1) ⊙ c_{t-1} + σ(i) ⊙ tanh(z),  and σ(o) ⊙ tanh(c_t) is what the cell reads as h_{t-1}",
                 "y_t = h_t, or W_fc h_t + b_fc with a projection"};
  a.notes = {"Names and shapes are those of ncps' torch CfC: rnn_cell.backbone.{0,2,…}, rnn_cell.{ff1,ff2,time_a,time_b}, rnn_cell.{w_tau,A} of shape [1, H] in pure mode, lstm.{input_map,recurrent_map}, fc; a file of a CfCCell alone is read too.",
             "Elapsed times are ncps' timespans. Its dropout, which acts in training alone, is left out.",
             "A wired CfC is a stack of these without a backbone, a layer of the wiring each, with the weights of ff1 and ff2 multiplied by the wiring's mask; time_a and time_b have none.",
             "raminmh/CfC calls pure minimal, starts all weights as torch.nn.Linear does, and has no_gate as here; its backbone has at least one layer."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Units (hidden_size).", "units"), hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_choice("mode", "default", {"default", "pure", "no_gate"}, "How the two ends are joined: by the gate in time, by the solution itself (pure), or added (no_gate)."),
             hyper_integer("backbone_layers", "", 1, 0, 16, "Layers of the backbone; 0: the heads read x and h themselves."), hyper_integer("backbone_units", "", 128, 1, 4096, "Width of the backbone.", "units"),
             hyper_choice("activation", "lecun_tanh", {"lecun_tanh", "silu", "relu", "tanh", "gelu"}, "φ of the backbone."),
             hyper_flag("mixed_memory", false, "Whether an LSTM cell stands in front, whose output takes the place of h."), hyper_integer("projection", "P", 0, 0, 4096, "Size that h is projected to (proj_size in ncps); 0: no projection.", "units")};
  a.knows_time = true;
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂h_t/∂h_{t-1}, with mixed memory of (h, c)";
  a.source = {"R. Hasani, M. Lechner, A. Amini, L. Liebenwein, A. Ray, M. Tschaikowski, G. Teschl, D. Rus", "Closed-form continuous-time neural networks", "Nature Machine Intelligence 4", "https://arxiv.org/abs/2106.13898", 2022};
  a.reference = {{"rnn_cell.*", "rnn_cell.*"}, {"lstm.*", "lstm.*"}, {"fc.*", "fc.*"}, {"*", "rnn_cell.*"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), depth = l.hyper.integer("backbone_layers"), units = l.hyper.integer("backbone_units"), P = l.hyper.integer("projection");
    const std::string mode = l.hyper.choice("mode"), f = l.hyper.choice("activation");
    const bool pure = mode == "pure", mixed = l.hyper.flag("mixed_memory");
    const Var elapsed = l.elapsed();
    std::vector<std::string> names{"ff1"}, roles{"W_1, the first end"};
    if (!pure) {
      names.insert(names.end(), {"ff2", "time_a", "time_b"});
      roles.insert(roles.end(), {"W_2, the second end", "A, how fast the gate moves in time", "B, where the gate stands at Δ = 0"});
    }
    std::vector<Joined> of_both;  // maps of [x; h]
    std::vector<Plain> inner, heads;
    if (depth) {
      of_both.push_back(joined(l, "rnn_cell.backbone.0", x, H, units, "The backbone's first layer"));
      for (std::int64_t i = 1; i < depth; ++i) inner.push_back(plain(l, "rnn_cell.backbone." + std::to_string(2 * i), units, units, "A layer of the backbone"));
      for (std::size_t i = 0; i < names.size(); ++i) heads.push_back(plain(l, "rnn_cell." + names[i], units, H, roles[i]));
    } else {
      for (std::size_t i = 0; i < names.size(); ++i) of_both.push_back(joined(l, "rnn_cell." + names[i], x, H, H, roles[i]));
    }
    const Var leak = pure ? abs(l.parameter("rnn_cell.w_tau", {1, H}, init::constant(0.0), "w_τ, the inverse time constant; starts at 0.")) : Var{};
    const Var A = pure ? l.parameter("rnn_cell.A", {1, H}, init::constant(1.0), "A, where the state is drawn to; starts at 1.") : Var{};
    std::vector<Var> tokens;
    for (const Joined& map : of_both) tokens.push_back(map.of_x);
    const std::size_t time_at = tokens.size(), lstm_at = time_at + (elapsed ? 1 : 0);
    if (elapsed) tokens.push_back(elapsed);
    Var W_rec;
    if (mixed) {
      const std::int64_t in = x.dim(-1);
      const Var W = l.parameter("lstm.input_map.weight", {4 * H, in}, parts::xavier_uniform(in, 4 * H), "W_in, rows candidate, input, forget, output; starts uniform in ±√(6/(in + 4H)).");
      const Var b = l.parameter("lstm.input_map.bias", {4 * H}, init::uniform(-0.1, 0.1), "b_in; starts uniform in ±0.1.");
      W_rec = l.parameter("lstm.recurrent_map.weight", {4 * H, H}, init::orthogonal(1.0), "W_rec, rows as in W_in; starts orthogonal.");
      tokens.push_back(linear(x, W, b));
    }
    std::vector<StateSpec> states{{"h", {H}, "The hidden state: what is read out."}};
    if (mixed) states.push_back({"c", {H}, "The cell of the LSTM in front."});
    Var y = step(l, states, tokens, [=](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
      Var h = s[0], c;
      if (mixed) {
        const auto z = split(u[lstm_at] + linear(h, W_rec), -1, 4);
        const Var in = cell.gate("input", sigmoid(z[1]), 0.0, 1.0, "σ(i) of the LSTM: how much of the candidate is written."), forget = cell.gate("forget", sigmoid(z[2] + 1.0), 0.0, 1.0, "σ(f + 1) of the LSTM: how much of its cell is kept.");
        const Var out = cell.gate("output", sigmoid(z[3]), 0.0, 1.0, "σ(o) of the LSTM: how much of its cell is shown.");
        c = s[1] * forget + tanh(z[0]) * in;
        h = tanh(c) * out;
      }
      std::vector<Var> made;  // f, and where there is a gate g and what it is made of
      if (depth) {
        Var v = parts::activation(f, u[0] + linear(h, of_both[0].W_h));
        for (const Plain& map : inner) v = parts::activation(f, linear(v, map.W, map.b));
        for (const Plain& map : heads) made.push_back(linear(v, map.W, map.b));
      } else {
        for (std::size_t i = 0; i < of_both.size(); ++i) made.push_back(u[i] + linear(h, of_both[i].W_h));
      }
      Var next;
      if (pure) {
        const Var rate = leak + abs(made[0]);
        const Var left = cell.gate("decay", exp(elapsed ? -(u[time_at] * rate) : -rate), 0.0, 1.0, "exp(−Δ_t (|w_τ| + |f|)): what is left of the distance to A.");
        next = A - A * left * made[0];
      } else {
        const Var s_t = cell.gate("time", sigmoid((elapsed ? made[2] * u[time_at] : made[2]) + made[3]), 0.0, 1.0, "s: from the first end, 0, to the second, 1.");
        const Var first = tanh(made[0]), second = tanh(made[1]);
        next = mode == "no_gate" ? first + s_t * second : first * (1.0 - s_t) + s_t * second;
      }
      return mixed ? std::vector<Var>{next, c} : std::vector<Var>{next};
    })[0];
    if (P) y = parts::linear(l, "fc", y, P, "W_fc, the projection of what is read out");
    return y;
  };
  return a;
}

}  // namespace reclab::architectures
