// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/projection/measures.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "array/demand.h"
#include "models/parts/legendre.h"
#include "models/parts/projection/exponential.h"

namespace reclab::hippo {
namespace {

std::size_t at(std::int64_t row, std::int64_t column, std::int64_t width) { return static_cast<std::size_t>(row * width + column); }

/// The scale of generalised Laguerre polynomial n in the reference's state, and that of all of them.
double laguerre_scale(double n, double alpha) { return std::exp(0.5 * (std::lgamma(n + alpha + 1.0) - std::lgamma(n + 1.0))); }
double laguerre_weight(double alpha, double beta) {
  return std::exp(-0.5 * std::lgamma(1.0 - alpha)) * std::pow(beta, 0.5 * (1.0 - alpha));
}

/// x = a^-1 x for columns x [n, columns], by elimination with pivots.
void solve(std::vector<double> a, std::int64_t n, std::vector<double>& x, std::int64_t columns) {
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (std::abs(a[at(i, k, n)]) > std::abs(a[at(pivot, k, n)])) pivot = i;
    for (std::int64_t j = 0; pivot != k && j < n; ++j) std::swap(a[at(k, j, n)], a[at(pivot, j, n)]);
    for (std::int64_t j = 0; pivot != k && j < columns; ++j) std::swap(x[at(k, j, columns)], x[at(pivot, j, columns)]);
    for (std::int64_t i = k + 1; i < n; ++i) {
      const double factor = a[at(i, k, n)] / a[at(k, k, n)];
      if (factor == 0.0) continue;
      for (std::int64_t j = k; j < n; ++j) a[at(i, j, n)] -= factor * a[at(k, j, n)];
      for (std::int64_t j = 0; j < columns; ++j) x[at(i, j, columns)] -= factor * x[at(k, j, columns)];
    }
  }
  for (std::int64_t i = n - 1; i >= 0; --i)
    for (std::int64_t j = 0; j < columns; ++j) {
      double& value = x[at(i, j, columns)];
      for (std::int64_t k = i + 1; k < n; ++k) value -= a[at(i, k, n)] * x[at(k, j, columns)];
      value /= a[at(i, i, n)];
    }
}

/// Generalised Laguerre polynomials, a row a degree: n L_n = (2n-1+alpha-x) L_{n-1} - (n-1+alpha) L_{n-2}.
void laguerre(double alpha, std::span<const double> x, std::span<double> values) {
  const std::size_t count = x.size(), orders = count ? values.size() / count : 0;
  for (std::size_t n = 0; n < orders; ++n)
    for (std::size_t i = 0; i < count; ++i) {
      const double degree = static_cast<double>(n);
      double& now = values[n * count + i];
      now = 1.0;
      if (n == 1) now = 1.0 + alpha - x[i];
      if (n > 1)
        now = ((2.0 * degree - 1.0 + alpha - x[i]) * values[(n - 1) * count + i] - (degree - 1.0 + alpha) * values[(n - 2) * count + i]) /
              degree;
    }
}

}  // namespace

System continuous(const Measure& measure, std::int64_t order) {
  const bool legt = measure.name == "legt", lmu = measure.name == "lmu", lagt = measure.name == "lagt", glagt = measure.name == "glagt";
  RECLAB_DEMAND(legt || lmu || lagt || glagt || measure.name == "legst");
  System flow;
  flow.order = order;
  const auto odd = [](std::int64_t n) { return n % 2 ? -1.0 : 1.0; };
  for (std::int64_t i = 0; i < order; ++i) {
    const double n = static_cast<double>(i), root = std::sqrt(2.0 * n + 1.0);
    for (std::int64_t j = 0; j < order; ++j) {
      const double k = static_cast<double>(j), roots = root * std::sqrt(2.0 * k + 1.0);
      double entry = 0.0;
      if (legt)
        entry = -0.5 * roots * (i < j ? odd(i - j) : 1.0);
      else if (lmu)
        entry = (2.0 * n + 1.0) * (i < j ? -1.0 : -odd(i - j));
      else if (i < j)
        entry = 0.0;
      else if (lagt)
        entry = i == j ? -0.5 : -1.0;
      else if (glagt)
        entry = i == j ? -0.5 * (1.0 + measure.beta) : -laguerre_scale(k, measure.alpha) / laguerre_scale(n, measure.alpha);
      else
        entry = i == j ? -(n + 1.0) : -roots;
      flow.A.push_back(entry);
    }
    const auto binomial = [&] {
      return std::exp(std::lgamma(measure.alpha + n + 1.0) - std::lgamma(n + 1.0) - std::lgamma(measure.alpha + 1.0));
    };
    flow.B.push_back(legt    ? 0.5 * root
                     : lmu   ? (2.0 * n + 1.0) * odd(i)
                     : lagt  ? measure.beta
                     : glagt ? binomial() / laguerre_scale(n, measure.alpha) * laguerre_weight(measure.alpha, measure.beta)
                             : root);
  }
  return flow;
}

