// SPDX-License-Identifier: GPL-3.0-or-later
//   h_t = f(W_ih x_t + W_ch c_{t-1} + b_h),   y_t = g(W_hy h_t + b_y [+ W_xy x_t]),   c_t = μ c_{t-1} + y_t
// M. I. Jordan, Serial order: a parallel, distributed processing approach, Technical report 8604, UC San Diego, 1986. μ = 0: the output
// itself is fed back, the Jordan network of many textbooks. There is no reference code, so names are those of this project.
#include <cmath>

#include "models/architecture.h"
#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture jordan() {
  Architecture a;
  a.title = "Jordan network";
  a.equations = {"h_t = f(W_ih x_t + W_ch c_{t-1} + b_h)", "y_t = g(W_hy h_t + b_y), with feedthrough g(W_hy h_t + W_xy x_t + b_y)",
                 "c_t = μ c_{t-1} + y_t", "∂c_t/∂c_{t-1} = μ I + diag(g') W_hy diag(f') W_ch"};
  a.notes = {
      "c_t is what Jordan writes s_{t+1}: the context that step t + 1 sees. With μ = 0 it is the output y_t itself, the definition of many "
      "textbooks; with μ > 0 it is a sum of outputs that fades, Jordan's own.",
      "The state is as wide as the output, and the hidden layer is no part of it.",
      "What is fed back is the model's own output, not a target (no teacher forcing).",
      "Jordan's report has logistic units (f = g = logistic) and constant μ; μ is not trained here either. Weights start as PyTorch's "
      "Linear, for the report says nothing."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Number of hidden units.", "units"),
             hyper_integer("outputs", "M", 4, 1, 4096, "Number of output units, and so of context units.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Networks in a row, each fed with the output of the one below."),
             hyper_real("mu", "μ", 0.0, 0.0, 1.0, "What a context unit keeps of itself a step; 0: the context is the last output."),
             hyper_choice("activation", "tanh", {"tanh", "logistic", "relu", "identity"}, "The nonlinearity f of the hidden units."),
             hyper_choice("output_activation", "identity", {"identity", "logistic", "tanh"}, "The nonlinearity g of the output units."),
             hyper_flag("feedthrough", false,
                        "Whether the outputs read the input too, W_xy x_t (textbooks' D u), which Jordan's own network does not have."),
             hyper_flag("bias", true, "Whether b_h and b_y exist.")};
  a.spectrum = "eigenvalues of the context's Jacobian ∂c_t/∂c_{t-1}";
  a.source = {"M. I. Jordan", "Serial order: a parallel, distributed processing approach",
              "Technical report 8604, University of California, San Diego", "https://doi.org/10.1016/S0166-4115(97)80111-2", 1986};

  a.input_weights = {{"weight_ih"}, {"weight_xy"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), M = l.hyper.integer("outputs"), in = x.dim(-1);
    const double mu = l.hyper.real("mu"), from_input = 1.0 / std::sqrt(static_cast<double>(in)),
                 from_context = 1.0 / std::sqrt(static_cast<double>(M)), from_hidden = 1.0 / std::sqrt(static_cast<double>(H));
    const bool bias = l.hyper.flag("bias");
    const Var W_ih = l.parameter("weight_ih", {H, in}, init::uniform(-from_input, from_input),
                                 "W_ih, from the input to the hidden units; starts uniform in ±1/√in.");
    const Var W_ch = l.parameter("weight_ch", {H, M}, init::uniform(-from_context, from_context),
                                 "W_ch, from the context to the hidden units; starts uniform in ±1/√M.");
    const Var b_h = bias ? l.parameter("bias_h", {H}, init::uniform(-from_input, from_input), "b_h; starts uniform in ±1/√in.") : Var{};
    const Var W_hy = l.parameter("weight_hy", {M, H}, init::uniform(-from_hidden, from_hidden),
                                 "W_hy, from the hidden units to the output; starts uniform in ±1/√H.");
    const Var b_y = bias ? l.parameter("bias_y", {M}, init::uniform(-from_hidden, from_hidden), "b_y; starts uniform in ±1/√H.") : Var{};
    std::vector<Var> tokens{linear(x, W_ih, b_h)};
    if (l.hyper.flag("feedthrough"))
      tokens.push_back(linear(x, l.parameter("weight_xy", {M, in}, init::uniform(-from_input, from_input),
                                             "W_xy, from the input to the output; starts uniform in ±1/√in.")));
    const std::string f = l.hyper.choice("activation"), g = l.hyper.choice("output_activation");
    const auto output = [=](Cell& cell, std::span<const Var> u, Var c) {
      const Var h = parts::activation(f, linear(c, W_ch, u[0]));
      const bool low = f == "tanh", bounded = low || f == "logistic";
      cell.gate("hidden", h, low ? -1.0 : 0.0, bounded ? 1.0 : 0.0, "h: the hidden units, no part of the state.");
      const Var y = linear(h, W_hy, b_y);
      return parts::activation(g, u.size() > 1 ? y + u[1] : y);
    };
    const StateSpec context{"c", {M}, mu == 0.0 ? "The context: the last output." : "The context: a fading sum of outputs."};
    if (mu == 0.0)
      return step(l, {context}, tokens,
                  [=](Cell& cell, std::span<const Var> u, std::span<const Var> c) { return std::vector<Var>{output(cell, u, c[0])}; })[0];
    return step_and_read(l, {context}, tokens,
                         [=](Cell& cell, std::span<const Var> u, std::span<const Var> c) {
                           const Var y = output(cell, u, c[0]);
                           return std::vector<Var>{mu * c[0] + y, y};
                         })
        .reads[0];
  };
  return a;
}

}  // namespace reclab::architectures
