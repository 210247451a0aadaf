// SPDX-License-Identifier: GPL-3.0-or-later
//   z_t = z_{t-1} + Δt (tanh(W_x x + b_x + w_z * z_{t-1} + b_z + w_y * y_{t-1} + b_y) - γ y_{t-1} - ε z_{t-1}),   y_t = y_{t-1} + Δt z_t
//   * a circular convolution with K taps along a ring, or K by K on a torus
//   generative: v_t = v + σ(Δ) (tanh(w_h * h + w_v * v + w_x * x + b) - relu(γ) h - relu(α) v),   h_t = norm(h + σ(Δ) v_t)
// T. A. Keller, M. Welling, Neural wave machines: learning spatiotemporally structured representations with locally coupled oscillatory
// recurrent neural networks, ICML 2023. Names and conventions of the authors' sequence models (multiconv1d_model, conv2d_model,
// uncoupled_model), and of Det_CoRNN_Caps of their generative one (Rotating_MNIST).
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "array/error.h"

#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

/// `by` entries more at both ends of an axis, as torch.nn.functional.pad makes them.
Var padded(Var x, int axis, std::int64_t by, const std::string& mode) {
  const std::int64_t n = x.dim(axis);
  std::vector<Var> before, after;
  if (mode == "circular") {
    before.push_back(slice(x, axis, n - by, n));
    after.push_back(slice(x, axis, 0, by));
  } else if (mode == "constant") {
    for (std::int64_t i = 0; i < by; ++i) before.push_back(affine(slice(x, axis, 0, 1), 0.0, 0.0));
    after = before;
  } else {
    const std::int64_t step = mode == "reflect" ? 1 : 0;
    for (std::int64_t i = 0; i < by; ++i) {
      before.push_back(slice(x, axis, step * (by - i), step * (by - i) + 1));
      after.push_back(slice(x, axis, n - 1 - step * (i + 1), n - step * (i + 1)));
    }
  }
  std::vector<Var> all = before;
  all.push_back(x);
  all.insert(all.end(), after.begin(), after.end());
  return concat(all, axis);
}

/// A kernel of K taps on the units, and on the rings too where there are K x K; each tap one number, a column of a number a ring, or one of
/// its own for each place.
struct LocalKernel {
  std::vector<Var> taps;
  std::int64_t K;
  std::string mode;

  /// PyTorch's convolution of one channel: entry (i, j) is the sum of w[a, b] x[i + a - K/2, j + b - K/2]; x [.., rings, units].
  Var operator()(Var x) const {
    const std::int64_t rows = std::ssize(taps) / K, R = x.dim(-2), n = x.dim(-1);
    Var around = padded(x, -1, K / 2, mode);
    if (rows > 1) around = padded(around, -2, K / 2, mode);
    Var whole;
    for (std::int64_t b = 0; b < K; ++b) {
      Var column;
      const Var moved = slice(around, -1, b, b + n);
      for (std::int64_t a = 0; a < rows; ++a) {
        const Var term = (rows > 1 ? slice(moved, -2, a, a + R) : moved) * taps[static_cast<std::size_t>(a * K + b)];
        column = column ? column + term : term;
      }
      whole = whole ? whole + column : column;
    }
    return whole;
  }
};

/// The output of the authors' encoder of pictures: the layer norm of the first half of its mean.
Var encoded(Layer& l, Var x, std::int64_t units) {
  const std::string kind = l.hyper.choice("encoder");
  if (kind == "none" || l.index() != 0) return x;
  const auto map = [&](const std::string& name, Var v, std::int64_t out, const char* role) {
    return parts::linear(l, "encoder.model." + name, v, out, role);
  };
  if (kind == "mlp") {
    x = relu(map("1", x, 6 * units, "W₁ of the encoder"));
    x = relu(map("3", x, 4 * units, "W₂ of the encoder"));
  }
  const Var all = map(kind == "mlp" ? "5" : "1", x, 4 * units,
                      "The encoder's last W: rows of the mean, of which the first half is used, and of the logarithm of the variance, "
                      "which a run does not use");
  return parts::normalised(slice(all, -1, 0, units), 1e-5);
}

