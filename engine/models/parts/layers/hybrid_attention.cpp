// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/layers/hybrid_attention.h"

#include <cmath>
#include <memory>

#include "array/error.h"
#include "models/parts/parts.h"

namespace reclab::parts {
namespace {

bool is_attention(const Hyper& h, std::int64_t layer) {
  return h.flag("attn") && layer >= 0 && layer < 53 && (h.integer("attn_layers") >> layer & 1) != 0;
}
std::int64_t kv_heads_of(const Hyper& h) { return h.integer("attn_kv_heads") ? h.integer("attn_kv_heads") : h.integer("attn_heads"); }

void check_attention(const std::string& id, const Hyper& h) {
  bool any = false;
  for (std::int64_t i = 0; i < h.integer("layers"); ++i) any |= is_attention(h, i);
  if (!any) return;
  const auto refuse = [&](const std::string& key, const std::string& why, const std::string& range) {
    throw Error(id + ": " + key + " = " + h.text(key) + " " + why + ".",
                {.model = id, .parameter = key, .value = h.text(key), .range = range});
  };
  if (h.integer("width") % (2 * h.integer("attn_heads")))
    refuse("attn_heads", "does not leave heads of an even size in width = " + h.text("width") + ": choose one that does",
           "width a multiple of 2 attn_heads");
  if (h.integer("attn_heads") % kv_heads_of(h))
    refuse("attn_kv_heads", "does not divide attn_heads = " + h.text("attn_heads") + ": choose a divisor", "a divisor of attn_heads");
}

}  // namespace

bool has_attention(const Layer& l) { return is_attention(l.hyper, l.index()); }

Var hybrid_attention(Layer& l, const std::string& prefix, Var x, double deviation) {
  const Hyper& h = l.hyper;
  const std::int64_t d = x.dim(-1), heads = h.integer("attn_heads"), kv = kv_heads_of(h), D = d / heads;
  const std::string starts = "starts N(0, " + (deviation == 0.02 ? "0.02²" : std::string("init_std²")) + ")";
  const auto project = [&](const char* name, std::int64_t rows, const std::string& role, bool bias) {
    return linear(l, prefix + name, x, rows, {init::normal(deviation), bias ? init::constant(0.0) : Init{}, role, starts});
  };
  const bool bias = h.flag("attn_qkv_bias");
  std::vector<double> frequencies;
  for (std::int64_t j = 0; j < D / 2; ++j)
    frequencies.push_back(std::pow(h.real("attn_rope_theta"), -2.0 * static_cast<double>(j) / static_cast<double>(D)));
  const Var q = by_head(l, project("q_proj", d, "W_q, rows by head", bias), heads),
            k = by_head(l, project("k_proj", kv * D, "W_k, rows by head", bias), kv),
            v = by_head(l, project("v_proj", kv * D, "W_v, rows by head", bias), kv), turns = angles(l, frequencies);
  const Var read =
      attention(l, {"k", {kv, D}, "The key that each step appends to the cache, after its rotation."},
                {"v", {kv, D}, "The value that each step appends to the cache."},
                rotated(q, turns, false) / std::sqrt(static_cast<double>(D)), rotated(k, turns, false), v, h.integer("attn_window"));
  return linear(l, prefix + "o_proj", flat(l, read), d, {init::normal(deviation), {}, "W_o", starts});
}

void add_hybrid_attention(Architecture& a, const std::string& id) {
  a.equations.push_back(
      "attn: in the blocks of attn_layers o_t = W_o Σ_{s≤t} softmax_s(q_t·k_s/√D) v_s by head, q and k turned by t·θ^(−2j/D) in pairs (j, "
      "j + D/2)");
  a.notes.push_back(
      "With attn the blocks that attn_layers names have flash-linear-attention's Attention for their mixer, as its models with attn have: "
      "q_proj, k_proj, v_proj and o_proj in place of the mixer's own parameters. Its state is the cache, so "
      "such a layer has no spectrum and no ds_T/ds_t. A list of several such settings is not here: all these blocks have the same heads "
      "and window.");
  const std::vector<HyperSpec> rows{
      hyper_flag("attn", false, "Whether some blocks have softmax attention for their mixer."),
      hyper_integer("attn_layers", "", 1, 0, (std::int64_t{1} << 53) - 1,
                    "Which blocks those are: the sum of 2^b over their numbers b from 0 (attn's layers). Numbers beyond the last block do "
                    "not count."),
      hyper_integer("attn_heads", "", 2, 1, 64, "Heads of that attention, of an even size (attn's num_heads)."),
      hyper_integer("attn_kv_heads", "", 0, 0, 64, "Its heads of keys and values; 0: as many as heads."),
      hyper_flag("attn_qkv_bias", false, "Whether its queries, keys and values have biases."),
      hyper_integer("attn_window", "", 0, 0, 1000000, "Steps that it sees, the current one included; 0: all.", "steps"),
      hyper_real("attn_rope_theta", "θ", 10000.0, 1e-3, 1e9, "Base of its rotation's angles.", true)};
  a.hyper.insert(a.hyper.end(), rows.begin(), rows.end());
  a.check = [own = a.check, id](const Hyper& h) {
    if (own) own(h);
    check_attention(id, h);
  };
  const auto attending = std::make_shared<Architecture>(a);
  attending->id = "attention";
  attending->spectrum = "none: attention reads all stored steps at once, and no matrix takes one state to the next";
  attending->kind = {};
  a.kind = [attending](const Hyper& h, std::int64_t layer) { return LayerKind{is_attention(h, layer) ? attending.get() : nullptr, h}; };
}

}  // namespace reclab::parts
