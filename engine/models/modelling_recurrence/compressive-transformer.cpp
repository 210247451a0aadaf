// SPDX-License-Identifier: GPL-3.0-or-later
//   layer i of the stack, for a segment X of n rows:   U = LN X;   A = att(U; keys and values of [C_i; M_i; U]);   X ← X + A or GRU(A, X);
//   likewise with W₂ f(W₁ LN X) when the segment is full:   O = the oldest n rows of [M_i; U];   M_i ← the last n_m of [M_i; U];   C_i ←
//   the last n_cm of [C_i; f_c(O)],  f_c: c rows become one
// J. W. Rae et al., Compressive transformers for long-range sequence modelling, ICLR 2020. Names and conventions of
// lucidrains/compressive-transformer-pytorch; the authors' code is not published.
#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/attention/attention.h"
#include "recurrence/segments/segments.h"

namespace reclab::architectures {
namespace {

constexpr double unseen = -1e30;  // added to a score

/// A residual connection, or a GRU whose state is what goes round the part and whose input is what comes out of it.
struct Around {
  Var weight_ih, weight_hh, bias_ih, bias_hh;
  struct Factors {
    Var first, first_bias, second, second_bias;
    Var operator()(Var v) const { return linear(linear(v, first, first_bias), second, second_bias); }
  };
  Factors Q, R;  ///< of the mogrifier
  Var operator()(Var x, Var y) const {
    if (!weight_ih) return y + x;
    for (int i = 0; Q.first && i < 5; ++i)
      if (i % 2)
        x = 2.0 * sigmoid(R(y)) * x;
      else
        y = 2.0 * sigmoid(Q(x)) * y;
    const auto in = split(linear(y, weight_ih, bias_ih), -1, 3), state = split(linear(x, weight_hh, bias_hh), -1, 3);
    const Var r = sigmoid(in[0] + state[0]), z = sigmoid(in[1] + state[1]), n = tanh(in[2] + r * state[2]);
    return (1.0 - z) * n + z * x;
  }
};
struct Block {
  Var norm1, norm1_bias, to_q, to_kv, to_out, to_out_bias, conv, conv_bias, norm2, norm2_bias, w1, w1_bias, w2, w2_bias;
  Around attention, feed_forward;
  std::int64_t memory = -1;  ///< which of the memories it writes; -1: none
};
struct Sizes {
  std::int64_t d, heads, D, n, n_m, n_cm, c, memories;
  bool glu, empty, held, enhanced;
  std::string compression;
  std::int64_t M() const { return n_cm + n_m; }
};

Sizes sizes_of(const Hyper& h) {
  Sizes s{};
  s.d = h.integer("width");
  s.heads = h.integer("heads");
  s.D = s.d / s.heads;
  s.n = h.integer("segment");
  s.n_m = h.integer("mem_len");
  s.n_cm = h.integer("cmem_len");
  s.c = h.integer("ratio");
  const std::string at = h.text("memory_at");
  s.memories = at == "0" ? h.integer("depth") : static_cast<std::int64_t>(at.size());
  s.glu = h.flag("glu");
  s.empty = h.choice("start") == "empty";
  s.held = h.flag("stop_gradient");
  s.enhanced = h.flag("enhanced_recurrence");
  s.compression = h.choice("compression");
  return s;
}

std::vector<Block> declare(Layer& l, const Sizes& s) {
  const Hyper& h = l.hyper;
  const std::int64_t depth = h.integer("depth"), d = s.d, F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d,
                     k = std::max<std::int64_t>(1, d / 4);
  const Init one = init::constant(1.0), zero = init::constant(0.0), of_d = parts::torch_uniform(d), of_F = parts::torch_uniform(F);
  const std::string at = h.text("memory_at"), uniform = " Starts uniform in ±1/√d.";
  std::vector<Block> made;
  std::int64_t next = 0;
  for (std::int64_t i = 0; i < depth; ++i) {
    Block b;
    const bool has = at == "0" || at.find(static_cast<char>('1' + i)) != std::string::npos;
    if (has) b.memory = next++;
    const auto around = [&](const std::string& name) {
      Around made_around;
      if (h.choice("residual") == "add") return made_around;
      made_around.weight_ih = l.parameter(name + "gru.weight_ih", {3 * d, d}, of_d,
                                          "W of the GRU round the part, rows of r, z, n, for what comes out of it." + uniform);
      made_around.weight_hh = l.parameter(name + "gru.weight_hh", {3 * d, d}, of_d, "The same for what goes round." + uniform);
      made_around.bias_ih = l.parameter(name + "gru.bias_ih", {3 * d}, of_d, "Its first bias." + uniform);
      made_around.bias_hh = l.parameter(name + "gru.bias_hh", {3 * d}, of_d, "Its second bias." + uniform);
      if (h.flag("mogrify"))
        for (const char* which : {"Q", "R"}) {
          Around::Factors& to = *which == 'Q' ? made_around.Q : made_around.R;
          const std::string of = name + "mogrify." + which;
          to.first = l.parameter(of + ".0.weight", {k, d}, of_d,
                                 std::string("First factor of the mogrifier's ") + which + ", d/4 rows." + uniform);
          to.second = l.parameter(of + ".1.weight", {d, k}, parts::torch_uniform(k), "Second factor. Starts uniform in ±1/√(d/4).");
          if (!h.flag("mogrify_bias")) continue;
          to.first_bias = l.parameter(of + ".0.bias", {k}, of_d, "Bias of the first factor." + uniform);
          to.second_bias =
              l.parameter(of + ".1.bias", {d}, parts::torch_uniform(k), "Bias of the second factor. Starts uniform in ±1/√(d/4).");
        }
      return made_around;
    };
    const std::string a = "attn_layers." + std::to_string(i) + ".", f = "ff_layers." + std::to_string(i) + ".";
    b.norm1 = l.parameter(a + "fn.norm.weight", {d}, one, "Scale of the norm before the attention; starts at 1.");
    b.norm1_bias = l.parameter(a + "fn.norm.bias", {d}, zero, "Its shift; starts at 0.");
    b.to_q = l.parameter(a + "fn.fn.to_q.weight", {d, d}, of_d, "W_q, rows by head." + uniform);
    b.to_kv = l.parameter(a + "fn.fn.to_kv.weight", {2 * d, d}, of_d, "Rows of W_k, then of W_v, each by head." + uniform);
    b.to_out = l.parameter(a + "fn.fn.to_out.weight", {d, d}, of_d, "W_o." + uniform);
    b.to_out_bias = l.parameter(a + "fn.fn.to_out.bias", {d}, of_d, "Its bias." + uniform);
    if (s.compression == "conv") {  // also where there is no memory, as in the code
      const Init start = parts::torch_uniform(d * s.c);
      b.conv = l.parameter(a + "fn.fn.compress_mem_fn.conv.weight", {d, d, s.c}, start,
                           "f_c: [out, in, row of the c], oldest first. Starts uniform in ±1/√(c d).");
      b.conv_bias = l.parameter(a + "fn.fn.compress_mem_fn.conv.bias", {d}, start, "Its bias. Starts uniform in ±1/√(c d).");
    }
    b.attention = around(a);
    b.norm2 = l.parameter(f + "fn.norm.weight", {d}, one, "Scale of the norm before the feed-forward part; starts at 1.");
    b.norm2_bias = l.parameter(f + "fn.norm.bias", {d}, zero, "Its shift; starts at 0.");
    b.w1 = l.parameter(f + "fn.fn.w1.weight", {s.glu ? 2 * F : F, d}, of_d,
                       s.glu ? "W₁: rows of what passes the gelu, then of what it is multiplied with." + uniform : "W₁." + uniform);
    b.w1_bias = l.parameter(f + "fn.fn.w1.bias", {s.glu ? 2 * F : F}, of_d, "Its bias." + uniform);
    b.w2 = l.parameter(f + "fn.fn.w2.weight", {d, F}, of_F, "W₂. Starts uniform in ±1/√d_ff.");
    b.w2_bias = l.parameter(f + "fn.fn.w2.bias", {d}, of_F, "Its bias. Starts uniform in ±1/√d_ff.");
    b.feed_forward = around(f);
    made.push_back(b);
  }
  return made;
}

/// y[.., i, j] = x[.., i, j + n - 1 - i] for the first `columns` of each row, 0 where there is no such entry.
Var skewed(Var x, std::int64_t n, std::int64_t columns) {
  const std::int64_t B = x.dim(0), H = x.dim(1), rows = x.dim(2), L = x.dim(3);
  const Var nothing = affine(slice(x, -1, 0, 1), 0.0, 0.0);
  const Var wide[] = {x, nothing};
  const Var flat = reshape(concat(wide, -1), {B, H, rows * (L + 1)});
  std::vector<Var> parts{flat};
  for (std::int64_t missing = n - 1 + rows * L - rows * (L + 1); missing > 0; --missing)
    parts.push_back(affine(slice(flat, -1, 0, 1), 0.0, 0.0));
  return slice(reshape(slice(parts.size() == 1 ? flat : concat(parts, -1), -1, n - 1, n - 1 + rows * L), {B, H, rows, L}), -1, 0, columns);
}

/// The c rows of `old` [batch, n, d] that become one.
Var compressed(const Sizes& s, const Block& b, Var old, Var usage) {
  const std::int64_t B = old.dim(0), rows = s.n / s.c;
  const Var windows = reshape(old, {B, rows, s.c, s.d});
  if (s.compression == "conv") {
    const int by_row[] = {0, 2, 1};
    return linear(reshape(windows, {B, rows, s.c * s.d}), reshape(permute(b.conv, by_row), {s.d, s.c * s.d}), b.conv_bias);
  }
  if (s.compression == "mean") return mean(windows, 2);
  if (s.compression == "max") {
    Var most = slice(windows, 2, 0, 1);
    for (std::int64_t i = 1; i < s.c; ++i) most = maximum(most, slice(windows, 2, i, i + 1));
    return reshape(most, {B, rows, s.d});
  }
  // The n/c rows that were read most, in their order: of rows read alike the older ones. `usage` [batch, n].
  std::vector<double> numbers, older;
  for (std::int64_t i = 0; i < s.n; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) older.push_back(j < i ? 0.5 : 0.0);
  for (std::int64_t r = 0; r < rows; ++r) numbers.push_back(static_cast<double>(r));
  const Var own = reshape(detach(usage), {B, s.n, 1}), others = reshape(detach(usage), {B, 1, s.n});
  const Var before = sign(relu(sign(others - own) + old.graph->constant({s.n, s.n}, std::move(older))));  // row j goes before row i
  const Var rank = sum(before, 2), kept = sign(relu(static_cast<double>(rows) - 0.5 - rank));
  const Var place = reshape(cumulative_sum(kept, 1) - 1.0, {B, 1, s.n});
  const Var chosen = reshape(kept, {B, 1, s.n}) * (1.0 - sign(abs(place - old.graph->constant({rows, 1}, std::move(numbers)))));
  return matmul(chosen, old);
}

SegmentResult segment_of(const Sizes& s, const std::vector<Block>& blocks, Var positions, std::span<const Var> memory, Var tokens) {
  const std::int64_t B = tokens.dim(0), rows = tokens.dim(1), M = s.M(), K = M + rows, L = M + s.n, H = s.heads;
  const int swap[] = {0, 2, 1, 3}, heads_first_axes[] = {1, 0, 2, 3};
  Graph& graph = *tokens.graph;
  const double n_m = static_cast<double>(s.n_m), n_cm = static_cast<double>(s.n_cm), c = static_cast<double>(s.c);
  Var x = slice(tokens, -1, 0, s.d);
  const Var start = reshape(slice(slice(slice(tokens, 0, 0, 1), 1, 0, 1), -1, s.d, s.d + 1), {1});
  // How many rows of the memories there are, at the end of their arrays.
  const auto rows_compressed = [&](Var passed) { return minimum(relu(passed - n_m) / c, n_cm); };
  const Var missing =
      static_cast<double>(M) - (s.empty ? minimum(start, n_m) + rows_compressed(start) : affine(start, 0.0, static_cast<double>(M)));
  std::vector<double> causal, columns, distance;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < K; ++j) causal.push_back(j <= M + i ? 0.0 : unseen);
  for (std::int64_t j = 0; j < K; ++j) columns.push_back(static_cast<double>(j));
  for (std::int64_t p = 0; p < L; ++p)
    for (std::int64_t q = 0; q < L; ++q) distance.push_back(static_cast<double>(q - p));
  const Var future = graph.constant({rows, K}, std::move(causal)), column = graph.constant({K}, std::move(columns));
  // With rows missing, places begin with the first row that there is.
  const Var moved = s.empty ? relu(1.0 - abs(graph.constant({L, L}, std::move(distance)) - missing)) : Var{};

