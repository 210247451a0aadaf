// SPDX-License-Identifier: GPL-3.0-or-later
//   [f r z o] = W x_t + b + U h_{t-1} + d,   f ← σ(f + β),  r ← σ(r - β)
//   g_t = r (1 - (1 - f)²) + (1 - r) f²,   c_t = g_t c_{t-1} + (1 - g_t) tanh z,   h_t = σ(o) tanh c_t,   y_t = h_t
// A. Gu, C. Gulcehre, T. Paine, M. Hoffman, R. Pascanu, Improving the gating mechanism of recurrent neural networks, ICML 2020. Parameters
// of r0mainK/ur-lstm.
#include <cmath>

#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture ur_lstm() {
  Architecture a;
  a.title = "UR-LSTM";
  a.equations = {"[f r z o] = W x_t + b + U h_{t-1} + d", "f ← σ(f + β),  r ← σ(r − β), or σ(r) with refine_bias=no",
                 "g_t = r (1 − (1 − f)²) + (1 − r) f², or f with refine=no",
                 "c_t = g_t ⊙ c_{t-1} + (1 − g_t) ⊙ tanh(z), or (1 − g_t) ⊙ c_{t-1} + g_t ⊙ tanh(z) with gate=writes",
                 "h_t = σ(o) ⊙ tanh(c_t),  y_t = h_t"};
  a.notes = {
      "Names and shapes are those of ur_lstm's URLSTMCell: igates.* and hgates.* with rows f, r, z, o (f, z, o with refine=no), and "
      "forget_bias, which is β.",
      "β starts at log(u/(1 − u)) with u uniform from 1/H to 1 − 1/H, so that f starts uniform in (0, 1): a time scale for each unit.",
      "The authors' own gate.py has another convention: g multiplies the new value (gate=writes), its β, which starts at −log(u/(1 − u)), "
      "the same in law, is not trained, and r has no bias (refine_bias=no).",
      "The gate g lies between f² and 1 − (1 − f)²; the input gate is 1 − g, without which the derivation does not hold."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Number of cells.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_flag("refine", true, "Whether the refine gate moves the forget gate within its band; without, g is f, the plain gate."),
             hyper_flag("refine_bias", true, "Whether the refine gate has the bias −β."),
             hyper_choice("gate", "keeps", {"keeps", "writes"},
                          "What g multiplies: the old cell, as in the paper's LSTM, or the new value, as in gate.py.")};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂(h_t, c_t)/∂(h_{t-1}, c_{t-1})";
  a.source = {"A. Gu, C. Gulcehre, T. Paine, M. Hoffman, R. Pascanu", "Improving the gating mechanism of recurrent neural networks", "ICML",
              "https://arxiv.org/abs/1910.09890", 2020};
  a.reference = {{"layers.{n}.*", "*"}};

  a.input_weights = {{"igates.weight"}};
  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const std::int64_t H = h.integer("width");
    const double k = 1.0 / std::sqrt(static_cast<double>(H));
    const bool refine = h.flag("refine"), refine_bias = h.flag("refine_bias"), keeps = h.choice("gate") == "keeps";
    const std::int64_t rows = refine ? 4 : 3;
    const std::string order = refine ? "rows f r z o" : "rows f z o";
    const Init flat = init::uniform(-k, k);
    const Var W = l.parameter("igates.weight", {rows * H, x.dim(-1)}, flat, "W, " + order + "; starts uniform in ±1/√H.");
    const Var b = l.parameter("igates.bias", {rows * H}, flat, "b, " + order + "; starts uniform in ±1/√H.");
    const Var U = l.parameter("hgates.weight", {rows * H, H}, flat, "U, " + order + "; starts uniform in ±1/√H.");
    const Var d = l.parameter("hgates.bias", {rows * H}, flat, "d, " + order + "; starts uniform in ±1/√H.");
    const double least = 1.0 / static_cast<double>(H);
    const Var beta = l.parameter("forget_bias", {H}, init::each([=](Rng& rng, std::int64_t) {
                                   const double u = H > 2 ? rng.uniform(least, 1.0 - least) : 0.5;
                                   return -std::log(1.0 / u - 1.0);
                                 }),
                                 "β, the bias of f and, negated, of r; starts at log(u/(1 − u)), u uniform from 1/H to 1 − 1/H.");
    const Var tokens = linear(x, W, b + d);
    return step(
        l, {{"h", {H}, "The hidden state: what is read out and fed back."}, {"c", {H}, "The cell: what the gate keeps."}}, {tokens},
        [=](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
          const auto all = split(linear(s[0], U, u[0]), -1, rows);
          // The complements to 1 have sigmoids of their own: a difference would lose its digits near 1.
          const Var raw = all[0] + beta;
          const Var f = cell.gate("forget", sigmoid(raw), 0.0, 1.0, "f: the plain gate."), q = sigmoid(-raw);
          Var g = f, rest = q;
          if (refine) {
            const Var own = refine_bias ? all[1] - beta : all[1];
            const Var r = cell.gate("refine", sigmoid(own), 0.0, 1.0, "r: where in its band, from f² to 1 − (1 − f)², the gate lies."),
                      p = sigmoid(-own);
            g = f * (r * (1.0 + q) + p * f);
            rest = q * (r * q + p * (1.0 + f));
          }
          cell.gate("effective", g, 0.0, 1.0,
                    keeps ? "g: how much of the cell is kept; the rest of it is replaced."
                          : "g: how much of the cell is replaced; the rest of it is kept.");
          const Var z = cell.gate("candidate", tanh(all[static_cast<std::size_t>(rows - 2)]), -1.0, 1.0, "tanh(z): what may be written.");
          const Var o =
              cell.gate("output", sigmoid(all[static_cast<std::size_t>(rows - 1)]), 0.0, 1.0, "σ(o): how much of the cell is shown.");
          const Var c = keeps ? g * s[1] + rest * z : rest * s[1] + g * z;
          return std::vector<Var>{o * tanh(c), c};
        })[0];
  };
  return a;
}

}  // namespace reclab::architectures
