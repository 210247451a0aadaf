// SPDX-License-Identifier: GPL-3.0-or-later
//   A = Λ - P P*, Ā = (1 - Δ/2 A)⁻¹(1 + Δ/2 A), B̄ = (1 - Δ/2 A)⁻¹ Δ B,   h_t = Ā h_{t-1} + B̄ u_t (one such system a channel)
//   y_t = 2 Re(C h_t) + D u_t,   layer: GLU(W gelu(y) + b),   block: x + layer(norm(x)), or norm(x + layer(x))
// A. Gu, K. Goel, C. Ré, Efficiently modeling long sequences with structured state spaces, ICLR 2022.
// Names and conventions of state-spaces/s4 (kernels/ssm.py, SSMKernelDPLR; modules/s4block.py).
#include "models/parts/layers/low_rank_layer.h"

namespace reclab::architectures {

Architecture s4() {
  Architecture a;
  a.title = "S4";
  a.equations = {
      "A = Λ − P P*, Λ = −exp(A_real) − i A_imag and its conjugates  (rank: a sum of such terms)",
      "Ā = (1 − Δ/2 A)⁻¹(1 + Δ/2 A), B̄ = (1 − Δ/2 A)⁻¹ Δ B, Δ = exp(inv_dt)",
      "h_t = Ā h_{t-1} + B̄ u_t, N modes a channel, of which one of each conjugate pair is stored",
      "y_t = 2 Re Σ_n C_n h_t,n + D u_t, for each of channels rows of C and D;  l_kernel = L > 0: with (1 − Ā^L)⁻ᵀ C in place of C",
      "bidirectional: y_t + 2 Re Σ_{s>t} Σ_n C'_n h'_n with h' of the steps after t, last one first; low_rank=free: A = Λ − P Qᵀ",
      "layer: v = W gelu(y_t) + b, out = v₁ ⊙ σ(v₂)"};
  a.notes = {
      "Names and shapes are those of the reference's SSMKernelDPLR and S4Block without layer. and kernel., and output_linear without .0; "
      "the last axis of B, P, C is re, im.",
      "C is the readout of the recurrence; the reference overwrites its C with C̃ = (1 − Ā^L)ᵀ C at its first forward pass and trains that. "
      "For weights that were saved later, set l_kernel to the reference's buffer of that name: C is then C̃.",
      "B starts as the eigenvectors' V* B. The reference's has another phase, that of eigenvectors whose first entry is real, and its "
      "imaginary part there is cut to ±2, which B_clip=2 does here too; P is not cut.",
      "Channel h uses copy h mod n_ssm of A, B, P.",
      "bidirectional: C has a second row, for the steps that are still to come; it begins with the next step, as the reference's does on "
      "purpose, and the layer has one D and one output map.",
      "low_rank = free is the first version of the reference, which kept Q for itself and Re Λ unbounded (real_transform = none); Q starts "
      "as the conjugate of P. With "
      "tied and exp all eigenvalues of A have negative real parts, which is the Hurwitz form of SaShiMi.",
      "rank > 1: A = Λ − Σ_r P_r P_r*, a row of P a term. channels > 1: C has a row a read (those of the backward direction after the "
      "others) and D too; the output map "
      "takes the reads side by side. The state of either is kept as real numbers, all real parts before all imaginary ones, and a step "
      "goes through the real N × N matrix.",
      "init = legt, lagt or fourier start from the real part 0 of these measures' diagonal, which is kept as 1e-4, as in the reference, "
      "whose fout fourier is.",
      "dt_tie = no has a time step for each mode, Δ A with Δ diagonal.",
      "real_transform relu adds 1e-4, as the reference does.",
      "Ā is a diagonal less a product of two vectors, so a step costs O(N) a channel; the forms scan and convolution go through the real N "
      "× N matrix.",
      "The stored half alone is not moved by a complex matrix: spectrum and ds_T/ds_t are those of all N modes, as of the real map of (Re "
      "h, Im h).",
      "gelu is exact and the block's norm a layer norm with epsilon 1e-5, before the layer by default."};
  a.hyper = parts::low_rank_layer_hyper(false);
  a.spectrum = "eigenvalues of the discretised transition Ā of every channel, all N of them, the same at every step";
  a.source = {"A. Gu, K. Goel, C. Ré", "Efficiently modeling long sequences with structured state spaces", "ICLR",
              "https://arxiv.org/abs/2111.00396", 2022};
  a.reference = {{"kernel.l_kernel", ""},
                 {"layers.{n}.layer.layer.kernel.*", "*"},
                 {"layers.{n}.layer.layer.D", "D"},
                 {"layers.{n}.layer.output_linear.0.*", "output_linear.*"},
                 {"layers.{n}.norm.norm.*", "norm.*"},
                 {"s4_layers.{n}.layer.kernel.*", "*"},
                 {"s4_layers.{n}.layer.D", "D"},
                 {"s4_layers.{n}.output_linear.0.*", "output_linear.*"},
                 {"norms.{n}.*", "norm.*"},
                 {"layer.kernel.*", "*"},
                 {"layer.D", "D"},
                 {"kernel.*", "*"},
                 {"output_linear.0.*", "output_linear.*"}};
  parts::make_low_rank_layer(a, {.id = "s4", .read = parts::low_rank_modes});
  return a;
}

}  // namespace reclab::architectures
