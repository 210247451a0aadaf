// SPDX-License-Identifier: GPL-3.0-or-later
//   k = [interpolate(w_0, 1) m^{S-1}, interpolate(w_1, 1) m^{S-2}, interpolate(w_2, 2) m^{S-3}, .., interpolate(w_{S-1}, 2^{S-2})] / Z
//   y_t = Σ_{j<K} k_j ⊙ u_{t-j} + D ⊙ u_t,   layer: W gelu(y) + b
// Y. Li et al., What makes convolutional models great on long sequence modeling?, ICLR 2023. Names and conventions of GConv in
// ctlllll/SGConv (gconv_standalone.py, gconv.py), which make the same.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/long_convolutions/sgconv/parameters.h"
#include "models/parts/layers/diagonal_system.h"
#include "models/parts/parts.h"
#include "recurrence/convolution/convolution.h"

namespace reclab::architectures {
namespace {

/// One scale, stretched: w [rows, d] -> [rows, count], the first `count` of d 2^log2 entries.
Var stretched(Var w, std::int64_t log2, std::int64_t count, bool nearest) {
  const std::int64_t rows = w.dim(0), d = w.dim(1), s = std::int64_t{1} << log2, places = (count + s - 1) / s;
  const auto some = [&](Var v) { return reshape(places < d ? slice(v, 1, 0, places) : v, {rows, places, 1}); };
  std::vector<double> own, before, after;
  for (std::int64_t r = 0; r < s; ++r) {
    const double at = (static_cast<double>(r) + 0.5) / static_cast<double>(s) - 0.5;
    own.push_back(nearest ? 1.0 : 1.0 - std::abs(at));
    before.push_back(nearest ? 0.0 : std::max(0.0, -at));
    after.push_back(nearest ? 0.0 : std::max(0.0, at));
  }
  const auto weights = [&](std::vector<double> values) { return w.graph->constant({s}, std::move(values)); };
  Var y = some(w) * weights(own);
  if (!nearest && s > 1) {
    const Var back[] = {slice(w, 1, 0, 1), slice(w, 1, 0, d - 1)}, on[] = {slice(w, 1, 1, d), slice(w, 1, d - 1, d)};
    y = y + some(d > 1 ? concat(back, 1) : w) * weights(before) + some(d > 1 ? concat(on, 1) : w) * weights(after);
  }
  y = reshape(y, {rows, places * s});
  return count < places * s ? slice(y, 1, 0, count) : y;
}

/// k of this layer's direction, [channels * width, taps].
Var kernel_of(Layer& l) {
  const Hyper& h = l.hyper;
  const auto [w, decay, Z] = sgconv_kernel(l);
  const std::int64_t S = h.integer("n_scales"), d = h.integer("kernel_dim"), K = sgconv_taps(h), width = Z.dim(0);
  const bool power = h.choice("decay") == "power", summed = h.choice("combine") == "sum", nearest = h.choice("interpolation") == "nearest";
  std::vector<Var> parts;
  Var factor;
  for (std::int64_t i = S - 1; i >= 0; --i) {  // the longest first: each has the next one's factor times m
    Var part = stretched(w[static_cast<std::size_t>(i)], sgconv_stretch(h, i), d << sgconv_stretch(h, i), nearest);
    if (factor) part = part * factor;
    if (!power) factor = factor ? factor * decay : decay;
    if (summed && part.dim(1) < K) {
      const Var padded[] = {part, l.graph().constant({width, K - part.dim(1)},
                                                     std::vector<double>(static_cast<std::size_t>(width * (K - part.dim(1))), 0.0))};
      part = concat(padded, 1);
    }
    parts.insert(parts.begin(), part);
  }
  Var k = parts[0];
  for (std::size_t i = 1; summed && i < parts.size(); ++i) k = k + parts[i];
  if (!summed && parts.size() > 1) k = concat(parts, 1);
  if (power) {
    std::vector<double> lags;
    for (std::int64_t j = 0; j < K; ++j) lags.push_back(std::log(static_cast<double>(j + 1)));
    k = k * exp(-decay * l.graph().constant({1, K}, std::move(lags)));
  }
  return k / Z;
}

/// The norm of the block, where there is one.
Var normed(Layer& l, Var x) { return parts::layer_norm(l, "block_norm", x); }
Var read_by(Layer& l, Var x) { return l.hyper.choice("block") == "residual" && l.hyper.flag("prenorm") ? normed(l, x) : x; }

/// The layer from the kernels' result to its end.
Var finished(Layer& l, Var x, Var u, Var y) {
  const std::vector<Var> copies(static_cast<std::size_t>(l.hyper.integer("channels")), u);
  y = y + (copies.size() == 1 ? u : concat(copies, -1)) * sgconv_skip(l);
  if (l.hyper.choice("output") == "linear") y = sgconv_output(l, y);
  if (l.hyper.choice("block") == "none") return y;
  return l.hyper.flag("prenorm") ? x + y : normed(l, x + y);
}

}  // namespace

Architecture sgconv() {
  Architecture a = sgconv_card();
  a.layer = [](Layer& l, Var x) {
    const Var u = read_by(l, x);
    const Var y = finite_convolution(l, "u", kernel_of(l), u, "The last K − 1 inputs of the convolution, oldest first.");
    return l.hyper.flag("bidirectional") ? y : finished(l, x, u, y);
  };
  a.shares_directions = [](const Hyper& h) { return h.flag("bidirectional"); };
  a.combine_directions = [](Layer& l, Var below, Var forward, Var backward) {
    return finished(l, below, read_by(l, below), forward + parts::from_next_step(backward));
  };
  return a;
}

}  // namespace reclab::architectures
