// SPDX-License-Identifier: GPL-3.0-or-later
//   z_t = z_{t-1} + Δt (tanh(W_x x + b_x + w_z * z_{t-1} + b_z + w_y * y_{t-1} + b_y) - γ y_{t-1} - ε z_{t-1}),   y_t = y_{t-1} + Δt z_t
//   * a circular convolution with three taps along a ring, or three by three on a torus
//   generative: v_t = v + σ(Δ) (tanh(w_h * h + w_v * v + w_x * x + b) - relu(γ) h - relu(α) v),   h_t = norm(h + σ(Δ) v_t)
// T. A. Keller, M. Welling, Neural wave machines: learning spatiotemporally structured representations with locally coupled oscillatory recurrent
// neural networks, ICML 2023. Names and conventions of the authors' sequence models (multiconv1d_model, conv2d_model, uncoupled_model), and of
// Det_CoRNN_Caps of their generative one (Rotating_MNIST).
#include <array>
#include <cmath>

#include "array/error.h"

#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

/// Entry i of the result is entry i - 1 of x, or i + 1, round the ring.
Var turned(Var x, int axis, int by) {
  const std::int64_t n = x.dim(axis), cut = by > 0 ? n - 1 : 1;
  if (by == 0 || n == 1) return x;
  const Var parts[] = {slice(x, axis, cut, n), slice(x, axis, 0, cut)};
  return concat(parts, axis);
}

/// The taps of a kernel [rows * 3], each by itself.
std::vector<Var> taps_of(Var weight, std::int64_t rows) {
  std::vector<Var> taps;
  const Var flat = reshape(weight, {3 * rows});
  for (std::int64_t i = 0; i < 3 * rows; ++i) taps.push_back(slice(flat, 0, i, i + 1));
  return taps;
}

/// PyTorch's Conv2d of one channel with circular padding: entry (i, j) is the sum of w[a, b] x[i + a - 1, j + b - 1]; x [.., rings, units], three taps
/// on the units alone or nine.
Var convolved(Var x, const std::vector<Var>& taps) {
  const std::size_t rows = taps.size() / 3;
  Var whole;
  for (std::size_t b = 0; b < 3; ++b) {
    Var column;
    for (std::size_t a = 0; a < rows; ++a) {
      const Var term = turned(x, -2, rows == 3 ? 1 - static_cast<int>(a) : 0) * taps[a * 3 + b];
      column = column ? column + term : term;
    }
    const Var moved = turned(column, -1, 1 - static_cast<int>(b));
    whole = whole ? whole + moved : moved;
  }
  return whole;
}

/// Det_CoRNN_Caps: what is read is already as wide as the oscillators are many.
Var generative(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  const std::int64_t n = h.integer("width"), R = h.integer("rings"), T = l.steps(), B = l.batch();
  const bool torus = h.choice("coupling") == "2d", ahead = h.flag("forward_only");
  const std::int64_t kernels = torus || h.flag("shared") ? 1 : R;
  const double dt = h.real("dt");
  const auto number = [&](const std::string& name, double start, const std::string& role) { return l.parameter(name, {1}, init::constant(start), role); };
  const Var share = sigmoid(number("dt", std::log(dt / (1.0 - dt)), "Δ, whose σ is the time step; starts so that the step is dt."));
  const Var gamma = relu(number("gamma", h.real("gamma"), "γ, the stiffness where it is above 0; starts at gamma.")), alpha = relu(number("alpha", h.real("epsilon"), "α, the damping where it is above 0; starts at epsilon."));
  const auto kernel = [&](const std::string& name, const std::string& role) {
    const Shape shape = torus ? Shape{1, 1, 3, 3} : Shape{kernels, 1, 3};
    const double even = 1.0 / static_cast<double>(torus ? R * n : n);
    Var weight = l.parameter(name + ".conv.weight", shape, ahead ? init::each([](Rng&, std::int64_t i) { return i % 3 == 2 ? 1.0 : 0.0; }) : init::constant(even),
                             role + (torus ? ", [1, 1, rings, units]" : ", a row a kernel") + (ahead ? "; starts at (0, 0, 1), and is not trained there." : "; starts at one over the units it goes round."));
    if (ahead) weight = weight * reshape(l.parameter(name + ".mult", {kernels, 1}, init::constant(1.0), "What that kernel is multiplied by; starts at 1."), {kernels, 1, 1});
    std::vector<Var> taps;
    for (std::int64_t i = 0; i < (torus ? 9 : 3); ++i)
      taps.push_back(torus ? slice(reshape(weight, {9}), 0, i, i + 1) : reshape(slice(weight, -1, i, i + 1), {kernels, 1}));
    return taps;
  };
  const auto of_h = kernel("coupling", "w_h, from the positions"), of_v = kernel("damping", "w_v, from the velocities"), of_x = kernel("driving", "w_x, from what is read");
  const Var b = reshape(l.parameter("b_bar", torus ? Shape{1, R, n} : Shape{1, n}, init::constant(0.0), "b, of each unit, the same for all rings (1d); starts at 0."), torus ? Shape{R, n} : Shape{1, n});
  const bool normed = h.flag("layer_norm");
  const Shape of_norm = torus ? Shape{1, R, n} : Shape{R, n};
  const Var weight = normed ? reshape(l.parameter("ln_h.weight", of_norm, init::constant(1.0), "Scale of the layer norm over all oscillators; starts at 1."), {R * n}) : Var{};
  const Var bias = normed ? reshape(l.parameter("ln_h.bias", of_norm, init::constant(0.0), "Shift of the layer norm; starts at 0."), {R * n}) : Var{};
  const std::int64_t inner = h.integer("internal_steps");
  const Var drive = convolved(reshape(x, {T, B, R, n}), of_x) + b;
  const Var y = step(l, {{"hy", {R, n}, "The positions h, by ring: what is read out."}, {"hz", {R, n}, "The velocities v, by ring."}}, {drive}, [=](Cell& cell, std::span<const Var> t, std::span<const Var> s) {
    Var position = s[0], velocity = s[1];
    for (std::int64_t i = 0; i < inner; ++i) {
      Var force = tanh(convolved(position, of_h) + convolved(velocity, of_v) + t[0]);
      if (i + 1 == inner) force = cell.gate("force", force, -1.0, 1.0, "tanh(w_h * h + w_v * v + w_x * x + b): what drives the oscillators.");
      velocity = velocity + share * (force - gamma * position - alpha * velocity);
      position = position + share * velocity;
      if (normed) position = reshape(layer_norm(reshape(position, {position.dim(0), R * n}), weight, bias, 1e-5), {position.dim(0), R, n});
    }
    return std::vector<Var>{position, velocity};
  })[0];
  return parts::flat(l, y);
}

}  // namespace

