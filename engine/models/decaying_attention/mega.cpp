// SPDX-License-Identifier: GPL-3.0-or-later
//   h_t = (1 - p a) ∘ h_{t-1} + p ∘ b x_t for each channel and n = 1 .. N,   m_t = silu(Σ_n c_n h_{t,n}/√N + ω ∘ x_t),   p = σ(δ), a = σ(α)
//   u = σ, z = silu, r = silu and x̂ of W m_t;   q, k = z ∘ γ + β;   o_t = Σ_s A_ts v_s over the chunk so far;   y = x + u ∘ (f(x̂ + W_h (r ∘
//   o)) - x)
// X. Ma, C. Zhou, X. Kong et al., Mega: moving average equipped gated attention, ICLR 2023. Names and conventions of facebookresearch/mega,
// the decoder of mega_lm.py.
#include <cmath>

#include "array/error.h"
#include "models/decaying_attention/near_attention.h"
#include "models/parts/layers/modal_filter.h"
#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {
namespace {

Var activated(const std::string& name, Var x) {
  return name == "silu" ? silu(x) : name == "relu" ? relu(x) : name == "gelu" ? gelu(x) : name == "gelu_accurate" ? gelu_tanh(x) : x;
}

/// SequenceNorm of the reference.
Var norm(Layer& l, const std::string& prefix, Var x, bool affine) {
  constexpr double eps = 1e-5;
  const std::string name = prefix + ".norm", &type = l.hyper.choice("norm");
  if (type == "batchnorm" && affine) return parts::batch_norm(l, name, x.dim(-1))(x);
  if (type == "batchnorm") {
    const Var mean = l.parameter(name + ".running_mean", {x.dim(-1)}, init::constant(0.0),
                                 "The mean that the batch norm takes off, a buffer in PyTorch; starts at 0.");
    const Var variance = l.parameter(name + ".running_var", {x.dim(-1)}, init::constant(1.0),
                                     "The variance that the batch norm divides by the root of, a buffer in PyTorch; starts at 1.");
    return (x - mean) / sqrt(variance + eps);
  }
  if (type == "layernorm") return affine ? parts::layer_norm(l, name, x, eps) : parts::normalised(x, eps);
  if (!affine) return parts::unit_rms(x, eps);
  if (type == "rmsnorm") return parts::rms_norm(l, name, x, eps);
  return parts::unit_rms(x, eps) * l.parameter(name + ".scalar", {1}, init::constant(1.0), "The one scale of the norm; starts at 1.");
}

Var power(Var x, std::int64_t n) {
  Var result;
  for (Var square_of = x; n > 0; n /= 2, square_of = square(square_of))
    if (n % 2) result = result ? result * square_of : square_of;
  return result;
}

/// The damped moving average of every channel, with the direct term.
Var moving_average(Layer& l, Var x) {
  const std::int64_t T = l.steps(), B = l.batch(), d = l.hyper.integer("width"), N = l.hyper.integer("ndim"),
                     K = l.hyper.integer("truncation");
  const Init wide = init::normal(0.2);
  if (parts::has_modal_filter(l.hyper)) {
    const Var weight =
        l.parameter("mega_layer.move.omega", {d}, init::normal(1.0), "ω, the weight of the input beside the averages; starts N(0, 1).");
    return silu(parts::modal_filter(l, x) + x * weight);
  }
  const std::string name = "mega_layer.move.";
  const Var delta =
      reshape(l.parameter(name + "delta", {d, N, 1}, wide, "δ: p = σ(δ) is how much of the input enters; starts N(0, 0.2²)."), {d, N});
  const Var alpha =
      reshape(l.parameter(name + "alpha", {d, N, 1}, wide, "α: the damping σ(α) of the decay 1 − σ(δ) σ(α); starts N(0, 0.2²)."), {d, N});
  const Var beta = reshape(l.parameter(name + "beta", {d, N, 1},
                                       init::each([N](Rng& rng, std::int64_t i) { return 0.02 * rng.normal() + (i % N % 2 ? -1.0 : 1.0); }),
                                       "b, the weight of the input in each of the N averages; starts N(1, −1, 1, .. by turns, 0.02²)."),
                           {d, N});
  const Var gamma =
      l.parameter(name + "gamma", {d, N}, init::normal(1.0), "c, the weight of each average in what is read; starts N(0, 1).");
  const Var omega = l.parameter(name + "omega", {d}, init::normal(1.0), "ω, the weight of the input beside the averages; starts N(0, 1).");
  const Var p = sigmoid(delta), decay = 1.0 - p * sigmoid(alpha), write = p * beta, read = gamma * std::sqrt(1.0 / static_cast<double>(N));
  const StateSpec state{"h", {d, N}, "The N moving averages of each channel."};
  Var y;
  if (K) {
    const Var before =
        slice(l.history("x", x, K, "The last inputs of the average, oldest first, which take them out of it again."), 0, 0, T);
    const Var drive = reshape(x, {T, B, d, 1}) * write - reshape(before, {T, B, d, 1}) * (write * power(decay, K));
    y = sum(diagonal(l, state, decay, drive) * read, -1);
  } else {
    y = diagonal_bank(l, state, decay, write, read, x);
  }
  return silu(y + x * omega);
}

Var gated_attention(Layer& l, Var input) {
  const Hyper& h = l.hyper;
  const std::int64_t T = l.steps(), B = l.batch(), d = h.integer("width"), S = h.integer("zdim"), H = h.integer("hdim"),
                     positions = h.integer("chunk");
  const std::string& kind = h.choice("attention");
  const bool prenorm = h.flag("prenorm"), softmax = kind == "softmax";
  const auto project = [&](const std::string& name, Var x, std::int64_t out, const std::string& role) {
    return parts::linear(l, "mega_layer." + name, x, out,
                         {init::normal(0.02), init::constant(0.0), role, "starts N(0, 0.02²), its bias at 0"});
  };
  const Var x = prenorm ? norm(l, "mega_layer.norm", input, h.flag("norm_affine")) : input;
  const Var v = activated(h.choice("activation"), project("v_proj", x, H, "W_v"));
  const Var m = moving_average(l, x);
  const Var base =
      project("mx_proj", m, S + H + 2 * d, "W: rows of the update gate u (d), of z (zdim), of the reset gate r (hdim), of x̂ (d)");
  const Var update =
      l.gate("update", sigmoid(slice(base, -1, 0, d)), 0.0, 1.0, "u: how much of the layer's input is replaced by what it makes.");
  const Var z = silu(slice(base, -1, d, d + S)), rest = slice(base, -1, d + S + H, 2 * d + S + H);
  const Var reset = l.gate("reset", silu(slice(base, -1, d + S, d + S + H)), 0.0, 0.0,
                           "r = silu(..): what multiplies the attention's read; unbounded above.");
  const Var scale =
      l.parameter("mega_layer.gamma", {2, S}, init::normal(0.02), "γ of q and of k, which scale z by entry; starts N(0, 0.02²).");
  const Var shift = l.parameter("mega_layer.beta", {2, S}, init::constant(0.0), "β of q and of k; starts at 0.");
  const auto made = [&](std::int64_t i) { return z * reshape(slice(scale, 0, i, i + 1), {S}) + reshape(slice(shift, 0, i, i + 1), {S}); };

  const parts::Reach reach = parts::reach(l, positions, h.flag("chunked"));
  const Var q = softmax ? made(0) / std::sqrt(static_cast<double>(S)) : made(0) / reach.count;
  const Var k = parts::reached(l, reach, "k", made(1), "Keys that later steps read."),
            values = parts::reached(l, reach, "v", v, "Values that later steps read.");
  const Var bias = h.choice("rel_pos_bias") == "simple"
                       ? parts::toeplitz_bias(l, "mega_layer.rel_pos_bias.rel_pos_bias", positions, positions)
                       : parts::rotary_bias(l, "mega_layer.rel_pos_bias.alpha", "mega_layer.rel_pos_bias.beta", S, positions);
  Var read;
  if (softmax) {
    SoftmaxAttention a;
    parts::fill(a, parts::batch_first(q), k, values, reach, bias);
    read = attention(l, a);
  } else {
    PointwiseAttention a;
    a.weight = kind == "laplace" ? ScoreWeight::laplace : ScoreWeight::relu_squared;
    parts::fill(a, parts::batch_first(q), k, values, reach, bias);
    read = attention(l, a);
  }
  const Var o = reshape(parts::batch_first(read), {T, B, H});
  const Var made_of_both = activated(h.choice("activation"), rest + project("h_proj", o * reset, d, "W_h"));
  const Var out = input + update * (made_of_both - input);
  return prenorm ? out : norm(l, "mega_layer.norm", out, h.flag("norm_affine"));
}

}  // namespace

