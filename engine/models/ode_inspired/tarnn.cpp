// SPDX-License-Identifier: GPL-3.0-or-later
//   g = σ(U_g h_{t-1} + W_g x_t + b_g),   c = U_2 h_{t-1} + W_1 x_t + W_2 x_{t-1} + b_1,   h ← h_{t-1}, then K times
//   h ← (1 - a Δ_t) h + a Δ_t (φ(U_1 h + c) - h - h_{t-1} + B_1 x_t + B_2 h_{t-1}),   h_t = (1 - g) h_{t-1} + g h
//   or, with the gate inside, K times h ← h + a Δ_t g (φ(U_1 h + c) - h - h_{t-1} + B_1 x_t + B_2 h_{t-1})
// A. Kag, V. Saligrama, Time adaptive recurrent neural network, CVPR 2021. Names and conventions of anilkagak2/TARNN, pytorch/tarnn.py.
#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture tarnn() {
  Architecture a;
  a.title = "TARNN";
  a.equations = {"g = σ(U_gᵀ h_{t-1} + W_gᵀ x_t + b_g),  c = U_2ᵀ h_{t-1} + W_1ᵀ x_t + W_2ᵀ x_{t-1} + b_1",
                 "F(h) = φ(U_1ᵀ h + c) − h − h_{t-1} + B_1ᵀ x_t + B_2ᵀ h_{t-1}",
                 "gate=outside: h ← (1 − a_k Δ_t) h + a_k Δ_t F(h) for k = 1 … K from h = h_{t-1};  h_t = (1 − g) ⊙ h_{t-1} + g ⊙ h",
                 "gate=inside: h ← h + a_k Δ_t g ⊙ F(h) for k = 1 … K from h = h_{t-1};  h_t = h", "y_t = h_t"};
  a.notes = {
      "Names and shapes are those of the authors' code: W1, W2, B1, Wg [in, H], U1, U2, B2, Ug [H, H], b1, bg [H], A1 [K, timesteps]; a "
      "row is where a weight comes from. Its b2 has no effect and is passed over in a file.",
      "gate=outside is its b_variant, in which h is subtracted twice, by 1 − a_k and by F; gate=inside is b_variant=False.",
      "A1 has a step size for each step of the sequence, as in the code; timesteps=1 has one for all. After the last column the last one "
      "is used.",
      "Before the first step the last input is taken to be the first one. The code knows no elapsed time: here it multiplies the step "
      "sizes.",
      "The paper's time constants that are learned from the input are the gate g."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 4096, "Units.", "units"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
      hyper_integer("K", "K", 1, 1, 100, "Inner steps a step of the sequence.", "steps"),
      hyper_choice("gate", "outside", {"outside", "inside"},
                   "Whether the gate mixes the old state with the end of the inner steps (b_variant), or multiplies each of them."),
      hyper_choice("activation", "relu", {"relu", "tanh", "sigmoid"}, "The nonlinearity φ (sigma)."),
      hyper_integer("timesteps", "", 1, 1, 4096,
                    "Columns of A1: steps of the sequence that have step sizes of their own; 1: all have the same (n_timesteps).", "steps"),
      initialisation_only(hyper_real("alpha", "a", 0.01, -10.0, 10.0, "Where the step sizes start (alpha_val)."))};
  a.knows_time = true;
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂h_t/∂h_{t-1} over all inner steps";
  a.source = {"A. Kag, V. Saligrama", "Time adaptive recurrent neural network", "CVPR",
              "https://openaccess.thecvf.com/content/CVPR2021/html/Kag_Time_Adaptive_Recurrent_Neural_Network_CVPR_2021_paper.html", 2021};
  a.reference = {{"b2", ""}, {"*", "*"}};
  a.input_weights = {{"B1"}, {"W1"}, {"W2"}, {"Wg"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1), K = l.hyper.integer("K"), N = l.hyper.integer("timesteps");
    const bool outside = l.hyper.choice("gate") == "outside";
    const std::string f = l.hyper.choice("activation");
    const auto weight = [&](const std::string& name, std::int64_t rows, const std::string& role) {
      return l.parameter(name, {rows, H}, init::normal(0.1), role + ", [from, to]; starts N(0, 0.1²).");
    };
    const Var b1 = l.parameter("b1", {H}, init::constant(0.0), "b_1; starts at 0.");
    const Var B1 = weight("B1", in, "B_1, from the input, outside φ"), B2 = weight("B2", H, "B_2, from the old state, outside φ");
    const Var W1 = weight("W1", in, "W_1, from the input"), W2 = weight("W2", in, "W_2, from the last input");
    const Var U1 = weight("U1", H, "U_1, from the state that the inner steps move"), U2 = weight("U2", H, "U_2, from the old state");
    const Var Wg = weight("Wg", in, "W_g, of the gate, from the input"), Ug = weight("Ug", H, "U_g, of the gate, from the old state");
    const Var bg = l.parameter("bg", {H}, init::constant(outside ? -3.0 : 0.0),
                               outside ? "b_g; starts at -3, so that little is written." : "b_g; starts at 0.");
    const Var A1 = l.parameter("A1", {K, N}, init::constant(l.hyper.real("alpha")),
                               "a_k, the step sizes: a row an inner step, a column a step of the sequence; start at alpha.");

    const Var last = slice(l.history("last_input", x, 1, "The last input."), 0, 0, l.steps()), first = 1.0 - sign(l.position());
    const Var before = last + first * (x - last), elapsed = l.elapsed();
    std::vector<Var> tokens{matmul(x, W1) + matmul(before, W2) + b1, matmul(x, B1), matmul(x, Wg) + bg};
    if (N > 1) {  // 1 at this step's column, 0 at all others
      std::vector<double> numbers;
      for (std::int64_t j = 0; j < N; ++j) numbers.push_back(static_cast<double>(j));
      const Var column = l.graph().constant({1, 1, N}, std::move(numbers));
      const Var here = relu(1.0 - abs(minimum(l.position(), static_cast<double>(N - 1)) - column));
      tokens.push_back(linear(here, A1));
    }
    std::vector<Var> sizes;  // the same at all steps
    for (std::int64_t k = 0; k < K && N == 1; ++k) sizes.push_back(reshape(slice(A1, 0, k, k + 1), {1, 1}));
    const std::size_t time_at = tokens.size();
    if (elapsed) tokens.push_back(elapsed);
    return step(l, {{"h", {H}, "The state: what is read out."}}, tokens, [=](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
      const Var old = s[0], g = cell.gate("time", sigmoid(matmul(old, Ug) + u[2]), 0.0, 1.0,
                                          "g: how fast each unit's time goes; at 0 it stands still.");
      const Var c = u[0] + matmul(old, U2), beside = u[1] + matmul(old, B2) - old;
      Var h = old;
      for (std::int64_t k = 0; k < K; ++k) {
        Var size = N > 1 ? slice(u[3], -1, k, k + 1) : sizes[static_cast<std::size_t>(k)];
        if (elapsed) size = size * u[time_at];
        const Var sum = matmul(h, U1) + c;
        const Var F = parts::activation(f, sum) - h + beside;
        h = h + size * (outside ? F - h : g * F);
      }
      return std::vector<Var>{outside ? (1.0 - g) * old + g * h : h};
    })[0];
  };
  return a;
}

}  // namespace reclab::architectures
