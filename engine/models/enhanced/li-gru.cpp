// SPDX-License-Identifier: GPL-3.0-or-later
//   [a_t; z_t] = norm(W x_t) + U h_{t-1},   z = σ(z_t),   c = f(a_t)          f: relu, tanh, sine, leaky relu or identity
//   h_t = z ∘ h_{t-1} + (1 - z) ∘ c,   y_t = h_t
// M. Ravanelli, P. Brakel, M. Omologo, Y. Bengio, Light gated recurrent units for speech recognition, 2018. Names of SpeechBrain's LiGRU.
#include <cmath>

#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture li_gru() {
  Architecture a;
  a.title = "Li-GRU";
  a.equations = {"[a_t; z_t] = norm(W x_t) + U h_{t-1}", "z = σ(z_t),  c = f(a_t)", "h_t = z ⊙ h_{t-1} + (1 − z) ⊙ c", "y_t = h_t",
                 "gate=writes: h_t = (1 − z) ⊙ h_{t-1} + z ⊙ c"};
  a.notes = {
      "Parameters have the names and shapes of SpeechBrain's LiGRU_Layer (rnn.0.w.weight, rnn.0.u.weight, rnn.0.norm.weight, below any "
      "prefix), the candidate's rows first and the gate's second; its counts, masks and initial state are left aside.",
      "The batch norm is that of evaluation: its running mean and variance are numbers like the weights. In training the reference takes "
      "those of the batch and all its steps, which makes each step see the others.",
      "The norm acts on W x alone, never on U h; its shift stands for the biases. SpeechBrain's choice of no normalisation still applies a "
      "layer norm: load such weights with norm=layer.",
      "The dropout mask of the reference is 1 in evaluation. Its bidirectional layer uses the same weights both ways; here each direction "
      "has its own.",
      "gate=writes with activation=identity and norm=none is the light gated unit of textbooks: h_t = h_{t-1} + z ⊙ (A h_{t-1} + B x_t − "
      "h_{t-1}).",
      "The paper's batch norm is of W_a x and W_z x apart, which is the same numbers."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Number of units.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_choice("activation", "relu", {"relu", "tanh", "sin", "leaky_relu", "identity"},
                          "The nonlinearity f of the candidate; the slope of leaky_relu below 0 is 0.01."),
             hyper_choice("gate", "keeps", {"keeps", "writes"}, "What z multiplies: the old state, as in the paper, or the candidate."),
             hyper_choice("norm", "batch", {"batch", "layer", "none"}, "What W x goes through."),
             initialisation_only(hyper_choice("recurrent_init", "orthogonal", {"orthogonal", "uniform"},
                                              "How U starts: with orthonormal columns, or uniform in ±1/√H."))};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂h_t/∂h_{t-1}";
  a.source = {"M. Ravanelli, P. Brakel, M. Omologo, Y. Bengio", "Light gated recurrent units for speech recognition",
              "IEEE Transactions on Emerging Topics in Computational Intelligence 2", "https://arxiv.org/abs/1803.10225", 2018};
  a.reference = {{"rnn.{n}.*", "*"}, {"num_batches_tracked", ""}, {"h_init", ""}, {"drop_masks", ""}, {"drop_mask_te", ""}};

  a.input_weights = {{"w.weight"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1);
    const std::string norm = l.hyper.choice("norm"), f = l.hyper.choice("activation");
    const bool writes = l.hyper.choice("gate") == "writes";
    const Var W = l.parameter("w.weight", {2 * H, in}, parts::torch_uniform(in), "W, rows candidate gate; starts uniform in ±1/√in.");
    const Var U = l.parameter("u.weight", {2 * H, H},
                              l.hyper.choice("recurrent_init") == "orthogonal" ? init::orthogonal(1.0) : parts::torch_uniform(H),
                              "U, rows candidate gate; starts with orthonormal columns (or uniform in ±1/√H).");
    Var u = linear(x, W);
    if (norm == "batch") u = parts::batch_norm(l, "norm", 2 * H)(u);
    if (norm == "layer") u = parts::layer_norm(l, "norm", u);
    return step(l, {{"h", {H}, "The hidden state."}}, {u}, [=](Cell& cell, std::span<const Var> now, std::span<const Var> s) {
      const auto rows = split(linear(s[0], U, now[0]), -1, 2);
      const Var z = cell.gate("update", sigmoid(rows[1]), 0.0, 1.0,
                              writes ? "z: how much of the candidate is written." : "z: how much of the old state is kept.");
      const bool bounded = f == "tanh" || f == "sin";
      const Var candidate = parts::activation(f, rows[0]);
      cell.gate("candidate", candidate, bounded ? -1.0 : 0.0, bounded ? 1.0 : 0.0,
                bounded           ? "c: what may be written."
                : f == "identity" ? "c: what may be written; unbounded."
                                  : "c: what may be written; unbounded above.");
      return std::vector<Var>{writes ? (1.0 - z) * s[0] + z * candidate : z * s[0] + (1.0 - z) * candidate};
    })[0];
  };
  return a;
}

}  // namespace reclab::architectures
