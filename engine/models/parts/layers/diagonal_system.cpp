// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/layers/diagonal_system.h"

#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "models/parts/layers/state_space.h"
#include "models/parts/parts.h"
#include "recurrence/convolution/convolution.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::parts {
namespace {

std::vector<std::string> pointwise() { return {"none", "tanh", "relu", "gelu", "silu", "sigmoid"}; }

bool has_product(const Hyper& h) { return h.choice("hyper_act") != "none"; }
/// Outputs a channel of one direction: those that are flattened, twice where half of them multiply the others.
std::int64_t outputs_of(const Hyper& h) { return h.integer("channels") * (has_product(h) ? 2 : 1); }

Var norm_of(Layer& l, Var x) {
  const std::string& kind = l.hyper.choice("norm");
  if (kind == "none") return x;
  if (kind == "layer") return layer_norm(l, "norm", x);
  const Var m = l.parameter("norm.m", {1}, init::constant(0.0), "What the norm adds to all channels before it scales; starts at 0.");
  const Var s = l.parameter("norm.s", {1}, init::constant(1.0), "The deviation over the channels that the norm makes; starts at 1.");
  const Var centred = x - mean_keep(x, -1);
  return (centred + m) * (s * reciprocal(sqrt(mean_keep(square(centred), -1))));
}

/// One real number of each complex one: "real", "imag", "sum" of both; these are linear, so a factor of the read-out does it.
Var cast(Var w, const std::string& kind) {
  const Var re = real(w), im = imag(w);
  if (kind == "imag") return complex(im, -re);
  if (kind == "sum") return complex(re + im, im - re);
  return w;
}

/// All products of two entries along the last axis, each pair once.
Var pairs(Var v, double mixed) {
  const std::int64_t N = v.dim(-1);
  std::vector<Var> parts;
  for (std::int64_t n = 0; n < N; ++n) {
    const Var one = slice(v, -1, n, n + 1);
    parts.push_back(one * one);
    if (n + 1 < N) parts.push_back(one * slice(v, -1, n + 1, N) * mixed);
  }
  return concat(parts, -1);
}

/// y [steps, batch, outputs of this direction * H], output by output, of u [steps, batch, H].
struct Filter {
  Layer& l;
  std::string kind;   ///< kernel_to_real
  std::string state;  ///< its name

  Var operator()(const DiagonalKernel& k, Var u) const {
    const std::int64_t C = k.readout.dim(0), H = k.readout.dim(1);
    const Var w = k.drive && (kind == "prod" || taps()) ? k.readout * k.drive : k.readout;
    if (taps()) return truncated(w, k.exponent, u);
    const Var transition = exp(k.exponent);
    const bool product = kind == "prod";
    // Re Im of a sum is half the imaginary part of its square, which is the sum over all pairs of its terms.
    const Var a = product ? pairs(transition, 1.0) : transition;
    const Var b = k.drive && !product ? k.drive : a * 0.0 + 1.0;
    const Var reads = product ? cast(pairs(w, 2.0) * 0.5, "imag") : cast(w, kind);
    const StateSpec spec{state,
                         {H, a.dim(-1)},
                         product ? "The complex modes λₙλₘ of each channel, pair by pair, n ≤ m." : "The complex modes of each channel."};
    const std::int64_t M = a.dim(-1);
    if (C == 1 && !k.may_grow) return diagonal_bank(l, spec, a, b, reshape(reads, {H, M}), u);
    if (C == 1) {
      const BankVars vars = diagonal_bank(l.graph(), l.form(), a, b, reshape(reads, {H, M}), u);
      declared(spec, vars);
      return vars.output;
    }
    const Var drive = b * reshape(u, {u.dim(0), u.dim(1), H, 1});
    const Var h = k.may_grow ? declared(spec, diagonal(l.graph(), l.form(), a, drive)) : diagonal(l, spec, a, drive);
    std::vector<Var> outputs;
    for (std::int64_t c = 0; c < C; ++c) outputs.push_back(sum(real(h * reshape(slice(reads, 0, c, c + 1), {H, M})), -1));
    return concat(outputs, -1);
  }

 private:
  /// A memory that may grow: an FFT rounds all of an output as it does its largest entry, so there is no convolution form.
  Var declared(const StateSpec& spec, const MemoryVars& vars) const {
    l.declare_forms({Form::scan, Form::chunkwise});
    l.declare({spec}, vars);
    return vars.trajectories[0];
  }
  std::int64_t taps() const { return l.hyper.integer("max_kernel_length"); }

