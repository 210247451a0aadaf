// SPDX-License-Identifier: GPL-3.0-or-later
//   y_t = W_o (σ(q_t) ∘ Σ_{s ≤ t} e^{k_s + w_ts} ∘ v_s / Σ_{s ≤ t} e^{k_s + w_ts});   q, k, v linear in x
//   w = 0: AFT-simple;   w_ts learned where t - s < window, else 0: AFT-local;   learned for every pair: AFT-full
// S. Zhai, W. Talbott, N. Srivastava et al., An attention free transformer, 2021. Names of labml_nn's AFTLocal in its TransformerLayer; the
// authors published no code.
#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/attention/attention.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

constexpr double nothing_yet = -1e38;  // a running maximum before anything has been seen

/// The biases w [positions, positions].
Var pair_biases(Layer& l) {
  const std::int64_t P = l.hyper.integer("positions"), rank = l.hyper.integer("rank");
  const double deviation = l.hyper.real("bias_std");
  if (!rank)
    return l.parameter(
        "self_attn.pos_bias", {P, P}, init::normal(deviation),
        "w, row t and column s; entries of later steps, and those outside the window, are not read; starts N(0, bias_std²).");
  const Init start = init::normal(std::sqrt(deviation / std::sqrt(static_cast<double>(rank))));  // so that a product has bias_std
  const Var u =
      l.parameter("self_attn.pos_u", {P, rank}, start, "Rows u_t of w_ts = u_t·v_s; starts so that w has the deviation bias_std.");
  return matmul_transposed(u, l.parameter("self_attn.pos_v", {P, rank}, start, "Rows v_s of w_ts = u_t·v_s; starts likewise."));
}

/// w_{t,t-j} for j = 0 .. window - 1, newest first, of each step of the layer; 0 from step `positions` on. [steps, 1, window, 1].
Var biases_of_window(Layer& l, std::int64_t window) {
  const std::int64_t P = l.hyper.integer("positions"), T = l.steps();
  Graph& graph = l.graph();
  // Entry (t, t - j) of w is t (P + 1) - j in row-major order: with `window` zeros in front it is in row t and column window - j of rows of
  // P + 1.
  std::vector<Var> joined{graph.constant({window}, std::vector<double>(static_cast<std::size_t>(window), 0.0)),
                          reshape(pair_biases(l), {P * P})};
  if (P > window) joined.push_back(graph.constant({P - window}, std::vector<double>(static_cast<std::size_t>(P - window), 0.0)));
  const Var bands = slice(reshape(concat(joined, 0), {P, P + 1}), 1, 1, window + 1);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < P; ++i) numbers.push_back(static_cast<double>(i));
  const Var t = reshape(slice(l.position(), 1, 0, 1), {T, 1});
  const Var chosen = detach(relu(1.0 - abs(t - graph.constant({1, P}, std::move(numbers)))));  // 1 where column = t
  const Var of_steps = matmul(chosen, bands);                                                  // oldest first
  std::vector<Var> newest_first;
  for (std::int64_t j = 0; j < window; ++j) newest_first.push_back(slice(of_steps, 1, window - 1 - j, window - j));
  return reshape(window == 1 ? newest_first[0] : concat(newest_first, 1), {T, 1, window, 1});
}

/// The sums Σ e^k v and Σ e^k over all steps so far, both divided by e^o, o the largest k.
struct RunningSums {
  Var o, p, q;
};
RunningSums sums(Layer& l, Var k, Var v, Var counts) {
  const std::int64_t d = k.dim(-1);
  const Var o =
      step(l, {{"o", {d}, "The running maximum of the keys, whose exponential p and q are divided by.", true, nothing_yet}}, {k},
           [](Cell&, std::span<const Var> u, std::span<const Var> s) { return std::vector<Var>{detach(maximum(s[0], u[0]))}; })[0];
  // Outputs do not depend on which exponent is taken out. Held, it leaves the gradients as they are, without the large terms that cancel.
  const Var old = l.previous_state(o), top = detach(maximum(old, k));
  const Var keep = exp(old - top), plain = exp(k - top), write = counts ? plain * counts : plain;
  const Var factor = l.graph().constant({d}, std::vector<double>(static_cast<std::size_t>(d), 1.0));
  const Var p = diagonal(l, {"p", {d}, "The sum of e^k v, divided by e^o."}, keep, write * v, factor);
  return {o, p, diagonal(l, {"q", {d}, "The sum of e^k, divided by e^o."}, keep, write, factor)};
}

