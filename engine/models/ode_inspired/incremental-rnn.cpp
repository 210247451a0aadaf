// SPDX-License-Identifier: GPL-3.0-or-later
//   g_0 = 0,   g_k = g_{k-1} + η_k (f(U (g_{k-1} + h_{t-1}) + W x_t + b) - α (g_{k-1} + h_{t-1})),   h_t = g_K
// A. Kag, Z. Zhang, V. Saligrama, RNNs incrementally evolving on an equilibrium manifold: a panacea for vanishing and exploding gradients?,
// ICLR 2020. No code of the authors' is public; names are ours.
#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture incremental_rnn() {
  Architecture a;
  a.title = "iRNN (incremental)";
  a.equations = {"g_0 = 0,  g_k = g_{k-1} + η_k (f(U (g_{k-1} + h_{t-1}) + W x_t + b) − α (g_{k-1} + h_{t-1}))", "h_t = g_K", "y_t = h_t",
                 "at the equilibrium f(U (h_t + h_{t-1}) + W x_t + b) = α (h_t + h_{t-1}), so that ∂h_t/∂h_{t-1} = −I"};
  a.notes = {"h_t is the increment g_K alone, without h_{t-1}: at the equilibrium the Jacobian is −I, and gradients keep their norm.",
             "The paper learns an η for each inner step and each time step; here one for each inner step, shared by all time steps, so "
             "that sequences may be of any length.",
             "Not to be confused with the IRNN of Le, Jaitly and Hinton, an Elman network that starts from the identity.",
             "No code of the authors' is public; TARNN's, by the same authors, starts its inner loop elsewhere and is another model."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Number of units.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_integer("inner_steps", "K", 5, 1, 200, "Inner steps towards the equilibrium, a time step."),
             hyper_choice("activation", "relu", {"relu", "tanh"}, "The nonlinearity f."),
             hyper_flag("bias", true, "Whether b exists."),
             initialisation_only(hyper_real("eta", "η", 0.1, 0.0, 10.0, "Where every η_k starts.")),
             initialisation_only(hyper_real("alpha", "α", 1.0, 0.0, 100.0, "Where α starts.")),
             initialisation_only(hyper_real("weight_std", "", 0.1, 0.0, 10.0, "U and W start N(0, this²)."))};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂h_t/∂h_{t-1} over all inner steps; −1 at the equilibrium";
  a.source = {"A. Kag, Z. Zhang, V. Saligrama",
              "RNNs incrementally evolving on an equilibrium manifold: a panacea for vanishing and exploding gradients?", "ICLR",
              "https://arxiv.org/abs/1908.08574", 2020};

  a.input_weights = {{"W"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1), K = l.hyper.integer("inner_steps");
    const Init normal = init::normal(l.hyper.real("weight_std"));
    const Var W = l.parameter("W", {H, in}, normal, "W, from the input; starts N(0, weight_std²).");
    const Var U = l.parameter("U", {H, H}, normal, "U, from the state and its increment; starts N(0, weight_std²).");
    Var u = linear(x, W);
    if (l.hyper.flag("bias")) u = u + l.parameter("b", {H}, init::constant(0.0), "b; starts at 0.");
    const Var eta = l.parameter("eta", {K}, init::constant(l.hyper.real("eta")), "η_k, the length of each inner step; starts at eta.");
    const Var alpha =
        l.parameter("alpha", {1}, init::constant(l.hyper.real("alpha")), "α, by which the equilibrium leaks; starts at alpha.");
    const bool is_tanh = l.hyper.choice("activation") == "tanh";
    return step(l, {{"h", {H}, "The increment of the last time step: what is read out."}}, {u},
                [=](Cell& cell, std::span<const Var> tokens, std::span<const Var> s) {
                  Var point = s[0];  // g + h_{t-1}
                  for (std::int64_t k = 0; k < K; ++k) {
                    const Var sum = linear(point, U, tokens[0]);
                    const Var left = (is_tanh ? tanh(sum) : relu(sum)) - alpha * point;
                    if (k + 1 == K)
                      cell.gate("residual", left, 0.0, 0.0,
                                "How far from the equilibrium the last inner step began: f(U (g + h) + W x + b) − α (g + h), unbounded.");
                    point = point + slice(eta, 0, k, k + 1) * left;
                  }
                  return std::vector<Var>{point - s[0]};
                })[0];
  };
  return a;
}

}  // namespace reclab::architectures
