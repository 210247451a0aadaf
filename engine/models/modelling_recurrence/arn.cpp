// SPDX-License-Identifier: GPL-3.0-or-later
//   recurrence encoder:  r_t = f(r_{t-1}, c_t),  c_t = att(r_{t-1}, x_{t-w+1} … x_t) (attentive recurrent network), or c_t = x_t (a plain
//   one)
//     C_r = norm(r + x),  H_r = norm(C_r + FF(C_r))
//   beside it c_e = att(x, x) and c_r = att(x, H_r), causal:  gated sum y = λ ⊙ c_e + (1 − λ) ⊙ c_r, λ = σ(W_g [c_e; c_r] + b_g), or one
//   after the other
// J. Hao, X. Wang, B. Yang, L. Wang, J. Zhang, Z. Tu, Modeling recurrence for transformer, NAACL 2019.
#include <cmath>

#include "array/error.h"
#include "models/parts/layers/encoder_layer.h"
#include "models/parts/layers/torch_cell.h"
#include "models/parts/parts.h"
#include "recurrence/attention/attention.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

/// The windows of w rows of a sequence that has w - 1 rows more in front: [steps, batch, w, ...].
Var windows(Var rows, std::int64_t w) {
  const std::int64_t T = rows.dim(0) - w + 1;
  Shape one = rows.shape();
  one[0] = T;
  one.insert(one.begin() + 2, 1);
  std::vector<Var> parts;
  for (std::int64_t j = 0; j < w; ++j) parts.push_back(reshape(slice(rows, 0, j, j + T), one));
  return concat(parts, 2);
}

/// The recurrence over x: its states, named r (and c), of which r is returned.
Var recurrent(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  const std::int64_t d = x.dim(-1), heads = h.integer("heads"), D = d / heads, w = h.integer("window");
  const std::string kind = h.choice("cell");
  std::vector<StateSpec> states{{"r", {d}, "The state of the recurrence encoder."}};
  if (kind == "lstm") states.push_back({"c", {d}, "The cell of its LSTM."});
  const parts::TorchCell network(l, kind, "rec.rnn.", d, d);
  const auto advance = [=](Cell& cell, Var drive, std::span<const Var> s) {
    std::vector<parts::TorchCell::Gate> gates;
    const auto next = network(drive, s, &gates);
    for (const auto& gate : gates) cell.gate(gate.name, gate.value, 0.0, 1.0, gate.text);
    return next;
  };
  if (h.choice("recurrence") == "rnn")
    return step(l, states, {network.driven(x)},
                [=](Cell& cell, std::span<const Var> u, std::span<const Var> s) { return advance(cell, u[0], s); })[0];
  const bool bias = h.flag("bias");
  const Var W = l.parameter(
      "rec.attn.in_proj_weight", {3 * d, d}, parts::xavier_uniform(d, 3 * d),
      "W of the attention inside the recurrence: rows of q, from the state before, k and v, from the inputs; starts Xavier uniform.");
  const Var b = bias ? l.parameter("rec.attn.in_proj_bias", {3 * d}, init::constant(0.0), "Its bias; starts at 0.") : Var{};
  const Var W_o = l.parameter("rec.attn.out_proj.weight", {d, d}, parts::torch_uniform(d), "Its W_o; starts uniform in ±1/√d.");
  const Var b_o = bias ? l.parameter("rec.attn.out_proj.bias", {d}, init::constant(0.0), "Its bias; starts at 0.") : Var{};
  const auto kept = [&](std::int64_t i, const char* name, const char* text) {
    const Var mapped = linear(x, slice(W, 0, i * d, (i + 1) * d), b ? slice(b, 0, i * d, (i + 1) * d) : Var{});
    return windows(l.history(name, mapped, w - 1, text), w);
  };
  const Var keys = kept(1, "rec_keys", "The last keys of the recurrence's attention, oldest first."),
            values = kept(2, "rec_values", "Its last values.");
  // Places of the first windows that lie before the sequence are masked: one more entry of their keys, -1e9, meets a 1 of the query.
  std::vector<double> back;
  for (std::int64_t j = 0; j < w; ++j) back.push_back(static_cast<double>(w - 1 - j));
  const Var hidden = relu(sign(l.graph().constant({w}, std::move(back)) - l.position())) * -1e9;
  const Var W_q = slice(W, 0, 0, d), b_q = b ? slice(b, 0, 0, d) : Var{};
  return step(l, states, {keys, values, hidden}, [=](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
    const std::int64_t B = s[0].dim(0);
    const int by_head[] = {0, 2, 1, 3};
    const auto of_heads = [&](Var v) { return reshape(permute(reshape(v, {B, w, heads, -1}), by_head), {B * heads, w, -1}); };
    const Var each_head = u[0].graph->constant({heads, 1}, std::vector<double>(static_cast<std::size_t>(heads), 1.0));
    const Var key[] = {reshape(u[0], {B, w, heads, D}), reshape(u[2], {B, w, 1, 1}) * each_head};
    const Var query[] = {reshape(linear(s[0], W_q, b_q) / std::sqrt(static_cast<double>(D)), {B, heads, D}),
                         reshape(affine(slice(s[0], -1, 0, 1), 0.0, 1.0), {B, 1, 1}) * each_head};
    SoftmaxAttention a;
    a.q = reshape(concat(query, -1), {B * heads, 1, D + 1});
    a.k = of_heads(concat(key, -1));
    a.v = of_heads(u[1]);
    const Var read = linear(reshape(softmax_attention(a, false), {B, d}), W_o, b_o);
    return advance(cell, network.driven(read), s);
  })[0];
}

