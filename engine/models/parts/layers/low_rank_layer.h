// SPDX-License-Identifier: GPL-3.0-or-later
// The layer of S4: the parameters of a diagonal less a product of two vectors a channel, its bilinear transform, and the maps around the
// systems. The caller provides the systems' outputs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/architecture.h"
#include "recurrence/linear/linear.h"

namespace reclab::parts {

struct LowRankLayer {
  std::string id;  ///< of the architecture, for the sentences of its check
  /// The outputs of its systems for u [steps, batch, channels], without the skip.
  std::function<Var(Layer&, const LowRankSystem&, Var u)> read;
  /// Parameters as the first version of state-spaces/s4 names them: log_dt [H], inv_w_real and w_imag, Λ = -exp(inv_w_real) + i w_imag.
  /// Their table has no dt_transform, dt_tie, low_rank and B_clip, and has bandlimit.
  bool first_version = false;
  /// Whether another layer runs backward beside each one, with the same parameters, whose `read` is added. Empty: no.
  std::function<bool(const Hyper&)> adds_backward{};
};
std::vector<HyperSpec> low_rank_layer_hyper(bool first_version);
/// Sets input_width, check, layer, shares_directions and combine_directions.
void make_low_rank_layer(Architecture& a, const LowRankLayer& how);
/// The first `steps` values of the kernel of each channel, [channels, steps].
Var low_rank_kernel(const LowRankSystem& system, std::int64_t steps);
/// The memory of such a layer: the complex modes h.
Var low_rank_modes(Layer& l, const LowRankSystem& system, Var u);

}  // namespace reclab::parts
