// SPDX-License-Identifier: GPL-3.0-or-later
// fairseq's decoder layer round another attention, as the linear transformers of Peng et al. and of Qin et al. have it.
#pragma once

#include <functional>

#include "models/architecture.h"

namespace reclab::parts {

/// Adds the rows feed_forward, activation, prenorm, final_norm and block.
void add_fairseq_rows(std::vector<HyperSpec>& table);
/// The names in fairseq of the layers' parameters and of the final norm's. `alone`: those of the attention alone are read too, of which
/// none may be that of the final norm.
std::vector<ReferenceName> fairseq_names(bool alone);
/// x <- x + attention(norm x), x <- x + fc2(f(fc1 norm x)), or with the norms after the residuals; attention alone where block=none. From
/// fairseq-evo, where a table has the rows: block_norm (layer, or srms without parameters) and glu with glu_activation.
Var fairseq_layer(Layer& l, Var u, const std::function<Var(Var)>& attention);
/// The norm after the last layer, which there is only where norms come first.
Var fairseq_finish(Layer& l, Var x);

/// Throws Error unless the heads divide the width.
void heads_divide_width(const Hyper& h, const std::string& model);

}  // namespace reclab::parts
