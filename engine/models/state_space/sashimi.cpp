// SPDX-License-Identifier: GPL-3.0-or-later
//   down:   x^l = W (x^{l-1}_{kp}, …, x^{l-1}_{kp+p-1}) + b, p steps of rate l-1 to one of rate l, E times as wide
//   blocks at each rate: u ← u + S4(norm u), u ← u + W₂ gelu(W₁ norm u)
//   up:     x^{l-1}_{kp+j} + the part j of W x^l_{k-1} + b: one step of rate l later, when all of its window has been read
// K. Goel, A. Gu, C. Donahue, C. Ré, It's raw! Audio generation with state-space models, ICML 2022.
// Names and conventions of state-spaces/s4: models/sashimi/sashimi.py, and the full code's backbones/sashimi.py with modules/pool.py.
#include <string>
#include <utility>
#include <vector>

#include "models/parts/parts.h"
#include "models/state_space/sashimi/parameters.h"
#include "recurrence/pooling/pooling.h"

namespace reclab::architectures {
namespace {

using namespace sashimi_parts;

/// x + f(norm x), or norm(x + f(x)).
template <class F>
Var residual(Layer& l, Var x, F&& f) {
  if (l.hyper.flag("prenorm")) return x + f(normed(l, x));
  const Var sum = x + f(x);
  return normed(l, sum);
}

/// u + S4(norm u). Run both ways the residual is that of both together.
Architecture s4_in_block(Architecture a, const Architecture& system) {
  a.layer = [&system](Layer& l, Var x) {
    if (l.hyper.flag("bidirectional")) return system.layer(l, l.hyper.flag("prenorm") ? normed(l, x) : x);
    return residual(l, x, [&](Var u) { return system.layer(l, u); });
  };
  a.shares_directions = system.shares_directions;
  a.combine_directions = [&system](Layer& l, Var below, Var forward, Var backward) {
    return residual(l, below, [&](Var u) { return system.combine_directions(l, u, forward, backward); });
  };
  return a;
}
const Architecture& s4_block(const Hyper& h) {
  static const Architecture dense = s4_in_block(s4_block_card(), s4_system()), diagonal = s4_in_block(s4d_block_card(), s4d_system());
  return is_diagonal(h) ? diagonal : dense;
}

/// u + W₂ gelu(W₁ norm u).
const Architecture& feed_forward() {
  static const Architecture made = [] {
    Architecture a = feed_forward_card();
    a.layer = [](Layer& l, Var x) {
      return residual(l, x, [&](Var u) {
        return mapped(l, "ff.2", gelu(mapped(l, "ff.0", u, l.hyper.integer("ff") * x.dim(-1), "W₁ of the feed-forward block")), x.dim(-1),
                      "W₂ of the feed-forward block");
      });
    };
    return a;
  }();
  return made;
}

/// W (x_{kp}, …, x_{kp+p−1}) + b.
const Architecture& down_pool() {
  static const Architecture made = [] {
    Architecture a = stage_card("down-pool");
    a.layer = [](Layer& l, Var x) {
      return of_stage(l, pooled(l, x, l.hyper.integer("pool")), l.hyper.integer("out"),
                      "The map of a window's steps to one, column h p + j channel h of step j");
    };
    return a;
  }();
  return made;
}
/// The p parts of W x + b, one step later.
const Architecture& up_pool() {
  static const Architecture made = [] {
    Architecture a = stage_card("up-pool");
    a.layer = [](Layer& l, Var x) {
      const std::int64_t p = l.hyper.integer("pool");
      return expanded(
          l, of_stage(l, x, l.hyper.integer("out") * p, "The map of a step to the p that follow, row h p + j channel h of step j"), p);
    };
    return a;
  }();
  return made;
}

/// The layers of the reference in its order, on the way down, in the middle and up again.
Var body(LayerGraph& b, Var x) {
  const Hyper& h = b.hyper;
  const std::int64_t blocks = h.integer("n_layers"), expand = h.integer("expand"), ff = h.integer("ff");
  const bool unet = h.flag("unet");
  std::int64_t width = h.integer("width"), stride = 1;
  std::vector<Var> skips{x};
  /// The blocks of a rate; `after` is called with the output of each.
  const auto run_blocks = [&](const std::string& path, std::int64_t number, const auto& after) {
    for (std::int64_t i = 0; i < blocks; ++i) {
      x = b.layer({&s4_block(h), hyper_of_s4(h, width, stride)}, stride, path + std::to_string(number++), x);
      after();
      if (!ff) continue;
      x = b.layer({&feed_forward(), hyper_of(h, feed_forward().hyper, {})}, stride, path + std::to_string(number++), x);
      after();
    }
    return number;
  };
  const auto skip = [&] {
    x = x + skips.back();
    skips.pop_back();
  };
  const std::vector<std::int64_t> stages = pools(h);
  std::int64_t number = 0;
  for (const std::int64_t p : stages) {
    if (unet) number = run_blocks("d_layers.", number, [&] { skips.push_back(x); });
    x = b.layer({&down_pool(), hyper_of(h, down_pool().hyper, {{"pool", p}, {"out", width * expand}})}, stride,
                "d_layers." + std::to_string(number++), x);
    skips.push_back(x);
    width *= expand;
    stride *= p;
  }
  run_blocks("c_layers.", 0, [] {});
  skip();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::int64_t p = stages[stages.size() - 1 - i];
    const std::string path = "u_layers." + std::to_string(i) + ".";
    width /= expand;
    stride /= p;
    x = b.layer({&up_pool(), hyper_of(h, up_pool().hyper, {{"pool", p}, {"out", width}})}, stride, path + "0", x);
    skip();
    if (unet) {
      run_blocks(path, 1, skip);
    } else {
      skips.push_back(x);
      run_blocks(path, 1, [] {});
      skip();
    }
  }
  return x;
}

}  // namespace

Architecture sashimi() {
  Architecture a = sashimi_card();
  a.body = body;
  a.final_layer = [](Layer& l, Var x) { return parts::layer_norm(l, "norm", x); };
  return a;
}

}  // namespace reclab::architectures
