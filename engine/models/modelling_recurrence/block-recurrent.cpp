// SPDX-License-Identifier: GPL-3.0-or-later
//   recurrent layer, for a window X of n rows, with the keys and values K⁻, V⁻ of the window before and the state S of W rows:
//   tokens:  X + W_o [att(Q; K⁻ K) ; att(Q₂; K_S)], each step seeing the n steps before it, then X + FF(LN X)
//   state:   S ← gate(S, U_o [att(Q_S; K_S) ; att(Q₂_S; K⁻ K)]), then S ← gate(S, FF_S(LN S));   gate(s, y) = g s + (1 − g) y, or f s + i y
// D. Hutchins et al., Block-recurrent transformers, NeurIPS 2022. Names and conventions of google-research/meliad,
// transformer/{transformer_layer,transformer_base, nn_components,decoder_stack}.py, before its memory layers were rewritten in 2024.
#include <map>

#include "models/modelling_recurrence/meliad.h"
#include "recurrence/segments/segments.h"

namespace reclab::architectures {
namespace {

using meliad::Crosses;

struct LayerWeights {
  meliad::StreamWeights tokens;
  Var rel;                                     ///< [heads, buckets], or [heads, twice the wavelengths]
  std::optional<meliad::StreamWeights> state;  ///< of a recurrent layer
};
struct Sizes : meliad::Sizes {
  std::int64_t W, depth, recurrent;
  bool feedback;
  explicit Sizes(const Hyper& h)
      : meliad::Sizes(h),
        W(h.integer("states")),
        depth(h.integer("depth")),
        recurrent(std::ssize(h.text("recurrent_at"))),
        feedback(h.flag("feedback")) {}
};

bool is_recurrent(const Hyper& h, std::int64_t i) { return h.text("recurrent_at").find(static_cast<char>('1' + i)) != std::string::npos; }

class WindowStep {
 public:
  WindowStep(const Sizes& sizes, const std::vector<LayerWeights>& all, Cell& gates) : s(sizes), layers(all), cell(gates), stream(sizes) {}

  SegmentResult run(std::span<const Var> memory, Var x) {
    const std::int64_t rows = x.dim(1);
    const int swap[] = {0, 2, 1, 3};
    const auto of = [&](const Var& all, std::int64_t i) {
      Shape shape = all.shape();
      shape.erase(shape.begin() + 1);
      return reshape(slice(all, 1, i, i + 1), shape);
    };
    const auto stacked = [&](const std::vector<Var>& parts) {
      std::vector<Var> rows_of;
      for (const Var part : parts) {
        Shape shape = part.shape();
        shape.insert(shape.begin() + 1, 1);
        rows_of.push_back(reshape(part, shape));
      }
      return rows_of.size() == 1 ? rows_of[0] : concat(rows_of, 1);
    };
    std::vector<meliad::Projected> of_state;
    std::int64_t recurrent = 0;
    for (const LayerWeights& w : layers)
      if (w.state) of_state.push_back(stream.projected(*w.state, of(memory[0], recurrent++)));
    std::vector<Var> states, keys_left, values_left;
    recurrent = 0;
    for (std::int64_t i = 0; i < s.depth; ++i) {
      const LayerWeights& w = layers[static_cast<std::size_t>(i)];
      const meliad::Projected p = stream.projected(w.tokens, x);
      const auto with_past = [&](Var past, Var now) {
        const Var parts[] = {permute(past, swap), now};
        return concat(parts, 2);
      };
      const Var keys = with_past(of(memory[1], i), p.keys), values = with_past(of(memory[2], i), p.values);
      Var read = stream.attend(stream.turned(p.queries, 0), stream.turned(keys, -s.n), values, w.tokens.scale,
                               stream.biases(*x.graph, w.rel, rows, s.n), stream.causal(*x.graph, rows, s.n, false));
      const bool crosses = w.tokens.queries2.kernel.graph != nullptr;
      if (crosses) {
        const meliad::Projected& other = w.state ? of_state[static_cast<std::size_t>(recurrent)] : of_state.back();
        const Var both[] = {read, stream.attend(p.queries2, other.keys, other.values, w.tokens.scale2, {}, {})};
        read = concat(both, 1);
      }
      if (w.state && rows == s.n) {
        const meliad::Projected& own = of_state[static_cast<std::size_t>(recurrent)];
        const Var both[] = {stream.attend(own.queries, own.keys, own.values, w.state->scale, {}, {}),
                            stream.attend(own.queries2, keys, values, w.state->scale2, {}, {})};
        states.push_back(stream.after_attention(*w.state, of(memory[0], recurrent), concat(both, 1),
                                                [&](const std::string& name, Var value) { named_[name].push_back(value); }));
      }
      if (w.state) ++recurrent;
      x = stream.after_attention(w.tokens, x, read);
      if (rows < s.n) continue;
      keys_left.push_back(permute(p.keys, swap));
      values_left.push_back(permute(p.values, swap));
    }
    SegmentResult result{x, {}};
    if (rows < s.n) return result;
    result.memory = {stacked(states), stacked(keys_left), stacked(values_left)};
    for (const char* name : {"attention_keep", "attention_write", "feed_forward_keep", "feed_forward_write"}) {
      const std::vector<Var>& found = named_[name];
      if (found.empty()) continue;
      const bool keep = std::string(name).ends_with("keep");
      cell.gate(name, stacked(found), 0.0, 1.0,
                std::string(keep ? "How much of the state stays" : "How much of the new is written") +
                    (name[0] == 'a' ? " behind the attention" : " behind the feed-forward part") +
                    ", of each recurrent layer and row; of the last full window.");
    }
    return result;
  }