Var read_of(Layer& l, const std::string& name, const parts::AttentionInputs& of) {
  const std::int64_t heads = of.q.dim(2), D = of.q.dim(3), w = l.hyper.integer("attention_window");
  const Var read = attention(l, {.name = name + "k", .shape = {heads, D}, .text = "The keys so far.", .auxiliary = true},
                             {.name = name + "v", .shape = {heads, D}, .text = "The values so far.", .auxiliary = true},
                             of.q / std::sqrt(static_cast<double>(D)), of.k, of.v, w);
  return parts::flat(l, read);
}

}  // namespace

Architecture arn() {
  Architecture a;
  a.title = "Attentive recurrent network";
  a.equations = {
      "recurrence encoder: r_t = f(r_{t−1}, c_t), f an RNN, GRU or LSTM;  arn: c_t = att(r_{t−1}; x_{t−w+1} … x_t), the state before as "
      "the query;  rnn: c_t = x_t",
      "C_r = norm(x + r),  H_r = norm(C_r + W₂ f(W₁ C_r))",
      "c_e = att(x_t; x_s, s ≤ t),  c_r = att(x_t; H_{r,s}, s ≤ t), each by heads with projections of its own",
      "gated_sum: x ← norm₁(x + λ ⊙ c_e + (1 − λ) ⊙ c_r),  λ = σ(W_g [c_e; c_r] + b_g)",
      "stack: x ← norm₁(x + c_e),  x ← norm₃(x + c_r), c_r with that x as its query",
      "x ← norm₂(x + W₂ f(W₁ x))"};
  a.notes = {
      "No public code of the authors was found. Blocks and attentions are torch.nn.TransformerEncoderLayer and MultiheadAttention with "
      "their names: self_attn, rec_attn (the attention to H_r), rec.attn (inside the recurrence), rec.rnn as in torch.nn.RNN, GRU and "
      "LSTM.",
      "The paper translates: encoder and recurrence encoder read a source sentence, the decoder attends to both. Here one sequence is "
      "source and target, read causally, so the recurrence encoder has one direction, and its attention sees the last w inputs in place of "
      "the whole sentence.",
      "The paper finds one recurrent layer best, which is what each layer here has, made of that layer's input.",
      "Norms come after the residuals. What the description of the paper leaves open, the gate's linear map of both reads and the heads of "
      "the inner attention, is as in PyTorch's modules.",
      "Keys and values are buffers and not recorded, so spectrum and ds_T/ds_t are those of the recurrence, its inputs held."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream and of the recurrence.", "channels"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads of each attention; must divide the width."),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row, each with a recurrence encoder of its own."),
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward parts; 0: four times the width.", "units"),
      hyper_choice("activation", "relu", {"relu", "gelu"}, "f of the feed-forward parts."),
      hyper_flag("bias", true, "Whether projections and norms have biases; the recurrent network has."),
      hyper_choice("recurrence", "arn", {"arn", "rnn"}, "The attentive recurrent network, or a plain one."),
      hyper_choice("cell", "gru", {"gru", "lstm", "rnn"}, "Its transition; rnn is that with tanh."),
      hyper_integer("window", "w", 4, 1, 4096, "Steps that the state attends to, the current one included.", "steps"),
      hyper_choice("fusion", "gated_sum", {"gated_sum", "stack"}, "How what the two attentions read comes together."),
      hyper_choice("position", "sinusoidal", {"sinusoidal", "none"}, "How a step knows where it is."),
      hyper_integer("attention_window", "", 0, 0, 1000000,
                    "Steps that the attentions beside the recurrence see, the current one included; 0: all.", "steps"),
      hyper_real("norm_eps", "ε", 1e-5, 1e-12, 1.0, "Epsilon of all norms.", true)};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂r_t/∂r_{t-1} (lstm: of r and c), with arn that through its own attention too";
  a.source = {"J. Hao, X. Wang, B. Yang, L. Wang, J. Zhang, Z. Tu", "Modeling recurrence for transformer", "NAACL",
              "https://arxiv.org/abs/1904.03092", 2019};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) { parts::check_encoder(h, "arn"); };
  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    x = parts::with_positions(l, x);
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"),
                       F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d;
    const bool bias = h.flag("bias"), gated = h.choice("fusion") == "gated_sum";
    const auto norm = [&](const std::string& name, Var v) { return parts::layer_norm(l, name, v, h.real("norm_eps"), bias); };
    const auto feed = [&](const std::string& name, Var v) {
      return parts::linear(l, name + "linear2",
                           parts::activation(h.choice("activation"), parts::linear(l, name + "linear1", v, F, "W₁", bias)), d, "W₂", bias);
    };
    const Var close = norm("rec.norm1", x + recurrent(l, x));
    const Var H = norm("rec.norm2", close + feed("rec.", close));
    const Var own = parts::out_projected(l, "self_attn", read_of(l, "", parts::projected(l, "self_attn", x, heads)));
    const auto of_recurrence = [&](Var query) {
      return parts::out_projected(l, "rec_attn", read_of(l, "rec_", parts::projected(l, "rec_attn", query, heads, H)));
    };
    if (gated) {
      const Var both[] = {own, of_recurrence(x)};
      const Var share = l.gate("self", sigmoid(parts::linear(l, "gate", concat(both, -1), d, "W_g, columns c_e, c_r", bias)), 0.0, 1.0,
                               "λ: the share of what self-attention reads; the rest comes from the recurrence.");
      x = norm("norm1", x + share * both[0] + (1.0 - share) * both[1]);
    } else {
      x = norm("norm1", x + own);
      x = norm("norm3", x + of_recurrence(x));
    }
    return norm("norm2", x + feed("", x));
  };
  return a;
}

}  // namespace reclab::architectures
