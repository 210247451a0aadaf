// SPDX-License-Identifier: GPL-3.0-or-later
//   z_t = tanh(W_z x_t + w_z ⊙ c_{t-1} + b_z),   f_t = σ(W_f x_t + w_f ⊙ c_{t-1} + b_f)
//   c_t = f_t ⊙ c_{t-1} + (1 - f_t) ⊙ z_t,       y_t = σ(W_o [x_t; c_t] + b_o) ⊙ c_t
// K. Irie, A. Gopalakrishnan, J. Schmidhuber, Exploring the promise and limits of real-time recurrent learning, ICLR 2024. Parameters of
// IDSIA/rtrl-elstm.
#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture elstm() {
  Architecture a;
  a.title = "eLSTM";
  a.equations = {"z_t = tanh(W_z x_t + w_z ⊙ c_{t-1} + b_z)", "f_t = σ(W_f x_t + w_f ⊙ c_{t-1} + b_f)",
                 "c_t = f_t ⊙ c_{t-1} + (1 − f_t) ⊙ z_t", "y_t = σ(W_o [x_t; c_t] + b_o) ⊙ c_t",
                 "∂c_t/∂c_{t-1} = diag(f_t + (1 − f_t)(1 − z_t²) w_z + (c_{t-1} − z_t) f_t (1 − f_t) w_f)"};
  a.notes = {
      "Names and shapes are those of the authors' copy task, where the cell is rnn_func (wm_z, wm_f [H, in]; wv_z, wv_f, bias_z, bias_f "
      "[1, H]) and output_gate reads the input first, then the cell; out_layer is the head.",
      "Each cell sees itself alone, so that the influence of a weight on the state is one number: real-time recurrent learning is exact in "
      "one layer for the price of a few copies of the weights (rule diagonal-rtrl). Through a second layer it is not.",
      "The authors' other programs have the output gate inside the layer and add a residual connection; forget_bias is 0 in theirs."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Number of cells.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             initialisation_only(hyper_real("forget_bias", "b_f", 0.0, -10.0, 10.0,
                                            "Added to the forget gate's bias at the start: larger keeps memories longer."))};
  a.spectrum = "the diagonal of the Jacobian ∂c_t/∂c_{t-1}: an entry a cell";
  a.source = {"K. Irie, A. Gopalakrishnan, J. Schmidhuber", "Exploring the promise and limits of real-time recurrent learning", "ICLR",
              "https://arxiv.org/abs/2305.19044", 2024};
  a.reference = {{"rnn_func.*", "*"}, {"out_layer.weight", "head/weight"}, {"out_layer.bias", "head/bias"}, {"embedding.weight", ""}};

  a.input_weights = {{"wm_z"}, {"wm_f"}, {"output_gate.weight", InputWeight::Part::first_columns}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1);
    const double forget = l.hyper.real("forget_bias");
    const Init small = init::normal(0.1);
    const Init opened = init::each([=](Rng& rng, std::int64_t) { return 0.1 * rng.normal() + forget; });
    const Var W_z = l.parameter("wm_z", {H, in}, small, "W_z, from the input to the candidate; starts normal of deviation 0.1.");
    const Var W_f = l.parameter("wm_f", {H, in}, small, "W_f, from the input to the forget gate; starts normal of deviation 0.1.");
    const Var w_z = l.parameter("wv_z", {1, H}, small, "w_z: what each candidate sees of its cell; starts normal of deviation 0.1.");
    const Var w_f = l.parameter("wv_f", {1, H}, small, "w_f: what each forget gate sees of its cell; starts normal of deviation 0.1.");
    const Var b_z = l.parameter("bias_z", {1, H}, small, "b_z; starts normal of deviation 0.1.");
    const Var b_f = l.parameter("bias_f", {1, H}, opened, "b_f; starts normal of deviation 0.1, plus forget_bias.");
    const Var c = step(
        l, {{"c", {H}, "The cell: what the forget gate keeps."}}, {linear(x, W_z) + b_z, linear(x, W_f) + b_f},
        [=](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
          const Var raw = u[1] + w_f * s[0];
          const Var z = cell.gate("candidate", tanh(u[0] + w_z * s[0]), -1.0, 1.0, "z_t: what may be written.");
          const Var f = cell.gate("forget", sigmoid(raw), 0.0, 1.0, "f_t: how much of the cell is kept; the rest of it is replaced.");
          return std::vector<Var>{f * s[0] + sigmoid(-raw) * z};  // near 1 the difference 1 − f would lose its digits
        },
        Sees::own_entry)[0];
    const Var o = sigmoid(parts::linear(l, "output_gate", concat(std::vector<Var>{x, c}, -1), H, "W_o, columns x_t, then c_t"));
    return l.gate("output", o, 0.0, 1.0, "How much of the cell is shown.") * c;
  };
  return a;
}

}  // namespace reclab::architectures
