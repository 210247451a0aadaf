// SPDX-License-Identifier: GPL-3.0-or-later
//   m_t = o_t * m_{t-1} + e_t i_t^T in R^{k x d},   y_t = m_t^T s_t,   out = W_o norm(y_t)
// by the code e-o-s-a; or m_t = O_t m_{t-1} + k_t v_t^T with O_t = I - k_t k_t^T, I - k_t kbar_t^T or I - diag(k_t) (M1 to M3).
// Z. Qin et al., Unlocking the secrets of linear complexity sequence model from a unified perspective, 2024. Names and conventions of the
// authors' EosLayer.
#include <cmath>
#include <vector>

#include "array/error.h"
#include "models/parts/composition/codes.h"
#include "models/parts/features.h"
#include "models/parts/parts.h"
#include "recurrence/delta/delta.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/outer/outer.h"
#include "recurrence/selective/selective.h"

namespace reclab::architectures {
namespace {

/// The slopes of ALiBi for n heads: 2^(-8 i/p), i = 1..p, p the largest power of two up to n, then every other one of 2p heads.
double alibi_slope(std::int64_t n, std::int64_t i) {
  std::int64_t p = 1;
  while (2 * p <= n) p *= 2;
  return std::exp2(i < p ? -8.0 * static_cast<double>(i + 1) / static_cast<double>(p)
                         : -8.0 * static_cast<double>(2 * (i - p) + 1) / static_cast<double>(2 * p));
}

/// The layer's parts by its code.
struct Eos {
  Layer& l;
  Var x;
  const LcsmCode code = lcsm_code(l.hyper);
  const std::int64_t T = l.steps(), B = l.batch(), d = l.hyper.integer("width"), k = l.hyper.integer("state");
  const bool bias = l.hyper.flag("bias");

  Var project(const std::string& name, Var from, std::int64_t out, const std::string& role) const {
    return parts::linear(l, name, from, out, role, bias);
  }
  Var activated(Var z) const {
    switch (code.activation) {
      case 1: return relu(z);
      case 2: return sigmoid(z);
      case 3: return 1.0 + elu(z);
      case 4: return silu(z);
      case 5: return elu(z);
      case 6: return square(relu(z));
      case 7: return square(z);
      default: return z;
    }
  }
  Var free_matrix(const std::string& name, const std::string& role) const {
    return l.parameter(name, {k, d}, init::normal(l.hyper.real("init_std")),
                       role + " for each key and value dimension; starts N(0, init_std²).");
  }
  Var zeros(const Shape& shape) const { return x.graph->constant(shape, std::vector<double>(static_cast<std::size_t>(count(shape)), 0.0)); }

  /// log σ(z)/τ.
  Var decay(Var z) const { return log_sigmoid(z) / l.hyper.real("tau"); }
  /// Of a gate that the data open: by τ, or as slopes of ALiBi times a sigmoid.
  Var gate_decay(const std::string& name, std::int64_t n, const std::string& axis) const {
    const Var z = project(name + "_proj", x, n, "W of the gates of the " + axis + " dimensions");
    if (l.hyper.flag("use_tau")) return decay(z);
    const Var slopes = l.parameter(
        "gamma_" + name, {n}, init::each([n](Rng&, std::int64_t i) { return -alibi_slope(n, i); }),
        "γ of the " + axis + " dimensions, whose sign does not count; starts at minus the slopes of ALiBi, where the code holds it.");
    return -(sigmoid(z) * abs(slopes));
  }
  /// Of decays that are learned, or held at the slopes of ALiBi in the code: log of the factors.
  Var own_decay(const Shape& shape, const std::string& axes) const {
    const double tau = l.hyper.real("tau");
    const std::int64_t n = count(shape);
    if (!l.hyper.flag("o_learned")) {
      const Init start = init::each([n](Rng&, std::int64_t i) { return -alibi_slope(n, i); });
      return -abs(l.parameter(
          "o", shape, start,
          "Logarithm of a decay " + axes + ", whose sign does not count; starts at minus the slopes of ALiBi, where the code holds it."));
    }
    const bool plain = code.oscillation == 0 && !l.hyper.flag("use_tau");  // e^{-o}
    const bool alibi = l.hyper.choice("o_start") == "alibi";
    const Init start = !alibi ? init::normal(l.hyper.real("init_std")) : init::each([=](Rng&, std::int64_t i) {
      const double slope = alibi_slope(n, i);
      return plain ? slope : -tau * slope - std::log1p(-std::exp(-tau * slope));
    });
    const Var o = l.parameter(
        "o", shape, start, "A decay " + axes + "; starts " + (alibi ? "so that its logarithm is a slope of ALiBi." : "N(0, init_std²)."));
    return plain ? -o : decay(o);
  }
  Var phase() const {
    return l.parameter("theta", {1, k}, init::each([n = static_cast<double>(d)](Rng&, std::int64_t j) {
                         return std::pow(10000.0, -2.0 * static_cast<double>(j) / n);
                       }),
                       "θ, the angle that each key dimension turns a step; starts at 10000^(−2j/d), where the code holds it.");
  }

