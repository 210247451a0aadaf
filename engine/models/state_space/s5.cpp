// SPDX-License-Identifier: GPL-3.0-or-later
//   h_t = Λ̄ h_{t-1} + B̄ u_t (one state for all channels),   y_t = 2 Re(C h_t) + D u_t;   both ways: 2 Re(C₁ h_t + C₂ h'_t) + D u_t
//   zoh: Λ̄ = exp(ΛΔ), B̄ = (Λ̄ - 1)/Λ B      bilinear: Λ̄ = (1 + ΛΔ/2)/(1 - ΛΔ/2), B̄ = Δ/(1 - ΛΔ/2) B
//   layer: u + g σ(W g + b), g = gelu(y)
// J. Smith, A. Warrington, S. Linderman, Simplified state space layers for sequence modeling, ICLR 2023. Conventions of lindermanlab/S5.
#include <cmath>

#include "array/error.h"
#include "models/parts/hippo.h"
#include "models/parts/layers/flax_stack.h"
#include "models/parts/layers/state_space.h"
#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/flow.h"

namespace reclab::architectures {
namespace {

/// The contribution of this direction's state to the output, for the input v.
Var read_state(Layer& l, Var v) {
  const Hyper& h = l.hyper;
  const std::int64_t H = h.integer("width"), N = h.integer("state"), J = h.integer("blocks"), size = N / J;
  const bool pairs = h.flag("conj_sym"), both = h.flag("bidirectional");
  const std::int64_t each = pairs ? size / 2 : size, P = each * J;
  // [N, P] block-diagonal eigenvectors, from those of one block: row J-block n, column J-block k.
  const auto normal = [size] { return hippo::legs_normal(size); };
  const Var re = l.parameter("Lambda_re", {P}, init::constant(-0.5), "Re Λ; starts at −½.");
  const Var im = l.parameter(
      "Lambda_im", {P},
      [=](InitContext& c) {
        const auto one = normal();
        for (std::size_t i = 0; i < c.values.size(); ++i) c.values[i] = one.frequencies[i % static_cast<std::size_t>(each)];
      },
      "Im Λ; starts at the frequencies of HiPPO-LegS' normal part, the negative half first, block by block.");
  const Var B = l.parameter(
      "B", {P, H, 2},
      [=](InitContext& c) {  // V^* B0, B0 [N, H] LeCun normal
        const auto one = normal();
        std::vector<double> drawn(static_cast<std::size_t>(N * H));
        InitContext real{c.rng, c.shape, drawn, c.other};
        init::truncated_normal(1.0 / std::sqrt(static_cast<double>(N)))(real);
        for (std::int64_t p = 0; p < P; ++p)
          for (std::int64_t j = 0; j < H; ++j) {
            std::complex<double> sum = 0.0;
            for (std::int64_t n = 0; n < size; ++n)
              sum += std::conj(one.vectors[static_cast<std::size_t>(n * size + p % each)]) *
                     drawn[static_cast<std::size_t>((p / each * size + n) * H + j)];
            c.values[static_cast<std::size_t>((p * H + j) * 2)] = sum.real();
            c.values[static_cast<std::size_t>((p * H + j) * 2 + 1)] = sum.imag();
          }
      },
      "B, last axis re and im; starts as V* times a LeCun normal matrix, V the eigenvectors.");
  const std::string kind = h.choice("C_init");
  const Init start_C = [=](InitContext& c) {
    if (kind == "complex_normal") return init::normal(std::sqrt(0.5))(c);
    const auto one = normal();
    std::vector<double> drawn(static_cast<std::size_t>(2 * H * N));
    InitContext real{c.rng, c.shape, drawn, c.other};
    const double fan = static_cast<double>(kind == "lecun_normal" ? N * H : N);
    init::truncated_normal(1.0 / std::sqrt(fan))(real);
    for (std::int64_t j = 0; j < H; ++j)
      for (std::int64_t p = 0; p < P; ++p) {
        std::complex<double> sum = 0.0;
        for (std::int64_t n = 0; n < size; ++n) {
          const auto at = static_cast<std::size_t>((j * N + p / each * size + n) * 2);
          sum += std::complex<double>(drawn[at], drawn[at + 1]) * one.vectors[static_cast<std::size_t>(n * size + p % each)];
        }
        c.values[static_cast<std::size_t>((j * P + p) * 2)] = sum.real();
        c.values[static_cast<std::size_t>((j * P + p) * 2 + 1)] = sum.imag();
      }
  };
  const std::string role = ", last axis re and im; starts as C_init says, as a rule as a LeCun normal matrix times V.";
  Var C;
  if (both && kind == "complex_normal")
    C = slice(l.parameter("C", {H, 2 * P, 2}, start_C, "C₁ of the state from the start, then C₂ of that from the end" + role), 1,
              l.backward() ? P : 0, l.backward() ? 2 * P : P);
  else
    C = both && l.backward()
            ? l.parameter("C2", {H, P, 2}, start_C, "C₂ of the state from the end" + role)
            : l.parameter(both ? "C1" : "C", {H, P, 2}, start_C, std::string(both ? "C₁ of the state from the start" : "C") + role);
  const Var log_step = l.parameter("log_step", {P, 1}, init::uniform(std::log(h.real("dt_min")), std::log(h.real("dt_max"))),
                                   "log Δ of each state; starts uniform between log dt_min and log dt_max.");

  const Var bounded = h.flag("clip_eigs") ? minimum(re, -1e-4) : re;
  const Var dt = reshape(exp(log_step), {P}) * h.real("step_rescale"), lambda = complex(bounded, im), lambda_dt = lambda * dt;
  declare_flow(l, {.rule = flow_rule(h.choice("discretisation")), .exponents = lambda_dt});
  Var transition, scale;
  if (h.choice("discretisation") == "zoh") {
    transition = exp(lambda_dt);
    scale = mean_exp(lambda_dt) * dt;  // (Λ̄ − 1)/Λ, which cancels for small steps
  } else {
    const Var inverse = reciprocal(1.0 - lambda_dt * 0.5);
    transition = (lambda_dt * 0.5 + 1.0) * inverse;
    scale = inverse * dt;
  }
  const auto half = [](Var z, std::int64_t which, const Shape& shape) { return reshape(slice(z, -1, which, which + 1), shape); };
  const Var drive = complex(linear(v, half(B, 0, {P, H})), linear(v, half(B, 1, {P, H}))) * scale;
  const Var state = diagonal(l, {"h", {P}, "The complex state that all channels share."}, transition, drive);
  return (linear(real(state), half(C, 0, {H, P})) - linear(imag(state), half(C, 1, {H, P}))) * (pairs ? 2.0 : 1.0);
}

bool has_block(const Layer& l) { return l.hyper.choice("block") == "residual"; }

Var norm_of(Layer& l, Var x) {
  const std::string& kind = l.hyper.choice("norm");
  if (!has_block(l) || kind == "none") return x;
  return kind == "batch" ? parts::batch_norm(l, "norm", x.dim(-1))(x) : parts::layer_norm(l, "norm", x, 1e-6);
}

/// The state-space model's input from the layer's.
Var read_of(Layer& l, Var x) { return l.hyper.flag("prenorm") ? norm_of(l, x) : x; }

Var pooled(Layer& l, Var x) { return l.hyper.choice("mode") == "pool" ? parts::mean_over_time(l, x) : x; }

/// The layer's output, of its input x, the model's input v and the states' contribution.
Var finished(Layer& l, Var x, Var v, Var states) {
  const std::int64_t H = x.dim(-1);
  const Var y = states + l.parameter("D", {H}, init::normal(1.0), "The skip D; starts normal.") * v;
  if (!has_block(l)) return pooled(l, y);
  const auto dense = [&](const std::string& name, Var z) {
    return parts::linear(l, name, z, H,
                         {init::truncated_normal(1.0 / std::sqrt(static_cast<double>(H))), init::constant(0.0), "W of the gated unit",
                          "starts LeCun normal, its bias at 0"});
  };
  const auto gate = [&](Var z) {
    return l.gate("glu", sigmoid(dense("out2", z)), 0.0, 1.0, "The gate after the state-space model: how much of each channel passes.");
  };
  const std::string& activation = l.hyper.choice("activation");
  const Var g = gelu_tanh(y);
  Var z = g;
  if (activation == "full_glu") z = dense("out1", g) * gate(g);
  if (activation == "half_glu1") z = g * gate(g);
  if (activation == "half_glu2") z = y * gate(g);
  return pooled(l, l.hyper.flag("prenorm") ? x + z : norm_of(l, x + z));
}

}  // namespace

Architecture s5() {
  Architecture a;
  a.title = "S5";
  a.equations = {"Λ = Lambda_re + i Lambda_im,  Δ = step_rescale exp(log_step), one a state",
                 "Λ̄ = exp(ΛΔ), B̄ = (Λ̄ − 1)/Λ B   (bilinear: (1+ΛΔ/2)/(1−ΛΔ/2), Δ/(1−ΛΔ/2) B)",
                 "h_t = Λ̄ ⊙ h_{t-1} + B̄ u_t,  y_t = 2 Re(C h_t) + D ⊙ u_t",
                 "bidirectional: h'_t = Λ̄ ⊙ h'_{t+1} + B̄ u_t,  y_t = 2 Re(C₁ h_t + C₂ h'_t) + D ⊙ u_t",
                 "layer: g = gelu(y_t),  u ← u + g ⊙ σ(W g + b) (half_glu1)"};
  a.notes = {
      "Names and shapes are those of lindermanlab/S5 below seq: Lambda_re, Lambda_im, B [P, H, 2], C [H, P, 2] (last axis re, im), D, "
      "log_step [P, 1], out1, out2, norm; flax's kernels are transposed to [out, in].",
      "With conj_sym only one of each conjugate pair is stored (P = N/2), hence the factor 2 in the readout; without it P = N and the "
      "factor is 1.",
      "The defaults are those of the authors' training script (half_glu1, norm first), with a layer norm where the script has a batch "
      "norm. Its blocks=8 is 1 here.",
      "The batch norm is that of evaluation, by the mean and variance of flax's batch_stats, here norm.running_mean and norm.running_var; "
      "dropout does nothing then.",
      "With bidirectional one state goes from each end, with the same Λ̄ and B̄; both contain the current step.",
      "The reference's classifier (ClassificationModel) decodes the mean of the stack's outputs over time, or the last of them: what its "
      "log softmax is taken of is the head's output at the last step, or with padding at the last step that is none, "
      "with mode = pool or last. At the steps before it is what the classifier would say of the sequence so far.",
      "gelu is the tanh approximation; the layer norm's epsilon is 1e-6, the batch norm's 1e-5, as in JAX and flax."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Channels; all share one state.", "channels"),
             hyper_integer("state", "N", 64, 1, 1024, "State size, conjugates counted.", "states"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
             initialisation_only(hyper_integer("blocks", "J", 1, 1, 64, "HiPPO blocks that Λ starts from; must divide the state size.")),
             hyper_choice("discretisation", "zoh", {"zoh", "bilinear"}, "From continuous to discrete time: zero-order hold or bilinear."),
             hyper_flag("conj_sym", true, "Whether one of each conjugate pair is stored."),
             hyper_flag("clip_eigs", false, "Whether Re Λ is kept at −1e-4 or below."),
             hyper_choice("C_init", "trunc_standard_normal", {"trunc_standard_normal", "lecun_normal", "complex_normal"},
                          "How C starts; with complex_normal C₁ and C₂ are one array."),
             hyper_flag("bidirectional", false,
                        "Whether a second state goes from the end of the sequence to its start, read by a matrix of its own."),
             initialisation_only(hyper_real("dt_min", "Δ_min", 0.001, 1e-6, 10.0, "Smallest time step at the start.", true)),
             initialisation_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-6, 10.0, "Largest time step at the start.", true)),
             hyper_real("step_rescale", "", 1.0, 1e-3, 1e3, "Multiplies all time steps: another sampling rate than in training.", true),
             hyper_choice("activation", "half_glu1", {"full_glu", "half_glu1", "half_glu2", "gelu"},
                          "What follows the state-space model in a layer."),
             hyper_choice("block", "residual", {"residual", "none"},
                          "The layer with norm, activation and residual, or the state-space model alone."),
             hyper_flag("prenorm", true, "Whether the norm comes first (after the residual otherwise)."),
             hyper_choice("norm", "layer", {"layer", "batch", "none"},
                          "The layer's norm: over the channels of each step, or by statistics of the training."),
             hyper_choice("mode", "last", {"last", "pool"},
                          "What the head reads at each step: the stack's output at that step, or the mean of its outputs so far.")};
  a.spectrum = "the discretised transition Λ̄, the same at every step (one of each conjugate pair)";
  a.source = {"J. T. H. Smith, A. Warrington, S. W. Linderman", "Simplified state space layers for sequence modeling", "ICLR",
              "https://arxiv.org/abs/2208.04933", 2023};
  a.reference = parts::flax_stack_reference("norm");
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    const std::int64_t N = h.integer("state"), J = h.integer("blocks");
    if (N % J || (h.flag("conj_sym") && N / J % 2))
      throw Error("s5: state = " + h.text("state") + " does not fall into blocks = " + h.text("blocks") + " blocks of " +
                      (h.flag("conj_sym") ? "even" : "whole") + " size: choose another state or blocks.",
                  {.model = "s5", .parameter = "blocks", .value = h.text("blocks"), .range = "a divisor of state"});
    parts::check_time_steps(h, "s5");
  };

  a.shares_directions = [](const Hyper& h) { return h.flag("bidirectional"); };
  a.layer = [](Layer& l, Var x) {
    const Var v = read_of(l, x), states = read_state(l, v);
    return l.hyper.flag("bidirectional") ? states : finished(l, x, v, states);
  };
  a.combine_directions = [](Layer& l, Var below, Var forward, Var backward) {
    return finished(l, below, read_of(l, below), forward + backward);
  };
  return a;
}

}  // namespace reclab::architectures
