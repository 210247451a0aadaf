// SPDX-License-Identifier: GPL-3.0-or-later
//   [a v] = x_t W + b,   g_t = σ(a),   h_t = g_t h_{t-1} + (1 - g_t) φ(v),   y_t = h_t
// E. Martin, C. Cundy, Parallelizing linear recurrent neural nets over sequence length, ICLR 2018. Parameters of
// eamartin/parallelizing_linear_rnns.
#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {

Architecture gilr() {
  Architecture a;
  a.title = "GILR";
  a.equations = {"[a v] = x_t W + b,  g_t = σ(a)", "h_t = g_t ⊙ h_{t-1} + (1 − g_t) ⊙ φ(v)", "y_t = h_t", "∂h_t/∂h_{t-1} = diag(g_t)"};
  a.notes = {
      "Names and shapes are those of gilr_layer in the authors' code: fc.W [in, 2H] is multiplied from the right, its columns are the "
      "gate's, then the impulse's, and so is fc.b; their scopes gilr, gilr_1, … are read too.",
      "φ is elu by default in the code and tanh in the paper.", "The gate multiplies the old state.",
      "layers.py leaves W and b to TensorFlow's Glorot start, the biases too (init=glorot); layers_new.py starts W in ±0.05 and b at 0 "
      "(init=small)."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Number of units.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_choice("activation", "elu", {"elu", "tanh", "relu", "identity"}, "φ, what the impulse is written through."),
             initialisation_only(hyper_choice("init", "glorot", {"glorot", "small"},
                                              "How W and b start: uniform in ±√(6/(in + out)), a bias too, or W in ±0.05 and b at 0."))};
  a.spectrum = "the gate g_t, the transition of each step";
  a.source = {"E. Martin, C. Cundy", "Parallelizing linear recurrent neural nets over sequence length", "ICLR",
              "https://arxiv.org/abs/1709.04057", 2018};
  a.reference = {{"gilr{_n}/fc/W", "fc.W"}, {"gilr{_n}/fc/b", "fc.b"}};

  a.input_weights = {{"fc.W"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1);
    const bool glorot = l.hyper.choice("init") == "glorot";
    const Var W = l.parameter("fc.W", {in, 2 * H}, glorot ? parts::xavier_uniform(in, 2 * H) : init::uniform(-0.05, 0.05),
                              "W, columns gate, then impulse; starts uniform in ±√(6/(in + 2H)), or in ±0.05.");
    const Var b = l.parameter("fc.b", {2 * H}, glorot ? parts::xavier_uniform(2 * H, 2 * H) : init::constant(0.0),
                              "b, gate, then impulse; starts uniform in ±√(3/(2H)), or at 0.");
    const auto both = split(matmul(x, W) + b, -1, 2);
    const std::string& f = l.hyper.choice("activation");
    const Var v = both[1], phi = parts::activation(f, v);
    const Var g = l.gate("forget", sigmoid(both[0]), 0.0, 1.0, "g_t: how much of the state is kept; the rest of it is replaced.");
    const Var written = l.gate("impulse", phi, f == "tanh" ? -1.0 : 0.0, f == "tanh" ? 1.0 : 0.0, "φ(v): what replaces the rest.");
    // 1 - g from its own sigmoid: next to 1 the difference would have no digits left.
    return diagonal(l, {"h", {H}, "The state: a mean of all impulses that the gates weigh."}, g, sigmoid(-both[0]) * written);
  };
  return a;
}

}  // namespace reclab::architectures
