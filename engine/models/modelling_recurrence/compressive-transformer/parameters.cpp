// SPDX-License-Identifier: GPL-3.0-or-later
// Names, shapes and starts of the compressive transformer's parameters, as lucidrains/compressive-transformer-pytorch has them.
#include "models/modelling_recurrence/compressive-transformer/parameters.h"

#include <algorithm>

#include "models/parts/parts.h"

namespace reclab::architectures::compressive {

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

std::vector<Block> blocks_of(Layer& l, const Sizes& s) {
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

Var positions_of(Layer& l, const Sizes& s) {
  if (l.hyper.choice("position") != "learned") return {};
  return l.parameter("pos_emb", {s.heads, s.M() + s.n, s.D}, init::constant(0.0),
                     "e of each head; its last row belongs to the step itself, the one before to the step before, once the memories are "
                     "full. Starts at 0.");
}

}  // namespace reclab::architectures::compressive
