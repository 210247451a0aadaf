// SPDX-License-Identifier: GPL-3.0-or-later
// The card of S4D: conventions, options, names of other people's files.
#include "array/error.h"
#include "models/parts/layers/state_space.h"
#include "models/state_space/s4d/parameters.h"

namespace reclab::architectures {

Architecture s4d_card() {
  Architecture a;
  a.title = "S4D";
  a.equations = {"A = −exp(log_A_real) + i A_imag, Δ = exp(log_dt), B = 1 (input_matrix=trained: a parameter)",
                 "Ā = exp(ΔA), B̄ = (Ā − 1)/A ⊙ B   (bilinear: (1+ΔA/2)/(1−ΔA/2), Δ/(1−ΔA/2) ⊙ B)",
                 "h_t = Ā ⊙ h_{t-1} + B̄ u_t, N/2 complex modes a channel", "y_t = 2 Re Σ_n C_n h_t,n + D u_t",
                 "layer: v = W gelu(y_t) + b, out = v₁ ⊙ σ(v₂) (output=none: out = y_t)"};
  a.notes = {
      "Shapes are those of the minimal s4d.py, whose names are read too: log_dt, log_A_real, A_imag and C (last axis re, im) are its "
      "kernel.log_dt and so on, output_linear.weight [2H, H, 1] its output_linear.0.weight, and norm.weight is norms.<l>.weight of its "
      "example.py.",
      "Imaginary parts are positive and only one of each conjugate pair is stored, hence the factor 2 in the readout.",
      "gelu is exact and the block's norm a layer norm with epsilon 1e-5, after the residual by default, as in the authors' example.py.",
      "input_matrix=trained adds B [H, N/2, 2] (last axis re, im), which the full code has and the minimal file has not; it starts at 1, "
      "the full code's default.",
      "The first imaginary part of S4D-Lin is 0 here as in the minimal file; the full code starts it at 1e-4, as code=full does.",
      "code=full has the names, shapes and signs of the full code (SSMKernelDiag in an S4Block): inv_dt [H, 1], A_real and A_imag [S, N/2] "
      "with A = −Re − i Im, B [1, S, N/2, 2], C [1, H, N/2, 2], "
      "D [1, H], output_linear without .0; kernel. and layer. are left out. Its disc=dss is the architecture dss.",
      "A number that has to be positive, such as −Re A, is kept as its exp, softplus, sigmoid or relu (plus 1e-4) says; it starts at 1e-4 "
      "or above, and as a sigmoid at 1e-4 below 1 where it would be larger.",
      "init=legs starts B as HiPPO-LegS, cut to imaginary parts of ±2, where B is a parameter; it is not halved, as S4 without its "
      "low-rank part would have it.",
      "is_real: N real modes a channel, A, B and C real, and still the factor 2. bidirectional: C has a second row, for the steps from the "
      "next one on. channels > 1: C has a row a read, those of the backward direction after the others, and D too; the output map takes "
      "the reads side by side, all channels of the first read before those of the second.",
      "bandlimit: modes of more than bandlimit/2 turns a step are not read; no gradient passes through this choice."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 4096, "Channels; each has a bank of modes of its own.", "channels"),
      hyper_integer("state", "N", 64, 2, 1024, "State size a channel, conjugates counted: N/2 complex modes are stored.", "states"),
      hyper_choice("code", "minimal", {"minimal", "full"},
                   "Whose names, shapes and signs the parameters have: the minimal file's or the full code's."),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
      initialisation_only(
          hyper_choice("init", "lin", {"lin", "inv", "inv2", "quad", "legs", "real", "rand"},
                       "A at the start: Im A of S4D-Lin πn, of S4D-Inv (N/π)(N/(2n+1) − 1), of its variant (N/π)(N/(n+1) − 1), "
                       "(2n+1)²/π, of S4D-LegS those of HiPPO, or exp of normal ones; S4D-Real: A = −(n+1).")),
      hyper_choice("discretisation", "zoh", {"zoh", "bilinear"}, "From continuous to discrete time: zero-order hold or bilinear."),
      hyper_choice("input_matrix", "ones", {"ones", "trained"}, "B: ones, or a parameter; with code=full it always is one."),
      initialisation_only(hyper_choice(
          "B_init", "constant", {"constant", "random", "alternating", "unit-cw", "unit-ccw"},
          "B at the start, where it is a parameter and init is not legs: 1, normal, 1 and −1 in turn, or once round the unit circle.")),
      hyper_choice("real_transform", "exp", {"exp", "none", "relu", "sigmoid", "softplus"}, "How −Re A comes from its parameter."),
      hyper_choice("imag_transform", "none", {"none", "exp", "relu", "sigmoid", "softplus"}, "How |Im A| comes from its parameter."),
      hyper_choice("dt_transform", "exp", {"exp", "none", "relu", "sigmoid", "softplus"}, "How the time step comes from its parameter."),
      hyper_flag("dt_fast", false, "The time step's parameter passes through sinh first."),
      hyper_flag("dt_tie", true, "Whether all modes of a channel share one time step."),
      hyper_integer("n_ssm", "S", 0, 0, 4096,
                    "Independent copies of A and B, shared by the channels in turn; it divides the width; 0: one a channel."),
      hyper_flag("is_real", false, "A real system: N real modes, no imaginary parts."),
      hyper_integer("channels", "C", 1, 1, 64,
                    "Of the full code: how often each bank is read out, each time with a C and D of its own; the output map takes all "
                    "reads side by side."),
      hyper_flag("bidirectional", false, "A second readout of the same system reads what is still to come, from the next step on."),
      hyper_real("bandlimit", "α", 0.0, 0.0, 100.0, "Modes that turn by α/2 of a turn or more a step are left out; 0: none."),
      initialisation_only(hyper_real("dt_min", "Δ_min", 0.001, 1e-6, 10.0, "Smallest time step at the start.", true)),
      initialisation_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-6, 10.0, "Largest time step at the start.", true)),
      hyper_choice("output", "glu", {"glu", "none"}, "After the system: gelu and a gated linear map, or nothing."),
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norm and residual, or the S4D layer alone."),
      hyper_flag("prenorm", false, "Whether the norm comes before the layer (after the residual otherwise).")};
  a.spectrum = "the discretised transition Ā, the same at every step (one of each conjugate pair)";
  a.source = {"A. Gu, A. Gupta, K. Goel, C. Ré", "On the parameterization and initialization of diagonal state space models", "NeurIPS",
              "https://arxiv.org/abs/2206.11893", 2022};
  a.reference = {{"s4_layers.{n}.kernel.*", "*"},
                 {"s4_layers.{n}.D", "D"},
                 {"s4_layers.{n}.output_linear.0.*", "output_linear.*"},
                 {"norms.{n}.*", "norm.*"},
                 {"layers.{n}.layer.layer.kernel.*", "*"},
                 {"layers.{n}.layer.layer.D", "D"},
                 {"layers.{n}.layer.output_linear.0.*", "output_linear.*"},
                 {"layers.{n}.norm.norm.*", "norm.*"},
                 {"layer.kernel.*", "*"},
                 {"layer.D", "D"},
                 {"kernel.*", "*"},
                 {"output_linear.0.*", "output_linear.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.integer("n_ssm") && h.integer("width") % h.integer("n_ssm"))
      throw Error("s4d: n_ssm = " + h.text("n_ssm") + " does not divide width = " + h.text("width") +
                      ": choose a divisor, or 0 for one copy a channel.",
                  {.model = "s4d", .parameter = "n_ssm", .value = h.text("n_ssm"), .range = "a divisor of width"});
    if (h.integer("state") % 2 && !h.flag("is_real"))
      throw Error("s4d: state = " + h.text("state") + " is odd: it counts conjugate pairs, choose an even number.",
                  {.model = "s4d", .parameter = "state", .value = h.text("state"), .range = "even"});
    if (h.integer("channels") > 1 && h.choice("code") != "full")
      throw Error("s4d: channels = " + h.text("channels") + " is an option of the full code: choose code=full, or channels=1.",
                  {.model = "s4d", .parameter = "channels", .value = h.text("channels"), .range = "1 with code = minimal"});
    parts::check_reads(h, "s4d");
    parts::check_time_steps(h, "s4d");
  };
  return a;
}

}  // namespace reclab::architectures