double share_of(const Rule& rule) {
  return rule.name == "forward" ? 0.0 : rule.name == "backward" ? 1.0 : rule.name == "generalised" ? rule.share : 0.5;
}

System discrete(const System& flow, double dt, const Rule& rule) {
  const std::int64_t N = flow.order, n = N + 1;
  System step{N, {}, {}};
  if (rule.name == "zoh") {  // exp of [A B; 0 0]
    std::vector<double> both(static_cast<std::size_t>(n * n), 0.0);
    for (std::int64_t i = 0; i < N; ++i) {
      for (std::int64_t j = 0; j < N; ++j) both[at(i, j, n)] = dt * flow.A[at(i, j, N)];
      both[at(i, N, n)] = dt * flow.B[static_cast<std::size_t>(i)];
    }
    both = exponential(std::move(both), static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < N; ++i) {
      for (std::int64_t j = 0; j < N; ++j) step.A.push_back(both[at(i, j, n)]);
      step.B.push_back(both[at(i, N, n)]);
    }
    return step;
  }
  const double share = share_of(rule);
  std::vector<double> left, right(static_cast<std::size_t>(N * n));
  for (std::int64_t i = 0; i < N; ++i) {
    for (std::int64_t j = 0; j < N; ++j) {
      const double one = i == j ? 1.0 : 0.0, slope = dt * flow.A[at(i, j, N)];
      left.push_back(one - share * slope);
      right[at(i, j, n)] = one + (1.0 - share) * slope;
    }
    right[at(i, N, n)] = dt * flow.B[static_cast<std::size_t>(i)];
  }
  if (share != 0.0) solve(std::move(left), N, right, n);
  for (std::int64_t i = 0; i < N; ++i) {
    for (std::int64_t j = 0; j < N; ++j) step.A.push_back(right[at(i, j, n)]);
    step.B.push_back(right[at(i, N, n)]);
  }
  return step;
}

/// A rule takes the input for that of the middle of the step, shifted by its share: forward takes it for the end, backward for the start.
///
/// Laguerre functions turn up to 4N units ago and die away beyond; a measure that forgets faster is shown over three of its time constants.
PastBasis past(const Measure& measure, std::int64_t order, double dt, const Rule& rule) {
  const bool legendre_names = measure.name == "legt" || measure.name == "lmu" || measure.name == "legst";
  const double turns = 4.0 * static_cast<double>(order);
  const double units = measure.name == "legt"    ? 2.0
                       : measure.name == "lmu"   ? 1.0
                       : measure.name == "lagt"  ? turns
                       : measure.name == "glagt" ? std::min(turns, 3.0 / measure.beta)
                                                 : 3.0;
  PastBasis past;
  past.window = units / dt;
  past.coefficient = legendre_names ? "Legendre coefficient" : "Laguerre coefficient";
  const double early = rule.name == "zoh" ? 0.0 : (share_of(rule) - 0.5) * dt;
  past.values = [measure, units, early](std::span<const double> places, std::span<double> values) {
    std::vector<double> x, scale;
    for (const double place : places) {
      const double age = units * (1.0 - place) + early;
      if (measure.name == "legt")
        x.push_back(1.0 - age);
      else if (measure.name == "lmu")
        x.push_back(2.0 * age - 1.0);
      else if (measure.name == "legst")
        x.push_back(2.0 * std::exp(-age) - 1.0);
      else
        x.push_back(age);
      if (measure.name == "lagt")
        scale.push_back(std::exp(-0.5 * age) / measure.beta);
      else if (measure.name == "glagt")
        scale.push_back(std::pow(std::max(age, 0.0), measure.alpha) * std::exp(-0.5 * (1.0 - measure.beta) * age) /
                        laguerre_weight(measure.alpha, measure.beta));
      else
        scale.push_back(1.0);
    }
    if (measure.name == "lagt" || measure.name == "glagt")
      laguerre(measure.name == "lagt" ? 0.0 : measure.alpha, x, values);
    else
      legendre(x, values);
    double* value = values.data();
    for (std::size_t n = 0; n < values.size() / places.size(); ++n) {
      const double degree = static_cast<double>(n);
      const double root = measure.name == "legt" || measure.name == "legst" ? std::sqrt(2.0 * degree + 1.0)
                          : measure.name == "glagt"                         ? 1.0 / laguerre_scale(degree, measure.alpha)
                                                                            : 1.0;
      for (std::size_t i = 0; i < places.size(); ++i) *value++ *= root * scale[i];
    }
  };
  return past;
}

