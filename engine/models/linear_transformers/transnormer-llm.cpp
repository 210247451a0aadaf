// SPDX-License-Identifier: GPL-3.0-or-later
//   S_t = e^{-s_h} S_{t-1} + k_t v_t^T,   o_t = W_o (u_t norm(S_t^T q_t)),   q, k = silu(W x), turned by their position in the first layers
//   s_h: ALiBi's slopes times 1 - l/(L - 1) + 1e-5 in layer l;   block: x + o(norm x), x + l3(l1 v l2 v), v = norm x
// Z. Qin et al., TransNormerLLM, 2023 (Lightning attention; TNL, ICML 2024). Names and conventions of the authors' modeling_transnormer.py
// and, with mixer=tnl, of lightning-attention's TnlAttention.
#include <cmath>

#include "array/error.h"
#include "models/parts/fairseq.h"
#include "models/parts/features.h"
#include "models/parts/parts.h"
#include "recurrence/outer/outer.h"

namespace reclab::architectures {
namespace {

/// ALiBi's slopes; where the heads are no power of two those of the next lower one, then every other of the next higher.
std::vector<double> slopes(std::int64_t heads) {
  std::int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  const auto of_power = [](std::int64_t n) {
    const double start = std::pow(2.0, -std::pow(2.0, 3.0 - std::log2(static_cast<double>(n))));
    std::vector<double> made;
    for (std::int64_t i = 0; i < n; ++i) made.push_back(std::pow(start, static_cast<double>(i + 1)));
    return made;
  };
  std::vector<double> made = of_power(power);
  const std::vector<double> more = of_power(2 * power);
  for (std::int64_t i = 0; i < heads - power; ++i) made.push_back(more[static_cast<std::size_t>(2 * i)]);
  return made;
}

std::int64_t inner_width(const Hyper& h) {
  return h.integer("inner") && h.choice("mixer") == "llm" ? h.integer("inner") : h.integer("width");
}

}  // namespace

Architecture transnormer_llm() {
  Architecture a;
  a.title = "TransNormerLLM";
  a.equations = {
      "[q; k; v; u] = qkvu_proj x,  q, k ← act(q), act(k) by head;  in the first lrpe_layers layers q, k ← [x cos(θt); x sin(θt)], t = 0, "
      "1, …",
      "S_t = e^(−s) S_{t-1} + k_t v_tᵀ,  y_t = out_proj(u ⊙ norm(S_tᵀ q_t)), the norm over all heads",
      "s of head j of h: 2^(−8(j+1)/h) (h a power of two) times 1 − l/(L − 1) + 10⁻⁵ in layer l of L;  1 + 10⁻⁵ of one layer",
      "norm: srms x/√(mean x² + ε), rms with a scale, or layer",
      "mixer=tnl: q, k, v ← silu of q_proj, k_proj, v_proj,  y_t = o_proj(σ(output_gate.1 output_gate.0 x) ⊙ norm(S_tᵀ q_t))",
      "block: x ← x + y(norm(x)),  x ← x + l3(l1 v ⊙ l2 v), v = norm(x)"};
  a.notes = {
      "Names and shapes are those of modeling_transnormer.py: token_mixer.{qkvu_proj,out_proj,norm,lrpe.theta}, token_norm, channel_norm, "
      "channel_mixer.{l1,l2,l3}, final/final_norm; rows of qkvu_proj are q, k, v, u, each by head. A norm of type srms has no parameters.",
      "With mixer=tnl the names are those of lightning-attention's TnlAttention, "
      "token_mixer.{q_proj,k_proj,v_proj,o_proj,norm,output_gate.0,output_gate.1}, whose norm is a layer norm and whose gate has the rank "
      "of a head; v_activation is on there. The paper has no activation of v.",
      "θ is lrpe.theta [heads, 1, head size] and starts at 10000^(−2j/d) over all heads; the code has it in the first layer alone, and of "
      "the width, so that an inner width of its own goes with lrpe_layers = 0 there. The memory is then twice as high.",
      "The code computes 1 − l/(L − 1) also for a single layer, where it is 0/0: here that layer has the slopes of the first of many.",
      "There is no scale. The parallel form of the code, with exp(−s (t − j)) over all pairs of steps, and its recurrent one agree here "
      "before the norm too.",
      "The memory is updated before it is read. The last layer keeps almost everything: its slopes are 10⁻⁵ of the first layer's.",
      "The gated linear unit has no activation."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the width."),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_choice("mixer", "llm", {"llm", "tnl"}, "Projections and gate of the language model, or of TnlAttention."),
      hyper_integer("inner", "", 0, 0, 16384, "Width of q, k, v and u of the language model (hidden_dim); 0: the width.", "channels"),
      hyper_integer("glu_width", "", 0, 0, 65536, "Hidden width of the gated linear unit (glu_dim); 0: the width.", "units"),
      hyper_choice("activation", "silu", {"silu", "elu+1", "relu", "identity"}, "act of queries and keys."),
      hyper_flag("v_activation", false, "Whether values pass act too."),
      hyper_integer("lrpe_layers", "", 1, 0, 64, "In how many layers, from the first on, queries and keys turn with the position.",
                    "layers"),
      hyper_flag("decay", true, "Whether the memory decays by the slopes."),
      hyper_choice("norm", "srms", {"srms", "rms", "layer"}, "All norms."),
      hyper_real("norm_eps", "ε", 1e-6, 1e-12, 1.0, "Epsilon of srms and rms; the layer norm has 1e-5.", true),
      hyper_flag("bias", false, "Whether projections have biases."),
      initialisation_only(hyper_real("init_std", "", 0.02, 1e-6, 10.0, "Deviation that the matrices start with.", true)),
      hyper_choice("block", "residual", {"residual", "none"},
                   "The block with norms, residuals and gated linear unit, or the token mixer alone."),
      hyper_flag("final_norm", true, "Whether a norm follows the last block.")};
  a.spectrum = "the decay e^(−s) of each head, the same at every step (in the frame that turns with the position, e^(−s + iθ))";
  a.source = {"Z. Qin, D. Li, W. Sun, W. Sun, X. Shen, X. Han, Y. Wei, B. Lv, X. Luo, Y. Qiao, Y. Zhong",
              "TransNormerLLM: a faster and better large language model with improved TransNormer", "", "https://arxiv.org/abs/2307.14995",
              2023};
  a.reference = {{"layers.{n}.*", "*"}, {"final_norm.*", "final/final_norm.*"}};
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj", "output_gate"})
    a.reference.push_back({std::string(name) + ".*", "token_mixer." + std::string(name) + ".*"});  // TnlAttention alone
  a.reference.push_back({"norm.*", "token_mixer.norm.*"});
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    parts::heads_divide_width(h, "transnormer-llm");
    if (inner_width(h) % h.integer("heads"))
      throw Error("transnormer-llm: heads = " + h.text("heads") + " does not divide inner = " + h.text("inner") + ": choose a divisor.",
                  {.model = "transnormer-llm", .parameter = "inner", .value = h.text("inner"), .range = "a multiple of heads"});
  };

