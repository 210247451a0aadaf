// SPDX-License-Identifier: GPL-3.0-or-later
//   u = act(W_u x̃ + b), v = act(W_v x̃ + b), x̃ = norm(x),   y_t = Σ_{s≤t} a_{t-s} ⊙ v_s,   out = W_o (u ⊙ y) + b + x
//   a_k = f(γ^k RPE(k)), RPE a network that reads the distance k alone
//   the same as a state-space model over n steps: s_t = γ e^{-2πik/m} s_{t-1} + b_k v_t, k = 1 .. n, m = n + 1, y_t = Re Σ_k s_t
// Z. Qin et al., Toeplitz neural network for sequence modeling, ICLR 2023, and Z. Qin, Y. Zhong, Accelerating Toeplitz neural network with
// constant-time inference complexity, EMNLP 2023. Names and conventions of the authors' fairseq-evo (modules/tnn) and of their ETSC code.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "array/error.h"
#include "models/parts/layers/modal_filter.h"
#include "models/parts/parts.h"
#include "recurrence/convolution/convolution.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {
namespace {

const std::string own = "self_attn.gtu.";

/// The code's activations but for its exp.
std::vector<std::string> activations() { return {"silu", "relu", "gelu", "elu", "sigmoid", "leak", "1+elu", "2+elu", "sine", "none"}; }
Var activated(const std::string& name, Var x) { return parts::activation(name == "sine" ? "sin" : name, x); }

/// A norm of the code; the rms ones divide by sqrt(mean x²) + 1e-8, of zero with slope zero.
Var normed(Layer& l, const std::string& kind, const std::string& name, Var x) {
  if (kind == "layer") return parts::layer_norm(l, name, x);
  if (kind == "scale")
    return x / sqrt(mean_keep(square(x), -1) + 1e-5) *
           l.parameter(name + ".scala", {1}, init::constant(1.0), "The norm's one scale; starts at 1.");
  const Var unit = x / (sqrt(mean_keep(square(x), -1) + 1e-36) + 1e-8);
  if (kind == "simple_rms") return unit;
  const Var scaled = l.parameter(name + ".scale", {x.dim(-1)}, init::constant(1.0), "Scale of the rms norm; starts at 1.") * unit;
  return kind == "rms" ? scaled
                       : scaled * sigmoid(l.parameter(name + ".gate", {x.dim(-1)}, init::constant(1.0),
                                                      "What x is multiplied by inside the σ that multiplies the norm; starts at 1.") *
                                          x);
}
Var normed(Layer& l, const std::string& name, Var x) { return normed(l, l.hyper.choice("norm"), name, x); }

std::int64_t channels_of(const Hyper& h) {
  const std::int64_t heads = h.integer("heads");
  return static_cast<std::int64_t>(h.real("expand") * static_cast<double>(h.integer("width"))) / heads * heads;
}

Var constant(Layer& l, Shape shape, const std::function<double(std::int64_t)>& value) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count(shape); ++i) values.push_back(value(i));
  return l.graph().constant(std::move(shape), std::move(values));
}

/// γ of every channel, [channels]; none where nothing decays.
Var decay(Layer& l) {
  const Hyper& h = l.hyper;
  const std::int64_t heads = h.integer("heads"), C = channels_of(h);
  const double gamma = h.real("gamma");
  if (h.choice("decay") == "none") return {};
  const bool learned = h.choice("decay") == "learned";
  const Var p = reshape(l.parameter(own + "toep.gamma", {heads, 1, C / heads}, learned ? init::normal(1.0) : init::constant(gamma),
                                    learned ? "What σ makes the decay of: γ + (1 − γ) σ; starts normal."
                                            : "γ, the decay of every channel; starts at gamma, and is not trained there."),
                        {C});
  return learned ? gamma + (1.0 - gamma) * sigmoid(p) : p;
}