  /// The kernel's first taps alone: a convolution with the last inputs, which are then the state.
  Var truncated(Var w, Var exponent, Var u) const {
    const std::int64_t C = w.dim(0), H = w.dim(1), N = w.dim(2), K = taps();
    std::vector<double> places;
    for (std::int64_t k = 0; k < K; ++k) places.push_back(static_cast<double>(k));
    const Var powers = exp(reshape(exponent, {H, N, 1}) * l.graph().constant({K}, std::move(places)));
    const Var before =
        K > 1 ? l.history({state == "h" ? "u" : "u_product", {H}, "The input of each step, which the next ones read through the kernel."},
                          u, K - 1)
              : u;
    std::vector<Var> outputs;
    for (std::int64_t c = 0; c < C; ++c) {
      const Var each = powers * reshape(slice(w, 0, c, c + 1), {H, N, 1});
      const Var re = sum(real(each), 1), im = sum(imag(each), 1);
      const Var kernel = kind == "imag" ? im : kind == "sum" ? re + im : kind == "prod" ? re * im : re;
      outputs.push_back(convolve_directly(kernel, before, u.dim(0)));
    }
    return outputs.size() == 1 ? outputs.front() : concat(outputs, -1);
  }
};

/// The channels [from, to) of a kernel.
DiagonalKernel part_of(const DiagonalKernel& k, std::int64_t from, std::int64_t to) {
  return {slice(k.exponent, 0, from, to), k.drive ? slice(k.drive, 0, from, to) : Var{}, slice(k.readout, 1, from, to), k.may_grow};
}

Var filtered(Layer& l, const DiagonalKernel& whole, Var u) {
  const Hyper& h = l.hyper;
  const std::int64_t C = outputs_of(h), H = h.integer("width");
  DiagonalKernel k = whole;
  if (h.flag("bidirectional")) k.readout = slice(k.readout, 0, l.backward() ? C : 0, l.backward() ? 2 * C : C);
  const std::string& kind = h.choice("kernel_to_real");
  if (kind != "real-prod") return Filter{l, kind, "h"}(k, u);
  // The first half of the channels is read one way, the others the other way.
  const std::int64_t half = H / 2;
  const Var first = Filter{l, "real", "h"}(part_of(k, 0, half), slice(u, -1, 0, half));
  const Var second = Filter{l, "prod", "product"}(part_of(k, half, H), slice(u, -1, half, H));
  std::vector<Var> outputs;
  for (std::int64_t c = 0; c < C; ++c) {
    outputs.push_back(slice(first, -1, c * half, (c + 1) * half));
    outputs.push_back(slice(second, -1, c * (H - half), (c + 1) * (H - half)));
  }
  return concat(outputs, -1);
}

/// The layer after the convolution: the skip, the product, the activation, the linear map, the residual.
Var finished(Layer& l, Var x, Var u, Var y) {
  const Hyper& h = l.hyper;
  const std::int64_t C = outputs_of(h), H = h.integer("width"), kept = h.integer("channels");
  const Var D = l.parameter("D", {C, H}, init::normal(1.0), "The skip D, a row an output; starts normal.");
  std::vector<Var> skips;
  for (std::int64_t c = 0; c < C; ++c) skips.push_back(u * reshape(slice(D, 0, c, c + 1), {H}));
  y = y + (C == 1 ? skips.front() : concat(skips, -1));
  const auto bounds = [](const std::string& name) {
    return std::pair{name == "tanh" ? -1.0 : 0.0, name == "tanh" || name == "sigmoid" ? 1.0 : 0.0};
  };
  if (has_product(h)) {
    const auto [low, high] = bounds(h.choice("hyper_act"));
    const Var factor = activation(h.choice("hyper_act"), slice(y, -1, kept * H, C * H));
    y = slice(y, -1, 0, kept * H) *
        l.gate("hyper", factor, low, high, "What the second half of the outputs multiplies the first half with.");
  }
  if (h.choice("output") == "linear") {
    y = activation(h.choice("activation"), y);
    const std::string& after = h.choice("postact");
    const bool gated = after == "glu" || after == "geglu";
    const std::int64_t rows = gated ? 2 * H : H, columns = kept * H;
    const double k = 1.0 / std::sqrt(static_cast<double>(columns));
    const std::string role = gated ? "W of the output, value rows, then gate rows" : "W of the output";
    Var W;
    if (h.flag("weight_norm")) {
      const Var v = l.parameter("output_linear.weight_v", {rows, columns}, init::uniform(-k, k),
                                role + ", before its rows are scaled; starts uniform in ±1/√(columns).");
      const Var g = l.parameter("output_linear.weight_g", {rows, 1}, row_norms("output_linear.weight_v", columns),
                                "The norms of its rows; start as those of weight_v.");
      W = v * (g / reshape(sqrt(sum(square(v), -1)), {rows, 1}));
    } else {
      W = l.parameter("output_linear.weight", {rows, columns}, init::uniform(-k, k), role + "; starts uniform in ±1/√(columns).");
    }
    const Shape shape = h.flag("transposed") ? Shape{rows, 1} : Shape{rows};
    const Var b = l.parameter("output_linear.bias", shape, init::uniform(-k, k), "Its bias; starts uniform in ±1/√(columns).");
    y = linear(y, W, reshape(b, {rows}));
    if (gated) {
      const auto parts = split(y, -1, 2);
      y = parts[0] * (after == "glu"
                          ? l.gate("glu", sigmoid(parts[1]), 0.0, 1.0, "The gate after the output map: how much of each channel passes.")
                          : l.gate("glu", gelu(parts[1]), 0.0, 0.0, "What the output is multiplied with, gelu of its gate rows."));
    } else {
      y = activation(after, y);
    }
  }
  if (h.choice("block") != "residual") return y;
  return h.flag("prenorm") ? x + y : norm_of(l, x + y);
}

Var read_of(Layer& l, Var x) { return l.hyper.choice("block") == "residual" && l.hyper.flag("prenorm") ? norm_of(l, x) : x; }

}  // namespace