  const auto norm = [](Layer& l, const std::string& name, const std::string& type, Var x) {
    if (type == "layer") return parts::layer_norm(l, name, x);
    return type == "rms" ? parts::rms_norm(l, name, x, l.hyper.real("norm_eps")) : parts::unit_rms(x, l.hyper.real("norm_eps"));
  };
  a.layer = [norm](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), I = inner_width(h), D = I / heads;
    const bool block = h.choice("block") == "residual", bias = h.flag("bias"), tnl = h.choice("mixer") == "tnl";
    const std::string& type = h.choice("norm");
    const auto dense = [&](const std::string& name, Var x, std::int64_t out, const std::string& role) {
      return parts::linear(l, name, x, out,
                           {init::normal(h.real("init_std")), bias ? init::constant(0.0) : Init{}, role, "starts N(0, init_std²)"});
    };
    const Var x = block ? norm(l, "token_norm", type, u) : u;
    Var q, k, v, open;
    if (tnl) {
      q = dense("token_mixer.q_proj", x, d, "W_q, rows by head");
      k = dense("token_mixer.k_proj", x, d, "W_k, rows by head");
      v = dense("token_mixer.v_proj", x, d, "W_v, rows by head");
      const Var low = dense("token_mixer.output_gate.0", x, D, "The first matrix of the gate");
      open = l.gate("output", sigmoid(dense("token_mixer.output_gate.1", low, d, "The second matrix of the gate")), 0.0, 1.0,
                    "What multiplies the normalised read.");
    } else {
      const auto four = reclab::split(dense("token_mixer.qkvu_proj", x, 4 * I, "Rows of q, k, v and u, each by head"), -1, 4);
      q = four[0];
      k = four[1];
      v = four[2];
      open = l.gate("output", four[3], 0.0, 0.0, "u, which multiplies the normalised read; unbounded.");
    }
    const auto activated = [&](Var y) { return parts::by_head(l, parts::entrywise(h.choice("activation"), y), heads); };
    q = activated(q);
    k = activated(k);
    v = h.flag("v_activation") ? activated(v) : parts::by_head(l, v, heads);
    if (l.index() < h.integer("lrpe_layers")) {
      const Var theta = l.parameter("token_mixer.lrpe.theta", {heads, 1, D}, init::each([=](Rng&, std::int64_t j) {
                                      return std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(I));
                                    }),
                                    "θ, by how much each entry of a head turns a step; starts at 10000^(−2j/inner) over all heads.");
      const Var angle = reshape(l.position(), {l.steps(), l.batch(), 1, 1}) * reshape(theta, {heads, D}), c = cos(angle), s = sin(angle);
      const auto turned = [&](Var y) {
        const Var both[] = {y * c, y * s};
        return concat(both, -1);
      };
      q = turned(q);
      k = turned(k);
    }
    Var decay;
    if (h.flag("decay")) {
      const std::int64_t layers = h.integer("layers");
      const double share = (layers > 1 ? 1.0 - static_cast<double>(l.index()) / static_cast<double>(layers - 1) : 1.0) + 1e-5;
      std::vector<double> rates = slopes(heads);
      for (double& rate : rates) rate *= -share;
      decay = u.graph->constant({heads, 1}, rates);
    }
    const Var read = outer(
        l,
        {"S", {heads, k.dim(-1), D}, "The decayed sum of k vᵀ of each head, [key, value]; turned keys have all cosines, then all sines."},
        {q, k, v, decay});
    const Var mixed = open * norm(l, "token_mixer.norm", tnl ? "layer" : type, parts::flat(l, read));
    const Var y = dense(tnl ? "token_mixer.o_proj" : "token_mixer.out_proj", mixed, d, "W_o, columns by head");
    if (!block) return y;
    const Var after = u + y, z = norm(l, "channel_norm", type, after);
    const std::int64_t F = h.integer("glu_width") ? h.integer("glu_width") : d;
    return after + dense("channel_mixer.l3", dense("channel_mixer.l1", z, F, "l1") * dense("channel_mixer.l2", z, F, "l2"), d, "l3");
  };
  a.final_layer = [norm](Layer& l, Var x) {
    return l.hyper.choice("block") == "none" || !l.hyper.flag("final_norm") ? x : norm(l, "final_norm", l.hyper.choice("norm"), x);
  };
  return a;
}

}  // namespace reclab::architectures
