// SPDX-License-Identifier: GPL-3.0-or-later
//   C_t = (1 - γ_t β_t^T) ∘ C_{t-1} + (γ_t ∘ φ(k_t)) (β_t ∘ v_t)^T,   s_t = (1 - γ_t) ∘ s_{t-1} + γ_t ∘ φ(k_t),   a_t = C_t^T φ(q_t) /
//   (s_t·φ(q_t) + ε) block: x ← gru(x, relu(W a(LN x))), x ← gru(x, relu(ffc(LN x)))
// S. Pramanik, E. Elelimy, M. C. Machado, A. White, AGaLiTe: approximate gated linear transformers for online reinforcement learning, TMLR
// 2024 (GaLiTe; ReLiT in its first version). Names and conventions of galite.py in subho406/agalite.
#include <functional>
#include <numbers>

#include "array/error.h"
#include "models/decaying_attention/gtrxl.h"
#include "models/parts/features.h"
#include "models/parts/parts.h"
#include "recurrence/delta/delta.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {

using gtrxl::dense, gtrxl::gated, gtrxl::norm;

namespace {

std::int64_t features_of(const Hyper& h) { return (h.choice("feature_map") == "dpfp" ? 2 : 1) * h.integer("nu") * h.integer("head_dim"); }

/// A matrix for each head, orthogonal times √2.
void orthogonal_by_head(InitContext& c) {
  const Shape one{c.shape[1], c.shape[2]};
  const auto size = static_cast<std::size_t>(one[0] * one[1]);
  for (std::size_t at = 0; at < c.values.size(); at += size) {
    InitContext head{c.rng, one, c.values.subspan(at, size), c.other};
    init::orthogonal(std::numbers::sqrt2)(head);
  }
}

/// A Dense of each head's own: of the input of all heads, [steps, batch, width], or of each head's own, [steps, batch, heads, in].
Var dense_by_head(Layer& l, const std::string& name, Var x, std::int64_t out, const std::string& role) {
  const std::int64_t H = l.hyper.integer("heads"), in = x.dim(-1), T = l.steps(), B = l.batch();
  const Var W = l.parameter(name + ".kernel", {H, in, out}, orthogonal_by_head, role + " [heads, in, out]; starts orthogonal times √2.");
  const Var b = l.parameter(name + ".bias", {H, out}, init::constant(0.0), "The bias of " + name + "; starts at 0.");
  const int in_first[] = {1, 0, 2};
  const Var y =
      x.shape().size() == 3 ? matmul(x, reshape(permute(W, in_first), {in, H * out})) : parts::by_block(l, parts::flat(l, x), W, false);
  return reshape(y, {T, B, H, out}) + b;
}

/// f(W₁ x) ⊗ f(W₂ x): entry iν + j is the product of entry i of the first and entry j of the second.
Var product_by_head(Layer& l, const std::string& name, Var x, std::int64_t nu, const std::function<Var(Var)>& f, const std::string& role) {
  const std::int64_t H = l.hyper.integer("heads"), D = l.hyper.integer("head_dim"), T = l.steps(), B = l.batch();
  const Var first = f(dense_by_head(l, name + ".Dense_0", x, D, role + ", its first factor")),
            second = f(dense_by_head(l, name + ".Dense_1", x, nu, role + ", its second factor"));
  return reshape(reshape(first, {T, B, H, D, 1}) * reshape(second, {T, B, H, 1, nu}), {T, B, H, D * nu});
}

/// The Dense layers of a module are numbered in the order in which they are called.
struct Numbered {
  std::string scope;
  int denses = 0, products = 0;
  std::string dense() { return scope + "Dense_" + std::to_string(denses++); }
  std::string product() { return scope + "ParameteredProjection_" + std::to_string(products++); }
};

Var features(Layer& l, Numbered& names, Var x, const std::string& role) {
  const Hyper& h = l.hyper;
  const std::int64_t D = h.integer("head_dim"), nu = h.integer("nu");
  const std::string& map = h.choice("feature_map");
  const auto f = [&](Var y) { return map == "relu" || map == "pp_relu" ? relu(y) : elu(y) + 1.0; };
  if (map.starts_with("pp_")) return product_by_head(l, names.product(), x, nu, f, role);
  const Var y = dense_by_head(l, names.dense(), x, map == "dpfp" ? D : D * nu, role);
  return map == "dpfp" ? parts::dpfp(y, nu) : f(y);
}

/// The replaced and the kept share of an entry: write = 1 - keep, computed without the difference.
struct Share {
  Var write, keep;
  static Share of(Var logit) { return {sigmoid(logit), sigmoid(-logit)}; }
  friend Share operator*(const Share& x, const Share& y) { return {x.write * y.write, x.keep + x.write * y.keep}; }
};

Var attention(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  const std::int64_t T = l.steps(), B = l.batch(), H = h.integer("heads"), D = h.integer("head_dim"), F = features_of(h);
  const std::string& rule = h.choice("update");
  const std::string scope = "RLTAttentionLayer_0.";
  Numbered csop{scope + "csop."}, own{scope};
  const Var k = features(l, csop, x, "W of φ(k)"), v = dense_by_head(l, csop.dense(), x, D, "W_v");
  const Var before = dense_by_head(l, own.dense(), x, D, "W of the query, before φ");
  Var q = features(l, own, before, "W of φ(q)");
  const StateSpec matrix{"c", {H, F, D}, "The memory of each head, [key, value]; the reference's is its transpose."},
      vector{"s", {H, F}, "The memory of keys alone, which the read is divided by."};
  const auto zeros = [&](const Shape& shape) {
    return l.graph().constant(shape, std::vector<double>(static_cast<std::size_t>(count(shape)), 0.0));
  };
  Var read, sums;
  if (rule == "delta") {
    const auto length = [](Var y) {
      const Var squares = reshape(sum(square(y), -1), {y.dim(0), y.dim(1), y.dim(2), 1});
      return sqrt(maximum(squares, affine(squares, 0.0, 1e-36)));
    };
    const Var unit = k / length(k), beta = sigmoid(dense_by_head(l, csop.dense(), x, 1, "W_β")),
              logit = dense_by_head(l, csop.dense(), x, 1, "W_γ");
    l.gate("beta", beta, 0.0, 1.0, "β: the share of what a key recalls that is replaced.");
    const Share gamma = Share::of(logit);
    l.gate("gamma", gamma.write, 0.0, 1.0, "γ: how much is forgotten, and the share of the writing.");
    q = q / (length(q) + 1e-6);
    // The recall is of the memory before it fades. Memory that faded to e^-60 is not read.
    const Var log_keep = maximum(log_sigmoid(-logit), affine(logit, 0.0, -60.0)), share = beta * gamma.write;
    read = delta(l, matrix, {.q = q, .k = unit, .v = v, .beta = share, .recall = unit * exp(-log_keep), .log_decay = log_keep});
    StateSpec beside = vector;
    beside.auxiliary = true;
    sums = diagonal(l, beside, gamma.keep + zeros({F}), unit * share);
  } else {
    Share of_value, of_key, kept_c, kept_s;
    const auto by_entry = [&](const Share& value, const Share& key) {
      const auto beside = [](Var y, bool row) {
        Shape shape = y.shape();
        shape.insert(shape.end() - (row ? 1 : 0), 1);
        return reshape(y, shape);
      };
      const auto rows = [&](Var y) { return beside(y, false); };
      const auto columns = [&](Var y) { return beside(y, true); };
      return Share{columns(value.write), columns(value.keep)} * Share{rows(key.write), rows(key.keep)};
    };
    if (rule == "gated_peng") {
      of_value = of_key = Share::of(dense_by_head(l, csop.dense(), x, 1, "W_β"));
      kept_c = {{}, reshape(of_key.keep, {T, B, H, 1, 1}) + zeros({F, D})};
      kept_s = {{}, of_key.keep + zeros({F})};
      l.gate("beta", of_key.write, 0.0, 1.0, "β: how much of the memory is replaced.");
    } else if (rule == "mega") {
      const auto learned = [&](const std::string& name, std::int64_t n, const std::string& text) {
        return Share::of(l.parameter(csop.scope + name, {H, n}, init::normal(0.2), text + "; starts N(0, 0.2²)."));
      };
      of_value = learned("beta", D, "β before its sigmoid");
      const Share damp_value = learned("beta_damp", D, "β' before its sigmoid: β ⊗ γ times β' ⊗ γ' is what is forgotten");
      of_key = learned("gamma", F, "γ before its sigmoid");
      const Share damp_key = learned("gamma_damp", F, "γ' before its sigmoid");
      kept_c = by_entry(of_value * damp_value, of_key * damp_key);
      kept_s = of_key * damp_key;
      l.gate("beta", of_value.write + zeros({T, B, 1, 1}), 0.0, 1.0, "β: the share of each entry of a value that is written.");
      l.gate("gamma", of_key.write + zeros({T, B, 1, 1}), 0.0, 1.0, "γ: the share of each entry of a key that is written.");
    } else {
      of_value = Share::of(dense_by_head(l, csop.dense(), x, D, "W_β"));
      if (rule == "projected_sigmoid") {  // a product of sigmoids, as keys are of features
        const std::int64_t nu = F / D;
        const std::string name = csop.product();
        const Share first = Share::of(dense_by_head(l, name + ".Dense_0", x, D, "W_γ, its first factor")),
                    second = Share::of(dense_by_head(l, name + ".Dense_1", x, nu, "W_γ, its second factor"));
        const Share both = Share{reshape(first.write, {T, B, H, D, 1}), reshape(first.keep, {T, B, H, D, 1})} *
                           Share{reshape(second.write, {T, B, H, 1, nu}), reshape(second.keep, {T, B, H, 1, nu})};
        of_key = {reshape(both.write, {T, B, H, F}), reshape(both.keep, {T, B, H, F})};
      } else {
        of_key = Share::of(dense_by_head(l, csop.dense(), x, F, "W_γ"));
      }
      kept_c = by_entry(of_value, of_key);
      kept_s = of_key;
      l.gate("beta", of_value.write, 0.0, 1.0, "β: how much of each value entry of the memory is replaced, where γ is 1.");
      l.gate("gamma", of_key.write, 0.0, 1.0, "γ: how much of each key entry of the memory is replaced, where β is 1.");
    }
    const Var key = of_key.write * k, value = rule == "gated_peng" ? v : of_value.write * v;
    Var keep_c = kept_c.keep, keep_s = kept_s.keep;
    if (h.integer("reset_column")) {
      const Var goes_on = reshape(1.0 - l.document_starts(h.integer("reset_column")), {T, B, 1, 1});
      keep_c = keep_c * reshape(goes_on, {T, B, 1, 1, 1});
      keep_s = keep_s * goes_on;
    }
    const Var written = reshape(key, {T, B, H, F, 1}) * reshape(value, {T, B, H, 1, D});
    const Var C = diagonal(l, matrix, keep_c, written);
    sums = diagonal(l, vector, keep_s, key);
    read = sum(C * reshape(q, {T, B, H, F, 1}), -2);
  }
  const Var size = reshape(sum(sums * q, -1), {T, B, H, 1});
  return dense(l, own.dense(), parts::flat(l, read / (size + h.real("eps"))), h.integer("width"), "W of the heads' reads");
}

}  // namespace

