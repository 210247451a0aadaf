// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/layers/modal_filter.h"

#include <cmath>
#include <numbers>

#include "recurrence/diagonal/diagonal.h"

namespace reclab::parts {

HyperSpec modal_filter_row() {
  return hyper_integer("filter_modes", "", 0, 0, 4096,
                       "Not 0: each channel's long filter is the sum of so many complex exponentials, modes.poles, modes.residues and "
                       "modes.direct, in place of what makes it; such weights come from reclab distill.",
                       "modes");
}

bool has_modal_filter(const Hyper& h) { return h.integer("filter_modes") > 0; }

Var modal_filter(Layer& l, Var u, bool apart) {
  const std::int64_t C = u.dim(-1), N = l.hyper.integer("filter_modes");
  const std::string name = apart && l.backward() ? "modes_backward." : "modes.";
  const Var poles = l.parameter(
      name + "poles", {C, N, 2},
      [](InitContext& c) {
        for (std::size_t i = 0; i + 1 < c.values.size(); i += 2) {
          const double radius = std::sqrt(c.rng.uniform(0.81, 0.998)), phase = c.rng.uniform(0.0, std::numbers::pi);
          c.values[i] = radius * std::cos(phase);
          c.values[i + 1] = radius * std::sin(phase);
        }
      },
      "The poles of the filter's exponentials, last axis re and im; start in a ring of the upper half-plane.");
  const Var residues = l.parameter(name + "residues", {C, N, 2}, init::normal(0.1 / std::sqrt(static_cast<double>(N))),
                                   "Their residues, last axis re and im: a mode is read by its real part; start N(0, 0.1²/modes).");
  const Var direct = l.parameter(name + "direct", {C}, init::constant(0.0),
                                 "What of a channel's input the filter adds at once, beside its modes; starts at 0.");
  const auto part = [&](Var v, std::int64_t which) { return reshape(slice(v, -1, which, which + 1), {C, N}); };
  const Var re = part(poles, 0), im = part(poles, 1),
            outside = reciprocal(sqrt(-minimum(-(square(re) + square(im)), -1.0)));  // p/|p| beyond the unit circle
  const Var p = complex(re * outside, im * outside), r = complex(part(residues, 0), part(residues, 1));
  return diagonal_bank(l, {"h", {C, N}, "The modes of each channel's filter, which all of its inputs drive alike."}, p, p * 0.0 + 1.0, r,
                       u) +
         u * direct;
}

}  // namespace reclab::parts
