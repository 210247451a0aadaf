// SPDX-License-Identifier: GPL-3.0-or-later
//   [y q k β] = W_{t-1}^T x,   q, k ← softmax,   W_t = W_{t-1} + k_t (σ(β) ∘ (W_{t-1}^T q_t - W_{t-1}^T k_t))^T,   one β for each part of W
//   block: u ← norm(u) + W_o y,   u ← u + W₂ relu(W₁ norm(u))
// K. Irie, I. Schlag, R. Csordás, J. Schmidhuber, A modern self-referential weight matrix that learns to modify itself, ICML 2022. Names
// and conventions of the authors' modern-srwm.
#include <cmath>

#include "array/error.h"
#include "models/parts/features.h"
#include "models/parts/parts.h"
#include "recurrence/chunks.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture srwm() {
  Architecture a;
  a.title = "SRWM";
  a.equations = {"x_t: the input by head, or its softmax;  W = [W_y W_q W_k w_b], W_i,t = W_i + ΔW_i,t",
                 "y_t = W_y,t-1ᵀ x_t,  q = softmax(W_q,t-1ᵀ x_t),  k = softmax(W_k,t-1ᵀ x_t),  β = σ(w_b,t-1ᵀ x_t) ∈ (0, 1)⁴",
                 "ΔW_i,t = ΔW_i,t-1 + β_i k (W_i,t-1ᵀ q − W_i,t-1ᵀ k)ᵀ for i = y, q, k, b",
                 "block: u ← norm(u) + W_o y_t (use_ln=no: u + W_o y_t),  u ← u + W₂ relu(W₁ norm(u) + b₁) + b₂"};
  a.notes = {
      "Names and shapes are those of modern-srwm: W_y, W_q, W_k [1, heads, D, D] and w_b [1, heads, D, 4] act on rows, x W; out_linear, "
      "layer_norm. Layers alternate there with feed-forward ones: layers.{2n+1} is ff here.",
      "The output is read before the matrix is rewritten, by the old one, and so are q, k and β.",
      "The states are what has been added to the weights, as in get_state there; they start at 0, and the first step reads the weights as "
      "they are trained.",
      "The survey of Tiezzi et al. 2024 writes one learning rate for the whole matrix; here, as in the code, each of its four parts has "
      "its own.",
      "The four entries of β are the learning rates of W_y, W_q, W_k and w_b itself.",
      "use_ln=no is the layer of the authors' reinforcement learning, with input_softmax; there it is w_b's mean that is drawn about 0.",
      "The heads are slices of the input: heads times D is the width. All norms are layer norms with epsilon 1e-5.",
      "Heads do not see each other, and the step is one Jacobian of all of them, so spectra cost the cube of the number of all entries. "
      "Where D is above 2 the eigenvalue 1 has fewer eigenvectors than its multiplicity: what is computed about it is right to 1e-8."};
  a.hyper = {
      hyper_integer("width", "d", 16, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the width."),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_flag("input_softmax", false, "Whether the matrix reads the softmax of each head's input (use_input_softmax)."),
      hyper_flag("use_ln", true, "Whether what the output is added to is normalised."),
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
      initialisation_only(hyper_real("beta_init", "", 0.0, -20.0, 20.0, "Mean that w_b starts with; the layer's own default is -1.")),
      hyper_choice("block", "residual", {"residual", "none"},
                   "The layer with norm, residual and feed-forward part, or the matrix with its output projection alone.")};
  a.spectrum =
      "eigenvalues of ∂(ΔW_y, ΔW_q, ΔW_k, Δw_b)_t/∂(...)_{t-1}: about those of I + β_i k (q − k)ᵀ, which are 1 and 1 + β_i k·(q − k), "
      "moved by what q, k and β owe to the matrix";
  a.source = {"K. Irie, I. Schlag, R. Csordás, J. Schmidhuber", "A modern self-referential weight matrix that learns to modify itself",
              "ICML", "https://arxiv.org/abs/2202.05780", 2022};
  a.reference = {{"layers.{2n}.*", "*"}, {"layers.{2n+1}.*", "ff.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.integer("width") % h.integer("heads"))
      throw Error("srwm: heads = " + h.text("heads") + " does not divide width = " + h.text("width") + ": choose a divisor.",
                  {.model = "srwm", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of width"});
  };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), D = d / heads;
    const double deviation = 1.0 / std::sqrt(static_cast<double>(D)), mean = h.real("beta_init");
    const char* names[] = {"W_y", "W_q", "W_k", "w_b"};
    const std::int64_t columns[] = {D, D, D, 4};
    const char* roles[] = {"what the output is read with", "what the query is read with", "what the key is read with",
                           "what the four learning rates are read with, of W_y, W_q, W_k and w_b"};
    std::vector<Var> slow;
    std::vector<StateSpec> states;
    for (std::size_t i = 0; i < 4; ++i) {
      const Init start =
          i < 3 ? init::normal(deviation) : init::each([=](Rng& rng, std::int64_t) { return mean + deviation * rng.normal(); });
      const Var W = l.parameter(names[i], {1, heads, D, columns[i]}, start,
                                std::string(names[i]) + ": " + roles[i] + ", as it is before the first step; starts N(" +
                                    (i < 3 ? "0" : "beta_init") + ", 1/D).");
      slow.push_back(reshape(W, {heads, D, columns[i]}));
      states.push_back({"d" + std::string(names[i]),
                        {heads, D, columns[i]},
                        "What has been added to " + std::string(names[i]) + " of each head, [input, output]."});
    }
    Var x = parts::by_head(l, u, heads);
    if (h.flag("input_softmax")) x = parts::softmax(x);
    const auto found = step_and_read(l, states, {x}, [slow](Cell& cell, std::span<const Var> t, std::span<const Var> s) {
      std::vector<Var> W;
      for (std::size_t i = 0; i < 4; ++i) W.push_back(slow[i] + s[i]);
      const auto read = [](Var matrix, Var by) { return sum(chunks::with_axis(by, -1) * matrix, -2); };  // [batch, heads, columns]
      const Var q = parts::softmax(read(W[1], t[0])), k = parts::softmax(read(W[2], t[0]));
      const Var beta =
          cell.gate("beta", sigmoid(read(W[3], t[0])), 0.0, 1.0, "β: how far W_y, W_q, W_k and w_b are rewritten at the key, one each.");
      const Var column = chunks::with_axis(k, -1), apart = q - k;
      std::vector<Var> made;
      for (std::size_t i = 0; i < 4; ++i) {
        const auto part = static_cast<std::int64_t>(i);
        made.push_back(s[i] + column * chunks::with_axis(slice(beta, -1, part, part + 1) * read(W[i], apart), -2));
      }
      made.push_back(read(W[0], t[0]));
      return made;
    });
    const Var y = parts::linear(l, "out_linear", parts::flat(l, found.reads[0]), d, "W_o, columns by head", false);
    if (h.choice("block") == "none") return y;
    const Var after = (h.flag("use_ln") ? parts::layer_norm(l, "layer_norm", u) : u) + y;
    const std::int64_t F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d;
    const Var hidden =
        relu(parts::linear(l, "ff.ff_layers.0", parts::layer_norm(l, "ff.layer_norm", after), F, "W₁ of the feed-forward part"));
    return after + parts::linear(l, "ff.ff_layers.3", hidden, d, "W₂ of the feed-forward part");
  };
  return a;
}

}  // namespace reclab::architectures
