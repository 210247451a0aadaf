// SPDX-License-Identifier: GPL-3.0-or-later
// A transformer layer of google-research/meliad, transformer/{transformer_layer,transformer_base,nn_components}.py, without its recurrence:
// for the block-recurrent and the block-state transformer.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "array/error.h"
#include "models/architecture.h"
#include "recurrence/attention/attention.h"

namespace reclab::meliad {

struct Norm {
  Var scale, bias;
  bool centred;
  Var operator()(Var x) const {
    if (centred) return layer_norm(x, scale, bias, 1e-6);
    const Var y = rms_norm(x, scale, 1e-6);
    return bias ? y + bias : y;
  }
};
struct Dense {
  Var kernel, bias;
  Var operator()(Var x) const {
    const Var y = matmul(x, kernel);
    return bias ? y + bias : y;
  }
};
/// One or two dense layers, and the gate that joins their result with the state that goes round them.
struct Mlp {
  Dense hidden, output, gate, input_gate;  ///< gate: of full, or the forget gate of lstm
  Var gate_bias;
  std::string activation, how;
  bool squashed = false;  ///< a tanh on the result
};
struct StreamWeights {
  Norm before_attention, before_feed_forward;
  Dense keys, values, queries, queries2;
  Var scale, scale2, positions;
  std::optional<Mlp> after_attention, feed_forward;
};
constexpr std::int64_t buckets = 32, farthest = 128;  // of distances of t5

struct Sizes {
  std::int64_t d, heads, D, n;
  bool normalised;
  std::string position;
  explicit Sizes(const Hyper& h)
      : d(h.integer("width")),
        heads(h.integer("heads")),
        D(h.integer("head_dim") ? h.integer("head_dim") : d / heads),
        n(h.integer("segment")),
        normalised(h.flag("normalise_keys")),
        position(h.choice("position")) {}
};

enum class Crosses { nothing, state, context };  ///< the other input of a stream's attention: a context has keys and a scale of its own

/// Reads a layer's parameters.
struct Declare {
  Layer& l;
  const Sizes& s;