/// The position network's outputs at the distances 0 .. taps - 1, negative where `behind`, [taps, channels].
Var relative_positions(Layer& l, std::int64_t taps, bool behind) {
  const Hyper& h = l.hyper;
  const std::int64_t R = h.integer("inner");
  const std::string& act = h.choice("rpe_activation");
  const std::string rpe = own + "toep.rpe.";
  const bool bias = h.flag("bias");
  const double span = h.choice("position") == "index" ? 1.0 : static_cast<double>(h.integer("length") - 1);
  Var x = constant(l, {taps, 1}, [&](std::int64_t k) {
    const double at = (behind ? -1.0 : 1.0) * static_cast<double>(k) / span;
    return h.choice("position") == "exp" ? std::exp(std::min(at, 40.0)) : at;  // 40 lengths away, where float32 still has the square
  });
  x = parts::linear(l, rpe + "pos_proj", x, R, "From a distance to the units of the network", bias);
  for (std::int64_t i = 0; i < h.integer("rpe_layers"); ++i) {
    const std::string at = rpe + "layers." + std::to_string(i);
    const Var y = parts::linear(l, at + ".2", activated(act, normed(l, at + ".0", x)), R, "A layer of the network", bias);
    x = h.flag("rpe_residual") ? x + y : y;
  }
  return parts::linear(l, rpe + "out.2", activated(act, normed(l, rpe + "out.0", x)), channels_of(h),
                       "The network's last layer, a row a channel, heads slow", bias);
}

/// The state-space model of the first n coefficients (ETSC): t_0 .. t_{n-1} without their decay, and t_n = -Σ t, have a discrete Fourier
/// transform without a term of frequency 0; its other n terms are the inputs of as many modes.
Var state_space(Layer& l, Var v) {
  const std::int64_t n = l.hyper.integer("length"), m = n + 1, C = channels_of(l.hyper);
  const double unit = 2.0 * std::numbers::pi / static_cast<double>(m);
  const auto angle = [=](std::int64_t j, std::int64_t k) { return unit * static_cast<double>(j * k % m); };
  const auto transform = [&](double (*wave)(double)) {  // [n, n]: the contribution of t_j, with its part of t_n, to mode k + 1
    return constant(l, {n, n},
                    [&](std::int64_t i) { return (wave(angle(i / n, i % n + 1)) - wave(angle(n, i % n + 1))) / static_cast<double>(m); });
  };
  const Var t = transpose(relative_positions(l, n, false));
  const Var inputs =
      complex(matmul(t, transform([](double x) { return std::cos(x); })), matmul(t, transform([](double x) { return std::sin(x); })));
  const Var gamma = decay(l), scale = gamma ? reshape(gamma, {C, 1}) : constant(l, {C, 1}, [](std::int64_t) { return 1.0; });
  const Var re = constant(l, {1, n}, [&](std::int64_t k) { return std::cos(angle(1, k + 1)); }),
            im = constant(l, {1, n}, [&](std::int64_t k) { return -std::sin(angle(1, k + 1)); });
  const Var ones = constant(l, {C, n}, [](std::int64_t) { return 1.0; });
  return diagonal_bank(l, {"s", {C, n}, "The modes of each channel, one for each frequency but 0 of n + 1 coefficients."},
                       complex(scale * re, scale * im), inputs, complex(ones, 0.0 * ones), v);
}

/// Σ a_k v over the steps that this layer reads, and beside it, with normalize, the sum of these a_k.
Var toeplitz(Layer& l, Var v) {
  const Hyper& h = l.hyper;
  if (parts::has_modal_filter(h)) return parts::modal_filter(l, v, !h.flag("causal"));
  if (h.flag("state_space")) return state_space(l, v);
  const std::int64_t before = l.cached_steps(), taps = before + l.steps(), C = v.dim(-1);
  Var a = relative_positions(l, taps, l.backward() && !h.flag("causal"));
  if (const Var gamma = decay(l)) a = a * exp(constant(l, {taps, 1}, [](std::int64_t k) { return static_cast<double>(k); }) * log(gamma));
  a = activated(h.choice("coefficient_activation"), a);
  if (l.backward() && !h.flag("causal"))
    a = a * constant(l, {taps, 1}, [](std::int64_t k) { return k > 0 ? 1.0 : 0.0; });  // the step itself is the other direction's
  const Var y = convolution(l, "v", transpose(a), v, "All that the Toeplitz matrix multiplies.");
  if (!h.flag("normalize")) return y;
  const Var sums = reshape(slice(cumulative_sum(a, 0), 0, before, taps), {l.steps(), 1, C}) *
                   constant(l, {1, l.batch(), 1}, [](std::int64_t) { return 1.0; });
  const Var both[] = {y, sums};
  return concat(both, -1);
}

