// SPDX-License-Identifier: GPL-3.0-or-later
//   f_t = φ(W_uxh [x_t; h_{t-1}]),   c_t = Ā c_{t-1} + B̄ f_t,   g = γ(W_g [x_t; c_t]),   h_t = (1 - g) h_{t-1} + g ψ(W_hxm [x_t; c_t])
//   Ā, B̄: c' = A c + B f of a measure of f's past (LegT, LagT, ...), or c' = (A c + B f)/t (LegS), one step on.
// A. Gu, T. Dao, S. Ermon, A. Rudra, C. Ré, HiPPO: recurrent memory with optimal polynomial projections, NeurIPS 2020.
// Names and conventions of state-spaces/s4 (rnns/cells/memory.py and hippo.py, nn/gate.py), and options of HazyResearch/hippo-code.
#include <cmath>
#include <string>

#include "array/error.h"
#include "models/architecture.h"
#include "models/parts/matrices.h"
#include "models/parts/projection/measures.h"
#include "models/parts/projection/memory_cell.h"
#include "recurrence/linear/linear.h"

namespace reclab::architectures {

Architecture hippo_rnn() {
  Architecture a;
  a.title = "HiPPO-RNN";
  a.equations = {
      "f_t = φ(W_uxh [x_t; h_{t-1}] + Σ_n W_um,n c_{t-1,n})   (input=direct: f_t = x_t)",
      "c_t = (1 − αΔA)⁻¹ ((1 + (1 − α)ΔA) c_{t-1} + ΔB f_t)   (zoh: exp(ΔA) c_{t-1} + A⁻¹(exp(ΔA) − 1)B f_t);  legs: Δ = 1/t",
      "legt: A_nk = −½√(2n+1)√(2k+1) · (1 if n ≥ k, (−1)^(n−k) otherwise), B_n = ½√(2n+1)",
      "lagt: A_nk = −1 (n > k), −½ (n = k), 0 (n < k); B_n = β",
      "glagt: A_nk = −λ_k/λ_n (n > k), −(1+β)/2 (n = k), 0 (n < k), λ_n² = Γ(n+a+1)/n!; B_n = binom(n+a, n)/λ_n · √(β^(1−a)/Γ(1−a))",
      "lmu: A_nk = (2n+1) · (−1 if n < k, (−1)^(n−k+1) otherwise), B_n = (2n+1)(−1)ⁿ",
      "legs, legst: A_nk = −√(2n+1)√(2k+1) (n > k), −(n+1) (n = k), 0 (n < k); B_n = √(2n+1)",
      "g_t = γ(W_g [x_t; c_t]);   gate N: g_t = 1",
      "h_t = (1 − g_t) ⊙ h_{t-1} + g_t ⊙ ψ(W_hxm [x_t; c_t])",
      "y_t = h_t, memory_output: [h_t; c_t]; input=direct: y_t = c_t"};
  a.notes = {
      "Parameters have the names of the reference's state_dict, state-spaces/s4 rnns/cells/memory.py; columns are x, then c, then h, and c "
      "counts memory by memory. hippo-code's W_uxh without .0 is read too.",
      "g multiplies the new value. With hh the gate sees h_{t-1} too.",
      "Gates, z what enters them: G and FS, BE σ(z); U σ(z + b_g); R (1 − 2r)σ² + 2rσ with r a second gate, UR the same with b_g; GT, UT r "
      "= σ "
      "itself; BR u/(1 + u), TR u/(1 + u/2), ZR 1 − e^(−u) with u = relu(z); TS, ZS those of u = σ(z) (TS of 2σ(z)); TE, ZE of u = e^z.",
      "hippo-code's legt is not halved: its dt is half of this one. The reference's lmu cell has dt = 1/θ, its legt dt = 0.01, lagt and "
      "glagt dt = 1.",
      "α of the equation of c is gbt_alpha, 0 for forward, ½ for bilinear, 1 for backward; a and β of glagt are alpha and beta, and the "
      "reference's glagt has beta = 0.01.",
      "legs: time is absolute; at time 0 the state is replaced by (f, 0, …, 0), and from l_max on the step stays that of l_max.",
      "c reconstructs the past of f, s units Δ ago: legt f ≈ Σ c_n √(2n+1) P_n(1 − s) for s up to 2; lmu Σ c_n P_n(2s − 1) for s up to 1; "
      "lagt Σ c_n L_n(s) e^(−s/2)/β; glagt Σ c_n L_n^a(s) s^a e^(−(1−β)s/2)/(λ_n √(β^(1−a)/Γ(1−a))); legst Σ c_n √(2n+1) P_n(2e^(−s) − 1).",
      "trainable_scale = s above 0 makes A and B of the time-invariant measures parameters, (Ā − 1)/√s and B̄/√s, as in hippo-code. The "
      "reference "
      "keeps them as buffers rounded to float32 otherwise, which trainable_scale = 1 reads from its file; else they are left out and made "
      "anew.",
      "input=direct has no parameters: it projects every input channel and nothing else; width, memory, gate, activations and flags are "
      "then "
      "without use.",
      "dL/ds_t takes h_t and c_t as independent coordinates of the state after step t: dL/dc_t does not include c_t's way into h_t of the "
      "same step."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 4096, "Number of hidden units.", "units"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
      hyper_integer("order", "N", 0, 0, 512, "Coefficients a memory; 0: as many as the width.", "coefficients"),
      hyper_integer("memory", "M", 1, 1, 256, "Memories, each with a signal of its own.", "memories"),
      hyper_choice("measure", "legs", {"legs", "legt", "lagt", "glagt", "lmu", "legst"},
                   "Which part of the past counts: all of it evenly, a window (legt, lmu), or less the older it is (lagt, glagt, legst)."),
      hyper_choice("input", "learned", {"learned", "direct"},
                   "Whether a recurrent network writes and reads the memory, or the inputs themselves are projected."),
      hyper_choice("discretisation", "bilinear", {"bilinear", "forward", "backward", "zoh", "generalised"},
                   "From continuous to discrete time."),
      hyper_real("gbt_alpha", "α", 0.5, 0.0, 1.0,
                 "The share of the new state in a step's slope where discretisation=generalised: 0 is forward, ½ bilinear, 1 backward."),
      hyper_real("dt", "Δ", 0.01, 1e-6, 100.0, "The measure's time that one step takes, where it is not legs.", true),
      hyper_real("alpha", "a", 0.0, -0.9, 0.9, "The exponent of glagt's generalised Laguerre polynomials."),
      hyper_real("beta", "β", 1.0, 1e-4, 10.0, "How fast glagt's weight falls; a factor of lagt's coefficients.", true),
      hyper_integer("init_t", "t₀", 0, 0, 1000000, "The time of the first input for legs; at time 0 the memory begins with it.", "steps"),
      hyper_integer("l_max", "L", 1024, 1, 100000000, "The time beyond which the scale of legs no longer grows.", "steps"),
      hyper_real("trainable_scale", "s", 0.0, 0.0, 100.0, "Above 0: Ā and B̄ are trained, as parameters divided by √s; not for legs."),
      hyper_choice("gate", "G", hippo::cell_gates(), "How h is gated: none (N), sigmoid (G), uniform, refined, or from a discretisation."),
      hyper_choice("memory_activation", "id", hippo::cell_activations(), "φ, of the memory's signal."),
      hyper_choice("hidden_activation", "tanh", hippo::cell_activations(), "ψ, of the new value of h."),
      hyper_flag("bias", true, "Whether the maps have biases."),
      hyper_flag("ux", true, "Whether the memory's signal sees the input."),
      hyper_flag("um", false, "Whether the memory's signal sees the memory."),
      hyper_flag("hx", true, "Whether h and its gate see the input."),
      hyper_flag("hm", true, "Whether h and its gate see the memory."),
      hyper_flag("hh", false, "Whether h and its gate see the h before."),
      hyper_flag("memory_output", false, "Whether the memory is read out beside h.")};
  a.spectrum = "eigenvalues of ∂(h_t, c_t)/∂(h_{t-1}, c_{t-1}); with input=direct of Ā, once a channel";
  a.source = {"A. Gu, T. Dao, S. Ermon, A. Rudra, C. Ré", "HiPPO: recurrent memory with optimal polynomial projections", "NeurIPS",
              "https://arxiv.org/abs/2008.07669", 2020};
  a.reference = {{"W_uxh.weight", "W_uxh.0.weight"},
                 {"W_uxh.bias", "W_uxh.0.bias"},
                 {"W_uxh.0.*", "W_uxh.0.*"},
                 {"W_uxh.1.b", "W_uxh.1.b"},
                 {"memory_activation_fn.b", "W_uxh.1.b"},
                 {"activate.b", "activate.b"},
                 {"hidden_activation_fn.b", "activate.b"},
                 {"W_um", "W_um"},
                 {"W_hxm.*", "W_hxm.*"},
                 {"W_hh.*", "W_hh.*"},
                 {"W_gxm.*", "W_gxm.*"},
                 {"A", "A"},
                 {"B", "B"},
                 {"A", ""},
                 {"B", ""},
                 {"W_hx.*", ""}};
  a.check = [](const Hyper& h) {
    if (h.choice("input") == "learned" && !h.flag("hx") && !h.flag("hm"))
      throw Error("hippo-rnn: hx = false and hm = false leave h nothing to see: choose true for one of them.",
                  {.model = "hippo-rnn", .parameter = "hm", .value = "false", .range = "true where hx = false"});
    if (h.choice("input") == "learned" && !h.flag("ux") && !h.flag("hx"))
      throw Error("hippo-rnn: ux = false and hx = false leave the input no way in: choose true for one of them.",
                  {.model = "hippo-rnn", .parameter = "hx", .value = "false", .range = "true where ux = false"});
    if (h.real("trainable_scale") > 0.0 && h.choice("measure") == "legs")
      throw Error(
          "hippo-rnn: trainable_scale = " + h.text("trainable_scale") +
              " needs a time-invariant measure, legs has a matrix a step: choose 0, or another measure.",
          {.model = "hippo-rnn", .parameter = "trainable_scale", .value = h.text("trainable_scale"), .range = "0 with measure=legs"});
  };

  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), N = l.hyper.integer("order") ? l.hyper.integer("order") : H, T = l.steps(),
                       batch = l.batch(), in = x.dim(-1);
    const hippo::Rule rule{l.hyper.choice("discretisation"), l.hyper.real("gbt_alpha")};
    const bool legs = l.hyper.choice("measure") == "legs", direct = l.hyper.choice("input") == "direct";
    const double scale = std::sqrt(l.hyper.real("trainable_scale"));
    Var A, B;
    PastBasis past;
    if (legs) {
      const Var time = reshape(slice(l.position(), 1, 0, 1), {T, 1}) + static_cast<double>(l.hyper.integer("init_t"));
      const hippo::LegsStep step = hippo::legs_step(rule, N, time, static_cast<double>(l.hyper.integer("l_max")));
      A = step.A;
      B = step.B;
      past = hippo::legs_past(rule, l.hyper.integer("init_t"), l.hyper.integer("l_max"));
    } else {
      const hippo::Measure measure{l.hyper.choice("measure"), l.hyper.real("alpha"), l.hyper.real("beta")};
      const double dt = l.hyper.real("dt");
      const hippo::System step = hippo::discrete(hippo::continuous(measure, N), dt, rule);
      past = hippo::past(measure, N, dt, rule);
      if (scale > 0.0) {
        const auto from = [scale](std::vector<double> values) -> Init {
          return [=](InitContext& c) {
            for (std::size_t i = 0; i < values.size(); ++i) c.values[i] = values[i] / scale;
          };
        };
        std::vector<double> change = step.A;
        for (std::int64_t i = 0; i < N; ++i) change[static_cast<std::size_t>(i * (N + 1))] -= 1.0;
        A = parts::identity(l.graph(), N) + l.parameter("A", {N, N}, from(change), "(Ā − 1)/√s; starts as the measure's.") * scale;
        B = reshape(l.parameter("B", {N, 1}, from(step.B), "B̄/√s; starts as the measure's.") * scale, {N});
        past.values = {};  // trained matrices keep no measure
      } else {
        A = l.graph().constant({N, N}, step.A);
        B = l.graph().constant({N}, step.B);
      }
    }
    if (direct) {
      const StateSpec state{"c", {in, N}, "The " + past.coefficient + "s of each channel's past, lowest first."};
      const Var c = legs ? linear(l, state, reshape(A, {T, 1, N, N}), reshape(x, {T, batch, in, 1}) * reshape(B, {T, 1, 1, N}))
                         : linear_driven(l, state, A, B, x);
      if (past.values) l.reconstruction("c", [&] { return x; }, past);
      return reshape(c, {T, batch, in * N});
    }
    hippo::MemoryCell cell{.width = H, .memory = l.hyper.integer("memory"), .order = N, .gate = l.hyper.choice("gate")};
    cell.memory_activation = l.hyper.choice("memory_activation");
    cell.hidden_activation = l.hyper.choice("hidden_activation");
    cell.bias = l.hyper.flag("bias");
    cell.ux = l.hyper.flag("ux");
    cell.um = l.hyper.flag("um");
    cell.hx = l.hyper.flag("hx");
    cell.hm = l.hyper.flag("hm");
    cell.hh = l.hyper.flag("hh");
    cell.memory_output = l.hyper.flag("memory_output");
    return hippo::memory_cell(l, cell, x, A, B, past);
  };
  return a;
}

}  // namespace reclab::architectures
