// SPDX-License-Identifier: GPL-3.0-or-later
#include "scene/components.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>

namespace reclab {
namespace {

using Matrix = Eigen::MatrixXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// One copy of each decomposition: they take most of this file's compile time.
[[gnu::noinline]] Eigen::SelfAdjointEigenSolver<Matrix> eigenOf(const Matrix& symmetric) {
  return Eigen::SelfAdjointEigenSolver<Matrix>(symmetric);
}
[[gnu::noinline]] Matrix orthonormal(const Matrix& columns) {
  const Eigen::HouseholderQR<Matrix> qr(columns);
  return qr.householderQ() * Matrix::Identity(columns.rows(), columns.cols());
}

/// The leading right singular vectors as columns, from the eigenvectors of the smaller product.
Matrix exactDirections(const Eigen::Map<RowMajor>& x, std::int64_t k) {
  const bool wide = x.cols() > x.rows();
  const Eigen::Index side = wide ? x.rows() : x.cols();
  Matrix product = Matrix::Zero(side, side);
  if (wide)
    product.selfadjointView<Eigen::Lower>().rankUpdate(x);
  else
    product.selfadjointView<Eigen::Lower>().rankUpdate(x.transpose());
  const auto solver = eigenOf(product);
  const Matrix leading = solver.eigenvectors().rightCols(k).rowwise().reverse();
  if (!wide) return leading;
  // From left to right singular vectors: those within rounding of no variance have no direction, and stay zero.
  Matrix right = x.transpose() * leading;
  const double floor = 1e-7 * x.norm();
  for (Eigen::Index j = 0; j < k; ++j) {
    const double norm = right.col(j).norm();
    right.col(j) *= norm > floor ? 1.0 / norm : 0.0;
  }
  return right;
}

/// Subspace iteration on x^T x with a few more directions than requested, without which it would not converge.
Matrix iteratedDirections(const Eigen::Map<RowMajor>& x, std::int64_t k, const std::stop_token& stop) {
  const Eigen::Index block = std::min<Eigen::Index>({k + 9, x.cols(), x.rows()});
  // Any start that no direction is orthogonal to will do; this one is the same on every machine.
  Matrix basis(x.cols(), block);
  for (Eigen::Index i = 0; i < basis.rows(); ++i)
    for (Eigen::Index j = 0; j < block; ++j)
      basis(i, j) = std::sin(1.0 + 0.7548776662466927 * double(i + 1) * double(j + 1) + 0.1 * double(j));
  Eigen::VectorXd last = Eigen::VectorXd::Zero(k);
  for (int pass = 0; pass < 200; ++pass) {
    if (stop.stop_requested()) return {};
    basis = orthonormal(basis);
    const Matrix scores = x * basis;
    const auto small = eigenOf(scores.transpose() * scores);
    const Eigen::VectorXd now = small.eigenvalues().tail(k);
    const Matrix turn = small.eigenvectors().rowwise().reverse();
    if ((now - last).cwiseAbs().maxCoeff() <= 1e-10 * now.maxCoeff()) return basis * turn.leftCols(k);
    last = now;
    basis = x.transpose() * (scores * turn);
  }
  return orthonormal(basis).leftCols(k);
}

}  // namespace

Components principalComponents(std::vector<double>& data, std::int64_t rows, std::int64_t width, std::int64_t count, std::stop_token stop,
                               std::int64_t exact_side) {
  Components found;
  found.width = width;
  if (rows < 2 || width < 1) return found;
  Eigen::Map<RowMajor> x(data.data(), rows, width);
  const Eigen::RowVectorXd mean = x.colwise().mean();
  x.rowwise() -= mean;
  found.mean.assign(mean.data(), mean.data() + width);
  const double total = x.squaredNorm();
  found.variance = total / double(rows - 1);
  const std::int64_t k = std::min({count, width, rows - 1});
  Matrix directions = std::min(rows, width) <= exact_side ? exactDirections(x, k) : iteratedDirections(x, k, stop);
  if (directions.cols() == 0) return found;

  found.count = k;
  found.directions.assign(static_cast<std::size_t>(k * width), 0.0);
  found.share.assign(static_cast<std::size_t>(k), 0.0);
  for (Eigen::Index j = 0; j < k; ++j) {
    Eigen::Index top = 0;
    directions.col(j).cwiseAbs().maxCoeff(&top);
    if (directions(top, j) < 0.0) directions.col(j) *= -1.0;
    if (total > 0.0) found.share[static_cast<std::size_t>(j)] = (x * directions.col(j)).squaredNorm() / total;
    std::copy_n(directions.col(j).data(), width, found.directions.begin() + j * width);
  }
  return found;
}

}  // namespace reclab
