// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <vector>

namespace reclab::hippo {

/// exp(x) of a square matrix of numbers [n, n]: halved until small, Taylor's series, squared back.
std::vector<double> exponential(std::vector<double> x, std::size_t n);

}  // namespace reclab::hippo
