// SPDX-License-Identifier: GPL-3.0-or-later
//   z_t = z_{t-1} - s (tanh(w y_{t-1} + V x + b) + α y_{t-1}),   y_t = y_{t-1} + s z_t,   s = Δt σ(c)
// T. K. Rusch, S. Mishra, UnICORNN: a recurrent model for learning very long time dependencies, ICML 2021. Names and conventions of the
// authors' code.
#include <cmath>

#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture unicornn() {
  Architecture a;
  a.title = "UnICORNN";
  a.equations = {"s = Δt σ(c)", "z_t = z_{t-1} − s ⊙ (tanh(w ⊙ y_{t-1} + V x_t + b) + α y_{t-1})", "y_t = y_{t-1} + s ⊙ z_t",
                 "the output is y_t", "∂(y, z)_t/∂(y, z)_{t-1} by unit: [[1 − s²J, s], [−s J, 1]] with J = w tanh′ + α, of determinant 1"};
  a.notes = {"Names are those of the authors' code: fc of DIs.<l>, c_ and weight_hh of RNNs.<l>; the states hy and hz are y and z.",
             "The whole force has a minus sign, and y is moved by the new z: a symplectic step, which is undone by y ← y − s z, z ← z + s "
             "(tanh(w y + V x + b) + α y).",
             "Some of the authors' experiments give each of their two layers a time step of its own: dt and dt_top. Layers between them "
             "have steps between, geometrically. With dt_per_layer each layer's is a number of its own in the file, dt [1], for what is no "
             "geometric row: the authors' is an attribute, RNNs.<l>.dt, and not in a state dict.",
             "The dropout between layers, which is for training alone, is left out."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Oscillators, which do not see one another.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_real("dt", "Δt", 0.19, 1e-6, 10.0, "Time step of the first layer, before each unit's share of it.", true),
             hyper_real("dt_top", "Δt_L", 0.0, 0.0, 10.0, "Time step of the last layer; 0: that of the first."),
             hyper_flag("dt_per_layer", false, "Whether each layer's Δt is a parameter, which starts where it would be."),
             hyper_real("alpha", "α", 30.65, 0.0, 1000.0, "Stiffness: what draws y back, beside the input's force.")};
  a.spectrum = "eigenvalues of each unit's ∂(y, z)_t/∂(y, z)_{t-1}, a pair whose product is 1";
  a.source = {"T. K. Rusch, S. Mishra", "UnICORNN: a recurrent model for learning very long time dependencies", "ICML",
              "https://arxiv.org/abs/2103.05487", 2021};
  a.reference = {{"DIs.{n}.fc.*", "fc.*"}, {"RNNs.{n}.c_", "c_"}, {"RNNs.{n}.weight_hh", "weight_hh"}, {"RNNs.{n}.dt", "dt"}};
  a.input_weights = {{"fc.weight"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), L = l.hyper.integer("layers");
    const double dt = l.hyper.real("dt"), top = l.hyper.real("dt_top"), alpha = l.hyper.real("alpha");
    const double place = L > 1 ? static_cast<double>(l.index()) / static_cast<double>(L - 1) : 0.0;
    const double own = top > 0.0 ? dt * std::pow(top / dt, place) : dt;
    const double k = std::sqrt(6.0 / (65.0 * static_cast<double>(x.dim(-1))));
    const Var u = parts::linear(l, "fc", x, H,
                                {init::uniform(-k, k), init::constant(0.0), "V",
                                 "starts uniform in ±√(6/(65 in)), which is Kaiming's with slope 8, its bias at 0"});
    const Var w = l.parameter("weight_hh", {H}, init::uniform(0.0, 1.0), "w, of each unit to itself; starts uniform in 0..1.");
    const Var c =
        l.parameter("c_", {H}, init::uniform(-0.1, 0.1), "c, whose σ is each unit's share of the time step; starts uniform in ±0.1.");
    const Var share = sigmoid(c);
    const Var s = l.hyper.flag("dt_per_layer") ? share * l.parameter("dt", {1}, init::constant(own), "Δt of this layer.") : own * share;
    return step(
        l, {{"hy", {H}, "The positions: what is read out."}, {"hz", {H}, "The velocities."}}, {u},
        [=](Cell& cell, std::span<const Var> t, std::span<const Var> state) {
          const Var force = cell.gate("force", tanh(w * state[0] + t[0]), -1.0, 1.0,
                                      "tanh(w y + V x + b): what the input and a unit's own position draw it with.");
          const Var z = state[1] - s * (force + alpha * state[0]);
          return std::vector<Var>{state[0] + s * z, z};
        },
        Sees::own_entry)[0];
  };
  return a;
}

}  // namespace reclab::architectures
