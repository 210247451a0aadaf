// SPDX-License-Identifier: GPL-3.0-or-later
//   u = backbone([x_t; h_{t-1}]),   f = W_1 u + b_1,   g = W_2 u + b_2,   s = σ((A u + a) Δ_t + B u + b)
//   h_t = (1 - s) tanh f + s tanh g;   without the gate tanh f + s tanh g;   pure: A - A e^{-Δ_t (|w_τ| + |f|)} f
// R. Hasani, M. Lechner, A. Amini, L. Liebenwein, A. Ray, M. Tschaikowski, G. Teschl, D. Rus, Closed-form continuous-time neural networks,
// Nature Machine Intelligence 4 (2022). Names and conventions of ncps' torch CfC.
#include <cmath>
#include <optional>
#include <utility>

#include "array/error.h"
#include "models/parts/parts.h"
#include "models/parts/wiring/wiring.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

/// A linear map of [x; h], whose part of x is made for all steps at once.
struct Joined {
  Var of_x, W_h;
};

Joined joined(Layer& l, const std::string& name, Var x, std::int64_t H, std::int64_t out, const std::string& role) {
  const std::int64_t in = x.dim(-1);
  const Var W = l.parameter(name + ".weight", {out, in + H}, parts::xavier_uniform(in + H, out),
                            role + ", columns x, h; starts uniform in ±√(6/(in + out)) (Xavier).");
  const Var b =
      l.parameter(name + ".bias", {out}, parts::torch_uniform(in + H), "The bias of " + name + "; starts uniform in ±1/√(in + H).");
  return {linear(x, slice(W, 1, 0, in), b), slice(W, 1, in, in + H)};
}

/// A linear map of what the backbone makes.
struct Plain {
  Var W, b;
};
Plain plain(Layer& l, const std::string& name, std::int64_t in, std::int64_t out, const std::string& role) {
  const Var W =
      l.parameter(name + ".weight", {out, in}, parts::xavier_uniform(in, out), role + "; starts uniform in ±√(6/(in + out)) (Xavier).");
  return {W, l.parameter(name + ".bias", {out}, parts::torch_uniform(in), "The bias of " + name + "; starts uniform in ±1/√in.")};
}

/// One layer of a wired cell.
struct WiredLayer {
  std::int64_t inputs, units, offset;  ///< offset: of its units in h
  std::vector<Joined> maps;  ///< f, and where there is a gate g and what it is made of; their part of x is there in the first layer alone
  std::vector<Var> of_below, bias;  ///< of the other layers: weights of the layer below, and biases
  Var leak, A;
};

Var wired(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  const std::int64_t H = h.integer("width"), P = h.integer("projection"), in = x.dim(-1);
  const std::string mode = h.choice("mode");
  const bool pure = mode == "pure", mixed = h.flag("mixed_memory");
  const parts::Wiring wiring = parts::wiring_of(h, in);
  const Var elapsed = l.elapsed();
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
  const std::size_t time_at = tokens.size(), lstm_at = time_at + (elapsed ? 1 : 0);
  if (elapsed) tokens.push_back(elapsed);
  std::optional<parts::MixedMemory> memory;
  if (mixed) tokens.push_back(memory.emplace(l, x, H).token());
  std::vector<StateSpec> states{{"h", {H}, "The hidden state, layer after layer of the wiring; the last one is read out."}};
  if (mixed) states.push_back({"c", {H}, "The cell of the LSTM in front."});
  Var y = step(l, states, tokens, [=](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
    Var h_all = s[0], c;
    if (mixed) {
      const auto shown = (*memory)(cell, u[lstm_at], h_all, s[1]);
      h_all = shown.h;
      c = shown.c;
    }
    std::vector<Var> made, gates;
    for (const WiredLayer& layer : layers) {
      const Var own = slice(h_all, -1, layer.offset, layer.offset + layer.units);
      std::vector<Var> of;
      for (std::size_t i = 0; i < layer.maps.size(); ++i)
        of.push_back((made.empty() ? u[i] : linear(made.back(), layer.of_below[i], layer.bias[i])) + linear(own, layer.maps[i].W_h));
      if (pure) {
        const Var rate = layer.leak + abs(of[0]);
        gates.push_back(exp(elapsed ? -(u[time_at] * rate) : -rate));
        made.push_back(layer.A - layer.A * gates.back() * of[0]);
        continue;
      }
      gates.push_back(sigmoid((elapsed ? of[2] * u[time_at] : of[2]) + of[3]));
      const Var first = tanh(of[0]), second = tanh(of[1]);
      made.push_back(mode == "no_gate" ? first + gates.back() * second : first * (1.0 - gates.back()) + gates.back() * second);
    }
    const auto joined = [](const std::vector<Var>& all) { return all.size() == 1 ? all[0] : concat(all, -1); };
    if (pure)
      cell.gate("decay", joined(gates), 0.0, 1.0, "exp(−Δ_t (|w_τ| + |f|)): what is left of the distance to A.");
    else
      cell.gate("time", joined(gates), 0.0, 1.0, "s: from the first end, 0, to the second, 1.");
    return mixed ? std::vector<Var>{joined(made), c} : std::vector<Var>{joined(made)};
  })[0];
  const std::int64_t shown = layers.back().units;
  if (shown < H) y = slice(y, -1, H - shown, H);
  return P ? parts::linear(l, "fc", y, P, "W_fc, the projection of what is read out") : y;
}

}  // namespace

