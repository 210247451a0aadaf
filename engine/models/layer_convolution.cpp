// SPDX-License-Identifier: GPL-3.0-or-later
#include <cassert>

#include "models/network.h"
#include "recurrence/convolution.h"

namespace reclab {

Var Layer::convolution(const std::string& name, Var kernel, Var u, const std::string& text) {
  offer({Form::convolution});
  network_.whole_ = true;
  const std::int64_t before = past(), all = before + steps(), channels = u.dim(-1), taps = kernel.dim(1);
  assert(kernel.dim(0) == channels && u.shape().size() == 3);
  const Var initial = graph_.leaf(LeafKind::variable, {before, batch(), channels}, u.dtype());
  Var joined = u;
  if (before) {
    const Var parts[] = {initial, u};
    joined = concat(parts, 0);
  }
  network_.states_.push_back({index_, name, text, {channels}, nullptr, 0, initial, Var{}, joined, true});
  if (form() != Form::convolution) return convolve_directly(kernel, joined, steps());
  if (taps < all) {
    const Var parts[] = {kernel, graph_.constant({channels, all - taps}, std::vector<double>(static_cast<std::size_t>(channels * (all - taps)), 0.0))};
    kernel = concat(parts, 1);
  } else if (taps > all) {
    kernel = slice(kernel, 1, 0, all);
  }
  return slice(convolve(kernel, joined), 0, before, all);
}

}  // namespace reclab
