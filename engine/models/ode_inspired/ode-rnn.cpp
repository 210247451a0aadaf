// SPDX-License-Identifier: GPL-3.0-or-later
//   h⁻ = h(Δ_t) of dh/dt = f(h) from h(0) = h_{t-1},   h_t = update(h⁻, x_t)
// Y. Rubanova, R. T. Q. Chen, D. Duvenaud, Latent ordinary differential equations for irregularly-sampled time series, NeurIPS 2019. Names
// and conventions of YuliaRubanova/latent_ode.
#include "array/error.h"
#include "models/parts/derivative.h"
#include "models/parts/parts.h"
#include "models/parts/solver.h"

namespace reclab::architectures {
namespace {

using Map = std::pair<Var, Var>;

/// Linear, tanh, Linear of latent_ode's GRU_unit.
struct Two {
  Map first, second;
  Var operator()(Var x) const { return linear(tanh(linear(x, first.first, first.second)), second.first, second.second); }
};
Two two(Layer& l, const std::string& name, std::int64_t in, std::int64_t units, std::int64_t out, const std::string& role) {
  const auto map = [&](const std::string& key, std::int64_t to, std::int64_t from, const std::string& text) {
    const Var W = l.parameter(key + ".weight", {to, from}, init::normal(0.1), text + "; starts N(0, 0.1²).");
    return Map{W, l.parameter(key + ".bias", {to}, init::constant(0.0), "Its bias; starts at 0.")};
  };
  const Map first = map(name + ".0", units, in, "The hidden layer of " + role + ", columns mean, deviation, x");
  return {first, map(name + ".2", out, units, "The last layer of " + role)};
}

Var joined(std::initializer_list<Var> parts) { return concat(std::span(parts.begin(), parts.size()), -1); }

}  // namespace

Architecture ode_rnn() {
  Architecture a;
  a.title = "ODE-RNN";
  a.equations = {"h⁻ = h(span · Δ_t) of dh/dt = f(h) from h(0) = h_{t-1}, by the solver;  f(h) = W_k φ(… φ(W_0 h + b_0) …) + b_k",
                 "update=rnn: h_t = tanh(W_ih x_t + b_ih + W_hh h⁻ + b_hh)",
                 "update=gru: r = σ(W_ir x + b_ir + W_hr h⁻ + b_hr), z likewise, n = tanh(W_in x + b_in + r ⊙ (W_hn h⁻ + b_hn)), h_t = (1 "
                 "− z) ⊙ n + z ⊙ h⁻",
                 "update=gru_unit: z = σ(N_z [h⁻; d; x]), r = σ(N_r [h⁻; d; x]), [n; m] = N_n [r ⊙ h⁻; r ⊙ d; x];  h_t = (1 − z) ⊙ n + z ⊙ "
                 "h⁻,  d_t = |(1 − z) ⊙ |m| + z ⊙ d|, each N of one hidden layer of tanh",
                 "masked: where no value was observed, h_t = h⁻ and d_t = |d|",
                 "y_t = h_t"};
  a.notes = {
      "ode_func.gradient_net.{0,2,…} and GRU_update.{update_gate,reset_gate,new_state_net}.{0,2} are latent_ode's, whose state is a mean, "
      "h, and a deviation, d, which the equation does not move; rnn and gru are torch.nn.RNNCell and GRUCell, rows r, z, n.",
      "masked takes the second half of the input's columns as the mask, above 0 where a value was observed; the update of the first layer "
      "reads all of them. As in latent_ode, unobserved steps keep the evolved mean.",
      "latent_ode runs its encoder from the last step to the first (direction=backward) and solves over a negative time: change the sign "
      "of the last layer of gradient_net. Its intervals take one Euler step where they are shorter than a fiftieth of the sequence, else "
      "as many as fiftieths fit; here they take unfolds.",
      "With run_backwards=False it solves before step i over the interval that ends at step i-1, again with the sign reversed; here it is "
      "the one that ends at step i."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 1024, "Size of the state.", "units"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
      hyper_choice("update", "gru_unit", {"gru_unit", "gru", "rnn"},
                   "What an observation does to the state: latent_ode's GRU of mean and deviation, a GRU cell, or a plain recurrent one."),
      hyper_integer("update_units", "", 64, 1, 4096, "gru_unit: width of the hidden layers (n_gru_units).", "units"),
      hyper_flag("masked", false, "Whether the second half of the input's columns says which values were observed.")};
  for (HyperSpec& row : parts::derivative_hyper(1, 64, "identity")) a.hyper.push_back(std::move(row));
  a.hyper.push_back(hyper_real("span", "", 1.0, 1e-4, 1e3, "How long the equation is solved over where Δ_t = 1.", true, "time"));
  for (HyperSpec& row : parts::solver_hyper("euler", 4)) a.hyper.push_back(std::move(row));
  for (std::string& note : parts::solver_notes()) a.notes.push_back(std::move(note));
  a.knows_time = true;
  a.spectrum = "eigenvalues of the recurrent Jacobian of h, or of (h, d), over the equation and the update";
  a.source = {"Y. Rubanova, R. T. Q. Chen, D. Duvenaud", "Latent ordinary differential equations for irregularly-sampled time series",
              "NeurIPS", "https://arxiv.org/abs/1907.03907", 2019};
  a.reference = {
      {"GRU_update.*", "GRU_update.*"}, {"z0_diffeq_solver.ode_func.*", "ode_func.*"}, {"ode_func.*", "ode_func.*"}, {"cell.*", "cell.*"}};
  a.input_weights = {{"GRU_update.update_gate.0.weight", InputWeight::Part::last_columns},
                     {"GRU_update.reset_gate.0.weight", InputWeight::Part::last_columns},
                     {"GRU_update.new_state_net.0.weight", InputWeight::Part::last_columns},
                     {"cell.weight_ih"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1), units = l.hyper.integer("update_units");
    const std::string update = l.hyper.choice("update");
    const bool masked = l.hyper.flag("masked") && l.index() == 0, both = update == "gru_unit", gru = update == "gru";
    if (masked && in < 2)
      throw Error(
          "ode-rnn: masked takes the second half of the input's columns as the mask, and there is one column: give a column of the mask "
          "for each of values, or masked=false.",
          {.model = "ode-rnn", .parameter = "masked", .value = "true", .range = "false"});
    const parts::Derivative f(l, "ode_func.gradient_net", Var{}, H);
    Two update_gate, reset_gate, new_state;
    Var W_hh, b_hh, given = x;
    if (both) {
      const std::int64_t all = 2 * H + in;
      update_gate = two(l, "GRU_update.update_gate", all, units, H, "the update gate z");
      reset_gate = two(l, "GRU_update.reset_gate", all, units, H, "the reset gate r");
      new_state = two(l, "GRU_update.new_state_net", all, units, 2 * H, "the new state, rows mean, deviation");
    } else {
      const std::int64_t rows = gru ? 3 * H : H;
      const Init start = parts::torch_uniform(H);
      const std::string of = gru ? ", rows r z n; starts uniform in ±1/√H." : "; starts uniform in ±1/√H.";
      const Var W_ih = l.parameter("cell.weight_ih", {rows, in}, start, "W_ih" + of),
                W_h = l.parameter("cell.weight_hh", {rows, H}, start, "W_hh" + of);
      const Var b_ih = l.parameter("cell.bias_ih", {rows}, start, "b_ih" + of);
      W_hh = W_h;
      b_hh = l.parameter("cell.bias_hh", {rows}, start, "b_hh" + of);
      given = linear(x, W_ih, b_ih);
    }
    const Var elapsed = l.elapsed();
    std::vector<Var> tokens{given};
    if (masked) {
      const Var observed = detach(relu(sign(sum(slice(x, -1, in - in / 2, in), -1))));
      tokens.push_back(reshape(observed, {l.steps(), l.batch(), 1}));
    }
    if (elapsed) tokens.push_back(elapsed);
    std::vector<StateSpec> states{{"h", {H}, "The state after the observation, the mean of the latent one: what is read out."}};
    if (both) states.push_back({"std", {H}, "Its deviation d, which the equation does not move."});
    const double length = l.hyper.real("span");
    return step(l, states, tokens, [=, solver = parts::solver_of(l)](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
      const Var h = parts::solve(cell, solver, [&](Var v) { return f(v); }, s[0], {length, elapsed ? u.back() : Var{}});
      cell.gate("drift", h - s[0], 0.0, 0.0, "h⁻ − h_{t-1}: how far the equation moved the state before the observation, unbounded.");
      const auto name_update = [&](Var z) { return cell.gate("update", z, 0.0, 1.0, "z: how much of h⁻ the observation leaves."); };
      const auto name_reset = [&](Var r) { return cell.gate("reset", r, 0.0, 1.0, "r: how much of the state the new one is made of."); };
      Var next, deviation;
      if (both) {
        const Var z = name_update(sigmoid(update_gate(joined({h, s[1], u[0]})))),
                  r = name_reset(sigmoid(reset_gate(joined({h, s[1], u[0]}))));
        const auto made = split(new_state(joined({h * r, s[1] * r, u[0]})), -1, 2);
        next = (1.0 - z) * made[0] + z * h;
        deviation = (1.0 - z) * abs(made[1]) + z * s[1];
      } else if (gru) {
        const auto of_x = split(u[0], -1, 3), of_h = split(linear(h, W_hh, b_hh), -1, 3);
        const Var r = name_reset(sigmoid(of_x[0] + of_h[0])), z = name_update(sigmoid(of_x[1] + of_h[1]));
        next = (1.0 - z) * tanh(of_x[2] + r * of_h[2]) + z * h;
      } else {
        next = tanh(u[0] + linear(h, W_hh, b_hh));
      }
      if (masked) {
        next = u[1] * next + (1.0 - u[1]) * h;
        if (both) deviation = u[1] * deviation + (1.0 - u[1]) * s[1];
      }
      return both ? std::vector<Var>{next, abs(deviation)} : std::vector<Var>{next};
    })[0];
  };
  return a;
}

}  // namespace reclab::architectures