Var local(Layer& l, Var k, Var v, std::int64_t window) {
  const std::int64_t T = l.steps(), B = l.batch(), d = k.dim(-1);
  const Var keys = l.history("k", k, window, "The keys of the window, oldest first."),
            values = l.history("v", v, window, "The values of the window, oldest first.");
  const Var t = l.position();
  const auto counts_from = [&](double steps) { return sign(relu(t - (steps - 0.5))); };  // 1 from step `steps` on
  const auto masked = [&](Var x, Var mask) { return x * mask + (1.0 - mask) * nothing_yet; };
  // Steps of age `window` enter the sums.
  const Var left = counts_from(static_cast<double>(window));
  const RunningSums old = sums(l, masked(slice(keys, 0, 0, T), left), slice(values, 0, 0, T), left);
  std::vector<Var> exponents, read;
  for (std::int64_t j = 0; j < window; ++j) {
    const Var key = slice(keys, 0, window - j, window - j + T);
    exponents.push_back(reshape(j ? masked(key, counts_from(static_cast<double>(j))) : key, {T, B, 1, d}));
    read.push_back(reshape(slice(values, 0, window - j, window - j + T), {T, B, 1, d}));
  }
  const Var e = (window == 1 ? exponents[0] : concat(exponents, 2)) + biases_of_window(l, window);
  Var top = old.o;
  for (std::int64_t j = 0; j < window; ++j) top = maximum(top, reshape(slice(e, 2, j, j + 1), {T, B, d}));
  top = detach(top);
  const Var weights = exp(e - reshape(top, {T, B, 1, d})), past = exp(old.o - top);
  return (past * old.p + sum(weights * (window == 1 ? read[0] : concat(read, 2)), 2)) / (past * old.q + sum(weights, 2));
}

Var full(Layer& l, Var k, Var v) {
  const std::int64_t T = l.steps(), B = l.batch(), d = k.dim(-1), P = l.hyper.integer("positions");
  const Var keys = l.cache({"k", {d}, "The key that each step appends to the cache."}, affine(k, 1.0, 0.0));
  const Var values = l.cache({"v", {d}, "The value that each step appends to the cache."}, affine(v, 1.0, 0.0));
  const std::int64_t all = keys.dim(0), past = all - T;
  Graph& graph = l.graph();
  const auto zeros = [&](Shape shape) { return graph.constant(shape, std::vector<double>(static_cast<std::size_t>(count(shape)), 0.0)); };
  const Var w = pair_biases(l);
  const std::int64_t rows = std::clamp<std::int64_t>(P - past, 0, T), columns = std::min(P, all);
  Var pair = rows ? slice(slice(w, 0, past, past + rows), 1, 0, columns) : Var{};
  if (pair && columns < all) pair = concat(std::vector<Var>{pair, zeros({rows, all - columns})}, 1);
  if (rows < T) pair = pair ? concat(std::vector<Var>{pair, zeros({T - rows, all})}, 0) : zeros({T, all});
  // Each channel is a head of its own, whose scores are its keys.
  const int channels_first[] = {1, 2, 0}, steps_first[] = {2, 0, 1};
  const auto by_channel = [&](Var x) { return reshape(permute(x, channels_first), {B * d, x.dim(0), 1}); };
  SoftmaxAttention a;
  a.q = graph.constant({B * d, T, 1}, std::vector<double>(static_cast<std::size_t>(B * d * T), 1.0));
  a.k = by_channel(keys);
  a.v = by_channel(values);
  a.pair = pair;
  return permute(reshape(attention(l, a), {B, d, T}), steps_first);
}

Var attention_free(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  const std::int64_t d = h.integer("width");
  const auto project = [&](const std::string& name, Var z, const std::string& role, bool bias) {
    const Init start = parts::torch_uniform(z.dim(-1));
    return parts::linear(l, "self_attn." + name, z, d,
                         {parts::xavier_uniform(z.dim(-1), d), bias ? start : Init{}, role,
                          bias ? "starts Xavier uniform, its bias uniform in ±1/√in" : "starts Xavier uniform"});
  };
  const bool bias = h.flag("qkv_bias");
  const Var q =
      l.gate("query", sigmoid(project("query", x, "W_q", bias)), 0.0, 1.0, "σ(q): how much of the average each channel lets through.");
  const Var k = project("key", x, "W_k", false), v = project("value", x, "W_v", bias);
  // A bias of the keys stands in every weight, above and below the line: it is left out, so that its gradient is 0 and not rounding.
  if (bias)
    l.parameter("self_attn.key.bias", {d}, parts::torch_uniform(d),
                "The bias of W_k, which no output depends on; starts uniform in ±1/√in.");
  const std::string& kind = h.choice("pairs");
  Var average;
  if (kind == "none") {
    const RunningSums all = sums(l, k, v, {});
    average = all.p / all.q;
  } else {
    average = kind == "local" ? local(l, k, v, h.integer("window")) : full(l, k, v);
  }
  return project("output", q * average, "W_o", true);
}

}  // namespace