  /// The factors of the memory: by key [.., k], by value [.., d], or a matrix [.., k, d]; logarithms, or an angle by key. Sequences begin
  /// with steps and batch.
  struct Oscillation {
    Var by_key{}, by_value{}, matrix{}, angle{};
  };
  Oscillation oscillation() const {
    const auto shown = [&](const std::string& name, Var log, const std::string& text) {
      l.gate(name, exp(log), 0.0, 1.0, text);
      return log;
    };
    const auto of_product = [&](Var z) { return shown("o", decay(z), "o_t: how much of each entry of the memory is kept."); };
    const auto column = [&](Var z) { return reshape(z, {T, B, k, 1}); };
    const auto row = [&](Var z) { return reshape(z, {T, B, 1, d}); };
    const auto vector = [&](std::int64_t n, const std::string& axis) {
      return l.parameter("o", {n}, init::normal(l.hyper.real("init_std")),
                         "What the gates of the " + axis + " dimensions are multiplied with; starts N(0, init_std²).");
    };
    switch (code.oscillation) {
      case 0: return {.matrix = own_decay({k, d}, "for each key and value dimension")};
      case 1: {
        const Var by_value = shown("o1", gate_decay("o1", d, "value"), "How much of each value dimension is kept."),
                  by_key = shown("o2", gate_decay("o2", k, "key"), "How much of each key dimension is kept.");
        return {.by_key = by_key, .by_value = by_value};
      }
      case 2: return {.by_value = shown("o", gate_decay("o", d, "value"), "How much of each value dimension is kept.")};
      case 3: return {.by_key = shown("o", gate_decay("o", k, "key"), "How much of each key dimension is kept.")};
      case 4: return {.by_key = own_decay({k}, "for each key dimension")};
      case 5: return {.by_value = own_decay({d}, "for each value dimension")};
      case 6:
        return {.matrix = of_product(column(project("o_proj", x, k, "W of what the rows of o are multiplied with")) *
                                     free_matrix("o", "A factor"))};
      case 7:
        return {.matrix = of_product(row(project("o_proj", x, d, "W of what the columns of o are multiplied with")) *
                                     free_matrix("o", "A factor"))};
      case 8:
        return {.matrix = of_product(row(project("o_proj", x, d, "W of the gates of the value dimensions")) *
                                     reshape(vector(k, "value"), {k, 1}))};
      case 9: return {.matrix = of_product(column(project("o_proj", x, k, "W of the gates of the key dimensions")) * vector(d, "key"))};
      case 11: return {.angle = phase()};
      default: return {};
    }
  }

  /// The reads of the memory of a code, [T, B, d].
  Var read_by_code() const {
    const Var i = project("i_proj", x, d, "W_i of the input state");
    const Var e = activated(code.expand ? project("e_proj", x, k, "W_e of expand") : free_matrix("e", "Expand"));
    const Oscillation o = oscillation();
    const Var s = activated(code.shrink ? project("s_proj", x, k, "W_s of shrink") : free_matrix("s", "Shrink"));
    const char* text = "The memory, [key, value].";
    if (lcsm_memory(code) == LcsmMemory::outer) {
      const auto one_head = [&](Var z) {
        return !z ? Var{} : z.shape().size() == 1 ? reshape(z, {1, z.dim(0)}) : reshape(z, {T, B, 1, z.dim(-1)});
      };
      const Var read = outer(l, {"m", {1, k, d}, text},
                             {.q = one_head(s),
                              .k = one_head(e),
                              .v = one_head(i),
                              .key_decay = one_head(o.by_key),
                              .value_decay = one_head(o.by_value),
                              .phase = o.angle});
      return reshape(read, {T, B, d});
    }
    const auto promoted = [&](Var z) { return o.angle && !is_complex(z.dtype()) ? complex(z, affine(z, 0.0, 0.0)) : z; };
    Var factor = factors(o);
    if (lcsm_memory(code) == LcsmMemory::channels)
      return diagonal_bank(l, {"m", {d, k}, "The memory, [value, key]."}, transpose(factor), promoted(transpose(e)), promoted(transpose(s)),
                           i);
    const Var written = (code.expand ? reshape(e, {T, B, k, 1}) : e) * reshape(i, {T, B, 1, d});
    const Var m = diagonal(l, {"m", {k, d}, text}, factor, promoted(written));
    return sum((o.angle ? real(m) : m) * (code.shrink ? reshape(s, {T, B, k, 1}) : s), -2);
  }
  /// All of them, [k, d] or [T, B, k, d].
  Var factors(const Oscillation& o) const {
    if (o.matrix) return exp(o.matrix);
    if (o.angle) {
      const Var angle = reshape(o.angle, {k, 1}) + zeros({k, d});
      return complex(cos(angle), sin(angle));
    }
    if (!o.by_key && !o.by_value) return zeros({k, d}) + 1.0;
    Var log;
    if (o.by_key) log = o.by_key.shape().size() == 1 ? reshape(o.by_key, {k, 1}) : reshape(o.by_key, {T, B, k, 1});
    if (o.by_value) {
      const Var row = o.by_value.shape().size() == 1 ? o.by_value : reshape(o.by_value, {T, B, 1, d});
      log = log ? log + row : row;
    }
    return exp(log + zeros({k, d}));
  }

