// SPDX-License-Identifier: GPL-3.0-or-later
// Names, shapes and starts of the Token Turing machine's parameters, as scenic's TokenTuringMachineUnit has them.
#include "models/modelling_recurrence/token-turing-machine/parameters.h"

#include <cmath>

#include "models/parts/parts.h"

namespace reclab::architectures::token_turing {
namespace {

constexpr const char* unseen = " It adds the same to all rows of a softmax, and changes nothing.";

/// Reads the parameters.
struct Declare {
  Layer& l;
  std::int64_t d = l.hyper.integer("width");

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
    if (h.choice("unit") == "full" && h.choice("memory_mode") == "TL-MHA") {
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

}  // namespace

Summary reading(Layer& l) { return Declare{l}.summary("0", "read", l.hyper.integer("process")); }
Summary writing(Layer& l) { return Declare{l}.summary("1", "write", l.hyper.integer("memory")); }

Var read_positions(Layer& l) {
  const Hyper& h = l.hyper;
  if (!h.flag("position")) return {};
  return Declare{l}.positions("read_pos_embed", h.integer("memory") + h.integer("tokens"), "that are read");
}
Var write_positions(Layer& l) {
  const Hyper& h = l.hyper;
  if (!h.flag("position")) return {};
  const std::int64_t rows = h.integer("memory") + h.integer("tokens") + h.integer("process");
  return Declare{l}.positions("write_pos_embed", rows, "that the memory is made of");
}

Processor processor(Layer& l, std::int64_t rows) {
  const Declare declare{l};
  const Hyper& h = l.hyper;
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

AddErase add_erase(Layer& l) {
  const Declare declare{l};
  const Hyper& h = l.hyper;
  const std::int64_t d = declare.d, processed = h.integer("process"), tokens = h.integer("write_tokens"), hidden = h.integer("bottleneck");
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

}  // namespace reclab::architectures::token_turing
