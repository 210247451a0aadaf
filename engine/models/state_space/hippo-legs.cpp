// SPDX-License-Identifier: GPL-3.0-or-later
//   f_t = W_uxh [x_t; h_{t-1}],   c_t = Ā_t c_{t-1} + B̄_t f_t,   g = σ(W_g [x_t; c_t]),   h_t = (1 - g) h_{t-1} + g tanh(W_hxm [x_t; c_t])
//   Ā_t, B̄_t: c' = (A c + B f)/t, whose c holds the coefficients of f's whole past in Legendre polynomials, one step on.
// A. Gu, T. Dao, S. Ermon, A. Rudra, C. Ré, HiPPO: recurrent memory with optimal polynomial projections, NeurIPS 2020.
// Names and conventions of state-spaces/s4 (rnns/cells/memory.py, hippo.py).
#include "models/architecture.h"
#include "models/parts/projection/measures.h"
#include "models/parts/projection/memory_cell.h"
#include "recurrence/linear/linear.h"

namespace reclab::architectures {
Architecture hippo_legs() {
  Architecture a;
  a.title = "HiPPO-LegS";
  a.equations = {"f_t = W_uxh [x_t; h_{t-1}]   (input=direct: f_t = x_t)",
                 "c_t = (1 − A/2t)⁻¹ ((1 + A/2t) c_{t-1} + B f_t / t)   (generalised: αA/t and (1 − α)A/t in place of the halves)",
                 "A_nk = −√(2n+1)√(2k+1) (n > k), −(n+1) (n = k), 0 (n < k); B_n = √(2n+1)",
                 "g_t = σ(W_g [x_t; c_t])",
                 "h_t = (1 − g_t) ⊙ h_{t-1} + g_t ⊙ tanh(W_hxm [x_t; c_t])",
                 "y_t = h_t; input=direct: y_t = c_t"};
  a.notes = {
      "Parameters have the names of the reference's state_dict, state-spaces/s4 rnns/cells/memory.py, whose identity activation makes "
      "W_uxh a sequence, hence W_uxh.0; columns are x, then h or c, and c counts memory by memory.",
      "g multiplies the new value.",
      "Time is absolute: at time 0 the state is replaced by (f, 0, …, 0), and from l_max on the step stays that of l_max, as in the code; "
      "init_t = 1 is the older code's count.",
      "c reconstructs the past of f: f(s) ≈ Σ c_n √(2n+1) P_n(2s/t − 1).",
      "input=direct has no parameters: it projects every input channel and nothing else; width, memory, gate and the flags are then "
      "without use.",
      "dL/ds_t takes h_t and c_t as independent coordinates of the state after step t: dL/dc_t does not include c_t's way into h_t of the "
      "same step."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 4096, "Number of hidden units.", "units"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
      hyper_integer("order", "N", 0, 0, 512, "Legendre coefficients a memory; 0: as many as the width.", "coefficients"),
      hyper_integer("memory", "M", 1, 1, 256, "Memories, each with a signal of its own.", "memories"),
      hyper_choice("input", "learned", {"learned", "direct"},
                   "Whether a recurrent network writes and reads the memory, or the inputs themselves are projected."),
      hyper_choice("discretisation", "bilinear", {"bilinear", "forward", "backward", "zoh", "generalised"},
                   "From continuous to discrete time."),
      hyper_real("gbt_alpha", "α", 0.5, 0.0, 1.0,
                 "The share of the new state in a step's slope where discretisation=generalised: 0 is forward, ½ bilinear, 1 backward."),
      hyper_integer("init_t", "t₀", 0, 0, 1000000, "The time of the first input; at time 0 the memory begins with it.", "steps"),
      hyper_integer("l_max", "L", 1024, 1, 100000000, "The time beyond which the memory's scale no longer grows.", "steps"),
      hyper_choice("gate", "sigmoid", {"sigmoid", "none"}, "Whether h is gated, or replaced at every step."),
      hyper_flag("bias", true, "Whether the maps have biases."),
      hyper_flag("ux", true, "Whether the memory's signal sees the input."),
      hyper_flag("hx", true, "Whether h and its gate see the input."),
      hyper_flag("hh", false, "Whether h and its gate see the h before.")};
  a.spectrum = "eigenvalues of ∂(h_t, c_t)/∂(h_{t-1}, c_{t-1}); with input=direct the diagonal of Ā_t, once a channel";
  a.reference = {{"W_uxh.weight", "W_uxh.0.weight"},
                 {"W_uxh.bias", "W_uxh.0.bias"},
                 {"W_uxh.0.*", "W_uxh.0.*"},
                 {"W_hxm.*", "W_hxm.*"},
                 {"W_hh.*", "W_hh.*"},
                 {"W_gxm.*", "W_gxm.*"},
                 {"A", ""},
                 {"B", ""}};
  a.source = {"A. Gu, T. Dao, S. Ermon, A. Rudra, C. Ré", "HiPPO: recurrent memory with optimal polynomial projections", "NeurIPS",
              "https://arxiv.org/abs/2008.07669", 2020};

  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), N = l.hyper.integer("order") ? l.hyper.integer("order") : H, T = l.steps(),
                       batch = l.batch(), in = x.dim(-1);
    const Var time = reshape(slice(l.position(), 1, 0, 1), {T, 1}) + static_cast<double>(l.hyper.integer("init_t"));
    const hippo::Rule rule{l.hyper.choice("discretisation"), l.hyper.real("gbt_alpha")};
    const hippo::LegsStep step = hippo::legs_step(rule, N, time, static_cast<double>(l.hyper.integer("l_max")));
    const PastBasis past = hippo::legs_past(rule, l.hyper.integer("init_t"), l.hyper.integer("l_max"));
    if (l.hyper.choice("input") == "direct") {
      const Var c = linear(l, {"c", {in, N}, "The Legendre coefficients of each channel's past, lowest first."},
                           reshape(step.A, {T, 1, N, N}), reshape(x, {T, batch, in, 1}) * reshape(step.B, {T, 1, 1, N}), x);
      l.reconstruction("c", [&] { return x; }, past);
      return reshape(c, {T, batch, in * N});
    }

    hippo::MemoryCell cell{
        .width = H, .memory = l.hyper.integer("memory"), .order = N, .gate = l.hyper.choice("gate") == "none" ? "N" : "G"};
    cell.bias = l.hyper.flag("bias");
    cell.ux = l.hyper.flag("ux");
    cell.hx = l.hyper.flag("hx");
    cell.hh = l.hyper.flag("hh");
    return hippo::memory_cell(l, cell, x, step.A, step.B, past);
  };
  return a;
}

}  // namespace reclab::architectures