  /// Mamba's parameterisation: no part of the code.
  Var read_by_system() const {
    const Var i = project("i_proj", x, d, "W_i of the input state");
    const std::int64_t rank = l.hyper.integer("rank");
    const Var delta = l.gate("delta", softplus(project("inter_proj.1", project("inter_proj.0", x, rank, "W₁ of Δ"), d, "W₂ of Δ")), 0.0,
                             0.0, "Δ_t: how strongly each value dimension is written and how far it decays; unbounded above.");
    const Var o = l.parameter("o", {k, d}, init::each([n = d](Rng&, std::int64_t at) { return std::log(static_cast<double>(at / n + 1)); }),
                              "log of −A; row j starts at log j, counted from 1.");
    const Var e = project("e_proj", x, k, "W_e of expand"), s = project("s_proj", x, k, "W_s of shrink");
    return selective(l, {"m", {d, k}, "The memory, [value, key]."}, delta, transpose(-exp_in_range(o)), i, e, s);
  }

  /// M1 to M3: a write erases first.
  Var read_by_matrix(const std::string& which) const {
    const auto by_head = [&](Var z) { return reshape(z, {T, B, 1, z.dim(-1)}); };
    const bool unit = l.hyper.choice("key_norm") == "unit";
    const auto key = [&](const std::string& name, const std::string& role) {
      const Var z = activated(project(name, x, k, role));
      return by_head(unit ? z / sqrt(parts::squared_norm(z) + 1e-12) : z);
    };
    const Var v = by_head(project("i_proj", x, d, "W_i of the values")), keys = key("e_proj", "W_e of the keys");
    const Var q = by_head(activated(project("s_proj", x, k, "W_s of the queries")));
    const StateSpec memory{"m", {1, k, d}, "The memory, [key, value]."};
    if (which == "m3") {
      const bool share = code.activation == 2;
      l.gate(
          "kept", reshape(1.0 - keys, {T, B, k}), 0.0, share ? 1.0 : 0.0,
          share ? "1 − k_t: how much of each key dimension is kept." : "1 − k_t: what each key dimension is multiplied with; unbounded.");
      return reshape(delta_by_entry(l, memory, q, keys, v), {T, B, d});
    }
    const Var recall = which == "m2" ? key("recall_proj", "W of k̄, what is recalled and taken away") : Var{};
    l.gate("erased", reshape(sum(keys * (recall ? recall : keys), -1), {T, B, 1}), 0.0, 0.0,
           "k̄·k: which share of what is recalled is taken away; 1 − it is the one eigenvalue that is not 1.");
    return reshape(delta(l, memory, {.q = q, .k = keys, .v = v, .recall = recall}), {T, B, d});
  }

