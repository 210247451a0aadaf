// SPDX-License-Identifier: GPL-3.0-or-later
//   Z = summary_P [m_{t-1}; x_t],   o_t = process(Z),   m_t = summary_M [m_{t-1}; x_t; o_t],   x_t the n tokens of a step
//   summary_k of tokens y: k weighted means, softmax over the tokens of W₂ gelu(W₁ LN y + b₁); or k learned queries attend to y
//   memory_mode=TL-AddErase writes m_t = m_{t-1} ∘ Π_i (1 - s_i e_i^T) + mean_i (1 - s_i a_i^T), s = softmax over rows of W₂ gelu(W₁ LN m),
//   e and a made of o_t
// M. S. Ryoo, K. Gopalakrishnan, K. Kahatapitiya, T. Xiao, K. Rao, A. Stone, Y. Lu, J. Ibarz, A. Arnab, Token Turing machines, CVPR 2023.
// Names and conventions of google-research/scenic, projects/token_turing/model.py.
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/chunks.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

struct Dense {
  Var kernel, bias;
  Var operator()(Var x) const { return bias ? matmul(x, kernel) + bias : matmul(x, kernel); }
};
struct Mlp {
  Dense first, second;
  Var operator()(Var x) const { return second(gelu_tanh(first(x))); }
};
struct Norm {
  Var scale, bias;
  Var operator()(Var x) const { return layer_norm(x, scale, bias, 1e-6); }
};
struct HeadedAttention {
  Var query, query_bias, key, value, value_bias, out, out_bias;
};
/// Weighted means of tokens, or what learned tokens attend to.
struct Summary {
  Norm norm;
  Mlp mask;
  Var tokens;
  HeadedAttention attention;
};
struct EncoderBlock {
  Norm before_attention, before_mlp;
  HeadedAttention attention;
  Mlp mlp;
};
struct MixerBlock {
  Norm before_tokens, before_channels;
  Mlp tokens, channels;
};
struct MlpStage {
  Norm norm;
  Mlp mlp;
};
struct AddErase {
  Norm memory, erased, added;
  Mlp select, erased_tokens, erased_channels, added_tokens, added_channels;
};

constexpr const char* unseen = " It adds the same to all rows of a softmax, and changes nothing.";

/// Reads the parameters.
struct Declare {
  Layer& l;
  std::int64_t d;

