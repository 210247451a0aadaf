// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/layers/mixer_model.h"

#include <cmath>

#include "models/parts/layers/read_out.h"
#include "models/parts/parts.h"

namespace reclab::parts {
namespace {

Var norm(Layer& l, const std::string& name, Var x) {
  const double eps = l.hyper.real("norm_eps");
  return l.hyper.choice("block_norm") == "layer" ? layer_norm(l, name, x, eps) : rms_norm(l, name, x, eps);
}

}  // namespace

std::vector<HyperSpec> mixer_model_rows() {
  return {
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norm and residual, and the final norm, or the mixer alone."),
      hyper_choice("block_norm", "rms", {"rms", "layer"}, "The norms of the blocks and after the last: rms norms, or layer norms."),
      hyper_real("norm_eps", "ε", 1e-5, 1e-12, 1.0, "What these norms add to the mean square.", true),
      hyper_integer(
          "mlp", "M", 0, 0, 65536,
          "Hidden width of a gated MLP after the mixer; 0: none. The reference rounds its d_intermediate up to a multiple of 128.",
          "units"),
      read_out_row()};
}

std::vector<ReferenceName> mixer_model_reference() {
  return {{"layers.{n}.norm.*", "norm.*"},
          {"layers.{n}.norm2.*", "norm2.*"},
          {"layers.{n}.mlp.*", "mlp.*"},
          {"norm_f.*", "final/norm_f.*"},
          {"embedding.weight", "encoder/weight", true},
          {"embedding.weight", ""},
          {"lm_head.weight", "head/weight"},
          {"lm_head.weight", ""}};
}

Var mixer_block(Layer& l, Var u, const std::function<Var(Var)>& mixer) {
  if (l.hyper.choice("block") == "none") return mixer(u);
  u = u + mixer(norm(l, "norm", u));
  const std::int64_t width = u.dim(-1), hidden = l.hyper.integer("mlp");
  if (!hidden) return u;
  const auto halves =
      split(linear(l, "mlp.fc1", norm(l, "norm2", u), 2 * hidden, "W₁ of the MLP: rows of the value, then of its gate", false), -1, 2);
  const Var open = l.gate("mlp", silu(halves[1]), 0.0, 0.0, "The MLP's gate, silu of its half; unbounded above, at least −0.28.");
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden * l.hyper.integer("layers")));
  return u + linear(l, "mlp.fc2", halves[0] * open, width,
                    {init::uniform(-bound, bound), {}, "W₂ of the MLP", "starts uniform in ±1/√M, divided by √layers"});
}

Var mixer_model_finish(Layer& l, Var x) { return l.hyper.choice("block") == "none" ? x : norm(l, "norm_f", x); }

}  // namespace reclab::parts
