// SPDX-License-Identifier: GPL-3.0-or-later
//   [z₀ x₀ z x B C δ] = W_in u,   [x B C] = silu(conv([x B C])),   Δ = softplus(δ + b_dt), one a head
//   S_t = exp(Δ A) S_{t-1} + B (Δ x)^T,   y_t = S_t^T C + D x,   A = -exp(A_log), one number a head
//   out = W_out [silu(z₀) x₀; norm(y silu(z))];   block: u + mixer(rms(u)), a final rms norm after the last
// T. Dao, A. Gu, Transformers are SSMs: generalized models and efficient algorithms through structured state space duality, ICML 2024.
// Names and conventions of mamba_ssm's Mamba2 and Mamba2Simple.
#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "models/parts/layers/mixer_attention.h"
#include "models/parts/layers/mixer_model.h"
#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/flow.h"
#include "recurrence/outer/outer.h"

namespace reclab::architectures {
namespace {

/// Inner channels that go through the memory, and how many of them are a head's.
std::int64_t channels_of(const Hyper& h) { return h.integer("d_ssm") ? h.integer("d_ssm") : h.integer("expand") * h.integer("width"); }
std::int64_t head_of(const Hyper& h) { return h.integer("head") ? h.integer("head") : std::min<std::int64_t>(64, channels_of(h)); }

Var mixer(Layer& l, Var v) {
  const Hyper& h = l.hyper;
  const std::int64_t d = h.integer("width"), N = h.integer("state"), E = h.integer("expand") * d, M = channels_of(h), P = head_of(h),
                     heads = M / P, G = h.integer("groups"), K = h.integer("conv"), apart = E - M, mixed = M + 2 * G * N, T = l.steps(),
                     B = l.batch();
  const bool block = h.choice("block") == "residual", bias = h.flag("bias");
  const auto bound = [](std::int64_t fan_in) { return 1.0 / std::sqrt(static_cast<double>(fan_in)); };
  const auto flat = [](double k) { return init::uniform(-k, k); };

  const std::int64_t rows = 2 * apart + M + mixed + heads;
  const Var W_in =
      l.parameter("in_proj.weight", {rows, d}, flat(bound(d)), "W_in: rows of z₀, x₀, z, x, B, C, δ; starts uniform in ±1/√d.");
  const Var b_in = bias ? l.parameter("in_proj.bias", {rows}, init::constant(0.0), "Its bias; starts at 0.") : Var{};
  const Var all = linear(v, W_in, b_in);
  std::int64_t from = 0;
  const auto next = [&](std::int64_t n) {
    from += n;
    return slice(all, -1, from - n, from);
  };
  Var beside;
  if (apart) {
    const Var opening = silu(next(apart));
    beside =
        l.gate("beside", opening, 0.0, 0.0, "silu(z₀) of the channels beside the memory; unbounded above, at least −0.28.") * next(apart);
  }
  const Var z = next(M), before = next(mixed), delta = next(heads);

  const double wide = h.real("conv_init") > 0.0 ? h.real("conv_init") : bound(K);
  const Var W_conv = l.parameter("conv1d.weight", {mixed, 1, K}, flat(wide),
                                 std::string("Taps of each channel of x, B and C, oldest first; start uniform in ±") +
                                     (h.real("conv_init") > 0.0 ? "conv_init." : "1/√K."));
  Var x = K > 1 ? l.history("conv", before, K - 1, "The convolution's last inputs, oldest first.") : before;
  x = depthwise(x, reshape(W_conv, {mixed, K}));
  if (h.flag("conv_bias")) x = x + l.parameter("conv1d.bias", {mixed}, flat(bound(K)), "Its bias; starts uniform in ±1/√K.");
  x = silu(x);
  const Var inner = reshape(slice(x, -1, 0, M), {T, B, heads, P});
  const auto of_groups = [&](std::int64_t first) {
    return repeated_heads(reshape(slice(x, -1, first, first + G * N), {T, B, G, N}), heads / G);
  };

  const double low = std::log(h.real("dt_min")), high = std::log(h.real("dt_max")), least = h.real("dt_init_floor");
  const Var b_dt = l.parameter("dt_bias", {heads}, init::each([=](Rng& rng, std::int64_t) {
                                 const double dt = std::max(std::exp(rng.uniform(low, high)), least);
                                 return dt + std::log(-std::expm1(-dt));
                               }),
                               "b_dt; starts so that softplus(b_dt) is log-uniform between dt_min and dt_max (at least dt_init_floor).");
  const double A_low = h.real("A_low"), A_high = h.real("A_high");
  const Var A_log = l.parameter("A_log", {heads}, init::each([=](Rng& rng, std::int64_t) { return std::log(rng.uniform(A_low, A_high)); }),
                                "log of −A; −A starts uniform between A_low and A_high.");
  const bool by_channel = h.flag("D_has_hdim");
  const Var skip = l.parameter("D", {by_channel ? M : heads}, init::constant(1.0),
                               std::string("The skip D, one a ") + (by_channel ? "channel" : "head") + "; starts at 1.");

  Var dt = softplus(delta + b_dt);
  if (h.real("dt_low") > 0.0) dt = maximum(dt, l.graph().constant({1}, {h.real("dt_low")}));
  if (h.real("dt_high") > 0.0) dt = minimum(dt, h.real("dt_high"));
  dt = l.gate("delta", dt, h.real("dt_high") > 0.0 ? h.real("dt_low") : 0.0, h.real("dt_high"),
              "Δ: how strongly this token writes and how much of the old state its head lets go.");
  declare_flow(l, {.rule = Flow::Rule::exponential});
  const Var decay = reshape(-(dt * exp_in_range(A_log)), {T, B, heads, 1});
  const Var C = of_groups(M + G * N);
  Var read = outer(l, {"S", {heads, N, P}, "The decayed sum of B (Δx)ᵀ of each head, [state, channel]."},
                   {C, of_groups(M), inner * reshape(dt, {T, B, heads, 1}), decay});
  if (h.flag("learnable_init_states")) {
    const Var first = l.parameter("init_states", {heads, P, N}, init::constant(0.0), "S₀ of each head, [channel, state]; starts at 0.");
    const Var kept = exp(reshape(decay, {T, B, heads})),
              left = diagonal(
                  l, {.name = "d", .shape = {heads}, .text = "How much of the initial states is left.", .auxiliary = true, .start = 1.0},
                  kept, affine(kept, 0.0, 0.0));
    // C [T, B, heads, N] times S₀ of its head.
    const int heads_first[] = {2, 0, 1, 3}, heads_last[] = {1, 2, 0, 3};
    const Var of_start = matmul_transposed(reshape(permute(C, heads_first), {heads, T * B, N}), first);
    read = read + permute(reshape(of_start, {heads, T, B, P}), heads_last) * reshape(left, {T, B, heads, 1});
  }
  Var y = reshape(read + inner * reshape(skip, by_channel ? Shape{heads, P} : Shape{heads, 1}), {T, B, M});

  const Var open = l.gate("output", silu(z), 0.0, 0.0, "silu(z): the multiplicative branch; unbounded above, at least −0.28.");
  if (h.choice("norm") == "none") {
    y = y * open;
  } else {
    const bool after = h.flag("norm_before_gate");
    const std::int64_t sets = h.choice("norm") == "groups" ? G : 1;
    const Var scale =
        l.parameter(block ? "mixer.norm.weight" : "norm.weight", {M}, init::constant(1.0), "Scale of the mixer's rms norm; starts at 1.");
    y = reshape(parts::unit_rms(reshape(after ? y : y * open, {T, B, sets, M / sets}), 1e-5), {T, B, M}) * scale;
    if (after) y = y * open;
  }
  if (apart) {
    const Var both[] = {beside, y};
    y = concat(both, -1);
  }
  const double depth = std::sqrt(static_cast<double>(h.integer("layers")));
  const Var W_out = l.parameter("out_proj.weight", {d, E}, flat(bound(E) / depth), "W_out; starts uniform in ±1/√E, divided by √layers.");
  const Var b_out = bias ? l.parameter("out_proj.bias", {d}, init::constant(0.0), "Its bias; starts at 0.") : Var{};
  return linear(y, W_out, b_out);
}

}  // namespace

Architecture mamba_2() {
  Architecture a;
  a.title = "Mamba-2";
  a.equations = {"[z₀ x₀ z x B C δ] = W_in u_t,  [x B C] ← silu(conv([x B C])),  Δ = clip(softplus(δ + b_dt)),  A = −exp(A_log)",
                 "S_t = exp(ΔA) S_{t-1} + B (Δx)ᵀ  for each head: x of its own, B and C of its group, Δ and A one number",
                 "y_t = S_tᵀ C + D x",
                 "learnable_init_states: y_t = (S_t + d_t S₀)ᵀ C + D x,  d_t = exp(ΔA) d_{t-1}, d₀ = 1,  S₀ learned",
                 "norm_before_gate = no: n = rms(y ⊙ silu(z)), yes: n = rms(y) ⊙ silu(z);  norm = none: n = y ⊙ silu(z)",
                 "out = W_out [silu(z₀) ⊙ x₀; n];  block: u ← u + mixer(rms(u)), a final rms norm after the last"};
  a.notes = {
      "Names and shapes are those of mamba_ssm's Mamba2 (in_proj, conv1d, dt_bias, A_log, D, norm, out_proj), norm.weight of its Block, "
      "beside which the mixer's own is mixer.norm.weight, "
      "and final/norm_f.weight of its MixerModel.",
      "in_proj's rows are z₀, x₀, z, x by head, B by group, C by group, then δ; z₀ and x₀ are there where d_ssm is less than all inner "
      "channels. The last tap of conv1d is the current step.",
      "Head h has group ⌊h G/heads⌋; the mixer's norm is taken in each of as many groups of channels; norm = all is Mamba2Simple's, norm = "
      "none Mamba2's rmsnorm = False.",
      "The state is [heads, state, head]: the reference's is its transpose, [heads, head, state].",
      "Mamba2Simple's learnable_init_states: S holds what the inputs wrote, and starts at 0; what is left of the initial states "
      "init_states stands beside it, as their product with d, a number a head. The reference's state is the transpose of S + d S₀. "
      "A continued run goes on with both; dL/dS, spectrum and ds_T/ds_t are the same for the sum.",
      "The chunkwise form is the paper's algorithm; the attention form is its dual, the decayed matrix of all C_t·B_s.",
      "The whole language model (MambaLMHeadModel) reads one-hot tokens with encoder_bias = no and read_out = tied, or read_out = no-bias "
      "where it is not tied; embedding.weight is the encoder's matrix transposed.",
      "The epsilon of the norm before W_out is 1e-5; the convolution's last inputs are a buffer of their own, recorded in state.npz only."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream that the block reads and writes.", "channels"),
             hyper_integer("state", "N", 128, 1, 1024, "Keys of each head's state.", "states"),
             hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
             hyper_integer("expand", "E/d", 2, 1, 8, "Inner channels for each channel of the stream."),
             hyper_integer("head", "P", 0, 0, 1024, "Channels of each head; 0: 64, or all where there are fewer.", "channels"),
             hyper_integer("d_ssm", "", 0, 0, 32768, "Inner channels that go through the memory, the others through a gate alone; 0: all.",
                           "channels"),
             hyper_integer("groups", "G", 1, 1, 1024, "Groups of heads that share B and C."),
             hyper_integer("conv", "K", 4, 1, 64, "Taps of the causal convolution of x, B and C.", "steps"),
             hyper_flag("D_has_hdim", false, "Whether the skip D has a number a channel, or one a head."),
             hyper_choice("norm", "groups", {"groups", "all", "none"},
                          "The rms norm before W_out: in each group by itself, over all channels, or none."),
             hyper_flag("norm_before_gate", false, "Whether the gate silu(z) comes after that norm, or before."),
             hyper_real("dt_low", "", 0.0, 0.0, 1e3, "Δ is at least this."),
             hyper_real("dt_high", "", 0.0, 0.0, 1e6, "Δ is at most this; 0: no bound."),
             initialisation_only(hyper_real("A_low", "", 1.0, 1e-6, 1e4, "Smallest −A at the start.", true)),
             initialisation_only(hyper_real("A_high", "", 16.0, 1e-6, 1e4, "Largest −A at the start.", true)),
             initialisation_only(hyper_real("dt_min", "Δ_min", 0.001, 1e-6, 10.0, "Smallest Δ at the start.", true)),
             initialisation_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-6, 10.0, "Largest Δ at the start.", true)),
             initialisation_only(hyper_real("dt_init_floor", "", 1e-4, 1e-9, 10.0, "Δ at the start is at least this.", true)),
             initialisation_only(hyper_real("conv_init", "", 0.0, 0.0, 10.0, "conv1d.weight starts uniform in ± this; 0: ±1/√K.")),
             hyper_flag("conv_bias", true, "Whether the convolution has a bias."),
             hyper_flag("bias", false, "Whether in_proj and out_proj have biases."),
             hyper_flag("learnable_init_states", false, "Whether the states begin with learned values, the same for every sequence.")};
  for (auto& row : parts::mixer_model_rows()) a.hyper.push_back(std::move(row));
  a.spectrum = "the decay exp(Δ_t A) of each head at each step, once for each entry of the head's state (N times P)";
  a.source = {"T. Dao, A. Gu", "Transformers are SSMs: generalized models and efficient algorithms through structured state space duality",
              "ICML", "https://arxiv.org/abs/2405.21060", 2024};
  a.reference = parts::mixer_model_reference();
  for (const char* own : {"in_proj.*", "conv1d.*", "dt_bias", "A_log", "D", "init_states", "out_proj.*"})
    a.reference.push_back({std::string("layers.{n}.mixer.") + own, own});
  a.reference.push_back({"layers.{n}.*", "*"});  // mixer.norm.weight among them
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    const auto refuse = [](const std::string& what, const std::string& parameter, const std::string& value, const std::string& range) {
      throw Error("mamba-2: " + parameter + " = " + value + " " + what,
                  {.model = "mamba-2", .parameter = parameter, .value = value, .range = range});
    };
    const std::int64_t E = h.integer("expand") * h.integer("width"), M = channels_of(h), P = head_of(h);
    if (M > E)
      refuse("is more than the " + std::to_string(E) + " inner channels: choose at most that.", "d_ssm", h.text("d_ssm"),
             "at most " + std::to_string(E));
    if (M % P)
      refuse("does not divide the " + std::to_string(M) + " channels of the memory: choose a divisor.", "head", std::to_string(P),
             "a divisor of " + std::to_string(M));
    const std::int64_t heads = M / P;
    if (heads % h.integer("groups"))
      refuse("does not divide the " + std::to_string(heads) + " heads: choose a divisor.", "groups", h.text("groups"),
             "a divisor of " + std::to_string(heads));
    if (h.real("dt_min") > h.real("dt_max"))
      refuse("is above dt_max = " + h.text("dt_max") + ": choose dt_min at most dt_max.", "dt_min", h.text("dt_min"), "at most dt_max");
    if (h.real("A_low") > h.real("A_high"))
      refuse("is above A_high = " + h.text("A_high") + ": choose A_low at most A_high.", "A_low", h.text("A_low"), "at most A_high");
    if (h.real("dt_high") > 0.0 && h.real("dt_low") > h.real("dt_high"))
      refuse("is above dt_high = " + h.text("dt_high") + ": choose dt_low at most dt_high.", "dt_low", h.text("dt_low"), "at most dt_high");
  };

  a.layer = [](Layer& l, Var u) {
    return parts::mixer_block(l, u, [&](Var v) { return parts::has_mixer_attention(l) ? parts::mixer_attention(l, v) : mixer(l, v); });
  };
  a.final_layer = parts::mixer_model_finish;
  parts::add_mixer_attention(a, "mamba-2");
  return a;
}

}  // namespace reclab::architectures
