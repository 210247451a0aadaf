// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/fairseq.h"

#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "models/parts/features.h"
#include "models/parts/parts.h"

namespace reclab::parts {

void add_fairseq_rows(std::vector<HyperSpec>& table) {
  table.push_back(
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"));
  table.push_back(hyper_choice("activation", "relu", {"relu", "gelu"}, "f of the feed-forward part."));
  table.push_back(hyper_flag("prenorm", true, "Whether norms come first (after the residuals otherwise)."));
  table.push_back(hyper_flag("final_norm", true, "Whether a layer norm follows the last layer, with prenorm."));
  table.push_back(hyper_choice("block", "residual", {"residual", "none"},
                               "The layer with norms, residuals and feed-forward, or the attention with its projections alone."));
}

std::vector<ReferenceName> fairseq_names(bool alone) {
  std::vector<ReferenceName> names{{"layers.{n}.*", "*"}, {"layer_norm.*", "final/layer_norm.*"}};
  if (alone) names.push_back({"*", "self_attn.*"});
  return names;
}

Var fairseq_layer(Layer& l, Var u, const std::function<Var(Var)>& attention) {
  const Hyper& h = l.hyper;
  if (h.choice("block") == "none") return attention(u);
  const bool prenorm = h.flag("prenorm");
  const std::int64_t d = h.integer("width"), F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d;
  // Rows of fairseq-evo, where an architecture has them.
  const bool simple = h.has("block_norm") && h.choice("block_norm") == "srms", gated = h.has("glu") && h.flag("glu");
  const auto norm = [&](const std::string& name, Var x) {
    return simple ? x / (length(x) / std::sqrt(static_cast<double>(d)) + 1e-8) : layer_norm(l, name, x);
  };
  const auto before = [&](const std::string& name, Var x) { return prenorm ? norm(name, x) : x; };
  const auto after = [&](const std::string& name, Var x) { return prenorm ? x : norm(name, x); };
  const Var x = after("self_attn_layer_norm", u + attention(before("self_attn_layer_norm", u)));
  if (gated) {
    const std::int64_t wide = h.integer("feed_forward") ? F : std::max<std::int64_t>(1, 8 * d / 3);
    const Var in = before("final_layer_norm", x), opened = linear(l, "glu.l1", in, wide, "l1, whose activation multiplies");
    const Var unit = entrywise(h.choice("glu_activation"), opened) * linear(l, "glu.l2", in, wide, "l2");
    return after("final_layer_norm", x + linear(l, "glu.l3", unit, d, "l3"));
  }
  const Var hidden = linear(l, "fc1", before("final_layer_norm", x), F, "W₁ of the feed-forward part");
  return after("final_layer_norm",
               x + linear(l, "fc2", h.choice("activation") == "relu" ? relu(hidden) : gelu(hidden), d, "W₂ of the feed-forward part"));
}

Var fairseq_finish(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  return h.choice("block") == "residual" && h.flag("prenorm") && h.flag("final_norm") ? layer_norm(l, "layer_norm", x) : x;
}

void heads_divide_width(const Hyper& h, const std::string& model) {
  if (h.integer("width") % h.integer("heads"))
    throw Error(model + ": heads = " + h.text("heads") + " does not divide width = " + h.text("width") + ": choose a divisor.",
                {.model = model, .parameter = "heads", .value = h.text("heads"), .range = "a divisor of width"});
}

}  // namespace reclab::parts
