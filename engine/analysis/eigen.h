// SPDX-License-Identifier: GPL-3.0-or-later
// Eigenvalues of real matrices, for spectra of recurrent Jacobians.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

namespace reclab {

/// All eigenvalues of a real matrix, row-major [n, n], by decreasing |lambda|, then by argument. NaNs when an entry is not finite.
std::vector<std::complex<double>> eigenvalues(std::span<const double> matrix, std::int64_t n);

/// The same for many matrices on all cores: fill(i, buffer) writes matrix i, consume(i, values) takes its eigenvalues; both are called
/// from several threads, for different i at once. Returns early, with some left out, when a stop is requested.
void eigenvalues_of_many(std::int64_t count, std::int64_t n, const std::function<void(std::int64_t, std::span<double>)>& fill,
                         const std::function<void(std::int64_t, const std::vector<std::complex<double>>&)>& consume, std::stop_token stop);

}  // namespace reclab
