// SPDX-License-Identifier: GPL-3.0-or-later
//   read, for a segment X of n rows, in each layer, with E = LN X the output:
//     X ← X + att(LN X; LN X), causal,   X ← X + att(LN X; M),   X ← X + W₂ gelu(W₁ LN X)
//   write, when the segment is full, each slot m by itself:
//     a = softmax(W_q m · [W_k m; W_k E]/(τ√D)),   m' = a [m; W_v E],   m ← (m' + v_bias)/|m' + v_bias|
//   or, as in the package:
//     m' = a [W_v m; W_v E],   m ← GRU(W_o m', m),   m ← m + W₂ gelu(W₁ LN m)
// Q. Wu, Z. Lan, K. Qian, J. Gu, A. Geramifard, Z. Yu, Memformer: a memory-augmented transformer for sequence modeling, Findings of
// AACL-IJCNLP 2022. Names and conventions of lucidrains/memformer; the authors published their later MemBART alone.
#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/attention/attention.h"
#include "recurrence/segments/segments.h"

namespace reclab::architectures {
namespace {

constexpr std::int64_t buckets = 32, farthest = 128;

struct Dense {
  Var weight, bias;
  Var operator()(Var x) const { return linear(x, weight, bias); }
};
struct NormWeights {
  Var weight, bias;
  Var operator()(Var x) const { return layer_norm(x, weight, bias, 1e-5); }
};
struct AttentionWeights {
  Dense q, kv, out;
};
struct FeedForward {
  Dense first, second;
  NormWeights norm;
  Var operator()(Var x) const { return x + second(gelu(first(norm(x)))); }
};
struct ReaderLayer {
  AttentionWeights itself, memory;
  NormWeights before_itself, before_memory;
  FeedForward feed_forward;
};
struct Memformer {
  std::int64_t d, heads, write_heads, n, updates;
  bool gru, forgets;
  double temperature;
  Var rel;
  std::vector<ReaderLayer> layers;
  NormWeights norm;
  AttentionWeights writer;
  Var weight_ih, weight_hh, bias_ih, bias_hh, v_bias;
  FeedForward behind_writer;
};

/// Reads the parameters.
struct Declare {
  Layer& l;
  std::int64_t d, F;

