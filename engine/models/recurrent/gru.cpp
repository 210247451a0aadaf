// SPDX-License-Identifier: GPL-3.0-or-later
//   r = σ(W_ir x_t + b_ir + W_hr h_{t-1} + b_hr),   z = σ(W_iz x_t + b_iz + W_hz h_{t-1} + b_hz)
//   n = tanh(W_in x_t + b_in + r (W_hn h_{t-1} + b_hn))          reset after the product (PyTorch, cuDNN)
//   n = tanh(W_in x_t + b_in + W_hn (r h_{t-1}) + b_hn)          reset before it (Cho et al.)
//   h_t = (1 - z) n + z h_{t-1}, or z n + (1 - z) h_{t-1} with update=writes,   y_t = h_t
// K. Cho et al., Learning phrase representations using RNN encoder-decoder, EMNLP 2014. Same parameters as torch.nn.GRU.
#include <cmath>

#include "array/error.h"
#include "models/architecture.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture gru() {
  Architecture a;
  a.title = "GRU";
  a.equations = {"r = σ(W_ir x_t + b_ir + W_hr h_{t-1} + b_hr)", "z = σ(W_iz x_t + b_iz + W_hz h_{t-1} + b_hz)",
                 "n = tanh(W_in x_t + b_in + r ⊙ (W_hn h_{t-1} + b_hn))",
                 "h_t = (1 − z) ⊙ n + z ⊙ h_{t-1}, or z ⊙ n + (1 − z) ⊙ h_{t-1} with update=writes", "y_t = h_t"};
  a.notes = {
      "Parameters have the shapes of torch.nn.GRU; its own names (weight_ih_l0, weight_ih_l0_reverse and so on, below any prefix) are read "
      "too. Rows in the order reset, update, new.",
      "The reset gate acts after the product with W_hn, as in PyTorch and cuDNN; reset=before is Cho et al.'s n = tanh(W_in x + b_in + "
      "W_hn (r ⊙ h) + b_hn).",
      "z multiplies the old state, as in PyTorch and in Cho et al., EMNLP 2014, equation 7; with update=writes it multiplies the new "
      "value, as in Chung et al. 2014.",
      "Cho et al.'s network has no biases: reset=before, bias=no.",
      "bias_init=chrono (Tallec and Ollivier 2018) draws b_z = log u with u uniform from 1 to t_max − 1, −log u with update=writes, all "
      "other biases 0, in bias_ih; bias_hh is 0 then. Without input and state a unit's time constant is then 1 + u."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Number of units.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_choice("reset", "after", {"after", "before"}, "Whether the reset gate acts after or before the product with W_hn."),
             hyper_flag("bias", true, "Whether the two bias vectors exist."),
             hyper_choice("update", "keeps", {"keeps", "writes"}, "What the update gate multiplies: the old state or the new value."),
             initialisation_only(hyper_choice("bias_init", "uniform", {"uniform", "chrono"},
                                              "How biases start: uniform in ±1/√H, or from the time scales that are to be remembered.")),
             initialisation_only(
                 hyper_integer("t_max", "T_max", 784, 3, 1000000, "The longest time scale of the chrono initialisation.", "steps"))};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂h_t/∂h_{t-1}";
  a.source = {"K. Cho, B. van Merriënboer, C. Gulcehre, D. Bahdanau, F. Bougares, H. Schwenk, Y. Bengio",
              "Learning phrase representations using RNN encoder-decoder for statistical machine translation", "EMNLP",
              "https://arxiv.org/abs/1406.1078", 2014};
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
                 {"embedding.weight", ""}};
  a.check = [](const Hyper& h) {
    if (h.choice("bias_init") == "chrono" && !h.flag("bias"))
      throw Error("gru: bias_init = chrono, and bias = no leaves no bias to start: choose bias = yes or bias_init = uniform.",
                  {.model = "gru", .parameter = "bias_init", .value = "chrono", .range = "uniform without biases"});
  };

  a.input_weights = {{"weight_ih"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width");
    const double k = 1.0 / std::sqrt(static_cast<double>(H));
    const bool bias = l.hyper.flag("bias"), after = l.hyper.choice("reset") == "after", keeps = l.hyper.choice("update") == "keeps";
    const Var W_ih = l.parameter("weight_ih", {3 * H, x.dim(-1)}, init::uniform(-k, k), "W_ih, rows r z n; starts uniform in ±1/√H.");
    const Var W_hh = l.parameter("weight_hh", {3 * H, H}, init::uniform(-k, k), "W_hh, rows r z n; starts uniform in ±1/√H.");
    Var u = linear(x, W_ih);
    Var b_hh;
    if (bias) {
      const bool chrono = l.hyper.choice("bias_init") == "chrono";
      const double longest = static_cast<double>(l.hyper.integer("t_max"));
      const Init from_scales = init::each([=](Rng& rng, std::int64_t row) {
        return row / H != 1 ? 0.0 : (keeps ? 1.0 : -1.0) * std::log(rng.uniform(1.0, longest - 1.0));
      });
      u = u + l.parameter("bias_ih", {3 * H}, chrono ? from_scales : init::uniform(-k, k),
                          "b_ih, rows r z n; starts uniform in ±1/√H, or by chrono.");
      b_hh = l.parameter("bias_hh", {3 * H}, chrono ? init::constant(0.0) : init::uniform(-k, k),
                         "b_hh, rows r z n; starts uniform in ±1/√H, or at 0 by chrono; its n rows lie inside the reset product.");
    }
    return step(l, {{"h", {H}, "The hidden state."}}, {u}, [=](Cell& cell, std::span<const Var> u_t, std::span<const Var> s) {
      const Var h = s[0];
      const auto x_parts = split(u_t[0], -1, 3);
      Var r, z, n;
      const auto gate_r = [&](Var value) {
        return cell.gate("reset", sigmoid(value), 0.0, 1.0, "r: how much of the old state the candidate sees.");
      };
      const auto gate_z = [&](Var value) {
        return cell.gate("update", sigmoid(value), 0.0, 1.0,
                         keeps ? "z: how much of the old state is kept." : "z: how much of the new value is written.");
      };
      if (after) {
        const auto h_parts = split(linear(h, W_hh, b_hh), -1, 3);
        r = gate_r(x_parts[0] + h_parts[0]);
        z = gate_z(x_parts[1] + h_parts[1]);
        n = tanh(x_parts[2] + r * h_parts[2]);
      } else {
        const auto h_parts = split(linear(h, slice(W_hh, 0, 0, 2 * H), bias ? slice(b_hh, 0, 0, 2 * H) : Var{}), -1, 2);
        r = gate_r(x_parts[0] + h_parts[0]);
        z = gate_z(x_parts[1] + h_parts[1]);
        n = tanh(x_parts[2] + linear(r * h, slice(W_hh, 0, 2 * H, 3 * H), bias ? slice(b_hh, 0, 2 * H, 3 * H) : Var{}));
      }
      cell.gate("candidate", n, -1.0, 1.0, "n: what may be written.");
      return std::vector<Var>{keeps ? (1.0 - z) * n + z * h : z * n + (1.0 - z) * h};
    })[0];
  };
  return a;
}

}  // namespace reclab::architectures
