// SPDX-License-Identifier: GPL-3.0-or-later
//   A_dot: causal softmax attention within the segment;   A_mem = σ(q_t)ᵀ M / (σ(q_t)·z),   σ = elu + 1;   A = g A_mem + (1 − g) A_dot, g =
//   sigmoid(β) when the segment is full:  M ← M + σ(K)ᵀ V,  or with the delta rule M + σ(K)ᵀ (V − σ(K) M / (σ(K) z));   z ← z + Σ σ(k)
// T. Munkhdalai, M. Faruqui, S. Gopal, Leave no context behind: efficient infinite context transformers with Infini-attention, 2024.
// Names and conventions of lucidrains/infini-transformer-pytorch; the authors published no code.
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/attention/attention.h"
#include "recurrence/segments/segments.h"

namespace reclab::architectures {
namespace {

/// x / max(|x|, 1e-12) √d γ: the reference's RMSNorm.
Var unit_norm(Layer& l, const std::string& name, Var x) {
  const std::int64_t d = x.dim(-1);
  const Var gamma = l.parameter(name + ".gamma", {d}, init::constant(1.0), "Scale of the norm; starts at 1.");
  Shape one = x.shape();
  one.back() = 1;
  const Var squares = reshape(sum(square(x), -1), one);
  return x / sqrt(maximum(squares, affine(squares, 0.0, 1e-24))) * (gamma * std::sqrt(static_cast<double>(d)));
}

/// Σ_d read [.., n, key] [.., key, value] / max(read · z, ε), for heads in the batch.
Var recall(Var features, Var M, Var z, double eps) {
  const Var weight = matmul_transposed(features, z);
  return matmul(features, M) / maximum(weight, affine(weight, 0.0, eps));
}

Var infini(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  const std::int64_t d = h.integer("width"), heads = h.integer("heads"), D = h.integer("head_dim") ? h.integer("head_dim") : d / heads,
                     T = l.steps(), B = l.batch(), n = h.integer("segment");
  const bool delta = h.choice("rule") == "delta", of_memory = h.choice("gate") == "memory", held = h.flag("stop_gradient");
  const double eps = h.real("eps");
  const Var qkv =
      parts::linear(l, "0.to_qkv", x, 3 * heads * D,
                    parts::Linear{parts::torch_uniform(d), {}, "W_q, W_k, W_v: rows of q, k, v, each by head", "starts uniform in ±1/√d"});
  const auto three = split(qkv, -1, 3);
  Var q = parts::by_head(l, three[0], heads), k = parts::by_head(l, three[1], heads);
  Var features_q = elu(q) + 1.0, features_k = elu(k) + 1.0;

  // Places in the segment: 0 at its first step. All of a first segment comes before anything is in the memory.
  const Var t = l.position();
  const Var place = t - floor((t + 0.5) / static_cast<double>(n)) * static_cast<double>(n),
            later = sign(relu(t - static_cast<double>(n) + 0.5));
  if (h.choice("position") == "rotary") {
    std::vector<double> frequencies;
    for (std::int64_t i = 0; i < D / 2; ++i)
      frequencies.push_back(std::pow(h.real("rotary_base"), -2.0 * static_cast<double>(i) / static_cast<double>(D)));
    const Var angle = reshape(place, {T, B, 1, 1}) * x.graph->constant({D / 2}, frequencies);
    q = parts::rotated(q, angle, true);
    k = parts::rotated(k, angle, true);
    if (h.flag("rotary_memory")) {
      features_q = parts::rotated(features_q, angle, true);
      features_k = parts::rotated(features_k, angle, true);
    }
  }
  const Var beta = l.parameter(
      "0.fastweight_mem.head_gates", {heads}, init::constant(h.real("gate_start")),
      std::string("β of each head; its sigmoid weighs the ") + (of_memory ? "memory" : "local attention") + "; starts at gate_start.");
  Var share = sigmoid(of_memory ? beta : -beta) + 0.0 * t;  // of the memory, by step and head
  if (h.choice("first_segment") == "local") share = share * later;
  share = l.gate("g", share, 0.0, 1.0, "How much of what a head reads comes from the memory; the rest is local attention.");

  const Var parts_of_token[] = {
      parts::flat(l, q), parts::flat(l, k), three[2], parts::flat(l, features_q), parts::flat(l, features_k), share, later};
  const std::int64_t W = heads * D, widths[] = {W, W, W, W, W, heads, 1};
  const Var none = x.graph->constant({1}, {0.0});
  const Var read = segments(l,
                            {{"M", {heads, D, D}, "The memory of each head: the sum of σ(k) vᵀ over all segments before, [key, value]."},
                             {"z", {heads, D}, "The sum of σ(k) over all segments before: the normaliser."}},
                            {none, none}, concat(parts_of_token, -1), n, [=](Cell&, std::span<const Var> memory, Var tokens) {
                              const std::int64_t rows = tokens.dim(1), batch = tokens.dim(0);
                              std::vector<Var> of;
                              std::int64_t at = 0;
                              const int by_head[] = {0, 2, 1, 3};
                              for (const std::int64_t width : widths) {
                                const Var part = slice(tokens, -1, at, at + width);
                                at += width;
                                of.push_back(width == W && of.size() < 5 ? permute(reshape(part, {batch, rows, heads, D}), by_head) : part);
                              }
                              const auto flat_heads = [&](Var v) { return reshape(v, {batch * heads, rows, D}); };
                              SoftmaxAttention a;
                              a.q = flat_heads(of[0]) / std::sqrt(static_cast<double>(D));
                              a.k = flat_heads(of[1]);
                              a.v = flat_heads(of[2]);
                              const Var local = reshape(softmax_attention(a, false), {batch, heads, rows, D});
                              // An empty memory reads as zeros, also where 0/ε would give it a slope.
                              const Var M = memory[0], z = reshape(memory[1], {batch, heads, 1, D}),
                                        filled = reshape(of[6], {batch, 1, rows, 1});
                              const int swap[] = {0, 2, 1};
                              const Var g = reshape(permute(of[5], swap), {batch, heads, rows, 1});
                              const Var mixed = g * (filled * recall(of[3], M, z, eps)) + (1.0 - g) * local;
                              SegmentResult result{reshape(permute(mixed, by_head), {batch, rows, W}), {}};
                              if (rows == n) {
                                const Var v = delta ? of[2] - filled * recall(of[4], M, z, eps) : of[2];
                                const Var next = M + matmul(transpose(of[4]), v), sums = memory[1] + sum(of[4], 2);
                                result.memory = {held ? detach(next) : next, held ? detach(sums) : sums};
                              }
                              return result;
                            });
  return parts::linear(l, "0.to_out", read, d,
                       parts::Linear{parts::torch_uniform(W), {}, "W_o, columns by head", "starts uniform in ±1/√(h D)"});
}

}  // namespace

Architecture infini_attention() {
  Architecture a;
  a.title = "Infini-attention";
  a.equations = {"σ(x) = elu(x) + 1;  segments of n steps; M and z are those that the segments before left",
                 "A_dot: Σ_{j ≤ t} softmax_j(q_t·k_j/√D) v_j over the steps j of the segment;  A_mem = Mᵀσ(q_t) / max(z·σ(q_t), ε)",
                 "A = g A_mem + (1 − g) A_dot by head,  g = sigmoid(β);  y = W_o A",
                 "when the segment is full:  M ← M + Σ_j σ(k_j) v_jᵀ,  z ← z + Σ_j σ(k_j)",
                 "rule=delta:  M ← M + Σ_j σ(k_j) (v_j − Mᵀσ(k_j) / max(z·σ(k_j), ε))ᵀ",
                 "block:  x ← x + attention(norm x),  x ← x + W_out(gelu(b) ⊙ a), [a; b] = W_in norm x"};
  a.notes = {
      "Names and shapes are those of lucidrains/infini-transformer-pytorch, the authors having published none: layers.{n}.0 is the "
      "attention, layers.{n}.1 the feed-forward part, norm the last norm. The gates were once called layers.{n}.0.head_gates, which is "
      "read too.",
      "gate=memory is the paper's: sigmoid(β) weighs the memory. In the reference code it weighs the local attention, which is gate=local; "
      "there β starts at 10.",
      "The memory is read before it is written. In the first segment there is none: with first_segment=local the heads read the local "
      "attention alone, as the code does; with first_segment=zero what the memory gives counts as 0, as the paper's formula has it.",
      "Keys and queries are turned by their place in the segment, pairs (2i, 2i + 1); the features of the memory are not, but with "
      "rotary_memory, which turns them after σ, so that a denominator may be negative and is then ε.",
      "The survey of Tiezzi et al. 2024 writes the update with the delta rule, which is rule=delta; the paper has both, the linear rule "
      "first.",
      "The norms are x/max(|x|, 1e-12) √d γ.",
      "The state of a step is the memory that its segment reads; at the last step of a full segment it is already the next one.",
      "The memory changes once a segment and not at every step, hence no spectrum; from segment to segment the linear rule's transition is "
      "the identity."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
             hyper_integer("heads", "h", 4, 1, 64, "Heads."),
             hyper_integer("head_dim", "D", 0, 0, 1024, "Width of a head; 0: width/heads.", "channels"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
             hyper_integer("segment", "n", 16, 1, 65536, "Steps of a segment.", "steps"),
             hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: 8/3 of the width.", "units"),
             hyper_choice("rule", "linear", {"linear", "delta"}, "Whether the memory adds values, or what of them it does not yet recall."),
             hyper_choice("gate", "memory", {"memory", "local"}, "What the sigmoid of β weighs; the other gets the rest."),
             initialisation_only(hyper_real("gate_start", "β", 0.0, -100.0, 100.0, "Where β starts.")),
             hyper_choice("first_segment", "local", {"local", "zero"},
                          "What the memory's share is where there is no memory yet: none, or as later, of zeros."),
             hyper_choice("position", "rotary", {"rotary", "none"}, "How the local attention knows where a step is."),
             hyper_real("rotary_base", "", 10000.0, 1.0, 1e9, "Base of the rotary angles.", true),
             hyper_flag("rotary_memory", false, "Whether the features that write and read the memory are turned too."),
             hyper_flag("stop_gradient", false, "Whether no gradient passes into the segments before."),
             hyper_real("eps", "ε", 1e-10, 1e-30, 1e6, "Smallest denominator of a read of the memory.", true),
             hyper_choice("block", "residual", {"residual", "none"},
                          "The layer with norms, residuals and feed-forward, or the attention with its projections alone.")};
  a.spectrum = "none: the memory changes once a segment, and no matrix takes it from one step to the next";
  a.source = {"T. Munkhdalai, M. Faruqui, S. Gopal",
              "Leave no context behind: efficient infinite context transformers with Infini-attention", "arXiv",
              "https://arxiv.org/abs/2404.07143", 2024};
  a.reference = {{"layers.{n}.0.head_gates", "0.fastweight_mem.head_gates"},
                 {"layers.{n}.*", "*"},
                 {"norm.gamma", "final/norm.gamma"},
                 {"rotary_emb.freqs", ""},
                 {"token_emb.weight", ""}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (!h.integer("head_dim") && h.integer("width") % h.integer("heads"))
      throw Error("infini-attention: heads = " + h.text("heads") + " does not divide width = " + h.text("width") +
                      ": choose a divisor, or give head_dim.",
                  {.model = "infini-attention", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of width"});
    const std::int64_t D = h.integer("head_dim") ? h.integer("head_dim") : h.integer("width") / h.integer("heads");
    if (h.choice("position") == "rotary" && D % 2)
      throw Error("infini-attention: position = rotary needs heads of an even width, not " + std::to_string(D) +
                      ": choose another, or position=none.",
                  {.model = "infini-attention", .parameter = "position", .value = "rotary", .range = "none"});
    if (h.choice("position") == "none" && h.flag("rotary_memory"))
      throw Error("infini-attention: rotary_memory needs position = rotary.",
                  {.model = "infini-attention", .parameter = "rotary_memory", .value = "true", .range = "false"});
  };

  a.layer = [](Layer& l, Var x) {
    if (l.hyper.choice("block") == "none") return infini(l, x);
    const std::int64_t d = l.hyper.integer("width"), F = l.hyper.integer("feed_forward") ? l.hyper.integer("feed_forward") : 8 * d / 3;
    const Var after = x + infini(l, unit_norm(l, "0.norm", x));
    const auto halves = split(parts::linear(l, "1.proj_in", unit_norm(l, "1.norm", after), 2 * F, "W_in, rows of a, then of b,"), -1, 2);
    return after + parts::linear(l, "1.proj_out", gelu(halves[1]) * halves[0], d, "W_out");
  };
  a.final_layer = [](Layer& l, Var x) { return l.hyper.choice("block") == "none" ? x : unit_norm(l, "norm", x); };
  return a;
}

}  // namespace reclab::architectures
