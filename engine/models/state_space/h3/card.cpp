// SPDX-License-Identifier: GPL-3.0-or-later
// The card of H3: conventions, options, names of other people's files.
#include <string>

#include "array/error.h"
#include "models/parts/layers/modal_filter.h"
#include "models/parts/layers/state_space.h"
#include "models/state_space/h3/parameters.h"

namespace reclab::architectures {

Architecture h3_card() {
  Architecture a;
  a.title = "H3";
  a.equations = {
      "q_t = W_q u_t + b_q,  k_t = W_k u_t + b_k,  v_t = W_v u_t + b_v",
      "s_t = shift(s_{t−1}) + B k_t,  k'_t = C·s_t + D_k k_t   (N places a channel; Σ_j B_j C_{i+j} is the weight of k_{t−i})",
      "h_t = Ā ⊙ h_{t−1} + B̄ (k'_t ⊗ v_t),  r_t = 2 Re Σ_n C_n h_t,n + D (k'_t ⊗ v_t), N/2 complex modes for each pair of a head's "
      "dimensions",
      "A = −exp(inv_A_real) + i A_imag, Δ = exp(log_dt);  Ā = (1+ΔA/2)/(1−ΔA/2), B̄ = Δ/(1−ΔA/2) ⊙ B   (disc=zoh: exp(ΔA), (Ā − 1)/A ⊙ B)",
      "disc=dss: B̄ = B ⊙ (Ā − 1)/(A (Āᴸ − 1)), where Re A > 0 with −ΔA and times Ā¹⁻ᴸ; r_t = Re Σ_n C_n h_t,n + ..",
      "mode=ema: Ā = 1 − σ(δ) σ(α), B̄ = σ(δ) β, C = γ/√N, N real averages;  mode=shift: a second shift system",
      "y_t = W_o (q_tᵀ r_t) + b_o,  the sum over the key's dimension of each head",
      "block: x ← x + H3(LN₁ x),  x ← x + W₂ gelu(W₁ LN₂ x);  after the last LN_f"};
  a.notes = {
      "Names and shapes are those of the reference's H3: {q,k,v}_proj, ssm_k_kernel.kernel.{B,C}, ssm_k_D, "
      "kernel.kernel.{C,log_dt,B,inv_A_real,A_imag}, D, output_linear; norm1, norm2 and mlp are those of its Block (mixer. is left out), "
      "final/ln_f that of its backbone. Of a file of its language model the embeddings and lm_head are passed over.",
      "Both systems are time-invariant; between them there are products alone, no activation. The shift system keeps its keys as inputs: "
      "its own eigenvalues are N zeros a channel, and are not shown.",
      "The rows of q, k and v are (head, dimension), as k' and v go into the products; with head_dim above 1 W_o reads (dimension, head), "
      "the order that the reference's sum leaves.",
      "One of each conjugate pair is stored, with either sign of Im A, hence the factor 2; disc=dss reads without it.",
      "disc=dss divides by the sum of a mode's powers over L steps, L = length, which the reference takes from its sequence (or l_max); "
      "1/x is x̄/(|x|² + 1e-7), and no gradient passes through the shift of a mode that grows, as in the reference. With real_type=none a "
      "mode may grow: disc=dss has no convolution form then.",
      "l_max cuts both kernels: what is l_max steps ago or more is not seen, and the products of the last steps take the place of the "
      "modes.",
      "n_ssm copies of A and B are shared by the heads in turn. measure=diag starts the first half of the copies as diag-inv, the others "
      "as diag-lin.",
      "bandlimit: modes of more than bandlimit/2 turns a step are not read; no gradient passes through this choice. force_real: Im A "
      "counts as 0.",
      "C starts normal, as the reference draws it before it multiplies it with B = 1; its deterministic start, measures that are not "
      "diagonal and their arguments are not offered.",
      "use_fast_fftconv computes the same. A layer of attention among those of H3, which the paper's language models have, is a part of a "
      "stack.",
      "filter_modes: the system that keeps the products is a sum of exponentials a channel, h_t = p ⊙ h_{t−1} + (kv)_t, read by Re Σ r_n "
      "h_t,n + direct (kv)_t; a pole beyond the unit circle counts as p/|p|.",
      "norm1, norm2 and ln_f are layer norms with epsilon 1e-5; gelu is the tanh approximation. Linear layers start as PyTorch's; the "
      "reference's language model draws them anew from N(0, 0.02²)."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Channels of q, k and v.", "channels"),
      hyper_integer("head_dim", "", 1, 1, 256, "Dimensions of a head; divides the width. The products of a head are its square.",
                    "dimensions"),
      hyper_integer("state", "N", 64, 2, 1024, "Places of the shift system, and states of the diagonal one, conjugates counted.", "states"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_choice("mode", "diag", {"diag", "shift", "ema"},
                   "The system that keeps the products: diagonal, a second shift, or moving averages."),
      hyper_choice("disc", "bilinear", {"bilinear", "zoh", "dss"},
                   "From continuous to discrete time: bilinear, zero-order hold, or the normalised kernel of DSS."),
      hyper_choice("real_type", "exp", {"exp", "none", "relu", "sigmoid", "softplus"},
                   "How −Re A comes from its parameter; relu adds 1e-4."),
      hyper_integer("length", "L", 1024, 1, 1 << 24, "Steps that disc=dss sums a mode's powers over.", "steps"),
      hyper_integer("n_ssm", "S", 0, 0, 4096,
                    "Independent copies of A and B, shared by the heads in turn; it divides their number; 0: one a head."),
      hyper_integer("l_max", "", 0, 0, 1000000, "Taps that both kernels are cut to; 0: none is cut.", "steps"),
      hyper_real("bandlimit", "α", 0.0, 0.0, 100.0, "Modes that turn by α/2 of a turn or more a step are left out; 0: none."),
      hyper_flag("force_real", false, "Whether Im A counts as 0."),
      hyper_flag("dt_tie", false, "mode=ema: one δ for all averages of a head."),
      initialisation_only(hyper_choice(
          "measure", "diag-lin", {"diag-lin", "diag-inv", "diag-inv2", "diag-quad", "diag-legs", "diag-real", "diag-random", "diag"},
          "Im A at the start: πn, (N/π)(N/(2n+1) − 1), (N/π)(N/(n+1) − 1), (2n+1)²/π, those of HiPPO-LegS, 0 with Re A "
          "= −(n+1), normal, or two of them.")),
      initialisation_only(hyper_real("dt_min", "Δ_min", 0.001, 1e-6, 10.0, "Smallest time step at the start.", true)),
      initialisation_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-6, 10.0, "Largest time step at the start.", true)),
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norms, residuals and feed-forward, or the H3 layer alone."),
      hyper_integer("mlp", "", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
      hyper_flag("final_norm", true, "Whether a norm follows the last block."),
      parts::modal_filter_row()};
  a.spectrum =
      "the discretised transition Ā of every product, the same at every step (one of each conjugate pair; head_dim² times); mode=shift and "
      "l_max: none";
  a.source = {"D. Y. Fu, T. Dao, K. K. Saab, A. W. Thomas, A. Rudra, C. Ré",
              "Hungry hungry hippos: towards language modeling with state space models", "ICLR", "https://arxiv.org/abs/2212.14052", 2023};
  a.reference = {{"layers.{n}.mixer.*", "*"},
                 {"layers.{n}.*", "*"},
                 {"ln_f.*", "final/ln_f.*"},
                 {"embeddings.word_embeddings.weight", ""},
                 {"embeddings.position_embeddings.weight", ""},
                 {"lm_head.weight", ""}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.integer("width") % h.integer("head_dim"))
      throw Error("h3: head_dim = " + h.text("head_dim") + " does not divide width = " + h.text("width") + ": choose a divisor.",
                  {.model = "h3", .parameter = "head_dim", .value = h.text("head_dim"), .range = "a divisor of width"});
    if (h3_heads(h) % h3_copies(h))
      throw Error("h3: n_ssm = " + h.text("n_ssm") + " does not divide the " + std::to_string(h3_heads(h)) +
                      " heads: choose a divisor, or 0 for one copy a head.",
                  {.model = "h3", .parameter = "n_ssm", .value = h.text("n_ssm"), .range = "a divisor of width / head_dim"});
    if (h.integer("state") % 2 && h.choice("mode") == "diag")
      throw Error("h3: state = " + h.text("state") + " is odd: it counts conjugate pairs, choose an even number.",
                  {.model = "h3", .parameter = "state", .value = h.text("state"), .range = "even"});
    if (h.choice("measure") == "diag" && h.choice("mode") == "diag" && h3_copies(h) % 2)
      throw Error("h3: measure = diag starts one half of the " + std::to_string(h3_copies(h)) +
                      " copies in another way than the other: choose an even number of them, or another measure.",
                  {.model = "h3", .parameter = "measure", .value = "diag", .range = "diag-lin or another of one kind"});
    parts::check_time_steps(h, "h3");
  };
  return a;
}

}  // namespace reclab::architectures