  Norm norm(const std::string& name, const std::string& of) const {
    return {l.parameter(name + ".scale", {d}, init::constant(1.0), "Scale of the norm " + of + "; starts at 1."),
            l.parameter(name + ".bias", {d}, init::constant(0.0), "Its shift; starts at 0.")};
  }
  /// `last_bias`: why the last bias changes nothing, where it does not.
  Mlp mlp(const std::string& name, std::int64_t in, std::int64_t hidden, std::int64_t out, const std::string& of,
          const std::string& last_bias = "") const {
    const auto dense = [&](const std::string& at, std::int64_t from, std::int64_t to, const std::string& role, bool reads_bias) {
      const Var kernel =
          l.parameter(at + ".kernel", {from, to}, parts::xavier_uniform(from, to), role + " [in, out]; starts Xavier uniform.");
      const Var bias =
          l.parameter(at + ".bias", {to}, init::normal(1e-6), std::string("Its bias; starts N(0, 10⁻¹²).") + (reads_bias ? "" : last_bias));
      return Dense{kernel, reads_bias ? bias : Var{}};
    };
    return {dense(name + ".Dense_0", in, hidden, "W₁ " + of, true), dense(name + ".Dense_1", hidden, out, "W₂ " + of, last_bias.empty())};
  }
  HeadedAttention attention(const std::string& name, std::int64_t heads, bool xavier) const {
    const std::int64_t D = d / heads;
    const Init start = xavier ? parts::xavier_uniform(d, d) : init::truncated_normal(1.0 / std::sqrt(static_cast<double>(d)));
    const std::string starts = xavier ? "; starts Xavier uniform." : "; starts LeCun normal.";
    const auto kernel = [&](const char* part) {
      return l.parameter(name + "." + part + ".kernel", {d, heads, D}, start,
                         std::string("W of the ") + part + " [in, head, entry]" + starts);
    };
    const auto bias = [&](const char* part, const std::string& more) {
      return l.parameter(name + "." + part + ".bias", {heads, D}, init::constant(0.0), "Its bias; starts at 0." + more);
    };
    HeadedAttention a;
    a.query = kernel("query");
    a.query_bias = bias("query", "");
    a.key = kernel("key");
    bias("key", " It adds the same to all scores of a row, and changes nothing.");
    a.value = kernel("value");
    a.value_bias = bias("value", "");
    a.out = l.parameter(name + ".out.kernel", {heads, D, d}, start, "W_o [head, entry, out]" + starts);
    a.out_bias = l.parameter(name + ".out.bias", {d}, init::constant(0.0), "Its bias; starts at 0.");
    return a;
  }
  Summary summary(const std::string& number, const std::string& verb, std::int64_t tokens) const {
    const Hyper& h = l.hyper;
    Summary s;
    if (h.choice("memory_mode") == "TL-MHA") {
      const std::string name = "TokenLearnerMHA_" + number;
      s.tokens = l.parameter(name + ".tokens", {1, tokens, d}, init::normal(0.02), "The queries that " + verb + "; start N(0, 0.02²).");
      s.attention = attention(name + ".attn", h.integer("summary_heads"), false);
    } else {
      const std::string name = "TokenLearnerModuleV11_" + number;
      s.norm = norm(name + ".LayerNorm_0", "of the tokens before they are weighed");
      s.mask = mlp(name + ".token_masking", d, h.integer("bottleneck"), tokens, "of the weights that " + verb, unseen);
    }
    return s;
  }
  Var positions(const std::string& name, std::int64_t rows, const std::string& of) const {
    return l.parameter(name + ".pos_embedding", {1, rows, d}, init::normal(0.02),
                       "What is added to each of the rows " + of + "; starts N(0, 0.02²).");
  }
};

/// x [batch, rows, d] attends to y; the weights [batch, heads, rows, columns] go to `weights`.
Var attend(const HeadedAttention& a, Var x, Var y, Var& weights) {
  const std::int64_t d = x.dim(-1), heads = a.query.dim(1), D = a.query.dim(2), B = y.dim(0);
  const int swap[] = {0, 2, 1, 3};
  const auto projected = [&](Var from, Var kernel, Var bias) {
    const Var made = matmul(from, reshape(kernel, {d, d}));
    return permute(reshape(bias ? made + reshape(bias, {d}) : made, {B, from.dim(1), heads, D}), swap);
  };
  const Var q = projected(x, a.query, a.query_bias) / std::sqrt(static_cast<double>(D));
  weights = softmax_rows(matmul_transposed(q, projected(y, a.key, {})));
  const Var read = reshape(permute(matmul(weights, projected(y, a.value, a.value_bias)), swap), {B, x.dim(1), d});
  return matmul(read, reshape(a.out, {d, d})) + a.out_bias;
}

struct Processor {
  Var positions;
  std::vector<EncoderBlock> blocks;
  std::vector<MixerBlock> mixers;
  std::vector<MlpStage> stages;
  Norm last;

  Var operator()(Var z) const {
    if (positions) z = z + positions;
    Var unused;
    for (const EncoderBlock& b : blocks) {
      const Var x = b.before_attention(z);
      z = z + attend(b.attention, x, x, unused);
      z = z + b.mlp(b.before_mlp(z));
    }
    for (const MixerBlock& b : mixers) {
      z = z + transpose(b.tokens(transpose(b.before_tokens(z))));
      z = z + b.channels(b.before_channels(z));
    }
    for (const MlpStage& s : stages) z = s.mlp(s.norm(z));
    return last(z);
  }
};

