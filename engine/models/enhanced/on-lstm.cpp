// SPDX-License-Identifier: GPL-3.0-or-later
//   [ĩ f̃ o g i f] = W x_t + b + U h_{t-1} + d,   f̃ ← cumax(f̃),  ĩ ← 1 - cumax(ĩ),   cumax = cumulative sum of a softmax over the levels
//   ω = f̃ ĩ,   c_t = (σ(f) ω + f̃ - ω) c_{t-1} + (σ(i) ω + ĩ - ω) tanh g,   h_t = σ(o) tanh c_t,   y_t = h_t
// Y. Shen, S. Tan, A. Sordoni, A. Courville, Ordered neurons: integrating tree structures into recurrent neural networks, ICLR 2019.
// Parameters of yikangshen/Ordered-Neurons.
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

/// The largest entry of the last axis, which stays as one of length 1; held.
Var largest(Var x) {
  while (x.dim(-1) > 1) {
    const std::int64_t n = x.dim(-1), half = (n + 1) / 2;
    x = maximum(slice(x, -1, 0, half), slice(x, -1, n - half, n));
  }
  return detach(x);
}

}  // namespace

Architecture on_lstm() {
  Architecture a;
  a.title = "ON-LSTM";
  a.equations = {"[ĩ f̃ o g i f] = W x_t + b + U h_{t-1} + d",
                 "f̃_t = cumax(f̃),  ĩ_t = 1 − cumax(ĩ);  cumax(x)_k = Σ_{j≤k} softmax(x)_j over the H/C levels, each for C units",
                 "ω_t = f̃_t ⊙ ĩ_t",
                 "f̂_t = σ(f) ⊙ ω_t + (f̃_t − ω_t),  î_t = σ(i) ⊙ ω_t + (ĩ_t − ω_t)",
                 "c_t = f̂_t ⊙ c_{t-1} + î_t ⊙ tanh(g)",
                 "h_t = σ(o) ⊙ tanh(c_t),  y_t = h_t"};
  a.notes = {
      "Names and shapes are those of ONLSTMCell in the authors' code: ih.0.* and hh.* with H/C rows of the master input gate, H/C of the "
      "master forget gate, then H rows each of o, g, i, f; unit k C + j is unit j of level k.",
      "The master gates have one entry a level; the first levels are the first to be written anew, the last the last to be forgotten. The "
      "last one itself has ĩ = 0: it is never written and stays at 0.",
      "dropconnect is the code's in evaluation: hh.weight is multiplied by 1 − p. Its other dropouts are none then.",
      "distance is 1 − the mean of f̃, from which the paper reads its trees; distance_in, the mean of ĩ, is returned by the code too.",
      "All layers are of one width here; the code's last layer may have another."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Number of cells.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_integer("chunk", "C", 2, 1, 4096, "Units of a level, which share its master gates; must divide the width.", "units"),
             hyper_real("dropconnect", "p", 0.0, 0.0, 1.0,
                        "The weights from the state are multiplied by 1 − p: the mean of a dropconnect of probability p.")};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂(h_t, c_t)/∂(h_{t-1}, c_{t-1})";
  a.source = {"Y. Shen, S. Tan, A. Sordoni, A. Courville", "Ordered neurons: integrating tree structures into recurrent neural networks",
              "ICLR", "https://arxiv.org/abs/1810.09536", 2019};
  a.reference = {{"cells.{n}.*", "*"}};
  a.check = [](const Hyper& h) {
    if (h.integer("width") % h.integer("chunk"))
      throw Error("on-lstm: chunk = " + h.text("chunk") + " does not divide width = " + h.text("width") + ": choose a divisor.",
                  {.model = "on-lstm", .parameter = "chunk", .value = h.text("chunk"), .range = "a divisor of width"});
  };

  a.input_weights = {{"ih.0.weight"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), C = l.hyper.integer("chunk"), n = H / C, rows = 4 * H + 2 * n;
    const Var tokens = parts::linear(l, "ih.0", x, rows, "W, rows ĩ and f̃ by level, then o, g, i, f by unit");
    const Init start = parts::torch_uniform(H);
    Var U = l.parameter("hh.weight", {rows, H}, start,
                        "U, rows ĩ and f̃ by level, then o, g, i, f by unit; starts uniform in ±1/√H, as its bias.");
    const Var d = l.parameter("hh.bias", {rows}, start, "The bias of hh.");
    const double dropped = l.hyper.real("dropconnect");
    if (dropped > 0.0) U = (1.0 - dropped) * U;
    // Sums over the levels after each: 1 - cumax to the last digit.
    std::vector<double> later(static_cast<std::size_t>(n * n), 0.0);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t k = 0; k < j; ++k) later[static_cast<std::size_t>(j * n + k)] = 1.0;
    const Var after = l.graph().constant({n, n}, later);
    return step(l, {{"h", {H}, "The hidden state: what is read out and fed back."}, {"c", {H}, "The cell, level after level."}},
                {tokens + d}, [=](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
                  const Var all = linear(s[0], U, u[0]);
                  const std::int64_t batch = all.dim(0);
                  const auto softmax = [&](Var v) {
                    const Var e = exp(v - largest(v));
                    return e / reshape(sum(e, -1), {batch, 1});
                  };
                  const auto of_level = [&](Var v) { return reshape(v, {batch, n, 1}); };
                  const auto of_unit = [&](std::int64_t gate) {
                    return reshape(slice(all, -1, 2 * n + gate * H, 2 * n + (gate + 1) * H), {batch, n, C});
                  };
                  const auto flat = [&](Var v) { return reshape(v, {batch, H}); };
                  const Var in = softmax(slice(all, -1, 0, n)), forget = softmax(slice(all, -1, n, 2 * n));
                  const Var written = cell.gate("master_input", matmul(in, after), 0.0, 1.0,
                                                "ĩ: how much of each level is written; falls from level to level.");
                  const Var kept = cell.gate("master_forget", cumulative_sum(forget, -1), 0.0, 1.0,
                                             "f̃: how much of each level is kept; rises from level to level.");
                  const Var not_written = cumulative_sum(in, -1), not_kept = matmul(forget, after);
                  cell.gate("distance", mean_keep(not_kept, -1), 0.0, 1.0,
                            "1 − mean f̃: the share of the levels that is closed here, from which trees are read.");
                  cell.gate("distance_in", mean_keep(written, -1), 0.0, 1.0, "mean ĩ: the share of the levels that is written.");
                  const Var open = sigmoid(flat(of_unit(0))), candidate = tanh(flat(of_unit(1)));
                  // f̃ - ω is f̃ (1 - ĩ), and ĩ - ω is ĩ (1 - f̃).
                  const Var f = flat(of_level(kept) * (sigmoid(of_unit(3)) * of_level(written) + of_level(not_written)));
                  const Var i = flat(of_level(written) * (sigmoid(of_unit(2)) * of_level(kept) + of_level(not_kept)));
                  cell.gate("forget", f, 0.0, 1.0, "f̂: how much of the cell is kept.");
                  cell.gate("input", i, 0.0, 1.0, "î: how much of the candidate is written.");
                  cell.gate("candidate", candidate, -1.0, 1.0, "tanh(g): what may be written.");
                  cell.gate("output", open, 0.0, 1.0, "σ(o): how much of the cell is shown.");
                  const Var c = f * s[1] + i * candidate;
                  return std::vector<Var>{open * tanh(c), c};
                })[0];
  };
  return a;
}

}  // namespace reclab::architectures