/// The authors' decoder: the picture of the positions.
Var decoded(Layer& l, Var x) {
  const std::string kind = l.hyper.choice("decoder");
  if (kind == "none") return x;
  const std::int64_t units = x.dim(-1);
  const auto map = [&](const std::string& name, Var v, std::int64_t out, const char* role) {
    return parts::linear(l, "decoder.model." + name, v, out, role);
  };
  if (kind == "mlp") {
    x = relu(map("0", x, 2 * units, "W₁ of the decoder"));
    x = relu(map("2", x, 3 * units, "W₂ of the decoder"));
  }
  return sigmoid(map(kind == "mlp" ? "4" : "0", x, l.hyper.integer("pixels"), "The decoder's last W"));
}

/// Det_CoRNN_Caps: the input already has the width of the oscillators.
Var generative(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  const std::int64_t n = h.integer("width"), R = h.integer("rings"), T = l.steps(), B = l.batch();
  const bool torus = h.choice("coupling") == "2d", ahead = h.flag("forward_only");
  const std::int64_t kernels = torus || h.flag("shared") ? 1 : R;
  const double dt = h.real("dt");
  const auto number = [&](const std::string& name, double start, const std::string& role) {
    return l.parameter(name, {1}, init::constant(start), role);
  };
  const Var share = sigmoid(number("dt", std::log(dt / (1.0 - dt)), "Δ, whose σ is the time step; starts so that the step is dt."));
  const Var gamma = relu(number("gamma", h.real("gamma"), "γ, the stiffness where it is above 0; starts at gamma.")),
            alpha = relu(number("alpha", h.real("epsilon"), "α, the damping where it is above 0; starts at epsilon."));
  const std::int64_t K = h.integer("kernel"), taps = torus ? K * K : K;
  const bool local = h.flag("locally_connected");
  const auto kernel = [&](const std::string& name, const std::string& role) {
    const Shape shape = local   ? torus ? Shape{1, 1, 1, R, n, taps} : Shape{1, kernels, 1, n, taps}
                          : torus ? Shape{1, 1, K, K}
                                : Shape{kernels, 1, K};
    const double even = 1.0 / static_cast<double>(torus ? R * n : n);
    Var weight =
        l.parameter(name + ".conv.weight", shape,
                    ahead ? init::each([](Rng&, std::int64_t i) { return i % 3 == 2 ? 1.0 : 0.0; }) : init::constant(even),
                    role +
                        (local   ? ", the taps of each place last"
                         : torus ? ", [1, 1, rings, units]"
                                 : ", a row a kernel") +
                        (ahead ? "; starts at (0, 0, 1), and is not trained there." : "; starts at one over the units it goes round."));
    if (ahead)
      weight = weight *
               reshape(l.parameter(name + ".mult", {kernels, 1}, init::constant(1.0), "What that kernel is multiplied by; starts at 1."),
                       {kernels, 1, 1});
    LocalKernel made{{}, K, h.choice("padding")};
    for (std::int64_t i = 0; i < taps; ++i)
      made.taps.push_back(local   ? reshape(slice(weight, -1, i, i + 1), torus ? Shape{R, n} : Shape{kernels, n})
                            : torus ? slice(reshape(weight, {taps}), 0, i, i + 1)
                                  : reshape(slice(weight, -1, i, i + 1), {kernels, 1}));
    return made;
  };
  const auto of_h = kernel("coupling", "w_h, from the positions"), of_v = kernel("damping", "w_v, from the velocities"),
             of_x = kernel("driving", "w_x, from what is read");
  const Var b = reshape(l.parameter("b_bar", torus ? Shape{1, R, n} : Shape{1, n}, init::constant(0.0),
                                    "b, of each unit, the same for all rings (1d); starts at 0."),
                        torus ? Shape{R, n} : Shape{1, n});
  const bool normed = h.flag("layer_norm");
  const Shape of_norm = torus ? Shape{1, R, n} : Shape{R, n};
  const Var weight =
      normed
          ? reshape(l.parameter("ln_h.weight", of_norm, init::constant(1.0), "Scale of the layer norm over all oscillators; starts at 1."),
                    {R * n})
          : Var{};
  const Var bias =
      normed ? reshape(l.parameter("ln_h.bias", of_norm, init::constant(0.0), "Shift of the layer norm; starts at 0."), {R * n}) : Var{};
  const std::int64_t inner = h.integer("internal_steps");
  const Var read = reshape(x, {T, B, R, n});
  std::vector<Var> tokens{of_x(read) + b};
  const bool placed = h.flag("start_from_input");
  if (placed) tokens.push_back(read * (1.0 - reshape(sign(l.position()), {T, B, 1, 1})));
  const Var y =
      step(l, {{"hy", {R, n}, "The positions h, by ring: what is read out."}, {"hz", {R, n}, "The velocities v, by ring."}}, tokens,
           [=](Cell& cell, std::span<const Var> t, std::span<const Var> s) {
             Var position = placed ? s[0] + t[1] : s[0], velocity = s[1];
             for (std::int64_t i = 0; i < inner; ++i) {
               Var force = tanh(of_h(position) + of_v(velocity) + t[0]);
               if (i + 1 == inner)
                 force = cell.gate("force", force, -1.0, 1.0, "tanh(w_h * h + w_v * v + w_x * x + b): what drives the oscillators.");
               velocity = velocity + share * (force - gamma * position - alpha * velocity);
               position = position + share * velocity;
               if (normed)
                 position = reshape(layer_norm(reshape(position, {position.dim(0), R * n}), weight, bias, 1e-5), {position.dim(0), R, n});
             }
             return std::vector<Var>{position, velocity};
           })[0];
  return parts::flat(l, y);
}

}  // namespace

