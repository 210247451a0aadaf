// SPDX-License-Identifier: GPL-3.0-or-later
//   u = gelu(W_u norm(x)), v = gelu(W_v norm(x)),   h_t = e^Λ h_{t-1} + (e^Λ - 1)/Λ norm(v)_t,   r_t = Re(C h_t) + D norm(v)_t
//   out = x + W_o ((W_g r) ⊙ u) + b_o
// H. Mehta, A. Gupta, A. Cutkosky, B. Neyshabur, Long range language modeling via gated state spaces, ICLR 2023.
// Names and conventions of lucidrains/gated-state-spaces-pytorch and its copy in OpenNLPLab/fairseq-evo (modules/state_space/gss.py).
#include <algorithm>
#include <vector>

#include "models/architecture.h"
#include "models/parts/layers/modal_filter.h"
#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/flow.h"

namespace reclab::architectures {
namespace {

std::int64_t hidden(const Hyper& h) { return h.integer("hidden") ? h.integer("hidden") : 4 * h.integer("width"); }

/// At least 2: a norm of one channel is 0.
std::int64_t channels_of(const Hyper& h) {
  return h.integer("channels") ? h.integer("channels") : std::max<std::int64_t>(2, h.integer("width") / 4);
}

/// The narrow system's output for the normalised stream.
Var system(Layer& l, Var x) {
  const std::int64_t H = channels_of(l.hyper), N = l.hyper.integer("state");
  const Var v = parts::layer_norm(l, "dss.norm", gelu(parts::linear(l, "to_v.0", x, H, "W_v, into the system's channels", false)));
  if (parts::has_modal_filter(l.hyper)) {
    const Var skip = l.parameter("dss.param_D", {H}, init::normal(1.0), "The skip D; starts normal.");
    return parts::modal_filter(l, v) + skip * v;
  }
  const Var re = l.parameter("dss.Lambda_real", {N}, init::normal(1.0), "log of −Re Λ; starts normal.");
  const bool exponent = l.hyper.flag("lambda_imag_exp");
  const Var im = l.parameter("dss.Lambda_imag", {N}, init::normal(1.0), exponent ? "log of Im Λ; starts normal." : "Im Λ; starts normal.");
  const Var C_real = l.parameter("dss.C_real", {H, N}, init::normal(1.0), "Re C; starts normal.");
  const Var C_imag = l.parameter("dss.C_imag", {H, N}, init::normal(1.0), "Im C; starts normal.");
  const Var D = l.parameter("dss.param_D", {H}, init::normal(1.0), "The skip D; starts normal.");
  const Var channels = l.graph().constant({H, 1}, std::vector<double>(static_cast<std::size_t>(H), 1.0));
  const Var Lambda = reshape(complex(-exp_in_range(re), exponent ? exp_in_range(im) : im), {1, N}) * channels;
  declare_flow(l, {.rule = Flow::Rule::exponential, .exponents = Lambda});
  return diagonal_bank(l, {"h", {H, N}, "The complex modes of each channel."}, exp(Lambda), mean_exp(Lambda), complex(C_real, C_imag), v) +
         D * v;
}

Var gated(Layer& l, Var stream, Var x, Var r) {
  const std::int64_t E = hidden(l.hyper);
  const Var u = l.gate("u", gelu(parts::linear(l, "to_u.0", x, E, "W_u, of the gate", false)), 0.0, 0.0,
                       "u: what the system's output, widened, is multiplied with; −0.17 or above.");
  const Var out = parts::linear(l, "to_out", parts::linear(l, "to_gate", r, E, "W_g, which widens the system's output", false) * u,
                                l.hyper.integer("width"), "W_o, back to the stream");
  return l.hyper.choice("block") == "residual" ? stream + out : out;
}

Var normed(Layer& l, Var x) { return parts::layer_norm(l, "norm", x); }

}  // namespace

Architecture gss() {
  Architecture a;
  a.title = "GSS";
  a.equations = {"x̃ = norm(x), u = gelu(W_u x̃), v = norm(gelu(W_v x̃))",
                 "Λ = −exp(Lambda_real) + i exp(Lambda_imag) for all channels (lambda_imag_exp=no: i Lambda_imag)",
                 "h_t = e^Λ h_{t−1} + (e^Λ − 1)/Λ v_t, N complex modes a channel",
                 "r_t = Re Σ_n C_n h_t,n + D v_t (causal=no: and the same from the end of the sequence)",
                 "out = x + W_o ((W_g r_t) ⊙ u_t) + b_o"};
  a.notes = {"Names and shapes are those of the reference's GSS.",
             "There is no time step, no factor 2 and no conjugate pairs: each mode is read by its real part.",
             "D multiplies the input of the system after its own norm.",
             "causal=no adds what the same system makes of the sequence from its end, the current step in both; reverse_seq is "
             "direction=backward.",
             "filter_modes: what the system adds to D v is a sum of exponentials a channel, h_t = p ⊙ h_{t−1} + v_t, read by Re Σ r_n "
             "h_t,n + direct v_t; a pole beyond the unit circle counts as p/|p|.",
             "gelu is exact, the norms' epsilon 1e-5; only W_o has a bias. The reference has no norm after the last layer."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
             hyper_integer("hidden", "E", 0, 0, 16384, "Width of the gate; 0: four times the stream's."),
             hyper_integer("channels", "H", 0, 0, 4096,
                           "Channels of the state-space system; 0: a quarter of the stream's, as in the paper, and at least 2 (the "
                           "reference's default is 256).",
                           "channels"),
             hyper_integer("state", "N", 512, 1, 4096, "Complex modes a channel.", "modes"),
             hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
             hyper_flag("lambda_imag_exp", true, "Whether Im Λ is the exponential of its parameter, as in the paper's pseudocode."),
             hyper_flag("causal", true, "Whether the system reads the past alone, or the sequence from both ends."),
             hyper_choice("block", "residual", {"residual", "none"}, "The block with its residual, or what it adds alone."),
             parts::modal_filter_row()};
  a.spectrum = "the transition e^Λ of every channel, the same at every step";
  a.source = {"H. Mehta, A. Gupta, A. Cutkosky, B. Neyshabur", "Long range language modeling via gated state spaces", "ICLR",
              "https://arxiv.org/abs/2206.13947", 2023};
  a.reference = {{"layers.{n}.0.*", "*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.shares_directions = [](const Hyper& h) { return !h.flag("causal"); };
  a.layer = [](Layer& l, Var x) {
    const Var v = normed(l, x), r = system(l, v);
    return l.hyper.flag("causal") ? gated(l, x, v, r) : r;
  };
  a.combine_directions = [](Layer& l, Var below, Var forward, Var backward) {
    return gated(l, below, normed(l, below), forward + backward);
  };
  return a;
}

}  // namespace reclab::architectures
