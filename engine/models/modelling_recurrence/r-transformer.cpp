// SPDX-License-Identifier: GPL-3.0-or-later
//   n times:  x ← x + h_t^{(K)},  h^{(j)} = cell(h^{(j-1)}, norm(x)_{t-K+j}), j = 1 … K, h^{(0)} = 0:  a recurrent network that starts anew
//   K steps before each step x ← x + W_o Σ_{s ≤ t} softmax_s(q_t·k_s/√D) v_s by head, of norm(x);   x ← x + W₂ relu(W₁ norm(x));   norm(x)
//   = a (x - mean)/(std + ε) + b
// Z. Wang, Y. Ma, Z. Liu, J. Tang, R-Transformer: recurrent neural network enhanced transformer, 2019. Names and conventions of
// DSE-MSU/R-transformer, models/RTransformer.py.
#include <cmath>

#include "array/error.h"
#include "models/parts/layers/torch_cell.h"
#include "models/parts/parts.h"
#include "recurrence/attention/attention.h"

namespace reclab::architectures {
namespace {

/// The reference's norm: the standard deviation of d - 1 degrees of freedom, with epsilon added to it and not to its square. Where all
/// entries are equal no gradient passes through the deviation, as in torch.
Var deviation_norm(Layer& l, const std::string& name, Var x, double eps) {
  const std::int64_t d = x.dim(-1);
  const Var scale = l.parameter(name + ".a_2", {d}, init::constant(1.0), "Scale of the norm; starts at 1.");
  const Var shift = l.parameter(name + ".b_2", {d}, init::constant(0.0), "Its shift; starts at 0.");
  const Var centred = x - mean_keep(x, -1);
  const Var variance = mean_keep(square(centred), -1) * (static_cast<double>(d) / static_cast<double>(d - 1));
  const Var deviation = sqrt(maximum(variance, x.graph->constant({1}, {1e-36})));
  return scale * centred / (deviation + eps) + shift;
}

}  // namespace

Architecture r_transformer() {
  Architecture a;
  a.title = "R-Transformer";
  a.equations = {"norm(x) = a ⊙ (x − mean)/(std + ε) + b, std with d − 1 in the denominator",
                 "n times:  x_t ← x_t + h_K,  h_j = cell(h_{j−1}, norm(x)_{t−K+j}) for j = 1 … K, h_0 = 0, inputs before the first step 0",
                 "x_t ← x_t + W_o concat_h Σ_{s≤t} softmax_s(q_t·k_s/√D) v_s + b_o, q, k, v linear in norm(x)",
                 "x_t ← x_t + W₂ relu(W₁ norm(x_t) + b₁) + b₂"};
  a.notes = {
      "Names and shapes are those of the authors' RTransformer: layers.i.local_rnn.rnn (torch.nn.GRU, LSTM or RNN with tanh), "
      "layers.i.connection.norm, connections.0 and .1, pooling.linears.0 to .3 for q, k, v and the output, feed_forward.w_1 and w_2. "
      "A layer here is a block of the reference, and forward_net.n of a file is layer n; its local_rnn.output, and the norm and "
      "feed_forward beside forward_net, are made and not used there.",
      "The local network begins anew for every step, K steps before it, so a layer's steps could all be computed at once, and no state of "
      "it lasts: what is carried over are its last K − 1 inputs.",
      "There are no positions; the order of steps is known from the windows alone. No norm follows the last layer.",
      "The reference has no window of attention: 0 here.",
      "The states are the cache of keys and values, keys without their bias: it adds the same to all scores of a step, and no output "
      "depends on it. There is no transition, hence no spectrum and no ds_T/ds_t."};
  a.hyper = {hyper_integer("width", "d", 64, 2, 4096, "Width of the stream.", "channels"),
             hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the width."),
             hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row (n_level)."),
             hyper_integer("local_layers", "n", 1, 1, 16, "Local recurrent networks in a block, one after the other (n)."),
             hyper_integer("ksize", "K", 7, 1, 256, "Steps that a local network sees, the current one included.", "steps"),
             hyper_choice("rnn_type", "gru", {"gru", "lstm", "rnn"}, "Its cell."),
             hyper_integer("feed_forward", "d_ff", 0, 0, 65536,
                           "Hidden width of the feed-forward part; 0: four times the width, as in the reference.", "units"),
             hyper_integer("window", "", 0, 0, 1000000, "Steps that the attention sees, the current one included; 0: all.", "steps"),
             hyper_real("norm_eps", "ε", 1e-6, 1e-12, 1.0, "What is added to the standard deviation.", true)};
  a.spectrum =
      "none: attention reads all stored steps at once, and the local network begins anew at every step: no matrix takes one state to the "
      "next";
  a.source = {"Z. Wang, Y. Ma, Z. Liu, J. Tang", "R-Transformer: recurrent neural network enhanced transformer", "",
              "https://arxiv.org/abs/1907.05572", 2019};
  a.reference = {{"forward_net.{n}.*", "*"}};
  for (const char* unused : {"local_rnn.output.0.weight", "local_rnn.output.0.bias", "norm.a_2", "norm.b_2", "feed_forward.w_1.weight",
                             "feed_forward.w_1.bias", "feed_forward.w_2.weight", "feed_forward.w_2.bias"})
    a.reference.push_back({unused, ""});
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.integer("width") % h.integer("heads"))
      throw Error("r-transformer: heads = " + h.text("heads") + " does not divide width = " + h.text("width") + ": choose a divisor.",
                  {.model = "r-transformer", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of width"});
  };
  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), D = d / heads, T = l.steps(), B = l.batch(),
                       K = h.integer("ksize");
    const double eps = h.real("norm_eps");
    for (std::int64_t n = 0; n < h.integer("local_layers"); ++n) {
      const std::string name = "layers." + std::to_string(n) + ".", number = h.integer("local_layers") > 1 ? std::to_string(n) : "";
      const parts::TorchCell cell(l, h.choice("rnn_type"), name + "local_rnn.rnn.", d, d);
      const Var in = deviation_norm(l, name + "connection.norm", x, eps);
      // Row j of the history and the present inputs is the input at place j - i of the window of step i.
      const Var drive = cell.driven(l.history("window" + number, in, K - 1, "The last inputs of the local network, oldest first."));
      std::vector<Var> s(cell.states().size(), affine(in, 0.0, 0.0));
      for (std::int64_t j = 0; j < K; ++j) {
        std::vector<parts::TorchCell::Gate> gates;
        s = cell(slice(drive, 0, j, j + T), s, j == K - 1 ? &gates : nullptr);
        for (const auto& gate : gates) l.gate(gate.name + number, gate.value, 0.0, 1.0, gate.text + " At the window's last step.");
      }
      const Var local = l.gate("local" + number, s[0], -1.0, 1.0, "h_K: what the local network makes of the window that ends here.");
      x = x + local;
    }
    const auto affine_map = [&](const std::string& name, Var v, std::int64_t out, const std::string& role) {
      return parts::linear(l, name, v, out, role);
    };
    const Var seen = deviation_norm(l, "connections.0.norm", x, eps);
    const auto by_head = [&](Var y) { return reshape(y, {T, B, heads, D}); };
    const Var q = by_head(affine_map("pooling.linears.0", seen, d, "W_q, rows by head"));
    // The bias of the keys adds the same to all scores of a step, which softmax does not see: it is left out, so that its gradient is 0 and
    // not rounding.
    const Init start = parts::torch_uniform(d);
    const Var W_k = l.parameter("pooling.linears.1.weight", {d, d}, start, "W_k, rows by head; starts uniform in ±1/√in, as its bias.");
    l.parameter("pooling.linears.1.bias", {d}, start, "The bias of pooling.linears.1, which no output depends on.");
    const Var k = by_head(linear(seen, W_k)), v = by_head(affine_map("pooling.linears.2", seen, d, "W_v, rows by head"));
    const Var read = attention(l, {"k", {heads, D}, "The key that each step appends to the cache."},
                               {"v", {heads, D}, "The value that each step appends to the cache."}, q / std::sqrt(static_cast<double>(D)),
                               k, v, h.integer("window"));
    x = x + affine_map("pooling.linears.3", parts::flat(l, read), d, "W_o");
    const std::int64_t F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d;
    const Var hidden = relu(affine_map("feed_forward.w_1", deviation_norm(l, "connections.1.norm", x, eps), F, "W₁"));
    return x + affine_map("feed_forward.w_2", hidden, d, "W₂");
  };
  return a;
}

}  // namespace reclab::architectures
