// SPDX-License-Identifier: GPL-3.0-or-later
//   [i f g o] = W_ih x_t + b_ih + W_hh h_{t-1} + b_hh
//   c_t = σ(f) c_{t-1} + σ(i) tanh(g),   h_t = [W_hr] (σ(o) tanh(c_t)),   y_t = h_t
// S. Hochreiter, J. Schmidhuber, Long short-term memory, Neural Computation 9 (1997); forget gate: F. Gers et al. (2000);
// projection: H. Sak et al. (2014). Same parameters as torch.nn.LSTM. Peepholes: F. Gers, J. Schmidhuber (2000), as in TensorFlow's
// LSTMCell; chrono initialisation: C. Tallec, Y. Ollivier (2018).
#include <cmath>

#include "array/error.h"
#include "models/architecture.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture lstm() {
  Architecture a;
  a.title = "LSTM";
  a.equations = {"[i f g o] = W_ih x_t + b_ih + W_hh h_{t-1} + b_hh",
                 "with peepholes i ← i + p_i ⊙ c_{t-1},  f ← f + p_f ⊙ c_{t-1},  o ← o + p_o ⊙ c_t",
                 "c_t = σ(f) ⊙ c_{t-1} + σ(i) ⊙ tanh(g)", "h_t = σ(o) ⊙ tanh(c_t), or W_hr times it with a projection", "y_t = h_t"};
  a.notes = {
      "Parameters have the shapes of torch.nn.LSTM; its own names (weight_ih_l0, weight_ih_l0_reverse and so on, below any prefix) are "
      "read too. Rows in the order input, forget, cell, output.",
      "PyTorch has no forget bias: set forget_bias=0 for its initialisation; the value is added to the forget rows of bias_ih when they "
      "are drawn, not when the model runs.",
      "Peepholes are TensorFlow's LSTMCell's w_i_diag, w_f_diag and w_o_diag: input and forget gate see the old cell, the output gate the "
      "new one. ONNX has them in one array, in the order i, o, f.",
      "bias_init=chrono draws b_f = log u with u uniform from 1 to t_max − 1 and sets b_i = −b_f, all other biases 0, in bias_ih; bias_hh "
      "is 0 then, and forget_bias does nothing. Without input and state the cell's time constant 1/(1 − σ(b_f)) = 1 + u is then uniform "
      "from 2 to t_max.",
      "dL/ds_t takes h_t and c_t as independent coordinates of the state after step t: dL/dc_t does not include c_t's way to y_t within "
      "the same step."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Number of cells.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             initialisation_only(hyper_real("forget_bias", "b_f", 1.0, -10.0, 10.0,
                                            "Added to the forget gate's bias at the start: larger keeps memories longer.")),
             hyper_flag("bias", true, "Whether the two bias vectors exist."),
             hyper_integer("projection", "P", 0, 0, 4096, "Size that h is projected to (proj_size in PyTorch); 0: no projection.", "units"),
             hyper_flag("peepholes", false, "Whether the gates see the cell, each unit its own."),
             initialisation_only(hyper_choice("bias_init", "uniform", {"uniform", "chrono"},
                                              "How biases start: uniform in ±1/√H, or from the time scales that are to be remembered.")),
             initialisation_only(
                 hyper_integer("t_max", "T_max", 784, 3, 1000000, "The longest time scale of the chrono initialisation.", "steps"))};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂(h_t, c_t)/∂(h_{t-1}, c_{t-1})";
  a.source = {"S. Hochreiter, J. Schmidhuber", "Long short-term memory", "Neural Computation 9",
              "https://doi.org/10.1162/neco.1997.9.8.1735", 1997};
  a.reference = {{"weight_ih_l{n}{_reverse}", "weight_ih"},
                 {"weight_hh_l{n}{_reverse}", "weight_hh"},
                 {"bias_ih_l{n}{_reverse}", "bias_ih"},
                 {"bias_hh_l{n}{_reverse}", "bias_hh"},
                 {"w_ih", "weight_ih"},
                 {"w_hh", "weight_hh"},
                 {"b_ih", "bias_ih"},
                 {"b_hh", "bias_hh"},
                 {"emb", ""},
                 {"emb.weight", ""},
                 {"embedding.weight", ""},
                 {"weight_hr_l{n}{_reverse}", "weight_hr"}};
  a.check = [](const Hyper& h) {
    if (h.choice("bias_init") == "chrono" && !h.flag("bias"))
      throw Error("lstm: bias_init = chrono, and bias = no leaves no bias to start: choose bias = yes or bias_init = uniform.",
                  {.model = "lstm", .parameter = "bias_init", .value = "chrono", .range = "uniform without biases"});
  };

  a.input_weights = {{"weight_ih"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), projection = l.hyper.integer("projection"), P = projection ? projection : H;
    const double k = 1.0 / std::sqrt(static_cast<double>(H)), forget = l.hyper.real("forget_bias");
    const Var W_ih = l.parameter("weight_ih", {4 * H, x.dim(-1)}, init::uniform(-k, k), "W_ih, rows i f g o; starts uniform in ±1/√H.");
    const Var W_hh = l.parameter("weight_hh", {4 * H, P}, init::uniform(-k, k), "W_hh, rows i f g o; starts uniform in ±1/√H.");
    Var bias;
    if (l.hyper.flag("bias")) {
      const bool chrono = l.hyper.choice("bias_init") == "chrono";
      const double longest = static_cast<double>(l.hyper.integer("t_max"));
      const Init from_scales = [=](InitContext& c) {
        for (std::int64_t j = 0; j < H; ++j) {
          const double b = std::log(c.rng.uniform(1.0, longest - 1.0));
          c.values[static_cast<std::size_t>(H + j)] = b;
          c.values[static_cast<std::size_t>(j)] = -b;
        }
      };
      const Init with_forget =
          init::each([=](Rng& rng, std::int64_t row) { return rng.uniform(-k, k) + (row >= H && row < 2 * H ? forget : 0.0); });
      const Var b_ih = l.parameter("bias_ih", {4 * H}, chrono ? from_scales : with_forget,
                                   "b_ih, rows i f g o; starts uniform in ±1/√H, the forget rows plus forget_bias, or by chrono.");
      const Var b_hh = l.parameter("bias_hh", {4 * H}, chrono ? init::constant(0.0) : init::uniform(-k, k),
                                   "b_hh, rows i f g o; starts uniform in ±1/√H, or at 0 by chrono.");
      bias = b_ih + b_hh;
    }
    const Var u = linear(x, W_ih, bias);
    const Var W_hr =
        projection ? l.parameter("weight_hr", {P, H}, init::uniform(-k, k), "W_hr, the projection of h; starts uniform in ±1/√H.") : Var{};
    Var p_i, p_f, p_o;
    if (l.hyper.flag("peepholes")) {
      const auto peephole = [&](const std::string& gate) {
        return l.parameter("w_" + gate + "_diag", {H}, init::uniform(-k, k),
                           "p_" + gate + ", what the gate sees of its unit's cell; starts uniform in ±1/√H.");
      };
      p_i = peephole("i");
      p_f = peephole("f");
      p_o = peephole("o");
    }
    return step(l, {{"h", {P}, "The hidden state: what is read out and fed back."}, {"c", {H}, "The cell: what the forget gate keeps."}},
                {u}, [=](Cell& cell, std::span<const Var> u_t, std::span<const Var> s) {
                  const auto gates = split(linear(s[0], W_hh, u_t[0]), -1, 4);
                  const auto with = [](Var gate, Var peephole, Var c) { return peephole ? gate + peephole * c : gate; };
                  const auto output = [&](Var value) {
                    return cell.gate("output", sigmoid(value), 0.0, 1.0, "σ(o): how much of the cell is shown.");
                  };
                  const Var i =
                      cell.gate("input", sigmoid(with(gates[0], p_i, s[1])), 0.0, 1.0, "σ(i): how much of the candidate is written.");
                  const Var f = cell.gate("forget", sigmoid(with(gates[1], p_f, s[1])), 0.0, 1.0, "σ(f): how much of the cell is kept.");
                  const Var g = cell.gate("candidate", tanh(gates[2]), -1.0, 1.0, "tanh(g): what may be written.");
                  Var o = p_o ? Var{} : output(gates[3]);
                  const Var c = f * s[1] + i * g;
                  if (p_o) o = output(with(gates[3], p_o, c));
                  const Var h = o * tanh(c);
                  return std::vector<Var>{W_hr ? linear(h, W_hr) : h, c};
                })[0];
  };
  return a;
}

}  // namespace reclab::architectures