  Norm norm(const std::string& name) const {
    const Var scale = l.parameter(name + ".scale", {s.d}, init::constant(1.0), "Scale of the norm; starts at 1.");
    return {scale, l.hyper.flag("norm_bias") ? l.parameter(name + ".bias", {s.d}, init::constant(0.0), "Its shift; starts at 0.") : Var{},
            l.hyper.flag("norm_mean")};
  }
  Dense dense(const std::string& name, std::int64_t in, std::int64_t out, const std::string& role, bool bias = false) const {
    Dense made{l.parameter(name + ".kernel", {in, out}, init::truncated_normal(1.0 / std::sqrt(static_cast<double>(in))),
                           role + " [in, out]; starts as a normal with deviation 1/√in, cut at two."),
               {}};
    if (bias) made.bias = l.parameter(name + ".bias", {out}, init::constant(0.0), "Its bias; starts at 0.");
    return made;
  }
  Dense of_gate(const std::string& name, std::int64_t in, const std::string& role) const {
    return {l.parameter(name + ".kernel", {in, s.d}, init::truncated_normal(std::sqrt(0.1 / static_cast<double>(in))),
                        role + " [in, out]; starts as a normal of variance 1/(10 in), cut at two deviations."),
            l.parameter(name + ".bias", {s.d}, init::normal(0.1), "Its bias; starts N(0, 0.1²).")};
  }
  Mlp mlp(const std::string& name, std::int64_t in, std::int64_t inside, const std::string& how, bool squashed) const {
    Mlp made;
    const bool bias = l.hyper.flag("mlp_bias");
    made.how = how;
    made.squashed = squashed;
    made.activation = l.hyper.choice("activation");
    const std::int64_t last = inside ? inside : in;
    if (inside) made.hidden = dense(name + ".hidden0", in, inside, "First layer", bias);
    made.output = dense(name + ".output_layer", last, s.d, "Last layer", bias);
    if (how == "bias")
      made.gate_bias = l.parameter(name + ".gate_bias", {s.d}, init::normal(0.1), "b of the gate sigmoid(b); starts N(0, 0.1²).");
    if (how == "full") made.gate = of_gate(name + ".gate_layer", last, "The gate, of what the last layer reads");
    if (how == "lstm") {
      made.input_gate = of_gate(name + ".input_gate", last, "The input gate, of what the last layer reads");
      made.gate = of_gate(name + ".forget_gate", last, "The forget gate, of what the last layer reads");
    }
    return made;
  }
  StreamWeights base(const std::string& name, Crosses other, std::int64_t positions, const std::string& how,
                     const std::string& cell) const {
    const bool crosses = other != Crosses::nothing;
    const std::int64_t E = s.heads * s.D, F = l.hyper.integer("feed_forward") ? l.hyper.integer("feed_forward") : 4 * s.d,
                       of_attention = crosses ? 2 * E : E;
    StreamWeights b;
    b.before_attention = norm(name + "._kvq.pre_attn_layernorm");
    b.keys = dense(name + "._kvq.keys_layer", s.d, E, "W_k, columns by head,");
    b.values = dense(name + "._kvq.values_layer", s.d, E, "W_v, columns by head,");
    b.queries = dense(name + "._kvq.queries_layer", s.d, E, "W_q, columns by head,");
    if (crosses) b.queries2 = dense(name + "._kvq.queries2_layer", s.d, E, "W_q of the attention to the other stream, columns by head,");
    if (s.normalised) {
      b.scale =
          l.parameter(name + "._kvq.attention_scale", {s.heads}, init::constant(1.0), "Scale of the scores of each head; starts at 1.");
      if (other == Crosses::state)
        b.scale2 = l.parameter(name + ".attention_scale2", {s.heads}, init::constant(1.0),
                               "The same for the attention to the other stream; starts at 1.");
    }
    if (positions)
      b.positions = l.parameter(name + "._kvq.position_embeddings", {positions, s.d}, init::normal(1.0),
                                "What is added to each row of the state before keys, values and queries are made; starts N(0, 1).");
    if (cell != "single") b.after_attention = mlp(name + ".post_attn_mlp", of_attention, 0, how, false);
    if (cell == "dual") b.before_feed_forward = norm(name + ".pre_ffn_layernorm");
    if (cell != "skip") b.feed_forward = mlp(name + ".ffn", cell == "single" ? of_attention : s.d, F, how, cell == "single");
    return b;
  }
  /// The parameter of the biases by distance: [heads, buckets], or [heads, twice the wavelengths], or none.
  Var rel(const std::string& at) const {
    if (s.position == "t5")
      return l.parameter(at + "relative_positions.rel_embedding", {s.heads, buckets},
                         init::normal(1.0 / std::sqrt(static_cast<double>(buckets))),
                         "b of each head and bucket of distances; starts N(0, 1/buckets).");
    if (s.position != "fourier") return {};
    const std::int64_t size = l.hyper.integer("position_vector");
    return l.parameter(at + "relative_positions.rotation_matrix", {s.heads, size}, init::each([size](Rng&, std::int64_t index) {
                         return index % size < size / 2 ? 2.0 / static_cast<double>(size) : 0.0;
                       }),
                       "a and b of each head; a starts at 1/M, b at 0.");
  }
};

struct Projected {
  Var keys, values, queries, queries2;  ///< [batch, heads, rows, D]
};

/// The arithmetic of a stream.
class Stream {
 public:
  explicit Stream(const Sizes& sizes) : s(sizes) {}
  /// Hears of each gate of the state: "attention_keep", "feed_forward_write" and so on.
  using Named = std::function<void(const std::string& name, Var value)>;

