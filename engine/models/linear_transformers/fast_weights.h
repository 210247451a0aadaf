// SPDX-License-Identifier: GPL-3.0-or-later
// The block round fast weights in their authors' language models (lmtool-fwp).
#pragma once

#include <functional>

#include "models/parts/features.h"
#include "models/parts/parts.h"

namespace reclab::parts {

/// y = mixer(x) with norms, residuals and a feed-forward part: norm(x + y), then norm(x + W2 relu(W1 x)); with prenorm the norms come
/// first. Reads the hyper-parameters block, prenorm, feed_forward and init_std; parameters dec_attn.layer_norm and
/// pos_ff.{CoreNet.0,CoreNet.3,layer_norm}. `normalised_residual`: with prenorm the normalised input is the one that the mixer's output is
/// added to.
inline Var programmer_block(Layer& l, Var u, const std::function<Var(Var x)>& mixer, bool normalised_residual = false) {
  const Hyper& h = l.hyper;
  const std::int64_t d = h.integer("width"), F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d;
  const bool block = h.choice("block") == "residual", prenorm = h.flag("prenorm");
  const Init small = init::normal(h.real("init_std"));
  const auto norm = [&](const std::string& name, Var x) {
    const Var scale = l.parameter(name + ".weight", {d}, init::each([](Rng& rng, std::int64_t) { return 1.0 + 0.02 * rng.normal(); }),
                                  "Scale of the layer norm; starts N(1, 0.02²).");
    return reclab::layer_norm(x, scale, l.parameter(name + ".bias", {d}, init::constant(0.0), "Shift of the layer norm; starts at 0."),
                              1e-5);
  };
  const Var x = block && prenorm ? norm("dec_attn.layer_norm", u) : u;
  const Var y = mixer(x);
  if (!block) return y;
  const auto feed = [&](Var z) {
    const Var hidden =
        relu(linear(l, "pos_ff.CoreNet.0", z, F, {small, init::constant(0.0), "W₁", "starts N(0, init_std²), its bias at 0"}));
    return linear(l, "pos_ff.CoreNet.3", hidden, d, {small, init::constant(0.0), "W₂", "starts N(0, init_std²), its bias at 0"});
  };
  if (prenorm) {
    const Var after = (normalised_residual ? x : u) + y;
    return after + feed(norm("pos_ff.layer_norm", after));
  }
  const Var after = norm("dec_attn.layer_norm", u + y);
  return norm("pos_ff.layer_norm", after + feed(after));
}

}  // namespace reclab::parts