  Var operator()() const {
    const std::string& which = l.hyper.choice("transition");
    Var y = which != "entries" ? read_by_matrix(which) : l.hyper.choice("parameterisation") == "ssm" ? read_by_system() : read_by_code();
    if (l.hyper.flag("norm")) y = parts::layer_norm(l, "norm", y);
    return project("output_proj", y, d, "W_o of the output");
  }
};

}  // namespace

Architecture lcsm() {
  Architecture a;
  a.title = "Linear-complexity sequence model";
  a.equations = {
      "m_t = o_t ⊙ m_{t-1} + e_t i_tᵀ ∈ R^{k×d},  y_t = m_tᵀ s_t,  i_t = W_i x_t,  out = W_o norm(y_t)",
      "expand=dependent: e_t = f(W_e x_t);  independent: e ⊙ (1 i_tᵀ) with e = f(E) ∈ R^{k×d}",
      "shrink=dependent: s_t = f(W_s x_t);  independent: y_t = (s ⊙ m_t)ᵀ 1 with s = f(S) ∈ R^{k×d}",
      "independent oscillations, σ(·)^{1/τ} of: matrix A (0);  key-decays a 1ᵀ (4);  value-decays 1 bᵀ (5);  ones: o = 1 (10);  rotation: "
      "o = e^{iθ} 1ᵀ, y_t = Re m_tᵀ s_t (11)",
      "gates: o_t = σ(W₂ x_t)^{1/τ} (σ(W₁ x_t)^{1/τ})ᵀ (1);  value-gates: 1 (σ(W x_t)^{1/τ})ᵀ (2);  key-gates: σ(W x_t)^{1/τ} 1ᵀ (3)",
      "o_t = σ(z_t)^{1/τ}, key-gated-matrix: z_t = (W x_t) 1ᵀ ⊙ A (6);  value-gated-matrix: 1 (W x_t)ᵀ ⊙ A (7);  keys-by-value-gates: a (W "
      "x_t)ᵀ (8);  key-gates-by-values: (W x_t) bᵀ (9)",
      "use_tau=no: o = e^{−A} (0), and a gate is e^{−γ σ(·)} with slopes γ (1 to 3);  o_learned=no: o = e^{−γ}, γ = |o| (0, 4, 5)",
      "parameterisation=ssm: Δ_t = softplus(W₂ W₁ x_t),  o_t = exp(−(1 Δ_tᵀ) ⊙ e^A),  i_t = Δ_t ⊙ W_i x_t,  f = identity",
      "transition=m1: m_t = (I − k_t k_tᵀ) m_{t-1} + k_t v_tᵀ;  m2: I − k_t k̄_tᵀ;  m3: I − diag(k_t);  k_t = e_t, q_t = s_t, v_t = i_t, "
      "k̄_t = f(W_k̄ x_t)",
      "block: u ← u + eos(norm₁(u)),  u ← u + norm₂(u), a final norm after the last"};
  a.notes = {
      "The code of a model is e-o-s-a, the numbers of its choices of expand, oscillation, shrink and activation: 384 models. Choices count "
      "from 0 in the order in which they are listed.",
      "Names and shapes are those of the authors' EosLayer (i_proj, e_proj or e, s_proj or s, o_proj, o1_proj, o2_proj or o, norm, "
      "output_proj, inter_proj), norm1 and norm2 of the block in their Zoology and final/ln_f of its backbone, whose state mixer is the "
      "identity.",
      "Where expand or shrink does not depend on the data the paper has a vector of k entries and the code a k × d matrix, whose columns "
      "need not be the same: here it is the matrix.",
      "Of 6 and 7 the paper's table colours the matrix as what depends on the data. A matrix from a projection would take d²k weights, "
      "more than all models of its table 4 have, and in the code the vector comes from the data and the matrix is learned: so here.",
      "Of 6 to 9 the product goes through the sigmoid as a whole, as in the code, so that of 8 and 9 it is no outer product of gates.",
      "Independent decays start as the paper says, at e^{−γ} with the slopes γ of ALiBi; the code draws what is learned from N(0, 0.1²), "
      "which is o_start=normal. With o_learned=no the code holds the slopes, of which 5 is trained all the same and 0 has a sign too many, "
      "so that its memory grows; here all of them decay, and gradients of what the code holds are given.",
      "The code turns queries and keys by their positions and has 11 for dependent expand and shrink alone; here the memory turns, which "
      "reads the same. It holds the angles at 10000^(−2j/d); LRPE learns them.",
      "parameterisation=ssm is the code 0, without more numbers: that of S4 and Mamba, as the authors' code has it, all parts from the "
      "data. The choices of the code are not used then. The transition o_type=12 of the code, a cumulative softmax, has no number in the "
      "paper and is not offered.",
      "In the authors' files 10 and 11 have an entry o of ones, which is not read; so a file does not tell 10 from 0, nor o_learned from "
      "its opposite, nor τ and the activation: these have to be said.",
      "M1 to M3 are table 7, without code. The paper leaves open how long keys are: with key_norm=unit, which is ours, k_t and k̄_t have "
      "length 1, so that M1 takes away the whole of what k_t recalls; with none |k_t|² above 2 lets M1 grow. Keys of M3 decay where they "
      "are between 0 and 1, as after a sigmoid. The oscillation of the code is not used.",
      "norm=no, which is ours, leaves out the layer norm before W_o, so that the read itself is seen. The memory is updated before it is "
      "read."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream, and of the memory's rows.", "channels"),
             hyper_integer("state", "k", 16, 1, 4096, "Expand dimension: rows of the memory.", "keys"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers in a row.")};
  const auto standard = settings(LcsmCode{1, 1, 1, 0});
  for (std::size_t row = 0; row < lcsm_rows().size(); ++row) {
    std::vector<std::string> names;
    for (const LcsmChoice& choice : lcsm_rows()[row].choices) names.emplace_back(choice.name);
    a.hyper.push_back(hyper_choice(std::string(lcsm_rows()[row].key), standard[row].second, names, std::string(lcsm_rows()[row].text)));
    a.hyper.back().symbol = std::string(1, lcsm_rows()[row].key[0]);
  }
  const std::vector<HyperSpec> others = {
      hyper_real("tau", "τ", 16.0, 1e-3, 1e4, "Decays and gates are sigmoids to the power 1/τ: larger forgets more slowly.", true),
      hyper_flag("use_tau", true,
                 "Whether decays and gates are sigmoids to the power 1/τ; otherwise those of oscillations 0 to 3 are exponentials."),
      hyper_flag(
          "o_learned", true,
          "Whether decays that do not depend on the data are sigmoids to the power 1/τ, or exponentials of slopes that the code holds."),
      initialisation_only(hyper_choice("o_start", "alibi", {"alibi", "normal"}, "How decays that do not depend on the data start.")),
      initialisation_only(
          hyper_real("init_std", "", 0.1, 1e-6, 10.0,
                     "Deviation that matrices and vectors which are no projections start with: E, S, and A, a and b of oscillations "
                     "6 to 9. Larger lets the input move those gates further.",
                     true)),
      hyper_choice("parameterisation", "linear", {"linear", "ssm"},
                   "Whether the parts come from projections by the code, or as in a selective state-space model."),
      hyper_integer("rank", "r", 16, 1, 4096, "Rank of Δ's projection, with parameterisation=ssm."),
      hyper_choice("transition", "entries", {"entries", "m1", "m2", "m3"},
                   "Whether the memory is multiplied entry by entry, by the code, or with the matrix of M1, M2 or M3."),
      hyper_choice("key_norm", "none", {"none", "unit"}, "Whether keys of M1 to M3 are brought to length 1."),
      hyper_flag("norm", true, "Whether a layer norm comes before the output's projection."),
      hyper_flag("bias", false, "Whether the projections have biases."),
      hyper_choice("block", "residual", {"residual", "none"},
                   "The block with norms and residuals and the final norm, or the layer alone.")};
  a.hyper.insert(a.hyper.end(), others.begin(), others.end());
  a.spectrum = "the entries of o_t, which the memory is multiplied with; with transition=m1 to m3 the eigenvalues of its matrix";
  a.source = {"Z. Qin, X. Shen, D. Li, W. Sun, S. Birchfield, R. Hartley, Y. Zhong",
              "Unlocking the secrets of linear complexity sequence model from a unified perspective", "",
              "https://arxiv.org/abs/2405.17383", 2024};
  a.reference = {{"layers.{n}.sequence_mixer.mixer.*", "*"}, {"layers.{n}.*", "*"},      {"layers.{n}.norm1.*", "norm1.*"},
                 {"layers.{n}.norm2.*", "norm2.*"},          {"ln_f.*", "final/ln_f.*"}, {"o", ""}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.choice("transition") == "entries") return;
    const auto refuse = [&](const std::string& key, const std::string& wanted) {
      throw Error(
          "lcsm: transition = " + h.text("transition") + " does not go with " + key + " = " + h.text(key) + ": choose " + wanted + ".",
          {.model = "lcsm", .parameter = key, .value = h.text(key), .range = wanted});
    };
    for (const char* key : {"expand", "shrink"})
      if (h.choice(key) == "independent") refuse(key, "dependent");
    if (h.choice("parameterisation") == "ssm") refuse("parameterisation", "linear");
  };

  a.layer = [](Layer& l, Var u) {
    const bool block = l.hyper.choice("block") == "residual";
    const Var out = Eos{l, block ? parts::layer_norm(l, "norm1", u) : u}();
    if (!block) return out;
    const Var after = u + out;
    return after + parts::layer_norm(l, "norm2", after);
  };
  a.final_layer = [](Layer& l, Var x) { return l.hyper.choice("block") == "none" ? x : parts::layer_norm(l, "ln_f", x); };
  return a;
}

}  // namespace reclab::architectures