Architecture neural_wave_machine() {
  Architecture a;
  a.title = "Neural wave machine";
  a.equations = {"z_t = z_{t-1} + Δt (tanh(W_x x_t + b_x + w_z * z_{t-1} + b_z + w_y * y_{t-1} + b_y) − γ y_{t-1} − ε z_{t-1})", "y_t = y_{t-1} + Δt z_t;  the output is y_t",
                 "1d: (w * y)_j = w₀ y_{j−1} + w₁ y_j + w₂ y_{j+1} round each ring;  2d: nine taps on the torus of rings and units", "start=wave: w_y = c² (1, −2, 1), so that y″ = c² y_jj − γ y − ε y′ for small y: waves go c Δt units a step"};
  a.equations.push_back("cell=generative: v_t = v_{t-1} + σ(Δ) (tanh(w_h * h_{t-1} + w_v * v_{t-1} + w_x * x_t + b) − relu(γ) h_{t-1} − relu(α) v_{t-1}),  h_t = norm(h_{t-1} + σ(Δ) v_t), the output");
  a.notes = {"Names and shapes are those of the authors' coRNNCell: Wx, Wz and Wy of multiconv1d_model (1d), conv2d_model (2d) and uncoupled_model (none), where Wz and Wy are single numbers without bias; the states hy and hz are y and z.",
             "The authors have as many rings as units in each, √H; unit j of ring i is entry i·width + j.", "The kernels are those of a cross-correlation: tap 0 multiplies the unit before.",
             "The damping ε z is explicit, as in the code; y is moved by the new z.", "Without the kernel's local coupling this is coRNN.",
             "cell=generative is Det_CoRNN_Caps of the authors' model for turning digits, with its names below rnn: its time step, stiffness and damping are trained, what it reads is already a number an oscillator (a linear encoder stands in front where it is not) and is itself convolved. A capsule is a ring; with 2d there is one capsule, the torus. Padding is circular and kernels have three taps, or nine; its locally connected kernels and its encoder and decoder of pictures are not here.",
             "h and v, the positions and velocities there, are the states hy and hz.",
             "dL/dhz_t is without hz_t's way into hy_t of the same step: the states after a step are independent coordinates."};
  a.hyper = {hyper_integer("width", "n", 8, 2, 4096, "Oscillators in a ring.", "units"), hyper_integer("rings", "", 8, 1, 1024, "Rings, side by side (1d) or the rows of a torus (2d)."),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_choice("coupling", "1d", {"1d", "2d", "none"}, "Which oscillators see each other: neighbours on a ring, neighbours on the torus, or none."),
             hyper_real("dt", "Δt", 0.042, 1e-4, 1.0, "Time step.", true), hyper_real("gamma", "γ", 2.7, 0.0, 1000.0, "Stiffness: the square of each oscillator's own angular frequency."),
             hyper_real("epsilon", "ε", 4.7, 0.0, 1000.0, "Damping."),
             hyper_choice("cell", "sequence", {"sequence", "generative"}, "The cell of the authors' sequence models, or that of their generative model, whose dt, gamma and epsilon are trained and start at these."),
             hyper_flag("shared", true, "generative, 1d: whether all rings have the same kernels (share_over_caps)."),
             hyper_flag("forward_only", false, "generative, 1d: whether the kernels are a number times (0, 0, 1), so that waves go one way (forward_only)."),
             hyper_integer("internal_steps", "", 1, 1, 100, "generative: steps of the oscillators a step of the sequence (n_internal_steps).", "steps"),
             hyper_flag("layer_norm", true, "generative: whether a layer norm over all oscillators follows each step."),
             draws_only(hyper_choice("start", "uniform", {"uniform", "wave"}, "How weights start: as PyTorch's, or as the wave equation's, each input column driving one oscillator.")),
             draws_only(hyper_real("speed", "c", 1.0, 0.0, 100.0, "Speed of the waves with start=wave, in units per unit of time; c Δt above 1 (on a torus 0.7) is unstable."))};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂(y, z)_t/∂(y, z)_{t-1}";
  a.source = {"T. A. Keller, M. Welling", "Neural wave machines: learning spatiotemporally structured representations with locally coupled oscillatory recurrent neural networks", "ICML",
              "https://proceedings.mlr.press/v202/keller23a.html", 2023};
  a.input_width = [](const Hyper& h) { return h.choice("cell") == "generative" ? h.integer("width") * h.integer("rings") : 0; };
  a.check = [](const Hyper& h) {
    const auto refuse = [&](const std::string& key, const std::string& why, const std::string& range) {
      throw Error("neural-wave-machine: with cell=generative " + key + " = " + h.text(key) + " " + why + ".", {.model = "neural-wave-machine", .parameter = key, .value = h.text(key), .range = range});
    };
    if (h.choice("cell") != "generative") return;
    if (h.choice("coupling") == "none") refuse("coupling", "leaves no kernel: choose 1d or 2d", "1d, 2d");
    if (h.real("dt") >= 1.0) refuse("dt", "is no σ of a number: choose less than 1", "below 1");
    if (h.flag("forward_only") && h.choice("coupling") == "2d") refuse("forward_only", "goes with rings alone: choose forward_only=no, or coupling=1d", "no");
  };
  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    if (h.choice("cell") == "generative") return generative(l, x);
    const std::int64_t n = h.integer("width"), R = h.integer("rings"), in = x.dim(-1);
    const std::string coupling = h.choice("coupling");
    const bool wave = h.choice("start") == "wave", alone = coupling == "none";
    const double dt = h.real("dt"), gamma = h.real("gamma"), epsilon = h.real("epsilon"), squared = h.real("speed") * h.real("speed");
    const Init drive = [=](InitContext& c) {
      for (std::int64_t j = 0; j < in; ++j) c.values[static_cast<std::size_t>(((R / 2) * n + (2 * j + 1) * n / (2 * in)) * in + j)] = 1.0;
    };
    const Var u = parts::linear(l, "Wx", x, R * n, {wave ? drive : parts::torch_uniform(in), wave ? init::constant(0.0) : parts::torch_uniform(in), "W_x, rows by ring",
                                                    wave ? "starts with a single 1 in each column, its bias at 0" : "starts uniform in ±1/√in, as its bias"});
    struct Kernel {
      std::vector<Var> taps;
      Var bias;
    };
    const auto kernel = [&](const std::string& name, bool of_y) -> Kernel {
      const std::string role = of_y ? "w_y, from the positions" : "w_z, from the velocities";
      if (alone) return {{l.parameter(name, {1}, init::constant(1.0), role + ", the same number for all; starts at 1.")}, {}};
      const std::int64_t rows = coupling == "2d" ? 3 : 1;
      const Init laplacian = init::each([=](Rng&, std::int64_t i) {
        if (!of_y) return 0.0;
        if (rows == 1) return i == 1 ? -2.0 * squared : squared;
        return i == 4 ? -4.0 * squared : i % 2 == 1 ? squared : 0.0;
      });
      const Var weight = l.parameter(name + ".weight", {1, 1, rows, 3}, wave ? laplacian : parts::torch_uniform(3 * rows),
                                     role + ", [1, 1, rings, units]; starts " + (wave ? of_y ? "as the wave equation's." : "at 0." : "uniform in ±1/√taps."));
      return {taps_of(weight, rows), l.parameter(name + ".bias", {1}, wave ? init::constant(0.0) : parts::torch_uniform(3 * rows), "Its bias; starts alike.")};
    };
    const Kernel of_z = kernel("Wz", false), of_y = kernel("Wy", true);
    const auto coupled = [alone](Var state, const Kernel& by) { return alone ? state * by.taps[0] : convolved(state, by.taps) + by.bias; };
    const Var y = step(l, {{"hy", {R, n}, "The positions, by ring: what is read out."}, {"hz", {R, n}, "The velocities, by ring."}}, {reshape(u, {l.steps(), l.batch(), R, n})},
                       [=](Cell& cell, std::span<const Var> t, std::span<const Var> s) {
                         const Var force = cell.gate("force", tanh(t[0] + coupled(s[1], of_z) + coupled(s[0], of_y)), -1.0, 1.0, "tanh(W_x x + w_z * z + w_y * y + b): what drives the oscillators.");
                         const Var z = s[1] + dt * (force - gamma * s[0] - epsilon * s[1]);
                         return std::vector<Var>{s[0] + dt * z, z};
                       }, alone ? Sees::own_entry : Sees::all)[0];
    return parts::flat(l, y);
  };
  return a;
}

}  // namespace reclab::architectures