/// With r_n = √(2n+1) all rules have closed forms, which are exact where a step wipes out a coefficient. (1 - A/a)^-1 is a/(a+n+1) on the
/// diagonal and -a r_n r_k / ((a+n+1)(a+k+1)) times the product of (a-j)/(a+j+1) over k < j < n below it. exp(A log 1/ρ) is ρ^(n+1) and
/// -r_n r_k ρ^(k+1) (1-ρ) J(2ρ-1)/(n-k), J the Jacobi polynomial of degree n-k-1 with exponents 1 and 2k+1. All rules leave a constant
/// input's state e_0 as it is, so B̄ = e_0 - Ā e_0.
LegsStep legs_step(const Rule& how, std::int64_t order, Var tau, double longest) {
  const std::string& rule = how.name;
  const std::int64_t N = order;
  Graph& graph = *tau.graph;
  const std::int64_t T = tau.dim(0);
  const auto table = [&](Shape shape, auto&& value) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < count(shape); ++i)
      values.push_back(value(static_cast<double>(i / shape.back()), static_cast<double>(i % shape.back())));
    return graph.constant(std::move(shape), std::move(values));
  };
  const Var one = table({N, N}, [](double n, double k) { return n == k ? 1.0 : 0.0; });
  const Var n = table({N}, [](double, double k) { return k; });
  const Var roots = table({N, N}, [](double i, double k) { return i > k ? std::sqrt((2.0 * i + 1.0) * (2.0 * k + 1.0)) : 0.0; });
  const Var start = relu(1.0 - tau), t = minimum(tau + start, longest);
  const auto column = [&](Var x) { return reshape(x, {T, -1, 1}); };
  const auto row = [&](Var x) { return reshape(x, {T, 1, -1}); };
  const auto row_of = [&](Var matrix, std::int64_t i) { return reshape(slice(matrix, 0, i, i + 1), {N}); };
  /// Below the diagonal row by row, from the two rows before: next(i, last, before) and a 1 next to the diagonal.
  const auto below = [&](auto&& next) {
    const Var none = graph.constant({1, N}, std::vector<double>(static_cast<std::size_t>(N), 0.0)) * t;
    std::vector<Var> rows{row(none)};
    Var last = none, before = none;
    for (std::int64_t i = 1; i < N; ++i) {
      const Var now = next(i, last, before) + row_of(one, i - 1);
      rows.push_back(row(now));
      before = last;
      last = now;
    }
    return concat(rows, 1);
  };

  LegsStep made;
  Var lost;  // the decay of e_0 in a step
  if (rule == "forward") {
    lost = reciprocal(t);
    made.A = column(1.0 - (n + 1.0) / t) * one - roots * column(lost);
  } else if (rule == "zoh") {
    const Var rho = t / (t + 1.0), x = rho * 2.0 - 1.0;
    lost = reciprocal(t + 1.0);
    // P_m = (slope x + shift) P_{m-1} - back P_{m-2} for the Jacobi polynomials of degree m = n - k - 1
    const auto jacobi = [&](auto&& term) {
      return table({N, N}, [&](double i, double k) {
        const double m = i - k - 1.0, c = 2.0 * (m + k + 1.0);
        return m < 1.0 ? 0.0 : term(m, k, c) / (2.0 * m * (m + 2.0 * k + 2.0) * (c - 2.0));
      });
    };
    const Var slope = jacobi([](double, double, double c) { return (c - 1.0) * c * (c - 2.0); });
    const Var shift = jacobi([](double, double k, double c) { return (c - 1.0) * (1.0 - (2.0 * k + 1.0) * (2.0 * k + 1.0)); });
    const Var back = jacobi([](double m, double k, double c) { return 2.0 * m * (m + 2.0 * k) * c; });
    const Var polynomials = below(
        [&](std::int64_t i, Var last, Var before) { return (x * row_of(slope, i) + row_of(shift, i)) * last - row_of(back, i) * before; });
    const Var scale =
        table({N, N}, [](double i, double k) { return i > k ? std::sqrt((2.0 * i + 1.0) * (2.0 * k + 1.0)) / (i - k) : 0.0; });
    const Var powers = exp(log(rho) * (n + 1.0));
    made.A = column(powers) * one - polynomials * scale * row(powers * lost);
  } else if (rule == "generalised") {
    // With s the share of the new state, (1 + (1-s) A/t)(1 - s A/t)^-1 = (1/s)(1 - s A/t)^-1 - (1-s)/s. Below the diagonal the formula also
    // holds for s = 0.
    const double share = how.share;
    const Var inverse = reciprocal(t + (n + 1.0) * share), factors = (t - n * share) * inverse;
    const Var products = below([&](std::int64_t i, Var last, Var) { return last * slice(factors, -1, i - 1, i); });
    lost = slice(inverse, -1, 0, 1);
    made.A = column((t - (n + 1.0) * (1.0 - share)) * inverse) * one - products * roots * (column(inverse) * row(inverse * t));
  } else {
    const bool bilinear = rule == "bilinear";
    const Var a = bilinear ? t * 2.0 : t, inverse = reciprocal(a + (n + 1.0)), factors = (a - n) * inverse;
    const Var products = below([&](std::int64_t i, Var last, Var) { return last * slice(factors, -1, i - 1, i); });
    // (1 + A/a) (1 - A/a)^-1 = 2 (1 - A/a)^-1 - 1
    lost = (bilinear ? 2.0 : 1.0) * slice(inverse, -1, 0, 1);
    made.A = column((bilinear ? a - (n + 1.0) : a) * inverse) * one -
             products * roots * (column(inverse) * row(inverse * (a * (bilinear ? 2.0 : 1.0))));
  }
  const Var going = 1.0 - start;
  const Var first = lost * going + start;
  made.A = made.A * column(going);
  made.B = first;
  if (N > 1) {
    const Var parts[] = {first, -reshape(slice(slice(made.A, 2, 0, 1), 1, 1, N), {T, N - 1})};
    made.B = concat(parts, -1);
  }
  return made;
}