Architecture relit() {
  Architecture a;
  a.title = "ReLiT";
  a.equations = {
      "by head: v = W_v x, φ(k) and φ(q): the feature map of maps of x; β_t = σ(W_β x), γ_t = σ(W_γ x)  (update=projected_sigmoid: γ_t = "
      "σ(W₁ x) ⊗ σ(W₂ x))",
      "C_t = (1 − γ_t β_tᵀ) ⊙ C_{t-1} + (γ_t ⊙ φ(k_t)) (β_t ⊙ v_t)ᵀ,  s_t = (1 − γ_t) ⊙ s_{t-1} + γ_t ⊙ φ(k_t)",
      "gated_peng: one β_t for all entries;  mega: β, γ learned, and what is kept is 1 − (γ ⊙ γ')(β ⊙ β')ᵀ",
      "delta: C_t = (1 − γ_t) C_{t-1} + γ_t β_t k̂_t (v_t − C_{t-1}ᵀ k̂_t)ᵀ,  s_t = (1 − γ_t) s_{t-1} + γ_t β_t k̂_t,  k̂ = φ(k)/|φ(k)|,  q̂ = "
      "φ(q)/(|φ(q)| + 10⁻⁶)",
      "a_t = C_tᵀ φ(q_t)/(s_t·φ(q_t) + ε)",
      "x ← gru(x, relu(W_o a(LN x))),  x ← gru(x, relu(W₂ relu(W₁ LN x)))  (flow=trxl1: sums in place of gru;  vanilla: x ← LN(x + W_o "
      "a(x)),  x ← LN(x + W₂ relu(W₁ x)))",
      "gru(x, y): r = σ(W_r y + U_r x), z = σ(W_z y + U_z x − b), x + z ⊙ (tanh(W_g y + U_g (r ⊙ x)) − x)"};
  a.notes = {
      "Names and shapes are those of subho406/agalite, src/models/agalite/galite.py, below its layer<n>, n from 0: kernels are [in, out], "
      "those of a head [heads, in, out]; with a dot here where flax has a slash.",
      "flax numbers the Dense and ParameteredProjection layers of a module as they are called, so the numbers depend on the feature map "
      "and the update.",
      "The feature map has maps of its own: nu times as wide as a head, for dpfp a head wide and then 2 nu times, for pp_relu and "
      "pp_eluplus1 the outer product of one of a head's width and one of nu, the first running slower. The query goes through a Dense "
      "before.",
      "The memory is read after its update. c is [key, value] here, [value, key] in the reference.",
      "The first layer maps its input to the width itself (emb_layer), so there is no encoder. GaLiTe leaves the code's rotary and layer "
      "embeddings switched off, and so are they here.",
      "reset_column: where a document begins, both memories are multiplied with 0 before they are written, as at the reference's "
      "terminations, which its delta rule ignores. That rule leaves a key of length 0 as it is, where the reference divides by 0.",
      "All norms are layer norms with epsilon 1e-6."};
  a.hyper = {
      hyper_integer("width", "d", 32, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_integer("heads", "h", 4, 1, 64, "Heads."),
      hyper_integer("head_dim", "D", 8, 1, 1024, "Width of a head's values.", "channels"),
      hyper_choice("update", "projected_sigmoid", {"projected_sigmoid", "keyvalue_gated", "gated_peng", "mega", "delta"},
                   "How the memory is gated and written."),
      hyper_choice("feature_map", "pp_relu", {"pp_relu", "pp_eluplus1", "relu", "eluplus1", "dpfp"}, "φ: with pp_ a product of two maps."),
      hyper_integer("nu", "ν", 4, 1, 64, "How many times wider than a head keys and queries are; for dpfp its rolls."),
      hyper_integer("feed_forward", "d_ffc", 32, 1, 65536, "Hidden width of the feed-forward part.", "units"),
      hyper_choice("flow", "gtrxl", {"gtrxl", "trxl1", "vanilla"},
                   "The block: with gates, with sums, or with sums and the norms behind them."),
      hyper_real("eps", "ε", 1e-10, 1e-12, 1.0, "What is added to the divisor.", true),
      initialisation_only(hyper_real("gru_bias", "b", 2.0, -20.0, 20.0,
                                     "Where the biases of the two gates start; higher: nearer to passing the input on.")),
      hyper_integer("reset_column", "", 0, 0, 100000, "The input column that is above 0 where a document begins; 0: none.")};
  a.spectrum =
      "1 − γ_t β_tᵀ of the memory of each head, then 1 − γ_t of s; with update=delta the eigenvalues of (1 − γ_t) I − γ_t β_t k̂ k̂ᵀ, once "
      "for each value dimension of a head, with s held";
  a.reference = {{"layer{n}.*", "*"}};
  a.source = {"S. Pramanik, E. Elelimy, M. C. Machado, A. White",
              "AGaLiTe: approximate gated linear transformers for online reinforcement learning", "TMLR",
              "https://arxiv.org/abs/2310.15719", 2023};
  a.document_column = "reset_column";
  a.check = [](const Hyper& h) {
    if (h.choice("update") != "delta" || !h.integer("reset_column")) return;
    throw Error(
        "relit: update = delta keeps its memory where documents begin, as the reference does: choose reset_column = 0, or another update.",
        {.model = "relit", .parameter = "reset_column", .value = h.text("reset_column"), .range = "0 with update = delta"});
  };

  a.layer = [](Layer& l, Var x) {
    const std::int64_t d = l.hyper.integer("width");
    const std::string& flow = l.hyper.choice("flow");
    if (l.index() == 0) x = dense(l, "emb_layer", x, d, "The map of the input to the width");
    const auto feed = [&](Var y) {
      return dense(l, "Dense_1", relu(dense(l, "Dense_0", y, l.hyper.integer("feed_forward"), "W₁ of the feed-forward part")), d,
                   "W₂ of the feed-forward part");
    };
    if (flow == "vanilla") {
      x = norm(l, "LayerNorm_0", x + attention(l, x));
      return norm(l, "LayerNorm_1", x + feed(x));
    }
    const Var read = relu(attention(l, norm(l, "LayerNorm_0", x)));
    x = flow == "gtrxl" ? gated(l, "GRUGatingUnit_0", "update_0", x, read) : x + read;
    const Var f = relu(feed(norm(l, "LayerNorm_1", x)));
    return flow == "gtrxl" ? gated(l, "GRUGatingUnit_1", "update_1", x, f) : x + f;
  };
  return a;
}

}  // namespace reclab::architectures