Architecture mega() {
  Architecture a;
  a.title = "Mega";
  a.equations = {
      "x_t: the layer's input, normed with prenorm;  p = σ(δ),  q = 1 − σ(δ) σ(α), both [d, N]",
      "h_t = q ⊙ h_{t-1} + p ⊙ b x_t,  m_t = silu(Σ_n c_n h_{t,n}/√N + ω ⊙ x_t)",
      "[u z r x̂] = W m_t + bias,  u = σ(u), z = silu(z), r = silu(r);  q_t, k_t = z_t ⊙ γ + β;  v_t = f(W_v x_t)",
      "o_t = Σ_s A_ts v_s over the steps s ≤ t of the chunk;  softmax: A = softmax_s(q_t·k_s/√zdim + b_{t−s})",
      "laplace: A = Φ((e_ts − 0.707107)/0.282095);  relu2: A = max(0, e_ts)²;  e_ts = q_t·k_s/(steps of the chunk up to t) + b_{t−s}",
      "y_t = input + u ⊙ (f(x̂ + W_h (r ⊙ o_t)) − input)",
      "then, with feed_forward:  y ← y + W₂ f(W₁ norm(y) + b₁) + b₂;  prenorm=no: each of the two norms after its residual"};
  a.notes = {
      "Names and shapes are those of facebookresearch/mega: mega_layer.norm, v_proj, move, mx_proj, gamma, beta, rel_pos_bias, h_proj and "
      "nffn of a layer, final_norm of the stack (with prenorm), embed_norm before it.",
      "The code's names are crossed with the paper's: its p = σ(delta) is the paper's α and its σ(alpha) the paper's δ, so the decay is 1 "
      "− αδ in both; 1/√N and silu are the code's.",
      "The state h is that of the moving averages, which go through chunks; keys and values of the chunk are buffers, so spectrum and "
      "ds_T/ds_t are those of the averages alone.",
      "chunked=no: a step sees the last chunk steps, which are the reference's max_positions; it refuses a longer sequence. The reference "
      "fills the last chunk up, which no earlier step sees.",
      "truncation=K: the average of the last K inputs, as the reference's kernel of K taps; its step for decoding leaves it out.",
      "filter_modes: what m_t reads beside ω x_t is a sum of exponentials a channel, h_t = p ⊙ h_{t−1} + x_t, read by Re Σ r_n h_t,n + "
      "direct x_t; a pole beyond the unit circle counts as p/|p|.",
      "The reference has the softmax, gelu, the transforms of its kernel and the tables of rotary positions in single precision; here all "
      "are in the precision of the run.",
      "The averages from the other side, which the reference's encoder adds, are not here: direction=both runs a layer each way.",
      "All norms have epsilon 1e-5; batchnorm is that of evaluation. gelu_accurate is the tanh approximation."};
  a.hyper = {
      hyper_integer("width", "d", 32, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_integer("zdim", "z", 16, 2, 4096, "Width of queries and keys.", "channels"),
      hyper_integer("hdim", "v", 64, 1, 16384, "Width of values.", "channels"),
      hyper_integer("ndim", "N", 4, 1, 256, "Moving averages of a channel."),
      hyper_integer("chunk", "c", 6, 1, 65536, "Steps of a chunk; with chunked=no how many steps a step sees, itself included.", "steps"),
      hyper_flag("chunked", true, "Whether the sequence is cut into chunks that attention does not leave."),
      hyper_integer("truncation", "K", 0, 0, 65536, "Inputs that an average is made of; 0: all.", "steps"),
      hyper_choice("attention", "softmax", {"softmax", "laplace", "relu2"}, "What makes weights of scores."),
      hyper_choice("rel_pos_bias", "simple", {"simple", "rotary"},
                   "The bias of a distance: a number of its own, or the product of two turned vectors."),
      hyper_choice("activation", "silu", {"silu", "relu", "gelu", "gelu_accurate", "linear"},
                   "f of values, of the output and of the feed-forward part."),
      hyper_choice("norm", "layernorm", {"layernorm", "scalenorm", "rmsnorm", "batchnorm"}, "Kind of all norms."),
      hyper_flag("prenorm", true, "Whether norms come first; a norm then follows the last layer."),
      hyper_flag("norm_affine", true, "Whether the layers' norms have weights."),
      hyper_flag("final_norm_affine", true, "Whether the norm after the last layer has weights."),
      hyper_flag("normalize_embedding", false, "Whether a norm stands before the first layer; the reference has it without prenorm alone."),
      hyper_integer("feed_forward", "d_ff", 64, 0, 65536, "Hidden width of the feed-forward part; 0: none.", "units"),
      parts::modal_filter_row()};
  a.spectrum = "the decays q = 1 − σ(δ) σ(α) of the moving averages, the same at every step";
  a.source = {"X. Ma, C. Zhou, X. Kong, J. He, L. Gui, G. Neubig, J. May, L. Zettlemoyer", "Mega: moving average equipped gated attention",
              "ICLR", "https://arxiv.org/abs/2209.10655", 2023};
  a.reference = {{"layers.{n}.*", "*"},
                 {"final_norm.*", "final/final_norm.*"},
                 {"embed_norm.*", "embed_norm.*"},
                 {"num_batches_tracked", ""},
                 {"_float_tensor", ""},
                 {"version", ""}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (parts::has_modal_filter(h) && h.integer("truncation"))
      throw Error(
          "mega: truncation = " + h.text("truncation") + " does not go with filter_modes, whose exponentials go on: choose truncation=0.",
          {.model = "mega", .parameter = "truncation", .value = h.text("truncation"), .range = "0"});
    if (h.choice("rel_pos_bias") == "rotary" && h.integer("zdim") % 2)
      throw Error("mega: zdim = " + h.text("zdim") + " is odd: rel_pos_bias=rotary turns pairs, choose an even number.",
                  {.model = "mega", .parameter = "zdim", .value = h.text("zdim"), .range = "even"});
  };

  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    if (l.index() == 0 && h.flag("normalize_embedding")) x = norm(l, "embed_norm", x, true);
    x = gated_attention(l, x);
    const std::int64_t F = h.integer("feed_forward");
    if (!F) return x;
    const bool prenorm = h.flag("prenorm"), affine = h.flag("norm_affine");
    const auto project = [&](const std::string& name, Var z, std::int64_t out, const std::string& role) {
      return parts::linear(l, "nffn." + name, z, out, {init::normal(0.02), init::constant(0.0), role, "starts N(0, 0.02²), its bias at 0"});
    };
    const Var hidden =
        activated(h.choice("activation"), project("fc1", prenorm ? norm(l, "nffn.norm", x, affine) : x, F, "W₁ of the feed-forward part"));
    const Var out = x + project("fc2", hidden, h.integer("width"), "W₂ of the feed-forward part");
    return prenorm ? out : norm(l, "nffn.norm", out, affine);
  };
  a.final_layer = [](Layer& l, Var x) { return l.hyper.flag("prenorm") ? norm(l, "final_norm", x, l.hyper.flag("final_norm_affine")) : x; };
  return a;
}

}  // namespace reclab::architectures