  Var unit(Var x) const {
    if (!s.normalised) return x;
    Shape one = x.shape();
    one.back() = 1;
    return x / sqrt(reshape(sum(square(x), -1), one) + 1e-6);
  }
  /// [batch, rows, heads D] -> [batch, heads, rows, D].
  Var by_head(Var x) const {
    const int swap[] = {0, 2, 1, 3};
    return permute(reshape(x, {x.dim(0), x.dim(1), s.heads, s.D}), swap);
  }
  Projected projected(const StreamWeights& b, Var x) const {
    Var u = b.before_attention(x);
    if (b.positions) u = u + b.positions;
    const double scale = s.normalised ? 1.0 : 1.0 / std::sqrt(static_cast<double>(s.D));
    Projected p{unit(by_head(b.keys(u))), by_head(b.values(u)), unit(by_head(b.queries(u))) * scale, {}};
    if (b.queries2.kernel) p.queries2 = unit(by_head(b.queries2(u))) * scale;
    return p;
  }
  Var attend(Var q, Var k, Var v, Var scale, Var bias, Var mask) const {
    Var scores = matmul_transposed(q, k);
    if (bias) scores = scores + bias;
    if (scale) scores = scores * reshape(scale, {s.heads, 1, 1});
    if (mask) scores = scores + mask;
    return matmul(softmax_rows(scores), v);
  }
  /// A causal mask, added to scores: with `before` rows before the first, a step sees those of the n before it that are there, and itself
  /// where `itself`.
  Var causal(Graph& graph, std::int64_t rows, std::int64_t before, bool itself) const {
    std::vector<double> mask;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < before + rows; ++j) {
        const std::int64_t age = before + i - j;
        mask.push_back(age >= (itself ? 0 : 1) && age <= s.n ? 0.0 : -1e30);
      }
    return graph.constant({rows, before + rows}, std::move(mask));
  }
  /// The biases of each head by distance, added to the scores. T5: a number for each bucket of distances, exact for the nearest half of
  /// them and logarithmic beyond. Fourier: a cosine and a sine of the distance for each wavelength.
  Var biases(Graph& graph, Var rel, std::int64_t rows, std::int64_t before) const {
    if (!rel) return {};
    const std::int64_t weights = rel.dim(1), exact = buckets / 2, waves = weights / 2, columns = before + rows;
    std::vector<double> chosen;
    for (std::int64_t w = 0; w < weights; ++w)
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
          const std::int64_t age = std::max<std::int64_t>(before + i - j, 0);
          if (s.position == "fourier") {
            const double angle = std::numbers::pi * static_cast<double>(age) /
                                 std::pow(2.0 * static_cast<double>(s.n), static_cast<double>(w % waves) / static_cast<double>(waves));
            chosen.push_back(w < waves ? std::cos(angle) : -std::sin(angle));
            continue;
          }
          std::int64_t bucket = age;
          if (age >= exact) {
            const double place = std::log(static_cast<double>(age) / static_cast<double>(exact) + 1.1920928955078125e-7) /
                                 std::log(static_cast<double>(farthest) / static_cast<double>(exact));
            bucket = std::min(buckets - 1, exact + static_cast<std::int64_t>(place * static_cast<double>(buckets - exact)));
          }
          chosen.push_back(bucket == w ? 1.0 : 0.0);
        }
    return reshape(matmul(rel, graph.constant({weights, rows * columns}, std::move(chosen))), {s.heads, rows, columns});
  }
  /// Rotary positions, row 0 standing at `first`.
  Var turned(Var x, std::int64_t first) const {
    if (s.position != "rotary") return x;
    const std::int64_t rows = x.dim(2), half = s.D / 2;
    std::vector<double> c, t;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t m = 0; m < half; ++m) {
        const double angle =
            std::numbers::pi * static_cast<double>(first + i) / std::pow(10000.0, static_cast<double>(m) / static_cast<double>(half));
        c.push_back(std::cos(angle));
        t.push_back(std::sin(angle));
      }
    const Var cosine = x.graph->constant({rows, half}, std::move(c)), sine = x.graph->constant({rows, half}, std::move(t));
    const auto parts = split(x, -1, 2);
    const Var both[] = {parts[0] * cosine - parts[1] * sine, parts[0] * sine + parts[1] * cosine};
    return concat(both, -1);
  }
  Var joined(const Mlp& m, Var x, Var round, const std::string& name, const Named& named) const {
    const auto f = [&](Var v) {
      return m.activation == "relu" ? relu(v) : m.activation == "swish" ? silu(v) : m.activation == "sigmoid" ? sigmoid(v) : tanh(v);
    };
    const Var inside = m.hidden.kernel ? f(m.hidden(x)) : x;
    Var y = m.output(inside);
    if (m.squashed) y = tanh(y);
    if (m.how == "residual") return round + y;
    const Var keep = m.how == "bias" ? sigmoid(m.gate_bias) + affine(round, 0.0, 0.0) : sigmoid(m.gate(inside) + 1.0);
    if (named) named(name + "_keep", keep);
    if (m.how != "lstm") return round * keep + y * (1.0 - keep);
    const Var write = sigmoid(m.input_gate(inside) - 1.0);
    if (named) named(name + "_write", write);
    return round * keep + y * write;
  }
  /// read [batch, heads (of both attentions), rows, D].
  Var after_attention(const StreamWeights& b, Var x, Var read, const Named& named = {}) const {
    const int swap[] = {0, 2, 1, 3};
    const Var flat = reshape(permute(read, swap), {read.dim(0), read.dim(2), read.dim(1) * s.D});
    if (!b.after_attention) return joined(*b.feed_forward, flat, x, "feed_forward", named);
    const Var after = joined(*b.after_attention, flat, x, "attention", named);
    return b.feed_forward ? joined(*b.feed_forward, b.before_feed_forward(after), after, "feed_forward", named) : after;
  }

 private:
  const Sizes& s;
};