/// The input of the gated Toeplitz unit.
Var read_by(Layer& l, Var x) {
  return l.hyper.choice("block") == "residual" && l.hyper.flag("prenorm") ? normed(l, "self_attn_layer_norm", x) : x;
}

Var values(Layer& l, Var pre) {
  return activated(l.hyper.choice("activation"),
                   parts::linear(l, own + "v_proj", pre, channels_of(l.hyper), "W_v, rows by head", l.hyper.flag("bias")));
}

/// The norm of the unit's input, for values and gate.
Var pre_normed(Layer& l, Var x) { return normed(l, own + "pre_norm", x); }

/// The layer from the Toeplitz matrix's result to its end; `pre`: pre_normed of x.
Var read_out(Layer& l, Var stream, Var x, Var pre, Var y) {
  const Hyper& h = l.hyper;
  const std::int64_t d = h.integer("width"), C = channels_of(h);
  const bool block = h.choice("block") == "residual", prenorm = h.flag("prenorm"), bias = h.flag("bias");
  if (h.flag("normalize")) y = slice(y, -1, 0, C) / slice(y, -1, C, 2 * C);
  const Var u =
      l.gate("u", activated(h.choice("activation"), parts::linear(l, own + "u_proj", pre, C, "W_u of the gate, rows by head", bias)), 0.0,
             0.0, "u: what the read of the past is multiplied with; unbounded.");
  y = u * y;
  if (h.flag("use_norm")) y = normed(l, own + "norm", y);
  const Var shortcut = h.flag("resi_param") ? x * l.parameter(own + "d", {d}, init::normal(1.0),
                                                              "What the unit's own residual is multiplied with; starts normal.")
                                            : x;
  y = parts::linear(l, own + "o", y, d, "W_o, columns by head", bias) + shortcut;
  if (!block) return y;
  const auto after = [&](const std::string& name, Var z) { return prenorm ? z : normed(l, name, z); };
  const Var between = after("self_attn_layer_norm", stream + y), z = prenorm ? normed(l, "final_layer_norm", between) : between;
  const std::int64_t F = h.integer("feed_forward") ? h.integer("feed_forward") : d;
  const Var unit = activated(h.choice("glu_activation"), parts::linear(l, "glu.l1", z, F, "l1, whose activation multiplies", bias)) *
                   parts::linear(l, "glu.l2", z, F, "l2", bias);
  return after("final_layer_norm", between + activated(h.choice("final_activation"), parts::linear(l, "glu.l3", unit, d, "l3", bias)));
}

Error refused(const Hyper& h, const std::string& key, const std::string& why, const std::string& range) {
  const bool* flag = std::get_if<bool>(&h.value(key));
  const std::string value = flag ? (*flag ? "yes" : "no") : h.text(key);
  return Error("tnn: " + key + " = " + value + " " + why, {.model = "tnn", .parameter = key, .value = value, .range = range});
}

}  // namespace