Processor declare_processor(const Declare& declare, std::int64_t rows) {
  const Hyper& h = declare.l.hyper;
  const std::int64_t d = declare.d, F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d, depth = h.integer("depth");
  Processor p;
  const std::string& unit = h.choice("processing_unit");
  if (unit == "transformer") p.positions = declare.positions("Encoder_0.posembed_input", rows, "that are processed");
  for (std::int64_t i = 0; i < depth; ++i) {
    const std::string number = std::to_string(i);
    if (unit == "transformer") {
      const std::string at = "Encoder_0.encoderblock_" + number;
      EncoderBlock b;
      b.before_attention = declare.norm(at + ".LayerNorm_0", "before the attention");
      b.attention = declare.attention(at + ".MultiHeadDotProductAttention_0", h.integer("heads"), true);
      b.before_mlp = declare.norm(at + ".LayerNorm_1", "before the feed-forward part");
      b.mlp = declare.mlp(at + ".MlpBlock_0", d, F, d, "of the feed-forward part");
      p.blocks.push_back(b);
    } else if (unit == "mixer") {
      const std::string at = "MixerBlock_" + number;
      MixerBlock b;
      b.before_tokens = declare.norm(at + ".LayerNorm_0", "before tokens are mixed");
      b.tokens = declare.mlp(at + ".token_mixing", rows, h.integer("sequence_mlp"), rows, "over the tokens of a channel",
                             " It adds the same to all channels of a token, which every norm takes off again, and changes nothing.");
      b.before_channels = declare.norm(at + ".LayerNorm_1", "before channels are mixed");
      b.channels = declare.mlp(at + ".channel_mixing", d, F, d, "over the channels of a token");
      p.mixers.push_back(b);
    } else {
      p.stages.push_back({declare.norm("LayerNorm_" + number, "before the feed-forward part"),
                          declare.mlp("MlpBlock_" + number, d, F, d, "of the feed-forward part")});
    }
  }
  p.last = declare.norm(unit == "transformer" ? "Encoder_0.encoder_norm"
                        : unit == "mixer"     ? "LayerNorm_0"
                                              : "LayerNorm_" + std::to_string(depth),
                        "behind the processing unit");
  return p;
}

AddErase declare_add_erase(const Declare& declare, std::int64_t processed) {
  const Hyper& h = declare.l.hyper;
  const std::int64_t d = declare.d, tokens = h.integer("write_tokens"), hidden = h.integer("bottleneck");
  const std::string at = "TokenAddEraseWrite_0.";
  AddErase w;
  w.memory = declare.norm(at + "LayerNorm_0", "of the memory before its rows are selected");
  w.select = declare.mlp(at + "MlpBlock_0", d, hidden, tokens, "of the selection", unseen);
  w.erased = declare.norm(at + "LayerNorm_1", "of the outputs before what is erased is made of them");
  w.erased_tokens = declare.mlp(at + "MlpBlock_1", processed, hidden, tokens, "of e, over the tokens of a channel");
  w.erased_channels = declare.mlp(at + "MlpBlock_2", d, hidden, d, "of e, over the channels of a token");
  w.added = declare.norm(at + "LayerNorm_2", "of the outputs before what is added is made of them");
  w.added_tokens = declare.mlp(at + "MlpBlock_3", processed, hidden, tokens, "of a, over the tokens of a channel");
  w.added_channels = declare.mlp(at + "MlpBlock_4", d, hidden, d, "of a, over the channels of a token");
  return w;
}

Var summarised(Cell& cell, const Summary& s, Var y, const std::string& gate, const std::string& text) {
  Var weights, made;
  if (s.tokens) {
    made = attend(s.attention, s.tokens + chunks::zeros(*y.graph, {y.dim(0), 1, 1}), y, weights);
  } else {
    weights = softmax_rows(transpose(s.mask(s.norm(y))));
    made = matmul(weights, y);
  }
  cell.gate(gate, weights, 0.0, 1.0, text);
  return made;
}

Var added_and_erased(Cell& cell, const AddErase& w, Var memory, Var outputs) {
  const Var selected = cell.gate("select", softmax_rows(transpose(w.select(w.memory(memory)))), 0.0, 1.0,
                                 "s: how far each of the tokens that are written goes to each row of the memory; sums to 1 over the rows.");
  const auto made = [&](const Norm& norm, const Mlp& over_tokens, const Mlp& over_channels) {
    const Var tokens = over_channels(transpose(over_tokens(transpose(norm(outputs)))));
    return 1.0 - chunks::with_axis(selected, -1) * chunks::with_axis(tokens, -2);  // [batch, tokens, rows, d]
  };
  const Var erased = made(w.erased, w.erased_tokens, w.erased_channels);
  Var kept;
  for (std::int64_t i = 0; i < erased.dim(1); ++i) {
    const Var one = reshape(slice(erased, 1, i, i + 1), memory.shape());
    kept = kept ? kept * one : one;
  }
  return memory * kept + mean(made(w.added, w.added_tokens, w.added_channels), 1);
}

}  // namespace