Architecture cfc() {
  Architecture a;
  a.title = "CfC";
  a.equations = {"u = backbone([x_t; h_{t-1}]), layers of φ(W u + b); φ(z) = 1.7159 tanh(0.666 z) for lecun_tanh",
                 "f = W_1 u + b_1,  g = W_2 u + b_2,  s = σ((A u + a) Δ_t + B u + b)",
                 "default: h_t = (1 − s) ⊙ tanh(f) + s ⊙ tanh(g);  no_gate: h_t = tanh(f) + s ⊙ tanh(g)",
                 "pure: h_t = A − A ⊙ exp(−Δ_t (|w_τ| + |f|)) ⊙ f",
                 "mixed memory: [z i f o] = W_in x_t + b_in + W_rec h_{t-1},  c_t = σ(f + 1) ⊙ c_{t-1} + σ(i) ⊙ tanh(z),  and σ(o) ⊙ "
                 "tanh(c_t) is what the cell reads as h_{t-1}",
                 "y_t = h_t, or W_fc h_t + b_fc with a projection"};
  a.notes = {
      "Names and shapes are those of ncps' torch CfC: rnn_cell.backbone.{0,2,…}, rnn_cell.{ff1,ff2,time_a,time_b}, rnn_cell.{w_tau,A} of "
      "shape [1, H] in pure mode, lstm.{input_map,recurrent_map}, fc; a file of a CfCCell alone is read too.",
      "Elapsed times are ncps' timespans. Its dropout, which acts in training alone, is left out.",
      "wiring is that of a wired CfC: rnn_cell.layer_0, layer_1, … without a backbone, one above the other within a step, whose weights of "
      "ff1 and ff2 are multiplied by sparsity_mask; time_a and time_b have no mask. h is that of all layers after one another, and the "
      "last layer is read out: inter, command and motor neurons of an NCP, all neurons at once of the other wirings.",
      "Masks are entries of ncps' files and numbers here, with a gradient that ncps does not have. An NCP's are drawn as ncps draws them, "
      "of the same seed.",
      "raminmh/CfC calls pure minimal, starts all weights as torch.nn.Linear does, and has no_gate as here; its backbone has at least one "
      "layer."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Units (hidden_size).", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_choice("mode", "default", {"default", "pure", "no_gate"},
                          "How the two ends are joined: by the gate in time, by the solution itself (pure), or added (no_gate)."),
             hyper_integer("backbone_layers", "", 1, 0, 16, "Layers of the backbone; 0: the heads read x and h themselves."),
             hyper_integer("backbone_units", "", 128, 1, 4096, "Width of the backbone.", "units"),
             hyper_choice("activation", "lecun_tanh", {"lecun_tanh", "silu", "relu", "tanh", "gelu"}, "φ of the backbone."),
             hyper_flag("mixed_memory", false, "Whether an LSTM cell stands in front, whose output takes the place of h."),
             hyper_integer("projection", "P", 0, 0, 4096, "Size that h is projected to (proj_size in ncps); 0: no projection.", "units"),
             hyper_integer("motor", "M", 0, 0, 1024, "Motor neurons of an NCP, which are read out; 0: a quarter of the width.", "units")};
  for (HyperSpec& row : parts::wiring_hyper(true)) a.hyper.push_back(std::move(row));
  a.check = [](const Hyper& h) { parts::check_wiring(h, "cfc"); };
  a.knows_time = true;
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂h_t/∂h_{t-1}, with mixed memory of (h, c)";
  a.source = {"R. Hasani, M. Lechner, A. Amini, L. Liebenwein, A. Ray, M. Tschaikowski, G. Teschl, D. Rus",
              "Closed-form continuous-time neural networks", "Nature Machine Intelligence 4", "https://arxiv.org/abs/2106.13898", 2022};
  a.reference = {{"rnn_cell.*", "rnn_cell.*"}, {"lstm.*", "lstm.*"}, {"fc.*", "fc.*"}, {"*", "rnn_cell.*"}};
  a.input_weights = {{"rnn_cell.backbone.0.weight", InputWeight::Part::first_columns},
                     {"rnn_cell.ff1.weight", InputWeight::Part::first_columns, "rnn_cell.backbone.0.weight"},
                     {"rnn_cell.ff2.weight", InputWeight::Part::first_columns, "rnn_cell.backbone.0.weight"},
                     {"rnn_cell.time_a.weight", InputWeight::Part::first_columns, "rnn_cell.backbone.0.weight"},
                     {"rnn_cell.time_b.weight", InputWeight::Part::first_columns, "rnn_cell.backbone.0.weight"},
                     {"rnn_cell.layer_0.ff1.weight", InputWeight::Part::first_columns},
                     {"rnn_cell.layer_0.ff2.weight", InputWeight::Part::first_columns},
                     {"rnn_cell.layer_0.time_a.weight", InputWeight::Part::first_columns},
                     {"rnn_cell.layer_0.time_b.weight", InputWeight::Part::first_columns},
                     {"lstm.input_map.weight"}};
  a.layer = [](Layer& l, Var x) {
    if (parts::is_wired(l.hyper)) return wired(l, x);
    const std::int64_t H = l.hyper.integer("width"), depth = l.hyper.integer("backbone_layers"), units = l.hyper.integer("backbone_units"),
                       P = l.hyper.integer("projection");
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
      for (std::int64_t i = 1; i < depth; ++i)
        inner.push_back(plain(l, "rnn_cell.backbone." + std::to_string(2 * i), units, units, "A layer of the backbone"));
      for (std::size_t i = 0; i < names.size(); ++i) heads.push_back(plain(l, "rnn_cell." + names[i], units, H, roles[i]));
    } else {
      for (std::size_t i = 0; i < names.size(); ++i) of_both.push_back(joined(l, "rnn_cell." + names[i], x, H, H, roles[i]));
    }
    const Var leak =
        pure ? abs(l.parameter("rnn_cell.w_tau", {1, H}, init::constant(0.0), "w_τ, the inverse time constant; starts at 0.")) : Var{};
    const Var A = pure ? l.parameter("rnn_cell.A", {1, H}, init::constant(1.0), "A, where the state is drawn to; starts at 1.") : Var{};
    std::vector<Var> tokens;
    for (const Joined& map : of_both) tokens.push_back(map.of_x);
    const std::size_t time_at = tokens.size(), lstm_at = time_at + (elapsed ? 1 : 0);
    if (elapsed) tokens.push_back(elapsed);
    std::optional<parts::MixedMemory> memory;
    if (mixed) tokens.push_back(memory.emplace(l, x, H).token());
    std::vector<StateSpec> states{{"h", {H}, "The hidden state: what is read out."}};
    if (mixed) states.push_back({"c", {H}, "The cell of the LSTM in front."});
    Var y = step(l, states, tokens, [=](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
      Var h = s[0], c;
      if (mixed) {
        const auto shown = (*memory)(cell, u[lstm_at], h, s[1]);
        h = shown.h;
        c = shown.c;
      }
      std::vector<Var> made;  // f, and where there is a gate g and what it is made of
      if (depth) {
        Var v = parts::activation(f, linear(h, of_both[0].W_h, u[0]));
        for (const Plain& map : inner) v = parts::activation(f, linear(v, map.W, map.b));
        for (const Plain& map : heads) made.push_back(linear(v, map.W, map.b));
      } else {
        for (std::size_t i = 0; i < of_both.size(); ++i) made.push_back(u[i] + linear(h, of_both[i].W_h));
      }
      Var next;
      if (pure) {
        const Var rate = leak + abs(made[0]);
        const Var left = cell.gate("decay", exp(elapsed ? -(u[time_at] * rate) : -rate), 0.0, 1.0,
                                   "exp(−Δ_t (|w_τ| + |f|)): what is left of the distance to A.");
        next = A - A * left * made[0];
      } else {
        const Var s_t = cell.gate("time", sigmoid((elapsed ? made[2] * u[time_at] : made[2]) + made[3]), 0.0, 1.0,
                                  "s: from the first end, 0, to the second, 1.");
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