std::vector<HyperSpec> diagonal_system_hyper(std::vector<HyperSpec> own) {
  std::vector<HyperSpec> rows{hyper_integer("width", "H", 64, 1, 4096, "Channels; each is a bank of modes of its own.", "channels"),
                              hyper_integer("state", "N", 64, 1, 4096, "Complex modes a channel.", "modes"),
                              hyper_integer("layers", "", 1, 1, 64, "Layers in a row.")};
  rows.insert(rows.end(), own.begin(), own.end());
  const std::vector<HyperSpec> after{
      hyper_integer("channels", "C", 1, 1, 64, "Outputs of each channel's bank, which the linear map reads side by side."),
      hyper_flag("bidirectional", false, "A second kernel reads what is still to come, from the next step on."),
      hyper_integer("max_kernel_length", "", 0, 0, 1 << 16,
                    "The kernel is cut to so many steps, and the last inputs are the state; 0: it is whole.", "steps"),
      hyper_choice("hyper_act", "none", pointwise(),
                   "Not none: twice as many outputs, of which the second half, through this, multiplies the first."),
      hyper_choice("output", "linear", {"linear", "none"}, "After the system: the activation and a linear map, or nothing."),
      hyper_choice("activation", "gelu", pointwise(), "Between the system and the linear map."),
      hyper_choice("postact", "none", {"none", "glu", "geglu", "tanh", "relu", "gelu", "silu", "sigmoid"},
                   "After the linear map; glu and geglu have twice its rows."),
      hyper_flag("weight_norm", false, "Rows of the linear map as directions and norms of their own."),
      hyper_flag("transposed", true, "The shape of the linear map's bias: [rows, 1], as where time is the last axis, or [rows]."),
      hyper_choice("block", "residual", {"residual", "none"}, "The layer with norm and residual, or the layer alone."),
      hyper_flag("prenorm", false, "Whether the norm comes before the layer (after the residual otherwise)."),
      hyper_choice("norm", "layer", {"layer", "scalars", "none"},
                   "The block's norm: a layer norm, or one with a scale and a shift for all channels.")};
  rows.insert(rows.end(), after.begin(), after.end());
  return rows;
}

std::vector<std::string> diagonal_system_equations() {
  return {
      "κ: kernel_to_real of Σ_n w_n λ_nᵏ: Re, Im, Re + Im, Re · Im, or Re for the first half of the channels and Re · Im for the others",
      "y_t = Σ_{k≥0} κ_k u_{t−k} + D u_t; bidirectional: + Σ_{s>t} κ'_{s−t−1} u_s; hyper_act f: y ⊙ f(y') of two outputs",
      "layer: out = postact(W activation(y_t) + b); block: norm(x + layer(x)), or x + layer(norm(x))"};
}