  std::vector<Var> memories, compressions;
  for (const Block& b : blocks) {
    const Var u = layer_norm(x, b.norm1, b.norm1_bias, 1e-5);
    // With the enhanced recurrence a layer reads and continues what the one above it left, the last one what the first left.
    const std::int64_t from = s.enhanced ? (b.memory + 1) % s.memories : b.memory;
    const auto part = [&](Var all, std::int64_t length) {
      return reshape(slice(all, 1, std::max<std::int64_t>(from, 0), std::max<std::int64_t>(from, 0) + 1), {B, length, s.d});
    };
    const Var m = part(memory[0], s.n_m), cm = part(memory[1], s.n_cm);
    const Var parts_of_past[] = {cm, m, u};
    const auto kv = split(linear(concat(parts_of_past, 1), b.to_kv), -1, 2);
    const auto by_head = [&](Var v) { return permute(reshape(v, {B, v.dim(1), H, s.D}), swap); };
    const Var q = by_head(linear(u, b.to_q)), k = by_head(kv[0]), v = by_head(kv[1]);
    Var scores = matmul_transposed(q, k);
    if (positions) {
      Var places =
          permute(reshape(matmul_transposed(reshape(permute(q, heads_first_axes), {H, B * rows, s.D}), positions), {H, B, rows, L}),
                  heads_first_axes);
      if (moved) places = matmul(places, moved);
      scores = scores + skewed(places, s.n, K);
    }
    const Var hidden = b.memory < 0 ? sign(relu(static_cast<double>(M) - 0.5 - column))
                       : s.empty    ? sign(relu(missing - 0.5 - column))
                                    : Var{};
    scores = scores / std::sqrt(static_cast<double>(s.D)) + future;
    if (hidden) scores = scores + unseen * hidden;
    const Var p = softmax_rows(scores);
    const Var read = reshape(permute(matmul(p, v), swap), {B, rows, s.d});
    x = b.attention(x, linear(read, b.to_out, b.to_out_bias));
    const Var inside = linear(layer_norm(x, b.norm2, b.norm2_bias, 1e-5), b.w1, b.w1_bias);
    const auto halves = s.glu ? split(inside, -1, 2) : std::vector<Var>{};
    x = b.feed_forward(x, linear(s.glu ? gelu(halves[0]) * halves[1] : gelu(inside), b.w2, b.w2_bias));
    if (rows < s.n || b.memory < 0) continue;
    const Var queue_parts[] = {m, u};
    const Var queue = concat(queue_parts, 1);
    const Var usage = s.compression == "most-used" ? reshape(slice(mean(mean(p, 2), 1), -1, s.n_cm, s.n_cm + s.n), {B, s.n}) : Var{};
    const Var compressed_parts[] = {cm, compressed(s, b, slice(queue, 1, 0, s.n), usage)};
    Var next = slice(concat(compressed_parts, 1), 1, s.n / s.c, s.n / s.c + s.n_cm);
    if (s.empty) {  // rows that stand for no step are zeros
      std::vector<double> from_the_end;
      for (std::int64_t r = 0; r < s.n_cm; ++r) from_the_end.push_back(static_cast<double>(s.n_cm - r) - 0.5);
      next = next * sign(relu(rows_compressed(start + static_cast<double>(s.n)) - graph.constant({s.n_cm, 1}, std::move(from_the_end))));
    }
    memories.push_back(reshape(slice(queue, 1, s.n, s.n + s.n_m), {B, 1, s.n_m, s.d}));
    compressions.push_back(reshape(next, {B, 1, s.n_cm, s.d}));
  }
  SegmentResult result{x, {}};
  if (rows == s.n)
    for (const std::vector<Var>& left : {memories, compressions}) {
      const Var all = left.size() == 1 ? left[0] : concat(left, 1);
      result.memory.push_back(s.held ? detach(all) : all);
    }
  return result;
}

}  // namespace

