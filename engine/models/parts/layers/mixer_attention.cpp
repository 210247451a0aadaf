// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/layers/mixer_attention.h"

#include <cmath>
#include <memory>
#include <vector>

#include "array/error.h"
#include "models/parts/parts.h"

namespace reclab::parts {
namespace {

bool is_attention(const Hyper& h, std::int64_t layer) {
  return h.flag("attn") && layer >= 0 && layer < 53 && (h.integer("attn_layers") >> layer & 1) != 0;
}

struct Sizes {
  std::int64_t heads, kv, head, rotary, mlp, conv;
};

Sizes sizes_of(const Hyper& h) {
  const std::int64_t heads = h.integer("attn_heads"), kv = h.integer("attn_kv_heads"), head = h.integer("attn_head");
  return {heads,
          kv ? kv : heads,
          head ? head : h.integer("width") / heads,
          h.integer("attn_rotary"),
          h.integer("attn_mlp"),
          h.integer("attn_conv")};
}

void check_attention(const std::string& id, const Hyper& h) {
  bool any = false;
  for (std::int64_t i = 0; i < h.integer("layers"); ++i) any |= is_attention(h, i);
  if (!any) return;
  const auto refuse = [&](const std::string& key, const std::string& why, const std::string& range) {
    throw Error(id + ": " + key + " = " + h.text(key) + " " + why + ".",
                {.model = id, .parameter = key, .value = h.text(key), .range = range});
  };
  const Sizes s = sizes_of(h);
  if (!h.integer("attn_head") && h.integer("width") % s.heads)
    refuse("attn_heads", "does not divide width = " + h.text("width") + ": choose a divisor, or the size of a head by attn_head",
           "a divisor of width");
  if (s.heads % s.kv)
    refuse("attn_kv_heads", "does not divide attn_heads = " + h.text("attn_heads") + ": choose a divisor", "a divisor of attn_heads");
  if (s.rotary % 2 || s.rotary > s.head)
    refuse("attn_rotary", "is no even number of the " + std::to_string(s.head) + " channels of a head: choose an even one that is not more",
           "0, 2 .. " + std::to_string(s.head));
  if (s.mlp % 2) refuse("attn_mlp", "is odd, and half of it is values and half their gates: choose an even number", "even");
}

}  // namespace

bool has_mixer_attention(const Layer& l) { return is_attention(l.hyper, l.index()); }

Var mixer_attention(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  const Sizes s = sizes_of(h);
  const std::int64_t d = x.dim(-1), rows = (s.heads + 2 * s.kv) * s.head;
  const Init none = init::constant(0.0);
  const Var all =
      linear(l, "in_proj", x, rows + s.mlp,
             {torch_uniform(d), h.flag("attn_qkv_bias") ? none : Init{},
              std::string("W_in: rows of q, of k and of v, each by head") + (s.mlp ? ", then of the MLP's values and of their gates" : ""),
              "starts uniform in ±1/√D"});
  Var qkv = slice(all, -1, 0, rows);
  if (s.conv) qkv = short_convolution(l, "conv1d", "conv", qkv, s.conv);
  const auto heads_of = [&](std::int64_t from, std::int64_t n) {
    return by_head(l, slice(qkv, -1, from * s.head, (from + n) * s.head), n);
  };
  Var q = heads_of(0, s.heads), k = heads_of(s.heads, s.kv);
  const Var v = heads_of(s.heads + s.kv, s.kv);
  if (s.rotary) {
    std::vector<double> frequencies;
    for (std::int64_t j = 0; j < s.rotary / 2; ++j)
      frequencies.push_back(std::pow(h.real("attn_rotary_base"), -2.0 * static_cast<double>(j) / static_cast<double>(s.rotary)));
    const Var turns = angles(l, frequencies);
    const auto turned = [&](Var z) {
      const Var first = rotated(slice(z, -1, 0, s.rotary), turns, h.flag("attn_rotary_interleaved"));
      if (s.rotary == s.head) return first;
      const Var both[] = {first, slice(z, -1, s.rotary, s.head)};
      return concat(both, -1);
    };
    q = turned(q);
    k = turned(k);
  }
  const double scale = h.real("attn_scale") > 0.0 ? h.real("attn_scale") : 1.0 / std::sqrt(static_cast<double>(s.head));
  Var read = flat(l, attention(l, {"k", {s.kv, s.head}, "The key that each step appends to the cache, after its rotation."},
                               {"v", {s.kv, s.head}, "The value that each step appends to the cache."}, q * scale, k, v, 0));
  if (s.mlp) {
    const Var open = l.gate("attn_mlp", silu(slice(all, -1, rows + s.mlp / 2, rows + s.mlp)), 0.0, 0.0,
                            "The gate of the MLP beside the attention, silu of its half; unbounded above, at least −0.28.");
    const Var both[] = {read, slice(all, -1, rows, rows + s.mlp / 2) * open};
    read = concat(both, -1);
  }
  const std::int64_t width = read.dim(-1);
  const double bound = 1.0 / std::sqrt(static_cast<double>(width * h.integer("layers")));
  return linear(l, "out_proj", read, d,
                {init::uniform(-bound, bound), h.flag("attn_out_bias") ? none : Init{},
                 std::string("W_out: columns of the heads") + (s.mlp ? ", then of the MLP" : ""),
                 "starts uniform in ±1/√columns, divided by √layers"});
}

void add_mixer_attention(Architecture& a, const std::string& id) {
  a.equations.push_back(
      "the mixer of attn_layers: [q k v m g] = W_in u_t, [q k v] through the short convolution, q and k turned by their position,  out = "
      "W_out [Σ_{s≤t} softmax_s(c q_t·k_s) v_s by head; m ⊙ silu(g)]");
  a.notes.push_back(
      "With attn the blocks that attn_layers names (attn_layer_idx) have mamba_ssm's MHA for their mixer, set as attn_cfg sets it: "
      "in_proj, conv1d and out_proj are then its own. Its state is the cache, so such a layer has no spectrum and no "
      "ds_T/ds_t. It is causal (causal = True, as in the published models).");
  const std::vector<HyperSpec> rows{
      hyper_flag("attn", false, "Whether some blocks have attention for their mixer."),
      hyper_integer("attn_layers", "", 1, 0, (std::int64_t{1} << 53) - 1,
                    "Which blocks those are: the sum of 2^b over their numbers b from 0 (attn_layer_idx). Numbers beyond the last block do "
                    "not count."),
      hyper_integer("attn_heads", "", 2, 1, 256, "Heads of that attention (num_heads)."),
      hyper_integer("attn_kv_heads", "", 0, 0, 256, "Its heads of keys and values (num_heads_kv); 0: as many as heads."),
      hyper_integer("attn_head", "", 8, 0, 1024,
                    "Channels of each of its heads (head_dim); 0: width/heads, as by default in the reference.", "channels"),
      hyper_integer(
          "attn_mlp", "", 0, 0, 65536,
          "Rows of the gated MLP beside it, half of them gates (mlp_dim, which the reference rounds up to a multiple of 256); 0: none.",
          "units"),
      hyper_integer("attn_conv", "", 0, 0, 64, "Taps of a causal convolution of its queries, keys and values (d_conv); 0: none.", "steps"),
      hyper_integer("attn_rotary", "", 4, 0, 1024,
                    "Channels of each head that are turned by the position (rotary_emb_dim); 0: none, as by default in the reference.",
                    "channels"),
      hyper_real("attn_rotary_base", "", 10000.0, 1e-3, 1e9, "Base of the rotation's angles (rotary_emb_base).", true),
      hyper_flag(
          "attn_rotary_interleaved", false,
          "Whether it turns pairs of neighbours, or channel j with the one half of attn_rotary further on (rotary_emb_interleaved)."),
      hyper_real("attn_scale", "c", 0.0, 0.0, 1e3, "Factor of the products q·k (softmax_scale); 0: 1/√ of a head's channels."),
      hyper_flag("attn_qkv_bias", true, "Whether its in_proj has a bias (qkv_proj_bias)."),
      hyper_flag("attn_out_bias", true, "Whether its out_proj has a bias (out_proj_bias).")};
  a.hyper.insert(a.hyper.end(), rows.begin(), rows.end());
  a.check = [own = a.check, id](const Hyper& h) {
    if (own) own(h);
    check_attention(id, h);
  };
  const auto attending = std::make_shared<Architecture>(a);
  attending->id = "attention";
  attending->spectrum = "none: attention reads all stored steps at once, and no matrix takes one state to the next";
  a.kind = [attending](const Hyper& h, std::int64_t layer) { return LayerKind{is_attention(h, layer) ? attending.get() : nullptr, h}; };
}

}  // namespace reclab::parts