  Dense dense(const std::string& name, std::int64_t in, std::int64_t out, const std::string& role) const {
    const std::string starts = in == d ? "tarts uniform in ±1/√d." : "tarts uniform in ±1/√d_ff.";
    return {l.parameter(name + ".weight", {out, in}, parts::torch_uniform(in), role + ". S" + starts),
            l.parameter(name + ".bias", {out}, parts::torch_uniform(in), "Its bias; s" + starts)};
  }
  NormWeights norm(const std::string& name, const std::string& of) const {
    return {l.parameter(name + ".weight", {d}, init::constant(1.0), "Scale of the norm " + of + "; starts at 1."),
            l.parameter(name + ".bias", {d}, init::constant(0.0), "Its shift; starts at 0.")};
  }
  AttentionWeights attention(const std::string& name, bool out) const {
    AttentionWeights made;
    made.q = dense(name + ".to_q", d, d, "W_q, rows by head");
    made.kv = dense(name + ".to_kv", d, 2 * d, "Rows of W_k, then of W_v, each by head");
    if (out) made.out = dense(name + ".to_out", d, d, "W_o");
    return made;
  }
  FeedForward feed_forward(const std::string& name) const {
    FeedForward made;
    made.first = dense(name + ".fn.net.0", d, F, "W₁");
    made.second = dense(name + ".fn.net.2", F, d, "W₂");
    made.norm = norm(name + ".norm", "before the feed-forward part");
    return made;
  }
};

Memformer declare(Layer& l) {
  const Hyper& h = l.hyper;
  const std::int64_t d = h.integer("width"), N = h.integer("slots");
  Memformer m{};
  m.d = d;
  m.heads = h.integer("heads");
  m.write_heads = h.integer("write_heads");
  m.n = h.integer("segment");
  m.updates = h.integer("updates");
  m.gru = h.choice("writer") == "gru";
  m.forgets = h.flag("forgetting");
  m.temperature = h.real("temperature");
  const Declare declare{l, d, h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d};
  const std::string encoder = "encoder.layer_blocks.";
  m.rel = l.parameter(encoder + "rel_pos_emb.relative_attention_bias.weight", {buckets, m.heads}, init::normal(1.0),
                      "b of each bucket of distances and head, the same in all layers; starts N(0, 1).");
  for (std::int64_t i = 0; i < h.integer("depth"); ++i) {
    const std::string at = encoder + "layers." + std::to_string(i) + ".";
    ReaderLayer one;
    one.itself = declare.attention(at + "0.fn.fn", true);
    one.before_itself = declare.norm(at + "0.fn.norm", "before the attention to the segment");
    one.memory = declare.attention(at + "1.fn.fn", true);
    one.before_memory = declare.norm(at + "1.fn.norm", "before the attention to the memory");
    one.feed_forward = declare.feed_forward(at + "2.fn");
    m.layers.push_back(one);
  }
  m.norm = declare.norm("encoder.norm", "behind the last layer");
  if (!m.gru) {
    m.v_bias =
        l.parameter("v_bias", {N, d}, init::normal(1.0 / std::sqrt(static_cast<double>(d))),
                    "v_bias of each slot: where it begins, and what is added whenever it is written. Starts N(0, 1/d), of length about 1.");
    m.writer = declare.attention("mem_updater", false);
    return m;
  }
  const Init start = parts::torch_uniform(d);
  const std::string uniform = " Starts uniform in ±1/√d.";
  m.v_bias = l.parameter("memory_slots", {N, d}, init::normal(1.0), "M at the start; starts N(0, 1).");
  m.writer = declare.attention("mem_updater", true);
  m.weight_ih = l.parameter("gru.weight_ih", {3 * d, d}, start, "W of the GRU, rows of r, z, n, for what a slot has read." + uniform);
  m.weight_hh = l.parameter("gru.weight_hh", {3 * d, d}, start, "The same for the slot itself." + uniform);
  m.bias_ih = l.parameter("gru.bias_ih", {3 * d}, start, "Its first bias." + uniform);
  m.bias_hh = l.parameter("gru.bias_hh", {3 * d}, start, "Its second bias." + uniform);
  m.behind_writer = declare.feed_forward("mem_ff.fn");
  return m;
}

Var by_head(Var x, std::int64_t heads) {
  const int swap[] = {0, 2, 1, 3};
  return permute(reshape(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), swap);
}
Var joined(Var x) {
  const int swap[] = {0, 2, 1, 3};
  return reshape(permute(x, swap), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}
/// Keys without their bias, which adds the same to all scores of a row and which its softmax does not see; values with theirs.
std::pair<Var, Var> keys_and_values(const AttentionWeights& a, Var y, std::int64_t heads) {
  const std::int64_t d = a.q.weight.dim(0);
  return {by_head(linear(y, slice(a.kv.weight, 0, 0, d)), heads),
          by_head(linear(y, slice(a.kv.weight, 0, d, 2 * d), slice(a.kv.bias, 0, d, 2 * d)), heads)};
}

/// x [batch, rows, d] attends to y; `added` to the scores [heads, rows, columns].
Var attend(const AttentionWeights& a, Var x, Var y, std::int64_t heads, Var added) {
  const Var q = by_head(a.q(x), heads) / std::sqrt(static_cast<double>(x.dim(2) / heads));
  const auto [k, v] = keys_and_values(a, y, heads);
  Var scores = matmul_transposed(q, k);
  if (added) scores = scores + added;
  return a.out(joined(matmul(softmax_rows(scores), v)));
}

/// Of T5, with the mask of a causal attention: exact for the nearest half of the buckets and logarithmic beyond.
Var biases(const Memformer& m, std::int64_t rows) {
  Graph& graph = *m.rel.graph;
  std::vector<double> chosen, mask;
  const std::int64_t exact = buckets / 2;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < rows; ++j) {
      const std::int64_t age = std::max<std::int64_t>(i - j, 0);
      std::int64_t bucket = age;
      if (age >= exact) {
        const double place = std::log(static_cast<double>(age) / static_cast<double>(exact)) /
                             std::log(static_cast<double>(farthest) / static_cast<double>(exact));
        bucket = std::min(buckets - 1, exact + static_cast<std::int64_t>(place * static_cast<double>(buckets - exact)));
      }
      for (std::int64_t b = 0; b < buckets; ++b) chosen.push_back(b == bucket ? 1.0 : 0.0);
      mask.push_back(j <= i ? 0.0 : -1e30);
    }
  const int heads_first[] = {1, 0};
  const Var by_pair = permute(matmul(graph.constant({rows * rows, buckets}, std::move(chosen)), m.rel), heads_first);
  return reshape(by_pair, {m.heads, rows, rows}) + graph.constant({rows, rows}, std::move(mask));
}

Var unit(Var x) {
  Shape one = x.shape();
  one.back() = 1;
  return x / sqrt(reshape(sum(square(x), -1), one));
}

/// The memory after a full segment whose outputs are E.
Var written(const Memformer& m, Var memory, Var E, Cell& cell) {
  const std::int64_t B = memory.dim(0), N = memory.dim(1), H = m.write_heads;
  std::vector<Var> keeps, updates, resets;
  const auto named = [&](std::vector<Var>& to, Var value) {
    Shape shape = value.shape();
    shape.insert(shape.begin() + 1, 1);
    to.push_back(reshape(value, shape));
  };
  for (std::int64_t round = 0; round < m.updates; ++round) {
    const Var q = by_head(m.writer.q(memory), H) / (std::sqrt(static_cast<double>(m.d / H)) * (m.gru ? 1.0 : m.temperature));
    const auto [k, v] = keys_and_values(m.writer, E, H);
    const auto [own_key, own_value] = keys_and_values(m.writer, memory, H);
    const Var own = reshape(sum(q * own_key, -1), {B, H, N, 1}), scores[] = {own, matmul_transposed(q, k)};
    const Var weights = softmax_rows(concat(scores, -1)), keep = slice(weights, -1, 0, 1);
    const Var read = joined(keep * (m.gru ? own_value : by_head(memory, H)) + matmul(slice(weights, -1, 1, 1 + E.dim(1)), v));
    const int slots_first[] = {0, 2, 1};
    named(keeps, permute(reshape(keep, {B, H, N}), slots_first));
    if (!m.gru) {
      memory = unit(m.forgets ? read + m.v_bias : read);
      continue;
    }
    const auto in = split(linear(m.writer.out(read), m.weight_ih, m.bias_ih), -1, 3),
               state = split(linear(memory, m.weight_hh, m.bias_hh), -1, 3);
    const Var r = sigmoid(in[0] + state[0]), z = sigmoid(in[1] + state[1]), next = tanh(in[2] + r * state[2]);
    named(updates, z);
    named(resets, r);
    memory = m.behind_writer((1.0 - z) * next + z * memory);
  }
  const auto stacked = [](const std::vector<Var>& rows) { return rows.size() == 1 ? rows[0] : concat(rows, 1); };
  cell.gate(
      "keep", stacked(keeps), 0.0, 1.0,
      "The weight that each slot and head gives to the slot itself, in each update of the last full segment; the rest is for its steps.");
  if (!m.gru) return memory;
  cell.gate("update", stacked(updates), 0.0, 1.0, "z of the GRU: how much of a slot stays, in each update of the last full segment.");
  cell.gate("reset", stacked(resets), 0.0, 1.0,
            "r of the GRU: how much of a slot its candidate sees, in each update of the last full segment.");
  return memory;
}

}  // namespace

Architecture memformer() {
  Architecture a;
  a.title = "Memformer";
  a.equations = {
      "read, for each segment X of n steps, in each layer:  X ← X + W_o att(LN X; LN X) + b causal with b_{i−j},  X ← X + W_o' att(LN X; "
      "M) + b',  X ← X + W₂ gelu(W₁ LN X + b₁) + b₂",
      "y = E = LN X;  att(x; y) = Σ_j softmax_j((W_q x + b_q)·(W_k y_j + b_k)/√D + b_{i−j}) (W_v y_j + b_v) by head",
      "write, when the segment is full, each slot m by itself:  a = softmax(q·[W_k m; W_k E + b_k]/(τ√D)),  q = W_q m + b_q",
      "writer=slot:  m' = a [m; W_v E + b_v],  m ← (m' + v_bias)/|m' + v_bias|,  from m = v_bias/|v_bias|",
      "writer=gru, τ = 1:  m' = GRU(input W_o a [W_v m; W_v E] + b, state m),  m ← m' + W₂ gelu(W₁ LN m' + b₁) + b₂"};
  a.notes = {
      "writer=slot is the paper's, with biased memory normalisation; writer=gru is that of lucidrains/memformer. Names, shapes and the "
      "reader are the package's in both; v_bias is in none. Of a file of the package the embedding of tokens and the decoder are passed "
      "over. The paper's read and write have no output projection in its equations; the reader has the package's.",
      "Here a step sees itself and those before it in its segment, or no step could be computed before its segment is over: the paper's "
      "encoder sees the segment both ways and a decoder, which is left out, turns what it and the memory hold into the next segment. The "
      "writer sees the whole segment.",
      "The buckets of distances are those that the package's encoder has, whose flag says the contrary of what the function does: past "
      "distances have 32, the first 16 one each and then logarithmic up to 128.",
      "The bias of the keys adds the same to all scores of a row and changes nothing: it is read, and its gradient is exactly 0.",
      "A slot does not see other slots. The gate keep is the weight that it gives to itself; those that give it nearly 1 hold what they "
      "have until v_bias has turned them.",
      "All norms are layer norms with epsilon 1e-5. Gradients pass through all segments, as the authors' memory replay gives them.",
      "The state of a step is the memory that its segment reads; at the last step of a full segment it is already the next one. It changes "
      "once a segment, hence no spectrum and no ds_T/ds_t; gates are those of the last full segment, 1 before there is one."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream and of a slot.", "channels"),
             hyper_integer("heads", "h", 4, 1, 64, "Heads of the reader (enc_heads); must divide the width."),
             hyper_integer("depth", "L", 1, 1, 64, "Layers of the reader (enc_depth)."),
             hyper_integer("segment", "n", 16, 1, 65536, "Steps of a segment.", "steps"),
             hyper_integer("slots", "k", 8, 1, 65536, "Slots of memory (num_memory_slots).", "slots"),
             hyper_integer("feed_forward", "d_ff", 0, 0, 65536,
                           "Hidden width of the feed-forward parts; 0: four times the width, as in the package.", "units"),
             hyper_choice("writer", "slot", {"slot", "gru"}, "How a slot is written."),
             hyper_integer("write_heads", "h_w", 4, 1, 64, "Heads of the writer (mem_update_attn_heads); must divide the width."),
             hyper_integer("updates", "u", 1, 1, 64, "How often the memory is written after a segment (num_mem_updates)."),
             hyper_real("temperature", "τ", 0.25, 1e-3, 1e3,
                        "With writer=slot: divides its scores; the paper has less than 1, so that a slot keeps or takes."),
             hyper_flag("forgetting", true, "With writer=slot: whether v_bias is added before a slot is brought back to length 1.")};
  a.spectrum = "none: the memory changes once a segment, and no matrix takes it from one step to the next";
  a.source = {"Q. Wu, Z. Lan, K. Qian, J. Gu, A. Geramifard, Z. Yu", "Memformer: a memory-augmented transformer for sequence modeling",
              "Findings of AACL-IJCNLP", "https://arxiv.org/abs/2010.06891", 2022};
  a.reference = {{"encoder.token_emb.weight", ""}, {"decoder.*", ""}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    for (const char* key : {"heads", "write_heads"})
      if (h.integer("width") % h.integer(key))
        throw Error(
            std::string("memformer: ") + key + " = " + h.text(key) + " does not divide width = " + h.text("width") + ": choose a divisor.",
            {.model = "memformer", .parameter = key, .value = h.text(key), .range = "a divisor of width"});
  };

  a.layer = [](Layer& l, Var x) {
    const Memformer m = declare(l);
    std::vector<SegmentGate> gates{{"keep", 1.0}};
    if (m.gru) gates.insert(gates.end(), {{"update", 1.0}, {"reset", 1.0}});
    return segments(l, {{"memory", {l.hyper.integer("slots"), m.d}, "M, a row a slot."}}, {m.gru ? m.v_bias : unit(m.v_bias)}, x, m.n,
                    filled_up(m.n,
                              [=](Cell& cell, std::span<const Var> memory, Var tokens) {
                                Var X = tokens;
                                const Var added = biases(m, m.n);
                                for (const ReaderLayer& one : m.layers) {
                                  const Var u = one.before_itself(X);
                                  X = X + attend(one.itself, u, u, m.heads, added);
                                  X = X + attend(one.memory, one.before_memory(X), memory[0], m.heads, {});
                                  X = one.feed_forward(X);
                                }
                                const Var E = m.norm(X);
                                return SegmentResult{E, {written(m, memory[0], E, cell)}};
                              }),
                    gates);
  };
  return a;
}

}  // namespace reclab::architectures