 private:
  const Sizes& s;
  const std::vector<LayerWeights>& layers;
  Cell& cell;
  meliad::Stream stream;
  std::map<std::string, std::vector<Var>> named_;
};

}  // namespace

Architecture block_recurrent() {
  Architecture a;
  a.title = "Block-recurrent transformer";
  a.equations = {
      "for each window X of n steps;  K⁻, V⁻: keys and values of the window before;  S: the W rows of the state;  K, Q, .. = unit rows of "
      "W LN X, K_S, Q_S, .. of U (LN S + e)",
      "tokens: A = [Σ_j softmax_j(c (q_i·k_j + b_{i−j})) v_j over the n steps before i;  softmax(c₂ Q₂ K_Sᵀ) V_S],  X ← X + W_o A,  X ← X "
      "+ W₂ f(W₁ LN X)",
      "state: A = [softmax(c_S Q_S K_Sᵀ) V_S;  softmax(c₂_S Q₂_S [K⁻; K]ᵀ) [V⁻; V]],  S ← gate(S, U_o A; A),  S ← gate(S, U₂ h; h), h = "
      "f(U₁ LN S)",
      "gate(s, y; h):  bias: g s + (1 − g) y, g = σ(b);  full: g = σ(G h + b + 1);  lstm: σ(G_f h + b_f + 1) s + σ(G_i h + b_i − 1) y",
      "cell=skip: without the second gate;  cell=single: S ← gate(S, tanh(U₂ h); h), h = f(U₁ A), in place of both"};
  a.notes = {
      "Parameters have the names of google-research/meliad (before its rewriting in 2024), joined by points; kernels are stored [in, out]. "
      "The whole stack of `depth` layers is one recurrent layer of the engine: those that recurrent_at names have a state, the others are "
      "sliding-window layers.",
      "Tokens read the state that the window before left, and the state is written from the keys and values of that window and the present "
      "one, without mask and without positions. The gate g says how much stays.",
      "A step sees the n steps before it and not itself. At the start K⁻ and V⁻ are zeros, which count in the softmax as the code has it.",
      "Keys and queries are divided by √(|x|² + 1e-6) and scores multiplied by c of each head; with normalise_keys=no queries are divided "
      "by √D instead.",
      "The norms are x/√(mean x² + 1e-6) times a scale; norm_mean subtracts the mean first.",
      "With feedback the layers without a state attend to that of the last recurrent layer too.",
      "t5 has 32 buckets of distances: the first 16 one each, then logarithmic up to 128. fourier adds Σ_m a_m cos(ω_m δ) − b_m sin(ω_m δ) "
      "at the distance δ, ω_m = π/(2n)^{m/M}, with the a of each head before its b.",
      "Rotary angles are π p/10000^{2m/D} with p the distance to the window's first step, entries m and m + D/2 a pair; they turn what "
      "tokens see of each other alone.",
      "Gradients pass through all windows. The state of a step is what its window reads; at the last step of a full window it is already "
      "the next one. It changes once a window, hence no spectrum and no ds_T/ds_t; the gates are those of the last full window, 1 and 0 "
      "before there is one."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads."),
      hyper_integer("head_dim", "D", 0, 0, 1024, "Width of a head; 0: width/heads.", "channels"),
      hyper_integer("depth", "L", 2, 1, 9, "Layers of the stack."),
      hyper_integer("recurrent_at", "", 1, 1, 987654321, "The numbers of the layers that have a state, from 1, one digit each."),
      hyper_integer("segment", "n", 16, 1, 65536, "Steps of a window (window_length).", "steps"),
      hyper_integer("states", "W", 8, 1, 65536, "Rows of the state.", "rows"),
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward parts; 0: four times the width.", "units"),
      hyper_choice("gate", "bias", {"bias", "full", "lstm"}, "What the gate of the state is made of."),
      hyper_choice(
          "cell", "skip", {"dual", "skip", "single"},
          "Whether the state passes attention and feed-forward part with a gate each, the attention alone, or both with one gate."),
      hyper_flag("feedback", false, "Whether the layers without a state attend to it too.")};
  for (HyperSpec& spec : meliad::hyper()) a.hyper.push_back(std::move(spec));
  a.spectrum =
      "none: the state changes once a window, and no matrix takes it from one step to the next; its gate says how much of it stays";
  a.source = {"D. Hutchins, I. Schlag, Y. Wu, E. Dyer, B. Neyshabur", "Block-recurrent transformers", "NeurIPS",
              "https://arxiv.org/abs/2203.07852", 2022};
  a.reference = {{"embed.embedding", ""}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    meliad::check("block-recurrent", h);
    const std::string at = h.text("recurrent_at");
    for (std::size_t i = 0; i < at.size(); ++i)
      if (at[i] == '0' || at[i] - '0' > h.integer("depth") || (i && at[i] <= at[i - 1]))
        throw Error("block-recurrent: recurrent_at = " + at + " does not name layers of a stack of " + h.text("depth") +
                        " in their order: give their numbers, one digit each.",
                    {.model = "block-recurrent", .parameter = "recurrent_at", .value = at, .range = "digits from 1 to depth, rising"});
  };

  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const Sizes s(h);
    const meliad::Declare declare{l, s};
    std::vector<LayerWeights> layers;
    std::vector<Var> initial;
    for (std::int64_t i = 0; i < s.depth; ++i) {
      const std::string at = "transformer" + std::to_string(i) + ".";
      const bool recurrent = is_recurrent(h, i);
      LayerWeights w;
      w.tokens = declare.base(at + "tbase", recurrent || s.feedback ? Crosses::state : Crosses::nothing, 0, "residual", "dual");
      if (recurrent) {
        w.state = declare.base(at + "recurrent_tbase", Crosses::state, s.W, h.choice("gate"), h.choice("cell"));
        initial.push_back(
            reshape(l.parameter(at + "recurrent_initial_state", {s.W, s.d}, init::normal(0.1), "S at the start; starts N(0, 0.1²)."),
                    {1, s.W, s.d}));
      }
      w.rel = declare.rel(at);
      layers.push_back(std::move(w));
    }
    std::vector<SegmentGate> gates;
    const bool lstm = h.choice("gate") == "lstm";
    for (const char* part : {"attention", "feed_forward"}) {
      if (h.choice("cell") == (part[0] == 'a' ? "single" : "skip")) continue;
      gates.push_back({std::string(part) + "_keep", 1.0});
      if (lstm) gates.push_back({std::string(part) + "_write", 0.0});
    }
    const Var none = x.graph->constant({1}, {0.0});
    const Var y = segments(l,
                           {{"state", {s.recurrent, s.W, s.d}, "S of each recurrent layer."},
                            {"keys", {s.depth, s.n, s.heads, s.D}, "The keys of the window before, of each layer."},
                            {"values", {s.depth, s.n, s.heads, s.D}, "The values of the window before, of each layer."}},
                           {initial.size() == 1 ? initial[0] : concat(initial, 0), none, none}, x, s.n,
                           filled_up(s.n, [=](Cell& cell, std::span<const Var> memory,
                                              Var tokens) { return WindowStep(s, layers, cell).run(memory, tokens); }),
                           gates);
    return h.flag("final_norm") ? declare.norm("final_layernorm")(y) : y;
  };
  return a;
}

}  // namespace reclab::architectures
