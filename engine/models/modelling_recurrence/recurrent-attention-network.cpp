// SPDX-License-Identifier: GPL-3.0-or-later
//   Z = norm([c; x_{t₀} … x_{t₀+n−1}]),  Y = norm(f(W_o att(Z)) + (W_t Z + b_t) ⊙ σ(W_g Z + b_g)),  q, k, v = f(W Z + b), q and k turned by
//   the row's number c̃ = unit(Y_0),  outputs unit(Y_1 …);   c ← c̃ after the first window, then norm(c̃ + glu(the c̃ before)) memory review:
//   norm(f(W_o att(outputs; c₀ and the c̃ of all windows before)) + glu(f(W_q outputs)));  unit(x) = (x − mean)/√(mean x² + 10⁻⁷), norm(x) =
//   γ unit(x) + β
// X. Li, Z. Li, X. Luo, H. Xie, X. Lee, Y. Zhao, F. L. Wang, Q. Li, Recurrent attention networks for long-text modeling, Findings of ACL
// 2023. Conventions of 4AI/RAN, rannet/ran.py.
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/attention/attention.h"
#include "recurrence/segments/segments.h"

namespace reclab::architectures {
namespace {

/// The reference's norm, whose variance is not centred.
struct Norm {
  Var gamma, beta;
  double eps;
  Norm(Layer& l, const std::string& name, std::int64_t d)
      : gamma(l.parameter(name + ".gamma", {d}, init::constant(1.0), "Scale of the norm; starts at 1.")),
        beta(l.parameter(name + ".beta", {d}, init::constant(0.0), "Its shift; starts at 0.")),
        eps(l.hyper.real("norm_eps")) {}
  static Var unit(Var x, double eps) { return (x - mean_keep(x, -1)) / sqrt(mean_keep(square(x), -1) + eps); }
  Var operator()(Var x) const { return gamma * unit(x, eps) + beta; }
};

/// x K + b, K [in, out] as in Keras.
struct KerasDense {
  Var kernel, bias;
  KerasDense(Layer& l, const std::string& name, std::int64_t in, std::int64_t out, const std::string& role)
      : kernel(l.parameter(name + ".kernel", {in, out}, init::truncated_normal(std::sqrt(2.0 / static_cast<double>(in + out))),
                           role + ", [in, out]; starts truncated normal with deviation √(2/(in + out)) (Glorot).")),
        bias(l.parameter(name + ".bias", {out}, init::constant(0.0), "Its bias; starts at 0.")) {}
  Var operator()(Var x) const { return matmul(x, kernel) + bias; }
};

struct Glu {
  KerasDense t, g;
  Glu(Layer& l, const std::string& name, std::int64_t in, std::int64_t d)
      : t(l, name + ".dense_t", in, d, "W_t of the gated residual"), g(l, name + ".dense_g", in, d, "W_g of its gate") {}
  Var operator()(Var x) const { return t(x) * sigmoid(g(x)); }
};

struct Attention {
  KerasDense q, k, v, o;
  Glu glu;
  Norm norm;
  Attention(Layer& l, const std::string& name, std::int64_t d, std::int64_t units, std::int64_t of_glu)
      : q(l, name + ".dense_q", d, units, "W_q, columns by head"),
        k(l, name + ".dense_k", d, units, "W_k, columns by head"),
        v(l, name + ".dense_v", d, units, "W_v, columns by head"),
        o(l, name + ".dense_o", units, d, "W_o"),
        glu(l, name + ".glu", of_glu, d),
        norm(l, name + ".layernorm", d) {}
};

}  // namespace

Architecture recurrent_attention_network() {
  Architecture a;
  a.title = "Recurrent attention network";
  a.equations = {
      "unit(x) = (x − mean)/√(mean x² + ε),  norm(x) = γ ⊙ unit(x) + β,  glu(x) = (W_t x + b_t) ⊙ σ(W_g x + b_g)",
      "Z = norm([c; x_{t₀} .. x_{t₀+n−1}]), a window of n steps behind the cell",
      "Y = norm(f(W_o att(Z) + b_o) + glu(Z)), q, k, v = f(W Z + b) by head, q and k of row i turned by the angles i·10000^{−2j/D}",
      "att: step i of the window sees the cell and the steps up to itself; the cell sees itself, or the window",
      "c̃ = unit(Y_0), outputs unit(Y_i);  after the first window c ← c̃, after others c ← norm(c̃ + glu(c̃ of the window before))",
      "memory review: y = norm(f(W_o' Σ_w softmax_w(q·k_w/√d) v_w + b) + glu'(q)), q = f(W_q' output + b), over c_0 and the c̃ of the "
      "windows before; else y = norm(output)"};
  a.notes = {
      "The reference reads texts in both directions: a step sees all of its window, and the review the cells of all windows, later ones "
      "too. With its causal mask the cell, which stands first, sees nothing but itself, so that it carries nothing from window to window: "
      "cell_sees=itself.",
      "cell_sees=window is what a causal run needs to carry something: the steps are read causally, the cell reads all of its window, and "
      "what it becomes is read from the next window on. The weights are the same.",
      "The review sees the first cell and the c̃ of the windows that are over. The reference's has it the other way round: without the "
      "first cell, and with the c̃ of the window itself and of those to come, which a step here cannot know: with memory_review the outputs "
      "are not the reference's. A last window that is shorter than the reference's min_window_size is not joined with the one before.",
      "Kernels are Keras', [in, out], and names those of the reference with dots and underscores: RAN-n/encode-attn/dense-q/kernel is "
      "n/encode_attn.dense_q.kernel, ran-n/… in what its export_checkpoint saves. The reference has activations on all four projections of "
      "both attentions.",
      "The first cell is the shift of cell-initializer-layernorm, which the reference saves below cell-initializer-group/ or without it: "
      "its kernel meets zeros. All norms have the variance about 0 and not about the mean.",
      "The state cell holds three rows: the cell that the next window reads, the c̃ of the last window, and whether there was one. It "
      "changes once a window, hence no spectrum and no ds_T/ds_t."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream and of the cell.", "channels"),
             hyper_integer("heads", "h", 4, 1, 64, "Heads.", ""),
             hyper_integer("head_size", "D", 0, 0, 1024, "Width of a head; even. 0: width/heads.", "channels"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
             hyper_integer("segment", "n", 16, 1, 65536, "Steps of a window (window_size).", "steps"),
             hyper_choice("activation", "swish", {"swish", "tanh", "relu", "identity"}, "f of all projections."),
             hyper_choice("cell_sees", "window", {"window", "itself"}, "What the cell reads of a window."),
             hyper_flag("memory_review", true, "Whether the outputs attend to the cells of the windows before; else a norm follows."),
             hyper_real("norm_eps", "ε", 1e-7, 1e-12, 1.0, "Epsilon of all norms.", true)};
  a.spectrum = "none: the cell changes once a window, and no matrix takes it from one step to the next";
  a.source = {"X. Li, Z. Li, X. Luo, H. Xie, X. Lee, Y. Zhao, F. L. Wang, Q. Li", "Recurrent attention networks for long-text modeling",
              "Findings of ACL", "https://aclanthology.org/2023.findings-acl.188", 2023};
  for (const std::string layer : {"RAN-{n}/", "ran-{n}/"}) {
    for (const auto& [theirs, ours] :
         std::vector<std::pair<std::string, std::string>>{{"encode-attn", "encode_attn"}, {"output-attn", "output_attn"}}) {
      for (const char* part : {"q", "k", "v", "o"})
        a.reference.push_back({layer + theirs + "/dense-" + part + "/*", ours + ".dense_" + part + ".*"});
      for (const char* part : {"t", "g"})
        a.reference.push_back({layer + theirs + "/glu/dense-" + part + "/*", ours + ".glu.dense_" + part + ".*"});
      a.reference.push_back({layer + theirs + "/layernorm/*", ours + ".layernorm.*"});
    }
    for (const char* part : {"t", "g"})
      a.reference.push_back({layer + "cell-glu/dense-" + part + "/*", std::string("cell_glu.dense_") + part + ".*"});
    a.reference.push_back({layer + "cell-residual-layernorm/*", "cell_residual_layernorm.*"});
    a.reference.push_back({layer + "concat-layernorm/*", "concat_layernorm.*"});
    a.reference.push_back({layer + "output-layernorm/*", "output_layernorm.*"});
    for (const char* group : {"cell-initializer-group/", ""})
      a.reference.push_back({layer + group + "cell-initializer-layernorm/beta", "cell_initializer_layernorm.beta"});
  }
  for (const char* unused : {"cell-initializer/kernel", "cell-initializer-layernorm/gamma"}) a.reference.push_back({unused, ""});
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), given = h.integer("head_size");
    if (!given && d % heads)
      throw Error("recurrent-attention-network: heads = " + h.text("heads") + " does not divide width = " + h.text("width") +
                      ": choose a divisor, or head_size.",
                  {.model = "recurrent-attention-network", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of width"});
    if (const std::int64_t D = given ? given : d / heads; D % 2)
      throw Error(
          "recurrent-attention-network: a head of " + std::to_string(D) + " channels cannot be turned in pairs: choose an even head_size.",
          {.model = "recurrent-attention-network", .parameter = "head_size", .value = std::to_string(D), .range = "even"});
  };
  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), D = h.integer("head_size") ? h.integer("head_size") : d / heads,
                       T = l.steps(), B = l.batch(), window = h.integer("segment");
    const std::string f = h.choice("activation");
    const double eps = h.real("norm_eps");
    const bool sees = h.choice("cell_sees") == "window";
    const Norm concat_norm(l, "concat_layernorm", d);
    const Attention encode(l, "encode_attn", d, heads * D, d);
    const Var first = l.parameter("cell_initializer_layernorm.beta", {d}, init::constant(0.0), "The first cell; starts at 0.");
    const Glu cell_glu(l, "cell_glu", d, d);
    const Norm residual_norm(l, "cell_residual_layernorm", d);
    const Var start = reshape(first, {1, d}), starts[] = {start, start, affine(start, 0.0, 0.0)};
    const Var reads = segments(
        l, {{"cell", {3, d}, "The cell that the window reads, the one that the window before left, and whether there was one."}},
        {concat(starts, 0)}, x, window, [=](Cell&, std::span<const Var> states, Var tokens) {
          const Var m = states[0];
          const std::int64_t batch = tokens.dim(0), n = tokens.dim(1), rows = n + 1;
          const Var cell = slice(m, 1, 0, 1), last = slice(m, 1, 1, 2), begun = slice(m, 1, 2, 3), both[] = {cell, tokens};
          const Var Z = concat_norm(concat(both, 1));
          std::vector<double> angles;
          for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < D / 2; ++j)
              angles.push_back(static_cast<double>(i) * std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(D)));
          const Var angle = tokens.graph->constant({rows, 1, D / 2}, std::move(angles));
          const int swap[] = {0, 2, 1, 3};
          const auto by_head = [&](Var y) { return reshape(permute(y, swap), {batch * heads, rows, D}); };
          const auto split_heads = [&](Var y) { return reshape(y, {batch, rows, heads, D}); };
          const auto active = [&](Var y) { return parts::activation(f, y); };
          SoftmaxAttention s;
          s.over_time = false;
          s.q = by_head(parts::rotated(split_heads(active(encode.q(Z))), angle, true)) / std::sqrt(static_cast<double>(D));
          s.k = by_head(parts::rotated(split_heads(active(encode.k(Z))), angle, true));
          s.v = by_head(split_heads(active(encode.v(Z))));
          Var read = softmax_attention(s, false);
          if (sees) {  // the cell once more, as a query behind all keys
            SoftmaxAttention whole = s;
            whole.q = slice(s.q, 1, 0, 1);
            const Var parts[] = {softmax_attention(whole, false), slice(read, 1, 1, rows)};
            read = concat(parts, 1);
          }
          const Var Y = encode.norm(
              active(encode.o(reshape(permute(reshape(read, {batch, heads, rows, D}), swap), {batch, rows, heads * D}))) + encode.glu(Z));
          const Var fresh = Norm::unit(slice(Y, 1, 0, 1), eps), outputs = Norm::unit(slice(Y, 1, 1, rows), eps);
          const Var spread = last + affine(outputs, 0.0, 0.0), out[] = {outputs, spread};
          if (n < window) return SegmentResult{concat(out, -1), {}};
          const Var next = begun * residual_norm(fresh + cell_glu(last)) + (1.0 - begun) * fresh;
          const Var memory[] = {next, fresh, affine(begun, 0.0, 1.0)};
          return SegmentResult{concat(out, -1), {concat(memory, 1)}};
        });
    const Var outputs = slice(reads, -1, 0, d), cells = slice(reads, -1, d, 2 * d);
    if (!h.flag("memory_review")) return Norm(l, "output_layernorm", d)(outputs);
    const Attention review(l, "output_attn", d, d, d);
    const auto active = [&](Var y) { return parts::activation(f, y); };
    // The first step of each window brings the cell of the one before; the other steps' get a score that leaves nothing of them, by an
    // entry that meets a 1 of the query.
    const Var t = l.position(), own = t - floor((t + 0.5) / static_cast<double>(window)) * static_cast<double>(window);
    const Var hidden = reshape(sign(own) * -1e9, {T, B, 1, 1}), q = active(review.q(outputs));
    const Var key[] = {reshape(active(review.k(cells)), {T, B, 1, d}), hidden};
    const Var query[] = {reshape(q / std::sqrt(static_cast<double>(d)), {T, B, 1, d}), affine(hidden, 0.0, 1.0)};
    const Var read = attention(l,
                               {.name = "review_k",
                                .shape = {1, d + 1},
                                .text = "The keys of the cells so far, one a step, those within a window hidden.",
                                .auxiliary = true},
                               {.name = "review_v", .shape = {1, d}, .text = "Their values.", .auxiliary = true}, concat(query, -1),
                               concat(key, -1), reshape(active(review.v(cells)), {T, B, 1, d}), 0);
    return review.norm(active(review.o(parts::flat(l, read))) + review.glu(q));
  };
  return a;
}

}  // namespace reclab::architectures
