// SPDX-License-Identifier: GPL-3.0-or-later
#include "analysis/eigen.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

namespace reclab {

std::vector<std::complex<double>> eigenvalues(std::span<const double> matrix, std::int64_t n) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::complex<double>> values(static_cast<std::size_t>(n), {nan, nan});
  if (!std::all_of(matrix.begin(), matrix.end(), [](double x) { return std::isfinite(x); })) return values;
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::EigenSolver<Eigen::MatrixXd> solver(Eigen::Map<const Matrix>(matrix.data(), n, n), false);
  if (solver.info() != Eigen::Success) return values;
  for (std::int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = solver.eigenvalues()[i];
  std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) {
    const double x = std::abs(a), y = std::abs(b);
    return x != y ? x > y : std::arg(a) < std::arg(b);
  });
  return values;
}

void eigenvalues_of_many(std::int64_t count, std::int64_t n, const std::function<void(std::int64_t, std::span<double>)>& fill,
                         const std::function<void(std::int64_t, const std::vector<std::complex<double>>&)>& consume, std::stop_token stop) {
  std::atomic<std::int64_t> next{0};
  const auto work = [&] {
    std::vector<double> matrix(static_cast<std::size_t>(n * n));
    for (std::int64_t i = next++; i < count && !stop.stop_requested(); i = next++) {
      fill(i, matrix);
      consume(i, eigenvalues(matrix, n));
    }
  };
  std::vector<std::jthread> others;
  const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  for (std::int64_t i = 1; i < std::min(cores, count); ++i) others.emplace_back(work);
  work();
}

}  // namespace reclab
