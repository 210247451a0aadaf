// SPDX-License-Identifier: GPL-3.0-or-later
//   [x z] = W_in u,   x = silu(conv(x)),   [r B C] = W_x x,   Δ = softplus(W_dt r + b_dt)
//   h_t = exp(Δ A) h_{t-1} + Δ B x_t  (write=exact: (exp(Δ A) - 1) A⁻¹ B x_t),   y_t = C h_t + D x_t,   out = W_out (y_t silu(z));   A =
//   -exp(A_log) block: u + mixer(rms(u)), a final rms norm after the last
// A. Gu, T. Dao, Mamba: linear-time sequence modeling with selective state spaces, 2023. Names and conventions of mamba_ssm's Mamba.
#include <algorithm>
#include <cmath>

#include "models/parts/layers/mixer_attention.h"
#include "models/parts/layers/mixer_model.h"
#include "models/parts/layers/state_space.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/flow.h"
#include "recurrence/mixing/mixing.h"
#include "recurrence/selective/selective.h"

namespace reclab::architectures {
namespace {

/// The reads of h_t = exp(Δ A) h_{t-1} + (exp(Δ A) - 1) A⁻¹ B x_t: the input is held over the step (zero-order hold).
Var held(Layer& l, const StateSpec& state, Var dt, Var A, Var value, Var B, Var C) {
  const std::int64_t T = value.dim(0), batch = value.dim(1), E = value.dim(2), N = A.dim(1);
  const Shape wide{T, batch, E, 1}, few{T, batch, 1, N};
  const Var x = l.records() ? affine(value, 1.0, 0.0) : value;  // of its own, so that it can be moved alone
  const Var rate = reshape(dt, wide) * A;
  const Var h = diagonal(l, state, exp(rate), reshape(dt * x, wide) * mean_exp(rate) * reshape(B, few));
  const Var y = sum(h * reshape(C, few), -1);
  declare_mixing(l, {.name = state.name, .value = x, .output = y, .groups = E, .group = "channel"});
  return y;
}

Var mixer(Layer& l, Var v) {
  const std::int64_t D = l.hyper.integer("width"), N = l.hyper.integer("state"), E = l.hyper.integer("expand") * D,
                     K = l.hyper.integer("conv");
  const std::int64_t R = l.hyper.integer("rank") ? l.hyper.integer("rank") : (D + 15) / 16;
  const bool bias = l.hyper.flag("bias");
  const auto bound = [](std::int64_t fan_in) { return 1.0 / std::sqrt(static_cast<double>(fan_in)); };
  const auto flat = [](double k) { return init::uniform(-k, k); };

  const Var W_in = l.parameter("in_proj.weight", {2 * E, D}, flat(bound(D)), "W_in: rows of x, then rows of z; starts uniform in ±1/√D.");
  const Var b_in = bias ? l.parameter("in_proj.bias", {2 * E}, init::constant(0.0), "Its bias; starts at 0.") : Var{};
  const auto both = split(linear(v, W_in, b_in), -1, 2);

  const Var W_conv = l.parameter("conv1d.weight", {E, 1, K}, flat(bound(K)), "Taps of each channel, oldest first; start uniform in ±1/√K.");
  Var x = depthwise(l.history("conv", both[0], K - 1, "The convolution's last inputs, oldest first."), reshape(W_conv, {E, K}));
  if (l.hyper.flag("conv_bias")) x = x + l.parameter("conv1d.bias", {E}, flat(bound(K)), "Its bias; starts uniform in ±1/√K.");
  x = silu(x);

  const Var W_x =
      l.parameter("x_proj.weight", {R + 2 * N, E}, flat(bound(E)), "W_x: rows of Δ's rank, of B, of C; starts uniform in ±1/√E.");
  const bool shared = l.hyper.choice("step") == "shared";
  const std::int64_t steps = shared ? 1 : E;  // that Δ has
  const double widest = bound(R) * l.hyper.real("dt_scale");
  const Var W_dt = l.parameter("dt_proj.weight", {steps, R}, l.hyper.choice("dt_init") == "random" ? flat(widest) : init::constant(widest),
                               "W_dt; starts uniform in ±dt_scale/√R, or all at dt_scale/√R (dt_init).");
  const double low = std::log(l.hyper.real("dt_min")), high = std::log(l.hyper.real("dt_max")), least = l.hyper.real("dt_init_floor");
  const Var b_dt = l.parameter("dt_proj.bias", {steps}, init::each([=](Rng& rng, std::int64_t) {
                                 const double dt = std::max(std::exp(rng.uniform(low, high)), least);
                                 return dt + std::log(-std::expm1(-dt));
                               }),
                               "b_dt; starts so that softplus(b_dt) is log-uniform between dt_min and dt_max (at least dt_init_floor).");
  const Var A_log = l.parameter("A_log", {E, N}, init::each([=](Rng&, std::int64_t i) { return std::log(static_cast<double>(i % N + 1)); }),
                                "log of −A; starts at log(1..N).");
  const Var skip = l.parameter("D", {E}, init::constant(1.0), "The skip D; starts at 1.");

  const Var rbc = linear(x, W_x);
  const Var delta = l.gate("delta", softplus(linear(slice(rbc, -1, 0, R), W_dt, b_dt)), 0.0, 0.0,
                           "Δ: how strongly this token writes and how much of the old state it lets go; unbounded above.");
  const Var dt = shared ? delta * l.graph().constant({E}, std::vector<double>(static_cast<std::size_t>(E), 1.0)) : delta;
  declare_flow(l, {.rule = Flow::Rule::exponential});
  const StateSpec state{"h", {E, N}, "The selective state of each inner channel."};
  const Var A = -exp_in_range(A_log), B = slice(rbc, -1, R, R + N), C = slice(rbc, -1, R + N, R + 2 * N);
  const Var read = l.hyper.choice("write") == "exact" ? held(l, state, dt, A, x, B, C) : selective(l, state, dt, A, x, B, C);
  const Var y = read + skip * x;

  const Var open = l.gate("output", silu(both[1]), 0.0, 0.0, "silu(z): the multiplicative branch; unbounded above, at least −0.28.");
  const double depth = std::sqrt(static_cast<double>(l.hyper.integer("layers")));
  const Var W_out = l.parameter("out_proj.weight", {D, E}, flat(bound(E) / depth), "W_out; starts uniform in ±1/√E, divided by √layers.");
  const Var b_out = bias ? l.parameter("out_proj.bias", {D}, init::constant(0.0), "Its bias; starts at 0.") : Var{};
  return linear(y * open, W_out, b_out);
}

}  // namespace

Architecture mamba() {
  Architecture a;
  a.title = "Mamba";
  a.equations = {"[x z] = W_in u_t,  x ← silu(conv(x))", "[r B C] = W_x x,  Δ = softplus(W_dt r + b_dt),  A = −exp(A_log)",
                 "h_t = exp(ΔA) ⊙ h_{t-1} + Δ B x;  write=exact: h_t = exp(ΔA) ⊙ h_{t-1} + A⁻¹ (exp(ΔA) − 1) B x",
                 "y_t = C h_t + D ⊙ x,  out = W_out (y_t ⊙ silu(z))",
                 "block: u ← u + mixer(rms(u)), with an MLP u ← u + W₂ (y ⊙ silu(g)), [y g] = W₁ rms(u);  a final rms norm after the last"};
  a.notes = {
      "Names and shapes are those of mamba_ssm's Mamba module (in_proj, conv1d, x_proj, dt_proj, A_log, D, out_proj), norm.weight of its "
      "Block and final/norm_f.weight of its MixerModel.",
      "in_proj's rows are x, then z; x_proj's are Δ's rank, then B, then C; the last tap of conv1d is the current step.",
      "A is discretised by the exponential, B by Euler's rule ΔB, as in every implementation; write=exact is the zero-order hold of both "
      "that the paper derives.",
      "step=shared has one Δ for all inner channels, as surveys write it: dt_proj.weight is then [1, R] and its bias [1]. With state=1, A "
      "= −1, write=exact and a step of its own each channel is a gated average, h_t = (1 − g) h_{t-1} + g B x, g = 1 − e^−Δ.",
      "The whole language model (MambaLMHeadModel) reads one-hot tokens with encoder_bias = no and read_out = tied, or read_out = no-bias "
      "where it is not tied; embedding.weight is the encoder's matrix transposed.",
      "The state after step t is h_t; the convolution's last inputs are a buffer of their own, recorded in state.npz only."};
  a.hyper = {
      hyper_integer("width", "D", 64, 1, 4096, "Width of the stream that the block reads and writes.", "channels"),
      hyper_integer("state", "N", 16, 1, 256, "States of each inner channel.", "states"),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
      hyper_integer("expand", "E/D", 2, 1, 8, "Inner channels for each channel of the stream."),
      hyper_integer("conv", "K", 4, 1, 64, "Taps of the causal convolution.", "steps"),
      hyper_choice("write", "euler", {"euler", "exact"}, "How B is discretised: ΔB, or exactly, A⁻¹ (exp(ΔA) − 1) B."),
      hyper_choice("step", "channel", {"channel", "shared"}, "Whether each inner channel has a Δ of its own, or one is shared by all."),
      hyper_integer("rank", "R", 0, 0, 4096, "Rank of Δ's projection; 0: ⌈width/16⌉."),
      initialisation_only(hyper_real("dt_min", "Δ_min", 0.001, 1e-6, 10.0, "Smallest Δ at the start.", true)),
      initialisation_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-6, 10.0, "Largest Δ at the start.", true)),
      initialisation_only(
          hyper_real("dt_scale", "", 1.0, 1e-3, 1e3, "W_dt starts uniform in ± this over √R: larger lets the input move Δ further.", true)),
      initialisation_only(hyper_choice("dt_init", "random", {"random", "constant"},
                                       "Whether W_dt starts uniform between ± dt_scale/√R, or all at the upper end.")),
      initialisation_only(hyper_real("dt_init_floor", "", 1e-4, 1e-9, 10.0, "Δ at the start is at least this.", true)),
      hyper_flag("conv_bias", true, "Whether the convolution has a bias."),
      hyper_flag("bias", false, "Whether in_proj and out_proj have biases.")};
  for (auto& row : parts::mixer_model_rows()) a.hyper.push_back(std::move(row));
  a.spectrum = "the selective transition exp(Δ_t A) of each step";
  a.source = {"A. Gu, T. Dao", "Mamba: linear-time sequence modeling with selective state spaces", "", "https://arxiv.org/abs/2312.00752",
              2023};
  a.reference = parts::mixer_model_reference();
  a.reference.push_back({"layers.{n}.mixer.*", "*"});
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) { parts::check_time_steps(h, "mamba"); };

  a.layer = [](Layer& l, Var u) {
    return parts::mixer_block(l, u, [&](Var v) { return parts::has_mixer_attention(l) ? parts::mixer_attention(l, v) : mixer(l, v); });
  };
  a.final_layer = parts::mixer_model_finish;
  parts::add_mixer_attention(a, "mamba");
  return a;
}

}  // namespace reclab::architectures
