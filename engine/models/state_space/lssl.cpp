// SPDX-License-Identifier: GPL-3.0-or-later
//   x_t = Ā x_{t-1} + B̄ u_t, y_t = C x_t + D u_t + E for each channel, read out M times
//   Ā = (1 - αΔA)⁻¹(1 + (1 - α)ΔA), B̄ = (1 - αΔA)⁻¹ ΔB, α = ½: bilinear
//   layer: W f(y) + b over all channels and reads, block: u + layer(norm(u)), or norm(u + layer(u))
// A. Gu, I. Johnson, K. Goel, K. Saab, T. Dao, A. Rudra, C. Ré, Combining recurrent, convolutional, and continuous-time models with linear
// state-space layers, NeurIPS 2021. Names and conventions of state-spaces/s4 (modules/lssl.py, hippo/transition.py).
#include <vector>

#include "autodiff/inverse.h"
#include "models/parts/layers/modal_filter.h"
#include "models/parts/layers/state_space.h"
#include "models/parts/matrices.h"
#include "models/parts/parts.h"
#include "models/state_space/lssl/parameters.h"
#include "recurrence/flow.h"
#include "recurrence/linear/linear.h"

namespace reclab::architectures {
namespace {

/// C x_t, [steps, batch, H, M].
Var systems(Layer& l, const LsslParameters& p, Var u) {
  const auto& [A, B, C, D, dt] = p;
  const std::int64_t H = C.dim(0), N = C.dim(2);
  const double share = l.hyper.real("gbt_alpha"), rate = static_cast<double>(l.hyper.integer("rate"));
  const Var one = parts::identity(l.graph(), N);
  declare_flow(l, {.rule = Flow::Rule::generalised, .share = share});
  const auto inverse_of = [&](Var step) { return matrix_inverse(one - A * step * share); };

  const Var inverse = inverse_of(dt), sampled = rate == 1.0 ? dt : dt * rate;
  const Var A_bar = matmul(rate == 1.0 ? inverse : inverse_of(sampled), one + A * sampled * (1.0 - share));
  const Var B_bar = reshape(matmul(inverse, B * dt), {H, N});
  return dense_bank(l, {"x", {H, N}, "The state of each channel."}, A_bar, B_bar, C, u);
}

/// The same of a distilled layer: a sum of exponentials for each read.
Var modes(Layer& l, Var u, std::int64_t M) {
  const std::int64_t T = l.steps(), batch = l.batch(), H = u.dim(-1);
  const Var ones = l.graph().constant({M}, std::vector<double>(static_cast<std::size_t>(M), 1.0));
  return reshape(parts::modal_filter(l, reshape(reshape(u, {T, batch, H, 1}) * ones, {T, batch, H * M})), {T, batch, H, M});
}

}  // namespace

Architecture lssl() {
  Architecture a = lssl_card();
  a.layer = [](Layer& l, Var x) {
    const std::int64_t T = l.steps(), batch = l.batch(), H = l.hyper.integer("width"), M = l.hyper.integer("channels");
    const parts::NormedBlock block = parts::normed_block(l);
    const LsslParameters p = lssl_parameters(l);

    const Var u = block.read(x);
    Var y = (p.C ? systems(l, p, u) : modes(l, u, M)) + reshape(u, {T, batch, H, 1}) * p.D;
    const auto [E, W, b] = lssl_output(l);
    if (E) y = y + E;
    y = reshape(parts::activation(l.hyper.choice("activation"), y), {T, batch, H * M});
    return block.around(x, W ? linear(y, W, b) : y);
  };
  return a;
}

}  // namespace reclab::architectures
