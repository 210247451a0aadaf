// SPDX-License-Identifier: GPL-3.0-or-later
// The Legendre delay line: θ m' = A m + B u, whose m holds the Legendre coefficients of u over the last θ steps.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/parts/legendre.h"
#include "models/parts/projection/exponential.h"
#include "models/state_space/lmu/parameters.h"

namespace reclab::architectures {
namespace {

/// The Legendre delay line over theta steps in continuous time.
Delay continuous(std::size_t order, double theta = 1.0) {
  Delay line;
  for (std::size_t i = 0; i < order; ++i) {
    const double scale = (2.0 * static_cast<double>(i) + 1.0) / theta;
    for (std::size_t j = 0; j < order; ++j) line.A.push_back(scale * (i < j || (i - j) % 2 == 0 ? -1.0 : 1.0));
    line.B.push_back(i % 2 ? -scale : scale);
  }
  return line;
}
}  // namespace

Delay delay_line(std::size_t order, double theta, bool euler) {
  const std::size_t n = order + 1;
  const Delay flow = continuous(order, theta);
  std::vector<double> both(n * n, 0.0);  // [A B; 0 0]
  for (std::size_t i = 0; i < order; ++i) {
    for (std::size_t j = 0; j < order; ++j) both[i * n + j] = flow.A[i * order + j];
    both[i * n + order] = flow.B[i];
  }
  if (euler)
    for (std::size_t i = 0; i < n; ++i) both[i * n + i] += 1.0;
  else
    both = hippo::exponential(std::move(both), n);
  Delay line;
  for (std::size_t i = 0; i < order; ++i) {
    for (std::size_t j = 0; j < order; ++j) line.A.push_back(both[i * n + j]);
    line.B.push_back(both[i * n + order]);
  }
  return line;
}

/// exp of a multiple of a constant matrix has the slope matrix exp, so the
/// exponential is made of held values, with as many squarings as they need; the graph has room for those of any theta from 0.001 steps on.
std::pair<Var, Var> delay_line(std::int64_t order, Var theta_inv, bool euler) {
  const std::int64_t n = order + 1;
  Graph& graph = *theta_inv.graph;
  const Delay unit = continuous(static_cast<std::size_t>(order));
  std::vector<double> entries, identity;
  double norm = 0.0;
  for (std::int64_t i = 0; i < n; ++i) {
    double row = 0.0;
    for (std::int64_t j = 0; j < n; ++j) {
      entries.push_back(i == order  ? 0.0
                        : j < order ? unit.A[static_cast<std::size_t>(i * order + j)]
                                    : unit.B[static_cast<std::size_t>(i)]);
      identity.push_back(i == j ? 1.0 : 0.0);
      row += std::abs(entries.back());
    }
    norm = std::max(norm, row);
  }
  const Var matrix = graph.constant({n, n}, std::move(entries)), one = graph.constant({n, n}, std::move(identity));
  Var both;
  if (euler) {
    both = one + matrix * theta_inv;
  } else {
    const Var held = detach(theta_inv);
    const Var squarings = -floor(minimum(-log(abs(held) * (2.0 * norm)) / std::numbers::ln2, 0.0));
    const Var scaled = matrix * (held * exp(squarings * -std::numbers::ln2));
    both = one;
    for (int k = 16; k > 0; --k) both = one + matmul(scaled, both) / k;
    for (double k = 0.0; k < std::log2(2000.0 * norm); k += 1.0) {
      const Var more = sign(relu(squarings - (k + 0.5)));
      both = more * matmul(both, both) + (1.0 - more) * both;
    }
    both = both + (theta_inv - held) * matmul(matrix, both);
  }
  const Var rows = slice(both, 0, 0, order);
  return {slice(rows, 1, 0, order), reshape(slice(rows, 1, order, n), {order})};
}

/// u(t - a) = sum_i m_i P_i(2a/theta - 1): the newest input is weighted by P_i(-1) = (-1)^i, the sign of B.
PastBasis legendre_past(const Hyper& h) {
  PastBasis past;
  past.window = h.real("theta");
  if (h.flag("trainable_theta")) past.inverse_window = "theta_inv";
  past.coefficient = "Legendre coefficient";
  past.values = [](std::span<const double> places, std::span<double> values) {
    std::vector<double> x;
    for (const double place : places) x.push_back(1.0 - 2.0 * place);
    legendre(x, values);
  };
  return past;
}

}  // namespace reclab::architectures