Architecture aft() {
  Architecture a;
  a.title = "Attention free transformer";
  a.equations = {
      "q_t = W_q x_t + b_q, k_t = W_k x_t, v_t = W_v x_t + b_v",
      "y_t = W_o (σ(q_t) ⊙ Σ_{s≤t} e^{k_s + w_ts} ⊙ v_s / Σ_{s≤t} e^{k_s + w_ts}) + b",
      "pairs=none (AFT-simple): w = 0;  o_t = max(o_{t-1}, k_t),  p_t = e^{o_{t-1}−o_t} p_{t-1} + e^{k_t−o_t} v_t,  q likewise;  the "
      "quotient is p_t/q_t",
      "pairs=local (AFT-local): w_ts is learned where t − s < window and 0 elsewhere;  p, q and o are of the steps s ≤ t − window",
      "pairs=full (AFT-full): w_ts is learned for all pairs;  rank > 0: w_ts = u_t·v_s",
      "block: x ← x + AFT(LN x),  x ← x + W₂ relu(W₁ LN x + b₁) + b₂;  after the last LN"};
  a.notes = {
      "Names and shapes are those of labml_nn's AFTLocal: query, key, value, output and pos_bias, and of its TransformerLayer round it; "
      "the authors published no code.",
      "Everything is causal, and the running maximum o is that of the steps so far: nothing overflows and nothing is known of later steps. "
      "o starts at −10³⁸, before anything has been seen.",
      "Keys are without their bias, which multiplies both sums of the quotient by the same and no output depends on: o, and k with "
      "pairs=full, are those of the reference less key.bias.",
      "p and q are the sums divided by e^o; spectrum and ds_T/ds_t are those of the sums themselves, whose factor is 1. With pairs=local "
      "the window's keys and values are buffers.",
      "With pairs=full a step reads all steps before, since w is arbitrary: keys and values are the states, there is no recurrence of a "
      "fixed size and no spectrum.",
      "w has as many rows and columns as there are positions; for later steps it is 0. All norms are layer norms with epsilon 1e-5."};
  a.hyper = {
      hyper_integer("width", "d", 32, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_choice("pairs", "none", {"none", "local", "full"}, "Which pairs of steps have a bias: none, those within the window, or all."),
      hyper_integer("window", "s", 16, 1, 4096,
                    "With pairs=local: how far apart two steps with a bias are at most, plus one; at most positions.", "steps"),
      hyper_integer("positions", "T", 128, 1, 65536, "Steps that have biases.", "steps"),
      hyper_integer("rank", "d'", 0, 0, 4096, "Width of the factors of w; 0: w itself is learned."),
      initialisation_only(hyper_real("bias_std", "", 0.01, 0.0, 100.0, "Deviation that the biases start with.")),
      hyper_flag("qkv_bias", true, "Whether W_q, W_k and W_v have biases."),
      hyper_choice("block", "residual", {"residual", "none"},
                   "The layer with norms, residuals and feed-forward, or the mixing of steps alone."),
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
      hyper_flag("final_norm", true, "Whether a norm follows the last block.")};
  a.spectrum = "ones, of the numerator, then of the denominator: nothing is forgotten; none with pairs=full";
  a.source = {"S. Zhai, W. Talbott, N. Srivastava, C. Huang, H. Goh, R. Zhang, J. Susskind", "An attention free transformer", "",
              "https://arxiv.org/abs/2105.14103", 2021};
  a.reference = {{"layers.{n}.*", "*"}, {"*", "self_attn.*"}, {"norm.*", "final/norm.*"}, {"local_mask", ""}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.choice("pairs") == "local" && h.integer("window") > h.integer("positions"))
      throw Error("aft: window = " + h.text("window") + " is above positions = " + h.text("positions") +
                      ": choose a smaller window, or pairs=full.",
                  {.model = "aft", .parameter = "window", .value = h.text("window"), .range = "1.." + h.text("positions")});
  };

  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    if (h.choice("block") == "none") return attention_free(l, x);
    const std::int64_t d = h.integer("width"), F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d;
    x = x + attention_free(l, parts::layer_norm(l, "norm_self_attn", x));
    const Var hidden = relu(parts::linear(l, "feed_forward.layer1", parts::layer_norm(l, "norm_ff", x), F, "W₁ of the feed-forward part"));
    return x + parts::linear(l, "feed_forward.layer2", hidden, d, "W₂ of the feed-forward part");
  };
  a.final_layer = [](Layer& l, Var x) {
    return l.hyper.choice("block") == "residual" && l.hyper.flag("final_norm") ? parts::layer_norm(l, "norm", x) : x;
  };
  return a;
}

}  // namespace reclab::architectures