Architecture tnn() {
  Architecture a;
  a.title = "TNN";
  a.equations = {
      "x̃ = norm(x),  u = act(W_u x̃ + b_u),  v = act(W_v x̃ + b_v)",
      "a_k = f(γ^k RPE(k)): RPE reads the distance k alone: a linear map, then layers of norm, activation and linear map",
      "y_t = Σ_{s≤t} a_{t−s} ⊙ v_s  (causal=no: the sum over all s, a_{−k} = f(γ^k RPE(−k));  normalize: divided by the sum of these a)",
      "out = W_o (u ⊙ y) + b_o + x",
      "state_space: m = n + 1, t_k = RPE(k), t_n = −Σ t, b_k = (1/m) Σ_j t_j e^{2πijk/m};  s_{t,k} = γ e^{−2πik/m} s_{t−1,k} + b_k v_t,  "
      "y_t = Re Σ_{k=1..n} s_{t,k}",
      "block: x ← x + out(norm(x)),  x ← x + f_o(l3(act_g(l1 z) ⊙ l2 z)), z = norm(x)"};
  a.notes = {
      "Names and shapes are those of fairseq-evo's TnnDecoderLayer: self_attn.gtu.* are its Gtu's (u_proj, v_proj, o, d, toep.gamma, "
      "toep.rpe), self_attn_layer_norm, glu.l1 to l3 and final_layer_norm its own, final/layer_norm that of the decoder.",
      "The unit has a norm and a residual of its own within those of the block: with prenorm its residual is that of the normalised "
      "stream.",
      "position: RPE reads k, k/(n − 1) or exp(k/(n − 1)). In the code n is the number of steps of each sequence (par_type 1, 2, 3); here "
      "it is length, so that a run can be continued.",
      "γ of decay=fixed is a parameter of the file that the code does not train; of decay=learned it is γ + (1 − γ) σ(toep.gamma).",
      "state_space=yes is the exact conversion of Qin and Zhong (ETSC) with the same parameters: the same outputs over the first n = "
      "length steps, with a state of n complex modes a channel. After these steps its coefficients repeat with period n + 1 under the same "
      "decay, with −Σ t after each period, where the Toeplitz matrix goes on reading RPE(k).",
      "The conversion needs coefficients without an activation, whose decay is a factor of each step, and the code's runs forward alone. "
      "The code's has decay=fixed only.",
      "Without state_space there is no state of a fixed size: a step reads all values before it.",
      "norm is norm_type of the code in all places: simple_rms, rms and gated_rms divide by √(mean x²) + 10⁻⁸, scale by √(mean x² + 10⁻⁵), "
      "layer is a layer norm with epsilon 1e-5. The last norm, the decoder's, is a layer norm. Batch norms are not here, nor is the "
      "activation exp.",
      "filter_modes: the Toeplitz matrix is a sum of exponentials a channel, h_t = p ⊙ h_{t−1} + v_t, read by Re Σ r_n h_t,n + direct v_t; "
      "a pole beyond the unit circle counts as p/|p|.",
      "bias=no leaves out those of the network too, which then has the same output at all distances of one sign."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_integer("heads", "h", 1, 1, 64, "Heads: how γ is stored; the channels are their multiple."),
      hyper_real("expand", "", 3.0, 0.25, 16.0, "Channels of the Toeplitz matrices for one of the stream."),
      hyper_integer("length", "n", 64, 2, 1000000, "Trained length: what positions are divided by, and the modes of the state-space model.",
                    "steps"),
      hyper_flag("causal", true, "Whether a step reads the past alone, or all of the sequence."),
      hyper_flag("state_space", false, "Whether the Toeplitz matrix is run as its exact state-space model."),
      hyper_choice("decay", "fixed", {"none", "fixed", "learned"}, "γ: 1, the same at every channel, or learned between gamma and 1."),
      hyper_real("gamma", "γ", 0.99, 0.01, 1.0, "The decay, or its lower bound where it is learned."),
      hyper_choice("position", "index", {"index", "ratio", "exp"}, "What the network reads: k, k/(n − 1) or exp(k/(n − 1))."),
      hyper_integer("inner", "", 64, 1, 4096, "Units of the network of relative positions.", "units"),
      hyper_integer("rpe_layers", "", 3, 0, 32, "Its layers between the first and the last."),
      hyper_flag("rpe_residual", false, "Whether these have residuals."),
      hyper_choice("rpe_activation", "relu", activations(), "Its activation."),
      hyper_choice("coefficient_activation", "none", activations(), "f of the coefficients."),
      hyper_flag("normalize", false, "Whether a read is divided by the sum of its coefficients."),
      hyper_choice("activation", "silu", activations(), "act of u and v."),
      hyper_flag("use_norm", false, "Whether a norm stands in front of W_o."),
      hyper_flag("resi_param", false, "Whether the unit's own residual has a factor a channel."),
      hyper_flag("bias", true, "Whether all linear maps have biases."),
      hyper_choice("norm", "simple_rms", {"simple_rms", "rms", "gated_rms", "scale", "layer"}, "All norms but the last."),
      hyper_integer("feed_forward", "F", 0, 0, 65536, "Hidden width of the gated linear unit; 0: the stream's.", "units"),
      hyper_choice("glu_activation", "silu", activations(), "act of the gated linear unit."),
      hyper_choice("final_activation", "none", activations(), "What the gated linear unit returns goes through this."),
      hyper_flag("prenorm", true, "Whether the norms come before the two parts of a block, or after their residuals."),
      hyper_flag("final_norm", true, "Whether a layer norm follows the last block, with prenorm."),
      hyper_choice("block", "residual", {"residual", "none"}, "The block, or the gated Toeplitz unit alone."),
      parts::modal_filter_row()};
  a.spectrum =
      "with state_space the transition γ exp(−2πik/(n + 1)) of every channel, whatever the coefficients are; with filter_modes the poles; "
      "without none, a convolution over all of the past has no transition of a fixed size";
  a.source = {"Z. Qin, X. Han, W. Sun, B. He, D. Li, D. Li, Y. Dai, L. Kong, Y. Zhong", "Toeplitz neural network for sequence modeling",
              "ICLR", "https://arxiv.org/abs/2305.04749", 2023};
  a.reference = {{"layers.{n}.*", "*"}, {"layer_norm.*", "final/layer_norm.*"}, {"*", "self_attn.gtu.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (channels_of(h) == 0)
      throw refused(h, "expand", "leaves no channel for each of " + h.text("heads") + " heads: choose more.", "heads / width or more");
    if (!h.flag("causal") && h.choice("position") == "exp")
      throw refused(h, "position", "has no distances below 0, which causal=no needs: choose index or ratio.", "index, ratio");
    if (parts::has_modal_filter(h)) {
      if (h.flag("normalize"))
        throw refused(h, "normalize", "does not go with filter_modes, whose state does not hold the sums of the coefficients.", "no");
      if (h.flag("state_space"))
        throw refused(h, "state_space", "does not go with filter_modes: both are in place of the Toeplitz matrix.", "no");
    }
    if (!h.flag("state_space")) return;
    if (!h.flag("causal")) throw refused(h, "causal", "does not go with state_space=yes, which reads the past alone.", "yes");
    if (h.flag("normalize"))
      throw refused(h, "normalize", "does not go with state_space=yes, whose state does not hold the sums of the coefficients.", "no");
    if (h.choice("coefficient_activation") != "none")
      throw refused(h, "coefficient_activation", "does not go with state_space=yes: the decay has to be a factor of each step.", "none");
    if (h.integer("length") > 8192)
      throw refused(h, "length", "is too long for state_space=yes, whose Fourier transform is a matrix: choose 8192 or less.", "2 to 8192");
  };
  a.shares_directions = [](const Hyper& h) { return !h.flag("causal"); };
  a.combine_directions = [](Layer& l, Var stream, Var forward, Var backward) {
    const Var x = read_by(l, stream);
    return read_out(l, stream, x, pre_normed(l, x), forward + backward);
  };
  a.layer = [](Layer& l, Var stream) {
    const Var x = read_by(l, stream), pre = pre_normed(l, x), y = toeplitz(l, values(l, pre));
    return l.hyper.flag("causal") ? read_out(l, stream, x, pre, y) : y;
  };
  a.final_layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    return h.choice("block") == "residual" && h.flag("prenorm") && h.flag("final_norm") ? parts::layer_norm(l, "layer_norm", x) : x;
  };
  return a;
}

}  // namespace reclab::architectures
