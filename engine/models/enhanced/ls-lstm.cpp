// SPDX-License-Identifier: GPL-3.0-or-later
//   [a v] = x_t U + d,   s_t = σ(a) s_{t-1} + (1 - σ(a)) tanh v
//   [f i o z] = [s_t; x_t] W + b,   c_t = σ(f) c_{t-1} + σ(i) tanh z,   y_t = σ(o) c_t
// E. Martin, C. Cundy, Parallelizing linear recurrent neural nets over sequence length, ICLR 2018 (GILR-LSTM). Parameters of
// eamartin/parallelizing_linear_rnns.
#include <cmath>

#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {

Architecture ls_lstm() {
  Architecture a;
  a.title = "LS-LSTM (GILR-LSTM)";
  a.equations = {"[a v] = x_t U + d,  g_t = σ(a)", "s_t = g_t ⊙ s_{t-1} + (1 − g_t) ⊙ tanh(v)", "[f i o z] = [s_t; x_t] W + b",
                 "c_t = σ(f) ⊙ c_{t-1} + σ(i) ⊙ tanh(z)", "y_t = σ(o) ⊙ c_t"};
  a.notes = {
      "Names and shapes are those of linear_surrogate_lstm in the authors' code: gilr.fc.W [in, 2H] with columns gate, impulse, and fc.W "
      "[H + in, 4H] with rows s, then x, and columns f, i, o, z; both are multiplied from the right. Their scopes lin_sur_lstm/gilr/fc, "
      "lin_sur_lstm/fc (pre_fc in layers_new.py), lin_sur_lstm_1/… are read too.",
      "There is no tanh on the cell where it is shown.",
      "Spectrum and ds_T/ds_t are those of both recurrences, each with what it is written with and gated by held: eigenvalues of the whole "
      "step are the same, but the way from an earlier s through the gates to c is not in ds_T/ds_t.",
      "layers.py leaves all weights and biases to TensorFlow's Glorot start (init=glorot); layers_new.py starts weights in ±0.05, biases "
      "at 0 and the forget bias at 5 (init=small)."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 4096, "Number of cells, and of units of the surrogate.", "units"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
      initialisation_only(hyper_choice("init", "glorot", {"glorot", "small"},
                                       "How weights and biases start: uniform in ±√(6/(in + out)), or weights in ±0.05 and biases at 0.")),
      initialisation_only(
          hyper_real("forget_bias", "b_f", 0.0, -10.0, 10.0, "Added to the forget gate's bias at the start; 5 in layers_new.py."))};
  a.spectrum = "the gates g_t and σ(f), the transitions of both recurrences";
  a.source = {"E. Martin, C. Cundy", "Parallelizing linear recurrent neural nets over sequence length", "ICLR",
              "https://arxiv.org/abs/1709.04057", 2018};
  a.reference = {{"lin_sur_lstm{_n}/gilr/fc/W", "gilr.fc.W"}, {"lin_sur_lstm{_n}/gilr/fc/b", "gilr.fc.b"},
                 {"lin_sur_lstm{_n}/fc/W", "fc.W"},           {"lin_sur_lstm{_n}/fc/b", "fc.b"},
                 {"lin_sur_lstm{_n}/pre_fc/W", "fc.W"},       {"lin_sur_lstm{_n}/pre_fc/b", "fc.b"}};

  a.input_weights = {{"gilr.fc.W"}, {"fc.W", InputWeight::Part::last_rows}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1);
    const bool glorot = l.hyper.choice("init") == "glorot";
    const double forget = l.hyper.real("forget_bias"), bound = std::sqrt(6.0 / static_cast<double>(8 * H));
    const auto weight = [&](const std::string& name, std::int64_t rows, std::int64_t columns, const std::string& text) {
      return l.parameter(name, {rows, columns}, glorot ? parts::xavier_uniform(rows, columns) : init::uniform(-0.05, 0.05),
                         text + "; starts uniform in ±√(6/(rows + columns)), or in ±0.05.");
    };
    const Var U = weight("gilr.fc.W", in, 2 * H, "U, columns gate, then impulse");
    const Var d = l.parameter("gilr.fc.b", {2 * H}, glorot ? parts::xavier_uniform(2 * H, 2 * H) : init::constant(0.0),
                              "d, gate, then impulse; starts uniform in ±√(3/(2H)), or at 0.");
    const Var W = weight("fc.W", H + in, 4 * H, "W, rows s, then x, columns f i o z");
    const Var b = l.parameter("fc.b", {4 * H}, init::each([=](Rng& rng, std::int64_t at) {
                                return (glorot ? rng.uniform(-bound, bound) : 0.0) + (at < H ? forget : 0.0);
                              }),
                              "b, in the order f i o z; starts uniform in ±√(3/(4H)), or at 0, the forget part plus forget_bias.");
    const auto own = split(matmul(x, U) + d, -1, 2);
    const Var g = l.gate("surrogate", sigmoid(own[0]), 0.0, 1.0, "g_t: how much of s is kept; the rest of it is replaced.");
    const Var s =
        diagonal(l, {"s", {H}, "The linear surrogate of the hidden state, which the gates see."}, g, sigmoid(-own[0]) * tanh(own[1]));
    const Var seen[] = {s, x};
    const auto rows = split(matmul(concat(seen, -1), W) + b, -1, 4);
    const Var f = l.gate("forget", sigmoid(rows[0]), 0.0, 1.0, "σ(f): how much of the cell is kept.");
    const Var i = l.gate("input", sigmoid(rows[1]), 0.0, 1.0, "σ(i): how much of the candidate is written.");
    const Var o = l.gate("output", sigmoid(rows[2]), 0.0, 1.0, "σ(o): how much of the cell is shown.");
    const Var z = l.gate("candidate", tanh(rows[3]), -1.0, 1.0, "tanh(z): what may be written.");
    return o * diagonal(l, {"c", {H}, "The cell: what the forget gate keeps."}, f, i * z);
  };
  return a;
}

}  // namespace reclab::architectures