/// f(x t) = sum_n c_n sqrt(2n+1) P_n(2x-1), of inputs that come at the times init_t, init_t + 1, ...
///
/// The rules differ in how long they hold the past to be after the input of time tau, by the constant that they leave as it is: the exact
/// one and backward's step end at tau + 1, forward's step, which replaces all at time 1, at tau, and the bilinear one half way between;
/// a generalised one in proportion to its share.
PastBasis legs_past(const Rule& rule, std::int64_t init_t, std::int64_t longest) {
  PastBasis past;
  past.first = static_cast<double>(init_t) + (rule.name == "zoh" ? 1.0 : share_of(rule));
  past.last = longest - init_t;
  past.beyond =
      "From time l_max = " + std::to_string(longest) +
      " on the memory's scale no longer grows and c is no longer the fit of the whole past, so that no reconstruction is shown there: "
      "an l_max as long as the sequence shows it all.";
  past.coefficient = "Legendre coefficient";
  past.values = [](std::span<const double> places, std::span<double> values) {
    std::vector<double> x;
    for (const double place : places) x.push_back(2.0 * place - 1.0);
    legendre(x, values);
    double* at = values.data();
    for (std::size_t n = 0; n < values.size() / places.size(); ++n) {
      const double root = std::sqrt(2.0 * static_cast<double>(n) + 1.0);
      for (std::size_t i = 0; i < places.size(); ++i) *at++ *= root;
    }
  };
  return past;
}

}  // namespace reclab::hippo