Architecture neural_wave_machine() {
  Architecture a;
  a.title = "Neural wave machine";
  a.equations = {"z_t = z_{t-1} + Δt (tanh(W_x x_t + b_x + w_z * z_{t-1} + b_z + w_y * y_{t-1} + b_y) − γ y_{t-1} − ε z_{t-1})",
                 "y_t = y_{t-1} + Δt z_t;  the output is y_t",
                 "1d: (w * y)_j = Σ_k w_k y_{j+k−⌊K/2⌋} round each ring, K = 3 taps;  2d: K × K taps on the torus of rings and units",
                 "start=wave: w_y = c² (1, −2, 1), so that y″ = c² y_jj − γ y − ε y′ for small y: waves go c Δt units a step"};
  a.equations.push_back(
      "cell=generative: v_t = v_{t-1} + σ(Δ) (tanh(w_h * h_{t-1} + w_v * v_{t-1} + w_x * x_t + b) − relu(γ) h_{t-1} − relu(α) v_{t-1}),  "
      "h_t = norm(h_{t-1} + σ(Δ) v_t), the output");
  a.notes = {
      "Names and shapes are those of the authors' coRNNCell: Wx, Wz and Wy of multiconv1d_model (1d), conv2d_model (2d) and "
      "uncoupled_model (none), where Wz and Wy are single numbers without bias; the states hy and hz are y and z.",
      "The authors have as many rings as units in each, √H; unit j of ring i is entry i·width + j.",
      "The kernels are those of a cross-correlation: tap 0 multiplies the unit before.",
      "The damping ε z is explicit, as in the code; y is moved by the new z.",
      "Without the kernel's local coupling this is coRNN.",
      "cell=generative is Det_CoRNN_Caps of the authors' model for turning digits, with its names below rnn: its time step, stiffness and "
      "damping are trained, what it reads is already a number an oscillator (a linear encoder stands in front where it is not) and is "
      "itself convolved. A capsule is a ring; with 2d there is one capsule, the torus.",
      "encoder and decoder are LinearFC_* and LinearLayer_MLP_* of the same model, encoder.model.* under the first layer and "
      "final/decoder.model.*. The encoder's Gaussian is taken at its mean, as without noise, and the grouper, a layer norm, takes the "
      "first half of it. "
      "The code's decoder is to give the picture of the next step.",
      "h and v, the positions and velocities there, are the states hy and hz.",
      "dL/dhz_t is without hz_t's way into hy_t of the same step: the states after a step are independent coordinates."};
  a.hyper = {
      hyper_integer("width", "n", 8, 2, 4096, "Oscillators in a ring.", "units"),
      hyper_integer("rings", "", 8, 1, 1024, "Rings, side by side (1d) or the rows of a torus (2d)."),
      hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
      hyper_choice("coupling", "1d", {"1d", "2d", "none"},
                   "Which oscillators see each other: neighbours on a ring, neighbours on the torus, or none."),
      hyper_real("dt", "Δt", 0.042, 1e-4, 1.0, "Time step.", true),
      hyper_real("gamma", "γ", 2.7, 0.0, 1000.0, "Stiffness: the square of each oscillator's own angular frequency."),
      hyper_real("epsilon", "ε", 4.7, 0.0, 1000.0, "Damping."),
      hyper_choice("cell", "sequence", {"sequence", "generative"},
                   "The cell of the authors' sequence models, or that of their generative model, whose dt, gamma and epsilon are trained "
                   "and start at these."),
      hyper_flag("shared", true, "generative, 1d: whether all rings have the same kernels (share_over_caps)."),
      hyper_flag("forward_only", false,
                 "generative, 1d: whether the kernels are a number times (0, 0, 1), so that waves go one way (forward_only)."),
      hyper_integer("internal_steps", "", 1, 1, 100, "generative: steps of the oscillators a step of the sequence (n_internal_steps).",
                    "steps"),
      hyper_flag("locally_connected", false,
                 "generative: whether each place has taps of its own (locally_connected; the authors' code has it on the torus alone)."),
      hyper_flag("start_from_input", false, "generative: whether the positions begin as what the first step reads (init_hidden), or at 0."),
      hyper_integer("kernel", "K", 3, 3, 63,
                    "Taps of the kernels, an odd number; K × K on the torus (kernel_shape; the authors' sequence models have 3)."),
      hyper_choice(
          "padding", "circular", {"circular", "constant", "reflect", "replicate"},
          "What the kernels see beyond the ends (padding_mode): the other end, zeros, what lies mirrored, or the last unit again."),
      hyper_choice("encoder", "none", {"none", "fc", "mlp"},
                   "The authors' encoder in front of the first layer: one linear map, or three with ReLU between, then a layer norm "
                   "without parameters."),
      hyper_choice("decoder", "none", {"none", "fc", "mlp"}, "Their decoder after the last layer, with a sigmoid at its end."),
      hyper_integer("pixels", "", 64, 1, 65536, "What the decoder gives.", "pixels"),
      hyper_flag("layer_norm", true, "generative: whether a layer norm over all oscillators follows each step."),
      initialisation_only(
          hyper_choice("start", "uniform", {"uniform", "wave"},
                       "How weights start: as PyTorch's, or as the wave equation's, each input column driving one oscillator.")),
      initialisation_only(
          hyper_real("speed", "c", 1.0, 0.0, 100.0,
                     "Speed of the waves with start=wave, in units per unit of time; c Δt above 1 (on a torus 0.7) is unstable."))};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂(y, z)_t/∂(y, z)_{t-1}";
  a.source = {"T. A. Keller, M. Welling",
              "Neural wave machines: learning spatiotemporally structured representations with locally coupled oscillatory recurrent "
              "neural networks",
              "ICML", "https://proceedings.mlr.press/v202/keller23a.html", 2023};
  a.input_width = [](const Hyper& h) {
    return h.choice("cell") == "generative" && h.choice("encoder") == "none" ? h.integer("width") * h.integer("rings") : 0;
  };
  a.check = [](const Hyper& h) {
    const auto refuse = [&](const std::string& key, const std::string& why, const std::string& range) {
      throw Error("neural-wave-machine: " + std::string(h.choice("cell") == "generative" ? "with cell=generative " : "") + key + " = " +
                      h.text(key) + " " + why + ".",
                  {.model = "neural-wave-machine", .parameter = key, .value = h.text(key), .range = range});
    };
    if (h.choice("coupling") != "none") {
      const std::int64_t half = h.integer("kernel") / 2,
                         least = h.choice("coupling") == "2d" ? std::min(h.integer("width"), h.integer("rings")) : h.integer("width");
      if (h.integer("kernel") % 2 == 0) refuse("kernel", "is even: choose an odd number", "odd");
      if (half > least - (h.choice("padding") == "reflect" ? 1 : 0))
        refuse("kernel", "reaches round more than once: choose less, or more units and rings",
               "at most " + std::to_string(2 * (least - (h.choice("padding") == "reflect" ? 1 : 0)) + 1));
    }
    if (h.choice("cell") != "generative") return;
    if (h.choice("coupling") == "none") refuse("coupling", "leaves no kernel: choose 1d or 2d", "1d, 2d");
    if (h.real("dt") >= 1.0) refuse("dt", "is no σ of a number: choose less than 1", "below 1");
    if (h.flag("forward_only") && h.choice("coupling") == "2d")
      refuse("forward_only", "goes with rings alone: choose forward_only=no, or coupling=1d", "no");
    if (h.flag("forward_only") && h.integer("kernel") != 3)
      refuse("kernel", "is not that of forward_only: choose 3, or forward_only=no", "3");
    if (h.flag("forward_only") && h.flag("locally_connected"))
      refuse("locally_connected", "does not go with forward_only: choose one of them", "no");
  };
  a.input_weights = {{"encoder.model.1.weight"}, {"Wx.weight", InputWeight::Part::all, "encoder.model.1.weight"}};
  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    x = encoded(l, x, h.integer("width") * h.integer("rings"));
    if (h.choice("cell") == "generative") return generative(l, x);
    const std::int64_t n = h.integer("width"), R = h.integer("rings"), K = h.integer("kernel"), in = x.dim(-1);
    const std::string coupling = h.choice("coupling");
    const bool wave = h.choice("start") == "wave", alone = coupling == "none";
    const double dt = h.real("dt"), gamma = h.real("gamma"), epsilon = h.real("epsilon"), squared = h.real("speed") * h.real("speed");
    const Init drive = [=](InitContext& c) {
      for (std::int64_t j = 0; j < in; ++j) c.values[static_cast<std::size_t>(((R / 2) * n + (2 * j + 1) * n / (2 * in)) * in + j)] = 1.0;
    };
    const Var u =
        parts::linear(l, "Wx", x, R * n,
                      {wave ? drive : parts::torch_uniform(in), wave ? init::constant(0.0) : parts::torch_uniform(in), "W_x, rows by ring",
                       wave ? "starts with a single 1 in each column, its bias at 0" : "starts uniform in ±1/√in, as its bias"});
    struct Coupling {
      LocalKernel kernel;
      Var alone, bias;
    };
    const auto kernel = [&](const std::string& name, bool of_y) -> Coupling {
      const std::string role = of_y ? "w_y, from the positions" : "w_z, from the velocities";
      if (alone) return {{{}, 1, {}}, l.parameter(name, {1}, init::constant(1.0), role + ", the same number for all; starts at 1."), {}};
      const std::int64_t rows = coupling == "2d" ? K : 1;
      const Init laplacian = init::each([=](Rng&, std::int64_t i) {
        if (!of_y) return 0.0;
        const std::int64_t away = std::abs(i % K - K / 2) + (rows > 1 ? std::abs(i / K - K / 2) : 0);
        return away == 0 ? (rows > 1 ? -4.0 : -2.0) * squared : away == 1 ? squared : 0.0;
      });
      const Var weight = l.parameter(
          name + ".weight", {1, 1, rows, K}, wave ? laplacian : parts::torch_uniform(K * rows),
          role + ", [1, 1, rings, units]; starts " + (wave ? of_y ? "as the wave equation's." : "at 0." : "uniform in ±1/√taps."));
      LocalKernel made{{}, K, h.choice("padding")};
      const Var flat = reshape(weight, {K * rows});
      for (std::int64_t i = 0; i < K * rows; ++i) made.taps.push_back(slice(flat, 0, i, i + 1));
      return {made,
              {},
              l.parameter(name + ".bias", {1}, wave ? init::constant(0.0) : parts::torch_uniform(K * rows), "Its bias; starts alike.")};
    };
    const Coupling of_z = kernel("Wz", false), of_y = kernel("Wy", true);
    const auto coupled = [alone](Var state, const Coupling& by) { return alone ? state * by.alone : by.kernel(state) + by.bias; };
    const Var y = step(
        l, {{"hy", {R, n}, "The positions, by ring: what is read out."}, {"hz", {R, n}, "The velocities, by ring."}},
        {reshape(u, {l.steps(), l.batch(), R, n})},
        [=](Cell& cell, std::span<const Var> t, std::span<const Var> s) {
          const Var force = cell.gate("force", tanh(t[0] + coupled(s[1], of_z) + coupled(s[0], of_y)), -1.0, 1.0,
                                      "tanh(W_x x + w_z * z + w_y * y + b): what drives the oscillators.");
          const Var z = s[1] + dt * (force - gamma * s[0] - epsilon * s[1]);
          return std::vector<Var>{s[0] + dt * z, z};
        },
        alone ? Sees::own_entry : Sees::all)[0];
    return parts::flat(l, y);
  };
  a.final_layer = decoded;
  return a;
}

}  // namespace reclab::architectures
