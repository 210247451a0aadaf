// SPDX-License-Identifier: GPL-3.0-or-later
// The card of the LMU: conventions, options, names of other people's files.
#include "models/state_space/lmu/parameters.h"

namespace reclab::architectures {

Architecture lmu_card() {
  Architecture a;
  a.title = "LMU";
  a.equations = {
      "u_t = e_xᵀ x_t + e_hᵀ h_{t-1} + e_mᵀ m_{t-1}",    "m_t = Ā m_{t-1} + B̄ u_t, for each of M memories of order q",
      "Ā = exp(A), B̄ = A⁻¹(Ā − 1)B   (euler: 1 + A, B)", "A_ij = (2i+1)/θ · (−1 if i < j, (−1)^(i−j+1) otherwise), B_i = (2i+1)/θ · (−1)^i",
      "h_t = f(W_xᵀ x_t + W_hᵀ h_{t-1} + W_mᵀ m_t)",     "y_t = h_t; with hidden=none: y_t = [m_t, x_t]"};
  a.notes = {"Parameters have the names and the [in, out] storage of abr/neurips2019 lmu/lmu.py; m counts as [M, q], memory by memory.",
             "hidden_to_memory, memory_to_memory and input_to_hidden are on as in the original, and off by default in keras-lmu, whose "
             "kernel is input_encoders over hidden_encoders and whose recurrent_kernel is memory_encoders.",
             "Ā and B̄ are constants. With trainable_theta they are made of the parameter theta_inv = 1/θ [1], as in keras-lmu, which keeps "
             "it at 0 or above; it starts at 1/theta.",
             "The original replaces the hidden state's sum by 0 when include_bias is false; the equation of the paper is taken.",
             "m reconstructs the last θ steps of u: u(t − a) ≈ Σ m_i P_i(2a/θ − 1).",
             "dL/ds_t takes m_t and h_t as independent coordinates of the state after step t: dL/dm_t does not include m_t's way into h_t "
             "of the same step."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 4096, "Number of hidden units.", "units"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
      hyper_integer("order", "q", 16, 1, 256, "Legendre coefficients a memory: more follow faster changes.", "coefficients"),
      hyper_integer("memory", "M", 1, 1, 256, "Memories, each with a signal of its own.", "memories"),
      hyper_real("theta", "θ", 100.0, 0.1, 1e6, "The window that the memory holds.", true, "steps"),
      hyper_flag("trainable_theta", false, "Whether 1/θ is a parameter of each layer, which starts with the value of theta."),
      hyper_choice("hidden", "rnn", {"rnn", "none"}, "A nonlinear hidden state beside the memory, or the bare memory, which is linear."),
      hyper_flag("hidden_to_memory", true, "Whether h feeds the memory (where there is an h)."),
      hyper_flag("memory_to_memory", true, "Whether the memory feeds itself, beside Ā."),
      hyper_flag("input_to_hidden", true, "Whether the input reaches the hidden state directly, or with hidden=none the output."),
      hyper_flag("bias", false, "Whether the hidden state has a bias."),
      hyper_flag("memory_bias", false, "Whether the memory's signal has a bias."),
      hyper_choice("discretisation", "zoh", {"zoh", "euler"},
                   "From continuous to discrete time: zero-order hold, exact for held inputs, or Euler's step."),
      hyper_choice("activation", "tanh", {"tanh", "relu", "identity"}, "The hidden state's nonlinearity f.")};
  a.spectrum = "eigenvalues of ∂(m_t, h_t)/∂(m_{t-1}, h_{t-1}); with hidden=none of the memory's constant matrix";
  a.source = {"A. Voelker, I. Kajić, C. Eliasmith", "Legendre memory units: continuous-time representation in recurrent neural networks",
              "NeurIPS", "https://proceedings.neurips.cc/paper/2019/hash/952285b9b7e7a1be5aa7849f32ffff05-Abstract.html", 2019};
  return a;
}

}  // namespace reclab::architectures