Architecture token_turing_machine() {
  Architecture a;
  a.title = "Token Turing machine";
  a.equations = {
      "x_t: the n tokens of step t;  Z = summary_P [m_{t-1}; x_t],  o_t = process(Z),  m_t = summary_M [m_{t-1}; x_t; o_t]",
      "summary_k y (memory_mode=TL, TL-AddErase): W y, rows of W = softmax over the tokens of W₂ gelu(W₁ LN y + b₁)",
      "summary_k y (TL-MHA): k learned tokens attend to y in heads",
      "TL-AddErase: m_t = m_{t-1} ⊙ Π_i (1 − s_i e_iᵀ) + mean_i (1 − s_i a_iᵀ),  s = softmax over rows of W₂ gelu(W₁ LN m + b₁);  e, a = "
      "mlp(mlp over tokens of LN o_t)",
      "process: transformer blocks with norms first on Z + positions, mixer blocks, or z ← mlp(LN z) without residuals; then a norm",
      "unit=simple: [m; summary_P x_t] is processed; of its rows the first P are o_t and the last M are m_t"};
  a.notes = {
      "Names and shapes are those of scenic's TokenTuringMachineUnit, below unit_function in its encoder; kernels are [in, out], [in, "
      "head, entry] and [head, entry, out]; with a dot here where flax has a slash.",
      "What enters a step is n tokens of d channels, one after the other: the encoder in front makes them where the input is not as wide "
      "as that. What is returned is the P tokens o_t, one after the other.",
      "The memory starts at zero.",
      "TL-AddErase adds the mean of 1 − s a, as the code has it, and not that of s a, so that the memory rises by nearly 1 a step. From a "
      "memory of zeros its rows stay alike, so nothing depends on the selection.",
      "Read and write have position embeddings of their own with position; the transformer always has one. With TL-AddErase that of the "
      "write is read from nowhere.",
      "In unit=simple the rows that are returned are the first P of [m; z], which the memory was in: what comes in moves up by P rows a "
      "step.",
      "Biases of keys, and of the last map before a softmax over rows, add the same to all entries of that softmax, and the last bias of a "
      "mixer's token_mixing to all channels of a token: they change nothing, and their gradients are exactly 0.",
      "All norms are layer norms with epsilon 1e-6; gelu is its tanh approximation."};
  a.hyper = {
      hyper_integer("width", "d", 16, 1, 4096, "Width of a token.", "channels"),
      hyper_integer("tokens", "n", 2, 1, 65536, "Tokens that come in at a step.", "tokens"),
      hyper_integer("memory", "M", 4, 1, 65536, "Tokens of the memory (memory_size); 64 in the reference.", "tokens"),
      hyper_integer("process", "P", 2, 1, 65536, "Tokens that are processed at a step (process_size); 8 in the reference.", "tokens"),
      hyper_choice("unit", "full", {"full", "simple"}, "The unit of the paper, or the one whose transformer keeps the memory."),
      hyper_choice("memory_mode", "TL", {"TL", "TL-MHA", "TL-AddErase"},
                   "How tokens are summarised and the memory is written: weighted means, attention, or weighted means to read and add and "
                   "erase to write. unit=simple: TL."),
      hyper_choice("processing_unit", "transformer", {"transformer", "mixer", "mlp"}, "What processes the tokens."),
      hyper_integer("depth", "L", 1, 1, 64, "Layers of the processing unit (num_layers)."),
      hyper_integer("heads", "h", 2, 1, 64, "Heads of the transformer; must divide the width. 12 in the reference."),
      hyper_integer("summary_heads", "", 2, 1, 64, "TL-MHA: heads of reading and writing; must divide the width. 8 in the reference."),
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the processing unit (mlp_dim); 0: four times the width.",
                    "units"),
      hyper_integer("sequence_mlp", "", 16, 1, 65536, "mixer: hidden width of what mixes tokens; 128 in the reference.", "units"),
      hyper_integer("bottleneck", "", 16, 1, 65536, "Hidden width of what weighs tokens (bottleneck_dim); 64 in the reference.", "units"),
      hyper_integer("write_tokens", "", 4, 1, 65536, "TL-AddErase: tokens that are written; 8 in the reference.", "tokens"),
      hyper_flag("position", false, "Whether tokens that are read and written have position embeddings (use_positional_embedding).")};
  a.spectrum = "eigenvalues of ∂m_t/∂m_{t-1}";
  a.source = {"M. S. Ryoo, K. Gopalakrishnan, K. Kahatapitiya, T. Xiao, K. Rao, A. Stone, Y. Lu, J. Ibarz, A. Arnab",
              "Token Turing machines", "CVPR", "https://arxiv.org/abs/2211.09119", 2023};
  a.input_width = [](const Hyper& h) { return h.integer("width") * h.integer("tokens"); };
  a.check = [](const Hyper& h) {
    for (const char* heads : {"heads", "summary_heads"})
      if (h.integer("width") % h.integer(heads))
        throw Error(std::string("token-turing-machine: ") + heads + " = " + h.text(heads) + " does not divide width = " + h.text("width") +
                        ": choose a divisor.",
                    {.model = "token-turing-machine", .parameter = heads, .value = h.text(heads), .range = "a divisor of width"});
  };

  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), n = h.integer("tokens"), M = h.integer("memory"), P = h.integer("process"), T = l.steps(),
                       B = l.batch();
    const Declare declare{l, d};
    const std::vector<StateSpec> states{{"memory", {M, d}, "The memory's tokens, which are rows."}};
    const std::vector<Var> in{reshape(x, {T, B, n, d})};
    const char* read_text = "How much of each token of the memory and the input each token that is processed is made of.";
    if (h.choice("unit") == "simple") {
      Summary read;
      read.norm = declare.norm("TokenLearnerModuleV11_0.LayerNorm_0", "of the tokens before they are weighed");
      read.mask = declare.mlp("TokenLearnerModuleV11_0.token_masking", d, h.integer("bottleneck"), P, "of the weights that read", unseen);
      const Processor process = declare_processor(declare, M + P);
      const Stepped stepped = step_and_read(l, states, in, [=](Cell& cell, std::span<const Var> tokens, std::span<const Var> before) {
        const Var z = summarised(cell, read, tokens[0], "read",
                                 "How much of each token of the input each token that is processed is made of."),
                  parts[] = {before[0], z}, out = process(concat(parts, 1));
        return std::vector<Var>{slice(out, 1, P, P + M), slice(out, 1, 0, P)};
      });
      return reshape(stepped.reads[0], {T, B, P * d});
    }
    const bool erases = h.choice("memory_mode") == "TL-AddErase", placed = h.flag("position");
    const Var read_places = placed ? declare.positions("read_pos_embed", M + n, "that are read") : Var{};
    const Summary read = declare.summary("0", "read", P);
    const Processor process = declare_processor(declare, P);
    const Var write_places = placed ? declare.positions("write_pos_embed", M + n + P, "that the memory is made of") : Var{};
    const Summary write = erases ? Summary{} : declare.summary("1", "write", M);
    const AddErase edit = erases ? declare_add_erase(declare, P) : AddErase{};
    const Stepped stepped = step_and_read(l, states, in, [=](Cell& cell, std::span<const Var> tokens, std::span<const Var> before) {
      const Var memory = before[0], seen[] = {memory, tokens[0]};
      Var all = concat(seen, 1);
      if (placed) all = all + read_places;
      const Var out = process(summarised(cell, read, all, "read", read_text));
      if (erases) return std::vector<Var>{added_and_erased(cell, edit, memory, out), out};
      const Var known[] = {memory, tokens[0], out};
      all = concat(known, 1);
      if (placed) all = all + write_places;
      return std::vector<Var>{
          summarised(cell, write, all, "write",
                     "How much of each token of the old memory, the input and the output each token of the new memory is made of."),
          out};
    });
    return reshape(stepped.reads[0], {T, B, P * d});
  };
  return a;
}

}  // namespace reclab::architectures
