// SPDX-License-Identifier: GPL-3.0-or-later
//   [z f o] = W [x_t; x_{t-1}; ...] + b            (ifo pooling: [z i f o])
//   c_t = f_t c_{t-1} + (1 - f_t) tanh z_t         (ifo: + σ(i_t) tanh z_t),   f_t = 1 - σ(f), or σ(f) with gate=keeps
//   y_t = σ(o_t) c_t                               (f pooling: c_t)
// J. Bradbury, S. Merity, C. Xiong, R. Socher, Quasi-recurrent neural networks, ICLR 2017. Parameters of salesforce/pytorch-qrnn.
#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {

Architecture qrnn() {
  Architecture a;
  a.title = "QRNN";
  a.equations = {"[z f o] = W [x_t; x_{t-1}; …] + b;  with ifo pooling [z i f o], with f pooling [z f]",
                 "f_t = 1 − σ(f), or σ(f) with gate=keeps",
                 "c_t = f_t ⊙ c_{t-1} + (1 − f_t) ⊙ tanh(z);  with ifo pooling f_t ⊙ c_{t-1} + σ(i) ⊙ tanh(z)",
                 "y_t = σ(o) ⊙ c_t;  with f pooling c_t", "∂c_t/∂c_{t-1} = diag(f_t)"};
  a.notes = {
      "Names and shapes are those of QRNNLayer in pytorch-qrnn: linear.weight [gates × H, window × in], columns x_t first, then x_{t-1}, "
      "and so on; inputs before the first are 0.",
      "Rows are z, f, o as in pytorch-qrnn, z, f for f pooling, and z, i, f, o for ifo pooling, which that library does not have.",
      "In pytorch-qrnn σ(f) multiplies the candidate and 1 − σ(f) the old state (gate=writes); the paper's equations have it the other way "
      "round (gate=keeps).",
      "The survey of Tiezzi et al. 2024 writes f pooling of the paper, c_t = f ⊙ c_{t-1} + (1 − f) ⊙ z: gate=keeps with pooling=f.",
      "zoneout is the library's in evaluation: what is written is multiplied by 1 − p, and the rest of the old state kept.",
      "What the library returns as the hidden state is the last c, not the last y."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 4096, "Number of units.", "units"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
      hyper_integer("window", "k", 2, 1, 16, "Inputs that candidate and gates are made of: the current one and those before it.", "steps"),
      hyper_choice("pooling", "fo", {"f", "fo", "ifo"},
                   "Which gates there are: forget alone, forget and output, or input, forget and output."),
      hyper_choice("gate", "writes", {"writes", "keeps"},
                   "What σ of the rows f multiplies: the candidate, as in pytorch-qrnn, or the old state, as in the paper."),
      hyper_real("zoneout", "p", 0.0, 0.0, 1.0, "What is written is multiplied by 1 − p: the mean of a zoneout of probability p.")};
  a.spectrum = "the forget gate f_t, the transition of each step";
  a.source = {"J. Bradbury, S. Merity, C. Xiong, R. Socher", "Quasi-recurrent neural networks", "ICLR", "https://arxiv.org/abs/1611.01576",
              2016};
  a.reference = {{"layers.{n}.*", "*"}};

  a.input_weights = {{"linear.weight"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), k = l.hyper.integer("window"), T = l.steps();
    const std::string& pooling = l.hyper.choice("pooling");
    const double zoneout = l.hyper.real("zoneout");
    Var seen = x;
    if (k > 1) {
      const Var all = l.history("window", x, k - 1, "The inputs before the current one, oldest first.");
      std::vector<Var> lags;
      for (std::int64_t lag = 0; lag < k; ++lag) lags.push_back(slice(all, 0, k - 1 - lag, k - 1 - lag + T));
      seen = concat(lags, -1);
    }
    const std::string order = pooling == "f" ? "z f" : pooling == "fo" ? "z f o" : "z i f o";
    const auto maps = static_cast<std::int64_t>(order.size() + 1) / 2;
    const auto rows =
        split(parts::linear(l, "linear", seen, maps * H, "W, rows " + order + ", columns x_t, then the inputs before it"), -1, maps);
    const auto of = [&](char name) { return rows[order.find(name) / 2]; };
    // Each share from its own sigmoid: next to 1 the difference to 1 would have no digits left.
    const bool writes = l.hyper.choice("gate") == "writes";
    const Var own = of('f'), z = l.gate("candidate", tanh(of('z')), -1.0, 1.0, "tanh(z): what may be written.");
    Var share = sigmoid(writes ? own : -own), kept = sigmoid(writes ? -own : own);
    if (zoneout > 0.0) {
      share = (1.0 - zoneout) * share;
      kept = affine(kept, 1.0 - zoneout, zoneout);
    }
    const Var f = l.gate("forget", kept, 0.0, 1.0, "f_t: how much of the cell is kept.");
    const Var in = pooling == "ifo" ? l.gate("input", sigmoid(of('i')), 0.0, 1.0, "σ(i): how much of the candidate is written.") : share;
    const Var c = diagonal(l, {"c", {H}, "The cell: what the forget gate keeps."}, f, in * z);
    if (pooling == "f") return c;
    return l.gate("output", sigmoid(of('o')), 0.0, 1.0, "σ(o): how much of the cell is shown.") * c;
  };
  return a;
}

}  // namespace reclab::architectures
