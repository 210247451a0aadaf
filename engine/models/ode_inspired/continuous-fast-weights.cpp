// SPDX-License-Identifier: GPL-3.0-or-later
//   dW/dt = the learning rule of x_t and W, solved over Δ_t;   Hebb: β v kᵀ,   delta: β (v - W k) kᵀ,   Oja: v (β softmax(k - Wᵀ v))ᵀ
//   y_t = W_t q_t behind a linear map and a feed-forward block
// K. Irie, F. Faccio, J. Schmidhuber, Neural differential equations for learning to program neural nets through continuous learning rules,
// NeurIPS 2022. Names and conventions of the authors' FastWeightODE (IDSIA/neuraldiffeq-fwp, speech_and_physionet).
#include "array/error.h"
#include "models/parts/features.h"
#include "models/parts/parts.h"
#include "models/parts/solver.h"
#include "recurrence/chunks.h"

namespace reclab::architectures {
using parts::softmax;

Architecture continuous_fast_weights() {
  Architecture a;
  a.title = "Continuous-time fast weights";
  a.equations = {"u_t = LN(W_in x_t + b_in);  [k v b] = W_kvb u_t + b_kvb by head,  β = σ(b),  q = softmax(W_q u_t + b_q) by head",
                 "hebb: dW/dt = β tanh(v) softmax(k)ᵀ",
                 "delta: dW/dt = β (tanh(v) − W κ) κᵀ with κ = softmax(k);  with post_tanh β tanh(v − W κ) κᵀ",
                 "oja: dW/dt = tanh(v) (β softmax(k − Wᵀ tanh(v)))ᵀ",
                 "W_t = W(span · Δ_t) from W(0) = W_{t-1} by the solver, with x_t held;  with initial, W at the first step is what the "
                 "rule writes into an empty W",
                 "z_t = W_out [W_t q_t by head] + b_out,  y_t = z_t + W_2 relu(W_1 LN(z_t) + b_1) + b_2"};
  a.notes = {
      "Names and shapes are those of the authors' FastWeightODE: update_net.{input_proj,input_layer_norm,kvb_net}, query_net, out_proj, "
      "ff_block.layer_norm, ff_block.ff_layers.{0,3}; rows of kvb_net by head, in it k, v, b. Its initial_network is not used there, and "
      "its linear is the head.",
      "There the input is a natural cubic spline through all of the sequence; here each step holds its own input, so that nothing depends "
      "on what comes later. There outputs are read at the end, or at every step with stream=True.",
      "The state W is [heads, key, value]: the transpose of the authors' z, in which a row is a value.",
      "dropout, which acts in training alone, is left out. The variants that are driven by the derivative of the input (CDE) are not "
      "here."};
  a.hyper = {hyper_integer("width", "D", 64, 1, 1024, "Width of the model (hidden_channels).", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_integer("heads", "", 8, 1, 64, "Heads, each with a matrix of its own (num_heads)."),
             hyper_choice("rule", "delta", {"hebb", "delta", "oja"}, "The learning rule that the fast weights follow."),
             hyper_flag("post_tanh", false, "delta: whether tanh is of what is missing, v − W κ, instead of v (delta_post_tahn)."),
             hyper_flag("initial", true, "Whether the first step writes into an empty W at once, without time passing."),
             hyper_integer("feed_forward", "", 0, 0, 4096,
                           "Hidden width of the feed-forward block (trafo_ff_dim); 0: four times the width.", "units"),
             hyper_real("span", "", 1.0, 1e-4, 1e3, "How long the equation is solved over where Δ_t = 1.", true, "time")};
  for (HyperSpec& row : parts::solver_hyper("rk4", 1)) a.hyper.push_back(std::move(row));
  for (std::string& note : parts::solver_notes()) a.notes.push_back(std::move(note));
  a.knows_time = true;
  a.spectrum = "eigenvalues of the Jacobian ∂W_t/∂W_{t-1} over the whole step; with hebb they are 1, with delta they fall along the key";
  a.source = {"K. Irie, F. Faccio, J. Schmidhuber",
              "Neural differential equations for learning to program neural nets through continuous learning rules", "NeurIPS",
              "https://arxiv.org/abs/2206.01649", 2022};
  a.check = [](const Hyper& h) {
    if (h.integer("width") % h.integer("heads"))
      throw Error(
          "continuous-fast-weights: width = " + h.text("width") + " is no multiple of heads = " + h.text("heads") + ": choose one that is.",
          {.model = "continuous-fast-weights", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of " + h.text("width")});
  };
  a.input_weights = {{"update_net.input_proj.weight"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t D = l.hyper.integer("width"), heads = l.hyper.integer("heads"), d = D / heads, T = l.steps(), B = l.batch(),
                       wide = l.hyper.integer("feed_forward") ? l.hyper.integer("feed_forward") : 4 * D;
    const std::string rule = l.hyper.choice("rule");
    const bool post = l.hyper.flag("post_tanh"), initial = l.hyper.flag("initial"), oja = rule == "oja", delta = rule == "delta";
    const Var u =
        parts::layer_norm(l, "update_net.input_layer_norm", parts::linear(l, "update_net.input_proj", x, D, "W_in, from the input"));
    const Var kvb = parts::by_head(
        l, parts::linear(l, "update_net.kvb_net", u, heads * (2 * d + 1), "W_kvb, rows by head, in it key, value, learning rate"), heads);
    const Var q = softmax(parts::by_head(l, parts::linear(l, "query_net", u, D, "W_q, rows by head"), heads));
    const Var raw = slice(kvb, -1, 0, d), v = slice(kvb, -1, d, 2 * d);
    const Var beta = l.gate("learning_rate", sigmoid(slice(kvb, -1, 2 * d, 2 * d + 1)), 0.0, 1.0, "β: how fast each head is rewritten.");
    const Var key = oja ? raw : softmax(raw), value = delta && post ? v : tanh(v);
    std::vector<Var> tokens{reshape(key, {T, B, heads, d, 1}), reshape(value, {T, B, heads, 1, d}), reshape(beta, {T, B, heads, 1, 1})};
    if (initial) tokens.push_back(1.0 - sign(l.position()));
    const Var elapsed = l.elapsed();
    if (elapsed) tokens.push_back(elapsed);
    const parts::OdeSolver solver = parts::solver_of(l);
    const double length = l.hyper.real("span");
    // A column of S is a value: without Oja's rule, and without a tanh of the error, all columns have the same update.
    const bool alike = !oja && !(delta && post) && solver.method != "dopri5";
    const Var S = step(
        l, {{"W", {heads, d, d}, "The fast weights, [heads, key, value]."}}, tokens,
        [=](Cell& cell, std::span<const Var> u_t, std::span<const Var> s) {
          const std::int64_t rows = s[0].dim(0), n = heads * d * d;
          const auto slope = [&](Var flat) {
            const Var W = reshape(flat, {rows, heads, d, d});
            Var written;
            if (oja) {
              const Var removed = reshape(sum(W * u_t[1], -1), {rows, heads, d});  // Wᵀ v
              written = reshape(softmax(reshape(u_t[0], {rows, heads, d}) - removed), {rows, heads, d, 1}) * u_t[2] * u_t[1];
            } else {
              Var missing = u_t[1];
              if (delta) missing = missing - reshape(sum(W * u_t[0], -2), {rows, heads, 1, d});
              if (delta && post) missing = tanh(missing);
              written = u_t[0] * (u_t[2] * missing);
            }
            return reshape(written, {rows, n});
          };
          const Var start = reshape(s[0], {rows, n});
          Var next = parts::solve(cell, solver, slope, start, {length, elapsed ? u_t.back() : Var{}});
          if (initial) next = next + u_t[3] * (start + slope(start) - next);
          return std::vector<Var>{reshape(next, {rows, heads, d, d})};
        },
        alike ? Sees::own_column : Sees::all)[0];
    const Var read = parts::flat(l, sum(S * reshape(q, {T, B, heads, d, 1}), -2));
    const Var z = parts::linear(l, "out_proj", read, D, "W_out");
    const Var hidden = relu(
        parts::linear(l, "ff_block.ff_layers.0", parts::layer_norm(l, "ff_block.layer_norm", z), wide, "W_1 of the feed-forward block"));
    return z + parts::linear(l, "ff_block.ff_layers.3", hidden, D, "W_2 of the feed-forward block");
  };
  return a;
}

}  // namespace reclab::architectures