/// The hyper-parameters that both models have.
inline std::vector<HyperSpec> hyper() {
  return {hyper_choice("activation", "relu", {"relu", "swish", "sigmoid", "tanh"}, "f."),
          hyper_flag("mlp_bias", false, "Whether dense layers behind attention and in feed-forward parts have biases."),
          hyper_flag("normalise_keys", true, "Whether keys and queries are unit vectors."),
          hyper_flag("norm_mean", false, "Whether the norms subtract the mean."),
          hyper_flag("norm_bias", false, "Whether the norms have a shift."),
          hyper_choice("position", "t5", {"t5", "fourier", "rotary", "none"}, "How tokens know how far they are from each other."),
          hyper_integer("position_vector", "2M", 128, 2, 65536,
                        "With fourier: numbers of a head, two a wavelength; even (position_vector_size)."),
          hyper_flag("final_norm", true, "Whether a norm follows the last layer.")};
}
inline void check(const std::string& id, const Hyper& h) {
  const auto refuse = [&](const std::string& sentence, const std::string& key, const std::string& range) {
    throw Error(id + ": " + sentence, {.model = id, .parameter = key, .value = h.text(key), .range = range});
  };
  if (!h.integer("head_dim") && h.integer("width") % h.integer("heads"))
    refuse("heads = " + h.text("heads") + " does not divide width = " + h.text("width") + ": choose a divisor, or give head_dim.", "heads",
           "a divisor of width");
  const std::int64_t D = h.integer("head_dim") ? h.integer("head_dim") : h.integer("width") / h.integer("heads");
  if (h.choice("position") == "rotary" && D % 2)
    refuse("position = rotary needs heads of an even width, not " + std::to_string(D) + ": choose another, or position=none.", "position",
           "none");
  if (h.integer("position_vector") % 2)
    refuse("position_vector = " + h.text("position_vector") + " is odd: choose an even number.", "position_vector", "even");
}

}  // namespace reclab::meliad
