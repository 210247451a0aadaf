// SPDX-License-Identifier: GPL-3.0-or-later
// The memory of the product of a key and a value: modes, or the last inputs where the kernel is cut.
#include <vector>

#include "models/state_space/h3/parameters.h"
#include "recurrence/convolution/convolution.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {
namespace {

/// The rows of heads for the channels of each.
Var for_channels(Layer& l, Var v, std::int64_t each) {
  const std::int64_t H = v.dim(0);
  if (each == 1) return v;
  const Var ones = l.graph().constant({1, each, 1}, std::vector<double>(static_cast<std::size_t>(each), 1.0));
  return reshape(reshape(v, {H, 1, v.dim(-1)}) * ones, {H * each, v.dim(-1)});
}

/// The first taps of the kernel of such a system, [heads, taps].
Var cut_kernel(const H3Modes& m, std::int64_t taps) {
  const std::int64_t H = m.a.dim(0), N = m.a.dim(1);
  Var powers = reshape(m.a * 0.0 + 1.0, {H, N, 1}), next = reshape(m.a, {H, N, 1});
  while (powers.dim(-1) < taps) {
    const Var both[] = {powers, powers * next};
    powers = concat(both, -1);
    next = next * next;
  }
  const Var each = slice(powers, -1, 0, taps) * reshape(m.w * m.b, {H, N, 1});
  return sum(is_complex(each.dtype()) ? real(each) : each, 1);
}

}  // namespace

Var h3_by_taps(Layer& l, Var kernel, Var u, std::int64_t each) {
  const std::int64_t taps = kernel.dim(-1);
  const StateSpec spec{
      "kv",
      {kernel.dim(0) * each},
      "The products of each step, which the next ones read through the kernel; by head, then k' dimension, then v dimension."};
  return convolve_directly(for_channels(l, kernel, each), taps > 1 ? l.history(spec, u, taps - 1) : u, u.dim(0));
}

Var h3_by_modes(Layer& l, const H3Modes& system, Var u, std::int64_t each) {
  if (const std::int64_t taps = l.hyper.integer("l_max")) return h3_by_taps(l, cut_kernel(system, taps), u, each);
  const Var a = for_channels(l, system.a, each), b = for_channels(l, system.b, each), w = for_channels(l, system.w, each);
  const StateSpec spec{"h",
                       {a.dim(0), a.dim(-1)},
                       is_complex(a.dtype()) ? "The complex modes of each product, by head, then k' dimension, then v dimension."
                                             : "The averages of each product, by head, then k' dimension, then v dimension."};
  if (!system.may_grow) return diagonal_bank(l, spec, a, b, w, u);
  const BankVars vars = diagonal_bank(l.graph(), l.form(), a, b, w, u);  // an FFT rounds all of an output as it does its largest entry
  l.declare_forms({Form::scan, Form::chunkwise});
  l.declare({spec}, vars);
  return vars.output;
}

}  // namespace reclab::architectures