Architecture compressive_transformer() {
  Architecture a;
  a.title = "Compressive transformer";
  a.equations = {
      "for each segment X of n steps, depth times:  U = LN X,  A = att(U; [C; M; U]),  X ← X + W_o A,  X ← X + W₂ gelu(W₁ LN X)",
      "att: Σ_j softmax_j(q_i·(k_j + e_{i−j})/√D) v_j by head, causal; i − j counts the rows of [C; M; U]",
      "when the segment is full:  O = the oldest n rows of [M; U],  M ← the last n_m of [M; U],  C ← the last n_cm of [C; f_c(O)]",
      "f_c makes one row of c:  conv: Σ_τ W_τ o_{cj+τ} + b;  mean, max: of the c rows;  most-used: the n/c rows of O with the largest mean "
      "attention",
      "residual=gru:  X ← GRU(input A, state X) in place of both sums"};
  a.notes = {
      "Parameters have the names of lucidrains/compressive-transformer-pytorch: attn_layers, ff_layers, pos_emb. The whole stack of "
      "`depth` layers is one recurrent layer, since with enhanced_recurrence a layer reads the memory of the one above.",
      "The memories hold the normalised inputs of each layer's attention; key and value are made of them anew in each segment.",
      "to_logits.1 is the head, where emb_dim is the code's dim; token_emb and to_model_dim make its inputs of tokens, and are passed "
      "over.",
      "No gradient passes into the memories (stop_gradient), so the convolution has none from the outputs: the authors train it with an "
      "auxiliary loss, that attention to C gives what attention to O gave, which is no part of a run.",
      "start=empty: at first there are no rows, as in the code, and the array of places e begins with the oldest row that there is. "
      "start=zeros: the rows are there and are zeros, as in the paper. Rows that do not exist yet are recorded as zeros.",
      "most-used: the attention is the mean over heads and the steps of the segment in which a row leaves the memory; rows keep their "
      "order.",
      "segment and mem_len are multiples of ratio, so that no row is left over; the code fills up with zeros.",
      "The state of a step is what its segment reads; at the last step of a full segment it is already the next one. It changes once a "
      "segment, hence no spectrum and no ds_T/ds_t."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the width."),
      hyper_integer("depth", "L", 2, 1, 9, "Transformer layers of the recurrent stack."),
      hyper_integer("segment", "n", 16, 1, 65536, "Steps of a segment (seq_len).", "steps"),
      hyper_integer("mem_len", "n_m", 16, 1, 65536, "Rows of the memory, at least a segment.", "steps"),
      hyper_integer("cmem_len", "n_cm", 4, 1, 65536, "Rows of the compressed memory.", "rows"),
      hyper_integer("ratio", "c", 4, 1, 1024, "Rows that become one.", "rows"),
      hyper_choice("compression", "conv", {"conv", "mean", "max", "most-used"}, "f_c."),
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
      hyper_flag("glu", false, "Whether the feed-forward part is gated."),
      hyper_choice("residual", "gru", {"gru", "add"}, "What joins a part with what goes round it."),
      hyper_flag("mogrify", false, "Whether the input and the state of the GRU gate each other first, five times."),
      hyper_flag("mogrify_bias", false,
                 "With mogrify, whether its factors have biases, as in later versions of the package that the code takes it from, where "
                 "they are Q.0.0 and Q.0.1."),
      hyper_flag("enhanced_recurrence", true,
                 "Whether each layer reads and continues the memory of the layer above it, the last one that of the first."),
      hyper_integer("memory_at", "", 0, 0, 987654321, "The numbers of the layers that have a memory, from 1, one digit each; 0: all."),
      hyper_choice("position", "learned", {"learned", "none"}, "Whether distances have vectors e."),
      hyper_choice("start", "empty", {"empty", "zeros"}, "What the memories hold at first."),
      hyper_flag("stop_gradient", true, "Whether no gradient passes into the memories.")};
  a.spectrum = "none: the memories change once a segment, and no matrix takes them from one step to the next";
  a.source = {"J. W. Rae, A. Potapenko, S. M. Jayakumar, C. Hillier, T. P. Lillicrap",
              "Compressive transformers for long-range sequence modelling", "ICLR", "https://arxiv.org/abs/1911.05507", 2020};
  a.reference = {{"to_logits.1.*", "head/*"}, {"to_logits.*", ""}, {"token_emb.weight", ""}, {"to_model_dim.*", ""}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    const auto refuse = [&](const std::string& sentence, const std::string& key, const std::string& range) {
      throw Error("compressive-transformer: " + sentence,
                  {.model = "compressive-transformer", .parameter = key, .value = h.text(key), .range = range});
    };
    if (h.integer("width") % h.integer("heads"))
      refuse("heads = " + h.text("heads") + " does not divide width = " + h.text("width") + ": choose a divisor.", "heads",
             "a divisor of width");
    if (h.integer("mem_len") < h.integer("segment"))
      refuse("mem_len = " + h.text("mem_len") + " is shorter than a segment of " + h.text("segment") + " steps: choose at least as much.",
             "mem_len", "at least segment");
    for (const char* key : {"segment", "mem_len"})
      if (h.integer(key) % h.integer("ratio"))
        refuse(std::string(key) + " = " + h.text(key) + " is no multiple of ratio = " + h.text("ratio") + ": choose one.", key,
               "a multiple of ratio");
    if (h.choice("compression") == "most-used" && h.integer("mem_len") % h.integer("segment"))
      refuse("compression = most-used needs a memory of whole segments, not " + h.text("mem_len") +
                 ": choose a multiple of segment = " + h.text("segment") + ".",
             "mem_len", "a multiple of segment");
    if (h.flag("mogrify") && h.choice("residual") == "add") refuse("mogrify needs residual = gru.", "mogrify", "false");
    const std::string at = h.text("memory_at");
    for (std::size_t i = 0; at != "0" && i < at.size(); ++i)
      if (at[i] == '0' || at[i] - '0' > h.integer("depth") || (i && at[i] <= at[i - 1]))
        refuse("memory_at = " + at + " does not name layers of a stack of " + h.text("depth") +
                   " in their order: give their numbers, one digit each.",
               "memory_at", "0, or digits from 1 to depth, rising");
  };

  a.layer = [](Layer& l, Var x) {
    const Sizes s = sizes_of(l.hyper);
    const std::vector<Block> blocks = declare(l, s);
    const Var positions = l.hyper.choice("position") == "learned"
                              ? l.parameter("pos_emb", {s.heads, s.M() + s.n, s.D}, init::constant(0.0),
                                            "e of each head; its last row belongs to the step itself, the one before to the step before, "
                                            "once the memories are full. Starts at 0.")
                              : Var{};
    const Var none = x.graph->constant({1}, {0.0});
    const Var parts_of_token[] = {x, l.position()};
    return segments(l,
                    {{"memory", {s.memories, s.n_m, s.d}, "M of each layer that has one, oldest row first."},
                     {"compressed", {s.memories, s.n_cm, s.d}, "C of each of these layers, oldest row first."}},
                    {none, none}, concat(parts_of_token, -1), s.n, filled_up(s.n, [=](Cell&, std::span<const Var> memory, Var tokens) {
                      return segment_of(s, blocks, positions, memory, tokens);
                    }));
  };
  return a;
}

}  // namespace reclab::architectures
