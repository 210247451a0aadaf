// SPDX-License-Identifier: GPL-3.0-or-later
// A and B of LSSL as the reference makes them of few parameters, so that A keeps the structure of its measure (hippo/transition.py).
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/inverse.h"
#include "models/parts/matrices.h"
#include "models/state_space/lssl/parameters.h"

namespace reclab::architectures {
namespace {

/// The initial value of a parameter: a number for each entry of its last axis, plus normal noise.
Init along(std::int64_t n, const std::function<double(std::int64_t)>& value, double noise = 0.0) {
  return init::each([=](Rng& rng, std::int64_t i) {
    const double start = value(i % n);
    return noise > 0.0 ? start + noise * rng.normal() : start;
  });
}
Shape with_axis(Shape shape, std::int64_t n) {
  shape.push_back(n);
  return shape;
}
Init all(double value) { return init::constant(value); }

/// A = -diag(pl) (T⁻¹ + diag(c)) diag(pr), B = pl b, T tridiagonal: dl below, d on and du above its diagonal.
LsslTransition tridiagonal(Layer& l, std::int64_t N, const Shape& of_channels) {
  const std::string& measure = l.hyper.choice("measure");
  const auto shape = [&](std::int64_t n) { return with_axis(of_channels, n); };
  const bool legs = measure == "legs", legt = measure == "legt", jac = measure == "jac", cheb = measure == "cheb" || measure == "chebii";
  const std::int64_t scale = l.hyper.integer("diag_scale"), corners = l.hyper.integer("corners");
  const bool diag_add = l.hyper.flag("diag_add"), halve = l.hyper.flag("halve"), double_B = l.hyper.flag("double_B"), even = legt || cheb;
  const auto root = [=](std::int64_t i) {
    const double n = static_cast<double>(i);
    if (legt) return std::sqrt(2.0 * n + 1.0);
    if (jac) return std::sqrt(2.0 * n + 2.0);
    if (legs) return scale == 2 ? std::sqrt(2.0 * n + 1.0) : scale == 1 ? std::sqrt(n + 1.0) : 1.0;
    return 1.0;
  };
  const auto inside = [N](double value) { return along(N + 1, [=](std::int64_t i) { return i == 0 || i == N ? 0.0 : value; }); };
  const Var dl = l.parameter("transition.dl", shape(N + 1), inside(even ? -0.5 : -1.0),
                             "Below T's diagonal: entry i stands in row i, those at both ends nowhere; starts as the measure's.");
  const Var d =
      l.parameter("transition.d", shape(N),
                  along(
                      N,
                      [=](std::int64_t i) {
                        return !even ? 1.0 : legt ? (i == 0 && corners % 2 ? 0.5 : 0.0) + (i == N - 1 && corners / 2 ? 0.5 : 0.0) : 0.0;
                      },
                      legt   ? 1e-2
                      : cheb ? 1e-3
                             : 0.0),
                  std::string("T's diagonal; starts as the measure's") + (legt   ? ", plus N(0, 0.01²)."
                                                                          : cheb ? ", plus N(0, 0.001²)."
                                                                                 : "."));
  const Var du = l.parameter("transition.du", shape(N + 1), inside(even ? 0.5 : 0.0),
                             "Above T's diagonal: entry i + 1 stands in row i; starts as the measure's.");
  const Var pl = l.parameter("transition.pl", shape(N), along(N, root), "Scales of A's rows and of B; starts as the measure's.");
  const Var pr = l.parameter("transition.pr", shape(N), along(N, root), "Scales of A's columns; starts as the measure's.");
  const Var c = l.parameter("transition.c", shape(N),
                            along(N,
                                  [=](std::int64_t i) {
                                    const double n = static_cast<double>(i);
                                    if (legs) return diag_add ? -n / (2.0 * n + 1.0) : -0.5;
                                    return measure == "lagt" || (jac && halve) ? -0.5 : 0.0;
                                  }),
                            "What is added to T⁻¹ on the diagonal; starts as the measure's.");
  const Var b = l.parameter("transition.b", shape(N), all(jac && double_B ? 2.0 : 1.0), "B over pl; starts as the measure's.");

  std::vector<double> below(static_cast<std::size_t>(N * N), 0.0), above = below;
  for (std::int64_t i = 1; i < N; ++i)
    below[static_cast<std::size_t>(i * N + i - 1)] = above[static_cast<std::size_t>((i - 1) * N + i)] = 1.0;
  const Var one = parts::identity(l.graph(), N);
  const auto column = [&](Var v) { return reshape(v, with_axis(v.shape(), 1)); };
  const auto row = [&](Var v) {
    Shape as = v.shape();
    as.insert(as.end() - 1, 1);
    return reshape(v, as);
  };
  const Var T = column(d) * one + column(slice(dl, -1, 0, N)) * l.graph().constant({N, N}, below) +
                column(slice(du, -1, 1, N + 1)) * l.graph().constant({N, N}, above);
  return {-(column(pl) * (matrix_inverse(T) + column(c) * one) * row(pr)), pl * b};
}

/// A = -diag(c) L diag(c)⁻¹, L_ij = a_(i-j) from the diagonal down, B = c b.
LsslTransition toeplitz(Layer& l, std::int64_t N, const Shape& of_channels) {
  const Shape shape = with_axis(of_channels, N);
  const bool generalised = l.hyper.choice("measure") == "glagt";
  const double alpha = generalised ? l.hyper.real("alpha") : 0.0, beta = generalised ? l.hyper.real("beta") : 0.0;
  const Var a = l.parameter("transition.a", shape, along(N, [=](std::int64_t i) { return i ? 1.0 : 0.5 * (1.0 + beta); }),
                            "A's diagonals, from the main one down; starts as the measure's.");
  const Var c = l.parameter("transition.c", shape,
                            along(N,
                                  [=](std::int64_t i) {
                                    const double n = static_cast<double>(i);
                                    return generalised ? std::exp(-0.5 * (std::lgamma(n + alpha + 1.0) - std::lgamma(n + 1.0))) : 1.0;
                                  }),
                            "The basis' scales; starts as the measure's.");
  const Var b = l.parameter("transition.b", shape,
                            along(N,
                                  [=](std::int64_t i) {
                                    const double n = static_cast<double>(i);
                                    if (!generalised) return 1.0;
                                    return std::exp(std::lgamma(alpha + n + 1.0) - std::lgamma(n + 1.0) - std::lgamma(alpha + 1.0) -
                                                    0.5 * std::lgamma(1.0 - alpha)) *
                                           std::pow(beta, 0.5 * (1.0 - alpha));
                                  }),
                            "B over c; starts as the measure's.");
  // Rows of N copies of (a, 0), read with a row length of one less, begin one entry further to the right each.
  const std::int64_t copies = count(shape) / N;
  const Var zeros = l.graph().constant({copies, N}, std::vector<double>(static_cast<std::size_t>(copies * N), 0.0));
  const Var parts[] = {reshape(a, {copies, N}), zeros};
  const Var ones = l.graph().constant({1, N, 1}, std::vector<double>(static_cast<std::size_t>(N), 1.0));
  const Var repeated = reshape(reshape(concat(parts, -1), {copies, 1, 2 * N}) * ones, {copies, 2 * N * N});
  const Var lower = transpose(slice(reshape(slice(repeated, -1, 0, N * (2 * N - 1)), {copies, N, 2 * N - 1}), -1, 0, N));
  const Var scales = reshape(c, {copies, N});
  const Var A = -(reshape(scales, {copies, N, 1}) * lower * reshape(reciprocal(scales), {copies, 1, N}));
  return {of_channels.empty() ? reshape(A, {N, N}) : A, c * b};
}

}  // namespace

LsslTransition lssl_transition(Layer& l, std::int64_t N, const Shape& of_channels) {
  const std::string& measure = l.hyper.choice("measure");
  if (measure == "random") {
    const Shape vector = with_axis(of_channels, N), matrix = with_axis(vector, N);
    const Var A = l.parameter("transition.a", matrix, init::normal(1.0 / static_cast<double>(N)), "A; starts N(0, 1/N²).");
    return {A, l.parameter("transition.b", vector, all(1.0), "B; starts at 1.")};
  }
  if (measure == "lagt" && l.hyper.choice("learn") == "0") {  // A = -(L + a), L of ones from the diagonal down
    std::vector<double> L;
    for (std::int64_t i = 0; i < N * N; ++i) L.push_back(i / N >= i % N ? 1.0 : 0.0);
    const Var shift = l.parameter("transition.a", {}, all(-0.5), "What is added to A's diagonal of −1, less its sign; starts at −½.");
    const Var b = l.parameter("transition.b", {}, all(l.hyper.real("beta")), "Every entry of B; starts at beta.");
    return {-(l.graph().constant({N, N}, std::move(L)) + parts::identity(l.graph(), N) * shift),
            l.graph().constant({N}, std::vector<double>(static_cast<std::size_t>(N), 1.0)) * b};
  }
  return measure == "glagt" || measure == "toep" ? toeplitz(l, N, of_channels) : tridiagonal(l, N, of_channels);
}

}  // namespace reclab::architectures
