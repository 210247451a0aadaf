// SPDX-License-Identifier: GPL-3.0-or-later
// The card of LSSL: conventions, options, names of other people's files.
#include "array/error.h"
#include "models/parts/layers/modal_filter.h"
#include "models/parts/layers/state_space.h"
#include "models/state_space/lssl/parameters.h"

namespace reclab::architectures {

Architecture lssl_card() {
  Architecture a;
  a.title = "LSSL";
  a.equations = {"x_t = Ā x_{t-1} + B̄ u_t,  y_t,m = C_m x_t + D_m u_t + E_m,  for each channel, m = 1 … M",
                 "Ā = (1 − αΔA)⁻¹ (1 + (1 − α)ΔA), B̄ = (1 − αΔA)⁻¹ ΔB, Δ = exp(log_dt) of each channel, α = ½",
                 "legs, legt, lagt, cheb, chebii, jac: A = −diag(pl)(T⁻¹ + diag(c))diag(pr), B = pl ⊙ b, T tridiagonal: dl, d, du",
                 "glagt, toep: A = −diag(c) L diag(c)⁻¹, L_ij = a_(i−j) for i ≥ j, B = c ⊙ b;  random: A = a, B = b",
                 "layer: W f([y_1; …; y_M]) + b"};
  a.notes = {
      "Names and shapes are those of the reference's Platypus (modules/lssl.py); y counts channel by channel, then read by read. Block and "
      "norm "
      "are the network's round it.",
      "dl and du have N + 1 entries, as in the reference, of which the first and the last stand nowhere: row i of T has dl_i, d_i, "
      "du_(i+1).",
      "learn: 0 and 1 share A and B among the channels, 2 has one of each a channel. With 0 the reference keeps them, and log_dt unless "
      "dt.learn, "
      "as buffers that it does not train; lagt is then A = −(L + a), L of ones from the diagonal down, and B = b, a and b single numbers.",
      "The start of LegS is exactly its matrix, A_nk = −√(2n+1)√(2k+1) below and −(n+1) on the diagonal; those of legt, cheb and chebii "
      "have "
      "noise on d.",
      "rate multiplies Δ in Ā and not in B̄, as where the reference meets a length other than its l_max.",
      "Noise and dropout act in training alone and are left out; weight_norm splits output_linear.weight into weight_g and weight_v.",
      "filter_modes: each read of the system is a sum of exponentials, h_t = p ⊙ h_{t−1} + u_t, read by Re Σ r_n h_t,n + direct u_t, "
      "channels counted as y is; a pole beyond the unit circle counts as p/|p|.",
      "gelu is exact and the block's norm a layer norm with epsilon 1e-5, before the layer by default."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 4096, "Channels; each is a system of its own.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
      hyper_integer("order", "N", 0, 0, 512, "State size a channel; 0: as many as the width.", "states"),
      hyper_integer("channels", "M", 1, 1, 64, "How often each system is read out.", "reads"),
      hyper_choice("measure", "legs", {"legs", "legt", "lagt", "glagt", "cheb", "chebii", "jac", "toep", "random"},
                   "What A and B are at the start, and which parameters they are made of."),
      hyper_choice("learn", "1", {"0", "1", "2"}, "Whether A and B are fixed (0), trained for all channels together (1), or for each (2)."),
      hyper_real("gbt_alpha", "α", 0.5, 0.0, 1.0, "The share of the new state in a step's slope: 0 is forward, ½ bilinear, 1 backward."),
      hyper_integer("rate", "", 1, 1, 1000, "How many steps of the training's sampling one step here is, in Ā alone."),
      initialisation_only(hyper_real("dt_min", "Δ_min", 0.001, 1e-6, 10.0, "Smallest time step at the start.", true)),
      initialisation_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-6, 10.0, "Largest time step at the start.", true)),
      initialisation_only(
          hyper_choice("dt_init", "random", {"random", "uniform"}, "Whether log Δ starts at random, or evenly from channel to channel.")),
      initialisation_only(
          hyper_choice("init", "normal", {"normal", "constant", "uniform"}, "How C starts, and D, which is normal for uniform.")),
      hyper_flag("bias", false, "Whether each read has a bias E."),
      hyper_choice("activation", "gelu", {"gelu", "id", "relu", "tanh", "sigmoid", "silu", "elu", "softplus"}, "f, after the system."),
      hyper_flag("ff", true, "Whether a linear map joins all channels and reads."),
      hyper_flag("weight_norm", false, "Whether that map's rows are a length times a direction."),
      initialisation_only(hyper_integer("diag_scale", "", 2, 0, 2, "Of legs: pl and pr start at √(2n+1) (2), √(n+1) (1) or 1 (0).")),
      initialisation_only(hyper_flag("diag_add", true, "Of legs: whether c starts at −n/(2n+1), or at −½.")),
      initialisation_only(
          hyper_integer("corners", "", 3, 0, 3, "Of legt: which corners of d start a half higher, the first (1), the last (2), both (3).")),
      initialisation_only(hyper_flag("halve", false, "Of jac: whether c starts at −½, or at 0.")),
      initialisation_only(hyper_flag("double_B", true, "Of jac: whether b starts at 2, or at 1.")),
      initialisation_only(hyper_real("alpha", "", 0.0, -0.9, 0.9, "Of glagt: the polynomials' exponent.")),
      initialisation_only(hyper_real("beta", "β", 1.0, 1e-4, 10.0,
                                     "Of glagt: how fast the weight falls (0.01 in the reference); of lagt with learn = 0: b.", true)),
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norm and residual, or the layer alone."),
      hyper_flag("prenorm", true, "Whether the norm comes before the layer (after the residual otherwise)."),
      parts::modal_filter_row()};
  a.spectrum = "eigenvalues of the discretised transition Ā of every channel, the same at every step";
  a.source = {"A. Gu, I. Johnson, K. Goel, K. Saab, T. Dao, A. Rudra, C. Ré",
              "Combining recurrent, convolutional, and continuous-time models with linear state-space layers", "NeurIPS",
              "https://arxiv.org/abs/2110.13985", 2021};
  a.reference = {{"transition.I", ""}, {"transition.ones", ""}, {"transition.arange", ""}, {"transition.e", ""}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    parts::check_time_steps(h, "lssl");
    if (!h.flag("ff") && h.integer("channels") > 1 && (h.choice("block") == "residual" || h.integer("layers") > 1))
      throw Error("lssl: ff = false leaves channels = " + h.text("channels") +
                      " reads a channel, which no residual and no next layer takes: choose ff = true, or block = none and layers = 1.",
                  {.model = "lssl", .parameter = "channels", .value = h.text("channels"), .range = "1 with ff = false"});
  };
  return a;
}

}  // namespace reclab::architectures