std::vector<std::string> diagonal_system_notes() {
  return {
      "Names and shapes are those of the reference's DSS, without kernel. and layers.<l>.layer.; output_linear is its output_linear.0 "
      "where there is a postact.",
      "No factor 2 and no conjugate pairs: a mode is read by its real part, or as kernel_to_real says.",
      "Re · Im of a sum of modes is half the imaginary part of its square: a diagonal system of the N(N + 1)/2 products of two modes, "
      "which is what is stepped.",
      "W's first axis: outputs of the past, then of the future; within each the outputs that are kept, then those that multiply them. They "
      "are "
      "flattened output by output.",
      "gelu is exact; the layer norm's epsilon is 1e-5; norm = scalars is the reference's norm for transposed = true, s/σ (x − mean + m) "
      "with the "
      "deviation σ over the channels and no epsilon: where all channels are equal it is not a number.",
      "max_kernel_length: the reference counts from the sequence's length, a kernel of so many taps where the sequence is longer."};
}

std::vector<ReferenceName> diagonal_system_reference() {
  return {{"layers.{n}.layer.kernel.*", "*"},
          {"kernel.*", "*"},
          {"layers.{n}.layer.D", "D"},
          {"layers.{n}.layer.output_linear.0.*", "output_linear.*"},
          {"output_linear.0.*", "output_linear.*"},
          {"layers.{n}.layer.output_linear.*", "output_linear.*"},
          {"layers.{n}.norm.norm.*", "norm.*"},
          {"norm.norm.*", "final/norm.*"}};
}

void check_diagonal_system(const Hyper& h, const std::string& model) {
  check_time_steps(h, model);
  if (h.choice("output") == "none" && h.integer("channels") > 1 && h.choice("block") == "residual")
    throw Error(model + ": channels = " + h.text("channels") +
                    " outputs a channel and output = none do not fit the residual: choose channels=1 or output=linear.",
                {.model = model, .parameter = "channels", .value = h.text("channels"), .range = "1"});
  if (h.choice("kernel_to_real") == "real-prod" && h.integer("width") < 2)
    throw Error(model + ": kernel_to_real = real-prod needs two channels: choose width=2 or more.",
                {.model = model, .parameter = "width", .value = h.text("width"), .range = "2 or more"});
}

Var positive(const std::string& transform, Var x) {
  if (transform == "exp") return exp_in_range(x);
  if (transform == "relu") return relu(x) + 1e-4;
  if (transform == "sigmoid") return sigmoid(x);
  if (transform == "softplus") return softplus(x);
  return x;
}

double from_positive(const std::string& transform, double value) {
  const double x = std::max(value, 1e-4);
  if (transform == "exp") return std::log(x);
  if (transform == "sigmoid") return std::log(std::min(x, 1.0 - 1e-4)) - std::log1p(-std::min(x, 1.0 - 1e-4));
  if (transform == "softplus")
    return x > 30.0 ? x + std::log1p(-std::exp(-x)) : std::log(std::expm1(x));  // e^x is beyond a float64 from 710 on
  return x;
}

Var from_next_step(Var backward) {
  const std::int64_t steps = backward.dim(0);
  const Var none = slice(backward, 0, steps - 1, steps) * 0.0;
  const Var rest[] = {slice(backward, 0, 1, steps), none};
  return steps > 1 ? concat(rest, 0) : none;
}

std::int64_t diagonal_system_outputs(const Hyper& h) { return outputs_of(h) * (h.flag("bidirectional") ? 2 : 1); }

void make_diagonal_system(Architecture& a, std::function<DiagonalKernel(Layer&)> kernel) {
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.shares_directions = [](const Hyper& h) { return h.flag("bidirectional"); };
  a.layer = [kernel = std::move(kernel)](Layer& l, Var x) {
    const Var u = read_of(l, x), y = filtered(l, kernel(l), u);
    return l.hyper.flag("bidirectional") ? y : finished(l, x, u, y);
  };
  a.combine_directions = [](Layer& l, Var below, Var forward, Var backward) {
    return finished(l, below, read_of(l, below), forward + from_next_step(backward));
  };
  a.final_layer = [](Layer& l, Var x) { return l.hyper.choice("block") == "residual" && l.hyper.flag("prenorm") ? norm_of(l, x) : x; };
}

}  // namespace reclab::parts
