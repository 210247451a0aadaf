// SPDX-License-Identifier: GPL-3.0-or-later
// Principal components of a cloud of states.
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

namespace reclab {

/// The directions in which a set of rows spreads most (Pearson 1901; Hotelling 1933), of the centred, not standardised data.
struct Components {
  std::int64_t width = 0;          ///< n, entries a row
  std::int64_t count = 0;          ///< k, components found: min(asked, n, rows - 1), those of no variance included
  std::vector<double> mean;        ///< [n]
  std::vector<double> directions;  ///< [k, n], orthonormal rows, the entry of largest magnitude positive (zeros where nothing varies)
  std::vector<double> share;       ///< [k], part of the total variance, falling
  double variance = 0.0;           ///< total: the sum of the units' variances (divisor rows - 1)
};

/// `data` is [rows, width], row-major and finite; it is centred in place. Exact by the smaller of the covariance and the Gram matrix when
/// its side is at most `exact_side`, else by block subspace iteration to 1e-10 of the leading variances. A stop leaves count = 0.
Components principalComponents(std::vector<double>& data, std::int64_t rows, std::int64_t width, std::int64_t count,
                               std::stop_token stop = {}, std::int64_t exact_side = 256);

}  // namespace reclab
