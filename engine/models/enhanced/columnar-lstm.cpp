// SPDX-License-Identifier: GPL-3.0-or-later
//   column k of a stage: [i f g o] = W v_t + u h_{t-1} + b,   c_t = σ(f) c_{t-1} + σ(i) tanh(g),   h_t = σ(o) tanh(c_t)
//   v_t: the input and the h_t of all stages below;   y_t: the h_t of all columns
// K. Javed, H. Shah, R. S. Sutton, M. White, Scalable real-time recurrent learning using columnar-constructive networks, JMLR 24 (2023).
#include <cmath>

#include "models/architecture.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

std::vector<HyperSpec> stage_rows() {
  return {hyper_integer("width", "H", 8, 1, 4096, "Columns of a stage: cells of which none sees another.", "units"),
          initialisation_only(hyper_real("start", "ε", 0.01, 0.0, 10.0, "Weights start uniform in plus and minus this.")),
          initialisation_only(hyper_real("forget_bias", "b_f", 0.0, -10.0, 10.0,
                                         "Added to the forget gate's bias at the start: larger keeps memories longer."))};
}

Var columns(Layer& l, Var v) {
  const std::int64_t H = l.hyper.integer("width");
  const double start = l.hyper.real("start"), forget = l.hyper.real("forget_bias");
  const Init small = init::uniform(-start, start);
  const Init opened =
      init::each([=](Rng& rng, std::int64_t row) { return rng.uniform(-start, start) + (row >= H && row < 2 * H ? forget : 0.0); });
  const Var W =
      l.parameter("weight_ih", {4 * H, v.dim(-1)}, small, "W, rows i f g o, columns x_t, then the stages below; starts uniform in ±start.");
  const Var u =
      l.parameter("weight_hh", {4 * H}, small, "u, what each gate sees of its column's h, in the order i f g o; starts likewise.");
  const Var b = l.parameter("bias", {4 * H}, opened, "b, in the order i f g o; starts likewise, the forget gates' plus forget_bias.");
  const std::vector<Var> own = split(u, -1, 4);
  return step(
      l,
      {{"h", {H}, "The hidden state: what is read out and fed back to its own column."},
       {"c", {H}, "The cell: what the forget gate keeps."}},
      split(linear(v, W, b), -1, 4),
      [=](Cell& cell, std::span<const Var> now, std::span<const Var> s) {
        const auto raw = [&](std::size_t gate) { return now[gate] + own[gate] * s[0]; };
        const Var i = cell.gate("input", sigmoid(raw(0)), 0.0, 1.0, "σ(i): how much of the candidate is written.");
        const Var f = cell.gate("forget", sigmoid(raw(1)), 0.0, 1.0, "σ(f): how much of the cell is kept.");
        const Var g = cell.gate("candidate", tanh(raw(2)), -1.0, 1.0, "tanh(g): what may be written.");
        const Var o = cell.gate("output", sigmoid(raw(3)), 0.0, 1.0, "σ(o): how much of the cell is shown.");
        const Var c = f * s[1] + i * g;
        return std::vector<Var>{o * tanh(c), c};
      },
      Sees::own_entry)[0];
}

const Architecture& stage() {
  static const Architecture made = [] {
    Architecture a;
    a.id = "stage";
    a.hyper = stage_rows();
    a.layer = columns;
    return a;
  }();
  return made;
}

}  // namespace

Architecture columnar_lstm() {
  Architecture a;
  a.title = "Columnar-constructive LSTM";
  a.equations = {"v_t = [x_t; h_t of all stages below]", "[i f g o] = W v_t + u ⊙ h_{t-1} + b, each column with an h and c of its own",
                 "c_t = σ(f) ⊙ c_{t-1} + σ(i) ⊙ tanh(g),  h_t = σ(o) ⊙ tanh(c_t)", "y_t = [h_t of all stages]"};
  a.notes = {
      "stages = 1 is the authors' columnar network, width = 1 with several stages their constructive network, and both together "
      "their columnar-constructive one.",
      "No column sees another of its stage: the transition falls into blocks of two, and real-time recurrent learning keeps two numbers "
      "for "
      "a weight (rule diagonal-rtrl). Where only the highest stage learns, as when stages are added one after the other, it is exact.",
      "The authors divide what enters a column and what is read out by running means and deviations, which are not here; their program "
      "hands on a feature to the stages above one step late.",
      "Rows are in the order input, forget, cell, output, as those of torch.nn.LSTM."};
  a.hyper = stage_rows();
  a.hyper.insert(a.hyper.begin() + 1, hyper_integer("stages", "S", 1, 1, 64, "Stages, each fed with the input and with all below."));
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂(h_t, c_t)/∂(h_{t-1}, c_{t-1}), two a column";
  a.source = {"K. Javed, H. Shah, R. S. Sutton, M. White", "Scalable real-time recurrent learning using columnar-constructive networks",
              "Journal of Machine Learning Research 24", "https://arxiv.org/abs/2302.05326", 2023};
  a.period = [](const Hyper&) { return std::int64_t{1}; };
  a.body = [](LayerGraph& b, Var x) {
    Hyper of_stage(stage().hyper);
    for (const HyperSpec& row : stage().hyper) of_stage.set_text(row.key, b.hyper.text(row.key), "columnar-lstm");
    std::vector<Var> seen{x};
    for (std::int64_t k = 0; k < b.hyper.integer("stages"); ++k)
      seen.push_back(b.layer({&stage(), of_stage}, 1, "stages." + std::to_string(k), seen.size() == 1 ? x : concat(seen, -1)));
    seen.erase(seen.begin());
    return seen.size() == 1 ? seen[0] : concat(seen, -1);
  };
  return a;
}

}  // namespace reclab::architectures
